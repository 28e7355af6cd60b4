"""What administrators see of tools: those of the service and of the operator's tool servers, with their use."""

from functools import partial
from typing import Any

import orjson

from svc.agents.tools.offered import TOOLS
from svc.agents.tools.registry import OWN_SERVERS, SERVICE
from svc.billing import tool_usage
from svc.ids import fields_as_json
from svc.inference.tool_servers import operators
from svc.inference.tool_servers.listed import full_name
from svc.inference.tool_servers.reading import STATES, known
from svc.inference.tool_servers.servers import asks
from svc.months import month_of
from svc.routes.admin_reports import MONTH
from svc.routes.schemas.common import COUNT, TIMESTAMP, WRONG_PARAMETER
from svc.server.guards import Caller
from svc.server.interface import Answer, Operation
from svc.server.web import Request
from svc.shapes import boolean, json_object, list_of, nullable, one_of, string

describes = partial(Operation, "Administration")
_NONE = {"calls": 0, "failures": 0, "cost_micros": 0}
_TOOL = json_object(
    "AdministeredTool",
    name=string.about(f"The name for models. `{OWN_SERVERS}` is the sum of all tools of users' servers.", "search_web"),
    source=nullable(string).about("`service`, or the name of a tool server. Null: it does not exist now.", SERVICE),
    ask=nullable(boolean).about("Whether a call needs approval.", False),
    price_micros=nullable(COUNT).about("Of a call, for tools of tool servers.", None),
    available=boolean.about("Whether it exists, and its owner has accepted it as it is."),
    calls=COUNT.about("In the month, with failures."),
    failures=COUNT,
    cost_micros=COUNT.about("What its calls have cost in the month."),
)
_SERVER = json_object(
    "AdministeredToolServer",
    name="wiki",
    url="https://wiki.example.com/mcp",
    groups=nullable(list_of(string)).about("The groups that may use it. Null: all accounts.", None),
    state=nullable(one_of(*STATES)).about("Null: it has not been read yet.", "ready"),
    waiting=list_of(string).about("Tools that are new or have changed, until `svc tools accept`.", []),
    detail=nullable(string).about("Why it failed, or which tools are left out.", None),
    read_at=nullable(TIMESTAMP),
)
_TOOLS = json_object(
    "AdministeredToolList",
    object=one_of("list"),
    month="2026-11",
    data=list_of(_TOOL),
    servers=list_of(_SERVER).about("The tool servers of the catalog."),
)


@describes(
    "Show the tools and their use",
    "Only the catalog file changes tool servers, and `svc tools accept` accepts their changed tools.",
    parameters=[MONTH],
    answer=Answer("The tools with their calls, failures and cost in a month.", _TOOLS),
    errors=[WRONG_PARAMETER],
)
async def get_tools(request: Request, caller: Caller) -> object:
    state = request.state
    month = MONTH.of(request) or month_of(state.clock())
    await state.engines.usage.tools.flush()
    used = await state.db.read(tool_usage.of_month, month)
    rows = await state.db.read(operators.rows)
    tools = {name: _tool(SERVICE, tool.ask, None, available=True) for name, tool in TOOLS.items()}
    for row in rows:
        if (server := state.models.catalog.tool_servers.get(row["name"])) is not None:
            found = known(row)
            available = {tool.name for tool in found.available}
            for tool in found.tools:
                one = _tool(server.name, asks(server, tool), server.micros_per_call, available=tool.name in available)
                tools.setdefault(full_name(server.name, tool.name), one)
    for name in used:
        tools.setdefault(name, _tool(None, None, None, available=name == OWN_SERVERS))
    return {
        "object": "list",
        "month": month,
        "data": [{"name": name, **tool, **used.get(name, _NONE)} for name, tool in tools.items()],
        "servers": [_server(dict(row)) for row in rows],
    }


def _tool(source: str | None, ask: bool | None, price_micros: int | None, *, available: bool) -> dict[str, Any]:
    return {"source": source, "ask": ask, "price_micros": price_micros, "available": available}


def _server(row: dict[str, Any]) -> dict[str, Any]:
    found, settings = known(row), orjson.loads(row["settings"])
    waiting = [tool.name for tool in found.tools if tool.name not in found.accepted]
    state = None if row["read_at"] is None and not row["failed"] and row["accepted"] is None else found.state
    own = {"url": settings["url"], "groups": settings["groups"], "state": state, "waiting": waiting}
    return {**fields_as_json(row, "name detail read_at"), **own}
