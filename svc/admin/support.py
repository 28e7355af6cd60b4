"""The inbox of live support: what users have asked, and the answers of administrators and of the operator's command."""

import sqlite3
from typing import Any

from svc import audit
from svc.content import support
from svc.tables import Page, Table

_INBOX = Table[sqlite3.Row](
    "(SELECT * FROM support_conversations WHERE account_id IN (SELECT id FROM accounts WHERE deleting_at IS NULL))",
    lambda row: row,
    "support conversation",
    order=("updated_at", "id"),
)


def inbox_page(conn: sqlite3.Connection, status: str | None, limit: int, after: str | None) -> Page[dict[str, Any]]:
    """Return a page of the support conversations of all accounts, the last changed first.

    `waiting` is whether the last message is not the operator's.
    """
    return _INBOX.page(conn, None, limit, after, status=status).of(
        lambda row: {**support.TABLE.make(row), **_of_user(conn, row["account_id"], row["id"])}
    )


def conversation(conn: sqlite3.Connection, support_id: str) -> dict[str, Any]:
    """Return a support conversation with its messages, the oldest first. Raises ApiError `not_found`."""
    account_id = support.account_of(conn, support_id)
    return {**support.support_with_messages(conn, account_id, support_id), **_of_user(conn, account_id, support_id)}


def reply(tx: sqlite3.Connection, actor: str, support_id: str, content: str, now_seconds: float) -> dict[str, Any]:
    """Store an answer and return it. Raises ApiError as `support.add_message`."""
    account_id = support.account_of(tx, support_id)
    audit.add(tx, now_seconds, actor, "support.reply", account_id, {"conversation": support_id})
    return support.add_message(tx, account_id, support_id, "operator", content, now_seconds)


def close(tx: sqlite3.Connection, actor: str, support_id: str, now_seconds: float) -> dict[str, Any]:
    """Close a support conversation and return it. Raises ApiError `not_found` and `already_ended`."""
    account_id = support.account_of(tx, support_id)
    audit.add(tx, now_seconds, actor, "support.close", account_id, {"conversation": support_id})
    return {**support.close(tx, account_id, support_id, now_seconds), **_of_user(tx, account_id, support_id)}


def _of_user(conn: sqlite3.Connection, account_id: str, support_id: str) -> dict[str, Any]:
    query = """
        SELECT email, 'operator' IS NOT (
            SELECT role FROM support_messages WHERE account_id = ?1 AND support_id = ?2 ORDER BY number DESC LIMIT 1)
        FROM accounts WHERE id = ?1
    """
    email, waiting = conn.execute(query, (account_id, support_id)).fetchone()
    return {"account_id": account_id, "email": email, "waiting": bool(waiting)}
