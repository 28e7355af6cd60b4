"""Imports of exports: their reports, what was imported by its id in the export, and undo.

begin_chat -> add_messages, some milliseconds at a time -> end_chat; svc/server/importing.py calls them
A message follows its parent. If another one does already, it is a new version of that one (branches.py).
"""

import hashlib
import sqlite3
import time
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import orjson

from svc import quota
from svc.content import artifacts, branches, conversations, history, imported_answers, projects, remembered
from svc.content.imported_answers import within
from svc.errors import ApiError
from svc.ids import fields_as_json, new_id
from svc.shapes import CONTROL_CHARACTERS
from svc.tables import Table, delete_found, refusals, storable

KEPT_DAYS = 30.0
MOST_LISTED = 20_000  # entries of a report
INTERRUPTED = "The server ended during this import. Import the file again: what is there already is skipped."
_SOME_SECONDS = 0.005
_REASON_LENGTH = 1_000
_NAME_LENGTH = 200


class Import(NamedTuple):
    """A row of `imports`; `created_at` in Unix seconds, `settings` are those before the import, as JSON."""

    id: str
    account_id: str
    status: str
    source: str | None
    reason: str | None
    settings: str | None
    imported: int
    skipped: int
    failed: int
    created_at: float

    def as_json(self) -> dict[str, Any]:
        counts = {"imported": self.imported, "skipped": self.skipped, "failed": self.failed}
        return {**fields_as_json(self._asdict(), "id status source reason created_at"), "counts": counts}


class Plan(NamedTuple):
    """A chat that is imported into a conversation. `ids` has its stored messages by their ids in the export."""

    conversation_id: str
    ids: dict[str, str]
    is_new: bool


TABLE = Table("imports", lambda row: Import(**row), "import", "imp")
TABLES = {"conversation": "conversations", "project": "projects", "artifact": "artifacts", "prompt": "prompts"}
_ITEMS = Table("imported_items", dict, "imported item")
_ENTRIES = Table("import_entries", dict, "entry")
delete_items_some = _ITEMS.delete_some
delete_entries_some = _ENTRIES.delete_some


def add_import(tx: sqlite3.Connection, account_id: str, now_seconds: float) -> Import:
    """Store an import that begins. Raises ApiError `already_active` during another one, and `quota_exceeded`."""
    quota.check_row(tx, account_id)
    with refusals(UNIQUE=already_importing()):
        columns = {"id": new_id("imp", now_seconds), "account_id": account_id, "created_at": now_seconds}
        return TABLE.insert(tx, columns)


def already_importing() -> ApiError:
    return ApiError("already_active", "Another import is in progress. Wait for its end, or undo it.")


def is_importing(conn: sqlite3.Connection, account_id: str) -> bool:
    query = "SELECT 1 FROM imports WHERE account_id = ? AND status = 'reading'"
    return conn.execute(query, (account_id,)).fetchone() is not None


def change(tx: sqlite3.Connection, account_id: str, import_id: str, columns: Mapping[str, Any]) -> Import:
    return TABLE.update(tx, account_id, import_id, columns)


def end_interrupted(tx: sqlite3.Connection) -> None:
    """End the imports that a crash left in progress."""
    tx.execute("UPDATE imports SET status = 'failed', reason = ? WHERE status = 'reading'", (INTERRUPTED,))


def add_entry(
    tx: sqlite3.Connection, account_id: str, import_id: str, title: str | None, status: str, reason: str | None = None
) -> None:
    """Add a conversation to the report. Raises ApiError `quota_exceeded`."""
    title, reason = label_of(title), reason and storable(reason, _REASON_LENGTH)
    columns = {"account_id": account_id, "import_id": import_id, "title": title, "status": status, "reason": reason}
    full = ApiError("quota_exceeded", "This file has over 100,000 conversations. Import it in parts.")
    with refusals(import_entries_count=full):
        _ENTRIES.insert(tx, columns)


