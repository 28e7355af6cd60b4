"""The wallet as its owner reads it, and the payment processor's webhook."""

import re

from starlette.requests import Request
from starlette.responses import Response

from svc.billing import usage, wallet
from svc.db import Page
from svc.errors import ApiError
from svc.server.bodies import read_body
from svc.server.body_budget import MIB
from svc.server.gate import Caller
from svc.server.state import State
from svc.server.web import add_log_fields, listing, page_after, page_limit, reply

_DAY_SECONDS = 86_400


async def show_account(request: Request[State], caller: Caller) -> Response:
    found = await request.state.db.read(wallet.balances, caller.id)
    return reply({**found, "tier": caller.tier, "currency": "usd"})


async def list_ledger(request: Request[State], caller: Caller) -> Response:
    """Credits and debits, newest first, `?limit= ?after=`."""
    return listing(await request.state.db.read(wallet.ledger_page, caller.id, page_limit(request), page_after(request)), dict)


async def list_usage(request: Request[State], caller: Caller) -> Response:
    """`?days=` 1..90 (30): requests, tokens and cost per UTC day and model, newest first."""
    text = request.query_params.get("days", "30")
    if not re.fullmatch(r"[0-9]{1,4}", text) or not 1 <= int(text) <= 90:
        raise ApiError("invalid_value", "days must be a whole number from 1 to 90.", param="days")
    first_day = usage.day_of(request.state.clock() - (int(text) - 1) * _DAY_SECONDS)
    await request.state.engines.usage.flush()
    rows = await request.state.db.read(usage.usage_by_model, caller.id, first_day)
    return listing(Page(rows, has_more=False), dict)


async def webhook(request: Request[State]) -> Response:
    """The processor's event -> 200 once it is on disk with all it does; 400 without a valid signature, 503 if it is not."""
    state = request.state
    body = await read_body(request, MIB)
    signatures = request.headers.getlist("stripe-signature")
    receipt = await state.payments.deliver(state.db, signatures, body, state.clock())
    add_log_fields(request, event_type=receipt.event.type, credited=receipt.credited, reason=receipt.reason)
    return reply({"received": True, "credited": receipt.credited})
