"""HTTP/1.1 on one connection. uvicorn's protocol has no deadlines, and does not refuse bad requests in our shape.

head (10 s, 64 KiB, 100 lines) -> body (1 KiB/s, and 60 s in all with 1 s more for each 128 KiB)
     -> answer (the client must read it) -> idle (60 s) -> next head
A request that is not valid HTTP gets an error after the answers to earlier requests. Then the connection is closed.
"""

import asyncio
import re
import socket
import struct
import sys
from collections.abc import Callable
from typing import Any

import httptools
from starlette.types import ASGIApp
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.utils import get_local_addr, get_remote_addr, is_ssl
from uvicorn.server import ServerState

from svc.errors import ApiError
from svc.server.http.cycle import Channel, Cycle, last_answer
from svc.server.http.head import HEAD_BYTES, HEAD_LINES, METHODS, Context, check_head, expects_100, joined, target_of

_PIPELINED_REQUESTS = 64
_WRITE_BUFFER_BYTES = 64 * 1024
_ASGI: Any = {"version": "3.0", "spec_version": "2.3"}
_REQUEST_LINE = re.compile(rb"[A-Za-z-]+ /")


class Watch:
    """Has every connection check its deadlines twice a second.

    Its clock advances by one interval at each check, so that clients do not time out because this process was stopped.
    """

    interval_seconds = 0.5

    def __init__(self, connections: "set[Protocol]") -> None:
        self.now = 0.0
        self._connections = connections
        self._timer: asyncio.TimerHandle | None = None

    def check(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self.interval_seconds, self.check)
        self.now += self.interval_seconds
        for connection in list(self._connections):
            connection.check_deadlines()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


