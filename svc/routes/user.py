"""The caller's own account, settings and API keys."""

from collections.abc import AsyncGenerator
from typing import Annotated, Any, NamedTuple

from starlette.responses import Response

from svc.auth import accounts, tokens
from svc.auth.accounts import Account
from svc.auth.emails import EMAIL
from svc.config import Config
from svc.db import Database
from svc.deletion.account import delete_account
from svc.routes.credentials import CURRENT_PASSWORD, OWNER_REFUSALS, check_owner, request_email_change
from svc.routes.schemas.accounts import API_KEY, NEW_API_KEY, SETTINGS, USER
from svc.routes.schemas.common import NO_ROOM, OWN_PROVIDERS_DISABLED
from svc.server.gate import Caller
from svc.server.interface import Answer, Refusal, Section
from svc.server.state import Request, State
from svc.server.streamed import Streamed, json_array
from svc.server.web import no_content, reply
from svc.shapes import ABSENT, Absent, boolean, given, list_of, nullable, record, string, text

describes = Section("Account").describes
describes_api_keys = Section("API keys").describes
_KEYS_AT_ONCE = 100  # up to 0.4 MB of names


class UserChanges(NamedTuple):
    name: Annotated[str | Absent | None, accounts.PERSON_NAME] = ABSENT
    email: Annotated[str | Absent, EMAIL] = ABSENT
    current_password: Annotated[str | None, CURRENT_PASSWORD] = None


class DeleteUser(NamedTuple):
    password: Annotated[str | None, string.about("The account's password.")] = None
    confirm: Annotated[
        str | None, string.about("The account's email address, exactly as shown. Only for an account without a password.")
    ] = None


class SettingsChanges(NamedTuple):
    default_model: Annotated[
        str | Absent | None,
        nullable(text(accounts.MODEL_ID_LENGTH).about("An id or alias from `GET /v1/models`. Null resets it to the operator's.")),
    ] = ABSENT
    memory_enabled: Annotated[bool | Absent, boolean] = ABSENT
    instructions: Annotated[
        str | Absent | None,
        nullable(text(8_000).about("A part of the system message of session chats, after the project's. Null removes it.")),
    ] = ABSENT


class NewKey(NamedTuple):
    name: Annotated[str, tokens.KEY_NAME]


_DELETE_USER = record(
    "DeleteUserRequest",
    DeleteUser,
    "The owner's confirmation.",
    anyOf=[{"required": [name], "properties": {name: string}} for name in ("password", "confirm")],
)
SETTINGS_CHANGES = record(
    "UpdateSettingsRequest", SettingsChanges, "Missing fields do not change.", example={"default_model": "builtin/assistant"}
)
_WRONG_EMAIL = Refusal("invalid_value", "confirm must be the email address of this account.", "confirm")
_WRONG_PASSWORD = Refusal("invalid_credentials", "The password is wrong.", "password")
_WRONG_MODEL = Refusal("invalid_value", "default_model must be a chat model of GET /v1/models, or null.", "default_model")
_NO_MODEL = Refusal(
    "model_not_found", param="default_model", when="The catalog has groups, and the account's group has no such model."
)
NEW_KEY = record("CreateApiKeyRequest", NewKey, example={"name": "my laptop"})
_USER_CHANGES = record("UpdateUserRequest", UserChanges, "Missing fields do not change.")


@describes("Show the account", answers={200: Answer("The caller's account.", USER)})
async def get_me(request: Request, caller: Caller) -> Response:
    return reply((await caller.account(request.state.db)).as_json(caller.auth))


@describes(
    "Change the name or the email address",
    "Only the owner can change the address, in a session and with the password. A link is mailed to the new address; opening it "
    "changes the account's address. The answer is the same if another account has the address. Limit: 3 changes of address an "
    "hour.",
    body=_USER_CHANGES,
    examples={
        "name": ("The name", {"name": "Ada Lovelace"}),
        "email": ("The address", {"email": "ada@new.example", "current_password": "correct horse battery"}),
    },
    answers={200: Answer("The changed account.", USER), 202: Answer("A link was mailed to the new address.", USER)},
    errors=[
        Refusal("session_required", when="An API key cannot change the address."),
        Refusal("mail_not_set_up"),
        *OWNER_REFUSALS,
    ],
)
async def update_me(request: Request, caller: Caller, body: UserChanges) -> Response:
    name, email, current_password = body
    moves = not isinstance(email, Absent) and email != (await caller.account(request.state.db)).email
    if moves:
        await request_email_change(request.state, caller, str(email), current_password)
    changes = {} if isinstance(name, Absent) else {"name": name}
    account = await request.state.db.write(accounts.update_account, caller.id, changes)
    return reply(account.as_json(caller.auth), 202 if moves else 200)


