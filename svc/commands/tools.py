"""`svc tools …`: the tool servers of the catalog, and what `svc doctor` finds about them."""

import argparse
import time

from svc.admin.health import Result
from svc.commands.database import argument, command, printable, reading, writing
from svc.config import Config
from svc.inference.tool_servers import operators
from svc.inference.tool_servers.operator_server import OperatorServer
from svc.inference.tool_servers.reading import known, read
from svc.outbound.client import Outbound


@command("tools list", "list the tool servers of the catalog with their state and their tools")
def _list(config: Config, options: argparse.Namespace) -> None:
    with reading(config) as conn:
        rows = operators.rows(conn)
    for row in rows:
        found = known(row)
        print(printable(" ".join(filter(None, (row["name"], found.state, row["detail"])))))
        for tool in found.tools:
            waits = "" if tool.name in found.accepted else "(waits for 'svc tools accept') "
            print(printable(f"  {tool.name}: {waits}{tool.description}"))


@command(
    "tools accept",
    "accept all tools of a server as they now are; changed and new ones are not used before",
    argument("name", help="the name of the server in the catalog"),
)
def _accept(config: Config, options: argparse.Namespace) -> None:
    with writing(config) as tx:
        count = operators.accept(tx, options.name, time.time())
    print(f"{count} tools of {options.name} are accepted")


async def examined(outbound: Outbound, server: OperatorServer, seconds: float) -> Result:
    """Ask a server for its tools, for `svc doctor`."""
    found = await read(server.target(outbound), server.tools, seconds)
    if found.tools is None:
        return "wrong", f"{found.detail} Check that it runs at {server.url}"
    missing = sorted((server.tools or frozenset()).difference(tool.name for tool in found.tools))
    if missing or found.detail:
        text = f"it does not list {', '.join(missing[:5])}, which the catalog names. " if missing else ""
        return "look", text + (found.detail or "")
    return "ok", f"it lists {len(found.tools)} tools"
