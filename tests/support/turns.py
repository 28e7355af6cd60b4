"""Whether work lets others have their turns."""

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

T = TypeVar("T")


def waited_for_less_than_50_ms(work: Callable[[], T]) -> T:
    """Return the result of `work`. During it, another thread must never wait longer for its turn."""
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


@contextlib.asynccontextmanager
async def free_loop(most_seconds: float) -> AsyncIterator[None]:
    """The block lets everybody else on its event loop have a turn after `most_seconds` of CPU time at the latest."""
    longest_seconds = 0.0

    async def watch() -> None:
        nonlocal longest_seconds
        while True:
            began = time.thread_time()
            await asyncio.sleep(0.001)  # not 0, which would take all the CPU while the block waits for a thread
            longest_seconds = max(longest_seconds, time.thread_time() - began)

    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        watching.cancel()
    assert longest_seconds < most_seconds, "the loop stood still"
