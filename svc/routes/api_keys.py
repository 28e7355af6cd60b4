"""The caller's API keys."""

from collections.abc import AsyncGenerator
from functools import partial
from typing import Annotated, Any, NamedTuple

from svc.auth import tokens
from svc.db import Database
from svc.routes.schemas.common import (
    COUNT,
    MONTHLY_LIMIT,
    NEW_LIMIT,
    NO_ROOM,
    SPENT_THIS_MONTH,
    TIMESTAMP,
    id_of,
)
from svc.server.guards import Caller
from svc.server.interface import Answer, Operation
from svc.server.streamed import json_array, streamed
from svc.server.web import Request, Response
from svc.shapes import ABSENT, Absent, given, json_object, list_of, nullable, record, string

describes = partial(Operation, "API keys")
API_KEY = json_object(
    "ApiKey",
    "A personal API key in a list. The key itself is not shown.",
    id=id_of("key"),
    key_prefix=string.about("The first 10 characters of the key.", "svc-v1-EXA", pattern="^svc-v1-[0-9A-Za-z]{3}$"),
    name=string.about("The label that the caller chose.", "my laptop"),
    created_at=TIMESTAMP,
    last_used_at=nullable(TIMESTAMP).about("The minute of the last use. Null means never."),
    spent_micros=COUNT.about("The cost of its calls so far, in micros."),
    monthly_limit_micros=MONTHLY_LIMIT,
    spent_this_month_micros=SPENT_THIS_MONTH,
)
_NEW_API_KEY = json_object(
    "NewApiKey",
    "A new personal API key.",
    API_KEY,
    key=string.about(
        "The key, 49 characters. It is shown only once: the service stores only its hash.",
        "svc-v1-EXAMPLEexampleEXAMPLEexampleEXAMPLEexample",
        pattern="^svc-v1-[0-9A-Za-z]{42}$",
    ),
)
_KEYS_AT_ONCE = 100  # up to 0.4 MB of names


@record("CreateApiKeyRequest", example={"name": "my laptop"})
class NewKey(NamedTuple):
    name: Annotated[str, tokens.KEY_NAME]
    monthly_limit_micros: Annotated[int | None, NEW_LIMIT] = None


@record("UpdateApiKeyRequest", "Missing fields do not change.", example={"monthly_limit_micros": 5_000_000})
class KeyChanges(NamedTuple):
    name: Annotated[str | Absent, tokens.KEY_NAME] = ABSENT
    monthly_limit_micros: Annotated[int | Absent | None, MONTHLY_LIMIT] = ABSENT


@describes(
    "Create an API key",
    "A key never expires. It can do what its account can, but not change the sign-in, delete the account or "
    "administer. A session or another key can create it.",
    answer=Answer("The key. It is shown only once.", _NEW_API_KEY, 201),
    errors=[NO_ROOM],
)
async def create_api_key(request: Request, caller: Caller, body: NewKey) -> object:
    token = tokens.new_key_token()
    now_seconds, limit_micros = request.state.clock(), body.monthly_limit_micros
    key = await request.state.db.write(tokens.add_key, caller.id, body.name, token, now_seconds, limit_micros)
    return {**key, "key": token}


@describes(
    "List the API keys",
    "All keys in one array, newest first.",
    answer=Answer("All keys of the account.", list_of(API_KEY)),
)
async def list_api_keys(request: Request, caller: Caller) -> Response:
    """Send the keys while they are read: their number is not limited."""
    state = request.state
    return await streamed(request, json_array(_pages_of_keys(state.db, caller.id, state.clock())))


async def _pages_of_keys(
    db: Database, account_id: str, now_seconds: float
) -> AsyncGenerator[list[dict[str, Any]], None]:
    after = None
    while keys := await db.read(tokens.keys_after, account_id, after, _KEYS_AT_ONCE, now_seconds):
        yield keys
        after = keys[-1]["id"]


@describes(
    "Change an API key",
    "Another limit applies to the next call with the key.",
    answer=Answer("The changed key.", API_KEY),
    errors=[NO_ROOM],
)
async def update_api_key(request: Request, caller: Caller, key_id: str, body: KeyChanges) -> object:
    state = request.state
    return await state.db.write(tokens.change_key, caller.id, key_id, given(body), state.clock())


@describes("Delete an API key", "The next request with it fails.", answer=Answer("The key is deleted."))
async def delete_api_key(request: Request, caller: Caller, key_id: str) -> None:
    await request.state.db.write(tokens.TABLE.delete, caller.id, key_id)