def entries(conn: sqlite3.Connection, account_id: str, import_id: str) -> list[dict[str, Any]]:
    query = """
        SELECT title, status, reason FROM import_entries WHERE account_id = ? AND import_id = ? ORDER BY number LIMIT ?
    """
    return [dict(row) for row in conn.execute(query, (account_id, import_id, MOST_LISTED))]


def label_of(value: Any, most: int = _NAME_LENGTH) -> str | None:
    """Return a name or title as it is, or if need be in one line of `most` characters, or None if it is blank."""
    if not isinstance(value, str) or not value.strip():
        return None
    if len(value) <= most and not CONTROL_CHARACTERS.search(value):
        return value
    return " ".join(CONTROL_CHARACTERS.sub(" ", value).split())[:most].strip() or None


# --- what is imported


def imported_id(conn: sqlite3.Connection, account_id: str, source: str, kind: str, source_id: str) -> str | None:
    """Return the id of what was imported, or None. This service's own export may name it by its own id."""
    query = """
        SELECT item_id FROM imported_items
        WHERE account_id = ? AND source = ? AND conversation_id = '' AND kind = ? AND source_id = ?
    """
    row = conn.execute(query, (account_id, source, kind, _key(source_id))).fetchone()
    if row is None and source == "svc":
        query = f"SELECT id FROM {TABLES[kind]} WHERE account_id = ? AND id = ?"  # noqa: S608 - our own names
        row = conn.execute(query, (account_id, source_id)).fetchone()
    return None if row is None else str(row[0])


def add_item(
    tx: sqlite3.Connection,
    account_id: str,
    import_id: str,
    source: str,
    kind: str,
    source_id: str,
    item_id: str,
    conversation_id: str = "",
) -> None:
    """Remember what is imported by its id in the export."""
    statement = """
        INSERT OR REPLACE INTO imported_items (account_id, import_id, kind, source, conversation_id, source_id, item_id)
        VALUES (?, ?, ?, ?, ?, ?, ?)
    """
    with refusals():
        tx.execute(statement, (account_id, import_id, kind, source, conversation_id, _key(source_id), item_id))


def _key(source_id: str) -> str:
    source_id = storable(source_id, len(source_id))
    return source_id if len(source_id) <= _NAME_LENGTH else hashlib.sha256(source_id.encode()).hexdigest()


def next_item(conn: sqlite3.Connection, account_id: str, import_id: str, kind: str) -> tuple[str, str] | None:
    """Return the id of something that an import has made, with the conversation or the project that it is in."""
    query = """
        SELECT item_id, conversation_id FROM imported_items WHERE account_id = ? AND import_id = ? AND kind = ? LIMIT 1
    """
    row = conn.execute(query, (account_id, import_id, kind)).fetchone()
    return None if row is None else (row["item_id"], row["conversation_id"])


def first_message(conn: sqlite3.Connection, account_id: str, import_id: str, conversation_id: str) -> int:
    """Return the number of the first message that an import has added to a conversation."""
    query = """
        SELECT min(messages.number) FROM imported_items JOIN messages ON messages.id = item_id
        WHERE imported_items.account_id = ? AND import_id = ? AND kind = 'message'
            AND imported_items.conversation_id = ?
    """
    first: int = conn.execute(query, (account_id, import_id, conversation_id)).fetchone()[0]
    return first


def forget_item(tx: sqlite3.Connection, account_id: str, kind: str, item_id: str, conversation_id: str = "") -> None:
    statement = """
        DELETE FROM imported_items WHERE account_id = ? AND kind = ? AND item_id = ? AND conversation_id = ?
    """
    tx.execute(statement, (account_id, kind, item_id, conversation_id))


def is_unused(conn: sqlite3.Connection, account_id: str) -> bool:
    """Return whether the account has no conversations, projects and artifacts."""
    tables = (conversations.TABLE, projects.TABLE, artifacts.TABLE)
    return not any(table.page(conn, account_id, 1, None).items for table in tables)


