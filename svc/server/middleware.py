"""The layer around every request: its id, headers and log line, the checks of host and scheme, and error answers.

Edge: request id -> CORS preflight -> host (421), https behind a proxy (403), drain (503) -> route -> handler
      -> an error becomes its answer, or a page for a browser at an unknown path
      -> every answer gets the common headers, one line is logged
"""

import contextlib
import errno
import ipaddress
import os
import re
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from svc.config import LOOPBACK_NAMES
from svc.errors import ApiError, ClientGone, describe
from svc.ids import public_id
from svc.server.http.head import COMMON_HEADERS, Context, joined
from svc.server.state import Request, State
from svc.server.web import Routes, in_anthropic_format, no_content, refusal

EXPOSED_HEADERS = (
    "retry-after",
    "x-request-id",
    "request-id",
    "x-should-retry",
    "x-ratelimit-limit-requests",
    "x-ratelimit-remaining-requests",
    "x-ratelimit-reset-requests",
    "x-service-conversation",
    "x-service-memory",
    "x-service-run",
    "x-service-cost-micros",
    "x-service-replayed",
    "x-service-ignored-fields",
    "x-service-ignored-tools",
    "x-audio-seconds",
    "x-audio-truncated",
)
_VARY = (b"vary", b"Origin")
_VARY_ALONE = (_VARY,)
_EXPOSED = (b"access-control-expose-headers", ", ".join(EXPOSED_HEADERS).encode())
_HOST = re.compile(r"(?:\[([0-9a-f:.]*)\]|([^\[\]:@/\s]*))(?::[0-9]{0,5})?")
_CACHED_CLIENTS = 4096
_CACHED_BYTES = 64  # of the headers of a proxy; longer ones are not cached, to bound the memory
_ADDRESS_LENGTH = 64
REQUEST_ID = re.compile(rb"[\x21-\x7e]{1,128}")
_COMMON_HEADERS = tuple((name.encode(), value.encode()) for name, value in COMMON_HEADERS.items())


class Cors:
    """Allows any origin (`*`), or those in `origins`. Starlette's middleware makes the answer to a preflight."""

    def __init__(self, origins: Collection[str]) -> None:
        self._rules = CORSMiddleware(
            _no_app,
            allow_origins=origins,
            allow_methods=("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"),
            allow_headers=("*",),
            max_age=600,
        )

    def headers(self, scope: Scope, sent: Mapping[bytes, bytes]) -> tuple[tuple[bytes, bytes], ...]:
        """What every answer to the request `scope` with the headers `sent` carries, an error too."""
        if not scope["path"].startswith("/v1/"):
            return ()
        origin = sent.get(b"origin")
        if origin is None or not self._rules.is_allowed_origin(origin.decode("latin-1")):
            return _VARY_ALONE
        allowed = b"*" if self._rules.allow_all_origins else origin
        return _VARY, (b"access-control-allow-origin", allowed), _EXPOSED

    def preflight(self, scope: Scope, sent: Mapping[bytes, bytes]) -> Response | None:
        """The answer to a browser that asks whether it may send a request; None for everything else."""
        if scope["method"] != "OPTIONS" or not {b"origin", b"access-control-request-method"} <= sent.keys():
            return None
        if not scope["path"].startswith("/v1/"):
            return None
        answer = self._rules.preflight_response(Headers(scope=scope))
        if answer.status_code == 200:
            return answer
        message = "A browser may not send this request from this origin."
        return refusal(ApiError("invalid_request", message, headers={"vary": "Origin"}))


async def _no_app(*args: Any) -> None:
    raise NotImplementedError


