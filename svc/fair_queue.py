"""Places for work of many accounts or addresses: they take turns, or each waits only for its own."""

import asyncio
import contextlib
from asyncio import Future
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from functools import partial


@dataclass(eq=False, slots=True)
class _Owner:
    """Who has `held` places, and waits for more in `line`. The last place was released at `released_at`."""

    name: str | bytes
    held: int = 0
    waiting: dict[Future[None], None] = field(default_factory=dict)
    line: "dict[_Owner, None] | None" = None
    released_at: float = 0.0


class FairQueue:
    """`most` places, of which an owner may have `most_of_one`. The more it has, the more must be free for others.

    A free place goes to the owner that has the fewest; of these, to the one that has waited longest. So owners with
    slow work wait behind those without, and leave places for new ones. An owner is an account, or the network of an
    address. The account "" is the operator's. It has no limit.

    `take` raises TimeoutError when others have had all places for `patience_seconds`, so that its owner has none.
    """

    def __init__(self, most: int, most_of_one: int, patience_seconds: float | None = None) -> None:
        self._free = most
        # For each place that an owner has, so many must be free before it gets one more. Alone it gets `most_of_one`.
        self._free_for_each = most // (2 * most_of_one)
        self._patience_seconds = patience_seconds
        self._owners: dict[str | bytes, _Owner] = {}
        # The owners that may have one more place, by the number of places that they have.
        self._lines: list[dict[_Owner, None]] = [{} for _ in range(most_of_one)]

    async def take(self, owner: str | bytes, *, patient: bool = False) -> Callable[[], None]:
        """Wait for a place, and return the function that releases it. A `patient` call waits without end."""
        one = self._owners.setdefault(owner, _Owner(owner))
        loop = asyncio.get_running_loop()
        place: Future[None] = loop.create_future()
        one.waiting[place] = None
        self._line_up(one)
        self._serve()
        if self._patience_seconds is not None and not patient and not place.done():
            loop.call_later(self._patience_seconds, self._refuse, one, place)
        try:
            await place
        except asyncio.CancelledError:
            if place.cancelled():
                one.waiting.pop(place, None)
                self._line_up(one)
            elif place.exception() is None:
                self._release(one)
            raise
        return partial(self._release, one)

    def _release(self, one: _Owner) -> None:
        self._free += 1
        one.held -= bool(one.name)
        one.released_at = asyncio.get_running_loop().time()
        self._line_up(one)
        self._serve()

    def _serve(self) -> None:
        """Give free places to those that are next."""
        while self._free and (line := next(filter(None, self._lines), None)):
            one = next(iter(line))
            if one.held * self._free_for_each >= self._free:
                return
            place = next(iter(one.waiting))
            del one.waiting[place]
            if not place.done():  # its caller was not cancelled
                self._free -= 1
                one.held += bool(one.name)
                place.set_result(None)
            self._line_up(one, again=True)

    def _line_up(self, one: _Owner, *, again: bool = False) -> None:
        """Put an owner at the end of the line that it belongs to, if it is not in it, or `again`."""
        line = self._lines[one.held] if one.waiting and one.held < len(self._lines) else None
        if line is not one.line or again:
            if one.line is not None:
                del one.line[one]
            if line is not None:
                line[one] = None
            one.line = line
        if not (one.held or one.waiting) and self._owners.get(one.name) is one:
            del self._owners[one.name]

    def _refuse(self, one: _Owner, place: "Future[None]") -> None:
        """Refuse a call that still waits, unless the owner has, or just had, a place."""
        if place in one.waiting and not place.done():
            assert self._patience_seconds is not None
            loop = asyncio.get_running_loop()
            others_since = loop.time() if one.held else one.released_at
            if (seconds := others_since + self._patience_seconds - loop.time()) > 0:
                loop.call_later(seconds, self._refuse, one, place)
                return
            del one.waiting[place]
            place.set_exception(TimeoutError("others have all places"))
            self._line_up(one)


@dataclass(eq=False, slots=True)
class _Own:
    """The places of one account, and how many calls have or await one."""

    places: asyncio.Semaphore
    calls: int = 0


class OwnPlaces:
    """`most` places, of which an account may have `most_of_one`. No account waits for another one.

    A further call of an account waits until it has less than that. It fails at once if others have all the rest.
    """

    def __init__(self, most: int, most_of_one: int) -> None:
        self._free = most
        self._most_of_one = most_of_one
        self._accounts: dict[str, _Own] = {}

    @contextlib.asynccontextmanager
    async def taken(self, account_id: str) -> AsyncIterator[None]:
        """Have a place during the block. Raises TimeoutError if there is none."""
        own = self._accounts.setdefault(account_id, _Own(asyncio.Semaphore(self._most_of_one)))
        own.calls += 1
        try:
            async with own.places:
                if not self._free:
                    raise TimeoutError("others have all places")
                self._free -= 1
                try:
                    yield
                finally:
                    self._free += 1
        finally:
            own.calls -= 1
            if not own.calls:
                del self._accounts[account_id]
