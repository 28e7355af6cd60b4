"""The caller's own account, settings and API keys."""

import sqlite3
from collections.abc import AsyncGenerator
from typing import Annotated, Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from svc.auth import accounts, tokens
from svc.auth.accounts import Account
from svc.db import Database
from svc.deletion.account import delete_account
from svc.errors import ApiError
from svc.routes.schemas.accounts import (
    API_KEY,
    NEW_API_KEY,
    SETTINGS,
    USER,
)
from svc.routes.schemas.refusals import NO_ROOM
from svc.server.gate import Caller
from svc.server.interface import Answer, Refusal, describes, path_id
from svc.server.state import State
from svc.server.streamed import Streamed, json_array
from svc.server.web import no_content, reply
from svc.shapes import ABSENT, Absent, boolean, given, list_of, nullable, record, string, text

_KEYS_AT_ONCE = 100  # up to 0.4 MB of names


class UserChanges(NamedTuple):
    name: Annotated[str | Absent | None, accounts.PERSON_NAME] = ABSENT


class DeleteUser(NamedTuple):
    password: Annotated[str | None, string.about("The account's password.")] = None
    confirm: Annotated[
        str | None, string.about("The account's e-mail, exactly as it is shown; only for an account that has no password.")
    ] = None


class SettingsChanges(NamedTuple):
    default_model: Annotated[
        str | Absent | None,
        nullable(text(accounts.MODEL_ID_LENGTH).about("An id or alias from `GET /v1/models`; null goes back to the operator's.")),
    ] = ABSENT
    memory_enabled: Annotated[bool | Absent, boolean] = ABSENT


class NewKey(NamedTuple):
    name: Annotated[str, tokens.KEY_NAME]


_DELETE_USER = record(
    "DeleteUserRequest",
    DeleteUser,
    "The proof that the owner means it.",
    anyOf=[
        {"required": ["password"], "properties": {"password": {"type": "string"}}},
        {"required": ["confirm"], "properties": {"confirm": {"type": "string"}}},
    ],
)
_SETTINGS_CHANGES = record(
    "UpdateSettingsRequest", SettingsChanges, "An absent field stays as it is.", example={"default_model": "builtin/assistant"}
)
NEW_KEY = record("CreateApiKeyRequest", NewKey, example={"name": "my laptop"})
_USER_CHANGES = record("UpdateUserRequest", UserChanges, "An absent field stays as it is.", example={"name": "Ada Lovelace"})


@describes("Account", "getMe", "Show the account", answers={200: Answer("The caller's account.", USER)})
async def show_me(request: Request[State], caller: Caller) -> Response:
    account = await caller.account(request.state.db)
    return reply(account.as_json(caller.auth))


@describes(
    "Account",
    "updateMe",
    "Change the name",
    body=_USER_CHANGES,
    answers={200: Answer("The account as it is now.", USER, {**USER.example, "name": "Ada Lovelace"})},
)
async def change_me(request: Request[State], caller: Caller, body: UserChanges) -> Response:
    account = await request.state.db.write(accounts.update_account, caller.id, given(body))
    return reply(account.as_json(caller.auth))


@describes(
    "Account",
    "deleteMe",
    "Delete the account",
    "With a session only, 5 tries a minute. All its keys and sessions stop working at once, its open streams end, "
    "everything personal is deleted.",
    body=_DELETE_USER,
    examples={
        "password": ("With the password", {"password": "correct horse battery"}),
        "confirm": ("An account without a password", {"confirm": "ada@example.com"}),
    },
    answers={204: Answer("The account is gone.")},
    errors=[
        Refusal("missing_field", "password is required: a string.", "password"),
        Refusal("invalid_value", "confirm must be the e-mail of this account.", "confirm", "The proof is wrong."),
        Refusal("invalid_credentials", "The password is wrong.", "password"),
        Refusal("rate_limit_exceeded", when="More than 5 tries in a minute."),
    ],
)
async def delete_me(request: Request[State], caller: Caller, body: DeleteUser) -> Response:
    """Keys, sessions and streams of the account end at once."""
    state = request.state
    state.limits.take_by_account("delete_account", caller.id)
    account = await caller.account(state.db)
    if account.has_password:
        password = string.check(body.password, "password")
        stored = await state.db.read(accounts.password_hash, caller.id)
        if len(password) > accounts.PASSWORD_LENGTH[1] or not await state.passwords.matches(password, stored, login=False):
            raise ApiError("invalid_credentials", "The password is wrong.", param="password")
    elif body.confirm != account.email:
        raise ApiError("invalid_value", "confirm must be the e-mail of this account.", param="confirm")
    await delete_account(state.db, state.drain, caller.id, state.clock())
    return no_content()


