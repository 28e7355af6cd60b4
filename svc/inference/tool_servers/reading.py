"""What was read from a tool server, and what of it its owner has accepted.

A tool is used if its digest is the accepted one. The first list of a server is accepted as it is. Later, changed tools
and new ones wait until their owner accepts them, because a description can steer a model.
"""

import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import orjson

from svc.inference.tool_servers.client import Target, ToolSession
from svc.inference.tool_servers.listed import ListedTool, accepted_names, as_text, from_text, usable
from svc.inference.tool_servers.messages import ToolServerFault

FRESH_SECONDS = 3600.0
_FAILED_SECONDS = 900.0
_DETAIL_CHARACTERS = 1_000
READY, FAILED, CHANGED = STATES = ("ready", "failed", "changed")


class Reading(NamedTuple):
    """The tools of a server, or None if it failed, and why it failed or tools are left out."""

    tools: list[ListedTool] | None
    detail: str | None = None


async def read(target: Target, wanted: frozenset[str] | None, seconds: float) -> Reading:
    """Ask a server for its tools, of those the `wanted` ones; None is all of them."""
    session = ToolSession(target)
    try:
        entries, notes = await session.tools(wanted, seconds)
    except ToolServerFault as fault:
        return Reading(None, str(fault)[:_DETAIL_CHARACTERS])
    finally:
        await session.aclose()
    tools, left_out = usable(entries)
    return Reading(tools, " ".join(notes + left_out)[:_DETAIL_CHARACTERS] or None)


def columns_of(
    reading: Reading, accepted: str | None, now_seconds: float, trusted: Iterable[str] = (), tools: str = "[]"
) -> dict[str, Any]:
    """Return the columns that change with a reading; `accepted` and `tools` are the columns before it.

    New tools with a `trusted` name are accepted. Tools that have changed keep the description that was accepted.
    """
    columns: dict[str, Any] = {"failed": reading.tools is None, "detail": reading.detail, "read_at": now_seconds}
    if reading.tools is None:
        return columns
    digests = {tool.name: tool.digest for tool in reading.tools}
    before = None if accepted is None else orjson.loads(accepted)
    if before is not None:
        digests = {name: digest for name, digest in digests.items() if name in trusted} | before
    earlier = {
        tool.name: tool.description if digests.get(tool.name) == tool.digest else tool.accepted_description
        for tool in from_text(tools)
    }
    now = [
        tool._replace(accepted_description=earlier.get(tool.name) if digests.get(tool.name) != tool.digest else None)
        for tool in reading.tools
    ]
    return {**columns, "tools": as_text(now), "accepted": orjson.dumps(digests).decode()}


def accepted_now(row: Mapping[str, Any] | sqlite3.Row) -> str:
    """Return the column `accepted` for all tools as they now are."""
    return orjson.dumps({tool.name: tool.digest for tool in from_text(row["tools"])}).decode()


class Known(NamedTuple):
    """What is known about a server: its tools, the names of the accepted ones, and its state."""

    tools: list[ListedTool]
    accepted: set[str]
    state: str

    @property
    def available(self) -> list[ListedTool]:
        return [] if self.state == FAILED else [tool for tool in self.tools if tool.name in self.accepted]


def known(row: Mapping[str, Any] | sqlite3.Row) -> Known:
    tools = from_text(row["tools"])
    accepted = accepted_names(tools, orjson.loads(row["accepted"] or "{}"))
    return Known(tools, accepted, FAILED if row["failed"] else READY if len(accepted) == len(tools) else CHANGED)


def due_before(now_seconds: float) -> tuple[float, float]:
    """Return the times of the last reading before which a server is read again, and before which a failed one is."""
    return now_seconds - FRESH_SECONDS, now_seconds - _FAILED_SECONDS
