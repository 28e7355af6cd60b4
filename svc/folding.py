"""Folds the write-ahead log into the database beside the writer, in a thread and on a connection of its own.

SQLite's own way is to do it within the commit that finds 1,000 pages in the log: whoever commits then waits for all of them, 1.6
ms for a MB. After a backup, which holds the log while it copies, that was 0.4 s for every 250 MB that had been written meanwhile.

committed() on the writer's thread, after every 400 functions -> _fold() here -> what few pages are left, between two transactions
of the writer: only where it has nothing more to add can the log begin anew, and so stay small
"""

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from svc.schema import connect

_EVERY_JOBS = 400  # a page that all of them write is folded once
_LOG_PAGES = 1_000  # a smaller log need not begin anew
_FEW_PAGES = 250  # 1 MiB: so much may be folded while the writer waits
_PASSES = 4


class LogFolder:
    """Of the database at `path`. `between_transactions(fn)` has the writer's thread run `fn(conn)` when it has none open."""

    def __init__(self, path: Path, between_transactions: Callable[[Callable[[sqlite3.Connection], object]], None]) -> None:
        self._path = path
        self._between_transactions = between_transactions
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="folding")
        self._conn: sqlite3.Connection | None = None
        self._jobs = 0
        self._folding = False

    def committed(self, jobs: int) -> None:
        """To be called on the writer's thread after each commit, with how many functions it held."""
        self._jobs += jobs + 1
        if self._jobs >= _EVERY_JOBS and not self._folding:
            self._jobs = 0
            self._folding = True  # before it can end
            self._threads.submit(self._fold)

    async def folded(self) -> bool:
        """Wait for what is being folded, which keeps others from it; return whether there was anything."""
        if not self._folding:
            return False
        await asyncio.wrap_future(self._threads.submit(lambda: None))
        return True

    async def close(self) -> None:
        """Waits for what is being folded, and ends. To be called when the writer has ended, once or more."""
        if self._folding or self._conn is not None:  # or there is no thread
            await asyncio.wrap_future(self._threads.submit(self._close_connection))
            self._threads.shutdown()

    def _fold(self) -> None:
        try:
            self._conn = self._conn or connect(self._path)
            pages = left = 0
            for _ in range(_PASSES):  # one is enough unless much is written meanwhile
                pages, left = fold(self._conn)
                if left <= _FEW_PAGES:
                    break
            if pages >= _LOG_PAGES and left <= _FEW_PAGES:  # more is left where a reader needs it
                self._between_transactions(fold)
        except sqlite3.Error:
            pass  # a full or broken disk is told to those who write; the log grows until there is room
        finally:
            self._folding = False

    def _close_connection(self) -> None:
        if self._conn is not None:
            self._conn.close()
            self._conn = None


def fold(conn: sqlite3.Connection) -> tuple[int, int]:
    """Folds in as much as can be without waiting for anybody; how many pages the log has, and how many of them are left."""
    _, pages, folded = conn.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    return pages, pages - folded