@describes(
    "Delete the account",
    "In a session only, 5 attempts a minute. All keys and sessions stop working at once, open streams end, and all personal data "
    "is deleted.",
    body=_DELETE_USER,
    examples={
        "password": ("With the password", {"password": "correct horse battery"}),
        "confirm": ("An account without a password", {"confirm": "ada@example.com"}),
    },
    answers={204: Answer("The account is deleted.")},
    errors=[
        Refusal("missing_field", "password is required: a string.", "password"),
        _WRONG_EMAIL,
        _WRONG_PASSWORD,
        Refusal("last_admin", when="The caller is the only active administrator, and there are other accounts."),
        Refusal("rate_limit_exceeded", when="More than 5 attempts in a minute."),
    ],
)
async def delete_me(request: Request, caller: Caller, body: DeleteUser) -> Response:
    state = request.state
    account = await caller.account(state.db)
    if account.has_password and state.config.passwords:
        await check_owner(state, caller, body.password, _WRONG_PASSWORD)
    elif body.confirm != account.email:
        raise _WRONG_EMAIL.error()
    await delete_account(state.db, state.drain, caller.id, state.clock())
    state.item_memory.delete_account(caller.id)
    return no_content()


@describes("Show the settings", answers={200: Answer("The settings.", SETTINGS)})
async def get_settings(request: Request, caller: Caller) -> Response:
    return reply(_settings(request.state, await caller.account(request.state.db)))


@describes(
    "Change the settings",
    body=SETTINGS_CHANGES,
    answers={200: Answer("The changed settings.", SETTINGS)},
    errors=[_WRONG_MODEL, _NO_MODEL, OWN_PROVIDERS_DISABLED, NO_ROOM],
)
async def update_settings(request: Request, caller: Caller, body: SettingsChanges) -> Response:
    if isinstance(body.default_model, str):
        found = await request.state.models.find(caller.id, body.default_model, caller.group)
        if found is None or found.kind != "chat":
            raise (_NO_MODEL if found is None and caller.group else _WRONG_MODEL).error()
    account = await request.state.db.write(accounts.update_account, caller.id, given(body))
    return reply(_settings(request.state, account))


def _settings(state: State, account: Account) -> dict[str, Any]:
    return {
        "default_model": account.default_model,
        "chat_model": state.models.default(account.default_model),
        "memory_enabled": account.memory_enabled,
        "instructions": account.instructions,
        "mail_enabled": state.mail is not None,
        "retention": {
            "conversations_days": state.config.keep_conversations_days,
            "runs_days": state.config.keep_runs_days,
            "files_days": state.config.keep_files_days,
        },
        "certificate_file": _certificate_file(state.config),
    }


def _certificate_file(config: Config) -> str | None:
    """Return the file that clients must trust, or None. Only on this machine may they know the path of the data folder."""
    if config.tls != "auto":
        return None
    file = (config.data_dir / "tls" / "ca.pem").absolute()
    return str(file) if config.local_posture else file.name


@describes_api_keys(
    "Create an API key",
    "A key never expires. It has all rights of its account except to delete it. A session or another key can create it.",
    body=NEW_KEY,
    answers={201: Answer("The key. It is shown only once.", NEW_API_KEY)},
    errors=[NO_ROOM],
)
async def create_api_key(request: Request, caller: Caller, body: NewKey) -> Response:
    state = request.state
    token = tokens.new_key_token()
    key = await state.db.write(tokens.add_key, caller.id, body.name, token, state.clock())
    return reply({**key.as_json(), "key": token}, 201)


@describes_api_keys(
    "List the API keys",
    "All keys in one array, newest first.",
    answers={200: Answer("All keys of the account.", list_of(API_KEY))},
)
async def list_api_keys(request: Request, caller: Caller) -> Response:
    """Send the keys while they are read: their number is not limited."""
    return Streamed(request, caller.id, json_array(_pages_of_keys(request.state.db, caller.id)))


async def _pages_of_keys(db: Database, account_id: str) -> AsyncGenerator[list[dict[str, Any]], None]:
    keys = await db.read(tokens.keys_after, account_id, None, _KEYS_AT_ONCE)
    while keys:
        yield [key.as_json() for key in keys]
        keys = await db.read(tokens.keys_after, account_id, keys[-1].id, _KEYS_AT_ONCE)


@describes_api_keys("Delete an API key", "The next request with it fails.", answers={204: Answer("The key is deleted.")})
async def delete_api_key(request: Request, caller: Caller) -> Response:
    await request.state.db.write(tokens.TABLE.delete, caller.id, request.path_params["key_id"])
    return no_content()
