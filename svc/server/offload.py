"""CPU-bound work outside the event loop: one thread, which the accounts (or addresses) share round robin."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from svc.fair_queue import FairQueue

P = ParamSpec("P")
T = TypeVar("T")


class Offload:
    """Runs plain functions in a thread, one of each owner at a time, so that many jobs of one delay another by one."""

    def __init__(self) -> None:
        # More threads would wait for each other: Python runs one at a time.
        self._thread = ThreadPoolExecutor(1, "offload")
        self._queue = FairQueue(1, most_of_one=1)

    async def run(self, owner: str, fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `fn` returns in the turn of `owner` (an account's id or an address). Raises what it raises.

        If the caller is cancelled, the function continues, and the owner's next one waits for it.
        """
        release = await self._queue.take(owner)
        job = asyncio.get_running_loop().run_in_executor(self._thread, lambda: fn(*args, **kwargs))
        job.add_done_callback(lambda _: release())
        return await asyncio.shield(job)

    def close(self) -> None:
        """Accept no more jobs, without waiting for the one that is running."""
        self._thread.shutdown(wait=False, cancel_futures=True)
