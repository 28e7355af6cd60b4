"""The caller's wallet, and the payment processor's webhook."""

import re
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from svc import quota
from svc.auth import tokens
from svc.billing import usage, wallet
from svc.billing.payments import MICROS_PER_CENT, Receipt
from svc.db import Database
from svc.ids import day_of
from svc.routes.api_keys import API_KEY
from svc.routes.schemas.common import (
    CACHED_INPUT,
    COUNT,
    MICROS,
    MONTHLY_LIMIT,
    SPENT_THIS_MONTH,
    TIMESTAMP,
    example_id,
    id_of,
)
from svc.routes.user import contact_of
from svc.server.bodies import read_body
from svc.server.guards import Caller
from svc.server.interface import Answer, Content, Operation, Parameter, Refusal, paged
from svc.server.limits import MIB
from svc.server.streamed import CSV, csv_table, streamed
from svc.server.web import Request, add_log_fields, page_after, read_page
from svc.shapes import anything, boolean, integer, json_object, list_of, mapping, nullable, one_of, string, whole

describes = partial(Operation, "Wallet")
_BILLING_ACCOUNT = json_object(
    "BillingAccount",
    wallet_balance_micros=COUNT.about("The balance in micros (millionths of a US dollar).", 4999989),
    held_micros=COUNT.about("The part that is held for requests in progress."),
    available_micros=COUNT.about("The balance without the held part.", 4999989),
    allowance_micros=COUNT.about("The monthly allowance of the account's group. 0 means none.", 20000000),
    allowance_due_micros=COUNT.about("What the next paid request adds of the allowance."),
    allowance_renews_at=nullable(TIMESTAMP).about("When the next month begins, in UTC. Null means no allowance."),
    monthly_limit_micros=MONTHLY_LIMIT,
    spent_this_month_micros=SPENT_THIS_MONTH,
    key_with_least_left=nullable(API_KEY).about("The API key of whose limit the least is left. Null: none has one."),
    stored_bytes=COUNT.about(
        "The size of the account's texts, names and files, and 256 bytes for each of them.", 48211
    ),
    limit_bytes=COUNT.about("The most that the account may store. Above it: 413 `quota_exceeded`.", 1073741824),
    tier=one_of("free", "pro").about(example="pro"),
    currency=one_of("usd"),
    payments=one_of("stripe", "sandbox", "none").about("The payment processor. `sandbox` uses test money."),
    contact=nullable(string).about("Whom to ask for more funds, in the operator's words.", "it-help@example.com"),
)
LEDGER_ENTRY = json_object(
    "LedgerEntry",
    id=id_of("led"),
    kind=one_of("credit", "debit").about(example="debit"),
    amount_micros=whole.about("Positive for a credit, negative for a debit.", -11),
    balance_after_micros=COUNT.about("The balance after this entry.", 4999989),
    description="Chat",
    reference=nullable(string).about("The related object, for example a checkout."),
    model=nullable(string).about(example="builtin/assistant-paid"),
    input_tokens=nullable(COUNT).about(example=6),
    cached_input_tokens=nullable(COUNT).about(f"{CACHED_INPUT} Null for a call of an earlier version.", 0),
    output_tokens=nullable(COUNT).about(example=5),
    request_id=nullable(string).about("The request that was paid.", "req_4fGk2mXq9TzLw8RbYc1VdN"),
    key_id=nullable(string).about("The API key of that request. Null means a session.", example_id("key")),
    created_at=TIMESTAMP,
)
_DAY = json_object(
    "Day",
    id=string.about("A value for `after`: the day and the model, or the day and the key.", "2026-09-21:builtin/echo"),
    day=string.about("The day in UTC.", "2026-09-21", format="date"),
    requests=whole.about("The number of model calls; an agent run has one for each step.", 1, minimum=1),
    input_tokens=6,
    output_tokens=5,
    cost_micros=MICROS.about(example=11),
    cached_input_tokens=COUNT.about(CACHED_INPUT, 0),
)
_USAGE_DAY = json_object("UsageDay", "The use of one model on one day.", _DAY, model="builtin/echo")
_USAGE_DAY_OF_KEY = json_object(
    "UsageDayOfKey",
    "The use of one API key on one day.",
    _DAY,
    key_id=nullable(string).about("The API key, which may be deleted. Null means sessions."),
)
_USAGE = json_object(
    "Usage",
    object=one_of("list"),
    data=anything.about(
        "By day and model, or by day and key. Newest first.",
        [_USAGE_DAY.example],
        anyOf=[list_of(_USAGE_DAY), list_of(_USAGE_DAY_OF_KEY)],
    ),
    has_more=boolean.about("Whether there are more rows.", False),
)
_USAGE_CSV = string.about(
    "A header and a line for each row. A cell that a spreadsheet would take as a formula begins with an apostrophe.",
    "id,day,model,requests,input_tokens,output_tokens,cost_micros,cached_input_tokens\n",
)
_WEBHOOK_RECEIPT = json_object(
    "WebhookReceipt",
    received=boolean.about(const=True),
    credited=boolean.about("Whether this delivery credited a wallet."),
)
_PAYMENT_EVENT = json_object(
    "PaymentEvent", "An event of Stripe.", id=string.optional(), type=string.optional(), data=mapping.optional()
).with_others()
_DAY_SECONDS = 86_400
_DAYS = integer(1, 90).about(default=30)
_FORMAT = Parameter("format", "The format of the answer.", one_of("json", "csv").about(default="json"), default="json")
_BY = Parameter("by", "Count by model or by API key.", one_of("model", "key").about(default="model"), default="model")


