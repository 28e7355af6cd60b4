"""The details of a conversation's answers: tokens, cost, time, reasoning, and the passages recalled for them."""

import sqlite3
from collections.abc import Collection
from typing import Any, NamedTuple

import orjson

from svc.tables import storable

_REASONING_LENGTH = 200_000
_SEALED_LENGTH = 1_000_000
_CALL_LENGTH = 200
_MOST_WITH_STEPS = 64  # of a conversation: those before are left out
_MOST_SEALED = 64  # the vendors need those of the last question, and ignore most others


class AnswerDetails(NamedTuple):
    """The details of an answer. `finish_reason` is None if it was cut off."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost_micros: int = 0
    duration_ms: int = 0
    finish_reason: str | None = None
    reasoning: str | None = None
    cached_input_tokens: int = 0
    saved_micros: int = 0  # what the prices of cached input have saved
    # In JSON: what tools did for it, what they found, and the calls that wait for a person, with the request.
    steps: str | None = None
    sources: str | None = None
    waiting: str | None = None
    context_tokens: int = 0  # of the prompt and the text of its last call, 0 if they were not counted
    first_sent_message_id: str | None = None  # where the model's view of the conversation began; None: with the first


def add(tx: sqlite3.Connection, account_id: str, message_id: str, memory: list[dict[str, Any]]) -> None:
    """Store an answer in progress to which the passages of `memory` were recalled."""
    statement = """
        INSERT INTO answers (message_id, account_id, input_tokens, output_tokens, cost_micros, duration_ms, memory)
        VALUES (?, ?, 0, 0, 0, 0, ?)
    """
    tx.execute(statement, (message_id, account_id, orjson.dumps(memory).decode()))


def copy(tx: sqlite3.Connection, account_id: str, message_id: str, to_message_id: str) -> None:
    """Store the details of an answer for a copy of its message, without seals and calls that wait."""
    statement = """
        INSERT INTO answers (message_id, account_id, input_tokens, output_tokens, cost_micros, duration_ms,
            finish_reason, reasoning, memory, cached_input_tokens, saved_micros, steps, sources)
        SELECT ?, account_id, input_tokens, output_tokens, cost_micros, duration_ms,
            finish_reason, reasoning, memory, cached_input_tokens, saved_micros, steps, sources
        FROM answers WHERE account_id = ? AND message_id = ?
    """
    tx.execute(statement, (to_message_id, account_id, message_id))


def update(tx: sqlite3.Connection, account_id: str, message_id: str, answer: AnswerDetails) -> None:
    reasoning = answer.reasoning and storable(answer.reasoning, _REASONING_LENGTH)
    statement = """
        UPDATE answers SET input_tokens = ?, output_tokens = ?, cost_micros = ?, duration_ms = ?, finish_reason = ?,
            reasoning = ?, cached_input_tokens = ?, saved_micros = ?, steps = ?, sources = ?, waiting = ?,
            context_tokens = ?, first_sent_message_id = ?
        WHERE account_id = ? AND message_id = ?
    """
    tx.execute(statement, (*answer._replace(reasoning=reasoning), account_id, message_id))


def seal(tx: sqlite3.Connection, account_id: str, message_id: str, call_id: str, seals: list[dict[str, Any]]) -> None:
    """Store the seals of an answer's reasoning, found again by the id of its first tool call, unless they are huge."""
    call_id, sealed = storable(call_id, _CALL_LENGTH), storable(orjson.dumps(seals).decode(), _SEALED_LENGTH + 1)
    if len(sealed) <= _SEALED_LENGTH:
        statement = "UPDATE answers SET sealed_call_id = ?, sealed = ? WHERE account_id = ? AND message_id = ?"
        tx.execute(statement, (call_id, sealed, account_id, message_id))


