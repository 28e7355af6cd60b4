"""Schemas of the wallet, its ledger and the checkout."""

from svc.routes.schemas.common import ID, TIMESTAMP
from svc.server.interface import array, boolean, choice, integer, or_null, page_of, record, string

BILLING_ACCOUNT = record(
    "BillingAccount",
    {
        "wallet_balance_micros": integer("What the wallet has, in millionths of a US dollar.", minimum=0),
        "held_micros": integer("Of that, held for requests under way.", minimum=0),
        "available_micros": integer("The rest.", minimum=0),
        "stored_bytes": integer("What the account stores: its texts, names and files, and 256 bytes for each.", minimum=0),
        "limit_bytes": integer("What it may store; beyond that, 413 `quota_exceeded`.", minimum=0),
        "tier": choice("free", "pro"),
        "currency": choice("usd"),
        "payments": choice(
            "stripe", "sandbox", "none", description="Who takes payments here; `sandbox` is test money, none of it is real."
        ),
    },
    example={
        "wallet_balance_micros": 4999989,
        "held_micros": 0,
        "available_micros": 4999989,
        "stored_bytes": 48211,
        "limit_bytes": 1073741824,
        "tier": "pro",
        "currency": "usd",
        "payments": "stripe",
    },
)
LEDGER_ENTRY = record(
    "LedgerEntry",
    {
        "id": ID,
        "kind": choice("credit", "debit"),
        "amount_micros": integer("Positive for a credit, negative for a debit."),
        "balance_after_micros": integer("The balance after it.", minimum=0),
        "description": string(),
        "reference": or_null(string("What it belongs to, for instance a checkout.")),
        "model": or_null(string()),
        "input_tokens": or_null(integer(minimum=0)),
        "output_tokens": or_null(integer(minimum=0)),
        "request_id": or_null(string("The request that it paid for.")),
        "key_id": or_null(string("The API key of that request; null for a session.")),
        "created_at": TIMESTAMP,
    },
    example={
        "id": "led_01m3250v3wz2m9rvq8n4d6y1k7",
        "kind": "debit",
        "amount_micros": -11,
        "balance_after_micros": 4999989,
        "description": "Chat",
        "reference": None,
        "model": "builtin/assistant-paid",
        "input_tokens": 6,
        "output_tokens": 5,
        "request_id": "req_4fGk2mXq9TzLw8RbYc1VdN",
        "key_id": "key_01m3250v3v30wwksg0v4wcfp7p",
        "created_at": "2026-09-21T14:13:20.123Z",
    },
)
LEDGER = page_of(LEDGER_ENTRY, "Ledger")
_DAY = string("In UTC.", format="date")
_USAGE_ID = string("What `after` takes: the day and the model, or the key.")
_COUNTS = {
    "requests": integer(minimum=1),
    "input_tokens": integer(minimum=0),
    "output_tokens": integer(minimum=0),
    "cost_micros": integer("In millionths of a US dollar.", minimum=0),
}
USAGE_DAY = record(
    "UsageDay",
    {
        "id": _USAGE_ID,
        "day": _DAY,
        "model": string(),
        **_COUNTS,
    },
    description="What one model was used for on one day.",
    example={
        "id": "2026-09-21:builtin/assistant-paid",
        "day": "2026-09-21",
        "model": "builtin/assistant-paid",
        "requests": 1,
        "input_tokens": 6,
        "output_tokens": 5,
        "cost_micros": 11,
    },
)
USAGE_DAY_OF_KEY = record(
    "UsageDayOfKey",
    {"id": _USAGE_ID, "day": _DAY, "key_id": or_null(string("The API key, perhaps deleted since; null: sessions.")), **_COUNTS},
    description="What one API key was used for on one day.",
    example={
        "id": "2026-09-21:key_01m3250v3v30wwksg0v4wcfp7p",
        "day": "2026-09-21",
        "key_id": "key_01m3250v3v30wwksg0v4wcfp7p",
        "requests": 1,
        "input_tokens": 6,
        "output_tokens": 5,
        "cost_micros": 11,
    },
)
USAGE = record(
    "Usage",
    {
        "object": choice("list"),
        "data": {
            "description": "By day and model, or by day and key; newest first.",
            "anyOf": [array(USAGE_DAY), array(USAGE_DAY_OF_KEY)],
        },
        "has_more": boolean("Whether more rows follow."),
    },
    example={"object": "list", "data": [USAGE_DAY.example], "has_more": False},
)
WEBHOOK_RECEIPT = record(
    "WebhookReceipt",
    {"received": boolean(const=True), "credited": boolean("Whether this delivery filled a wallet.")},
    example={"received": True, "credited": True},
)
PAYMENT_EVENT = record(
    "PaymentEvent",
    {"id": string(), "type": string(), "data": {"type": "object", "additionalProperties": True}},
    required=(),
    description="An event of Stripe.",
    additionalProperties=True,
    example={"id": "evt_1", "type": "checkout.session.completed", "data": {"object": {}}},
)
CHECKOUT_FORM = record(
    "CheckoutForm", {"amount": string("US dollars, 5.00 to 10000.00 in whole cents.")}, example={"amount": "25.00"}
)
CHECKOUT_SIGN_IN_FORM = record(
    "CheckoutSignInForm",
    {"email": string(), "password": string()},
    example={"email": "ada@example.com", "password": "correct horse battery"},
)
