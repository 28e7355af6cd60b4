"""Places for work of many accounts, which take turns."""

import asyncio
from collections.abc import Callable
from weakref import WeakValueDictionary


class Turns:
    """`most` places, of which an account may have or wait for `most_of_one`. So accounts take turns.

    The account "" is the operator's. It has no limit.
    """

    def __init__(self, most: int, most_of_one: int) -> None:
        self._places = asyncio.Semaphore(most)
        self._most_of_one = most_of_one
        self._shares: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def take(self, account_id: str) -> Callable[[], None]:
        """Wait for a place, and return the function that releases it."""
        if not account_id:
            await self._places.acquire()
            return self._places.release
        share = self._shares.setdefault(account_id, asyncio.Semaphore(self._most_of_one))
        await share.acquire()
        try:
            await self._places.acquire()
        except BaseException:
            share.release()
            raise

        def release() -> None:
            self._places.release()
            share.release()

        return release
