"""What stands around every request: its id, headers and log line, the host and scheme it may come by, CORS on /v1.

Edge (request id, headers, log line, last resort) -> CORS for /v1 -> Entrance (host, https, drain) -> routes -> handler
"""

import ipaddress
import re
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from svc.config import LOOPBACK_NAMES, Config
from svc.errors import ApiError, describe
from svc.ids import random_base62
from svc.server.body_budget import BodyBudget
from svc.server.web import refusal

_HOST = re.compile(r"(?:\[([0-9a-f:.]*)\]|([^\[\]:@/\s]*))(?::[0-9]{0,5})?")
_REQUEST_ID = re.compile(r"[\x21-\x7e]{1,128}")
EXPOSED_HEADERS = (
    "retry-after",
    "x-request-id",
    "x-should-retry",
    "x-ratelimit-limit-requests",
    "x-ratelimit-remaining-requests",
    "x-ratelimit-reset-requests",
    "x-service-conversation",
    "x-service-memory",
    "x-service-run",
    "x-service-cost-micros",
    "x-audio-seconds",
    "x-audio-truncated",
)


class Edge:
    """The outermost ASGI layer: the request id, the headers of every answer, one log line, and a 500 for what nobody caught."""

    def __init__(
        self,
        app: ASGIApp,
        log: Callable[..., None],
        count: Callable[[str, str, int, float, object], None],
        bodies: BodyBudget,
    ) -> None:
        self._app = app
        self._log = log
        self._count = count
        self._bodies = bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.monotonic()
        own_id = Headers(scope=scope).get("x-request-id", "")
        request_id = own_id if _REQUEST_ID.fullmatch(own_id) else "req_" + random_base62(22)
        headers: list[tuple[bytes, bytes]] = [
            (b"x-request-id", request_id.encode()),
            (b"strict-transport-security", b"max-age=31536000"),
            (b"x-content-type-options", b"nosniff"),
        ]
        fields: dict[str, Any] = {}
        scope["svc.headers"], scope["svc.log_fields"], scope["svc.request_id"] = headers, fields, request_id
        status = 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *headers]
            await send(message)

        try:
            await self._app(scope, receive, send_with_headers)
        except ClientDisconnect:
            status = status or 499
        except Exception as error:
            fields["level"], fields["error"] = "error", describe(error)
            if status:  # the answer has begun: only a cut connection can tell that it is not whole
                raise
            await refusal(ApiError("internal_error"))(scope, receive, send_with_headers)
        finally:
            self._bodies.give_back(scope)
            route = getattr(scope.get("route"), "path", "")  # the pattern: a path may hold what nobody should log
            method = scope["method"] if route else ""
            seconds = time.monotonic() - began
            self._count(method, route, status, seconds, fields.get("code"))
            self._log(
                "request",
                request_id=request_id,
                method=method,
                route=route,
                status=status,
                duration_ms=round(seconds * 1000, 2),
                **fields,
            )


class Entrance:
    """Refuses what may not enter at all: a foreign host name, plain HTTP behind the proxy, all during the drain."""

    def __init__(self, app: ASGIApp, config: Config, draining: Callable[[], bool]) -> None:
        self._app = app
        self._config = config
        self._draining = draining
        base_host = urlsplit(config.base_url).hostname or ""
        self._names = {base_host, config.host, *(LOOPBACK_NAMES if config.local_posture else ())}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                scope["svc.client_ip"] = self._check(scope)
            except ApiError as error:
                scope["svc.log_fields"]["code"] = error.code
                await refusal(error)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _check(self, scope: Scope) -> str:
        headers = Headers(scope=scope)
        host = _host_name(headers.get("host", ""))
        if host not in self._names and host != (scope.get("server") or ("",))[0]:
            raise ApiError("misdirected_request")
        peer = (scope.get("client") or ("",))[0]
        trusted = self._config.trusts(peer)
        protocols = [value.strip().lower() for value in headers.getlist("x-forwarded-proto")]
        if self._config.tls == "proxy" and not (trusted and protocols == ["https"]):
            raise ApiError("https_required")
        if self._draining() and scope["path"] != "/healthz":
            raise ApiError("shutting_down", headers={"connection": "close"})
        return _client_ip(peer, headers, self._config) if trusted else peer


def _host_name(host: str) -> str:
    """`Host` without its port, in lower case, an IPv6 address without brackets. Raises ApiError `invalid_request`."""
    match = _HOST.fullmatch(host.lower())
    if match is None:
        raise ApiError("invalid_request", "The Host header must be a name or an address, and perhaps a port.")
    return match[1] or match[2] or ""


def _client_ip(peer: str, headers: Headers, config: Config) -> str:
    # The last address that is no proxy of ours: all before it may be forged by the caller.
    for part in reversed(",".join(headers.getlist("x-forwarded-for")).split(",")):
        address = part.strip()
        try:
            ipaddress.ip_address(address)
        except ValueError:
            return peer
        if not config.trusts(address):
            return address
    return peer


class _Cors(CORSMiddleware):
    """Starlette's CORS, whose refusals have our shape."""

    def preflight_response(self, request_headers: Headers) -> Response:
        answer = super().preflight_response(request_headers)
        if answer.status_code == 200:
            return answer
        return refusal(
            ApiError("invalid_request", "A browser may not send this request from this origin.", headers={"vary": "Origin"})
        )


def cors_for_v1(app: ASGIApp, config: Config) -> ASGIApp:
    """`app` with CORS on /v1 alone, for any origin or those of the configuration, without credentials."""
    with_cors = _Cors(
        app,
        allow_origins=config.cors_origins,
        allow_methods=("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"),
        allow_headers=("*",),
        expose_headers=EXPOSED_HEADERS,
        max_age=600,
    )

    async def dispatch(scope: Scope, receive: Receive, send: Send) -> None:
        inner = with_cors if scope["type"] == "http" and scope["path"].startswith("/v1/") else app
        await inner(scope, receive, send)

    return dispatch