class Edge:
    """The ASGI application: it passes requests to the endpoints of `routes`, and everything else to `lifespan`."""

    def __init__(
        self, lifespan: ASGIApp, routes: Routes, state: State, not_found: Callable[[Headers], Response]
    ) -> None:
        self._lifespan = lifespan
        self._routes = routes
        self._state = state
        self._config = config = state.config
        self._cached_client_of = lru_cache(_CACHED_CLIENTS)(self._client_of)
        self._log = state.log
        self._metrics = state.metrics
        self._bodies = state.bodies
        self._drain = state.drain
        self._not_found = not_found
        self._cors = Cors(config.cors_origins)
        base_host = urlsplit(config.base_url).hostname or ""
        self._names = {base_host, config.host, *(LOOPBACK_NAMES if config.local_posture else ())}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._lifespan(scope, receive, send)
            return
        began = time.monotonic()
        context: Context = scope.get("svc") or Context(joined(scope["headers"]))  # our protocol makes one
        sent = context.headers
        own_id = sent.get(b"x-request-id")
        request_id = own_id.decode() if own_id and REQUEST_ID.fullmatch(own_id) else public_id("req_")
        added = [(b"x-request-id", request_id.encode()), *_COMMON_HEADERS]
        if in_anthropic_format(scope["path"]):
            added.append((b"request-id", request_id.encode()))
        scope["svc"] = context
        context.answer_headers, context.log_fields, context.request_id = added, {}, request_id

        def send_with_headers(message: Message) -> Awaitable[None]:
            if message["type"] == "http.response.start":
                context.status = message["status"]
                message["headers"] = [*message["headers"], *added]
            return send(message)

        try:
            preflight = self._cors.preflight(scope, sent) if scope["method"] == "OPTIONS" else None
            if preflight is None:
                added += self._cors.headers(scope, sent)
                context.client_ip = self._admit(scope, sent)
                endpoint = self._routes.endpoint(scope)
                answer = await endpoint(Request(scope, receive, self._state)) or no_content()
            else:
                answer = preflight
            await answer(scope, receive, send_with_headers)
        except ClientDisconnect:
            context.status = context.status or 499
        except Exception as error:
            refused = _answer_to(error, scope["path"], context)
            if refused is None:  # the answer has begun: only a closed connection shows that it is incomplete
                raise
            if refused.status_code == 404 and "route" not in scope and b"text/html" in sent.get(b"accept", b""):
                with contextlib.suppress(OSError):  # the file of the page cannot be read
                    refused = self._not_found(Headers(scope=scope))
            await refused(scope, receive, send_with_headers)
        finally:
            self._end(scope, context, time.monotonic() - began)

    def _end(self, scope: Scope, context: Context, seconds: float) -> None:
        """Release what the request held, count it and log its line."""
        if context.counted_body is not None:
            self._bodies.give_back(*context.counted_body)
        route, method, path = scope.get("route"), "", ""
        if route is not None:
            method, path = scope["method"], route.path  # the pattern: a path may contain secrets
        fields, status = context.log_fields, context.status
        self._metrics.count(method, path, status, seconds, fields.get("code"), fields.get("byok"))
        line = {
            "time": time.time(),
            "level": "info",
            "event": "request",
            "request_id": context.request_id,
            "method": method,
            "route": path,
            "status": status,
            "duration_ms": round(seconds * 100_000) / 100,
            **fields,
        }
        self._log.add(line)

    def _admit(self, scope: Scope, sent: Mapping[bytes, bytes]) -> str:
        """Return the client's address. Raises ApiError for another host, plain HTTP behind a proxy, or the drain."""
        proto, forwarded, peer = (
            sent.get(b"x-forwarded-proto", b""),
            sent.get(b"x-forwarded-for", b""),
            scope.get("client"),
        )
        address_of = self._cached_client_of if len(proto) + len(forwarded) <= _CACHED_BYTES else self._client_of
        address = address_of(sent.get(b"host", b""), scope.get("server"), peer[0] if peer else "", proto, forwarded)
        if self._drain.draining and scope["path"] != "/healthz":
            raise ApiError("shutting_down", headers={"connection": "close"})
        return address

    def _client_of(
        self, host: bytes, server: tuple[str, int | None] | None, peer: str, proto: bytes, forwarded: bytes
    ) -> str:
        name = _host_name(host)
        if name not in self._names and name != (server or ("",))[0].removeprefix("::ffff:"):
            raise ApiError("misdirected_request")
        trusted = self._config.trusts(peer)
        if self._config.tls == "proxy" and not (trusted and proto.strip().lower() == b"https"):
            raise ApiError("https_required")
        # The last address that is not a trusted proxy: the client can forge those before it.
        for part in reversed(forwarded.decode("latin-1").split(",") if trusted else ()):
            address = part.strip()
            if len(address) > _ADDRESS_LENGTH or not _is_address(address):
                break
            if not self._config.trusts(address):
                return address
        return peer


def _answer_to(error: Exception, path: str, context: Context) -> Response | None:
    """Return the answer to an error, or None if an answer has begun. Add the error to the line of the log."""
    fields, begun = context.log_fields, context.status > 0
    if lacks_descriptors(error):
        overloaded = ApiError("overloaded", "Too many files and connections are open. Try again in a moment.")
        overloaded.__cause__, error = error, overloaded
    if isinstance(error, ClientGone) and not begun:
        return Response(status_code=499)  # the client has disconnected; the status is for the log
    if isinstance(error, ApiError) and not begun:
        fields.update(error.log_fields)
        return refusal(error, path, context.request_id)
    fields["level"], fields["error"] = "error", describe(error)
    return None if begun else refusal(ApiError("internal_error"), path, context.request_id)


def lacks_descriptors(error: Exception) -> bool:
    """Whether no descriptor was free: a file, a socket or a library could not be opened."""
    if isinstance(error, ImportError):
        return os.strerror(errno.EMFILE) in str(error)
    return isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE)


def _host_name(host: bytes) -> str:
    """Return `Host` in lower case without its port and the brackets of IPv6. Raises ApiError `invalid_request`."""
    match = _HOST.fullmatch(host.decode("latin-1").lower())
    if match is None:
        raise ApiError("invalid_request", "The Host header must be a name or an address, and perhaps a port.")
    return match[1] or match[2] or ""


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
