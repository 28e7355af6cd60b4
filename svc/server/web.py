"""What every handler imports: the request, and its answer as JSON, as a list or as an error. And the route table."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from operator import methodcaller
from typing import Any, NamedTuple, TypeVar

import orjson
from starlette.responses import Response as Response
from starlette.routing import compile_path
from starlette.types import Receive, Scope, Send

from svc.db import Page
from svc.errors import ApiError, anthropic_error
from svc.server.head import METHODS
from svc.server.state import Request as Request
from svc.shapes import integer

Endpoint = Callable[[Request], Awaitable[Response | None]]  # None is the status 204
Row = tuple[str, str, Endpoint]
T = TypeVar("T")
DEFAULT_LIMIT, MOST_ITEMS = 20, 100
PAGE_LIMIT = integer(1, MOST_ITEMS)
_JSON_HEADERS = ((b"content-type", b"application/json"), (b"cache-control", b"no-store"))


class Route(NamedTuple):
    """A path, which may have parameters in braces, and its endpoints by method."""

    path: str
    regex: re.Pattern[str]
    endpoints: dict[str, Endpoint]


class Routes:
    """The table of endpoints. Paths without parameters are found in a dictionary."""

    def __init__(self, table: Iterable[Row]) -> None:
        by_path: dict[str, dict[str, Endpoint]] = {}
        for method, path, endpoint in table:
            endpoints = by_path.setdefault(path, {})
            endpoints[method] = endpoint
            if method == "GET":
                endpoints["HEAD"] = endpoint
        self._routes = [Route(path, compile_path(path)[0], endpoints) for path, endpoints in by_path.items()]
        exact = [route for route in self._routes if "{" not in route.path]
        self._exact = {(method, route.path): route for route in exact for method in route.endpoints}

    def endpoint(self, scope: Scope) -> Endpoint:
        """Return the endpoint of a request, and put its `route` and `path_params` into `scope`. Raises ApiError."""
        method, path = scope["method"], scope["path"]
        exact = self._exact.get((method, path))
        if exact is not None:
            scope["route"] = exact
            return exact.endpoints[method]
        if path == "*":  # OPTIONS is the only method of this target
            return _show_methods
        scope["routes"] = self
        for route in self._routes:
            if method in route.endpoints and (found := route.regex.match(path)):
                scope["route"], scope["path_params"] = route, found.groupdict()
                return route.endpoints[method]
        raise self.refusal(scope)

    def refusal(self, scope: Scope) -> ApiError:
        """Return `method_not_allowed` if the path has other methods, else `not_found`."""
        for route in self._routes:
            if scope["method"] not in route.endpoints and route.regex.match(scope["path"]):
                scope.setdefault("route", route)
                return ApiError("method_not_allowed", headers={"allow": ", ".join(sorted(route.endpoints))})
        return ApiError("not_found")


async def _show_methods(request: Request) -> Response:
    return Response(status_code=204, headers={"allow": METHODS})


class JsonResponse(Response):
    """An answer that is `body`, written JSON."""

    def __init__(self, body: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        self.status_code = status
        self.body = body
        self.raw_headers = [(b"content-length", b"%d" % len(body)), *_JSON_HEADERS]
        if headers:
            self.raw_headers += [
                (name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()
            ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body})


def reply(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return `value` as JSON. An object in it is written as its method `as_json` returns it."""
    return JsonResponse(orjson.dumps(value, default=methodcaller("as_json")), status, headers)


def no_content() -> Response:
    return Response(status_code=204)


def listing(page: Page[Any]) -> Response:
    return reply({"object": "list", "data": page.items, "has_more": page.has_more})


def page_limit(request: Request) -> int:
    """Return the query parameter `limit`, at most 100. Raises ApiError `invalid_value` unless it is positive."""
    sent = request.query_params.get("limit", str(DEFAULT_LIMIT))
    found = re.fullmatch(r"0*([1-9][0-9]{0,2})[0-9]*", sent)  # more digits only make it larger
    return PAGE_LIMIT.check(min(int(found[1]), MOST_ITEMS) if found else sent, "limit")


def page_after(request: Request) -> str | None:
    """Return the query parameter `after`, the id of the item before the page, or None for the first page."""
    return request.query_params.get("after")


async def read_page(request: Request, query: Callable[..., T], *args: str | None, **filters: str | None) -> T:
    """Return the page that `?limit=` and `?after=` select, read by `query(conn, *args, limit, after, **filters)`."""
    return await request.state.db.read(query, *args, page_limit(request), page_after(request), **filters)


def add_log_fields(request: Request, **fields: Any) -> None:
    """Add fields to the request's log line: ids and numbers, never content."""
    request.context.log_fields.update(fields)


# --- errors


def in_anthropic_format(path: str) -> bool:
    """Return whether errors on `path` have the shape of Anthropic's API, and answers the header `request-id`."""
    return path == "/v1/messages" or path.startswith("/v1/messages/")


def refusal(error: ApiError, path: str = "", request_id: str = "") -> Response:
    body = anthropic_error(error, request_id) if in_anthropic_format(path) else error.body()
    return reply(body, error.status, error.headers)
