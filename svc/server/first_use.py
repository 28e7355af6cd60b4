"""Does in the background, after the start, what the first requests would have to do: imports, and files that are read.

A request that does it itself takes longer, and fails while no descriptor is free.
"""

import asyncio
import contextlib
import gc
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

_DELAY_SECONDS = 1.0  # the first requests do not wait for it
_PAUSES = 4  # a step of 10 ms is followed by a pause of 40 ms


async def prepare(steps: Iterable[Callable[[], object]]) -> None:
    """Run the steps in a separate thread. One that fails is left to the first request that needs it."""
    loop = asyncio.get_running_loop()
    await asyncio.sleep(_DELAY_SECONDS)
    with ThreadPoolExecutor(1, "first_use") as thread:
        for step in steps:
            began = time.monotonic()
            with contextlib.suppress(OSError, ImportError):  # no descriptor is free
                await loop.run_in_executor(thread, step)
            await asyncio.sleep(_PAUSES * (time.monotonic() - began))
    gc.freeze()  # as at the end of the start
