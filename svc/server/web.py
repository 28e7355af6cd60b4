"""The mechanics of HTTP answers and bodies: the route map, JSON in and out, lists, and what stands around every request.

Edge (request id, headers, log line, last resort) -> CORS for /v1 -> Entrance (host, https, drain) -> routes -> handler
"""

import asyncio
import ipaddress
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

import orjson
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from svc.config import LOOPBACK_NAMES, Config
from svc.db import Page
from svc.errors import ApiError, describe
from svc.ids import random_base62

Endpoint = Callable[[Request[Any]], Awaitable[Response]]
Row = tuple[str, str, Endpoint]
T = TypeVar("T")

KIB = 1024
MIB = 1024 * 1024
# Raw bodies that may be in memory at once, and how many JSON values one may hold: an object takes up to 35 times its bytes.
_BODIES_BYTES = 192 * MIB
_JSON_VALUES = 250_000
_JSON_DEPTH = 100
_BIG_JSON_BYTES = 256 * KIB
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


# --- routes and replies


def routes(table: Iterable[Row]) -> list[Route]:
    """Starlette routes out of rows (method, path, endpoint): one per path, so that 405 names every method in `Allow`."""
    by_path: dict[str, dict[str, Endpoint]] = {}
    for method, path, endpoint in table:
        by_path.setdefault(path, {})[method] = endpoint
    return [Route(path, _by_method(endpoints), methods=list(endpoints)) for path, endpoints in by_path.items()]


def _by_method(endpoints: Mapping[str, Endpoint]) -> Endpoint:
    if "GET" in endpoints:
        endpoints = {**endpoints, "HEAD": endpoints["GET"]}

    async def dispatch(request: Request[Any]) -> Response:
        return await endpoints[request.method](request)

    return dispatch


def reply(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """`value` as a JSON answer."""
    headers = {"content-type": "application/json", "cache-control": "no-store", **(headers or {})}
    return Response(orjson.dumps(value), status, headers)


def no_content() -> Response:
    return Response(status_code=204)


def listing(page: Page[T], as_json: Callable[[T], Mapping[str, Any]]) -> Response:
    """A page of a list, each item as `as_json` tells it."""
    return reply({"object": "list", "data": [as_json(item) for item in page.items], "has_more": page.has_more})


def page_limit(request: Request[Any]) -> int:
    """The query parameter `limit`: 20 by default, at most 100. Raises ApiError `invalid_value` below 1 or for no integer."""
    text = request.query_params.get("limit", "20")
    if not re.fullmatch(r"[0-9]{1,18}", text) or int(text) < 1:
        raise ApiError("invalid_value", "limit must be a whole number from 1 to 100.", param="limit")
    return min(int(text), 100)


def page_after(request: Request[Any]) -> str | None:
    """The query parameter `after`: the id of the item that the page follows, None for the first page (contract 2)."""
    return request.query_params.get("after")


def add_header(request: Request[Any], name: str, value: str) -> None:
    """Puts a header on the answer to this request, whatever becomes of it, an error included."""
    request.scope["svc.headers"].append((name.encode("latin-1"), value.encode("latin-1")))


def note(request: Request[Any], **facts: Any) -> None:
    """Adds facts to the request's log line: ids and numbers, never content (contract 10)."""
    request.scope["svc.facts"].update(facts)


# --- errors


async def error_reply(request: Request[Any], error: Exception) -> Response:
    """The answer to an ApiError."""
    assert isinstance(error, ApiError)
    cause = error.__cause__
    note(request, code=error.error.get("code"), cause=getattr(cause, "sqlite_errorname", type(cause).__name__) if cause else None)
    return _refusal(error)


def _refusal(error: ApiError) -> Response:
    return reply(error.body(), error.status, error.headers)


async def http_error_reply(request: Request[Any], error: Exception) -> Response:
    """Starlette's own 404 and 405 in our shape."""
    assert isinstance(error, HTTPException)
    code = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code, "invalid_request")
    return await error_reply(request, ApiError(code, headers=error.headers))


async def gone_reply(request: Request[Any], error: Exception) -> Response:
    """Nobody is there to read it; the status is for the log."""
    return Response(status_code=499)


# --- bodies


class Bodies:
    """How many bytes of request bodies are in memory in the whole process; beyond the budget new ones are refused."""

    def __init__(self, budget_bytes: int = _BODIES_BYTES) -> None:
        self.free_bytes = budget_bytes

    def take(self, scope: Scope, size_bytes: int) -> None:
        """Counts `size_bytes` against the budget until the request ends. Raises ApiError `overloaded`."""
        if size_bytes > self.free_bytes:
            raise ApiError("overloaded", "The service is reading too many large requests now. Try again in a moment.")
        self.free_bytes -= size_bytes
        scope["svc.body_bytes"] = scope.get("svc.body_bytes", 0) + size_bytes

    def give_back(self, scope: Scope) -> None:
        self.free_bytes += scope.pop("svc.body_bytes", 0)


