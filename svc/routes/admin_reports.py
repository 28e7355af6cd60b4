"""What administrators read: the spending of all accounts, and the audit log. Each list is also CSV, which is whole."""

import math
import re
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any

import orjson

from svc import audit
from svc.auth import sign_ins
from svc.billing import spending
from svc.billing.spending import Period
from svc.db import Database
from svc.errors import invalid_value
from svc.ids import day_of
from svc.months import begin_of_day, month_of
from svc.routes.schemas.common import CACHED_INPUT, COUNT, TIMESTAMP, WRONG_PARAMETER, example_id, id_of
from svc.server.guards import Caller
from svc.server.interface import Answer, Content, Operation, Parameter, paged
from svc.server.streamed import CSV, csv_table, streamed
from svc.server.web import Request, page_after, page_limit
from svc.shapes import Shape, boolean, json_object, list_of, mapping, matching, nullable, one_of, string, text
from svc.tables import Table

describes = partial(Operation, "Administration")
_ID = example_id("user")
_AUDIT_ENTRY = json_object(
    "AuditEntry",
    id=id_of("aud"),
    at=TIMESTAMP,
    actor=string.about("The id of the administrator, or `operator` for a command.", _ID),
    action=string.about("What was done.", "user.change"),
    subject=nullable(string).about("The id of the account that was changed, or another name.", _ID),
    details=mapping.about("What changed, without secrets.", {"email": "ada@example.com", "admin": True}),
)
_SIGN_IN = json_object(
    "SignIn",
    id=id_of("sgn"),
    at=TIMESTAMP,
    way=string.about("`password`, `link`, or the name of an identity provider.", "password"),
    code=string.about("`ok`, or why it was refused.", "ok"),
    account_id=nullable(string).about("The account, or null for a refused sign-in without one.", _ID),
    email=nullable(string).about("The present address of that account.", "ada@example.com"),
)
_USAGE_ROW = json_object(
    "SpendingRow",
    "The sums of one kind, with its name in `key`. With two kinds, each has its name in its own field.",
    key=string.about("An email address, a model, a group, the id of an API key, or a day.").optional(),
    user=string.about("An email address, or `(deleted user_…)`, the id of a deleted account.").optional(),
    model=string.optional(),
    group=string.about("A group at the time of the calls, or `(no group)`.").optional(),
    day=string.about("A day in UTC.", format="date").optional(),
    requests=COUNT,
    input_tokens=COUNT,
    output_tokens=COUNT,
    cost_micros=COUNT.about("In micros."),
    cached_input_tokens=COUNT.about(CACHED_INPUT),
)
_USAGE = json_object(
    "Spending",
    object=one_of("list"),
    month=nullable(string).about("The month, or null for a range of days.", "2026-11"),
    by="user",
    data=list_of(_USAGE_ROW),
    total=_USAGE_ROW.about("The sum of all rows, also of those that are not in `data`."),
    has_more=boolean.about("Whether there are rows that are not in `data`. CSV has all of them.", False),
)
_CSV = string.about(
    "A header and a line for each row. A cell that a spreadsheet would take as a formula begins with an apostrophe.",
    "key,requests,input_tokens,output_tokens,cost_micros,cached_input_tokens\n",
)
_DAY = matching(re.compile("20[0-9]{2}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"), "a day such as 2026-11-30", 10)
_MONTH_OF_YEAR = matching(re.compile("20[0-9]{2}-(?:0[1-9]|1[0-2])"), "a month such as 2026-11", 7)
MONTH = Parameter("month", "The month; by default the current one.", _MONTH_OF_YEAR, "2026-11")
_FROM = Parameter("from", "The first day, in UTC. By default the first of the month of `to`.", _DAY, "2026-11-01")
_TO = Parameter("to", "The last day, in UTC. By default today.", _DAY, "2026-11-30")
_BY = Parameter("by", "One or two kinds, which a row sums up.", spending.BY, "user,model", default="user")
_LOG_DAYS = (
    Parameter("from", "The first day, in UTC.", _DAY, "2026-11-01"),
    Parameter("to", "The last day, in UTC.", _DAY, "2026-11-30"),
)
_AUDIT_FILTERS = (
    Parameter("action", "Only this action.", text(100), "user.change"),
    Parameter("actor", "Only changes by this administrator's id, or by `operator`.", text(100), _ID),
    Parameter("subject", "Only changes of this account's id, or of this other name.", text(200), _ID),
)
_SIGN_IN_FILTERS = (
    Parameter("account_id", "Only of this account.", text(100), _ID),
    Parameter("way", "Only in this way: `password`, `link`, or the name of an identity provider.", text(63), "google"),
    Parameter("code", "Only with this result: `ok`, or the code of a refusal.", text(100), "invalid_credentials"),
)
_CSV_PAGE = 1_000
_DAY_SECONDS = 86_400


