"""Tools that search and read the files of a project."""

import sqlite3
from typing import Annotated, Any

from svc.agents.tools.registry import ToolContext, ToolFailure, tool
from svc.content import file_search, project_files
from svc.content.project_files import FilePassage, ProjectFile
from svc.shapes import integer, text

_READ_LINES = 500
_READ_CHARACTERS = 8_000
_NOTHING = "No passage has these words. Try other words, or read a file: {}."


@tool(
    "Finds the passages of the project's files that have words of the query: up to 8, each with file, page, lines and "
    "number. Search again with other words if they do not answer the question.",
    "files",
    by_others=True,
)
async def find_in_files(
    context: ToolContext, query: Annotated[str, text(1_000, least=1, blank=False).about("words to find")]
) -> list[dict[str, Any]]:
    account_id, project_id = context.home.account_id, context.home.project_id or ""
    find = file_search.matching_passages
    found = await context.engines.db.heavy_read(find, account_id, project_id, query)
    if not found:
        files = await context.engines.db.read(project_files.files_of, account_id, project_id)
        raise ToolFailure(_NOTHING.format(", ".join(file.name for file in files[:50]) or "there is none"))
    return [{"number": context.sources.number_of_passage(one._asdict()), **one._asdict()} for one in found]


async def read_file(context: ToolContext, **asked: Any) -> dict[str, Any]:
    def read(conn: sqlite3.Connection) -> tuple[ProjectFile, FilePassage]:
        file = _file(conn, context, asked["file"])
        return file, project_files.text_lines(conn, file, asked["from"], asked["lines"], _READ_CHARACTERS)

    file, found = await context.engines.db.heavy_read(read)
    if found.to_line < asked["from"]:
        raise ToolFailure(f"{file.name} has no line {asked['from']}.")
    passage = {"file": file.artifact_id, "name": file.name, **found._asdict()}
    return {"number": context.sources.number_of_passage(passage), **passage}


# `from` is a word of Python, so it cannot be a parameter of the function.
read_file.__annotations__ = {
    "context": ToolContext,
    "file": Annotated[str, text(200, least=1).about("the file's id, art_..., or its name")],
    "from": Annotated[int, integer(1, 10_000_000).about("the first line, from 1")],
    "lines": Annotated[int, integer(1, _READ_LINES).about("how many lines")],
    "return": dict[str, Any],
}
tool("Reads lines of a file of the project, about 8,000 characters at once.", "files", by_others=True)(read_file)


def _file(conn: sqlite3.Connection, context: ToolContext, name: str) -> ProjectFile:
    """Return the file with an id, or else the newest with a name. Raises ToolFailure."""
    files = project_files.files_of(conn, context.home.account_id, context.home.project_id or "")
    of_id = [file for file in files if file.artifact_id == name]
    found = (of_id or [file for file in files if file.name == name])[-1:]
    if not found:
        names = ", ".join(file.name for file in files[:50])
        raise ToolFailure(f"The project has no file {name[:100]!r}. There are: {names}.")
    if found[0].status != "ready":
        reason = found[0].error_message or "It is still being read. Try again in a few seconds."
        raise ToolFailure(f"{found[0].name} cannot be read. {reason}")
    return found[0]
