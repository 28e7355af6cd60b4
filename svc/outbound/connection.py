"""One outgoing HTTP/1.1 connection and the exchange that runs on it: framing, deadlines and back-pressure."""

import asyncio
import math
import ssl
from collections.abc import AsyncIterator, Callable
from typing import cast

import httptools

from svc.bounded import read_bounded
from svc.outbound.addresses import Origin
from svc.outbound.errors import Cut, NoAnswer, OutboundError, ProtocolError, ReadError, ReadTimeout, TooLarge

MAX_HEAD_BYTES = 64 * 1024
MAX_HEADERS = 100
MAX_INTERIM_ANSWERS = 10
PAUSE_AT_BYTES = 64 * 1024

_IDLE, _HEAD, _BODY, _DONE = range(4)
_UNDER_WAY = (_HEAD, _BODY)


class Connection(asyncio.Protocol):
    """One connection and the exchange that runs on it: framing, deadlines and back-pressure.

    A waiting task has a future without a value and faults lie in `error`, so that none is left unretrieved. One timer serves
    all deadlines: it is armed anew only when it fires early or a deadline lies before it.
    """

    # Without them every connection would have a dictionary once thirty had been made before the first exchange.
    __slots__ = (
        "__weakref__",
        "_answered",
        "_buffered_bytes",
        "_deadline",
        "_head_only",
        "_interim_count",
        "_keep",
        "_lines",
        "_lost",
        "_parser",
        "_paused",
        "_reusable",
        "_silent_bytes",
        "_timeout_seconds",
        "_timer",
        "_timer_at",
        "_waiter",
        "chunks",
        "error",
        "headers",
        "loop",
        "origin",
        "phase",
        "status",
        "transport",
        "until_close",
    )

    transport: asyncio.Transport
    headers: list[tuple[bytes, bytes]]

    def __init__(self, origin: Origin, keep: Callable[["Connection"], bool], lost: Callable[["Connection"], None]) -> None:
        self.loop = asyncio.get_running_loop()
        self.origin = origin
        self._keep = keep
        self._lost = lost
        self.error: OutboundError | None = None
        self.phase = _IDLE
        self._parser = httptools.HttpResponseParser(self)
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._deadline = math.inf

    # What the task does.

    async def exchange(self, head: bytes, body: bytes, method: str, timeout_seconds: float) -> "Reply":
        self.phase = _HEAD
        self.status = 0
        self._lines: list[tuple[bytes, bytes]] = []  # of the head that comes, and later of trailers, which nobody reads
        self._timeout_seconds = timeout_seconds
        self._head_only = method == "HEAD"
        self._interim_count = 0
        self._silent_bytes = 0  # since the last byte of a body: heads, chunk extensions, trailers
        self._answered = self.until_close = self._reusable = self._paused = False
        self.chunks: list[bytes] = []
        self._buffered_bytes = 0
        if len(body) < PAUSE_AT_BYTES:
            self.transport.write(head + body)
        else:
            self.transport.writelines((head, body))
        try:
            await self.news()
        except BaseException:
            self.cancelled()
            raise
        if self.phase == _HEAD and self.error is not None:
            raise self.error
        return Reply(self)

    def news(self) -> "asyncio.Future[None]":
        """To be awaited: something new. Who is cancelled meanwhile calls `cancelled`."""
        self.arm(self._timeout_seconds)
        self._waiter = self.loop.create_future()
        return self._waiter

    def cancelled(self) -> None:
        """Nobody waits any more: the connection is aborted at once."""
        self.fail(ReadError("The request was cancelled."))

    def take(self) -> bytes:
        """The bytes of the body that have come since the last call."""
        data = b"".join(self.chunks)
        self.chunks.clear()
        self._buffered_bytes = 0
        if self._paused and not self.transport.is_closing():
            self._paused = False
            self.transport.resume_reading()
        return data

    def release(self) -> None:
        """The body is complete: back to the pool, unless the server ends it or has not taken the whole request."""
        self.phase = _IDLE
        clear = not self.transport.is_closing() and self.transport.get_write_buffer_size() == 0
        if not (clear and self._reusable and self._keep(self)):
            self.transport.abort()

    def fail(self, error: OutboundError) -> None:
        if self.phase in _UNDER_WAY and self.error is None:
            self.error = error
        self.transport.abort()
        self._wake()

    # What the loop tells.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        try:
            while data and self.phase in _UNDER_WAY:
                room = MAX_HEAD_BYTES - self._silent_bytes
                piece, data = (data, b"") if len(data) <= room else (data[:room], data[room:])
                self._answered = True
                self._silent_bytes += len(piece)
                self._parser.feed_data(piece)
                if self._silent_bytes >= MAX_HEAD_BYTES and self.phase != _DONE:
                    raise ProtocolError("The answer's head or framing is too large.")
            if data:
                self.transport.abort()  # nobody asked for these bytes
        except ProtocolError as error:
            self.fail(error)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            ours = error.__context__  # what a callback below raised
            if not isinstance(ours, ProtocolError):
                ours = ProtocolError("The answer is not valid HTTP/1.1.")
            self.fail(ours)

    def eof_received(self) -> None:
        clean = True
        if (tls := self.transport.get_extra_info("ssl_object")) is not None:
            try:  # a TLS stream that ends without its close_notify may have been cut by anybody on the way
                clean = tls.read(1) == b""
            except ssl.SSLError as error:
                clean = isinstance(error, ssl.SSLZeroReturnError)
        self._ended(clean)
        self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended(False)
        if self._timer is not None:
            self._timer.cancel()
        del self._parser  # it holds our methods: without this every connection would wait for the collector
        self._lost(self)

    def _ended(self, clean: bool) -> None:
        if self.phase == _BODY and self.until_close and clean:
            self.phase = _DONE
            self._wake()
        elif self.phase in _UNDER_WAY:
            self.fail((Cut if self._answered else NoAnswer)("The connection ended before the answer did."))

    def _wake(self) -> None:
        if (waiter := self._waiter) is not None:
            self._waiter, self._deadline = None, math.inf
            if not waiter.done():
                waiter.set_result(None)

    def arm(self, seconds: float) -> None:
        """Lets a wait, or idleness, end in `seconds`."""
        self._deadline = self.loop.time() + seconds
        if self._timer is None or self._timer_at > self._deadline:
            if self._timer is not None:
                self._timer.cancel()
            self._timer_at = self._deadline
            self._timer = self.loop.call_at(self._deadline, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if self._deadline <= self.loop.time():
            self.fail(ReadTimeout("The server did not answer in time."))
        elif self._deadline < math.inf:
            self.arm(self._deadline - self.loop.time())

    # What httptools finds.

    def on_message_begin(self) -> None:
        if self.phase == _DONE:
            raise ProtocolError("There are bytes after the answer.")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._lines.append((name.lower(), value.strip()))

    def on_headers_complete(self) -> None:
        status, headers = self._parser.get_status_code(), self._lines
        self._lines = []
        if len(headers) > MAX_HEADERS:
            raise ProtocolError("The answer has too many headers.")
        if 100 <= status < 200:  # after a 101 the parser itself stops
            self._interim_count += 1
            if self._interim_count > MAX_INTERIM_ANSWERS:
                raise ProtocolError("There are too many interim answers.")
            return
        if not 200 <= status <= 599:
            raise ProtocolError("The answer's status makes no sense.")
        self.status, self.headers = status, headers
        self.until_close = not self._is_framed(headers)
        self._silent_bytes = 0
        self.phase = _DONE if self._head_only else _BODY
        self._wake()

    def _is_framed(self, headers: list[tuple[bytes, bytes]]) -> bool:
        """Whether the head tells the body's length; refuses what could be read in two ways, and compression."""
        named = dict(headers)
        coding = named.get(b"transfer-encoding")
        framings = (b"content-length" in named) + (coding is not None)
        if len(named) < len(headers):
            framings = sum(name in (b"content-length", b"transfer-encoding") for name, _ in headers)
        if framings > 1:
            raise ProtocolError("The answer's length is given twice.")
        if coding is not None and (coding.lower() != b"chunked" or self._parser.get_http_version() != "1.1"):
            raise ProtocolError("The answer's transfer encoding is not supported.")
        if b"content-encoding" in named and any(
            name == b"content-encoding" and value.lower() not in (b"", b"identity") for name, value in headers
        ):
            raise ProtocolError("The answer is compressed, which was not asked for.")
        return framings == 1

    def on_body(self, data: bytes) -> None:
        if self.phase == _BODY:
            self._silent_bytes = 0
            self.chunks.append(data)
            self._buffered_bytes += len(data)
            if self._buffered_bytes >= PAUSE_AT_BYTES and not self._paused:
                self._paused = True
                self.transport.pause_reading()
            self._wake()

    def on_message_complete(self) -> None:
        if len(self._lines) > MAX_HEADERS:
            raise ProtocolError("The answer has too many trailers.")
        if self.phase == _BODY:
            self.phase = _DONE
            self._reusable = self._parser.should_keep_alive()
            self._wake()


class Reply:
    """An answer whose head is there; iterate over it once for the body's bytes as they come, then `aclose` it.

    `status` is 200..599, `raw_headers` has lower-case names, `framed` is whether they tell where the body ends. Reading raises
    `ReadTimeout` after the request's `timeout_seconds` without a byte of the body, `Cut` when the connection ends first,
    `ProtocolError` otherwise.
    """

    __slots__ = ("_connection", "framed", "raw_headers", "status")

    def __init__(self, connection: Connection) -> None:
        self.status = connection.status
        self.raw_headers = connection.headers
        self.framed = not connection.until_close
        self._connection: Connection | None = connection

    def header(self, name: bytes) -> str | None:
        """The value of the header `name` (lower case), of several lines together; None where there is none."""
        values = [value.decode("latin-1") for sent, value in self.raw_headers if sent == name]
        return ", ".join(values) if values else None

    @property
    def ended(self) -> bool:
        """Whether the end of the body has come, be it read or not."""
        return self._connection is None or self._connection.phase == _DONE

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        data = await self.more()
        if not data:
            raise StopAsyncIteration
        return data

    async def more(self) -> bytes:
        """The next bytes of the body, as many as have come; none after its end."""
        while (connection := self._connection) is not None:
            if connection.phase == _DONE:
                self._connection = None
                data = connection.take()
                connection.release()
                return data
            if connection.chunks:
                return connection.take()
            if connection.error is not None:
                raise connection.error
            try:
                await connection.news()
            except BaseException:
                connection.cancelled()
                raise
        return b""

    async def read(self, limit_bytes: int) -> bytes:
        """The whole body; raises `TooLarge`, and aborts the connection, once it is over `limit_bytes`."""
        try:
            return await read_bounded(self, limit_bytes, TooLarge("The answer is too large."))
        except TooLarge:
            await self.aclose()
            raise

    async def aclose(self) -> None:
        """Aborts the connection at once unless the body is complete. May be called at any time, and again."""
        if (connection := self._connection) is not None and connection.phase == _DONE:
            self._connection = None
            connection.take()
            connection.release()
        elif connection is not None:
            connection.fail(ReadError("The answer was closed before its end."))

    def __del__(self) -> None:
        # A task cancelled at the wrong instant loses its Reply; the connection must not outlive it. The collector may run in
        # any thread, and after the loop has closed.
        if self._connection is not None and not self._connection.loop.is_closed():
            self._connection.loop.call_soon_threadsafe(self._connection.transport.abort)
