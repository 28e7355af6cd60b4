"""New conversations with the messages of another one, which are copied some milliseconds at a time."""

import contextlib
import sqlite3
import time
from functools import partial
from typing import Annotated, NamedTuple

from svc import quota
from svc.content import answers, conversations, history
from svc.content.conversations import Conversation
from svc.db import Database
from svc.errors import ApiError
from svc.ids import new_id
from svc.shapes import record, string

_SOME_SECONDS = 0.005
_COPIED = ("title", "project_id", "temperature", "max_output_tokens")
_BYTES = " + ".join(
    f"ifnull(length(CAST({text} AS BLOB)), 0)"
    for text in ("content", "error", "reasoning", "memory", "steps", "sources")
)


@record("ForkRequest", example={"message_id": "msg_01m3250v3vn4qvxnatpwzmywwn"})
class NewFork(NamedTuple):
    message_id: Annotated[str, string.about("The last message that is copied. The conversation must show it.")]


def _plan(
    conn: sqlite3.Connection, account_id: str, conversation_id: str, message_id: str
) -> tuple[Conversation, list[int], int]:
    """Return a conversation, the numbers of its messages up to one that it shows, and the bytes that they need."""
    conversation = conversations.TABLE.by_id(conn, account_id, conversation_id)
    last = history.last_of(conn, account_id, conversation_id, message_id)
    query = f"""
        SELECT number, status, {2 * quota.ROW_BYTES} + {_BYTES}
        FROM current_messages LEFT JOIN answers ON message_id = id AND answers.account_id = ?1
        WHERE current_messages.account_id = ?1 AND conversation_id = ?2 AND number <= ?3 ORDER BY number
    """  # noqa: S608 - our own names
    rows = conn.execute(query, (account_id, conversation_id, last)).fetchall()
    if rows[-1]["status"] == history.IN_PROGRESS:
        raise history.already_answering()
    return (
        conversation,
        [row[0] for row in rows],
        sum(row[2] for row in rows) + len((conversation.title or "").encode()),
    )


async def fork(
    db: Database, account_id: str, conversation_id: str, message_id: str, now_seconds: float
) -> Conversation:
    """Store a conversation with the messages of another one up to `message_id`, and return it.

    If it cannot be completed, what was stored is deleted. Raises ApiError `not_found`, `already_active`,
    `quota_exceeded`.
    """
    source, numbers, size = await db.heavy_read(_plan, account_id, conversation_id, message_id)
    fields = {name: value for name, value in source._asdict().items() if name in _COPIED}
    fork_id = new_id("conv", now_seconds)
    async with quota.room(db, account_id, size + quota.ROW_BYTES):
        add = partial(conversations.add_conversation, conversation_id=fork_id, **fields)
        made = await db.write(add, account_id, now_seconds)
        try:
            while numbers := await db.write_as("alone", _copy_some, account_id, fork_id, numbers):
                pass
        except BaseException:
            with contextlib.suppress(ApiError):
                while await db.write_as("alone", conversations.delete_conversation, account_id, fork_id):
                    pass
            raise
    return made


def _copy_some(tx: sqlite3.Connection, account_id: str, fork_id: str, numbers: list[int]) -> list[int]:
    """Copy messages for 5 ms; return the numbers of those that are left. Deleted ones are left out."""
    ends = time.monotonic() + _SOME_SECONDS
    for place, number in enumerate(numbers, 1):
        query = "SELECT * FROM messages WHERE account_id = ? AND number = ?"
        if row := tx.execute(query, (account_id, number)).fetchone():
            values = {name: row[name] for name in ("role", "content", "model", "status", "error")}
            times = {"now_seconds": row["created_at"]}
            copy = history.add_message(tx, account_id, conversation_id=fork_id, **values, **times)
            answers.copy(tx, account_id, row["id"], copy.id)
        if time.monotonic() > ends:
            return numbers[place:]
    return []
