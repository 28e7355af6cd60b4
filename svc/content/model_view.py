"""The part of a conversation that its model reads: where it began for an answer, its tokens, and what was left out."""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from svc.content.conversations import TABLE, Conversation

_MOST_SUMMARIZED = 1_000  # messages, of which a summary reads the beginnings
_READ_CHARACTERS = 8_000  # of each
# Those of the current branch that a caller sends: tools' calls are within their answer.
_SPOKEN = """
    FROM current_messages WHERE account_id = ? AND conversation_id = ? AND role <> 'system'
        AND trim(content, char(9, 10, 13, 32)) <> ''
"""


class View(NamedTuple):
    """What is known of the model's view of a conversation, before a question.

    `tokens` are those of the last prompt and its answer, 0 if they were not counted. `sent_messages` are those of the
    conversation that the model got, with the answer; 0 means all of them. `summary` is of those that are left out.
    """

    tokens: int = 0
    sent_messages: int = 0
    summary: str | None = None


def view_before(
    conn: sqlite3.Connection, conversation: Conversation, messages: Sequence[Mapping[str, Any]], texts: Sequence[str]
) -> View:
    """Return the view of the last answer in the `messages` of a request, which have these `texts`.

    It is the newest answer with its text.
    """
    account_id, conversation_id = conversation.account_id, conversation.id
    summary = current_summary(conn, conversation)
    said = [text for message, text in zip(messages, texts, strict=True) if message["role"] == "assistant" and text]
    if not said:
        return View(summary=summary)
    # Usually it is the newest message: no other one is read.
    query = """
        SELECT number, context_tokens, first_sent_message_id
        FROM messages CROSS JOIN answers ON message_id = messages.id
        WHERE messages.account_id = ?1 AND answers.account_id = ?1 AND conversation_id = ?2 AND content = ?3
        ORDER BY number DESC LIMIT 1
    """
    row = conn.execute(query, (account_id, conversation_id, said[-1])).fetchone()
    if row is None:
        return View(summary=summary)
    if row["first_sent_message_id"] is None:
        return View(row["context_tokens"], summary=summary)
    first = "SELECT number FROM messages WHERE account_id = ? AND id = ?"
    query = f"SELECT count(*) {_SPOKEN} AND number <= ? AND number >= ({first})"
    places = (row["number"], account_id, row["first_sent_message_id"])
    found = conn.execute(query, (account_id, conversation_id, *places)).fetchone()
    return View(row["context_tokens"], found[0], summary)


def first_message(
    conn: sqlite3.Connection, account_id: str, conversation_id: str, answer_number: int, count: int
) -> str | None:
    """Return the id of the first of `count` messages before an answer, or None if there are fewer, or `count` is 0."""
    if not count:
        return None
    query = f"SELECT id {_SPOKEN} AND number < ? ORDER BY number DESC LIMIT 1 OFFSET ?"
    row = conn.execute(query, (account_id, conversation_id, answer_number, count - 1)).fetchone()
    return row[0] if row else None


def current_summary(conn: sqlite3.Connection, conversation: Conversation) -> str | None:
    """Return the summary, unless the current branch lacks the last message in it."""
    return conversation.summary if _summarized(conn, conversation) else None


def _summarized(conn: sqlite3.Connection, conversation: Conversation) -> int:
    """Return the number of the last message in the summary of the current branch, or 0."""
    if conversation.summary is None:
        return 0
    query = "SELECT number FROM current_messages WHERE account_id = ? AND id = ?"
    row = conn.execute(query, (conversation.account_id, conversation.summary_up_to_id)).fetchone()
    return row[0] if row else 0


class LeftOut(NamedTuple):
    """What `model` no longer gets: `messages` as role and text, up to `up_to`, after what `summary` has."""

    model: str
    up_to: str
    summary: str | None
    messages: list[tuple[str, str]]


def left_out(conn: sqlite3.Connection, account_id: str, conversation_id: str) -> LeftOut | None:
    """Return what the newest answer's model did not get of a conversation, or None. Raises ApiError `not_found`.

    A summary of the same messages is not used: it is to be replaced.
    """
    conversation = TABLE.by_id(conn, account_id, conversation_id)
    query = """
        SELECT model, first_sent_message_id FROM current_messages JOIN answers ON message_id = id
        WHERE current_messages.account_id = ?1 AND answers.account_id = ?1 AND conversation_id = ?2
            AND status <> 'in_progress'
        ORDER BY number DESC LIMIT 1
    """
    newest = conn.execute(query, (account_id, conversation_id)).fetchone()
    if newest is None or newest["first_sent_message_id"] is None:
        return None
    query = f"""
        SELECT number, id, role, substr(content, 1, ?) AS text {_SPOKEN}
            AND number < (SELECT number FROM messages WHERE account_id = ? AND id = ?)
        ORDER BY number DESC LIMIT ?
    """  # noqa: S608 - ours
    place = (account_id, newest["first_sent_message_id"], _MOST_SUMMARIZED)
    rows = conn.execute(query, (_READ_CHARACTERS, account_id, conversation_id, *place)).fetchall()
    if not rows:
        return None
    known = _summarized(conn, conversation)
    known = known if known < rows[0]["number"] else 0
    messages = [(row["role"], row["text"]) for row in reversed(rows) if row["number"] > known]
    return LeftOut(newest["model"], rows[0]["id"], conversation.summary if known else None, messages)
