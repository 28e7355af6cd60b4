"""The caller's own account and settings."""

import sqlite3
from functools import partial
from typing import Annotated, Any, NamedTuple

from svc.auth import accounts, links
from svc.auth.emails import EMAIL
from svc.billing import wallet
from svc.certificates import files_in
from svc.config import Config
from svc.content import import_undo, imports
from svc.deletion.slices import delete_account
from svc.errors import ApiError
from svc.groups import Group
from svc.languages import LANGUAGES
from svc.routes.links import add_change_link, mail_link
from svc.routes.schemas.common import (
    COUNT,
    MONTHLY_LIMIT,
    NO_ROOM,
    OWN_PROVIDERS_DISABLED,
    SPENT_THIS_MONTH,
    TIMESTAMP,
    id_of,
)
from svc.server.guards import Caller
from svc.server.interface import Answer, Operation, Refusal
from svc.server.state import State
from svc.server.web import Request, Response, reply
from svc.shapes import (
    ABSENT,
    Absent,
    boolean,
    given,
    json_object,
    nullable,
    one_of,
    record,
    shape_of,
    string,
    text,
)

describes = partial(Operation, "Account")
# The fields of an account that its owner and administrators see.
PERSON = json_object(
    "Person",
    id=id_of("user"),
    email=EMAIL.about(example="ada@example.com"),
    email_verified=boolean.about("Whether the owner has confirmed this address."),
    name=accounts.PERSON_NAME.about(example="Ada"),
    tier=one_of("free", "pro").about("Adding funds makes a free account a pro account for good."),
    group=nullable(string).about(
        "The group that selects the models and the allowance. Null means no group.", "research"
    ),
    status=one_of("active", "suspended"),
    created_at=TIMESTAMP,
)
USER = json_object(
    "User",
    "The caller's account.",
    PERSON,
    admin=boolean.about("Whether the caller is an administrator.", False),
    has_password=boolean.about(
        "Whether the account has a password. Without one it signs in with an identity provider."
    ),
    auth=one_of("session", "api_key").about("The kind of token of this request."),
)
_DAYS = nullable(COUNT)
_GENERATE_TITLES = one_of(*accounts.TITLES).about(
    "Which models make the title of a new conversation, after their first answer: all, those without a price for the "
    "account, or none. The call is charged like another.",
    "free",
)
_LANGUAGE = nullable(one_of(*LANGUAGES)).about(
    "The language of the web application and of mails. Null means that of the browser (`Accept-Language`)."
)
SETTINGS = json_object(
    "Settings",
    default_model=nullable(string).about(
        "The model of chat requests without `model`. Null means the operator's default."
    ),
    chat_model=string.about("The model that chat requests without `model` use now.", "builtin/assistant"),
    memory_enabled=boolean.about("Whether chats in a session may recall earlier ones."),
    generate_titles=_GENERATE_TITLES,
    language=_LANGUAGE,
    monthly_limit_micros=MONTHLY_LIMIT,
    spent_this_month_micros=SPENT_THIS_MONTH,
    instructions=nullable(string).about("The caller's own instructions for all chats in a session.", "Be brief."),
    mail_enabled=boolean.about("Whether this service can send mail, such as the link that confirms an address.", False),
    deletion_enabled=boolean.about("Whether users may delete their accounts.", True),
    sharing_enabled=boolean.about("Whether the account may share conversations by link.", True),
    own_providers_enabled=boolean.about("Whether the account may add its own model servers and tool servers.", True),
    retention=json_object(
        "Retention",
        "How long the operator keeps unused content. Null means without a limit.",
        conversations_days=_DAYS.about("After so many days without a new message a conversation is deleted."),
        runs_days=_DAYS.about("So many days after its end an agent run is deleted."),
        files_days=_DAYS.about("After so many days without a change an artifact is deleted."),
    ),
    certificate_file=nullable(string).about(
        "The certificate file that clients must trust: its path on a local installation, else its name. Null means "
        "that clients trust the service already."
    ),
)
_RECENT_SECONDS = 600
_CURRENT_PASSWORD = string.about(
    "The account's password. An account without one needs a recent sign-in with its identity provider."
)
_TOO_OFTEN = Refusal("rate_limit_exceeded", when="More than 5 attempts in a minute.")
_WRONG_PASSWORD = Refusal("invalid_credentials", "The password is wrong.", "current_password")
_OWNER_REFUSALS = [
    _WRONG_PASSWORD,
    Refusal("missing_field", "current_password is required: a string.", "current_password"),
    Refusal(
        "recent_sign_in_required", when="No password, and no sign-in with an identity provider in the last 10 minutes."
    ),
    _TOO_OFTEN,
]


