"""The caller's own tool servers (MCP)."""

import sqlite3
from functools import partial
from typing import Any

from svc.errors import ApiError
from svc.inference import providers
from svc.inference.tool_servers import records
from svc.inference.tool_servers.reading import STATES, Reading
from svc.inference.tool_servers.records import NewToolServer, ToolServerChanges
from svc.outbound.errors import AddressNotAllowed
from svc.routes.schemas.common import NO_ROOM, OWN_PROVIDERS_DISABLED, TIMESTAMP, id_of
from svc.server.guards import Caller
from svc.server.interface import Answer, Operation, Refusal, paged
from svc.server.state import State
from svc.server.web import Request, read_page
from svc.shapes import boolean, given, json_object, list_of, nullable, one_of, string

describes = partial(Operation, "Tool servers")
_TOOL = json_object(
    "ToolServerTool",
    name=string.about("The name at the server. Runs and chats use `<server>__<name>`.", "search_pages"),
    description=string.about("As the server sent it, cut after 4,000 characters.", "Finds pages."),
    ask=boolean.about("Whether a call needs approval."),
    accepted=boolean.about("Whether it is as the owner has accepted it."),
    available=boolean.about("Whether runs and chats may use it."),
    accepted_description=string.about("Of a tool that has changed: the description that was accepted.").optional(),
)
_TOOL_SERVER = json_object(
    "ToolServer",
    id=id_of("tsrv"),
    name="wiki",
    url=string.about("The normalized address.", "https://wiki.example.com/mcp"),
    api_key_hint=nullable(string).about("The last characters of the key. Null means that there is no key.", "…x4Qz"),
    tools=list_of(_TOOL).about("The tools of the last list, at most 64."),
    state=one_of(*STATES).about(
        "`failed`: the server did not list its tools the last time. `changed`: a tool is new or has changed, and waits."
    ),
    detail=nullable(string).about("Why it failed, or which tools are left out.", None),
    created_at=TIMESTAMP,
)
_TEST = json_object("ToolServerTest", "", _TOOL_SERVER, ok=boolean.about(const=True))
_ADDRESS_NOT_ALLOWED = Refusal(
    "address_not_allowed",
    param="url",
    when="The address is private, loopback, link-local, multicast or reserved. The operator may allow private and "
    "loopback ones.",
)
_NAME_TAKEN = Refusal(
    "name_taken",
    "A tool server of yours has this name. Choose another one.",
    "name",
    when="The caller or the operator has a tool server with this name.",
)
_TOO_OFTEN = Refusal(
    "rate_limit_exceeded",
    when="More than 30 in a minute. New and changed servers and tests count together, with those of own providers.",
)
_OF_CHANGES = (_ADDRESS_NOT_ALLOWED, _NAME_TAKEN, NO_ROOM, _TOO_OFTEN)


@describes(
    "Add a tool server",
    "An account may have 10 tool servers. The server is asked for its tools, for at most 10 seconds. They are accepted "
    "as they are. If the server does not answer, it is asked again later.",
    examples={
        "open": {"name": "wiki", "url": "https://wiki.example.com/mcp"},
        "key": {"name": "tickets", "url": "https://tickets.example.com/mcp", "api_key": "a-key-of-yours-x4Qz"},
    },
    answer=Answer("The tool server.", _TOOL_SERVER, 201),
    errors=[
        Refusal(
            "invalid_value",
            "An account may have at most 10 tool servers. Delete one first.",
            when="A field is wrong (`param` names it), or the account has 10 tool servers.",
        ),
        OWN_PROVIDERS_DISABLED,
        *_OF_CHANGES,
    ],
)
async def create_tool_server(request: Request, caller: Caller, body: NewToolServer) -> object:
    state = request.state
    providers.check_allowed(caller.group)
    _check_name(state, body.name)
    found = await _read(state, caller, body.name, body.url, body.api_key)
    row = await state.db.write(records.add, caller.id, body, found, state.key_box, state.clock())
    return records.as_json(row)


@describes("List the tool servers", answer=paged("A page of tool servers.", "ToolServerList", _TOOL_SERVER))
async def list_tool_servers(request: Request, caller: Caller) -> object:
    return (await read_page(request, records.TABLE.page, caller.id)).of(records.as_json)


