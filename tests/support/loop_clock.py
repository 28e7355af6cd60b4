"""The clock of the event loop's timers, which a test can advance past deadlines of minutes."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

T = TypeVar("T")


@contextlib.contextmanager
def movable_loop_clock() -> Iterator[Callable[[float], None]]:
    """Yield a function that advances the running loop by so many seconds: every timer until then is due.

    Do not wait with a timeout of the test while it is called, because that timer is due as well.
    """
    loop, passed_seconds = asyncio.get_running_loop(), 0.0
    real = loop.time

    def advance(seconds: float) -> None:
        nonlocal passed_seconds
        passed_seconds += seconds

    loop.time = lambda: real() + passed_seconds  # type: ignore[method-assign]
    try:
        yield advance
    finally:
        del loop.time  # type: ignore[method-assign]


async def hastened(work: Awaitable[T]) -> T:
    """Return the result of `work`, for which a second of the loop's clock passes in some milliseconds.

    It is for work that waits until a deadline. What needs time itself has less of it.
    """
    task = asyncio.ensure_future(work)
    with movable_loop_clock() as advance:
        while not task.done():
            advance(0.2)
            await asyncio.sleep(0.001)
    return await task
