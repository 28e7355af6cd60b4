"""The answer to a request with an `Idempotency-Key`, while it is generated: for repeats of it, and to be kept.

claim_in() with the hold -> add(), for the repeats that follow -> keep() with what is sent after the settlement
  -> settle_in(): kept or released in the transaction of the settlement -> settled() -> the end for those that follow
A failure before that is `fail`: the repeats get its error, and the key is free again.
"""

import asyncio
import sqlite3
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate, takewhile
from typing import NamedTuple

from svc.content import idempotency
from svc.content.idempotency import CHUNK_BYTES, MOST_BYTES, Place
from svc.db import Database
from svc.errors import ApiError
from svc.ids import new_id

_MOST_CLAIMS = 40  # of an account, in progress
BUDGET_BYTES = 128 * 1024 * 1024
SHARE_BYTES = 32 * 1024 * 1024  # of one account
SMALL_BYTES = 256 * 1024  # an answer of this size always fits
_AT_ONCE = 4  # chunks in a transaction
_PIECE_BYTES = 64 * 1024  # of an answer: one that follows and does not read holds a few of them
_PIECES_AT_ONCE = 1000
_MANY = "This account has 40 requests with an Idempotency-Key in progress. Wait for one of them."

Headers = Callable[[], Mapping[str, str]]  # also in the transaction of the settlement, after the debit


class Stream(NamedTuple):
    """A stream whose parts are sent before its end: its headers, and what is sent after a silence.

    `fault(error, events)` returns the last events for a repeat that ends early, after so many of them.
    """

    headers: Mapping[str, str]
    ping: bytes
    fault: Callable[[ApiError, int], bytes]


class Ending(NamedTuple):
    """How an answer ends: status, headers, and the part that is sent after the settlement."""

    status: int
    headers: Headers
    last: Callable[[], bytes]


def _split(body: bytes, size: int) -> list[bytes]:
    return [body[start : start + size] for start in range(0, len(body), size)]


def _chunks(parts: list[bytes]) -> list[bytes]:
    return _split(b"".join(parts), CHUNK_BYTES)


@dataclass
class Claims:
    """The claims in progress, by their places, and the memory that their answers take."""

    running: dict[Place, "Claim"] = field(default_factory=dict)
    taken_bytes: int = 0
    _open: Counter[str] = field(default_factory=Counter)
    _held_bytes: Counter[str] = field(default_factory=Counter)

    def begin(self, place: Place, db: Database, clock: Callable[[], float]) -> "Claim":
        """Claim a place in this process. Raises ApiError `rate_limit_exceeded`."""
        if self._open[place.account_id] >= _MOST_CLAIMS:
            raise ApiError("rate_limit_exceeded", _MANY, retry_after_seconds=5)
        self._open[place.account_id] += 1
        claim = self.running[place] = Claim(self, place, db, clock)
        return claim

    def end(self, place: Place) -> None:
        del self.running[place]
        _subtract(self._open, place.account_id, 1)

    def has_room(self, account_id: str, size: int) -> bool:
        """Return whether there is memory for `size` more bytes of answers of the account."""
        share_bytes = self._held_bytes.get(account_id, 0) + size
        return self.taken_bytes + size <= BUDGET_BYTES and share_bytes <= SHARE_BYTES

    def take(self, account_id: str, size: int) -> None:
        self.taken_bytes += size
        self._held_bytes[account_id] += size

    def give_back(self, account_id: str, size: int) -> None:
        self.taken_bytes -= size
        _subtract(self._held_bytes, account_id, size)


def _subtract(counter: Counter[str], account_id: str, amount: int) -> None:
    counter[account_id] -= amount
    if not counter[account_id]:
        del counter[account_id]


