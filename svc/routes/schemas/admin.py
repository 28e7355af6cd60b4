"""Shapes of the administration."""

from svc.auth.emails import EMAIL
from svc.routes.schemas.accounts import PERSON
from svc.routes.schemas.common import COUNT, TIMESTAMP, example_id, id_of
from svc.routes.schemas.content import SUPPORT_CONVERSATION, SUPPORT_MESSAGES
from svc.shapes import boolean, json_object, list_of, mapping, nullable, one_of, string

USER_IN_LIST = json_object(
    "AdministeredUser",
    "An account as administrators see it.",
    PERSON,
    admin=boolean.about("Whether the account is an administrator.", False),
    group_chosen=boolean.about("Whether an administrator chose the group, or that there is none.", False),
    last_seen_at=nullable(TIMESTAMP).about("The last use, to about an hour. Null means never."),
    balance_micros=COUNT.about("The balance of the wallet, in micros."),
    spent_month_micros=COUNT.about("The cost of its calls in this month (UTC), in micros."),
    stored_bytes=COUNT.about("The bytes that it stores."),
    keys=COUNT.about("The number of its API keys, counted up to 10,000."),
)
INVITATION = json_object(
    "Invitation",
    "An account and a link to set its password.",
    USER_IN_LIST,
    invite_url=nullable(string).about(
        "The one-time link, which is not shown again. Null means that it was mailed.",
        "https://127.0.0.1:8443/password-reset#9hQ2vXk4LmT7bR1cWz8NfYp3JdS6gAe5uHxK0oEiVtp",
    ),
)
_ID = example_id("user")
AUDIT_ENTRY = json_object(
    "AuditEntry",
    id=id_of("aud"),
    at=TIMESTAMP,
    actor=string.about("The id of the administrator, or `operator` for a command.", _ID),
    action=string.about("What was done.", "user.change"),
    subject=nullable(string).about("The id of the account that was changed, or another name.", _ID),
    details=mapping.about("What changed, without secrets.", {"email": "ada@example.com", "admin": True}),
)
IN_INBOX = json_object(
    "InboxConversation",
    "A support conversation with its user.",
    SUPPORT_CONVERSATION,
    account_id=id_of("user"),
    email=EMAIL.about(example="ada@example.com"),
    waiting=boolean.about("Whether the last message is not the operator's."),
)
INBOX_CONVERSATION = json_object("InboxConversationWithMessages", "", IN_INBOX, messages=SUPPORT_MESSAGES)
_USAGE_ROW = json_object(
    "UsageByKey",
    key=string.about("An email address, a model, a group, the id of an API key, or a day.", "ada@example.com"),
    requests=COUNT,
    input_tokens=COUNT,
    output_tokens=COUNT,
    cost_micros=COUNT.about("In micros."),
)
USAGE = json_object(
    "UsageOfMonth",
    object=one_of("list"),
    month=string.about(example="2026-11"),
    by=string.about(example="user"),
    data=list_of(_USAGE_ROW),
    total=_USAGE_ROW,
)
USAGE_CSV = string.about(
    "A header and a line for each row. A cell that a spreadsheet would take as a formula begins with an apostrophe.",
    "key,requests,input_tokens,output_tokens,cost_micros\n",
)
_FINDING = json_object(
    "Finding",
    grade=one_of("ok", "look", "wrong").about("`look`: it works, but check it."),
    about=string.about(example="backup"),
    text=string.about(example="the last one was made 0.3 days ago"),
)
_PROVIDER = json_object(
    "ProviderState",
    name=string.about(example="ollama"),
    models=COUNT,
    answers=nullable(boolean).about("Whether it answered the last request for its list of models. Null: never asked."),
)
STATUS = json_object(
    "Status",
    version=string.about(example="1.0.0"),
    pid=COUNT,
    base_url=string.about(example="https://127.0.0.1:8443"),
    started_at=TIMESTAMP,
    draining=boolean.about("Whether the server is shutting down."),
    gauges=mapping.about("The gauges of `GET /metrics` without labels, by name.", {"svc_open_answers": 2}),
    holds=COUNT.about("The calls in progress that hold money."),
    held_micros=COUNT,
    wallets=COUNT,
    balance_micros=COUNT.about("The sum of all wallets."),
    last_backup_at=nullable(TIMESTAMP).about("Null means none yet."),
    certificate_expires_at=nullable(TIMESTAMP).about("Null means that a proxy has the certificate."),
    providers=list_of(_PROVIDER).about("The operator's model servers."),
    groups=list_of(string).about("The names of the catalog's groups.", ["research"]),
    findings=list_of(_FINDING),
)
