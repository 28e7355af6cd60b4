"""One request and its answer: uvicorn's cycle, with an answer that is written at once, errors in our shape, and HTTP/1.0."""

import asyncio
import logging
from collections.abc import Callable

import orjson
from uvicorn._types import ASGIReceiveEvent, ASGISendEvent, HTTPScope
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from svc.errors import ApiError
from svc.ids import random_base62

_log = logging.getLogger("uvicorn.error")
_CONTROLS = bytes([*range(9), *range(10, 32), 127])


class Cycle(RequestResponseCycle):
    """One request and its answer. The head of an answer waits for the first of its body: most are one write."""

    chunks = True  # a body without a length is sent in chunks; otherwise it ends with its connection

    def __init__(
        self,
        scope: HTTPScope,
        transport: asyncio.Transport,
        flow: FlowControl,
        default_headers: list[tuple[bytes, bytes]],
        expects: bool,
        keep_alive: bool,
        on_response: Callable[[], None],
    ) -> None:
        self.scope = scope
        self.transport = transport
        self.flow = flow
        self.default_headers = default_headers
        self.waiting_for_100_continue = expects
        self.keep_alive = keep_alive
        self.on_response = on_response
        self.body = bytearray()
        self.more_body = True  # of the request
        self.disconnected = self.response_started = self.response_complete = False
        self.logger = _log
        self._head = b""
        self._news = False  # for `receive`
        self._reader: asyncio.Future[None] | None = None  # the one that waits for it

    def tell(self) -> None:
        """Lets `receive` look at what is new: a piece of the body, its end, that the client is gone, that the answer is whole."""
        self._news = True
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    async def receive(self) -> ASGIReceiveEvent:
        if self.waiting_for_100_continue and not self.transport.is_closing():
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.waiting_for_100_continue = False
        if not self.disconnected and not self.response_complete:
            self.flow.resume_reading()
            if not self._news:
                self._reader = asyncio.get_running_loop().create_future()
                await self._reader
            self._news = False
        if self.disconnected or self.response_complete:
            return {"type": "http.disconnect"}
        body, self.body = bytes(self.body), bytearray()
        return {"type": "http.request", "body": body, "more_body": self.more_body}

    async def send(self, message: ASGISendEvent) -> None:
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        if message["type"] == "http.response.start" and not self.response_started:
            self._head = self._begin(message["status"], [*self.default_headers, *message.get("headers", ())])
        elif message["type"] == "http.response.body" and self.response_started and not self.response_complete:
            self._go_on(message.get("body", b""), message.get("more_body", False))
        else:
            raise RuntimeError(f"{message['type']} makes no sense here")

    def _begin(self, status: int, headers: list[tuple[bytes, bytes]]) -> bytes:
        self.response_started = True
        self.waiting_for_100_continue = False
        block = b"\r\n".join(map(b": ".join, headers))
        if len(block) - len(block.translate(None, _CONTROLS)) != 2 * len(headers) - 2:
            raise RuntimeError("a header holds a control character")
        named = dict(headers)
        length, closes = named.get(b"content-length"), named.get(b"connection")
        self.keep_alive = self.keep_alive and closes != b"close"
        if not self.keep_alive and closes is None:
            block += b"\r\nconnection: close"
        self.chunked_encoding = self.chunks and length is None and not (self.scope["method"] == "HEAD" or status in (204, 304))
        if self.chunked_encoding:
            block += b"\r\ntransfer-encoding: chunked"
        self.expected_content_length = int(length or 0)
        return b"%b%b\r\n\r\n" % (STATUS_LINE[status], block)

    def _go_on(self, body: bytes, more_body: bool) -> None:
        head, self._head = self._head, b""
        if self.scope["method"] == "HEAD":
            body, self.expected_content_length = b"", 0
        elif self.chunked_encoding:
            body = b"%x\r\n%s\r\n" % (len(body), body) if body else b""
            body += b"" if more_body else b"0\r\n\r\n"
        elif self.chunks:
            self.expected_content_length -= len(body)
            if self.expected_content_length < 0 or (self.expected_content_length and not more_body):
                raise RuntimeError("the answer is not as long as its head says")
        self.transport.write(head + body)
        if not more_body:
            self.response_complete = True
            self.tell()
            if not self.keep_alive:
                self.transport.close()
            self.on_response()

    async def send_500_response(self) -> None:
        headers, body = error_answer(ApiError("internal_error"))
        await self.send({"type": "http.response.start", "status": 500, "headers": [*headers, (b"connection", b"close")]})
        await self.send({"type": "http.response.body", "body": body, "more_body": False})


class UnchunkedCycle(Cycle):
    """An answer to HTTP/1.0, which knows no chunks: one without a length ends with its connection."""

    chunks = False


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
