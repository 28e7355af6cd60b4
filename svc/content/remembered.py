"""What memory can recall: the messages of an account, without those that it has forgotten."""

import sqlite3
from typing import Any

from svc.content import recall
from svc.content.recall import MOST_CHARACTERS
from svc.errors import ApiError
from svc.ids import fields_as_json
from svc.tables import Page, Table

QUERY_LENGTH = 4_000
_COLUMNS = "id conversation_id role created_at"


def _as_json(row: sqlite3.Row) -> dict[str, Any]:
    text = row["content"].strip()
    shown = text if len(text) <= MOST_CHARACTERS else text[: MOST_CHARACTERS - 1] + "\u2026"
    return {**fields_as_json(dict(row), _COLUMNS), "text": shown, "forgotten": bool(row["forgotten"])}


_REMEMBERED = Table("remembered_messages", _as_json, "message", "msg", order=("number",), texts=("content",))
_FORGOTTEN = Table("forgotten_messages", _as_json, "message", "msg", order=("number",), texts=("content",))


def newest(
    conn: sqlite3.Connection, account_id: str, limit: int, after: str | None, forgotten: bool
) -> Page[dict[str, Any]]:
    """Return the messages that recall may find, or those that were forgotten, newest first."""
    return (_FORGOTTEN if forgotten else _REMEMBERED).page(conn, account_id, limit, after)


def recalled(conn: sqlite3.Connection, account_id: str, question: str, forgotten: bool) -> Page[dict[str, Any]]:
    """Return the messages with the passages that recall finds for a question, best first."""
    items = []
    for passage in recall.matching_passages(conn, account_id, question, forgotten=forgotten):
        item = by_id(conn, account_id, passage.message_id)
        items.append({**item, "text": passage.text})
    return Page(items, has_more=False)


def forget(tx: sqlite3.Connection, account_id: str, message_id: str, now_seconds: float) -> None:
    """Leave a message out of recall. Raises ApiError `not_found`."""
    by_id(tx, account_id, message_id)
    statement = "INSERT INTO forgotten (message_id, account_id, forgotten_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
    tx.execute(statement, (message_id, account_id, now_seconds))


def remember(tx: sqlite3.Connection, account_id: str, message_id: str) -> dict[str, Any]:
    """Let recall find a forgotten message again, and return it. Raises ApiError `not_found`."""
    tx.execute("DELETE FROM forgotten WHERE account_id = ? AND message_id = ?", (account_id, message_id))
    return by_id(tx, account_id, message_id)


def by_id(conn: sqlite3.Connection, account_id: str, message_id: str) -> dict[str, Any]:
    query = """
        SELECT *, EXISTS (SELECT 1 FROM forgotten WHERE account_id = ?1 AND message_id = messages.id) AS forgotten
        FROM messages WHERE account_id = ?1 AND id = ?2
    """
    row = conn.execute(query, (account_id, message_id)).fetchone()
    if row is None:
        raise ApiError("not_found", "There is no such message.")
    return _as_json(row)
