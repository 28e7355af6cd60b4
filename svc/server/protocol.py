"""HTTP/1.1 on one connection, in the place of uvicorn's protocol, which lacks the deadlines, limits and refusals.

head (10 s, 64 KiB, 100 lines) -> body (1 KiB/s, and 60 s in all with 1 s more for each 128 KiB)
     -> answer (its reader must take bytes) -> idle (60 s) -> next head
Whatever is no good HTTP is refused here, in the shape of all errors, after the answers before it; then we hang up.
"""

import asyncio
import re
import socket
import struct
import sys
from collections.abc import Callable
from typing import Any

import httptools
from starlette.types import ASGIApp, Scope
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.utils import get_local_addr, get_remote_addr, is_ssl
from uvicorn.server import ServerState

from svc.errors import ApiError
from svc.server.context import Context
from svc.server.cycle import STATUS_LINE, Channel, Cycle, error_answer
from svc.server.head import HEAD_BYTES, HEAD_LINES, METHODS, check_head, expects_100, joined, target_of

_PIPELINED_REQUESTS = 64
_WRITE_BUFFER_BYTES = 64 * 1024
_ASGI: Any = {"version": "3.0", "spec_version": "2.3"}
_REQUEST_LINE = re.compile(rb"[A-Za-z-]+ /")


class Watch:
    """Lets every connection check its deadlines twice a second.

    Its clock moves by one check at a time, so that clients are forgiven for as long as this process stood still.
    """

    interval_seconds = 0.5

    def __init__(self, connections: "set[Protocol]") -> None:
        self.now = 0.0
        self._connections = connections
        self._timer: asyncio.TimerHandle | None = None

    def check(self) -> None:
        """Checks now and from now on."""
        self._timer = asyncio.get_running_loop().call_later(self.interval_seconds, self.check)
        self.now += self.interval_seconds
        for connection in list(self._connections):
            connection.check_deadlines()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