@record("UpdateUserRequest", "Missing fields do not change.")
class UserChanges(NamedTuple):
    name: Annotated[str | Absent | None, accounts.PERSON_NAME] = ABSENT
    email: Annotated[str | Absent, EMAIL] = ABSENT
    current_password: Annotated[str | None, _CURRENT_PASSWORD] = None


@record(
    "ChangePasswordRequest", example={"current_password": "correct horse battery", "password": "an even better one"}
)
class ChangePassword(NamedTuple):
    password: Annotated[str, accounts.PASSWORD]
    current_password: Annotated[str | None, _CURRENT_PASSWORD] = None


@record(
    "DeleteUserRequest",
    "The owner's confirmation.",
    anyOf=[{"required": [name], "properties": {name: string}} for name in ("password", "confirm")],
)
class DeleteUser(NamedTuple):
    password: Annotated[str | None, string.about("The account's password.")] = None
    confirm: Annotated[
        str | None,
        string.about("The account's email address, exactly as shown. Only for an account without a password."),
    ] = None


@record("UpdateSettingsRequest", "Missing fields do not change.", example={"default_model": "builtin/assistant"})
class SettingsChanges(NamedTuple):
    default_model: Annotated[
        str | Absent | None,
        nullable(text(accounts.MODEL_ID_LENGTH)).about(
            "An id or alias from `GET /v1/models`. Null resets it to the operator's."
        ),
    ] = ABSENT
    memory_enabled: Annotated[bool | Absent, boolean] = ABSENT
    generate_titles: Annotated[str | Absent, _GENERATE_TITLES] = ABSENT
    language: Annotated[str | Absent | None, _LANGUAGE] = ABSENT
    instructions: Annotated[
        str | Absent | None,
        nullable(text(8_000)).about(
            "A part of the system message of session chats, after the project's. Null removes it."
        ),
    ] = ABSENT
    monthly_limit_micros: Annotated[int | Absent | None, MONTHLY_LIMIT] = ABSENT


_WRONG_EMAIL = Refusal("invalid_value", "confirm must be the email address of this account.", "confirm")
_WRONG_OLD_PASSWORD = _WRONG_PASSWORD._replace(param="password")
_WRONG_MODEL = Refusal(
    "invalid_value", "default_model must be a chat model of GET /v1/models, or null.", "default_model"
)
_NO_MODEL = Refusal(
    "model_not_found", param="default_model", when="The catalog has groups, and the account's group has no such model."
)


@describes("Show the account", answer=Answer("The caller's account.", USER))
async def get_me(request: Request, caller: Caller) -> object:
    return caller.account(request.state.db).as_json(caller.auth)


