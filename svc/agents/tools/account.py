"""Tools for what the account has stored: its files, which are artifacts, and its conversations."""

import codecs
import sqlite3
from typing import Annotated, Any

from svc.agents.tools.registry import ToolContext, ToolFailure, tool
from svc.content import artifact_contents, artifacts, recall
from svc.content.artifacts import Artifact
from svc.shapes import text

_READ_BYTES = 64 * 1024
_LISTED = 50


def file_fields(artifact: Artifact) -> dict[str, Any]:
    """Return the fields of a file that a model sees."""
    return {"id": artifact.id, "name": artifact.name, "content_type": artifact.content_type, "size": artifact.size}


@tool("Lists the newest files of the user: id, name, type and size.")
async def list_artifacts(context: ToolContext) -> list[dict[str, Any]]:
    newest = await context.engines.db.read(artifacts.TABLE.page, context.home.account_id, _LISTED, None)
    return [file_fields(row) for row in newest.items]


@tool("Reads a text file of the user from its beginning, at most 64 KiB.")
async def read_artifact(
    context: ToolContext, id: Annotated[str, text(100, least=1).about("the file's id, art_...")]
) -> str:
    def read(conn: sqlite3.Connection) -> tuple[Artifact, bytes]:
        found = artifacts.TABLE.by_id(conn, context.home.account_id, id)
        return found, artifact_contents.content_chunk(
            conn, context.home.account_id, id, found.sha256, 0
        ) if found.size else b""

    artifact, content = await context.engines.db.read(read)
    try:
        # The last character may be cut.
        return codecs.getincrementaldecoder("utf-8")().decode(content[:_READ_BYTES], final=artifact.size <= _READ_BYTES)
    except UnicodeDecodeError:
        raise ToolFailure(f"This file is not text ({artifact.content_type}).") from None


@tool("Writes a new text file for the user.")
async def write_artifact(
    context: ToolContext,
    name: Annotated[str, text(artifacts.NAME_LENGTH, least=1).about("a file name such as note.md")],
    content: Annotated[str, text(1_000_000)],
) -> dict[str, Any]:
    artifact = await artifacts.add_artifact(
        context.engines.db,
        context.home,
        content.encode("utf-8", "replace"),
        name=name,
        content_type="text/plain; charset=utf-8",
        now_seconds=context.engines.clock(),
    )
    return file_fields(artifact)


@tool("Finds passages of earlier conversations.", "session")
async def search_memory(context: ToolContext, query: Annotated[str, text(1_000, least=1)]) -> list[dict[str, Any]]:
    found = await context.engines.db.heavy_read(recall.matching_passages, context.home.account_id, query)
    return [passage.as_json() for passage in found]