class Protocol(asyncio.Protocol):
    """One client's connection."""

    head_seconds = 10.0
    idle_seconds = 60.0
    body_grace_seconds = 15.0  # how long a body may be late; it must come at `body_bytes_per_second`
    body_bytes_per_second = 1024
    body_seconds = 60.0  # for the whole of it, and a second more for each
    body_bytes_per_extra_second = 128 * 1024
    stall_seconds = 25.0  # how long a reader may take nothing: it is cut within 30
    stall_seconds_in_drain = 3.0
    linger_seconds = 1.0  # how long the end of TLS may take
    unread_linger_seconds = 5.0  # and the rest of a body that nobody reads any more

    # An instance without a dictionary: so many attributes would have one of 3 KB.
    __slots__ = (
        *("refused", "on_lost", "transport", "_app", "_server_state", "_app_state", "_watch", "_parser", "_channel", "_socket"),
        *("_server", "_client", "_scheme", "_url", "_sent", "_repeated", "_cycle", "_running", "_waiting", "_refusal"),
        *("_in_head", "_unparsed_bytes", "_body_bytes", "_body_ends", "_deaf", "_closing", "_patience", "_unsent", "_taken"),
        *("_deadline", "_taken_at"),
    )

    def __init__(self, app: ASGIApp, server_state: ServerState, app_state: Any, watch: Watch) -> None:
        self._app = app
        self._server_state = server_state
        self._app_state = app_state
        self._watch = watch
        self._parser = httptools.HttpRequestParser(self)
        # Or llhttp would not take a request behind one with `Connection: close`, which is dropped here.
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._url = b""
        self._sent: dict[bytes, bytes] = {}  # the headers that have come of the head that is read,
        self._repeated: list[tuple[bytes, bytes]] = []  # and those whose names had come before
        self._cycle: Cycle | None = None  # the last one read, which may wait behind
        self._running: Cycle | None = None
        self._waiting: list[tuple[Cycle, Scope]] = []
        self._refusal: ApiError | None = None
        self._deadline = 0.0  # of what the client has to do next: its head, its body, its next request, its good-bye
        self._in_head = False
        self._unparsed_bytes = 0  # since the last whole head or piece of body
        self._body_bytes = 0  # since the last check
        self._body_ends = 0.0
        self._deaf = False  # whatever else comes in is dropped
        self._closing = False
        self._patience = self.stall_seconds
        self._unsent = False  # an answer was begun and not yet taken whole
        self._taken = -1
        self._taken_at = 0.0
        self.refused: ApiError | None = None  # what the client is told instead of being heard
        self.on_lost: Callable[[], None] | None = None

    # --- the connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._server_state.connections.add(self)  # type: ignore[arg-type]  # not one of uvicorn's own
        self.transport = transport
        transport.set_write_buffer_limits(_WRITE_BUFFER_BYTES)
        self._channel = Channel(transport, self._server_state, self._on_response)
        self._socket: socket.socket = transport.get_extra_info("socket")
        self._server, self._client = get_local_addr(transport), get_remote_addr(transport)
        self._scheme = "https" if is_ssl(transport) else "http"
        self._deadline = self._watch.now + self.head_seconds
        if self.refused is not None:
            self._hang_up(self.refused)

    def pause_writing(self) -> None:
        self._channel.write_paused = True

    def resume_writing(self) -> None:
        self._channel.resume_writing()

    @property
    def idle(self) -> bool:
        """Whether nothing is under way: no request has begun since the last answer was taken."""
        waits = self._unsent and self.outgoing()[0]  # the last check may be half a second ago
        return not (self._in_head or self._answering or waits or self.transport.is_closing())

    def lost(self) -> None:
        """Tells once that the connection is no more, or was never made."""
        on_lost, self.on_lost = self.on_lost, None
        if on_lost is not None:
            on_lost()

    def eof_received(self) -> None:
        self._client_gone()

    def connection_lost(self, exc: Exception | None) -> None:
        self._server_state.connections.discard(self)
        self.lost()
        self._client_gone()
        # They hold us: without this only the garbage collector frees us all.
        del self._parser, self._channel.on_response

    def _client_gone(self) -> None:
        self._deaf = True
        self._waiting.clear()
        for cycle in (self._running, self._cycle):  # the one that is being answered may not be the last that was read
            if cycle is not None and not cycle.response_complete:
                cycle.disconnected = True
                cycle.wake()
        self._channel.resume_writing()

    def shutdown(self) -> None:
        """Closes the connection as soon as the answer that is being given has ended."""
        self._patience = min(self.stall_seconds, self.stall_seconds_in_drain)
        if self._running is not None and self._answering:
            self._running.keep_alive = False
        else:
            self.transport.close()

    @property
    def _answering(self) -> bool:
        return self._running is not None and not self._running.response_complete

    # --- what comes in

    def data_received(self, data: bytes) -> None:
        if self._deaf:
            return
        self._unparsed_bytes += len(data)
        rest = b""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            # Nothing here upgrades, so the request is an ordinary one and the rest of the data the next.
            rest = data[upgrade.args[0] :]
        except httptools.HttpParserError as error:
            self._refuse(_as_refusal(error, data))
            return
        if rest:  # not above: the upgrade would be the context of whatever is wrong with it
            self.data_received(rest)
        elif self._unparsed_bytes > HEAD_BYTES:
            self._refuse(ApiError("headers_too_large"))

    def on_message_begin(self) -> None:
        if len(self._waiting) >= _PIPELINED_REQUESTS:
            raise ApiError("invalid_request", "Too many requests were sent before their answers were read.")
        self._url, self._sent, self._repeated = b"", {}, []
        self._in_head = True
        if self._running is not None:  # the first head's deadline began with the connection
            self._deadline = self._watch.now + self.head_seconds

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        name, value = name.lower(), value.rstrip(b" \t")  # RFC 9112, 5.1; the parser strips only what precedes the value
        if name in self._sent:
            self._repeated.append((name, value))
        else:
            self._sent[name] = value

    def on_headers_complete(self) -> None:
        named, parser, now = self._sent, self._parser, self._watch.now
        headers, version, upgrades = [*named.items(), *self._repeated], parser.get_http_version(), parser.should_upgrade()
        http_1_1, small = version == "1.1", len(headers) <= HEAD_LINES and self._unparsed_bytes <= HEAD_BYTES
        plain = http_1_1 and small and not self._repeated and b"host" in named
        if not plain or b"transfer-encoding" in named or upgrades:
            check_head(version, self._url, headers, came_bytes=self._unparsed_bytes, upgrades=upgrades)
            named = joined(headers)
        method, path, raw_path, query, host = target_of(parser.get_method(), self._url)
        if host is not None:  # it replaces the Host header
            named = {**named, b"host": host}
            headers = [(b"host", host), *(line for line in headers if line[0] != b"host")]
        scope = {
            "type": "http",
            "asgi": _ASGI,
            "http_version": version,
            "method": method,
            "path": path,
            "raw_path": raw_path,
            "query_string": query,
            "server": self._server,
            "client": self._client,
            "scheme": self._scheme,
            "root_path": "",
            "headers": headers,
            "svc": Context(named),
            "state": self._app_state,  # nobody changes it, so that nobody needs a copy
        }
        # Trailers come here too, and must not join the headers that were just checked. An idle connection keeps no secret.
        self._sent, self._url = {}, b""
        self._in_head = False
        self._unparsed_bytes = 0
        self._deadline, self._body_ends = now + self.body_grace_seconds, now + self.body_seconds
        expects = b"expect" in named and http_1_1 and expects_100(headers)
        # A body that was announced and refused may come or not: nobody could tell it from the next request.
        keep_alive = http_1_1 and not expects and parser.should_keep_alive()
        cycle = self._cycle = Cycle(self._channel, method, http_1_1, expects, keep_alive)
        if self._running is None or self._running.response_complete:
            self._running = cycle
            cycle.start(self._app, scope)
        else:
            self._channel.pause_reading()
            self._waiting.append((cycle, scope))

    def on_body(self, body: bytes) -> None:
        self._unparsed_bytes = 0
        cycle = self._cycle
        if cycle is None or cycle.response_complete:
            return
        self._body_bytes += len(body)
        cycle.chunks.append(body)
        cycle.unread_bytes += len(body)
        if cycle.unread_bytes > HIGH_WATER_LIMIT:
            self._channel.pause_reading()
        cycle.news = True
        if cycle.reader is not None:
            cycle.wake()

    def on_message_complete(self) -> None:
        self._unparsed_bytes = 0
        cycle = self._cycle
        if cycle is None:
            return
        cycle.more_body = False
        cycle.news = True
        if cycle.response_complete:
            self._deadline = self._watch.now + self.idle_seconds
        elif cycle.reader is not None:
            cycle.wake()

    def _on_response(self) -> None:
        self._expect_reader()
        if self.transport.is_closing():
            return
        if self._channel.read_paused:
            self._channel.resume_reading()
        if self._waiting:
            self._running, scope = self._waiting.pop(0)
            self._running.start(self._app, scope)
        elif self._refusal is not None:
            self._hang_up(self._refusal)
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
            self._hang_up(error)
        elif cycle is None or not body_is_bad or cycle is not self._running:
            self._refusal = error
        else:
            begun = cycle.response_started
            self._client_gone()
            self._hang_up(None if begun else error)

    def _hang_up(self, error: ApiError | None) -> None:
        self._deaf = True
        if error is not None:
            headers, body = error_answer(error)
            lines = [*self._server_state.default_headers, *headers, (b"connection", b"close")]
            head = b"".join(b"%s: %s\r\n" % line for line in lines)
            self.transport.write(b"".join((STATUS_LINE[error.status], head, b"\r\n", body)))
        self._expect_reader()
        self.transport.close()

    # --- deadlines

    def check_deadlines(self) -> None:
        """Cuts the client off when it is late with what it has to do; the Watch calls this twice a second."""
        now = self._watch.now
        if self._running is not None and self._answering and self._running.response_started:
            self._expect_reader()
        if self._unsent:
            self._check_reader(now)
        if self.transport.is_closing():
            self._check_good_bye(now)
        elif self._answering:
            cycle = self._cycle
            if cycle is not None and cycle is self._running and cycle.more_body:
                self._check_body(cycle, now)
        elif now > self._deadline:
            self._hang_up(ApiError("request_timeout") if self._in_head else None)

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
        """Whether bytes wait for the client, and a number that changes when it takes some.

        The transport cannot tell: under TLS it hides what uvloop has taken over, which is all of a large answer.
        """
        waiting = self.transport.get_write_buffer_size()
        if sys.platform != "linux":
            return waiting > 0, waiting
        if self._socket.fileno() < 0:  # closed, and we shall be told in the next turn of the loop
            return False, -1
        info = self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 148)
        unacknowledged, taken, unsent = struct.unpack_from("=24xI92xQ16xI", info)
        return bool(waiting or unacknowledged or unsent), taken

    def _check_good_bye(self, now: float) -> None:
        if self._unsent:
            return
        if not self._closing:
            self._closing = True
            body_is_coming = self._cycle is not None and self._cycle.more_body
            self._deadline = now + (self.unread_linger_seconds if body_is_coming else self.linger_seconds)
        elif now > self._deadline:
            self.transport.abort()

    def _check_body(self, cycle: Cycle, now: float) -> None:
        if self._channel.read_paused or cycle.waiting_for_100_continue:  # it waits for us
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
    if cause is not None:  # a fault of ours in a callback
        raise cause
    if isinstance(error, httptools.HttpParserInvalidMethodError) and _REQUEST_LINE.match(data):
        return ApiError("method_not_allowed", headers={"allow": METHODS})
    return ApiError("invalid_request")