@describes(
    "Show the wallet",
    "Funds are added in the browser, at `/checkout`. A token cannot do it.",
    answer=Answer("The wallet.", _BILLING_ACCOUNT),
)
async def get_billing_account(request: Request, caller: Caller) -> object:
    state = request.state
    found, stored = await state.db.read(wallet.balances, caller.id), await state.db.read(quota.stored, caller.id)
    allowance_micros = caller.group.allowance_micros if caller.group else 0
    allowance = await state.db.read(wallet.allowance, caller.id, allowance_micros, state.clock())
    limit = await state.db.read(wallet.limit_of_account, caller.id, state.clock())
    key = await state.db.read(tokens.with_least_left, caller.id, state.clock())
    rest = {"tier": caller.tier, "currency": "usd", "payments": state.payments.mode, "contact": contact_of(state)}
    return {**found, **allowance, **limit, "key_with_least_left": key, **stored._asdict(), **rest}


@describes("List credits and debits", answer=paged("A page of the ledger.", "Ledger", LEDGER_ENTRY))
async def list_ledger(request: Request, caller: Caller) -> object:
    return await read_page(request, wallet.LEDGER.page, caller.id)


@describes(
    "List the usage by day",
    "By model, or by API key. As CSV it has the same columns.",
    parameters=[
        _FORMAT,
        Parameter("days", "The number of days, including today.", _DAYS, 30),
        _BY,
        Parameter("after", "The id of the last item of the previous page.", string, "2026-09-21:builtin/echo"),
    ],
    answer=Answer(
        "Up to 10,000 rows. While `has_more` is true, ask again with `after`. CSV has all rows.",
        contents={"application/json": Content(_USAGE), "text/csv": Content(_USAGE_CSV)},
    ),
    errors=[
        Refusal(
            "invalid_value",
            "days must be an integer from 1 to 90.",
            "days",
            when="`days` is not from 1 to 90, or `after` is not an item of this list.",
        )
    ],
)
async def list_usage(request: Request, caller: Caller) -> object:
    sent = request.query_params.get("days", "30")
    days = _DAYS.check(int(sent) if re.fullmatch(r"[0-9]{1,4}", sent) else sent, "days")
    state, by, as_csv = request.state, _BY.of(request), _FORMAT.of(request) == "csv"
    first_day = day_of(state.clock() - (days - 1) * _DAY_SECONDS)
    await state.engines.usage.flush()
    if not as_csv:
        return await state.db.heavy_read(usage.usage_page, caller.id, first_day, page_after(request), by=by)
    columns = ("id", "day", "key_id" if by == "key" else "model", *usage.COUNTS)
    pages = _usage_pages(state.db, caller.id, first_day, page_after(request), by)
    return await streamed(request, csv_table(columns, pages), CSV)


async def _usage_pages(
    db: Database, account_id: str, first_day: str, after: str | None, by: str
) -> AsyncIterator[list[dict[str, Any]]]:
    while True:
        page = await db.heavy_read(usage.usage_page, account_id, first_day, after, by=by)
        yield page.items
        if not page.has_more:
            return
        after = page.items[-1]["id"]


@describes(
    "Receive an event of the payment processor",
    "Only for the processor. The credit is on disk before the 200. A repeated event credits nothing.",
    body=_PAYMENT_EVENT,
    any_type=True,
    parameters=[
        Parameter(
            "Stripe-Signature",
            "`t=…,v1=…`: HMAC-SHA256 of `t.body`.",
            string,
            "t=1790000000,v1=5257a869e7ecebeda32affa62cdca3fa51cad7e77a0e56ff536d0ce8e108d8bd",
            where="header",
            required=True,
        )
    ],
    answer=Answer("The event is stored.", _WEBHOOK_RECEIPT),
    errors=[
        Refusal(
            "invalid_value",
            "Send one valid Stripe-Signature header for this body.",
            "stripe-signature",
            "The signature is missing, wrong, or older than 300 s.",
        )
    ],
)
async def receive_payment_event(request: Request) -> object:
    state = request.state
    receipt = await deliver(request, request.headers.getlist("stripe-signature"), await read_body(request, MIB))
    if receipt.needs_operator:
        state.metrics.count_payment(receipt.event.type, known=receipt.checkout is not None)
    if receipt.event.returned_cents is not None and receipt.reason != "repeated":
        state.log(
            "payments",
            level="warning",
            message="a payment was refunded or disputed",
            event_type=receipt.event.type,
            checkout=receipt.checkout and receipt.checkout.id,
            amount_micros=receipt.event.returned_cents * MICROS_PER_CENT,
            currency=receipt.event.currency,
            next=receipt.todo,
        )
    return {"received": True, "credited": receipt.reason is None}


async def deliver(request: Request, signatures: list[str], body: bytes) -> Receipt:
    """Store an event and what it credits, and log it."""
    state = request.state
    receipt = await state.payments.deliver(state.db, signatures, body, state.clock())
    add_log_fields(request, event_type=receipt.event.type, credited=receipt.reason is None, reason=receipt.reason)
    return receipt
