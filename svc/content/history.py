"""The messages of an account's conversations and agent runs."""

import sqlite3
from typing import Annotated, Any, NamedTuple

import orjson

from svc.content import branches, fulltext
from svc.content.word_runs import CHUNKS
from svc.errors import ApiError
from svc.ids import fields_as_json, new_id
from svc.shapes import one_of, record, text
from svc.tables import Table, delete_found, refusals, storable

MESSAGE_LENGTH = 1_000_000
_READ_CHARACTERS, _ROW_CHARACTERS = 1_000_000, 256
IN_PROGRESS = "in_progress"
STATUSES = ("complete", IN_PROGRESS, "stopped", "interrupted", "failed")


@record("CreateMessageRequest", example={"role": "user", "content": "When does it leave?"})
class NewMessage(NamedTuple):
    role: Annotated[str, one_of("system", "user", "assistant")]
    content: Annotated[str, text(MESSAGE_LENGTH, blank=False).about("Not blank.")]


class Message(NamedTuple):
    """A row of `messages`; `number` is its order and its place in the index of words, `created_at` Unix seconds."""

    number: int
    id: str
    account_id: str
    conversation_id: str | None
    run_id: str | None
    role: str
    content: str
    model: str | None
    created_at: float
    branch: int
    status: str = "complete"
    error: str | None = None  # an error object in JSON

    def as_json(self) -> dict[str, Any]:
        shown = fields_as_json(self._asdict(), "id conversation_id role content model created_at status")
        return {**shown, "error": None if self.error is None else orjson.loads(self.error)}


_TABLE = Table("messages", lambda row: Message(**row), "message", "msg", texts=("content",))
ALL = Table("messages", _TABLE.make, "message", "msg", order=("number",))
CURRENT = Table("current_messages", _TABLE.make, "message", "msg", order=("number",))  # of the current branch


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
    replaces: str | None = None,
    branch: int | None = None,
    status: str = "complete",
    error: str | None = None,
) -> Message:
    """Store a message of a conversation or an agent run, its first million characters, and return it.

    It follows the newest message of `branch`, by default the conversation's current one, or is a new version of the
    message with the id `replaces`. Raises ApiError `quota_exceeded` for too many versions, and `already_active` for a
    second answer.
    """
    content = storable(content, MESSAGE_LENGTH)
    message_id = new_id("msg", now_seconds)
    if conversation_id is not None and replaces is not None:
        branch = branches.begin(tx, account_id, conversation_id, replaces, message_id)
    elif conversation_id is not None and branch is None:
        branch = branches.current(tx, account_id, conversation_id)
    columns = {
        "id": message_id,
        "account_id": account_id,
        "conversation_id": conversation_id,
        "run_id": run_id,
        "role": role,
        "content": content,
        "model": model,
        "created_at": now_seconds,
        "branch": branch or 0,
        "status": status,
        "error": error,
    }
    with refusals(one_answer_at_a_time=already_answering()):
        message = _TABLE.insert(tx, columns)
    if status != IN_PROGRESS:  # its words are indexed at its end
        fulltext.add_message_words(tx, account_id, message.number, content)
    return message


def already_answering() -> ApiError:
    text = "This conversation is being answered. Wait for the end of the answer, or stop it."
    return ApiError("already_active", text)


def update_answer(tx: sqlite3.Connection, answer: Message, content: str, status: str, error: str | None) -> bool:
    """Store the text so far of an answer in progress, or its end. Return False if it has ended or was deleted."""
    content = storable(content, MESSAGE_LENGTH)
    statement = """
        UPDATE messages SET content = ?, status = ?, error = ?
        WHERE account_id = ? AND number = ? AND status = 'in_progress'
    """
    is_changed = tx.execute(statement, (content, status, error, answer.account_id, answer.number)).rowcount == 1
    if is_changed and status != IN_PROGRESS:
        fulltext.add_message_words(tx, answer.account_id, answer.number, content)
    return is_changed


def begin_again(tx: sqlite3.Connection, account_id: str, message_id: str) -> Message:
    """Return an answer that waited for a person, in progress again. Its words are indexed at its end."""
    statement = "UPDATE messages SET status = 'in_progress' WHERE account_id = ? AND id = ? RETURNING *"
    with refusals(one_answer_at_a_time=already_answering()):
        message = Message(**tx.execute(statement, (account_id, message_id)).fetchone())
    fulltext.remove_message_words(tx, account_id, message.number)
    return message


def end_interrupted_answers(tx: sqlite3.Connection) -> None:
    """End the answers that a crash left in progress. The index of words reads them later."""
    fulltext.index_answers_later(tx)
    tx.execute("UPDATE messages SET status = 'interrupted' WHERE status = 'in_progress'")


