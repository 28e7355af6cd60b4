"""Places for work of many accounts or addresses, which take turns."""

import asyncio
from collections.abc import Callable
from weakref import WeakValueDictionary


class Turns:
    """`most` places, of which an owner may have or wait for `most_of_one`. So owners take turns.

    An owner is an account, or the network of an address. The account "" is the operator's. It has no limit.
    """

    def __init__(self, most: int, most_of_one: int) -> None:
        self._places = asyncio.Semaphore(most)
        self._most_of_one = most_of_one
        self._shares: WeakValueDictionary[str | bytes, asyncio.Semaphore] = WeakValueDictionary()

    async def take(self, owner: str | bytes) -> Callable[[], None]:
        """Wait for a place, and return the function that releases it."""
        if not owner:
            await self._places.acquire()
            return self._places.release
        share = self._shares.setdefault(owner, asyncio.Semaphore(self._most_of_one))
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
