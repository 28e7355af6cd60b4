"""Shapes of the administration."""

from svc.admin import users
from svc.auth.accounts import PERSON_NAME
from svc.auth.emails import EMAIL
from svc.routes.schemas.accounts import API_KEY, TIER
from svc.routes.schemas.common import COUNT, TIMESTAMP, example_id, id_of
from svc.server.interface import page_of
from svc.shapes import Fields, boolean, json_object, mapping, nullable, string

_USER: Fields = {
    "id": id_of("user"),
    "email": EMAIL.about(example="ada@example.com"),
    "email_verified": boolean.about("Whether the owner has confirmed this address."),
    "name": PERSON_NAME.about(example="Ada"),
    "tier": TIER,
    "admin": boolean.about("Whether the account is an administrator.", False),
    "group": nullable(string).about("The group that selects the models and the allowance. Null means no group.", "research"),
    "status": users.STATUS,
    "created_at": TIMESTAMP,
    "last_seen_at": nullable(TIMESTAMP).about("The last use, to about an hour. Null means never."),
    "balance_micros": COUNT.about("The balance of the wallet, in micros."),
    "spent_month_micros": COUNT.about("The cost of its calls in this month (UTC), in micros."),
    "stored_bytes": COUNT.about("The bytes that it stores."),
    "keys": COUNT.about("The number of its API keys."),
}
USER_IN_LIST = json_object("AdministeredUser", _USER, "An account as administrators see it.")
USER_LIST = page_of("AdministeredUserList", USER_IN_LIST)
INVITATION = json_object(
    "Invitation",
    {
        **_USER,
        "invite_url": nullable(string).about(
            "The one-time link, which is not shown again. Null means that it was mailed.",
            "https://127.0.0.1:8443/password-reset#9hQ2vXk4LmT7bR1cWz8NfYp3JdS6gAe5uHxK0oEiVtp",
        ),
    },
    "An account and a link to set its password.",
)
KEY_LIST = page_of("ApiKeyList", API_KEY)
_ID = example_id("user")
AUDIT_ENTRY = json_object(
    "AuditEntry",
    {
        "id": id_of("aud"),
        "at": TIMESTAMP,
        "actor": string.about("The id of the administrator, or `operator` for a command.", _ID),
        "action": string.about("What was done.", "user.change"),
        "subject": nullable(string).about("The id of the account that was changed, or another name.", _ID),
        "details": mapping.about("What changed, without secrets.", {"email": "ada@example.com", "admin": True}),
    },
)
AUDIT_LIST = page_of("AuditList", AUDIT_ENTRY)