async def read_body(request: Request[Any], limit_bytes: int) -> bytes:
    """The request's body. Raises ApiError `PAYLOAD_TOO_LARGE` over `limit_bytes`, as soon as that is known, and `overloaded`."""
    too_large = ApiError("PAYLOAD_TOO_LARGE", f"The request body is over {limit_bytes} bytes. Send less.")
    length = request.headers.get("content-length", "0")
    if not re.fullmatch(r"[0-9]{1,18}", length) or int(length) > limit_bytes:
        raise too_large
    bodies: Bodies = request.state.bodies
    bodies.take(request.scope, int(length))
    counted, size, chunks = int(length), 0, []
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit_bytes:
            raise too_large
        if size > counted:
            bodies.take(request.scope, size - counted)
            counted = size
        chunks.append(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


async def read_json(request: Request[Any], limit_bytes: int = MIB) -> dict[str, Any]:
    """The request's body as one JSON object.

    Raises ApiError `unsupported_media_type`, `PAYLOAD_TOO_LARGE`, or `invalid_json` for anything that is not one object of
    valid UTF-8 JSON, at most 100 levels deep (contract 2, wire.md 19).
    """
    content_type = request.headers.get("content-type", "application/json").lower()
    kind, _, parameters = content_type.partition(";")
    charset = parameters.strip().removeprefix("charset=").strip('"')
    if kind.strip() != "application/json" or (parameters.strip().startswith("charset=") and charset not in ("utf-8", "utf8")):
        raise ApiError("unsupported_media_type")
    body = await read_body(request, limit_bytes)
    value = await asyncio.to_thread(parse_json, body) if len(body) > _BIG_JSON_BYTES else parse_json(body)
    if not isinstance(value, dict):
        raise ApiError("invalid_json", "The request body must be one JSON object.")
    return value


def parse_json(body: bytes) -> Any:
    """`body` as JSON. Raises ApiError `invalid_json`: also for NaN, lone surrogates, too many values or levels."""
    openings = body.count(b"[") + body.count(b"{")
    if openings + body.count(b",") > _JSON_VALUES and _values(body) > _JSON_VALUES:
        raise ApiError("PAYLOAD_TOO_LARGE", f"The JSON body holds more than {_JSON_VALUES} values. Send less.")
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ApiError("invalid_json", f"The request body is not valid JSON: {error.msg} at character {error.pos}.") from None
    if openings > _JSON_DEPTH and _too_deep(value):
        raise ApiError("invalid_json", f"The JSON body is nested more than {_JSON_DEPTH} levels deep.")
    return value


_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)  # possessive: it never goes back


def _values(body: bytes) -> int:
    # Commas and brackets inside long texts are no values: count again without the strings.
    bare = _STRING.sub(b"", body)
    return bare.count(b"[") + bare.count(b"{") + bare.count(b",")


def _too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_JSON_DEPTH):
        containers = [item for item in level if isinstance(item, dict | list)]
        level = [child for item in containers for child in (item.values() if isinstance(item, dict) else item)]
    return any(isinstance(item, dict | list) for item in level)


# --- around every request


class Edge:
    """The outermost ASGI layer: the request id, the headers of every answer, one log line, and a 500 for what nobody caught."""

    def __init__(
        self, app: ASGIApp, log: Callable[..., None], count: Callable[[str, str, int, float], None], bodies: Bodies
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
        facts: dict[str, Any] = {}
        scope["svc.headers"], scope["svc.facts"], scope["svc.request_id"] = headers, facts, request_id
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
            facts["level"], facts["error"] = "error", describe(error)
            if status:  # the answer has begun: only a cut connection can tell that it is not whole
                raise
            await _refusal(ApiError("internal_error"))(scope, receive, send_with_headers)
        finally:
            self._bodies.give_back(scope)
            route = getattr(scope.get("route"), "path", "")  # the pattern: a path may hold what nobody should log
            method = scope["method"] if route else ""
            seconds = time.monotonic() - began
            self._count(method, route, status, seconds)
            self._log(
                "request",
                request_id=request_id,
                method=method,
                route=route,
                status=status,
                duration_ms=round(seconds * 1000, 2),
                **facts,
            )


class Entrance:
    """Refuses what may not enter at all: a foreign host name, plain HTTP behind the proxy, all during the drain (contract 2)."""

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
                scope["svc.facts"]["code"] = error.code
                await _refusal(error)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _check(self, scope: Scope) -> str:
        headers = Headers(scope=scope)
        host = _host_name(headers.get("host", ""))
        if host not in self._names and host != (scope.get("server") or ("",))[0]:
            raise ApiError("misdirected_request")
        peer = (scope.get("client") or ("",))[0]
        trusted = self._config.trusts(peer)
        if self._config.tls == "proxy" and not (trusted and headers.get("x-forwarded-proto", "").strip().lower() == "https"):
            raise ApiError("https_required")
        if self._draining() and scope["path"] != "/healthz":
            raise ApiError("shutting_down", headers={"connection": "close"})
        return _client_ip(peer, headers, self._config) if trusted else peer


def _host_name(host: str) -> str:
    """`Host` without its port, in lower case, an IPv6 address without brackets."""
    name = host.lower().strip()
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return name.rpartition(":")[0] if ":" in name else name


def _client_ip(peer: str, headers: Headers, config: Config) -> str:
    # The last address that is no proxy of ours: all before it may be forged by the caller (contract 7).
    for part in reversed(",".join(headers.getlist("x-forwarded-for")).split(",")):
        address = part.strip()
        try:
            ipaddress.ip_address(address)
        except ValueError:
            return peer
        if not config.trusts(address):
            return address
    return peer


def cors_for_v1(app: ASGIApp, config: Config) -> ASGIApp:
    """`app` with CORS on /v1 alone, for any origin or those of the configuration, without credentials (contract 2)."""
    with_cors = CORSMiddleware(
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
