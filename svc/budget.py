"""A budget of CPU time for the work of a thread, so that one database read cannot occupy a reader.

`Database.read` and `Database.heavy_read` limit each function. SQLite calls `spent` while it runs a query, and stops one
that has used its time. Loops in Python call it themselves and return what they have found so far.
"""

import contextlib
import math
import sqlite3
import threading
import time
from collections.abc import Iterator


class _Limit(threading.local):
    ends = math.inf  # on the clock of time.thread_time()


_limit = _Limit()


def spent() -> bool:
    """Return whether the work on this thread has used its CPU time. One call takes half a microsecond."""
    return time.thread_time() >= _limit.ends


@contextlib.contextmanager
def limited(cpu_seconds: float) -> Iterator[None]:
    """Limit the block to this much CPU time of this thread. A limit around the block also applies."""
    outer = _limit.ends
    _limit.ends = min(outer, time.thread_time() + cpu_seconds)
    try:
        yield
    finally:
        _limit.ends = outer


@contextlib.contextmanager
def best_effort(cpu_seconds: float) -> Iterator[None]:
    """Limit the block as `limited` does, but end it without an error when its own limit interrupts a query.

    What the block has stored by then is a partial result. The code after the block has the time of the limit around it.
    """
    try:
        with limited(cpu_seconds):
            yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT or spent():
            raise