def sealed_by_call(
    conn: sqlite3.Connection, account_id: str, conversation_id: str, call_ids: Collection[str]
) -> dict[str, list[dict[str, Any]]]:
    """Return the newest seals of a conversation's answers, by the ids of their first tool calls."""
    query = """
        SELECT sealed_call_id, sealed FROM answers JOIN messages ON messages.id = message_id
        WHERE answers.account_id = ? AND sealed_call_id IN (SELECT value FROM json_each(?))
            AND messages.account_id = ? AND conversation_id = ?
        ORDER BY messages.number DESC LIMIT ?
    """
    listed = orjson.dumps([storable(call_id, _CALL_LENGTH) for call_id in call_ids]).decode()
    rows = conn.execute(query, (account_id, listed, account_id, conversation_id, _MOST_SEALED)).fetchall()
    return {row["sealed_call_id"]: orjson.loads(row["sealed"]) for row in reversed(rows)}


def by_message(conn: sqlite3.Connection, account_id: str, message_ids: Collection[str]) -> dict[str, dict[str, Any]]:
    """Return the details of those messages of the account that are answers, by their ids."""
    query = "SELECT * FROM answers WHERE account_id = ? AND message_id IN (SELECT value FROM json_each(?))"
    rows = conn.execute(query, (account_id, orjson.dumps(list(message_ids)).decode()))
    return {row["message_id"]: as_json(row) for row in rows}


def with_steps(conn: sqlite3.Connection, account_id: str, conversation_id: str) -> dict[str, list[dict[str, Any]]]:
    """Return the steps of the newest answers with tools on the current branch, by the text of the answer."""
    query = """
        SELECT content, steps FROM answers JOIN current_messages ON current_messages.id = message_id
        WHERE answers.account_id = ?1 AND current_messages.account_id = ?1 AND conversation_id = ?2
            AND steps IS NOT NULL
        ORDER BY number DESC LIMIT ?3
    """
    rows = conn.execute(query, (account_id, conversation_id, _MOST_WITH_STEPS)).fetchall()
    return {row["content"]: orjson.loads(row["steps"]) for row in reversed(rows)}


def waiting_in(conn: sqlite3.Connection, account_id: str, conversation_id: str) -> sqlite3.Row | None:
    """Return the newest answer of the current branch that waits for a person, with its text, or None."""
    query = """
        SELECT answers.*, content, model FROM answers JOIN current_messages ON current_messages.id = message_id
        WHERE answers.account_id = ?1 AND current_messages.account_id = ?1 AND conversation_id = ?2
            AND waiting IS NOT NULL
        ORDER BY number DESC LIMIT 1
    """
    row: sqlite3.Row | None = conn.execute(query, (account_id, conversation_id)).fetchone()
    return row


def decide(tx: sqlite3.Connection, account_id: str, message_id: str) -> None:
    """Note that a person has decided about the calls of an answer."""
    tx.execute("UPDATE answers SET waiting = NULL WHERE account_id = ? AND message_id = ?", (account_id, message_id))


def refuse_waiting(tx: sqlite3.Connection, account_id: str, conversation_id: str, reason: str) -> None:
    """Refuse the calls that wait in a conversation: the next question has come."""
    while (row := waiting_in(tx, account_id, conversation_id)) is not None:
        steps = orjson.loads(row["steps"] or "[]")
        for call_id, _, name, _ in orjson.loads(row["waiting"])["calls"]:
            steps.append({"tool_result": {"id": call_id, "name": name, "ok": False, "result": reason}})
        statement = "UPDATE answers SET steps = ?, waiting = NULL WHERE account_id = ? AND message_id = ?"
        tx.execute(statement, (orjson.dumps(steps).decode(), account_id, row["message_id"]))


def as_json(row: sqlite3.Row) -> dict[str, Any]:
    shown = {name: row[name] for name in AnswerDetails._fields if name not in ("waiting", "context_tokens")}
    listed = {name: orjson.loads(row[name] or "[]") for name in ("memory", "steps", "sources")}
    return {**shown, **listed, "waiting": row["waiting"] is not None}