@describes("Show a tool server", answer=Answer("The tool server.", _TOOL_SERVER))
async def get_tool_server(request: Request, caller: Caller, tool_server_id: str) -> object:
    return records.as_json(await request.state.db.read(records.TABLE.by_id, caller.id, tool_server_id))


@describes(
    "Change a tool server",
    "With a new `url` or `api_key` the server is asked for its tools.",
    examples={"accepted": {"accepted": True}, "ask": {"ask": {}}, "name": {"name": "handbook"}},
    answer=Answer("The changed tool server.", _TOOL_SERVER),
    errors=[
        Refusal(
            "invalid_value",
            "ask: this server has no tool 'x'.",
            "ask",
            when="A field is wrong (`param` names it), or `ask` names a tool that the server does not have.",
        ),
        OWN_PROVIDERS_DISABLED,
        *_OF_CHANGES,
    ],
)
async def update_tool_server(request: Request, caller: Caller, tool_server_id: str, body: ToolServerChanges) -> object:
    state, fields = request.state, given(body)
    row = await state.db.read(records.TABLE.by_id, caller.id, tool_server_id)
    _check_name(state, body.name)
    found = None
    if "url" in fields or "api_key" in fields:
        providers.check_allowed(caller.group)
        found = await _read(state, caller, row["name"], fields.get("url", row["url"]), _key(state, row, fields))
    change = (caller.id, tool_server_id, fields, found, state.key_box, state.clock())
    return records.as_json(await state.db.write(records.change, *change))


@describes("Delete a tool server", answer=Answer("The tool server and its key are deleted."))
async def delete_tool_server(request: Request, caller: Caller, tool_server_id: str) -> None:
    await request.state.db.write(records.delete, caller.id, tool_server_id, request.state.clock())


@describes(
    "Test a tool server",
    "Asks the server for its tools, for at most 10 seconds, and stores the list.",
    answer=Answer("The server has listed its tools.", _TEST),
    errors=[
        Refusal(
            "invalid_value",
            "The stored key cannot be read any more. Set it again.",
            when="The stored key cannot be read any more.",
        ),
        OWN_PROVIDERS_DISABLED,
        _ADDRESS_NOT_ALLOWED,
        NO_ROOM,
        _TOO_OFTEN,
        Refusal(
            "upstream_error",
            "wiki: it did not answer as a tool server.",
            when="The server did not list its tools. A refused connection and no answer give the same error after the "
            "same time.",
        ),
    ],
)
async def test_tool_server(request: Request, caller: Caller, tool_server_id: str) -> object:
    state = request.state
    row = await state.db.read(records.TABLE.by_id, caller.id, tool_server_id)
    providers.check_allowed(caller.group)
    found = await _read(state, caller, row["name"], row["url"], _key(state, row, {}))
    row = await state.db.write(records.store, caller.id, tool_server_id, row, found, state.clock())
    if found.tools is None:
        raise ApiError("upstream_error", found.detail)
    return {**records.as_json(row), "ok": True}


def _check_name(state: State, name: Any) -> None:
    if name in state.models.catalog.tool_servers:
        raise ApiError("name_taken", "A tool server of the operator has this name. Choose another one.", param="name")


def _key(state: State, row: sqlite3.Row, fields: dict[str, Any]) -> str | None:
    """Return the key for the next request: the new one, or the stored one if the address stays."""
    if "api_key" in fields:
        key: str | None = fields["api_key"]
        return key
    return records.key_of(row, fields.get("url", row["url"]), state.key_box)


async def _read(state: State, caller: Caller, name: str, url: str, api_key: str | None) -> Reading:
    """Ask a server for its tools. Raises ApiError `address_not_allowed`, `rate_limit_exceeded`."""
    state.limits.take("ask_provider", caller.id)
    try:
        await state.engines.guarded.check_address(url, caller.id)
    except AddressNotAllowed:
        raise ApiError("address_not_allowed", param="url") from None
    return await state.tool_servers.read_own(state.tool_servers.own_target(caller.id, name, url, api_key))
