"""The mechanics of HTTP answers: the route map, JSON out, lists, errors in our shape, and a request's fields in the log."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeVar

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from svc.db import Page
from svc.errors import ApiError
from svc.server.state import State

Endpoint = Callable[[Request[State]], Awaitable[Response]]
Row = tuple[str, str, Endpoint]
T = TypeVar("T")


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

    async def dispatch(request: Request[State]) -> Response:
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


def page_limit(request: Request[State]) -> int:
    """The query parameter `limit`: 20 by default, at most 100. Raises ApiError `invalid_value` below 1 or for no integer."""
    text = request.query_params.get("limit", "20")
    if not re.fullmatch(r"[0-9]{1,18}", text) or int(text) < 1:
        raise ApiError("invalid_value", "limit must be a whole number from 1 to 100.", param="limit")
    return min(int(text), 100)


def page_after(request: Request[State]) -> str | None:
    """The query parameter `after`: the id of the item that the page follows, None for the first page."""
    return request.query_params.get("after")


def add_header(request: Request[State], name: str, value: str) -> None:
    """Puts a header on the answer to this request, whatever becomes of it, an error included."""
    request.scope["svc.headers"].append((name.encode("latin-1"), value.encode("latin-1")))


def add_log_fields(request: Request[State], **fields: Any) -> None:
    """Adds fields to the request's log line: ids and numbers, never content."""
    request.scope["svc.log_fields"].update(fields)


# --- errors


async def error_reply(request: Request[State], error: Exception) -> Response:
    """The answer to an ApiError."""
    assert isinstance(error, ApiError)
    cause = error.__cause__
    name = getattr(cause, "sqlite_errorname", type(cause).__name__) if cause else None
    add_log_fields(request, code=error.error.get("code"), cause=name)
    return refusal(error)


def refusal(error: ApiError) -> Response:
    """An ApiError in its shape, where there is no request to log it with."""
    return reply(error.body(), error.status, error.headers)


async def http_error_reply(request: Request[State], error: Exception) -> Response:
    """Starlette's own 404 and 405 in our shape."""
    assert isinstance(error, HTTPException)
    code = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code, "invalid_request")
    return await error_reply(request, ApiError(code, headers=error.headers))


async def gone_reply(request: Request[State], error: Exception) -> Response:
    """Nobody is there to read it; the status is for the log."""
    return Response(status_code=499)
