"""The files of projects: artifacts whose text the chats and runs of a project may use.

add_file -> `reading` -> svc/server/reading.py: begin_text, add_passages, finish -> `ready` or `failed`
The text is stored in passages, whose words are indexed (word_runs.py). What no file has is deleted in slices.
"""

import sqlite3
from collections.abc import Iterable
from functools import partial
from typing import Annotated, Any, NamedTuple

from svc import quota
from svc.content import artifacts, projects
from svc.content.word_runs import files_index
from svc.content.words import indexed_words
from svc.errors import ApiError
from svc.ids import fields_as_json, new_id
from svc.shapes import record, string
from svc.tables import Table, delete_found, refusals

MOST_FILES = 200  # as in schema.sql
MOST_TEXT_BYTES = 50_000_000  # of a project
_DELETED_PASSAGES = 16


@record("AddProjectFileRequest", example={"artifact_id": "art_01m3250v3vfsgzezy8ak224fj9"})
class NewFile(NamedTuple):
    artifact_id: Annotated[str, string.about("The artifact whose text is read.")]


class ProjectFile(NamedTuple):
    """A row of `project_files` with fields of its artifact."""

    number: int
    account_id: str
    project_id: str
    artifact_id: str
    status: str
    error_code: str | None
    error_message: str | None
    text_id: str | None
    text_bytes: int
    created_at: float
    name: str
    content_type: str
    size: int
    sha256: bytes
    content_id: str

    def as_json(self) -> dict[str, Any]:
        error = None if self.error_code is None else {"code": self.error_code, "message": self.error_message}
        names = "artifact_id project_id name content_type size status text_bytes created_at"
        return {**fields_as_json(self._asdict(), names), "error": error}


class FilePassage(NamedTuple):
    """A part of a text; `page` is None in files without pages. Lines are counted from 1."""

    page: int | None
    from_line: int
    to_line: int
    text: str


_FILES = """
    SELECT project_files.*, name, content_type, size, sha256, content_id
    FROM project_files JOIN artifacts ON artifacts.account_id = project_files.account_id AND id = artifact_id
"""


def _made(rows: Iterable[sqlite3.Row]) -> list[ProjectFile]:
    return [ProjectFile(**row) for row in rows]


def files_of(conn: sqlite3.Connection, account_id: str, project_id: str) -> list[ProjectFile]:
    """Return the files of a project in the order in which they were added."""
    query = f"{_FILES} WHERE project_files.account_id = ? AND project_files.project_id = ? ORDER BY number"
    return _made(conn.execute(query, (account_id, project_id)))


def listed(conn: sqlite3.Connection, account_id: str, project_id: str) -> list[ProjectFile]:
    """Return `files_of`. Raises ApiError `not_found`."""
    projects.TABLE.by_id(conn, account_id, project_id)
    return files_of(conn, account_id, project_id)


class ReadyText(NamedTuple):
    """A project that has files, and how much text of them is ready."""

    project_id: str
    text_bytes: int


_READY_BYTES = """
    SELECT project_id, sum(text_bytes) AS text_bytes FROM project_files
    WHERE account_id = ?1 AND project_id = {project} GROUP BY project_id
"""
_OF_PROJECT = _READY_BYTES.format(project="?2")
_OF_CHAT = _READY_BYTES.format(project="(SELECT project_id FROM conversations WHERE account_id = ?1 AND id = ?2)")


def files_of_project(conn: sqlite3.Connection, account_id: str, project_id: str) -> ReadyText | None:
    """Return the files of a project, or None if it has none."""
    row = conn.execute(_OF_PROJECT, (account_id, project_id)).fetchone()
    return None if row is None else ReadyText(*row)


def files_of_chat(conn: sqlite3.Connection, account_id: str, conversation_id: str) -> ReadyText | None:
    """Return the files of a conversation's project, or None if it has none."""
    row = conn.execute(_OF_CHAT, (account_id, conversation_id)).fetchone()
    return None if row is None else ReadyText(*row)


def _one(conn: sqlite3.Connection, account_id: str, project_id: str, artifact_id: str) -> ProjectFile | None:
    query = f"{_FILES} WHERE project_files.account_id = ? AND project_files.project_id = ? AND artifact_id = ?"
    return next(iter(_made(conn.execute(query, (account_id, project_id, artifact_id)))), None)


