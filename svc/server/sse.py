"""Answers that stay open: event streams, and the watch over a caller who may leave and a server that must stop.

handler -> EventStream(events) -> attended(): who leaves is noticed; drain and account deletion know the interrupt
        -> each block is sent as it comes; `: ping` after 15 s of silence
        -> an interrupt cancels the generator's await (or is thrown in at its yield): it may still yield its last event
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from types import TracebackType

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from svc.errors import ApiError, ClientGone

PING = b": ping\n\n"
PING_SECONDS = 15.0
_HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-store"),
    (b"x-accel-buffering", b"no"),
]
# A producer that never waits would keep the event loop to itself: to send does not yield.
_SLICE_SECONDS = 0.005
_JSON_GRACE_SECONDS = 5.0
# Before a moment is over nobody looks whether the caller has left: that takes a task, which a quick answer is done without.
_MOMENT_SECONDS = 0.1
_LOOK_SECONDS = 0.025  # one timer looks for all answers whether it is over, as one for each would cost more than the look


class Interrupt:
    """Ends one open answer from outside. `reason`: `client_disconnected`, `shutdown`, or the service's own; the first wins."""

    __slots__ = ("reason", "task")

    def __init__(self) -> None:
        self.reason: str | None = None
        self.task: asyncio.Task[object] | None = None  # the one that it cancels

    def __call__(self, reason: str) -> None:
        if self.reason is not None:
            return
        self.reason = reason
        if self.task is not None:
            self.task.cancel()

    def error(self) -> Exception:
        """Return the exception to raise in place of the cancellation."""
        if self.reason == "client_disconnected":
            return ClientGone()
        if self.reason == "account_deleted":
            return ApiError("invalid_api_key")
        return ApiError("shutting_down")


class Drain:
    """The open answers of the process: who they belong to, and how they end at shutdown."""

    def __init__(self) -> None:
        self.draining = False
        self._open: dict[attended, None] = {}
        self._unwatched: dict[attended, float] = {}  # and when their moment is over; the oldest first
        self._looking = False
        self._turn = 0
        self._counting = False

    def __len__(self) -> int:
        return len(self._open)

    def begin(self) -> None:
        """Tells every open answer to end: streams at once, JSON answers after a grace."""
        if self.draining:
            return
        self.draining = True
        loop = asyncio.get_running_loop()
        for answer in list(self._open):
            loop.call_later(answer.grace_seconds, answer.interrupt, "shutdown")

    def owners(self) -> set[str]:
        """The accounts that have open answers."""
        return {answer.owner for answer in self._open}

    def end_all_of(self, account_id: str, reason: str) -> None:
        """Ends the open answers of one account, for instance because it was deleted."""
        for answer in list(self._open):
            if answer.owner == account_id:
                answer.interrupt(reason)

    def add(self, answer: "attended") -> None:
        """Registers an open answer. Raises ApiError `shutting_down` when the drain has begun."""
        if self.draining:
            raise ApiError("shutting_down")
        self._open[answer] = None
        self._unwatched[answer] = time.monotonic() + _MOMENT_SECONDS
        if not self._looking:
            self._looking = True
            asyncio.get_running_loop().call_later(_MOMENT_SECONDS, self._look)

    def remove(self, answer: "attended") -> None:
        """The answer has ended."""
        del self._open[answer]
        self._unwatched.pop(answer, None)

    def turn(self) -> int:
        """A number that is another one as soon as the event loop has gone on to its next turn."""
        if not self._counting:
            self._counting = True
            asyncio.get_running_loop().call_soon(self._count_turn)
        return self._turn

    def _count_turn(self) -> None:
        self._turn += 1
        self._counting = False

    def _look(self) -> None:
        now = time.monotonic()
        for answer, moment_ends in list(self._unwatched.items()):
            if moment_ends > now:
                break
            del self._unwatched[answer]
            answer.watch()
        self._looking = bool(self._unwatched)
        if self._looking:
            asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._look)


class attended:  # noqa: N801 - it reads as what it does
    """Runs the block so that it is cancelled when the caller leaves, the server drains or the account `owner` goes.

    Raises ClientGone or the ApiError of the reason in the place of that cancellation. The request's body must have been read.
    """

    __slots__ = ("_drain", "_receive", "_task", "_watcher", "grace_seconds", "interrupt", "owner")

    def __init__(
        self, receive: Receive, drain: Drain, owner: str, interrupt: Interrupt, grace_seconds: float = _JSON_GRACE_SECONDS
    ) -> None:
        self.owner = owner
        self.interrupt = interrupt
        self.grace_seconds = grace_seconds
        self._receive = receive
        self._drain = drain
        self._watcher: asyncio.Task[None] | None = None

    def __enter__(self) -> Interrupt:
        self._drain.add(self)
        self._task = self.interrupt.task = asyncio.current_task()
        return self.interrupt

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._drain.remove(self)
        self.interrupt.task = None
        if self._watcher is not None:
            self._watcher.cancel()
        if self.interrupt.reason is None:
            return
        if self._task is not None:
            self._task.uncancel()
        if isinstance(error, asyncio.CancelledError):
            raise self.interrupt.error() from None

    def watch(self) -> None:
        """Looks from now on whether the caller leaves."""
        self._watcher = asyncio.create_task(_told_of_leaving(self._receive, self.interrupt))


