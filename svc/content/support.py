"""Live support for pro accounts: one active conversation of a user with the operator, and the inbox of all of them."""

import sqlite3
from typing import Annotated, Any, NamedTuple

from svc import audit, quota
from svc.errors import ApiError
from svc.ids import new_id
from svc.shapes import label, record, text
from svc.tables import Page, Table, json_of, refusals

CONTENT = text(10_000, blank=False)


@record("CreateSupportRequest", example={"subject": "My invoice", "message": "Where is my invoice?"})
class NewSupport(NamedTuple):
    subject: Annotated[str | None, label(200).about("Not blank, without control characters.")] = None
    message: Annotated[str | None, CONTENT.about("The first message; not blank.")] = None


@record("CreateSupportMessageRequest", example={"content": "Where is my invoice?"})
class NewSupportMessage(NamedTuple):
    content: Annotated[str, CONTENT.about("Not blank.")]


_COLUMNS = "id status subject created_at updated_at closed_at"
TABLE = Table("support_conversations", json_of(_COLUMNS), "support conversation", "sup")
MESSAGES = Table("support_messages", json_of("id role content created_at"), "support message")


def support_with_messages(conn: sqlite3.Connection, account_id: str, support_id: str) -> dict[str, Any]:
    """Return a support conversation with all its messages, the oldest first. Raises ApiError `not_found`."""
    own = "SELECT * FROM support_messages WHERE account_id = ? AND support_id = ? ORDER BY number"
    messages = map(MESSAGES.make, conn.execute(own, (account_id, support_id)))
    return {**TABLE.by_id(conn, account_id, support_id), "messages": list(messages)}


def add_support(tx: sqlite3.Connection, account_id: str, new: NewSupport, now_seconds: float) -> dict[str, Any]:
    """Open a support conversation, perhaps with a message. Raises ApiError `already_active`, `quota_exceeded`."""
    subject, content = new
    quota.check_row(tx, account_id, subject)
    support_id = new_id("sup", now_seconds)
    columns = {"id": support_id, "account_id": account_id, "subject": subject}
    active = ApiError("already_active", "A support conversation is already active. Continue there, or close it first.")
    with refusals(UNIQUE=active):
        TABLE.insert(tx, {**columns, "created_at": now_seconds, "updated_at": now_seconds})
    if content is not None:
        add_message(tx, account_id, support_id, "user", content, now_seconds)
    return support_with_messages(tx, account_id, support_id)


def add_message(
    tx: sqlite3.Connection, account_id: str, support_id: str, role: str, content: str, now_seconds: float
) -> dict[str, Any]:
    """Add a message of the `user` or the `operator`, and return it.

    Raises ApiError `not_found`, `already_ended`, `PAYLOAD_TOO_LARGE` (200 messages), and `quota_exceeded`.
    """
    TABLE.update(tx, account_id, support_id, {"updated_at": now_seconds})
    if role == "user":
        quota.check_row(tx, account_id, content)
    columns = {"id": new_id("msg", now_seconds), "account_id": account_id, "support_id": support_id}
    closed = ApiError("already_ended", "This support conversation is closed. Open a new one.")
    text = "This support conversation is full. Close it and open a new one."
    full = ApiError("PAYLOAD_TOO_LARGE", text, param="content")
    with refusals(support_closed=closed, support_messages_count=full):
        return MESSAGES.insert(tx, {**columns, "role": role, "content": content, "created_at": now_seconds})


def close(tx: sqlite3.Connection, account_id: str, support_id: str, now_seconds: float) -> dict[str, Any]:
    """Close a support conversation and return it with its messages. Raises ApiError `not_found` and `already_ended`."""
    columns = {"status": "closed", "closed_at": now_seconds, "updated_at": now_seconds}
    with refusals(closed=ApiError("already_ended", "This support conversation is already closed.")):
        TABLE.update(tx, account_id, support_id, columns)
    return support_with_messages(tx, account_id, support_id)


# --- the inbox of administrators and of the operator's command

_INBOX = Table[sqlite3.Row](
    "(SELECT * FROM support_conversations WHERE account_id IN (SELECT id FROM accounts WHERE deleting_at IS NULL))",
    lambda row: row,
    "support conversation",
    "sup",
    order=("updated_at", "id"),
)


def inbox_page(conn: sqlite3.Connection, status: str | None, limit: int, after: str | None) -> Page[dict[str, Any]]:
    """Return a page of the support conversations of all accounts, the last changed first.

    `waiting` is whether the last message is not the operator's.
    """
    return _INBOX.page(conn, None, limit, after, status=status).of(
        lambda row: {**TABLE.make(row), **_of_user(conn, row["account_id"], row["id"])}
    )


def in_inbox(conn: sqlite3.Connection, support_id: str) -> dict[str, Any]:
    """Return a support conversation with its messages, the oldest first. Raises ApiError `not_found`."""
    account_id = _account_of(conn, support_id)
    return {**support_with_messages(conn, account_id, support_id), **_of_user(conn, account_id, support_id)}


def reply(tx: sqlite3.Connection, actor: str, support_id: str, content: str, now_seconds: float) -> dict[str, Any]:
    """Store an answer of `actor`, as in the audit log, and return it. Raises ApiError as `add_message`."""
    account_id = _account_of(tx, support_id)
    audit.add(tx, now_seconds, actor, "support.reply", account_id, {"conversation": support_id})
    return add_message(tx, account_id, support_id, "operator", content, now_seconds)


def close_in_inbox(tx: sqlite3.Connection, actor: str, support_id: str, now_seconds: float) -> dict[str, Any]:
    """Close a support conversation and return it. Raises ApiError `not_found` and `already_ended`."""
    account_id = _account_of(tx, support_id)
    audit.add(tx, now_seconds, actor, "support.close", account_id, {"conversation": support_id})
    return {**close(tx, account_id, support_id, now_seconds), **_of_user(tx, account_id, support_id)}


def _account_of(conn: sqlite3.Connection, support_id: str) -> str:
    """Return the account of a support conversation. Raises ApiError `not_found`."""
    query = """
        SELECT account_id FROM support_conversations JOIN accounts ON accounts.id = account_id
        WHERE support_conversations.id = ? AND deleting_at IS NULL
    """
    row = conn.execute(query, (support_id,)).fetchone()
    if row is None:
        raise ApiError("not_found", "There is no such support conversation.")
    return str(row["account_id"])


def _of_user(conn: sqlite3.Connection, account_id: str, support_id: str) -> dict[str, Any]:
    query = """
        SELECT email, 'operator' IS NOT (
            SELECT role FROM support_messages WHERE account_id = ?1 AND support_id = ?2 ORDER BY number DESC LIMIT 1)
        FROM accounts WHERE id = ?1
    """
    email, waiting = conn.execute(query, (account_id, support_id)).fetchone()
    return {"account_id": account_id, "email": email, "waiting": bool(waiting)}