def add_file(
    tx: sqlite3.Connection, account_id: str, project_id: str, new: NewFile, now_seconds: float
) -> tuple[ProjectFile, bool]:
    """Return the file, and whether it is new. Raises ApiError `not_found`, `PAYLOAD_TOO_LARGE`, `quota_exceeded`."""
    projects.TABLE.by_id(tx, account_id, project_id)
    artifacts.TABLE.by_id(tx, account_id, new.artifact_id, "artifact_id")
    if (found := _one(tx, account_id, project_id, new.artifact_id)) is not None:
        return found, False
    if _text_bytes(tx, account_id, project_id) >= MOST_TEXT_BYTES:
        raise too_much_text()
    quota.check_row(tx, account_id)
    statement = "INSERT INTO project_files (account_id, project_id, artifact_id, created_at) VALUES (?, ?, ?, ?)"
    full = ApiError("PAYLOAD_TOO_LARGE", f"This project has {MOST_FILES} files, the maximum. Remove some first.")
    with refusals(project_files_count=full):
        tx.execute(statement, (account_id, project_id, new.artifact_id, now_seconds))
    added = _one(tx, account_id, project_id, new.artifact_id)
    assert added is not None
    return added, True


def remove_file(tx: sqlite3.Connection, account_id: str, project_id: str, artifact_id: str) -> None:
    """Remove a file from a project; the artifact stays. Raises ApiError `not_found`."""
    statement = "DELETE FROM project_files WHERE account_id = ? AND project_id = ? AND artifact_id = ?"
    if not tx.execute(statement, (account_id, project_id, artifact_id)).rowcount:
        raise ApiError("not_found", "This project has no such file.")


def _text_bytes(conn: sqlite3.Connection, account_id: str, project_id: str) -> int:
    query = "SELECT ifnull(sum(text_bytes), 0) FROM project_files WHERE account_id = ? AND project_id = ?"
    return int(conn.execute(query, (account_id, project_id)).fetchone()[0])


def too_much_text() -> ApiError:
    message = f"A project may have at most {MOST_TEXT_BYTES} bytes of text. Remove some files first."
    return ApiError("PAYLOAD_TOO_LARGE", message)


# --- reading


def next_reading(conn: sqlite3.Connection, busy: Iterable[str]) -> ProjectFile | None:
    """Return the oldest file that waits to be read, of an account that is not in `busy`."""
    others = "".join(", ?" for _ in busy)
    query = f"""{_FILES} WHERE status = 'reading' AND project_files.account_id NOT IN (''{others})
        ORDER BY number LIMIT 1"""
    return next(iter(_made(conn.execute(query, tuple(busy)))), None)


def begin_text(tx: sqlite3.Connection, account_id: str) -> str:
    """Return the id of a new text. It is unused until `finish`, so that a crash leaves nothing behind."""
    text_id = new_id("text")
    with refusals():
        tx.execute("INSERT INTO file_texts (account_id, id) VALUES (?, ?)", (account_id, text_id))
    return text_id


def add_passages(
    tx: sqlite3.Connection, account_id: str, project_id: str, text_id: str, passages: Iterable[FilePassage]
) -> None:
    """Store passages of a text and index their words."""
    index = files_index(project_id)
    statement = """
        INSERT INTO file_passages (account_id, text_id, mark, page, from_line, to_line, text)
        VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING number
    """
    for passage in passages:
        (number,) = tx.execute(statement, (account_id, text_id, index.mark, *passage)).fetchone()
        index.add(tx, account_id, number, indexed_words(passage.text))


def finish(tx: sqlite3.Connection, file: ProjectFile, text_id: str, text_bytes: int) -> None:
    """Make a text that of its file. If the file was removed or replaced since, the text is unused.

    Raises ApiError `PAYLOAD_TOO_LARGE` and `quota_exceeded`.
    """
    now = _one(tx, file.account_id, file.project_id, file.artifact_id)
    if now is None or now.number != file.number or now.content_id != file.content_id:
        leave(tx, file.account_id, text_id)
        return
    if _text_bytes(tx, file.account_id, file.project_id) + text_bytes > MOST_TEXT_BYTES:
        raise too_much_text()
    quota.check_room(tx, file.account_id, text_bytes)
    statement = """
        UPDATE project_files SET status = 'ready', text_id = ?, text_bytes = ? WHERE account_id = ? AND number = ?
    """
    tx.execute(statement, (text_id, text_bytes, file.account_id, file.number))


def fail(tx: sqlite3.Connection, file: ProjectFile, text_id: str | None, code: str, message: str) -> None:
    """Store why a file cannot be read, unless it was replaced since."""
    if text_id is not None:
        leave(tx, file.account_id, text_id)
    statement = """
        UPDATE project_files SET status = 'failed', error_code = ?, error_message = ?
        WHERE account_id = ? AND number = ? AND status = 'reading' AND EXISTS (
            SELECT 1 FROM artifacts WHERE account_id = project_files.account_id AND id = artifact_id AND content_id = ?)
    """
    tx.execute(statement, (code[:64], message[:1000], file.account_id, file.number, file.content_id))


def leave(tx: sqlite3.Connection, account_id: str, text_id: str) -> None:
    tx.execute("UPDATE file_texts SET unused = 1 WHERE account_id = ? AND id = ?", (account_id, text_id))


