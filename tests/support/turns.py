"""Whether work lets others have their turns."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def waited_for_less_than_50_ms(work: Callable[[], T]) -> T:
    """What `work` returns; another thread must never wait longer for its turn meanwhile."""
    longest, over = 0.0, threading.Event()

    def tick() -> None:
        nonlocal longest
        while not over.is_set():
            began, busy = time.monotonic(), time.process_time()
            time.sleep(0.001)
            longest = max(longest, min(time.monotonic() - began, time.process_time() - busy))

    ticking = threading.Thread(target=tick)
    ticking.start()
    try:
        return work()
    finally:
        over.set()
        ticking.join()
        assert longest < 0.05
