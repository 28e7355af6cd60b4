"""What administrators see of the whole service: spending, state, and the audit log."""

import asyncio
import re

from starlette.responses import Response

from svc import audit
from svc.admin import health
from svc.billing import usage
from svc.ids import timestamp
from svc.routes.admin import describes
from svc.routes.schemas.admin import AUDIT_ENTRY, STATUS, USAGE, USAGE_CSV
from svc.server import gauges
from svc.server.gate import Caller
from svc.server.interface import Answer, Content, Refusal, paged, parameter
from svc.server.state import Request
from svc.server.status import now
from svc.server.web import listing, page_after, page_limit, reply
from svc.shapes import matching, one_of
from svc.spreadsheet import csv_text

_MONTH = matching(re.compile("20[0-9]{2}-(?:0[1-9]|1[0-2])"), "a month such as 2026-11", 7)
_BY = one_of(*usage.KINDS)
_TIMES = {
    "last_backup_at": "svc_last_backup_timestamp_seconds",
    "certificate_expires_at": "svc_certificate_expiry_timestamp_seconds",
}
_COLUMNS = ("key", "requests", "input_tokens", "output_tokens", "cost_micros")


@describes(
    "Show the spending of a month",
    "Of all accounts, also deleted ones, in UTC. The costs add up to the ledger's debits for calls. The most expensive row comes "
    "first, but days in their order; at most 10,000 rows. With `Accept: text/csv` the rows are CSV.",
    parameters=[
        parameter("month", "query", "The month; by default the current one.", _MONTH, "2026-11"),
        parameter("by", "query", "What a row is; `user` by default.", _BY),
    ],
    answers={200: Answer("The spending.", contents={"application/json": Content(USAGE), "text/csv": Content(USAGE_CSV)})},
    errors=[Refusal("invalid_value", when="A parameter is wrong.")],
)
async def get_usage(request: Request, caller: Caller) -> Response:
    state, query = request.state, request.query_params
    month = _MONTH.check(query.get("month", usage.day_of(state.clock())[:7]), "month")
    by = _BY.check(query.get("by", "user"), "by")
    await state.engines.usage.flush()
    rows, total = await state.db.heavy_read(usage.of_month, month, by)
    if "text/csv" in request.headers.get("accept", ""):
        text = await asyncio.to_thread(csv_text, [_COLUMNS, *(tuple(map(row.get, _COLUMNS)) for row in rows)])
        return Response(text, headers={"cache-control": "no-store"}, media_type="text/csv; charset=utf-8")
    return reply({"object": "list", "month": month, "by": by, "data": rows, "total": total})


@describes(
    "Show the state of the service",
    "What `svc status` prints, and what `svc doctor` finds without asking other services.",
    answers={200: Answer("The state.", STATUS)},
)
async def get_status(request: Request, caller: Caller) -> Response:
    state = request.state
    found = now(state)
    measured = {name: value for name, labels, value in await gauges.readings(state) if not labels}
    return reply(
        {
            **{name: found[name] for name in ("version", "pid", "base_url", "started_at", "draining")},
            "gauges": measured,
            **await state.db.read(health.sums),
            **{name: timestamp(measured[gauge]) if measured.get(gauge) else None for name, gauge in _TIMES.items()},
            "providers": [
                {"name": name, "models": models, "answers": answers}
                for name, (models, answers) in state.models.catalog.providers().items()
            ],
            "groups": list(state.models.catalog.groups.by_name) if state.models.catalog.groups else [],
            "findings": [one._asdict() for one in await asyncio.to_thread(health.findings, state.config)],
        }
    )


@describes(
    "List the audit log",
    "What administrators and the operator changed. Rows are kept when an account is deleted, without the person's names.",
    answers=paged("A page of the log.", "AuditList", AUDIT_ENTRY),
)
async def list_audit(request: Request, caller: Caller) -> Response:
    return listing(await request.state.db.read(audit.audit_page, page_limit(request), page_after(request)), dict)
