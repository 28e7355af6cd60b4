"""Tools that use no data of the account: arithmetic, the clock."""

import asyncio
from typing import Annotated

from svc.agents.tools.registry import ToolContext, tool
from svc.builtin import calculate as arithmetic
from svc.ids import timestamp
from svc.shapes import text


@tool("Computes an arithmetic expression exactly: + - * / // % ** ().")
async def calculate(
    context: ToolContext, expression: Annotated[str, text(1_000, least=1).about("for instance 12 * (3 + 4)")]
) -> str:
    return await asyncio.to_thread(arithmetic.calculate, expression)


@tool("Returns the current date and time in UTC.")
async def current_time(context: ToolContext) -> str:
    return timestamp(context.engines.clock())
