"""Answers that stay open: event streams, and the watch over a caller who may leave and a server that must stop.

handler -> EventStream(produce) -> attended(): who leaves is noticed; drain and account deletion know the interrupt
        -> each block is sent as it is written; `: ping` after 15 s of silence
        -> an interrupt cancels the producer's await: it may still write its last event
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from svc.errors import ApiError, ClientGone
from svc.sending import SENT

PING = b": ping\n\n"
PING_SECONDS = 15.0
_HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-store"),
    (b"x-accel-buffering", b"no"),
]
_JSON_GRACE_SECONDS = 5.0
# Before a moment is over nobody looks whether the caller has left: that takes a task, which a quick answer is done without.
_MOMENT_SECONDS = 0.1


class Interrupt:
    """Ends one open answer from outside. `reason`: `client_disconnected`, `shutdown`, or the service's own; the first wins."""

    def __init__(self) -> None:
        self.reason: str | None = None
        self._task: asyncio.Task[object] | None = None

    def attach(self, task: "asyncio.Task[object] | None") -> None:
        self._task = task

    def __call__(self, reason: str) -> None:
        if self.reason is not None:
            return
        self.reason = reason
        if self._task is not None:
            self._task.cancel()


class Drain:
    """The open answers of the process: who they belong to, and how they end at shutdown."""

    def __init__(self) -> None:
        self.draining = False
        self._open: dict[Interrupt, tuple[str, float]] = {}

    def __len__(self) -> int:
        return len(self._open)

    def begin(self) -> None:
        """Tells every open answer to end: streams at once, JSON answers after a grace."""
        if self.draining:
            return
        self.draining = True
        loop = asyncio.get_running_loop()
        for interrupt, (_, grace_seconds) in list(self._open.items()):
            loop.call_later(grace_seconds, interrupt, "shutdown")

    def owners(self) -> set[str]:
        """The accounts that have open answers."""
        return {owner for owner, _ in self._open.values()}

    def end_all_of(self, account_id: str, reason: str) -> None:
        """Ends the open answers of one account, for instance because it was deleted."""
        for interrupt, (owner, _) in list(self._open.items()):
            if owner == account_id:
                interrupt(reason)

    def add(self, interrupt: Interrupt, owner: str, grace_seconds: float) -> None:
        """Registers an open answer of the account `owner`. Raises ApiError `shutting_down` when the drain has begun."""
        if self.draining:
            raise ApiError("shutting_down")
        self._open[interrupt] = (owner, grace_seconds)

    def remove(self, interrupt: Interrupt) -> None:
        """The answer has ended."""
        self._open.pop(interrupt, None)


class attended:  # noqa: N801 - it reads as what it does
    """Runs the block so that it is cancelled when the caller leaves, the server drains or the account `owner` goes.

    Raises ClientGone or the ApiError of the reason in the place of that cancellation. The request's body must have been read.
    """

    def __init__(
        self, receive: Receive, drain: Drain, owner: str, interrupt: Interrupt, grace_seconds: float = _JSON_GRACE_SECONDS
    ) -> None:
        self._receive = receive
        self._drain = drain
        self._owner = owner
        self._interrupt = interrupt
        self._grace_seconds = grace_seconds
        self._watcher: asyncio.Task[None] | None = None

    def __enter__(self) -> Interrupt:
        self._drain.add(self._interrupt, self._owner, self._grace_seconds)
        self._task = asyncio.current_task()
        self._interrupt.attach(self._task)
        self._timer = asyncio.get_running_loop().call_later(_MOMENT_SECONDS, self._watch)
        return self._interrupt

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._drain.remove(self._interrupt)
        self._interrupt.attach(None)
        self._timer.cancel()
        if self._watcher is not None:
            self._watcher.cancel()
        if self._interrupt.reason is None:
            return
        if self._task is not None:
            self._task.uncancel()
        if isinstance(error, asyncio.CancelledError):
            raise reason_error(self._interrupt.reason) from None

    def _watch(self) -> None:
        self._watcher = asyncio.create_task(_told_of_leaving(self._receive, self._interrupt))


async def _told_of_leaving(receive: Receive, interrupt: Interrupt) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    interrupt("client_disconnected")


def reason_error(reason: str) -> Exception:
    """What an interrupted answer becomes for its caller."""
    if reason == "client_disconnected":
        return ClientGone()
    if reason == "account_deleted":
        return ApiError("invalid_api_key")
    return ApiError("shutting_down")