@describes(
    "Change the name or the email address",
    examples={
        "name": ("The name", {"name": "Ada Lovelace"}),
        "email": ("The address", {"email": "ada@new.example", "current_password": "correct horse battery"}),
    },
    answer=Answer("The changed account.", USER),
    others=[Answer("A link was mailed to the new address.", USER, 202)],
    errors=[
        Refusal("session_required", when="An API key cannot change the address."),
        Refusal("mail_not_set_up"),
        *_OWNER_REFUSALS,
    ],
)
async def update_me(request: Request, caller: Caller, body: UserChanges) -> Response:
    state, (name, email, current_password) = request.state, body
    moves = not isinstance(email, Absent) and email != caller.account(state.db).email
    if moves:
        if caller.auth != "session":
            raise ApiError("session_required")
        if state.mail is None:
            raise ApiError("mail_not_set_up")
        await _check_owner(state, caller, current_password)
        state.limits.take("change_email", caller.id)
        mail_link(request, "change", partial(add_change_link, caller.id, str(email)))
    changes = {} if isinstance(name, Absent) else {"name": name}
    account = await state.db.write(accounts.update_account, caller.id, changes)
    return reply(account.as_json(caller.auth), 202 if moves else 200)


@describes("Change the password", answer=Answer("The password is changed."), errors=_OWNER_REFUSALS)
async def change_password(request: Request, caller: Caller, body: ChangePassword) -> None:
    before = await _check_owner(request.state, caller, body.current_password)
    password_hash = await request.state.passwords.hash(body.password)
    if not await request.state.db.write(_change_password, caller.id, before, password_hash):
        raise _WRONG_PASSWORD.error()  # another request has just changed it


def _change_password(tx: sqlite3.Connection, account_id: str, before: str | None, password_hash: str) -> bool:
    links.end_links(tx, account_id, "reset")
    return accounts.replace_password(tx, account_id, before, password_hash)


async def _check_owner(
    state: State, caller: Caller, password: str | None, refusal: Refusal = _WRONG_PASSWORD
) -> str | None:
    """Check that the account's owner sends this request, and return the stored password hash.

    That is who knows the password, or without one has just signed in with an identity provider. Raises ApiError
    `missing_field`, `invalid_credentials`, `recent_sign_in_required`, `rate_limit_exceeded`.
    """
    state.limits.take("owner", caller.id)
    stored = await state.db.read(accounts.password_hash, caller.id)
    account = caller.account(state.db)  # after it: an account that is being deleted has no password
    if stored is None or not state.config.passwords:
        # A session from before the address was verified may be of another person.
        began_at = max(state.clock() - _RECENT_SECONDS, int(account.email_verified_at or 0))
        if caller.identity_at < began_at:
            raise ApiError("recent_sign_in_required")
        return stored
    password = string.check(password, refusal.param or "")
    if not await state.passwords.matches(password, stored, login=False):
        raise refusal.error()
    return stored


@describes(
    "Delete the account",
    examples={
        "password": ("With the password", {"password": "correct horse battery"}),
        "confirm": ("An account without a password", {"confirm": "ada@example.com"}),
    },
    answer=Answer("The account is deleted."),
    errors=[
        Refusal("missing_field", "password is required: a string.", "password"),
        _WRONG_EMAIL,
        _WRONG_OLD_PASSWORD,
        Refusal("last_admin", when="The caller is the only active administrator, and there are other accounts."),
        Refusal("deletion_disabled", when="The operator does not let users delete their accounts."),
        _TOO_OFTEN,
    ],
)
async def delete_me(request: Request, caller: Caller, body: DeleteUser) -> None:
    state = request.state
    account = caller.account(state.db)
    if not may_delete_themselves(state):
        contact = contact_of(state)
        raise ApiError("deletion_disabled", contact and f"Users cannot delete their accounts here. Ask {contact}.")
    if account.has_password and state.config.passwords:
        await _check_owner(state, caller, body.password, _WRONG_OLD_PASSWORD)
    elif body.confirm != account.email:
        raise _WRONG_EMAIL.error()
    await delete_account(state.db, state.drain, caller.id, state.clock())
    state.item_memory.delete_account(caller.id)


def may_delete_themselves(state: State) -> bool:
    groups = state.models.catalog.groups
    return groups is None or groups.users_may_delete_themselves


def contact_of(state: State) -> str | None:
    """Return whom users ask for more, in the operator's words."""
    groups = state.models.catalog.groups
    return groups.contact if groups else None


