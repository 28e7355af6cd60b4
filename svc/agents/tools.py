"""The tools of agents: a function each, and the table that names them. Files are written as artifacts.

To add one: write its function, and its line in TOOLS.
"""

import asyncio
import codecs
import contextlib
import sqlite3
from typing import Any

from svc.agents.loop import ToolFailure
from svc.agents.toolbox import AgentTool, Offer, RunContext, file_fields
from svc.builtin.calculate import calculate
from svc.content import artifacts, contents, recall
from svc.content.artifacts import Artifact
from svc.ids import timestamp
from svc.outbound.errors import OutboundError
from svc.shapes import text

_READ_BYTES = 64 * 1024
_LISTED = 50
_FETCH_SECONDS = 20.0
_SHORT_EXPRESSION = 64  # characters: whatever they are, it takes less than a millisecond


async def compute(run: RunContext, expression: str) -> str:
    return await asyncio.to_thread(calculate, expression) if len(expression) > _SHORT_EXPRESSION else calculate(expression)


async def current_time(run: RunContext) -> str:
    return timestamp(run.clock())


async def list_artifacts(run: RunContext) -> list[dict[str, Any]]:
    newest = await run.db.read(artifacts.artifacts_page, run.account_id, _LISTED, None, None, None)
    return [file_fields(row) for row in newest.items]


async def read_artifact(run: RunContext, id: str) -> str:
    def read(conn: sqlite3.Connection) -> tuple[Artifact, bytes]:
        found = artifacts.artifact_by_id(conn, run.account_id, id)
        return found, contents.content_piece(conn, run.account_id, id, found.sha256, 0) if found.size else b""

    artifact, content = await run.db.read(read)
    try:
        # The cut may go through a character.
        return codecs.getincrementaldecoder("utf-8")().decode(content[:_READ_BYTES], final=artifact.size <= _READ_BYTES)
    except UnicodeDecodeError:
        raise ToolFailure(f"This file is no text ({artifact.content_type}).") from None


async def write_artifact(run: RunContext, name: str, content: str) -> dict[str, Any]:
    artifact = await artifacts.add_artifact(
        run.db,
        run.account_id,
        content.encode("utf-8", "replace"),
        name=name,
        content_type="text/plain; charset=utf-8",
        project_id=run.project_id,
        run_id=run.run_id,
        now_seconds=run.clock(),
    )
    return file_fields(artifact)


async def generate_image(run: RunContext, prompt: str) -> dict[str, Any]:
    artifact, revised_prompt = await run.maker.draw(prompt)
    return {**file_fields(artifact), **({} if revised_prompt is None else {"revised_prompt": revised_prompt})}


async def generate_audio(run: RunContext, input: str) -> dict[str, Any]:
    return file_fields(await run.maker.speak(input))


async def search_memory(run: RunContext, query: str) -> list[dict[str, Any]]:
    found = await run.db.heavy_read(recall.matching_passages, run.account_id, query)
    return [passage.as_json() for passage in found]


async def fetch_url(run: RunContext, url: str) -> dict[str, Any]:
    headers = [(b"accept", b"text/*, application/json"), (b"user-agent", b"svc")]
    content = b""
    try:
        async with asyncio.timeout(_FETCH_SECONDS):
            reply = await run.guarded.send("GET", url, headers, timeout_seconds=_FETCH_SECONDS, account_id=run.account_id)
            async with contextlib.aclosing(reply):
                async for piece in reply:
                    content += piece
                    if len(content) >= _READ_BYTES:
                        break
    except (OutboundError, TimeoutError):
        # One text for every fault: it must not tell which ports of the network answer.
        raise ToolFailure("This address cannot be read. Only public http and https pages can.") from None
    content_type = (reply.header(b"content-type") or "")[:200]
    if b"\0" in content:
        raise ToolFailure(f"What is at this address is no text ({content_type}).")
    return {"status": reply.status, "content_type": content_type, "text": content[:_READ_BYTES].decode("utf-8", "replace")}


def _in_sessions(offer: Offer) -> bool:
    return offer.session


def _where_allowed(offer: Offer) -> bool:
    return offer.fetch


def _with_painter(offer: Offer) -> bool:
    return offer.image


def _with_voice(offer: Offer) -> bool:
    return offer.speech


_EXPRESSION = {"expression": text(1_000, least=1).about("for instance 12 * (3 + 4)")}
_ID = {"id": text(100, least=1).about("the file's id, art_...")}
_FILE = {
    "name": text(artifacts.NAME_LENGTH, least=1).about("a file name such as note.md"),
    "content": text(1_000_000),
}
_PROMPT = {"prompt": text(4_000, least=1).about("what the picture is to show")}
_INPUT = {"input": text(10_000, least=1).about("the text to be spoken")}
_QUERY = {"query": text(1_000, least=1)}
_URL = {"url": text(2_000, least=8).about("http:// or https://")}

TOOLS: dict[str, AgentTool] = {
    tool.name: tool
    for tool in (
        AgentTool("calculate", "Computes an arithmetic expression exactly: + - * / // % ** ().", _EXPRESSION, compute),
        AgentTool("current_time", "Tells the current date and time in UTC.", {}, current_time),
        AgentTool("list_artifacts", "Lists the newest files of the user: id, name, type and size.", {}, list_artifacts),
        AgentTool("read_artifact", "Reads a text file of the user, its first 64 KiB.", _ID, read_artifact),
        AgentTool("write_artifact", "Writes a new text file for the user.", _FILE, write_artifact),
        AgentTool("generate_image", "Draws a picture, kept as a file of the user.", _PROMPT, generate_image, _with_painter),
        AgentTool("generate_audio", "Speaks a text, kept as a file of the user.", _INPUT, generate_audio, _with_voice),
        AgentTool("search_memory", "Finds what the user said or was told before.", _QUERY, search_memory, _in_sessions),
        AgentTool("fetch_url", "Reads a public web page or text file, 64 KiB.", _URL, fetch_url, _where_allowed),
    )
}


def tools_for(offer: Offer) -> dict[str, AgentTool]:
    """The tools that a run of this kind may use, by name."""
    return {name: tool for name, tool in TOOLS.items() if tool.offered(offer)}