Write = Callable[[bytes], Awaitable[None]]


async def _late_cancellation_passed() -> None:
    """Takes a cancellation that was taken back before it reached its task, which Python before 3.13 delivers all the same."""
    task = asyncio.current_task()
    try:
        await asyncio.sleep(0)
    except asyncio.CancelledError:
        if task is None or task.cancelling():
            raise


class EventStream(Response):
    """A `text/event-stream` answer of the blocks that `produce(write)` writes.

    `write` takes one or more whole blocks. It gives SENT, or what to await before the next: their reader has not taken these.
    An ApiError that `produce` raises before the first block becomes an ordinary error answer; after it, the block that `closing`
    makes of the error ends the stream. `last` comes behind all that. On an interrupt `produce` sees a CancelledError at its await
    and may write its last event before it returns.
    """

    def __init__(
        self,
        produce: Callable[[Write], Awaitable[None]],
        *,
        drain: Drain,
        owner: str,
        interrupt: Interrupt,
        closing: Callable[[ApiError], bytes],
        on_fault: Callable[[BaseException], None],
        headers: Mapping[str, str] | None = None,
        last: bytes = b"",
        ping_seconds: float = PING_SECONDS,
    ) -> None:
        super().__init__()
        self.raw_headers = [*_HEADERS, *((name.encode(), value.encode()) for name, value in (headers or {}).items())]
        self._produce = produce
        self._drain = drain
        self._owner = owner
        self._interrupt = interrupt
        self._closing = closing
        self._on_fault = on_fault
        self._last = last
        self._ping_seconds = ping_seconds
        self._started = False
        self._unsent = b""
        self._sent_at = time.monotonic()
        self._sending: asyncio.Future[None] | None = None  # to a reader who does not take it

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._send = send
        self._ping_in(self._ping_seconds)
        try:
            last = await self._produced(receive)
            if self._interrupt.reason is not None:
                await _late_cancellation_passed()
            while self._sending is not None:
                await asyncio.wait([self._sending])
            self._timer.cancel()
            await self._hand_over(last + self._last, more_body=False)
        except ClientGone:
            return
        finally:
            self._timer.cancel()
            if self._sending is not None:
                self._sending.cancel()

    async def _produced(self, receive: Receive) -> bytes:
        """Has everything produced; the block that tells why it ended too early, if it did."""
        try:
            with attended(receive, self._drain, self._owner, self._interrupt, 0):
                await self._produce(self._write)
        except ClientGone:
            raise
        except ApiError as error:
            if not self._started:
                raise
            return self._closing(error)
        except Exception as error:
            if not self._started:
                raise
            self._on_fault(error)
            return self._closing(ApiError("internal_error"))
        return b""

    def _write(self, blocks: bytes) -> Awaitable[None]:
        if self._sending is None:
            sending = self._hand_over(blocks, more_body=True)
            if sending is SENT:
                self._sent_at = time.monotonic()
                return SENT
            self._sending = asyncio.ensure_future(sending)
            self._sending.add_done_callback(self._taken)
        else:
            self._unsent += blocks
        return asyncio.shield(self._sending)  # whoever stops waiting has still written it

    def _taken(self, sending: asyncio.Future[None]) -> None:
        self._sending = None
        self._sent_at = time.monotonic()
        if self._unsent and not sending.cancelled() and sending.exception() is None:
            blocks, self._unsent = self._unsent, b""
            self._write(blocks)

    def _hand_over(self, body: bytes, more_body: bool) -> Awaitable[None]:
        message = {"type": "http.response.body", "body": body, "more_body": more_body}
        if not self._started:
            self._started = True
            beginning = self._send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            if beginning is not SENT:
                return self._send_after(beginning, message)
        return self._send(message)

    async def _send_after(self, beginning: Awaitable[None], message: Message) -> None:
        await beginning
        await self._send(message)

    def _ping_in(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self._ping_if_silent)

    def _ping_if_silent(self) -> None:
        silent_seconds = time.monotonic() - self._sent_at
        if self._sending is None and silent_seconds < self._ping_seconds:
            self._ping_in(self._ping_seconds - silent_seconds)
            return
        if self._sending is None:  # otherwise what waits will break the silence as well
            self._write(PING)
        self._ping_in(self._ping_seconds)
