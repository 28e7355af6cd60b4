"""Places for work of many accounts or addresses, which take turns."""

import asyncio
from asyncio import Future, TimerHandle
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial


@dataclass(eq=False, slots=True)
class _Owner:
    """Who has `held` places and waits for others. `line` is the line that it stands in."""

    name: str | bytes
    held: int = 0
    waiting: dict[Future[None], None] = field(default_factory=dict)
    line: "dict[_Owner, None] | None" = None
    timer: TimerHandle | None = None


class Turns:
    """`most` places, of which an owner may have `most_of_one`. The more it has, the more must be free for others.

    A free place goes to the owner that has the fewest; of these, to the one that has waited longest. So owners with
    slow work wait behind those without, and leave places for new ones. An owner is an account, or the network of an
    address. The account "" is the operator's. It has no limit.

    An owner that has no place for `patience_seconds` is refused: `take` raises TimeoutError for all that it waits for.
    """

    def __init__(self, most: int, most_of_one: int, patience_seconds: float | None = None) -> None:
        self._free = most
        # For each place that an owner has, so many must be free before it gets one more. Alone it gets `most_of_one`.
        self._free_for_each = most // (2 * most_of_one)
        self._patience_seconds = patience_seconds
        self._owners: dict[str | bytes, _Owner] = {}
        # The owners that may have one more place, by the number of places that they have.
        self._lines: list[dict[_Owner, None]] = [{} for _ in range(most_of_one)]

    async def take(self, owner: str | bytes) -> Callable[[], None]:
        """Wait for a place, and return the function that releases it."""
        one = self._owners.setdefault(owner, _Owner(owner))
        place: Future[None] = asyncio.get_running_loop().create_future()
        one.waiting[place] = None
        self._line_up(one)
        self._serve()
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
            if one.timer is not None:
                one.timer.cancel()
                one.timer = None
            if one.line is not None:
                del one.line[one]
            if line is not None:
                line[one] = None
            if self._patience_seconds is not None and line is self._lines[0]:
                one.timer = asyncio.get_running_loop().call_later(self._patience_seconds, self._refuse, one)
            one.line = line
        if not (one.held or one.waiting) and self._owners.get(one.name) is one:
            del self._owners[one.name]

    def _refuse(self, one: _Owner) -> None:
        for place in one.waiting:
            if not place.done():
                place.set_exception(TimeoutError("others have all places"))
        one.waiting.clear()
        self._line_up(one)
