"""Schemas of accounts, sessions, API keys and identities."""

from svc.auth.accounts import EMAIL, PERSON_NAME
from svc.routes.schemas.common import ID, TIMESTAMP
from svc.server.interface import array, boolean, choice, integer, or_null, page_of, record, string

USER = record(
    "User",
    {
        "id": ID,
        "email": EMAIL.schema,
        "email_verified": boolean("Whether somebody has shown that they read the mail there."),
        "name": PERSON_NAME.schema,
        "tier": choice("free", "pro", description="A free account becomes pro by adding funds, and stays it."),
        "created_at": TIMESTAMP,
        "auth": choice("session", "api_key", description="What this request was signed with."),
    },
    description="The caller's account.",
    example={
        "id": "user_01m3250v3vn4qvxnatpwzmywwn",
        "email": "ada@example.com",
        "email_verified": True,
        "name": "Ada",
        "tier": "free",
        "created_at": "2026-09-21T14:13:20.123Z",
        "auth": "session",
    },
)
SESSION = record(
    "Session",
    {
        "access_token": string("A JWT: send it as `Authorization: Bearer <token>`."),
        "token_type": choice("bearer"),
        "expires_in": integer("Seconds until the token expires: 8 hours.", const=28800),
        "user": USER,
    },
    description="A signed-in session.",
    example={
        "access_token": "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJ1c2VyXzAxbTMyIn0.dGhpcyBpcyBhbiBleGFtcGxl",
        "token_type": "bearer",
        "expires_in": 28800,
        "user": {
            "id": "user_01m3250v3vn4qvxnatpwzmywwn",
            "email": "ada@example.com",
            "email_verified": False,
            "name": "Ada",
            "tier": "free",
            "created_at": "2026-09-21T14:13:20.123Z",
            "auth": "session",
        },
    },
)
PASSWORD_RESET_ACCEPTED = record(
    "PasswordResetAccepted",
    {"message": string("The same whether there is such an account or not.")},
    example={"message": "If there is an account with this e-mail and mail is set up here, a link is on its way."},
)
VERIFICATION_ACCEPTED = record(
    "VerificationAccepted",
    {"message": string("What happens next.")},
    example={"message": "A link that confirms this address is on its way to it."},
)
SETTINGS = record(
    "Settings",
    {
        "default_model": or_null(string("The model of a chat request that names none; null: the operator's.")),
        "chat_model": string("What that comes to: the model that answers a chat request that names none."),
        "memory_enabled": boolean("Whether chats with a session may recall earlier ones."),
        "mail_enabled": boolean("Whether this service can send e-mails, such as the link that confirms an address."),
    },
    example={"default_model": None, "chat_model": "builtin/assistant", "memory_enabled": True, "mail_enabled": False},
)
API_KEY = record(
    "ApiKey",
    {
        "id": ID,
        "key_prefix": string("The first 10 characters of the key, to tell keys apart.", pattern="^svc-v1-[0-9A-Za-z]{3}$"),
        "name": string("The label that the caller chose."),
        "created_at": TIMESTAMP,
        "last_used_at": or_null(TIMESTAMP, "When the key was last used, by the minute; null: never."),
        "spent_micros": integer("What its calls have cost so far, in millionths of a US dollar.", minimum=0),
    },
    description="A personal API key as it is listed: never the key itself.",
)
NEW_API_KEY = record(
    "NewApiKey",
    {
        "id": ID,
        "key": string(
            "The whole key, 49 characters. Shown this once; the service stores only its hash.", pattern="^svc-v1-[0-9A-Za-z]{42}$"
        ),
        "key_prefix": string("The first 10 characters of the key, to tell keys apart.", pattern="^svc-v1-[0-9A-Za-z]{3}$"),
        "name": string("The label that the caller chose."),
        "created_at": TIMESTAMP,
        "last_used_at": or_null(TIMESTAMP, "When the key was last used, by the minute; null: never."),
        "spent_micros": integer("What its calls have cost so far, in millionths of a US dollar.", minimum=0),
    },
    description="A personal API key as it is shown once, when it is made.",
    example={
        "id": "key_01m3250v3v30wwksg0v4wcfp7p",
        "key": "svc-v1-EXAMPLEexampleEXAMPLEexampleEXAMPLEexample",
        "key_prefix": "svc-v1-EXA",
        "name": "my laptop",
        "created_at": "2026-09-21T14:13:20.123Z",
        "last_used_at": None,
        "spent_micros": 0,
    },
)
IDENTITY_PROVIDER = record(
    "IdentityProvider",
    {"provider": string(), "issuer": string(), "url": string("Begins a sign-in: for a link, not for fetch.")},
    example={"provider": "google", "issuer": "https://accounts.google.com", "url": "https://127.0.0.1:8443/auth/oauth/google"},
)
IDENTITY_PROVIDER_LIST = record(
    "IdentityProviderList",
    {"object": choice("list"), "data": array(IDENTITY_PROVIDER), "has_more": boolean(const=False)},
    example={
        "object": "list",
        "data": [
            {"provider": "google", "issuer": "https://accounts.google.com", "url": "https://127.0.0.1:8443/auth/oauth/google"}
        ],
        "has_more": False,
    },
)
IDENTITY = record(
    "Identity",
    {
        "id": ID,
        "provider": or_null(string("The configured provider; null: it is configured no more.")),
        "issuer": string(),
        "email": or_null(string("As the provider told it.")),
        "created_at": TIMESTAMP,
    },
    example={
        "id": "idn_01m3250v3vn4qvxnatpwzmywwn",
        "provider": "google",
        "issuer": "https://accounts.google.com",
        "email": "ada@example.com",
        "created_at": "2026-09-21T14:13:20.123Z",
    },
)
IDENTITY_LIST = page_of(IDENTITY)
LINKING_BEGUN = record(
    "LinkingBegun",
    {"url": string("Where this browser, and no other, goes within 10 minutes.")},
    example={"url": "https://accounts.google.com/o/oauth2/v2/auth?state=…"},
)
