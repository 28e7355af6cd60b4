"""Tools that compute: arithmetic, the clock, Python."""

import asyncio
import re
from typing import Annotated, Any

import orjson

from svc.agents.tools.registry import ToolContext, ToolFailure, tool
from svc.builtin import calculate as arithmetic
from svc.builtin import sandbox
from svc.errors import UpstreamFault
from svc.ids import timestamp
from svc.shapes import text

_CODE_CHARACTERS = 100_000
_MOST_CALLS = 100
_STOPPED = (
    f"The code was stopped at a limit: {sandbox.CPU_SECONDS} seconds of CPU, {sandbox.HEAP_BYTES >> 20} MiB, or "
    "the time of a tool."
)


@tool("Computes an arithmetic expression exactly: + - * / // % ** ().")
async def calculate(
    context: ToolContext, expression: Annotated[str, text(1_000, least=1).about("for instance 12 * (3 + 4)")]
) -> str:
    return await asyncio.to_thread(arithmetic.calculate, expression)


@tool("Returns the current date and time in UTC.")
async def current_time(context: ToolContext) -> str:
    return timestamp(context.engines.clock())


@tool(
    "Runs Python without files and network, at most 10 seconds of CPU and 256 MiB. Returns what the code prints, and "
    "the value of its last line. The other tools are functions in it, with the same arguments: use it for many calls, "
    "loops and calculations. A tool that fails raises RuntimeError.",
    "python",
    cuts_itself=True,
)
async def run_python(
    context: ToolContext, code: Annotated[str, text(_CODE_CHARACTERS, least=1).about("the code", "print(6 * 7)")]
) -> dict[str, Any]:
    # Names of other servers' tools may have dashes. One without goes first.
    known = sorted(context.tools.keys() - {"run_python"}, key=str.isidentifier)
    names = {re.sub(r"\W", "_", name): name for name in known}
    calls = 0

    async def answer(question: bytes) -> bytes:
        nonlocal calls
        calls += 1
        asked = orjson.loads(question)
        try:
            if calls > _MOST_CALLS:
                raise ToolFailure(f"The code may call tools {_MOST_CALLS} times.")
            if context.tools[names[asked["name"]]].ask:
                raise ToolFailure(f"{asked['name']} needs an approval. Call it as a tool, not in Python.")
            return b'{"result": %b}' % await context.call_inner(names[asked["name"]], asked["arguments"])
        except ToolFailure as failure:
            return orjson.dumps({"failure": str(failure)})

    functions = {one: list(context.tools[name].parameters.get("properties", ())) for one, name in names.items()}
    order = sandbox.order(code, functions)
    try:
        done = orjson.loads(await context.pools["python"].converse(order, answer, account_id=context.home.account_id))
    except UpstreamFault:
        raise ToolFailure(_STOPPED) from None
    if "failure" in done:
        output = done["output"].removesuffix("\n")
        raise ToolFailure(f"{output}\n{done['failure']}".lstrip("\n"))
    return {"output": done["output"], "value": done["value"]}