def add_project(
    tx: sqlite3.Connection, account_id: str, import_id: str, source: str, head: dict[str, Any], now_seconds: float
) -> None:
    """Import a project, unless it is there. Raises ApiError `quota_exceeded`."""
    source_id = str(head.get("id"))
    if imported_id(tx, account_id, source, "project", source_id) is not None:
        return
    steps, instructions = head.get("max_planner_steps"), head.get("instructions")
    new = projects.NewProject(
        label_of(head.get("name")) or "Untitled",
        storable(instructions, projects.INSTRUCTIONS_LENGTH) if isinstance(instructions, str) else "",
        steps if isinstance(steps, int) and 1 <= steps <= projects.MOST_STEPS else None,
    )
    project = projects.add_project(tx, account_id, new, time_in(head, now_seconds))
    add_item(tx, account_id, import_id, source, "project", source_id, project.id)


def begin_chat(
    tx: sqlite3.Connection, account_id: str, import_id: str, source: str, head: dict[str, Any], now_seconds: float
) -> Plan | None:
    """Return the conversation of a chat, a new one or that of an earlier import, or None if no message is new.

    Raises ApiError `already_active` if it has new messages and is being answered.
    """
    source_id = str(head.get("id"))
    conversation_id = imported_id(tx, account_id, source, "conversation", source_id)
    if conversation_id is not None:
        ids = _stored_ids(tx, account_id, source, conversation_id)
        if all(_key(str(one)) in ids for one in head["ids"]):
            return None
        if conversations.TABLE.by_id(tx, account_id, conversation_id).answering:
            raise history.already_answering()
        return Plan(conversation_id, ids, is_new=False)
    project, created = head.get("project"), time_in(head, now_seconds)
    fields = {
        "title": label_of(head.get("title")),
        "project_id": project and imported_id(tx, account_id, source, "project", str(project)),
        "pinned": head.get("pinned") is True,
        "archived": head.get("archived") is True,
        "temperature": within(head.get("temperature"), 0, 2),
        "max_output_tokens": within(head.get("max_output_tokens"), 1, 2**31 - 1, whole=True),
        "created_at": created,
        "updated_at": max(created, time_in({"created": head.get("updated")}, now_seconds)),
    }
    made = conversations.add_conversation(tx, account_id, now_seconds, new_id("conv", now_seconds), **fields)
    add_item(tx, account_id, import_id, source, "conversation", source_id, made.id)
    return Plan(made.id, {}, is_new=True)


def _stored_ids(conn: sqlite3.Connection, account_id: str, source: str, conversation_id: str) -> dict[str, str]:
    query = """
        SELECT source_id, item_id FROM imported_items
        WHERE account_id = ? AND source = ? AND conversation_id = ? AND kind = 'message'
    """
    found = dict(map(tuple, conn.execute(query, (account_id, source, conversation_id))))
    if source == "svc":  # the export may be this conversation's own
        query = "SELECT id, id FROM messages WHERE account_id = ? AND conversation_id = ?"
        found = dict(map(tuple, conn.execute(query, (account_id, conversation_id)))) | found
    return found


def time_in(head: Mapping[str, Any], now_seconds: float) -> float:
    created = head.get("created")
    return min(created, now_seconds) if isinstance(created, int | float) else now_seconds


def add_messages(
    tx: sqlite3.Connection,
    account_id: str,
    import_id: str,
    source: str,
    plan: Plan,
    messages: list[dict[str, Any]],
    now_seconds: float,
) -> tuple[int, dict[str, str]]:
    """Add messages for 5 ms. Return how many of the list are done, and the ids of all stored ones.

    Raises ApiError `quota_exceeded` for too many versions.
    """
    ends, ids, done = time.monotonic() + _SOME_SECONDS, dict(plan.ids), 0
    for message in messages:
        source_id = _key(str(message["id"]))
        if source_id not in ids:
            stored = _add_message(tx, account_id, plan.conversation_id, message, ids, now_seconds)
            add_item(tx, account_id, import_id, source, "message", source_id, stored.id, plan.conversation_id)
            ids[source_id] = stored.id
        done += 1
        if time.monotonic() > ends:
            break
    return done, ids


