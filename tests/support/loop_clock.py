"""The clock of the event loop's timers, which a test can advance past deadlines of minutes."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")
_passed_seconds: WeakKeyDictionary[asyncio.AbstractEventLoop, float] = WeakKeyDictionary()


def advance_loop(seconds: float) -> None:
    """Advance the clock of the running loop: every timer until then is due. It never goes back.

    Do not call it while the test waits with a timeout, because that timer is due as well.
    """
    loop = asyncio.get_running_loop()
    if loop not in _passed_seconds:
        real = loop.time
        loop.time = lambda: real() + _passed_seconds[loop]  # type: ignore[method-assign]
    _passed_seconds[loop] = _passed_seconds.get(loop, 0.0) + seconds


async def hastened(work: Awaitable[T]) -> T:
    """Return the result of `work`, for which a second of the loop's clock passes in some milliseconds.

    It is for work that waits until a deadline. What needs time itself has less of it.
    """
    task = asyncio.ensure_future(work)
    while not task.done():
        advance_loop(0.2)
        await asyncio.sleep(0.001)
    return await task
