"""HTTP/1.1 on one connection: uvicorn's protocol with the deadlines, limits and refusals that it lacks.

head (10 s, 64 KiB, 100 lines) -> body (1 KiB/s, and 60 s in all with 1 s more for each 128 KiB)
     -> answer (its reader must take bytes) -> idle (60 s) -> next head
Whatever is no good HTTP is refused here, in the shape of all errors, after the answers before it; then we hang up.
"""

import asyncio
import re
import socket
import struct
import sys
from collections import deque
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import httptools
from uvicorn._types import ASGI3Application
from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from svc.errors import ApiError
from svc.server.cycle import Cycle, UnchunkedCycle, error_answer

_HEAD_BYTES = 64 * 1024
_HEAD_LINES = 100
_PIPELINED_REQUESTS = 64
_WRITE_BUFFER_BYTES = 64 * 1024
_ASGI: Any = {"version": "3.0", "spec_version": "2.3"}
_METHODS = "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT"
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


class Protocol(HttpToolsProtocol):
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

    cycle: Cycle
    pipeline: deque[tuple[Cycle, ASGI3Application]]  # type: ignore[assignment]

    def __init__(self, config: Config, server_state: ServerState, app_state: dict[str, Any], watch: Watch) -> None:
        super().__init__(config, server_state, app_state)
        self._watch = watch
        self._deadline = 0.0  # of what the client has to do next: its head, its body, its next request, its good-bye
        self._in_head = False
        self._unparsed_bytes = 0  # since the last whole head or piece of body
        self._body_bytes = 0  # since the last check
        self._running: Cycle | None = None  # `cycle` is the last one read, which may wait behind it
        self._refusal: ApiError | None = None
        self._deaf = False  # whatever else comes in is dropped
        self._closing = False
        self._unsent = False  # an answer was begun and not yet taken whole
        self._taken = -1
        self._taken_at = 0.0
        self._body_ends = 0.0
        self.refused: ApiError | None = None  # what the client is told instead of being heard
        self.on_lost: Callable[[], None] | None = None

    # --- the connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(_WRITE_BUFFER_BYTES)
        self._socket: socket.socket = transport.get_extra_info("socket")
        self._deadline = self._watch.now + self.head_seconds
        if self.refused is not None:
            self._hang_up(self.refused)

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
        self.connections.discard(self)
        self.lost()
        self._client_gone()
        self.parser = None  # type: ignore[assignment]  # it holds us: without this only the garbage collector frees both

    def _client_gone(self) -> None:
        # uvicorn tells only the last request that was read; the one that is being answered may be another.
        self._deaf = True
        self.pipeline.clear()
        for cycle in (self._running, self.cycle):
            if cycle is not None and not cycle.response_complete:
                cycle.disconnected = True
                cycle.tell()
        self.flow.resume_writing()

    def shutdown(self) -> None:
        """Closes the connection as soon as the answer that is being given has ended."""
        self.stall_seconds = min(self.stall_seconds, self.stall_seconds_in_drain)
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
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            # Nothing here upgrades, so the request is an ordinary one and the rest of the data the next.
            if rest := data[upgrade.args[0] :]:
                self.data_received(rest)
            return
        except httptools.HttpParserError as error:
            self._refuse(_as_refusal(error, data))
            return
        if self._unparsed_bytes > _HEAD_BYTES:
            self._refuse(ApiError("headers_too_large"))

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= _PIPELINED_REQUESTS:
            raise ApiError("invalid_request", "Too many requests were sent before their answers were read.")
        self.url, self.headers = b"", []
        self._in_head = True
        if self._running is not None:  # the first head's deadline began with the connection
            self._deadline = self._watch.now + self.head_seconds

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        headers, version = self.headers, self.parser.get_http_version()
        if len(headers) > _HEAD_LINES or (
            self._unparsed_bytes > _HEAD_BYTES and len(self.url) + sum(len(n) + len(v) + 4 for n, v in headers) > _HEAD_BYTES
        ):
            raise ApiError("headers_too_large")
        method = self.parser.get_method().decode("ascii")
        named = dict(headers)
        if version not in ("1.1", "1.0"):
            raise ApiError("invalid_request", "Speak HTTP/1.1.")
        hosts = int(b"host" in named) if len(named) == len(headers) else sum(name == b"host" for name, _ in headers)
        if hosts != 1 and (hosts or version == "1.1"):
            raise ApiError("invalid_request", "Send exactly one Host header.")
        coded = b"transfer-encoding" in named
        if coded and (
            version == "1.0" or [value.lower() for name, value in headers if name == b"transfer-encoding"] != [b"chunked"]
        ):
            raise ApiError("invalid_request", "The only Transfer-Encoding here is 'chunked', in HTTP/1.1.")
        # httptools skips the body of such a request, which would then be read as the next request.
        if self.parser.should_upgrade() and (b"content-length" in named or coded):
            raise ApiError("invalid_request", "A request with a body cannot ask for an upgrade.")
        path, _, query = self.url.partition(b"?")
        if self.url.find(b"#") >= 0 or not (path.startswith(b"/") or (path == b"*" and method == "OPTIONS")):
            raise ApiError("invalid_request", "The request target must be a path, such as /v1/models.")
        text = path.decode("ascii")
        scope = {
            "type": "http",
            "asgi": _ASGI,
            "http_version": version,
            "method": method,
            "path": unquote(text) if "%" in text else text,
            "raw_path": path,
            "query_string": query,
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,
            "root_path": "",
            "headers": headers,
            "state": self.app_state,  # nobody changes it, so that nobody needs a copy
        }
        self.headers = []  # trailers come here too, and must not join the headers that were just checked
        self._in_head = False
        self._unparsed_bytes = 0
        now = self._watch.now
        self._deadline, self._body_ends = now + self.body_grace_seconds, now + self.body_seconds
        self._take(scope, expects=b"expect" in named and version == "1.1" and _expects_100(headers))

    def _take(self, scope: Any, *, expects: bool) -> None:
        """Starts the application on the request, or lets it wait for the answers before it."""
        self.cycle = (Cycle if scope["http_version"] == "1.1" else UnchunkedCycle)(
            scope,
            self.transport,
            self.flow,
            self.server_state.default_headers,
            expects,
            # A body that was announced and refused may come or not: nobody could tell it from the next request.
            scope["http_version"] == "1.1" and not expects and self.parser.should_keep_alive(),
            self.on_response_complete,
        )
        if self._running is not None and not self._running.response_complete:
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, self.app))
        else:
            self._start_asgi_task(self.cycle, self.app)

    def _start_asgi_task(self, cycle: Cycle, app: ASGI3Application) -> None:  # type: ignore[override]
        self._running = cycle
        task = self.loop.create_task(cycle.run_asgi(app))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def on_body(self, body: bytes) -> None:
        self._unparsed_bytes = 0
        cycle = self.cycle
        if cycle.response_complete:
            return
        self._body_bytes += len(body)
        cycle.body += body
        if len(cycle.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        cycle.tell()

    def on_message_complete(self) -> None:
        self._unparsed_bytes = 0
        self.cycle.more_body = False
        if self.cycle.response_complete:
            self._deadline = self._watch.now + self.idle_seconds
        else:
            self.cycle.tell()

    def on_response_complete(self) -> None:
        self._expect_reader()
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        elif self._refusal is not None:
            self._hang_up(self._refusal)
        elif self._in_head:
            self._deadline = self._watch.now + self.head_seconds
        else:
            self._deadline = self._watch.now + (self.unread_linger_seconds if self.cycle.more_body else self.idle_seconds)

    # --- refusals

    def _refuse(self, error: ApiError) -> None:
        self._deaf = True
        body_is_bad = not self._in_head and self.cycle is not None and self.cycle.more_body
        if body_is_bad and self.cycle is not self._running:
            self.pipeline.popleft()
        if not self._answering:
            self._hang_up(error)
        elif not body_is_bad or self.cycle is not self._running:
            self._refusal = error
        else:
            begun = self.cycle.response_started
            self._client_gone()
            self._hang_up(None if begun else error)

    def _hang_up(self, error: ApiError | None) -> None:
        self._deaf = True
        if error is not None:
            headers, body = error_answer(error)
            lines = [*self.server_state.default_headers, *headers, (b"connection", b"close")]
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
            if self.cycle is self._running and self.cycle.more_body:
                self._check_body(now)
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
        elif now - self._taken_at >= self.stall_seconds:
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
            body_is_coming = self.cycle is not None and self.cycle.more_body
            self._deadline = now + (self.unread_linger_seconds if body_is_coming else self.linger_seconds)
        elif now > self._deadline:
            self.transport.abort()

    def _check_body(self, now: float) -> None:
        if self.flow.read_paused or self.cycle.waiting_for_100_continue:  # it waits for us
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
        return ApiError("method_not_allowed", headers={"allow": _METHODS})
    return ApiError("invalid_request")


def _expects_100(headers: list[tuple[bytes, bytes]]) -> bool:
    return any(name == b"expect" and value.lower() == b"100-continue" for name, value in headers)
