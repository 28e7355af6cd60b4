"""Long work on the CPU, away from the event loop: one thread, and a turn for each account (or address) that wants them."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_THREADS = 1  # they would only wait for each other: Python runs one thread at a time


class Offload:
    """Runs plain functions in a thread. Whoever asks for a hundred at once has them done one after the other, so that the
    next one waits for a single one of them."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, "offload")
        self._turns: dict[str, tuple[asyncio.Lock, int]] = {}  # a lock, and how many hold it or wait for it

    async def run(self, owner: str, fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What `fn` returns or raises, when it is the turn of `owner` (an account's id or an address).

        A caller that is cancelled does not end the function, and keeps its turn until that is done.
        """
        turn, wanted = self._turns.get(owner) or (asyncio.Lock(), 0)
        self._turns[owner] = (turn, wanted + 1)
        try:
            async with turn:
                job = asyncio.get_running_loop().run_in_executor(self._threads, lambda: fn(*args, **kwargs))
                try:
                    return await asyncio.shield(job)
                except asyncio.CancelledError:
                    if not job.done():
                        await asyncio.wait([job])
                    raise
        finally:
            turn, wanted = self._turns.pop(owner)
            if wanted > 1:
                self._turns[owner] = (turn, wanted - 1)

    def close(self) -> None:
        """Takes nothing more; what runs is not waited for."""
        self._threads.shutdown(wait=False, cancel_futures=True)