def _or_csv(answer: Answer) -> Answer:
    """Return the answer of a list, which is also CSV."""
    assert answer.shape
    return answer._replace(shape=None, contents={"application/json": Content(answer.shape), "text/csv": Content(_CSV)})


@describes(
    "Show the spending of a month",
    parameters=[MONTH, _FROM, _TO, _BY],
    answer=_or_csv(Answer("The spending.", _USAGE)),
    errors=[WRONG_PARAMETER],
)
async def get_usage(request: Request, caller: Caller) -> object:
    db, kinds = request.state.db, _BY.of(request).split(",")
    month, period = _period(request)
    await request.state.engines.usage.flush()
    if _wants_csv(request):
        return await streamed(request, csv_table(spending.columns_of(kinds), _slices(db, period, kinds)), CSV)
    rows, total, has_more = await db.heavy_read(spending.dearest, period, kinds)
    by = ",".join(kinds)
    return {"object": "list", "month": month, "by": by, "data": rows, "total": total, "has_more": has_more}


def _period(request: Request) -> tuple[str | None, Period]:
    """Return the days that the query selects, and the month if it is one. Raises ApiError `invalid_value`."""
    month, first, last = MONTH.of(request), _FROM.of(request), _TO.of(request)
    if first is None and last is None:
        month = month or month_of(request.state.clock())
        return month, spending.month_period(month)
    if month is not None:
        raise invalid_value("Use either month, or from and to.", "month")
    return None, spending.period_of(first, last, day_of(request.state.clock()))


async def _slices(db: Database, period: Period, kinds: list[str]) -> AsyncIterator[Sequence[dict[str, Any]]]:
    place: spending.Place | None = None
    while True:
        rows, place = await db.heavy_read(spending.rows_after, period, kinds, place)
        yield rows
        if place is None:
            return


def _wants_csv(request: Request) -> bool:
    return "text/csv" in request.headers.get("accept", "")


@describes(
    "List the audit log",
    "What administrators and the operator changed. Rows are kept when an account is deleted, without the person's "
    "names. With `Accept: text/csv` all selected rows are CSV.",
    parameters=[*_LOG_DAYS, *_AUDIT_FILTERS],
    answer=_or_csv(paged("A page of the log.", "AuditList", _AUDIT_ENTRY)),
    errors=[WRONG_PARAMETER],
)
async def list_audit(request: Request, caller: Caller) -> object:
    return await _log(request, audit.TABLE, _AUDIT_ENTRY, _AUDIT_FILTERS)


@describes(
    "List the sign-ins",
    "Of the last 90 days, also refused ones. The address that was typed is not stored: a refused sign-in without an "
    "account has no name. With `Accept: text/csv` all selected rows are CSV.",
    parameters=[*_LOG_DAYS, *_SIGN_IN_FILTERS],
    answer=_or_csv(paged("A page of the sign-ins.", "SignInList", _SIGN_IN)),
    errors=[WRONG_PARAMETER],
)
async def list_sign_ins(request: Request, caller: Caller) -> object:
    return await _log(request, sign_ins.TABLE, _SIGN_IN, _SIGN_IN_FILTERS)


async def _log(
    request: Request, table: Table[dict[str, Any]], entry: Shape[dict[str, Any]], filters: Sequence[Parameter]
) -> object:
    """Return the page or the CSV of a log that the query selects."""
    narrowed: dict[str, Any] = {one.name: one.of(request) for one in filters}
    first, last = (one.of(request) for one in _LOG_DAYS)
    if first is not None or last is not None:
        begins = begin_of_day(first, "from") if first else 0.0
        narrowed["at"] = (begins, begin_of_day(last, "to") + _DAY_SECONDS if last else math.inf)
    db = request.state.db
    if _wants_csv(request):
        return await streamed(request, csv_table(list(entry.example), _log_pages(db, table, narrowed)), CSV)
    return await db.heavy_read(table.page, None, page_limit(request), page_after(request), **narrowed)


async def _log_pages(
    db: Database, table: Table[dict[str, Any]], narrowed: dict[str, Any]
) -> AsyncIterator[list[dict[str, Any]]]:
    after: str | None = None
    while True:
        page = await db.heavy_read(table.page, None, _CSV_PAGE, after, **narrowed)
        yield [
            {name: orjson.dumps(value).decode() if isinstance(value, dict) else value for name, value in row.items()}
            for row in page.items
        ]
        if not page.has_more:
            return
        after = page.items[-1]["id"]