async def _told_of_leaving(receive: Receive, interrupt: Interrupt) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    interrupt("client_disconnected")


class LastBlock(bytes):
    """What a generator yields when there is nothing more to come: it goes out with the end of the answer, in one write."""


class EventStream(Response):
    """A `text/event-stream` answer out of a generator of whole blocks, the last of which may be a `LastBlock`.

    `events` yields bytes, each one or more blocks. An ApiError that it raises before the first block becomes an ordinary
    error answer; after it, the block that `closing` makes of the error ends the stream. `ping` is sent after a silence. On an
    interrupt the generator sees a CancelledError at its await or yield and may yield its last event before it returns.
    """

    def __init__(
        self,
        events: AsyncGenerator[bytes, None],
        *,
        drain: Drain,
        owner: str,
        interrupt: Interrupt,
        closing: Callable[[ApiError], bytes],
        on_fault: Callable[[BaseException], None],
        headers: Mapping[str, str] | None = None,
        ping: bytes = PING,
        ping_seconds: float = PING_SECONDS,
    ) -> None:
        self.raw_headers = [*_HEADERS, *((name.encode(), value.encode()) for name, value in (headers or {}).items())]
        self.status_code = 200
        self._started = False
        self._turn = -1
        self._unsent = b""
        self._pinging: asyncio.Task[None] | None = None
        self._events = events
        self._drain = drain
        self._owner = owner
        self._interrupt = interrupt
        self._closing = closing
        self._on_fault = on_fault
        self._ping = ping
        self._ping_seconds = ping_seconds
        self._sent_at = time.monotonic()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._send = send
        self._ping_in(self._ping_seconds)
        last = b""
        try:
            async with contextlib.aclosing(self._events):
                with attended(receive, self._drain, self._owner, self._interrupt, 0):
                    await self._pump()
        except ClientGone:
            return
        except ApiError as error:
            if not self._started:
                raise
            last = self._closing(error)
        except Exception as error:
            if not self._started:
                raise
            self._on_fault(error)
            last = self._closing(ApiError("internal_error"))
        finally:
            self._timer.cancel()
            if self._pinging is not None:
                self._pinging.cancel()
        self._unsent += last
        await self._flush(more_body=False)

    async def _pump(self) -> None:
        self._slice_end = self._sent_at + _SLICE_SECONDS
        step = self._events.__anext__()
        while True:
            try:
                block = await step
            except StopAsyncIteration:
                return
            try:
                self._unsent += block
                if self._pinging is not None:  # to a reader who takes nothing
                    await asyncio.wait([self._pinging])
                if type(block) is LastBlock:
                    return
                await self._flush()
                if self._sent_at > self._slice_end:
                    turn = self._drain.turn()
                    if turn == self._turn:  # a producer that waits has given the others theirs
                        await asyncio.sleep(0)
                        turn = self._drain.turn()
                    self._turn, self._slice_end = turn, self._sent_at + _SLICE_SECONDS
            except asyncio.CancelledError as cancelled:
                if self._interrupt.reason is None:
                    raise
                step = self._events.athrow(cancelled)
            else:
                step = self._events.__anext__()

    async def _flush(self, more_body: bool = True) -> None:
        """Sends what has not been sent. The server's send waits first and writes then: one that was interrupted sent nothing."""
        if not self._started:
            await self._send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            self._started = True
        if (unsent := self._unsent) or not more_body:
            await self._send({"type": "http.response.body", "body": unsent, "more_body": more_body})
            self._unsent = self._unsent[len(unsent) :]  # a block may have come behind a ping that waited
            self._sent_at = time.monotonic()

    def _ping_in(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self._ping_if_silent)

    def _ping_if_silent(self) -> None:
        silent_seconds = time.monotonic() - self._sent_at
        if self._unsent:  # to a reader who takes nothing now: what waits will break the silence as well
            silent_seconds = 0.0
        elif silent_seconds >= self._ping_seconds:
            silent_seconds = 0.0
            self._unsent += self._ping
            self._pinging = asyncio.create_task(self._flush())
            self._pinging.add_done_callback(self._pinged)
        self._ping_in(self._ping_seconds - silent_seconds)

    def _pinged(self, pinging: asyncio.Task[None]) -> None:
        self._pinging = None
