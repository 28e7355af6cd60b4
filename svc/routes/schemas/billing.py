"""Shapes of the wallet, its ledger and the checkout."""

from svc.billing.payments import AMOUNT_RULE
from svc.routes.schemas.common import COUNT, MICROS, TIMESTAMP, example_id, id_of
from svc.shapes import anything, boolean, json_object, list_of, mapping, nullable, one_of, open_object, optional, string, whole

BILLING_ACCOUNT = json_object(
    "BillingAccount",
    wallet_balance_micros=COUNT.about("The balance in micros (millionths of a US dollar).", 4999989),
    held_micros=COUNT.about("The part that is held for requests in progress."),
    available_micros=COUNT.about("The balance without the held part.", 4999989),
    allowance_micros=COUNT.about("The monthly allowance of the account's group. 0 means none.", 20000000),
    allowance_due_micros=COUNT.about("What the next paid request adds of the allowance."),
    allowance_renews_at=nullable(TIMESTAMP).about("When the next month begins, in UTC. Null means no allowance."),
    stored_bytes=COUNT.about("The size of the account's texts, names and files, and 256 bytes for each of them.", 48211),
    limit_bytes=COUNT.about("The most that the account may store. Above it: 413 `quota_exceeded`.", 1073741824),
    tier=one_of("free", "pro").about(example="pro"),
    currency=one_of("usd"),
    payments=one_of("stripe", "sandbox", "none").about("The payment processor. `sandbox` uses test money."),
)
LEDGER_ENTRY = json_object(
    "LedgerEntry",
    id=id_of("led"),
    kind=one_of("credit", "debit").about(example="debit"),
    amount_micros=whole.about("Positive for a credit, negative for a debit.", -11),
    balance_after_micros=COUNT.about("The balance after this entry.", 4999989),
    description=string.about(example="Chat"),
    reference=nullable(string).about("The related object, for example a checkout."),
    model=nullable(string).about(example="builtin/assistant-paid"),
    input_tokens=nullable(COUNT).about(example=6),
    output_tokens=nullable(COUNT).about(example=5),
    request_id=nullable(string).about("The request that was paid.", "req_4fGk2mXq9TzLw8RbYc1VdN"),
    key_id=nullable(string).about("The API key of that request. Null means a session.", example_id("key")),
    created_at=TIMESTAMP,
)
_DAY = json_object(
    "Day",
    id=string.about("A value for `after`: the day and the model, or the day and the key.", "2026-09-21:builtin/echo"),
    day=string.about("The day in UTC.", "2026-09-21", format="date"),
    requests=whole.about(example=1, minimum=1),
    input_tokens=COUNT.about(example=6),
    output_tokens=COUNT.about(example=5),
    cost_micros=MICROS.about(example=11),
)
USAGE_DAY = json_object("UsageDay", "The use of one model on one day.", _DAY, model=string.about(example="builtin/echo"))
USAGE_DAY_OF_KEY = json_object(
    "UsageDayOfKey",
    "The use of one API key on one day.",
    _DAY,
    key_id=nullable(string).about("The API key, which may be deleted. Null means sessions."),
)
USAGE = json_object(
    "Usage",
    object=one_of("list"),
    data=anything.about(
        "By day and model, or by day and key. Newest first.",
        [USAGE_DAY.example],
        anyOf=[list_of(USAGE_DAY), list_of(USAGE_DAY_OF_KEY)],
    ),
    has_more=boolean.about("Whether there are more rows.", False),
)
WEBHOOK_RECEIPT = json_object(
    "WebhookReceipt", received=boolean.about(const=True), credited=boolean.about("Whether this delivery credited a wallet.")
)
PAYMENT_EVENT = open_object(
    "PaymentEvent", "An event of Stripe.", id=optional(string), type=optional(string), data=optional(mapping)
)
CHECKOUT_FORM = json_object("CheckoutForm", amount=string.about(f"{AMOUNT_RULE}.", "25.00"))
CHECKOUT_SIGN_IN_FORM = json_object(
    "CheckoutSignInForm", email=string.about(example="ada@example.com"), password=string.about(example="correct horse battery")
)