@describes("Account", "getSettings", "Show the settings", answers={200: Answer("The settings.", SETTINGS)})
async def show_settings(request: Request[State], caller: Caller) -> Response:
    return reply(_settings(request.state, await caller.account(request.state.db)))


@describes(
    "Account",
    "updateSettings",
    "Change the settings",
    body=_SETTINGS_CHANGES,
    answers={
        200: Answer(
            "The settings as they are now.",
            SETTINGS,
            {**SETTINGS.example, "default_model": "builtin/echo", "chat_model": "builtin/echo"},
        )
    },
    errors=[
        Refusal("invalid_value", "default_model must be a chat model of GET /v1/models, or null.", "default_model"),
    ],
)
async def change_settings(request: Request[State], caller: Caller, body: SettingsChanges) -> Response:
    """An absent field stays; `default_model: null` goes back to the operator's."""
    if isinstance(body.default_model, str):
        found = await request.state.models.find(caller.id, body.default_model)
        if found is None or found.kind != "chat":
            message = "default_model must be a chat model of GET /v1/models, or null."
            raise ApiError("invalid_value", message, param="default_model")
    account = await request.state.db.write(accounts.update_account, caller.id, given(body))
    return reply(_settings(request.state, account))


def _settings(state: State, account: Account) -> dict[str, Any]:
    chat_model = state.models.default(account.default_model)
    return {
        "default_model": account.default_model,
        "chat_model": chat_model,
        "memory_enabled": account.memory_enabled,
        "mail_enabled": state.mail is not None,
    }


@describes(
    "API keys",
    "createApiKey",
    "Make an API key",
    "A key never expires and may do what its account may, except delete the account. It can be made with a "
    "session or with another key.",
    body=NEW_KEY,
    answers={201: Answer("The key, shown this once.", NEW_API_KEY)},
    errors=[NO_ROOM],
)
async def create_key(request: Request[State], caller: Caller, body: NewKey) -> Response:
    """Show the whole key, this once."""
    state = request.state
    token = tokens.new_key_token()
    try:
        key = await state.db.write(tokens.add_key, caller.id, body.name, token, state.clock())
    except sqlite3.IntegrityError:
        raise ApiError("invalid_api_key") from None  # the account went while we were here
    return reply({**key.as_json(), "key": token}, 201)


@describes(
    "API keys",
    "listApiKeys",
    "List the API keys",
    "Newest first, as a bare array, however many there are.",
    answers={200: Answer("All keys of the account.", list_of(API_KEY))},
)
async def list_keys(request: Request[State], caller: Caller) -> Response:
    """A bare array, newest first, without `key`. There is no bound on the number of keys: it is sent as it is read."""
    return Streamed(request, caller.id, json_array(_pages_of_keys(request.state.db, caller.id)))


async def _pages_of_keys(db: Database, account_id: str) -> AsyncGenerator[list[dict[str, Any]], None]:
    keys = await db.read(tokens.keys_after, account_id, None, _KEYS_AT_ONCE)
    while keys:
        yield [key.as_json() for key in keys]
        keys = await db.read(tokens.keys_after, account_id, keys[-1].id, _KEYS_AT_ONCE)


@describes(
    "API keys",
    "deleteApiKey",
    "Delete an API key",
    "It fails from the next request on.",
    parameters=[path_id("key_id", "The key's id, not the key.", "key_01m3250v3v30wwksg0v4wcfp7p")],
    answers={204: Answer("The key is gone.")},
    errors=[Refusal("not_found", "There is no such key.", when="The account has no such key.")],
)
async def delete_key(request: Request[State], caller: Caller) -> Response:
    """204; the key fails on the next request."""
    if not await request.state.db.write(tokens.delete_key, caller.id, request.path_params["key_id"]):
        raise ApiError("not_found", "There is no such key.")
    return no_content()
