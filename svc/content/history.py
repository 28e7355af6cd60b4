"""What an account said and was told in its sessions: the messages of its conversations and of its agent runs."""

import sqlite3
import time
from typing import Any, NamedTuple

from svc.content import fulltext
from svc.content.forgetting import Part
from svc.db import Page, page
from svc.errors import ApiError
from svc.ids import new_id, timestamp

MESSAGE_LENGTH = 1_000_000
# How long a transaction that deletes may take, so that nobody's write waits for it.
_SLICE_SECONDS = 0.008
_LAST = 2**63 - 1


class Message(NamedTuple):
    """A row of `messages`; `number` is its order and its place in the index of words, `created_at` is in Unix seconds."""

    number: int
    id: str
    account_id: str
    conversation_id: str | None
    run_id: str | None
    role: str
    content: str
    model: str | None
    created_at: float

    def as_json(self) -> dict[str, Any]:
        """The message of a conversation as the API shows it."""
        return {
            "id": self.id,
            "conversation_id": self.conversation_id,
            "role": self.role,
            "content": self.content,
            "model": self.model,
            "created_at": timestamp(self.created_at),
        }


def add_message(
    tx: sqlite3.Connection,
    account_id: str,
    *,
    role: str,
    content: str,
    now_seconds: float,
    conversation_id: str | None = None,
    run_id: str | None = None,
    model: str | None = None,
) -> Message:
    """Keeps what was said in a conversation or in an agent run, its first million characters, and returns it.

    Raises sqlite3.IntegrityError when the conversation or the account is gone.
    """
    # A model's answer may hold half an emoji, which neither UTF-8 nor the database takes.
    content = content[:MESSAGE_LENGTH].encode("utf-8", "replace").decode()
    row = tx.execute(
        """
        INSERT INTO messages (id, account_id, conversation_id, run_id, role, content, model, created_at)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING *
        """,
        (new_id("msg", now_seconds), account_id, conversation_id, run_id, role, content, model, now_seconds),
    ).fetchone()
    fulltext.add_message_words(tx, account_id, row["number"], content)
    return Message(**row)


def messages_page(
    conn: sqlite3.Connection, account_id: str, conversation_id: str, limit: int, after: str | None
) -> Page[Message]:
    """A page of a conversation's messages, newest first, as svc/db.py's `page`."""
    rows = page(conn, "messages", account_id, limit, after, order=("number",), conversation_id=conversation_id)
    return rows.of(lambda row: Message(**row))


def message_by_id(conn: sqlite3.Connection, account_id: str, conversation_id: str, message_id: str, param: str) -> Message:
    """One message of a conversation. Raises ApiError `not_found`; `param` names what in the request referred to it."""
    row = conn.execute(
        "SELECT * FROM messages WHERE account_id = ? AND conversation_id = ? AND id = ?",
        (account_id, conversation_id, message_id),
    ).fetchone()
    if row is None:
        raise ApiError("not_found", "There is no such message in this conversation.", param=param)
    return Message(**row)


def delete_some(tx: sqlite3.Connection, account_id: str, conversation_id: str, first: int = 0, end: int = _LAST) -> bool:
    """Deletes messages of a conversation, from the number `first` to below `end`, for 8 ms; whether there are more."""
    ends = time.monotonic() + _SLICE_SECONDS
    rows = tx.execute(
        """
        SELECT number, content FROM messages
        WHERE account_id = ? AND conversation_id = ? AND number >= ? AND number < ? ORDER BY number
        """,
        (account_id, conversation_id, first, end),
    )
    for number, content in rows:
        if not _delete(tx, account_id, number, content, ends, forget_words=True):
            rows.close()
            return True
    return False


def forget_some(tx: sqlite3.Connection, account_id: str, part: Part | None = None) -> bool:
    """Deletes the messages of an account that are of `part`, by default all, for 8 ms; whether there are more of them."""
    ends, part = time.monotonic() + _SLICE_SECONDS, part or Part()
    rows = tx.execute(
        f"SELECT number, content FROM messages WHERE account_id = :account_id AND {Part.WHERE} ORDER BY number DESC",  # noqa: S608
        {"account_id": account_id, **vars(part)},
    )
    for number, content in rows:
        if not _delete(tx, account_id, number, content, ends, forget_words=False):
            rows.close()
            return True
        part.note(number, content)
    return False


def _delete(tx: sqlite3.Connection, account_id: str, number: int, text: str, ends: float, *, forget_words: bool) -> bool:
    """Deletes a message, of a long one what there is time for until `ends`, the end of it first; whether it is gone."""
    left = text
    while time.monotonic() <= ends:
        left, words = fulltext.remove_last_words(tx, account_id, number, left)
        if forget_words:
            fulltext.forget_words(tx, account_id, words)
        if not left:
            tx.execute("DELETE FROM messages WHERE account_id = ? AND number = ?", (account_id, number))
            return True
    if left is not text:
        tx.execute("UPDATE messages SET content = ? WHERE account_id = ? AND number = ?", (left, account_id, number))
    return False
