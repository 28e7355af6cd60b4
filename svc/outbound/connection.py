"""One outgoing HTTP/1.1 connection and the exchange that runs on it: framing, deadlines and back-pressure."""

import asyncio
import math
import ssl
from collections.abc import Callable
from typing import cast

import httptools

from svc.body_parts import add_part
from svc.outbound.addresses import Origin
from svc.outbound.errors import Cut, NoAnswer, OutboundError, ProtocolError, ReadTimeout, TooLarge

MAX_HEAD_BYTES = 64 * 1024
MAX_HEADERS = 100
PAUSE_AT_BYTES = 64 * 1024

_IDLE, _HEAD, _BODY, _DONE = range(4)
_UNDER_WAY = (_HEAD, _BODY)


class Connection(asyncio.Protocol):
    """One connection and its current exchange.

    Faults are in `error`, not in the future of a waiting task, so that none stays unretrieved. One timer serves all
    deadlines. It is set again only if it fires early, or for an earlier deadline.
    """

    transport: asyncio.Transport

    # It sets all attributes: CPython gives each object a dictionary if many exist before an attribute is first set,
    # which takes a tenth of an event.
    def __init__(
        self, origin: Origin, keep: Callable[["Connection"], bool], lost: Callable[["Connection"], None]
    ) -> None:
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
        self.ends_at = math.inf  # when the exchange must end, by the event loop's clock
        self._timeout_seconds = 0.0
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self._lines: list[tuple[bytes, bytes]] = []  # of the head, and later of trailers, which are ignored
        self._silent_bytes = 0  # since the last byte of a body: heads, chunk extensions, trailers
        self.chunks: list[bytes] = []  # of the body, not taken yet
        self._buffered_bytes = 0
        self.framed = self._paused = self._reusable = False

    async def exchange(self, head: bytes, body: bytes, timeout_seconds: float) -> "Reply":
        self.phase = _HEAD
        self._lines = []
        self._timeout_seconds = timeout_seconds
        self._silent_bytes = 0
        self._reusable = False
        if len(body) < PAUSE_AT_BYTES:
            self.transport.write(head + body)
        else:
            self.transport.writelines((head, body))
        try:
            await self.news()
        except BaseException:
            self.fail(Cut("The request was cancelled."))
            raise
        if self.phase == _HEAD and self.error is not None:
            raise self.error
        return Reply(self)

    def news(self) -> "asyncio.Future[None]":
        """Return a future for the next change. A task that is cancelled while it waits must call `fail`."""
        self.arm(self._timeout_seconds)
        self._waiter = self.loop.create_future()
        return self._waiter

    def take(self) -> bytes:
        """Return the bytes of the body since the last call."""
        data = b"".join(self.chunks)
        self.chunks.clear()
        self._buffered_bytes = 0
        if self._paused and not self.transport.is_closing():
            self._paused = False
            self.transport.resume_reading()
        return data

    def release(self) -> None:
        """Return the connection to the pool, unless the server closes it or has not read the whole request."""
        self.phase, self.ends_at = _IDLE, math.inf
        clear = not self.transport.is_closing() and self.transport.get_write_buffer_size() == 0
        if not (clear and self._reusable and self._keep(self)):
            self.transport.abort()

    def fail(self, error: OutboundError) -> None:
        if self.phase in _UNDER_WAY and self.error is None:
            self.error = error
        self.transport.abort()
        self._wake()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        try:
            while data and self.phase in _UNDER_WAY:
                room = MAX_HEAD_BYTES - self._silent_bytes
                part, data = data[:room], data[room:]
                self._silent_bytes += len(part)
                self._parser.feed_data(part)
                if self._silent_bytes >= MAX_HEAD_BYTES and self.phase != _DONE:
                    raise ProtocolError("The answer's head or framing is too large.")
            if data:
                self.transport.abort()  # bytes after the answer
        except ProtocolError as error:
            self.fail(error)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            ours = error.__context__  # raised by a callback below
            if not isinstance(ours, ProtocolError):
                ours = ProtocolError("The answer is not valid HTTP/1.1.")
            self.fail(ours)

    def eof_received(self) -> None:
        clean = True
        if (tls := self.transport.get_extra_info("ssl_object")) is not None:
            try:  # without its close_notify a TLS stream may have been cut on the way
                clean = tls.read(1) == b""
            except ssl.SSLError as error:
                clean = isinstance(error, ssl.SSLZeroReturnError)
        self._ended(clean)
        self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended(False)
        if self._timer is not None:
            self._timer.cancel()
        del self._parser  # it refers to this object, which only the garbage collector would free
        self._lost(self)

    def _ended(self, clean: bool) -> None:
        if self.phase == _BODY and clean and not self.framed:
            self.phase = _DONE
            self._wake()
        elif self.phase in _UNDER_WAY:
            answered = self.phase == _BODY or self._silent_bytes > 0
            self.fail((Cut if answered else NoAnswer)("The connection ended before the answer did."))

    def _wake(self) -> None:
        if (waiter := self._waiter) is not None:
            self._waiter, self._deadline = None, self.ends_at
            if not waiter.done():
                waiter.set_result(None)

    def arm(self, seconds: float) -> None:
        """Set the deadline of a wait, or of an idle connection."""
        self._deadline = min(self.loop.time() + seconds, self.ends_at)
        if self._timer is None or self._timer_at > self._deadline:
            if self._timer is not None:
                self._timer.cancel()
            self._timer_at = self._deadline
            self._timer = self.loop.call_at(self._deadline, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if self._deadline <= self.loop.time():
            is_last = self._deadline == self.ends_at
            self.fail(ReadTimeout("The answer takes too long." if is_last else "The server did not answer in time."))
        elif self._deadline < math.inf:
            self.arm(self._deadline - self.loop.time())

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
            return
        if not 200 <= status <= 599:
            raise ProtocolError("The answer's status is not valid.")
        self.status, self.headers = status, headers
        self.framed = self._is_framed(headers)
        self._silent_bytes = 0
        self.phase = _BODY
        self._wake()

    def _is_framed(self, headers: list[tuple[bytes, bytes]]) -> bool:
        """Return whether the head has the length of the body. Raises ProtocolError for two lengths, and for
        compression.
        """
        framings = 0
        for name, value in headers:
            if name == b"content-length":
                framings += 1
            elif name == b"transfer-encoding":
                framings += 1
                if value.lower() != b"chunked" or self._parser.get_http_version() != "1.1":
                    raise ProtocolError("The answer's transfer encoding is not supported.")
            elif name == b"content-encoding" and value.lower() not in (b"", b"identity"):
                raise ProtocolError("The answer is compressed, which was not requested.")
        if framings > 1:
            raise ProtocolError("The answer's length is given twice.")
        return framings == 1

    def on_body(self, data: bytes) -> None:
        if self.phase == _BODY:
            self._silent_bytes = 0
            self.chunks.append(data)
            self._buffered_bytes += len(data)
            if self._buffered_bytes >= PAUSE_AT_BYTES and not self._paused:
                self._paused = True
                self.transport.pause_reading()
            if self._waiter is not None:
                self._wake()

    def on_message_complete(self) -> None:
        if len(self._lines) > MAX_HEADERS:
            raise ProtocolError("The answer has too many trailers.")
        if self.phase == _BODY:
            self.phase = _DONE
            self._reusable = self._parser.should_keep_alive()
            if self._waiter is not None:
                self._wake()


class Reply:
    """An answer after its head. Read its body once with `more` or `read`, then `aclose` it.

    `status` is 200 to 599, `raw_headers` has lower-case names, `framed` is whether they have the length of the body.
    Reading raises `ReadTimeout` after `timeout_seconds` without a byte, `Cut` if the connection ends first, else
    `ProtocolError`.
    """

    __slots__ = ("_connection", "_left_bytes", "framed", "raw_headers", "status")

    def __init__(self, connection: Connection) -> None:
        self.status = connection.status
        self.raw_headers = connection.headers
        self.framed = connection.framed
        self._connection: Connection | None = connection
        self._left_bytes = math.inf

    def limit(self, size_bytes: int, seconds: float = math.inf) -> None:
        """Limit the size of the body, and the time to read it. Reading raises `TooLarge` or `ReadTimeout` beyond."""
        self._left_bytes = size_bytes
        if self._connection is not None:
            self._connection.ends_at = self._connection.loop.time() + seconds

    def header(self, name: bytes) -> str:
        """Return the values of the header `name` (lower case), joined."""
        return ", ".join(value.decode("latin-1") for sent, value in self.raw_headers if sent == name)

    @property
    def ended(self) -> bool:
        """Whether the whole body has arrived, even if it has not been read."""
        return self._connection is None or self._connection.phase == _DONE

    async def more(self) -> bytes:
        """Return the next bytes of the body, as many as have arrived; none after its end."""
        while (connection := self._connection) is not None:
            ended = connection.phase == _DONE
            if ended or connection.chunks:
                data = connection.take()
                if ended:
                    self._connection = None
                    connection.release()
                self._left_bytes -= len(data)
                if self._left_bytes < 0:
                    await self.aclose()
                    raise TooLarge("The answer is too large.")
                return data
            if connection.error is not None:
                raise connection.error
            try:
                await connection.news()
            except BaseException:
                connection.fail(Cut("The request was cancelled."))
                raise
        return b""

    async def read(self, limit_bytes: int, seconds: float = math.inf) -> bytes:
        """Return the whole body, within these limits."""
        self.limit(limit_bytes, seconds)
        chunks: list[bytes] = []
        while chunk := await self.more():
            add_part(chunks, chunk)
        return b"".join(chunks)

    async def aclose(self) -> None:
        """Abort the connection unless the body is complete. May be called again."""
        if (connection := self._connection) is not None and connection.phase == _DONE:
            self._connection = None
            connection.take()
            connection.release()
        elif connection is not None:
            connection.fail(Cut("The answer was closed before its end."))

    def __del__(self) -> None:
        # A cancelled task may lose its Reply. The collector may run in any thread, and after the loop has closed.
        if self._connection is not None and not self._connection.loop.is_closed():
            self._connection.loop.call_soon_threadsafe(self._connection.transport.abort)
