"""What every handler imports: the request, and its answer as JSON, as a list or as an error. And the route table."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from operator import methodcaller
from typing import Any, TypeVar

import orjson
from starlette.responses import Response as Response
from starlette.routing import Match, Route
from starlette.types import Receive, Scope, Send

from svc.errors import ApiError, anthropic_error, in_responses_format
from svc.server.absent import not_found
from svc.server.http.head import METHODS
from svc.server.state import Request as Request
from svc.shapes import integer

Endpoint = Callable[[Request], Awaitable[Response | None]]  # None is the status 204
RouteRow = tuple[str, str, Endpoint]
T = TypeVar("T")
DEFAULT_LIMIT, MOST_ITEMS = 20, 100
PAGE_LIMIT = integer(1, MOST_ITEMS)
_JSON_HEADERS = ((b"content-type", b"application/json"), (b"cache-control", b"no-store"))


class Routes:
    """The table of endpoints, as Starlette's routes. Paths without parameters are found in a dictionary."""

    def __init__(self, table: Iterable[RouteRow]) -> None:
        """Raises TypeError if a handler does not take the ids in its path."""
        self.all = [Route(path, endpoint, methods=methods.split(", ")) for methods, path, endpoint in table]
        for route in self.all:
            operation = vars(route.endpoint).get("operation")  # that @describes declares
            if operation and operation.ids != set(route.param_convertors):
                raise TypeError(f"{operation.name} takes {sorted(operation.ids)} from the path {route.path}")
        exact = [route for route in self.all if not route.param_convertors]
        self._patterns = [route for route in self.all if route.param_convertors]
        self._exact = {(method, route.path): route for route in exact for method in route.methods or ()}

    def endpoint(self, scope: Scope) -> Endpoint:
        """Return the endpoint of a request, and put its `route` and `path_params` into `scope`. Raises ApiError."""
        route = self._exact.get((scope["method"], scope["path"]))
        if route is None:
            if scope["path"] == "*":  # OPTIONS is the only method of this target
                return _show_methods
            scope["routes"] = self
            matches = ((route, *route.matches(scope)) for route in self._patterns)
            route, _, found = next((match for match in matches if match[1] is Match.FULL), (None, None, {}))
            if route is None:
                raise self.refusal(scope)
            scope.update(found)
        scope["route"] = route
        endpoint: Endpoint = route.endpoint
        return endpoint

    def refusal(self, scope: Scope) -> ApiError:
        """Return `method_not_allowed` if the path has other methods, else `not_found`."""
        others = [route for route in self.all if route.matches(scope)[0] is Match.PARTIAL]
        if not others:
            return not_found(scope["path"])
        scope.setdefault("route", others[0])
        own = [route for route in others if route.path == others[0].path]
        allowed = sorted({method for route in own for method in route.methods or ()})
        return ApiError("method_not_allowed", headers={"allow": ", ".join(allowed)})


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


def page_limit(request: Request) -> int:
    """Return the query parameter `limit`, at most 100. Raises ApiError `invalid_value` unless it is positive."""
    sent = request.query_params.get("limit", str(DEFAULT_LIMIT))
    found = re.fullmatch(r"0*([1-9][0-9]{0,2})[0-9]*", sent)  # more digits only make it larger
    return PAGE_LIMIT.check(min(int(found[1]), MOST_ITEMS) if found else sent, "limit")


def page_after(request: Request) -> str | None:
    """Return the query parameter `after`, the id of the item before the page, or None for the first page."""
    return request.query_params.get("after")


async def read_page(request: Request, query: Callable[..., T], *args: str | None, **filters: str | int | None) -> T:
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
    if path == "/v1/responses":
        error = in_responses_format(error)
    body = anthropic_error(error, request_id) if in_anthropic_format(path) else error.body()
    return reply(body, error.status, error.headers)