def newest_question(conn: sqlite3.Connection, account_id: str, conversation_id: str) -> str | None:
    query = """
        SELECT content FROM current_messages WHERE account_id = ? AND conversation_id = ? AND role = 'user'
        ORDER BY number DESC LIMIT 1
    """
    row = conn.execute(query, (account_id, conversation_id)).fetchone()
    return row[0] if row else None


def is_current(conn: sqlite3.Connection, message: Message) -> bool:
    query = "SELECT 1 FROM current_messages WHERE account_id = ? AND id = ?"
    return conn.execute(query, (message.account_id, message.id)).fetchone() is not None


def is_forgotten(conn: sqlite3.Connection, account_id: str, message_id: str) -> bool:
    query = "SELECT 1 FROM forgotten WHERE account_id = ? AND message_id = ?"
    return conn.execute(query, (account_id, message_id)).fetchone() is not None


def messages_after(
    conn: sqlite3.Connection, account_id: str, conversation_id: str, number: int, *, current: bool
) -> list[Message]:
    """Return a conversation's next messages after `number`, oldest first: up to a million characters and one message.

    They are those on the current branch, or with `current` False all others.
    """
    found, characters = [], 0
    statement = """
        SELECT * FROM messages WHERE account_id = ?1 AND conversation_id = ?2 AND number > ?3
            AND EXISTS (SELECT 1 FROM current_messages WHERE account_id = ?1 AND number = messages.number) = ?4
            ORDER BY number
        """
    for row in conn.execute(statement, (account_id, conversation_id, number, current)):
        found.append(Message(**row))
        characters += len(row["content"]) + _ROW_CHARACTERS
        if characters > _READ_CHARACTERS:
            break
    return found


def chunk_at(conn: sqlite3.Connection, account_id: str, place: int) -> tuple[Message, str]:
    """Return the message at a place of the index of words, and the chunk of its text there."""
    number, chunk = divmod(place, CHUNKS)
    query = "SELECT * FROM messages WHERE account_id = ? AND number = ?"
    message = Message(**conn.execute(query, (account_id, number)).fetchone())
    return message, fulltext.chunks_of(message.content)[chunk]


def message_by_id(
    conn: sqlite3.Connection, account_id: str, conversation_id: str, message_id: str, param: str
) -> Message:
    """Return a message of a conversation. Raises ApiError `not_found`; `param` is the field that held the id."""
    query = "SELECT * FROM messages WHERE account_id = ? AND conversation_id = ? AND id = ?"
    row = conn.execute(query, (account_id, conversation_id, message_id)).fetchone()
    if row is None:
        raise ApiError("not_found", "There is no such message in this conversation.", param=param)
    return Message(**row)


def last_of(conn: sqlite3.Connection, account_id: str, conversation_id: str, message_id: str | None) -> int:
    """Return the number of a message of the current branch, by default its newest. Raises ApiError `not_found`."""
    query = """
        SELECT number FROM current_messages WHERE account_id = ?1 AND conversation_id = ?2 AND (?3 IS NULL OR id = ?3)
        ORDER BY number DESC LIMIT 1
    """
    row = conn.execute(query, (account_id, conversation_id, message_id)).fetchone()
    if row is None:
        raise ApiError("not_found", "This conversation shows no such message.", param="message_id")
    return int(row[0])


def numbers_of(conn: sqlite3.Connection, account_id: str, conversation_id: str, ids: list[str]) -> list[int]:
    """Return the numbers of messages of a conversation. Raises ApiError `not_found` without any."""
    query = """
        SELECT number FROM messages
        WHERE account_id = ? AND conversation_id = ? AND id IN (SELECT value FROM json_each(?))
    """
    rows = conn.execute(query, (account_id, conversation_id, orjson.dumps(ids).decode())).fetchall()
    if not rows:
        raise ApiError("not_found", "There is no such message in this conversation.")
    return [row[0] for row in rows]


def delete_some(tx: sqlite3.Connection, account_id: str, **of: str) -> bool:
    """Delete messages of an account, `of` a `conversation_id` or `run_id`, for 5 ms; return whether more are left."""
    narrowed = "".join(f" AND {column} = ?" for column in of)
    query = f"SELECT account_id, number FROM messages WHERE account_id = ?{narrowed} ORDER BY number LIMIT 1"  # noqa: S608 - ours
    return delete_found(query, _delete, tx, account_id, *of.values())


def delete_from(tx: sqlite3.Connection, account_id: str, conversation_id: str, number: int) -> bool:
    """Delete a conversation's messages from `number` on for 5 ms, the newest first; return whether more are left."""
    query = """
        SELECT account_id, number FROM messages WHERE account_id = ? AND conversation_id = ? AND number >= ?
        ORDER BY number DESC LIMIT 1
    """
    return delete_found(query, _delete, tx, account_id, conversation_id, number)


def _delete(tx: sqlite3.Connection, account_id: str, number: int) -> None:
    fulltext.remove_message_words(tx, account_id, number)
    _TABLE.delete_row(tx, account_id, number)
