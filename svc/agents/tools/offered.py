"""Which tools a caller may use, in a run or in a chat."""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from svc.agents.tools import account, computing, files, media, registry, web
from svc.agents.tools.registry import AgentTool
from svc.agents.tools.servers import server_tools
from svc.builtin import sandbox
from svc.inference.catalog import Model
from svc.inference.web_search import PRICE
from svc.server.guards import Caller
from svc.server.state import State

_MODULES = (computing, account, media, web, files)  # each has added its tools to the registry
TOOLS = registry.TOOLS


class Offered(NamedTuple):
    """The `tools` by name, and the first models for images and speech, as far as there are any, by kind."""

    tools: dict[str, AgentTool]
    media_models: Mapping[str, Model]


async def offered_to(state: State, caller: Caller, *, with_files: bool = False) -> Offered:
    """Return what `caller` may use now; `with_files` in a project that has files."""
    firsts = {kind: await state.models.first(caller.id, kind, caller.group) for kind in ("image", "speech")}
    media_models = {kind: model for kind, model in firsts.items() if model is not None}
    search = state.models.catalog.search
    needs: dict[str, object] = {
        "session": caller.auth == "session",
        "fetch": state.config.agent_fetch or search,
        "search": search,
        "python": sandbox.binary(),
        "files": with_files,
        **firsts,
    }
    tools = tools_for(needs)
    for name, model, price in (("search_web", search, PRICE), ("generate_image", firsts["image"], "micros_per_image")):
        if model is not None and model.paid:
            tools[name] = replace(tools[name], price_micros=model.prices[price])
    of_servers = server_tools(await state.tool_servers.offered(caller.id, caller.group))
    return Offered({**tools, **{name: tool for name, tool in of_servers.items() if name not in tools}}, media_models)


def tools_for(needs: Mapping[str, object]) -> dict[str, AgentTool]:
    """Return the tools whose needs are met, by name; `needs` are true if they are met."""
    return {name: tool for name, tool in TOOLS.items() if tool.needs is None or needs[tool.needs]}
