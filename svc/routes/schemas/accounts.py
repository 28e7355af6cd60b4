"""Shapes of accounts, sessions, API keys and identities."""

from svc.auth.accounts import PERSON_NAME
from svc.auth.emails import EMAIL
from svc.routes.schemas.common import COUNT, TIMESTAMP, id_of
from svc.shapes import boolean, json_object, list_of, nullable, one_of, string, whole

PERSON = json_object(
    "Person",
    id=id_of("user"),
    email=EMAIL.about(example="ada@example.com"),
    email_verified=boolean.about("Whether the owner has confirmed this address."),
    name=PERSON_NAME.about(example="Ada"),
    tier=one_of("free", "pro").about("Adding funds makes a free account a pro account for good."),
    group=nullable(string).about("The group that selects the models and the allowance. Null means no group.", "research"),
    status=one_of("active", "suspended"),
    created_at=TIMESTAMP,
)
USER = json_object(
    "User",
    "The caller's account.",
    PERSON,
    admin=boolean.about("Whether the caller is an administrator.", False),
    has_password=boolean.about("Whether the account has a password. Without one it signs in with an identity provider."),
    auth=one_of("session", "api_key").about("The kind of token of this request."),
)
SESSION = json_object(
    "Session",
    "A session.",
    access_token=string.about(
        "A JWT. Send it as `Authorization: Bearer <token>`.",
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJ1c2VyXzAxbTMyIn0.dGhpcyBpcyBhbiBleGFtcGxl",
    ),
    token_type=one_of("bearer"),
    expires_in=whole.about("The seconds until the token expires: 8 hours.", 28800, const=28800),
    user=USER,
)
PASSWORD_RESET_ACCEPTED = json_object(
    "PasswordResetAccepted",
    message=string.about(
        "The same text for every address.", "If an account has this email address and mail is set up, a link is on its way."
    ),
)
VERIFICATION_ACCEPTED = json_object(
    "VerificationAccepted", message=string.about("The next step.", "A verification link is on its way to your email address.")
)
_DAYS = nullable(COUNT)
SETTINGS = json_object(
    "Settings",
    default_model=nullable(string).about("The model of chat requests without `model`. Null means the operator's default."),
    chat_model=string.about("The model that chat requests without `model` use now.", "builtin/assistant"),
    memory_enabled=boolean.about("Whether chats in a session may recall earlier ones."),
    instructions=nullable(string).about("The caller's own instructions for all chats in a session.", "Be brief."),
    mail_enabled=boolean.about("Whether this service can send mail, such as the link that confirms an address.", False),
    retention=json_object(
        "Retention",
        "How long the operator keeps what nobody uses. Null means without a limit.",
        conversations_days=_DAYS.about("After so many days without a new message a conversation is deleted."),
        runs_days=_DAYS.about("So many days after its end an agent run is deleted."),
        files_days=_DAYS.about("After so many days without a change an artifact is deleted."),
    ),
    certificate_file=nullable(string).about(
        "The certificate file that clients must trust: its path on a local installation, else its name. Null means that "
        "clients trust the service already."
    ),
)
API_KEY = json_object(
    "ApiKey",
    "A personal API key in a list. The key itself is not shown.",
    id=id_of("key"),
    key_prefix=string.about("The first 10 characters of the key.", "svc-v1-EXA", pattern="^svc-v1-[0-9A-Za-z]{3}$"),
    name=string.about("The label that the caller chose.", "my laptop"),
    created_at=TIMESTAMP,
    last_used_at=nullable(TIMESTAMP).about("The minute of the last use. Null means never."),
    spent_micros=COUNT.about("The cost of its calls so far, in micros."),
)
NEW_API_KEY = json_object(
    "NewApiKey",
    "A new personal API key.",
    API_KEY,
    key=string.about(
        "The key, 49 characters. It is shown only once: the service stores only its hash.",
        "svc-v1-EXAMPLEexampleEXAMPLEexampleEXAMPLEexample",
        pattern="^svc-v1-[0-9A-Za-z]{42}$",
    ),
)
IDENTITY_PROVIDER = json_object(
    "IdentityProvider",
    provider=string.about(example="google"),
    issuer=string.about(example="https://accounts.google.com"),
    url=string.about("The address of a link that starts a sign-in.", "https://127.0.0.1:8443/auth/oauth/google"),
)
IDENTITY_PROVIDER_LIST = json_object(
    "IdentityProviderList",
    object=one_of("list"),
    data=list_of(IDENTITY_PROVIDER),
    has_more=boolean.about(example=False, const=False),
)
IDENTITY = json_object(
    "Identity",
    id=id_of("idn"),
    provider=nullable(string).about("The provider's name. Null means that it is no longer configured.", "google"),
    issuer=string.about(example="https://accounts.google.com"),
    email=nullable(string).about("The address at the provider.", "ada@example.com"),
    created_at=TIMESTAMP,
)
LINKING_BEGUN = json_object(
    "LinkingBegun",
    url=string.about(
        "The address to open in this browser within 10 minutes.", "https://accounts.google.com/o/oauth2/v2/auth?state=…"
    ),
)
