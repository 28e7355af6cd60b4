"""Health, readiness, metrics and the interface document."""

import asyncio
import hmac
import re
import sqlite3
from collections.abc import Iterable
from functools import partial
from typing import Any

from svc.errors import ApiError
from svc.routes.schemas.common import STORAGE, TEXTS
from svc.server import status
from svc.server.interface import Answer, Content, Operation, Refusal, bearer, item_id
from svc.server.openapi import document as openapi_document
from svc.server.web import JsonResponse, Request, Response, RouteRow
from svc.shapes import json_object, mapping, one_of, string
from svc.version import VERSION

_INFO = {
    "title": "svc",
    "summary": "A self-hosted AI platform in one process.",
    "description": TEXTS / "document.md",
    "license": {"name": "MIT", "identifier": "MIT"},
}
# The path parameters that are ids of objects, each with the noun of the object and the prefix of the id.
_IDS = {
    name: item_id(name, noun, prefix)
    for name, noun, prefix in (
        ("account_id", "account", "user"),
        ("artifact_id", "artifact", "art"),
        ("conversation_id", "conversation", "conv"),
        ("import_id", "import", "imp"),
        ("key_id", "key", "key"),
        ("message_id", "message", "msg"),
        ("project_id", "project", "proj"),
        ("prompt_id", "prompt", "prm"),
        ("provider_id", "provider", "prov"),
        ("run_id", "run", "run"),
        ("share_id", "share", "shr"),
        ("tool_server_id", "tool server", "tsrv"),
        ("support_id", "support conversation", "sup"),
    )
}
describes = partial(Operation, "Service")
_METRICS = """\
# HELP svc_requests_total HTTP requests answered.
# TYPE svc_requests_total counter
svc_requests_total{method="GET",route="/healthz",status="200"} 2
"""
_HEALTH = json_object("Health", status=one_of("ok"), version=string.about("The version of the service.", VERSION))
_SWITCHED_OFF = Refusal(
    "not_found", "The metrics are off. The operator can set SVC_METRICS_TOKEN.", when="The metrics are off."
)


@describes(
    "Check that the service runs",
    "It also answers during a shutdown.",
    answer=Answer("The service runs.", _HEALTH),
)
async def get_health(request: Request) -> object:
    return {"status": "ok", "version": VERSION}


@describes(
    "Check that the service is ready",
    "It is ready if it can write to its storage.",
    answer=Answer("The service is ready.", json_object("Readiness", status=one_of("ready"))),
    errors=[STORAGE],
)
async def get_readiness(request: Request) -> object:
    await request.state.db.write(_write_something)
    return {"status": "ready"}


def _write_something(tx: sqlite3.Connection) -> None:
    version = tx.execute("PRAGMA user_version").fetchone()[0]
    tx.execute(f"PRAGMA user_version = {version}")


@describes(
    "Get metrics for Prometheus",
    "Without a token only if the service is reachable from this machine alone.",
    answer=Answer("The metrics.", contents={"text/plain": Content(string, {"metrics": _METRICS})}),
    errors=[Refusal("invalid_api_key", when="The operator's token is missing or wrong."), _SWITCHED_OFF],
    security=[None, bearer("metricsToken", "The operator's `SVC_METRICS_TOKEN`.")],
)
async def get_metrics(request: Request) -> Response:
    state = request.state
    token = state.config.metrics_token
    given = request.headers.get("authorization", "").removeprefix("Bearer ")
    if token and not hmac.compare_digest(given.encode(), token.encode()):
        raise ApiError("invalid_api_key")
    if not token and not state.config.local_posture:
        raise _SWITCHED_OFF.error()
    return Response(state.metrics.text(await status.readings(state)), media_type="text/plain; version=0.0.4")


@describes(
    "Get this document",
    "`servers` has this server's base URL.",
    answer=Answer("An OpenAPI 3.1 document.", mapping),
)
async def get_openapi(request: Request) -> Response:
    return JsonResponse(await asyncio.to_thread(request.state.interface))


def document(routes: Iterable[RouteRow], base_url: str) -> dict[str, Any]:
    tags = dict(re.findall(r"^## (.+)\n\n(.+)$", (TEXTS / "sections.md").read_text(), re.MULTILINE))
    return openapi_document(routes, {**_INFO, "version": VERSION}, tags, _IDS, TEXTS, base_url)
