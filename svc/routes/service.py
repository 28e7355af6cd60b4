"""What tells about the service itself: health, readiness, the interface document and the static pages (contract 10)."""

import hmac
import sqlite3
from pathlib import Path

import orjson
from starlette.requests import Request
from starlette.responses import Response

from svc.errors import ApiError
from svc.server.state import State
from svc.server.web import reply

STATIC = Path(__file__).parent.parent / "static"
# Pages run the scripts and styles of this origin and nothing else (faults.md, Browser).
PAGE_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}
_PAGES = {"/": "index.html", "/docs": "docs.html", "/password-reset": "password-reset.html"}
_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}


async def healthz(request: Request[State]) -> Response:
    """Alive."""
    return reply({"status": "ok"})


async def readyz(request: Request[State]) -> Response:
    """Ready when a write reaches the disk; else 503 `storage_unavailable`."""
    await request.state.db.write(_write_something)
    return reply({"status": "ready"})


def _write_something(tx: sqlite3.Connection) -> None:
    version = tx.execute("PRAGMA user_version").fetchone()[0]
    tx.execute(f"PRAGMA user_version = {version}")


async def metrics(request: Request[State]) -> Response:
    """Prometheus' counters: open in local posture, else with the operator's token alone."""
    state = request.state
    token = state.config.metrics_token
    given = request.headers.get("authorization", "").removeprefix("Bearer ")
    if token and not hmac.compare_digest(given.encode(), token.encode()):
        raise ApiError("invalid_api_key")
    if not token and not state.config.local_posture:
        raise ApiError("not_found", "The metrics are switched off here: SVC_METRICS_TOKEN switches them on.")
    gauges = {"svc_open_answers": len(state.drain), "svc_uptime_seconds": state.config.monotonic() - state.started_at}
    return Response(state.metrics.text(gauges), media_type="text/plain; version=0.0.4")


async def openapi(request: Request[State]) -> Response:
    """The interface document, with this server's address."""
    return reply(document(request.state.config.base_url))


def document(base_url: str) -> dict[str, object]:
    """`openapi.json` of the package with `base_url` as its server."""
    value: dict[str, object] = orjson.loads((STATIC / "openapi.json").read_bytes())
    return {**value, "servers": [{"url": base_url}]}


async def page(request: Request[State]) -> Response:
    content = (STATIC / _PAGES[request.url.path]).read_bytes()
    return Response(content, headers=PAGE_HEADERS, media_type="text/html; charset=utf-8")


async def static(request: Request[State]) -> Response:
    """A script or style sheet of the package."""
    file = STATIC / request.path_params["name"]
    if file.parent != STATIC or file.suffix not in _TYPES or not file.is_file():
        raise ApiError("not_found")
    return Response(file.read_bytes(), headers=PAGE_HEADERS, media_type=_TYPES[file.suffix])