def leave_unfinished(tx: sqlite3.Connection) -> None:
    """Mark the texts that an earlier server did not finish as unused. For the start."""
    statement = """
        UPDATE file_texts SET unused = 1 WHERE NOT unused AND NOT EXISTS (
            SELECT 1 FROM project_files WHERE account_id = file_texts.account_id AND text_id = file_texts.id)
    """
    tx.execute(statement)


# --- deletion


def _delete_slice(tx: sqlite3.Connection, account_id: str, text_id: str) -> None:
    """Delete some passages of a text, and after the last ones its row."""
    query = """
        SELECT number, mark, length(CAST(text AS BLOB)) AS size FROM file_passages
        WHERE account_id = ? AND text_id = ? ORDER BY number DESC LIMIT ?
    """
    rows = tx.execute(query, (account_id, text_id, _DELETED_PASSAGES)).fetchall()
    if not rows:
        tx.execute("DELETE FROM file_texts WHERE account_id = ? AND id = ?", (account_id, text_id))
        return
    first, last = rows[-1]["number"], rows[0]["number"]
    index = files_index(rows[0]["mark"].strip("+"))
    index.remove(tx, account_id, first, last + 1, sum(row["size"] for row in rows))
    statement = "DELETE FROM file_passages WHERE account_id = ? AND text_id = ? AND number >= ?"
    tx.execute(statement, (account_id, text_id, first))


_UNUSED = "SELECT account_id, id FROM file_texts WHERE unused LIMIT 1"


def delete_unused(tx: sqlite3.Connection) -> bool:
    """Delete some passages of an unused text; return whether there was one."""
    row = tx.execute(_UNUSED).fetchone()
    if row is not None:
        _delete_slice(tx, *row)
    return row is not None


delete_some = Table("project_files", dict, "file", order=("number",)).delete_some
_OF_ACCOUNT = "SELECT account_id, id FROM file_texts WHERE account_id = ? LIMIT 1"
delete_texts_some = partial(delete_found, _OF_ACCOUNT, _delete_slice)


# --- what people and tools read


class FilePlace(NamedTuple):
    """A place in a file: passages from `offset` on, or those around `line`.

    A long line has many passages: those around the one that begins with `begin`, if there is one.
    """

    line: int | None
    begin: str
    offset: int | None


def passages_near(
    conn: sqlite3.Connection, account_id: str, artifact_id: str, place: FilePlace, limit: int
) -> dict[str, Any]:
    """Return passages of a file at a place. Raises ApiError `not_found`."""
    query = """
        SELECT text_id FROM project_files WHERE account_id = ? AND artifact_id = ? AND status = 'ready' LIMIT 1
    """
    row = conn.execute(query, (account_id, artifact_id)).fetchone()
    if row is None:
        raise not_read()
    of_text = "FROM file_passages WHERE account_id = ? AND text_id = ?"
    text = (account_id, row["text_id"])
    offset = place.offset
    if offset is None:
        in_line = f"{of_text} AND from_line <= ? AND to_line >= ?"
        found = f"SELECT number {in_line} AND substr(text, 1, ?) = ? ORDER BY number LIMIT 1"
        begin = (place.line, place.line, len(place.begin), place.begin)
        first = conn.execute(found, (*text, *begin)).fetchone() if place.begin else None
        earlier, at = ("to_line < ?", place.line) if first is None else ("number < ?", first["number"])
        before = conn.execute(f"SELECT count(*) {of_text} AND {earlier}", (*text, at)).fetchone()[0]
        offset = max(0, before - limit // 2)
    total = conn.execute(f"SELECT count(*) {of_text}", text).fetchone()[0]
    columns = "page, from_line, to_line, text"
    rows = conn.execute(f"SELECT {columns} {of_text} ORDER BY number LIMIT ? OFFSET ?", (*text, limit, offset))
    return {"data": [dict(row) for row in rows], "offset": offset, "total": total}


def not_read() -> ApiError:
    return ApiError("not_found", "No project has the text of this artifact.")


def text_lines(
    conn: sqlite3.Connection, file: ProjectFile, from_line: int, lines: int, most_characters: int
) -> FilePassage:
    """Return text of a file from a line on, at most so many lines and characters, with its first page and last line."""
    query = """
        SELECT page, from_line, to_line, text FROM file_passages
        WHERE account_id = ? AND text_id = ? AND to_line >= ? AND from_line < ? ORDER BY number
    """
    parts: list[str] = []
    characters, last, page = 0, from_line - 1, None
    for row in conn.execute(query, (file.account_id, file.text_id, from_line, from_line + lines)):
        own = row["text"].split("\n")
        own = own[max(0, from_line - row["from_line"]) : from_line + lines - row["from_line"]]
        text = "\n".join(own)
        page = page or row["page"]
        if parts:
            parts.append("" if row["from_line"] == last else "\n")
        parts.append(text)
        characters += len(text)
        last = min(row["to_line"], from_line + lines - 1)
        if characters >= most_characters:
            break
    return FilePassage(page, from_line, last, "".join(parts))