@describes("Show the settings", answer=Answer("The settings.", SETTINGS))
async def get_settings(request: Request, caller: Caller) -> object:
    state = request.state
    limit = state.db.look_up(wallet.limit_of_account, caller.id, state.clock())
    return _settings(state, caller.group, caller.account(state.db), limit)


@describes(
    "Change the settings",
    answer=Answer("The changed settings.", SETTINGS),
    errors=[_WRONG_MODEL, _NO_MODEL, OWN_PROVIDERS_DISABLED, NO_ROOM],
)
async def update_settings(request: Request, caller: Caller, body: SettingsChanges) -> object:
    if isinstance(body.default_model, str):
        found = await request.state.models.find(caller.id, body.default_model, caller.group)
        if found is None or found.kind != "chat":
            raise (_NO_MODEL if found is None and caller.group else _WRONG_MODEL).error()
    changed = await request.state.db.write(_change_settings, caller.id, given(body), request.state.clock())
    return _settings(request.state, caller.group, *changed)


def _change_settings(
    tx: sqlite3.Connection, account_id: str, changes: dict[str, Any], now_seconds: float
) -> tuple[accounts.Account, dict[str, int | None]]:
    if "monthly_limit_micros" in changes:
        wallet.set_limit(tx, account_id, changes.pop("monthly_limit_micros"))
    return accounts.update_account(tx, account_id, changes), wallet.limit_of_account(tx, account_id, now_seconds)


async def import_settings(state: State, caller: Caller, import_id: str, exported: dict[str, Any]) -> None:
    """Replace the settings of an account without content by exported ones. Undo restores them. Raises ApiError."""
    known = {name: exported[name] for name in SettingsChanges._fields if name in exported}
    body = shape_of(SettingsChanges).check(known, "")
    if body.default_model and await state.models.find(caller.id, str(body.default_model), caller.group) is None:
        body = body._replace(default_model=ABSENT)
    await state.db.write(_import_settings, caller.id, import_id, given(body), state.clock())


def _import_settings(
    tx: sqlite3.Connection, account_id: str, import_id: str, changes: dict[str, Any], now_seconds: float
) -> None:
    if imports.is_unused(tx, account_id):
        before = accounts.existing_account(tx, account_id)._asdict() | wallet.limit_of_account(
            tx, account_id, now_seconds
        )
        import_undo.keep_settings(tx, account_id, import_id, {name: before[name] for name in changes})
        _change_settings(tx, account_id, changes, now_seconds)


def finish_undo(tx: sqlite3.Connection, account_id: str, import_id: str, now_seconds: float) -> None:
    """Note that an import is undone, and restore the settings."""
    if before := import_undo.end_undo(tx, account_id, import_id):
        _change_settings(tx, account_id, before, now_seconds)


def _settings(
    state: State, group: Group | None, account: accounts.Account, limit: dict[str, int | None]
) -> dict[str, Any]:
    return {
        **limit,
        "default_model": account.default_model,
        "chat_model": state.models.default(account.default_model, group),
        "memory_enabled": account.memory_enabled,
        "generate_titles": account.generate_titles,
        "language": account.language,
        "instructions": account.instructions,
        "mail_enabled": state.mail is not None,
        "deletion_enabled": may_delete_themselves(state),
        "sharing_enabled": group is None or group.sharing,
        "own_providers_enabled": group is None or group.own_providers,
        "retention": {
            "conversations_days": state.config.keep_conversations_days,
            "runs_days": state.config.keep_runs_days,
            "files_days": state.config.keep_files_days,
        },
        "certificate_file": _certificate_file(state.config),
    }


def _certificate_file(config: Config) -> str | None:
    """Return the file that clients must trust, or None. Only clients on this machine may know its folder."""
    if config.tls != "auto":
        return None
    file = files_in(config.data_dir).ca.absolute()
    return str(file) if config.local_posture else file.name