class Claim:
    """The place of one request, and its answer so far. `claims` has it until it is over.

    `stream` is set if parts of the answer are sent before its end. An answer that is `too_large` is not kept.
    `answer` is how it ends, once that is known, and None if it is released. `run_id` is the agent run that it started.
    """

    def __init__(self, claims: Claims, place: Place, db: Database, clock: Callable[[], float]) -> None:
        self.id = new_id("idem")
        self.body_sha256 = b""  # known when the whole body has arrived
        self.stream: Stream | None = None
        self.answer: Ending | None = None
        self.run_id: str | None = None
        self.fault: ApiError | None = None
        self._refusal: ApiError | None = None  # the refusal that is kept as the answer
        self.over = False
        self._claims, self._place, self._db, self._clock = claims, place, db, clock
        self._parts: list[bytes] = []
        self._size = 0
        self.events = 0  # of a stream
        self.too_large = False
        self._stored_chunks = 0
        self._followers = 0
        self._news: asyncio.Future[None] | None = None

    # --- what the request does

    def body_arrived(self, body_sha256: bytes) -> None:
        self.body_sha256 = body_sha256
        self._wake()

    def add(self, part: bytes) -> None:
        """Add a part of the answer."""
        if self.too_large:
            return
        account_id, size = self._place.account_id, self._size + len(part)
        if size <= SMALL_BYTES or (size <= MOST_BYTES and self._claims.has_room(account_id, len(part))):
            self._claims.take(account_id, len(part))
            self._parts += _split(part, _PIECE_BYTES)
            self._size = size
            self.events += part.count(b"\n\n")
        else:
            self._drop_parts()
            self.too_large = True
        if self.stream:
            self._wake()

    @property
    def begun(self) -> bool:
        """Whether a part of the answer may have been sent."""
        return self.stream is not None and (self.too_large or bool(self._parts))

    @property
    def size(self) -> int:
        """The bytes of an answer that is over."""
        return sum(map(len, self._parts))

    async def keep(self, status: int, headers: Headers, last: bytes = b"") -> None:
        """Note how the answer ends, and store the beginning of a long one. Raises ApiError `storage_unavailable`.

        If it is cancelled while it stores, the answer is settled, but not kept.
        """
        size = self._size + len(last)
        ending = Ending(status, headers, lambda: last)
        if size > MOST_BYTES:
            self.too_large = True
        elif not self.too_large and size > idempotency.RESERVED_BYTES:
            try:
                await self._store_most(size)
            except ApiError as error:
                if error.code != "quota_exceeded":
                    raise
                self.too_large = True
            except asyncio.CancelledError:
                self.too_large, self.answer = True, ending
                raise
        self.answer = ending

    def keep_stopped(self, headers: Headers, last: Callable[[], bytes]) -> None:
        """Note how the answer of a session ends that a person stops. `last` is known in the settlement, and short."""
        self.answer = Ending(200, headers, last)

    async def _store_most(self, size: int) -> None:
        account_id, write = self._place.account_id, self._db.write_as
        await write("unsynced", idempotency.reserve_more, account_id, self.id, size)
        most = _chunks(self._parts)[:-_AT_ONCE]
        for first in range(0, len(most), _AT_ONCE):
            some = most[first : first + _AT_ONCE]
            await write("alone", idempotency.add_chunks, account_id, self.id, first, some)
            self._stored_chunks = first + len(some)

    async def keep_refusal(self, error: ApiError, headers: Mapping[str, str], body: bytes) -> None:
        """Note a refusal of the model server, which is kept like an answer. No part has been sent."""
        self.stream, self._refusal = None, error
        self.add(body)
        await self.keep(error.status, lambda: headers)

    @property
    def last(self) -> bytes | None:
        """The end of a stream that is kept, or None."""
        return self.answer.last() if self.answer is not None and self.stream is not None else None

    def release(self) -> None:
        """Let a repeat run again."""
        self.answer = None

    def claim_in(self, tx: sqlite3.Connection) -> None:
        """Claim the place in the transaction of the hold. Raises ApiError `quota_exceeded`."""
        idempotency.claim(tx, self._place, self.id, self.body_sha256, self._clock())

    def settle_in(self, tx: sqlite3.Connection) -> None:
        """Keep or release the answer in the transaction of the settlement. It may be repeated."""
        account_id, answer = self._place.account_id, self.answer
        if answer is None:
            idempotency.release(tx, account_id, self.id)
            return
        chunks = [] if self.too_large else _chunks([*self._parts, answer.last()])
        size = sum(map(len, chunks))
        idempotency.keep(
            tx,
            account_id,
            self.id,
            status=answer.status,
            headers=answer.headers(),
            size=None if self.too_large or size > MOST_BYTES else size,
            rest=(self._stored_chunks, chunks[self._stored_chunks :]),
        )

    async def settled_by(self, write: Callable[[], Awaitable[object]]) -> None:
        """Settle with `write`, and end a kept answer, even if the task of the request is cancelled."""
        await write()
        self.settled()

    def settled(self) -> None:
        """End a kept answer for those that follow, after its settlement."""
        if self.answer is not None and not self.over:
            self._parts += _split(self.answer.last(), _PIECE_BYTES)
            self._end()

    def start_run_in(self, tx: sqlite3.Connection, run_id: str) -> None:
        """Claim the place for an agent run, in the transaction that stores it. Raises ApiError `quota_exceeded`."""
        self.claim_in(tx)
        idempotency.start_run(tx, self._place.account_id, self.id, run_id)

    def started_run(self, run_id: str) -> None:
        self.run_id = run_id
        self._end()

    def fail(self, error: ApiError) -> None:
        """End the request with an error, for those that follow as well. After its end this does nothing."""
        if not self.over:
            self.fault = error
            self._end()

    def _end(self) -> None:
        self.over = True
        self._claims.end(self._place)
        if not self._followers:
            self._drop_parts()
        self._wake()

    def _drop_parts(self) -> None:
        self._claims.give_back(self._place.account_id, self._size)
        self._parts, self._size = [], 0

    def _wake(self) -> None:
        if self._news is not None:
            self._news.set_result(None)
            self._news = None

    # --- those that follow

    async def next_news(self) -> None:
        self._news = self._news or asyncio.get_running_loop().create_future()
        await asyncio.shield(self._news)  # others wait for it, too

    def __enter__(self) -> None:
        """Keep the answer in memory during the block, which follows it."""
        self._followers += 1

    def __exit__(self, *_: object) -> None:
        self._followers -= 1
        if self.over and not self._followers:
            self._drop_parts()

    async def whole(self) -> AsyncGenerator[bytes, None]:
        """Yield an answer that is over."""
        for part in self._parts:
            yield part

    def _next_pieces(self, place: int) -> list[bytes]:
        """Return the pieces from number `place` on, as many as give at least _PIECE_BYTES."""
        pieces = self._parts[place : place + _PIECES_AT_ONCE]
        sizes = accumulate(map(len, pieces))
        return pieces[: sum(1 for _ in takewhile(lambda size: size < _PIECE_BYTES, sizes)) + 1]

    async def follow(self, is_ending: Callable[[], bool]) -> AsyncGenerator[bytes, None]:
        """Yield a stream so far, then what is added to it. Raises the ApiError of a request that fails or is refused,
        and `answer_not_kept` for an answer that is too large.

        A shutdown ends the request as well, so a cancellation while `is_ending` does not end this.
        """
        place = 0
        while True:
            try:
                if self._refusal is not None:
                    raise self._refusal
                if self.too_large:
                    raise ApiError("answer_not_kept")
                if place < len(self._parts):
                    some = self._next_pieces(place)
                    place += len(some)
                    yield b"".join(some)
                elif self.fault is not None:
                    raise self.fault
                elif self.over:
                    return
                else:
                    await self.next_news()
            except asyncio.CancelledError:
                if not is_ending():
                    raise