class Protocol(asyncio.Protocol):
    """One client's connection. Without slots, CPython would give each one a dictionary of 3 KB."""

    __slots__ = (
        *("_addresses", "_app", "_body_bytes", "_body_ends", "_channel", "_closing", "_cycle"),
        *("_deadline", "_deaf", "_headers", "_in_head", "_parser", "_patience", "_refusal", "_running"),
        *("_server_state", "_socket", "_taken", "_taken_at", "_unparsed_bytes", "_unsent", "_url", "_waiting"),
        *("_watch", "on_lost", "refused", "transport"),
    )

    head_seconds = 10.0
    idle_seconds = 60.0
    body_grace_seconds = 15.0  # how long a body may be late; it must come at `body_bytes_per_second`
    body_bytes_per_second = 1024
    body_seconds = 60.0  # for the whole body, and a second more for each `body_bytes_per_extra_second`
    body_bytes_per_extra_second = 128 * 1024
    stall_seconds = 25.0  # how long a client may read nothing: its connection is aborted within 30
    stall_seconds_in_drain = 3.0
    linger_seconds = 1.0  # how long the end of TLS may take
    unread_linger_seconds = 5.0  # how long the rest of a body may take that the handler does not read

    transport: asyncio.Transport

    def __init__(self, app: ASGIApp, server_state: ServerState, watch: Watch) -> None:
        self._app = app
        self._server_state = server_state
        self._watch = watch
        self.refused: ApiError | None = None  # sent at once instead of reading requests
        self.on_lost: Callable[[], None] | None = None
        self._parser = httptools.HttpRequestParser(self)
        # Otherwise llhttp fails on a request after one with `Connection: close`. Such a request is discarded here.
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []  # of the head that is being read
        self._cycle: Cycle | None = None  # of the last request that was parsed: an earlier one may still be answered
        self._running: Cycle | None = None
        self._waiting: list[Cycle] = []
        self._refusal: ApiError | None = None
        self._deadline = 0.0  # for the client's next step: its head, body, next request, or end of the connection
        self._in_head = False
        self._unparsed_bytes = 0  # since the last complete head or part of a body
        self._body_bytes = 0  # since the last check
        self._body_ends = 0.0
        self._deaf = False  # further input is discarded
        self._closing = False
        self._patience = self.stall_seconds
        self._unsent = False  # an answer was begun that the client has not read completely
        self._taken = -1
        self._taken_at = 0.0

    # --- the connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._server_state.connections.add(self)  # type: ignore[arg-type]  # not one of uvicorn's own
        self.transport = transport
        transport.set_write_buffer_limits(_WRITE_BUFFER_BYTES)
        self._channel = Channel(transport, self._server_state, self._on_response, self._close)
        self._socket: socket.socket = transport.get_extra_info("socket")
        self._addresses = (
            get_local_addr(transport),
            get_remote_addr(transport),
            "https" if is_ssl(transport) else "http",
        )
        self._deadline = self._watch.now + self.head_seconds
        if self.refused is not None:
            self._close(self.refused)

    def pause_writing(self) -> None:
        self._channel.pause_writing()

    def resume_writing(self) -> None:
        self._channel.resume_writing()

    @property
    def idle(self) -> bool:
        """Whether the client has read the last answer and has not begun another request."""
        is_sending = self._unsent and self.outgoing()[0]  # the last check may be half a second ago
        return not (self._in_head or self._answering or is_sending or self.transport.is_closing())

    def lost(self) -> None:
        """Call `on_lost` once: the connection has ended, or was never made."""
        on_lost, self.on_lost = self.on_lost, None
        if on_lost is not None:
            on_lost()

    def eof_received(self) -> None:
        self._disconnect()

    def connection_lost(self, exc: Exception | None) -> None:
        self._server_state.connections.discard(self)
        self.lost()
        self._disconnect()
        # They refer to this object: only the garbage collector would free it otherwise.
        del self._parser, self._channel.on_response, self._channel.close

    def _disconnect(self) -> None:
        self._deaf = True
        self._waiting.clear()
        for cycle in (self._running, self._cycle):  # the request that is being answered may not be the last one
            if cycle is not None and not cycle.response_complete:
                cycle.disconnect()
        self._channel.resume_writing()

    def shutdown(self) -> None:
        """Close the connection when the current answer has ended."""
        self._patience = min(self.stall_seconds, self.stall_seconds_in_drain)
        if self._running is not None and self._answering:
            self._running.keep_alive = False
        else:
            self.transport.close()

    @property
    def _answering(self) -> bool:
        return self._running is not None and not self._running.response_complete

    # --- input

    def data_received(self, data: bytes) -> None:
        if self._deaf:
            return
        self._unparsed_bytes += len(data)
        rest = b""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            # No request is upgraded, so the rest of the data is the next request.
            rest = data[upgrade.args[0] :]
        except httptools.HttpParserError as error:
            self._refuse(_as_refusal(error, data))
            return
        if rest:  # not in the handler above: the upgrade would become the context of the next exception
            self.data_received(rest)
        elif self._unparsed_bytes > HEAD_BYTES:
            self._refuse(ApiError("headers_too_large"))

    def on_message_begin(self) -> None:
        if len(self._waiting) >= _PIPELINED_REQUESTS:
            raise ApiError("invalid_request", "Too many requests were sent before their answers were read.")
        self._url, self._headers = b"", []
        self._in_head = True
        if self._running is not None:  # the first head's deadline began with the connection
            self._deadline = self._watch.now + self.head_seconds

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name.lower(), value.rstrip()))  # RFC 9112, 5.1; the parser strips only what is before it

    def on_headers_complete(self) -> None:
        headers, parser, now = self._headers, self._parser, self._watch.now
        named, version, upgrades = dict(headers), parser.get_http_version(), parser.should_upgrade()
        http_1_1 = version == "1.1"
        small = len(named) == len(headers) <= HEAD_LINES and self._unparsed_bytes <= HEAD_BYTES
        if not (http_1_1 and small and b"host" in named) or b"transfer-encoding" in named or upgrades:
            check_head(version, self._url, headers, received_bytes=self._unparsed_bytes, upgrades=upgrades)
            named = joined(headers)
        method, path, query, host = target_of(parser.get_method(), self._url)
        if host is not None:  # it replaces the Host header
            named = {**named, b"host": host}
            headers = [(b"host", host), *(line for line in headers if line[0] != b"host")]
        server, client, scheme = self._addresses
        scope = {
            "type": "http",
            "asgi": _ASGI,
            "http_version": version,
            "method": method,
            "path": path,
            "query_string": query,
            "server": server,
            "client": client,
            "scheme": scheme,
            "headers": headers,
            "svc": Context(named),
        }
        # Trailers also come to on_header and must not join the checked headers. An idle connection keeps no secrets.
        self._headers, self._url = [], b""
        self._in_head = False
        self._unparsed_bytes = 0
        self._deadline, self._body_ends = now + self.body_grace_seconds, now + self.body_seconds
        expects = b"expect" in named and http_1_1 and expects_100(headers)
        # A client that expects 100 may omit its body after a refusal: the next request would be ambiguous.
        keep_alive = http_1_1 and not expects and parser.should_keep_alive()
        cycle = self._cycle = Cycle(self._channel, scope, expects, keep_alive)
        if self._running is None or self._running.response_complete:
            self._running = cycle
            cycle.start(self._app)
        else:
            self._waiting.append(cycle)
            if len(self._waiting) > 1:  # one may wait: while reading is paused, no disconnect is noticed
                self._channel.pause_reading()

    def on_body(self, body: bytes) -> None:
        self._unparsed_bytes = 0
        cycle = self._cycle
        if cycle is None or cycle.response_complete:
            return
        self._body_bytes += len(body)
        cycle.body += body
        if len(cycle.body) > HIGH_WATER_LIMIT:
            self._channel.pause_reading()
        cycle.wake()

    def on_message_complete(self) -> None:
        self._unparsed_bytes = 0
        cycle = self._cycle
        if cycle is None:
            return
        cycle.more_body = False
        cycle.wake()
        if cycle.response_complete:
            self._deadline = self._watch.now + self.idle_seconds

    def _on_response(self) -> None:
        self._expect_reader()
        if self.transport.is_closing():
            return
        if self._channel.read_paused:
            self._channel.resume_reading()
        if self._waiting:
            self._running = self._waiting.pop(0)
            self._running.start(self._app)
        elif self._refusal is not None:
            self._close(self._refusal)
        elif self._in_head:
            self._deadline = self._watch.now + self.head_seconds
        else:
            more_body = self._cycle is not None and self._cycle.more_body
            self._deadline = self._watch.now + (self.unread_linger_seconds if more_body else self.idle_seconds)

    # --- refusals

    def _refuse(self, error: ApiError) -> None:
        self._deaf = True
        cycle = self._cycle
        body_is_bad = not self._in_head and cycle is not None and cycle.more_body
        if body_is_bad and cycle is not self._running:
            self._waiting.pop()
        if not self._answering:
            self._close(error)
        elif cycle is None or not body_is_bad or cycle is not self._running:
            self._refusal = error
        else:
            begun = cycle.response_started
            self._disconnect()
            self._close(None if begun else error)

    def _close(self, error: ApiError | None, *, head_only: bool = False) -> None:
        self._deaf = True
        if error is not None:
            self.transport.write(last_answer(error, head_only=head_only))
        self._expect_reader()
        self.transport.close()

    # --- deadlines

    def check_deadlines(self) -> None:
        now = self._watch.now
        if self._running is not None and self._answering and self._running.response_started:
            self._expect_reader()
        if self._unsent:
            self._check_reader(now)
        if self.transport.is_closing():
            self._check_closing(now)
        elif self._answering:
            cycle = self._cycle
            if cycle is not None and cycle is self._running and cycle.more_body:
                self._check_body(cycle, now)
        elif now > self._deadline:
            self._close(ApiError("request_timeout") if self._in_head else None)

    def _expect_reader(self) -> None:
        if not self._unsent:
            self._unsent = True
            self._taken_at = self._watch.now

    def _check_reader(self, now: float) -> None:
        self._unsent, taken = self.outgoing()
        if taken != self._taken or not self._unsent:
            self._taken, self._taken_at = taken, now
        elif now - self._taken_at >= self._patience:
            self.transport.abort()

    def outgoing(self) -> tuple[bool, int]:
        """Return whether bytes wait for the client, and a number that changes when it reads some.

        The transport does not know: under TLS it does not count what uvloop has buffered, which is all of a large
        answer.
        """
        waiting = self.transport.get_write_buffer_size()
        if sys.platform != "linux":
            return waiting > 0, waiting
        if self._socket.fileno() < 0:  # closed; connection_lost() follows in the next turn of the event loop
            return False, -1
        info = self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 148)
        unacknowledged, taken, unsent = struct.unpack_from("=24xI92xQ16xI", info)
        return bool(waiting or unacknowledged or unsent), taken

    def _check_closing(self, now: float) -> None:
        if self._unsent:
            return
        if not self._closing:
            self._closing = True
            body_is_coming = self._cycle is not None and self._cycle.more_body
            self._deadline = now + (self.unread_linger_seconds if body_is_coming else self.linger_seconds)
        elif now > self._deadline:
            self.transport.abort()

    def _check_body(self, cycle: Cycle, now: float) -> None:
        if self._channel.read_paused or cycle.waiting_for_100_continue:  # the client waits for us
            self._deadline += self._watch.interval_seconds
            self._body_ends += self._watch.interval_seconds
        else:
            earned_seconds = self._body_bytes / self.body_bytes_per_second
            self._deadline = min(self._deadline + earned_seconds, now + self.body_grace_seconds)
        self._body_ends += self._body_bytes / self.body_bytes_per_extra_second
        self._body_bytes = 0
        if now > min(self._deadline, self._body_ends):
            self._refuse(ApiError("request_timeout"))


def _as_refusal(error: httptools.HttpParserError, data: bytes) -> ApiError:
    cause = error.__context__
    if isinstance(cause, ApiError):
        return cause
    if cause is not None:  # a bug in a callback
        raise cause
    if isinstance(error, httptools.HttpParserInvalidMethodError) and _REQUEST_LINE.match(data):
        return ApiError("method_not_allowed", headers={"allow": METHODS})
    return ApiError("invalid_request")
