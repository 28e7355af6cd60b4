"""One request and its answer: what its body brings, an answer that is written at once, errors in our shape, and HTTP/1.0."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any

import orjson
from starlette.types import ASGIApp, Message, Scope
from uvicorn.server import ServerState

from svc.errors import ApiError
from svc.ids import random_base62

_log = logging.getLogger("uvicorn.error")
_PHRASES = {status.value: status.phrase for status in HTTPStatus}
STATUS_LINE = {status: f"HTTP/1.1 {status} {_PHRASES.get(status, '')}\r\n".encode() for status in range(100, 600)}
_CONTROLS = bytes([*range(9), *range(10, 32), 127])


class Channel:
    """What the requests of one connection share: its transport, whether either side has to wait, who hears that one is over."""

    __slots__ = ("_writable", "loop", "on_response", "read_paused", "server_state", "transport", "write_paused")

    def __init__(self, transport: asyncio.Transport, server_state: ServerState, on_response: Callable[[], None]) -> None:
        self.loop = asyncio.get_running_loop()
        self.transport = transport
        self.server_state = server_state
        self.on_response = on_response
        self.read_paused = self.write_paused = False
        self._writable: asyncio.Event | None = None  # most connections never wait to write

    def pause_reading(self) -> None:
        if not self.read_paused:
            self.read_paused = True
            self.transport.pause_reading()

    def resume_reading(self) -> None:
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()

    def resume_writing(self) -> None:
        self.write_paused = False
        if self._writable is not None:
            self._writable.set()
            self._writable = None

    async def writable(self) -> None:
        """Waits until the client has taken enough."""
        if self._writable is None:
            self._writable = asyncio.Event()
        await self._writable.wait()


class Cycle:
    """One request and its answer. The head of an answer waits for the first of its body: most are one write."""

    # Slots, and no defaults in the class: an attribute that stands there, too, is looked up anew each time.
    __slots__ = (
        *("chunks", "disconnected", "keep_alive", "more_body", "news", "reader", "response_complete", "response_started"),
        *("unread_bytes", "waiting_for_100_continue", "_channel", "_chunked", "_head", "_http_1_1", "_left", "_method", "_task"),
    )

    def __init__(self, channel: Channel, method: str, http_1_1: bool, expects: bool, keep_alive: bool) -> None:
        self._channel = channel
        self._method = method
        self._http_1_1 = http_1_1
        self.waiting_for_100_continue = expects
        self.keep_alive = keep_alive
        self.chunks: list[bytes] = []  # of the request's body, not yet read by the application
        self.unread_bytes = 0  # their size
        self._head = b""  # the answer's
        self.more_body = True
        self.news = False  # for `receive`
        self.reader: asyncio.Future[None] | None = None  # the one that waits for it
        self.disconnected = self.response_started = self.response_complete = self._chunked = False
        self._left: int | None = None  # how much of the answer its head still promises

    def start(self, app: ASGIApp, scope: Scope) -> None:
        """Lets `app` answer the request in a task, of which the server knows while it runs."""
        # With a name: asyncio would write out a number for each, a quarter of what it takes to make one.
        self._task: Any = asyncio.Task(self._run(app, scope), loop=self._channel.loop, name="request")
        self._channel.server_state.tasks.add(self._task)

    async def _run(self, app: ASGIApp, scope: Scope) -> None:
        try:
            await app(scope, self.receive, self.send)
            if not self.response_complete and not self.disconnected:
                raise RuntimeError("the application returned before its answer was whole")
        except BaseException as error:  # also when it is cancelled because the server ends
            _log.error("Exception in ASGI application", exc_info=error)
            if self.response_started:
                self._channel.transport.close()
            else:
                await self._send_500()
        finally:
            self._channel.server_state.tasks.discard(self._task)
            self._task = None

    def wake(self) -> None:
        """Lets a `receive` that waits look at what is new: a piece of the body, its end, that the client is gone, or the answer
        whole."""
        if self.reader is not None and not self.reader.done():
            self.reader.set_result(None)

    async def receive(self) -> Message:
        channel = self._channel
        if self.waiting_for_100_continue and not channel.transport.is_closing():
            channel.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.waiting_for_100_continue = False
        if not self.disconnected and not self.response_complete:
            if channel.read_paused:
                channel.resume_reading()
            if not self.news:
                self.reader = channel.loop.create_future()
                await self.reader
            self.news = False
        if self.disconnected or self.response_complete:
            return {"type": "http.disconnect"}
        body = b"".join(self.chunks)
        self.chunks.clear()
        self.unread_bytes = 0
        return {"type": "http.request", "body": body, "more_body": self.more_body}

    async def send(self, message: Message) -> None:
        if self._channel.write_paused and not self.disconnected:
            await self._channel.writable()
        if self.disconnected:
            return
        kind = message["type"]
        if kind == "http.response.body" and self.response_started and not self.response_complete:
            self._go_on(message.get("body", b""), message.get("more_body", False))
        elif kind == "http.response.start" and not self.response_started:
            self._begin(message["status"], message.get("headers", ()))
        else:
            raise RuntimeError(f"{kind} makes no sense here")

    def _begin(self, status: int, sent: Iterable[tuple[bytes, bytes]]) -> None:
        headers = [*self._channel.server_state.default_headers, *sent]
        self.response_started = True
        self.waiting_for_100_continue = False
        block = b"\r\n".join(map(b": ".join, headers))
        if len(block) - len(block.translate(None, _CONTROLS)) != 2 * len(headers) - 2:
            raise RuntimeError("a header holds a control character")
        named = dict(headers)
        if b"connection" in named:
            self.keep_alive = self.keep_alive and named[b"connection"] != b"close"
        elif not self.keep_alive:
            block += b"\r\nconnection: close"
        if b"content-length" in named:
            self._left = int(named[b"content-length"])
        elif self._method == "HEAD" or status in (204, 304):
            self._left = 0
        elif self._http_1_1:  # else the body ends with its connection
            self._chunked = True
            block += b"\r\ntransfer-encoding: chunked"
        self._head = STATUS_LINE[status] + block + b"\r\n\r\n"

    def _go_on(self, body: bytes, more_body: bool) -> None:
        head, channel = self._head, self._channel
        if self._chunked:
            body = b"%b%x\r\n%b\r\n" % (head, len(body), body) if body else head
            if not more_body:
                body += b"0\r\n\r\n"
        else:
            if self._method == "HEAD":
                body = b""
            elif self._left is not None:
                self._left -= len(body)
                if self._left < 0 or (self._left and not more_body):
                    raise RuntimeError("the answer is not as long as its head says")
            body = head + body
        channel.transport.write(body)
        if head:
            self._head = b""
        if not more_body:
            self.response_complete = True
            if self.reader is not None:
                self.wake()
            if not self.keep_alive:
                channel.transport.close()
            channel.on_response()

    async def _send_500(self) -> None:
        headers, body = error_answer(ApiError("internal_error"))
        await self.send({"type": "http.response.start", "status": 500, "headers": [*headers, (b"connection", b"close")]})
        await self.send({"type": "http.response.body", "body": body, "more_body": False})


def error_answer(error: ApiError) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """The headers and the body of an ApiError that no application answers with."""
    body = orjson.dumps(error.body())
    headers = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        "x-request-id": "req_" + random_base62(22),
        "strict-transport-security": "max-age=31536000",
        "x-content-type-options": "nosniff",
        **error.headers,
    }
    return [(name.encode(), value.encode()) for name, value in headers.items()], body
