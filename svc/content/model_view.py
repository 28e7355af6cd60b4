"""The part of a conversation that its model reads: where it began for an answer, and how many tokens that was."""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

_LAST_MESSAGES = 20  # in which the answer before a question is sought
# Those of the current branch that a caller sends: tools' calls are within their answer.
_SPOKEN = """
    FROM current_messages WHERE account_id = ? AND conversation_id = ? AND role <> 'system'
        AND trim(content, char(9, 10, 13, 32)) <> ''
"""


class Counted(NamedTuple):
    """What is known of the last answer before a question.

    `tokens` are those of its prompt and its text, 0 if they were not counted. `sent_messages` are those of the
    conversation that its model got, with the answer; 0 means all of them.
    """

    tokens: int = 0
    sent_messages: int = 0


def counted(
    conn: sqlite3.Connection,
    account_id: str,
    conversation_id: str | None,
    messages: Sequence[Mapping[str, Any]],
    texts: Sequence[str],
) -> Counted:
    """Return what is known of the last answer in the `messages` of a request, which have these `texts`.

    It is the newest one with its text among the last messages of the current branch.
    """
    said = [text for message, text in zip(messages, texts, strict=True) if message["role"] == "assistant" and text]
    if conversation_id is None or not said:
        return Counted()
    query = """
        SELECT number, context_tokens, first_sent_message_id FROM (
            SELECT id, number, content FROM current_messages WHERE account_id = ?1 AND conversation_id = ?2
            ORDER BY number DESC LIMIT ?4
        ) JOIN answers ON message_id = id WHERE account_id = ?1 AND content = ?3 ORDER BY number DESC LIMIT 1
    """
    row = conn.execute(query, (account_id, conversation_id, said[-1], _LAST_MESSAGES)).fetchone()
    if row is None:
        return Counted()
    if row["first_sent_message_id"] is None:
        return Counted(row["context_tokens"])
    first = "SELECT number FROM messages WHERE account_id = ? AND id = ?"
    query = f"SELECT count(*) {_SPOKEN} AND number <= ? AND number >= ({first})"
    places = (row["number"], account_id, row["first_sent_message_id"])
    found = conn.execute(query, (account_id, conversation_id, *places)).fetchone()
    return Counted(row["context_tokens"], found[0])


def first_message(
    conn: sqlite3.Connection, account_id: str, conversation_id: str, answer_number: int, count: int
) -> str | None:
    """Return the id of the first of `count` messages before an answer, or None if there are fewer, or `count` is 0."""
    if not count:
        return None
    query = f"SELECT id {_SPOKEN} AND number < ? ORDER BY number DESC LIMIT 1 OFFSET ?"
    row = conn.execute(query, (account_id, conversation_id, answer_number, count - 1)).fetchone()
    return row[0] if row else None
