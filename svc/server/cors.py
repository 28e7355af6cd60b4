"""CORS for /v1: pages of other origins may send requests, without credentials."""

from collections.abc import Collection, Mapping
from typing import Any

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import Scope

from svc.errors import ApiError
from svc.server.web import refusal

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
    "x-service-ignored-tools",
    "x-audio-seconds",
    "x-audio-truncated",
)
_VARY = (b"vary", b"Origin")
_VARY_ALONE = (_VARY,)
_EXPOSED = (b"access-control-expose-headers", ", ".join(EXPOSED_HEADERS).encode())


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
