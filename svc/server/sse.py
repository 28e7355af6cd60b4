"""Open answers: event streams, and answers that end when the client disconnects or the server shuts down.

handler -> EventStream(events) -> Interrupt.over(): a disconnect, the drain, deletion and suspension interrupt it
        -> each block is sent as it comes, a ping after 15 s of silence
        -> an interrupt cancels the generator's await (or is thrown in at its yield), which may still yield its last
        event
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from types import TracebackType
from typing import Self

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from svc.errors import ApiError, CallerStopped, ClientGone
from svc.server.http.head import Context

# The code of the error, by the reason of an interrupt that is the caller's, apart from a disconnect.
_CALLER_CODES = {
    "requested": "shutting_down",  # never sent: a stopped answer has an end of its own
    "conversation_deleted": "shutting_down",
    "account_deleted": "invalid_api_key",
    "account_suspended": "account_suspended",
}
PING = b": ping\n\n"
PING_SECONDS = 15.0
_HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-store"),
    (b"x-accel-buffering", b"no"),
]
_JSON_GRACE_SECONDS = 5.0
NOTHING = contextlib.nullcontext()
# After so much, the next turn of the event loop sends the rest: neither send() nor every producer waits. It also takes
# 12 % less of an event (8 a read) to read for many streams, and then write to them, than to do both for each.
_TURN_BYTES = 1000


class Drain:
    """The open answers of the process. At shutdown it interrupts them all."""

    def __init__(self) -> None:
        self.draining = False
        self.open: dict[Interrupt, None] = {}

    def __len__(self) -> int:
        return len(self.open)

    def begin(self) -> None:
        """Interrupt every open answer: streams at once, JSON answers after a grace period."""
        if self.draining:
            return
        self.draining = True
        loop = asyncio.get_running_loop()
        for answer in list(self.open):
            loop.call_later(answer.grace_seconds, answer, "shutdown")

    def owners(self) -> set[str]:
        return {answer.owner for answer in self.open}

    def end_all_of(self, account_id: str, reason: str) -> None:
        for answer in list(self.open):
            if answer.owner == account_id:
                answer(reason)


@dataclass(slots=True, eq=False)
class Interrupt:
    """Ends one open answer. `reason`: `client_disconnected`, `shutdown` or another word of the caller; the first one
    counts.

    `with interrupt.over(context, drain)` cancels the block if the client disconnects, the server drains, or the account
    of the request is deleted or suspended. Raises ClientGone or the ApiError of the reason in place of that
    cancellation.
    """

    reason: str | None = None
    owner: str = field(init=False)
    grace_seconds: float = field(init=False)
    _is_made: bool = field(init=False)
    _context: Context = field(init=False)
    _drain: Drain = field(init=False)
    _task: asyncio.Task[object] | None = None  # the one to cancel

    def __call__(self, reason: str) -> None:
        if self.reason is not None:
            return
        self.reason = reason
        if self._task is not None:
            self._task.cancel()

    @property
    def is_of_caller(self) -> bool:
        """Whether the caller has ended the answer, and so pays for the input as well."""
        return self.reason == "client_disconnected" or self.reason in _CALLER_CODES

    def error(self) -> Exception:
        """Return the exception to raise in place of the cancellation."""
        if self.reason == "client_disconnected":
            return ClientGone()
        code = _CALLER_CODES.get(self.reason or "")
        return CallerStopped(code) if code else ApiError("shutting_down")

    def over(
        self, context: Context, drain: Drain, grace_seconds: float = _JSON_GRACE_SECONDS, *, is_made: bool = False
    ) -> Self:
        """Interrupt an answer, at shutdown after `grace_seconds`. One that `is_made`, and perhaps paid, also begins
        during the drain.
        """
        self._context, self._drain, self.grace_seconds, self._is_made = context, drain, grace_seconds, is_made
        self.owner = context.account_id or ""
        return self

    def __enter__(self) -> Self:
        """Register the open answer. Raises ApiError `shutting_down` during the drain."""
        if self._drain.draining:
            if not self._is_made:
                raise ApiError("shutting_down")
            asyncio.get_running_loop().call_later(self.grace_seconds, self, "shutdown")
        self._drain.open[self] = None
        self._task = asyncio.current_task()
        self._context.interrupt = self
        if self._context.disconnected and self._context.claim is None:
            # Soon: a block that never waits would leave the cancellation to what follows it, such as the settlement.
            asyncio.get_running_loop().call_soon(self, "client_disconnected")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        del self._drain.open[self]
        task, self._task, self._context.interrupt = self._task, None, None
        if self.reason is None:
            return
        if task is not None:
            task.uncancel()
        if isinstance(error, asyncio.CancelledError):
            raise self.error() from None


class LastBlock(bytes):
    """The last block of a stream. It is sent with the end of the answer, in one write."""


@dataclass(eq=False)
class EventStream(Response):
    """A `text/event-stream` answer from a generator of bytes, each one or more blocks. The last may be a `LastBlock`.

    An exception before the first block becomes an ordinary error answer. After it the block `closing(error)` ends the
    stream, also if the first block is not sent yet: its cost may be counted. `ping` is sent after a silence. On an
    interrupt the generator gets a CancelledError at its await or yield. It may yield its last event before it returns.
    `held` is occupied until then. A stream that `is_made`, so that only its sending remains, continues during a
    shutdown.
    """

    events: AsyncGenerator[bytes, None]
    _: KW_ONLY
    drain: Drain
    interrupt: Interrupt
    closing: Callable[[ApiError], bytes]
    on_fault: Callable[[BaseException], None]
    extra_headers: Mapping[str, str] = field(default_factory=dict)
    ping: bytes = PING
    ping_seconds: float = PING_SECONDS
    held: contextlib.AbstractContextManager[object] = NOTHING
    is_made: bool = False
    _started: bool = False
    _unsent: bytes = b""
    _pinging: asyncio.Task[None] | None = None
    _sent_at: float = field(init=False)  # by the clock of the event loop

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._send, self._sent_at = send, asyncio.get_running_loop().time()
        if scope["method"] == "HEAD":
            await self.events.aclose()
            await self._flush(more_body=False)
            return
        self._ping_in(self.ping_seconds)
        last = b""
        try:
            async with contextlib.aclosing(self.events):
                grace_seconds = _JSON_GRACE_SECONDS if self.is_made else 0
                with self.held, self.interrupt.over(scope["svc"], self.drain, grace_seconds, is_made=self.is_made):
                    await self._pump()
        except Exception as error:
            if not self._started and not self._unsent:
                raise
            if isinstance(error, ClientGone):
                return
            if not isinstance(error, ApiError):
                self.on_fault(error)
                error = ApiError("internal_error")
            last = self.closing(error)
        finally:
            self._timer.cancel()
            if self._pinging is not None:
                self._pinging.cancel()
        self._unsent += last
        await self._flush(more_body=False)

    async def _pump(self) -> None:
        turn_bytes = 0
        step = self.events.__anext__()
        while True:
            try:
                block = await step
            except StopAsyncIteration:
                return
            try:
                self._unsent += block
                if self._pinging is not None:  # the client may not be reading
                    await asyncio.wait([self._pinging])
                    self._pinging = None
                if type(block) is LastBlock:
                    return
                turn_bytes += len(block)
                if turn_bytes > _TURN_BYTES:
                    turn_bytes = 0
                    await asyncio.sleep(0)
                await self._flush()
            except asyncio.CancelledError as cancelled:
                if self.interrupt.reason is None:
                    raise
                step = self.events.athrow(cancelled)
            else:
                step = self.events.__anext__()

    async def _flush(self, more_body: bool = True) -> None:
        """Send the unsent bytes. send() waits before it writes, so an interrupted call has sent nothing."""
        if not self._started:
            extra = ((name.encode(), value.encode()) for name, value in self.extra_headers.items())
            await self._send({"type": "http.response.start", "status": 200, "headers": [*_HEADERS, *extra]})
            self._started = True
        if (unsent := self._unsent) or not more_body:
            await self._send({"type": "http.response.body", "body": unsent, "more_body": more_body})
            self._unsent = self._unsent[len(unsent) :]  # a block may have been added while a ping waited
            self._sent_at = asyncio.get_running_loop().time()

    def _ping_in(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self._ping_if_silent)

    def _ping_if_silent(self) -> None:
        silent_seconds = asyncio.get_running_loop().time() - self._sent_at
        if self._unsent:  # the client is not reading; these bytes will end the silence
            silent_seconds = 0.0
        elif silent_seconds >= self.ping_seconds:
            silent_seconds = 0.0
            self._unsent += self.ping
            self._pinging = asyncio.create_task(self._flush())
        self._ping_in(self.ping_seconds - silent_seconds)