def _add_message(
    tx: sqlite3.Connection,
    account_id: str,
    conversation_id: str,
    message: dict[str, Any],
    ids: dict[str, str],
    now_seconds: float,
) -> history.Message:
    details, role = message["details"], message["role"]
    is_answer = role == "assistant"
    status = details.get("status") if is_answer and details.get("status") in history.STATUSES else "complete"
    error = orjson.dumps(details["error"]).decode() if isinstance(details.get("error"), dict) else None
    if status == history.IN_PROGRESS or (status == "failed" and error is None):
        status = "interrupted"
    replaced, branch = _place(tx, account_id, conversation_id, ids.get(_key(str(message["parent"]))))
    stored = history.add_message(
        tx,
        account_id,
        conversation_id=conversation_id,
        role=role if role in ("system", "user") else "assistant",
        content=str(message["content"]),
        now_seconds=time_in(message, now_seconds),
        model=message["model"] if is_answer else None,
        replaces=replaced,
        branch=branch,
        status=status,
        error=error if status == "failed" else None,
    )
    if is_answer:
        imported_answers.add_details(tx, account_id, stored.id, message, ids)
    if isinstance(forgotten := message.get("forgotten"), int | float):
        remembered.forget(tx, account_id, stored.id, min(forgotten, now_seconds))
    return stored


def _place(
    conn: sqlite3.Connection, account_id: str, conversation_id: str, parent_id: str | None
) -> tuple[str | None, int | None]:
    """Return the message that the child of a parent replaces, or else the branch that it continues."""
    query = "SELECT number, branch FROM messages WHERE account_id = ? AND id = ?"
    number, branch = conn.execute(query, (account_id, parent_id)).fetchone() or (0, 0)
    query = """
        SELECT id FROM messages
        WHERE account_id = ? AND conversation_id = ? AND number > ? AND branch = ? ORDER BY number LIMIT 1
    """
    following = conn.execute(query, (account_id, conversation_id, number, branch)).fetchone()
    return (following["id"], None) if following else (None, branch)


def end_chat(
    tx: sqlite3.Connection, account_id: str, import_id: str, plan: Plan, head: dict[str, Any], reason: str | None
) -> None:
    """Show the branch that the export shows, add its summary, and add the chat to the report."""
    if (shown := plan.ids.get(_key(str(head.get("current"))))) is not None:
        message = history.message_by_id(tx, account_id, plan.conversation_id, shown, "")
        branches.show(tx, account_id, plan.conversation_id, message.number, message.branch)
    _add_summary(tx, account_id, plan, head.get("summary"))
    add_entry(tx, account_id, import_id, head.get("title"), "imported", reason)


def _add_summary(tx: sqlite3.Connection, account_id: str, plan: Plan, summary: Any) -> None:
    """Store the summary of an export, unless the conversation has one, or lacks its last message."""
    if not isinstance(summary, dict) or not isinstance(text := summary.get("text"), str):
        return
    text, up_to = text.strip()[: conversations.SUMMARY_LENGTH], plan.ids.get(_key(str(summary.get("up_to_message_id"))))
    is_there = conversations.TABLE.by_id(tx, account_id, plan.conversation_id).summary is not None
    if text and up_to is not None and not is_there:
        conversations.set_summary(tx, account_id, plan.conversation_id, text, up_to)


def _delete_old(tx: sqlite3.Connection, account_id: str, import_id: str) -> None:
    of_import = "SELECT number FROM import_entries WHERE account_id = ? AND import_id = ? LIMIT 64"
    if not tx.execute(f"DELETE FROM import_entries WHERE number IN ({of_import})", (account_id, import_id)).rowcount:  # noqa: S608 - ours
        TABLE.delete(tx, account_id, import_id)


_OLD = "SELECT account_id, id FROM imports WHERE created_at < ? AND status <> 'reading' ORDER BY created_at LIMIT 1"
delete_old = partial(delete_found, _OLD, _delete_old)
