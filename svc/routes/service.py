"""What tells about the service itself: health, readiness and the interface document."""

import hmac
import sqlite3

import orjson
from starlette.requests import Request
from starlette.responses import Response

from svc.errors import ApiError
from svc.routes.pages import STATIC
from svc.server.state import State
from svc.server.web import reply


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
