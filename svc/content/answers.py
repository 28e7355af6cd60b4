"""The details of a conversation's answers: tokens, cost, time, reasoning, and the passages recalled for them."""

import sqlite3
from collections.abc import Collection
from typing import Any, NamedTuple

import orjson

from svc.tables import storable

_REASONING_LENGTH = 200_000


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


def add(tx: sqlite3.Connection, account_id: str, message_id: str, memory: list[dict[str, Any]]) -> None:
    """Store an answer in progress to which the passages of `memory` were recalled."""
    statement = """
        INSERT INTO answers (message_id, account_id, input_tokens, output_tokens, cost_micros, duration_ms, memory)
        VALUES (?, ?, 0, 0, 0, 0, ?)
    """
    tx.execute(statement, (message_id, account_id, orjson.dumps(memory).decode()))


def update(tx: sqlite3.Connection, account_id: str, message_id: str, answer: AnswerDetails) -> None:
    reasoning = answer.reasoning and storable(answer.reasoning, _REASONING_LENGTH)
    statement = """
        UPDATE answers SET input_tokens = ?, output_tokens = ?, cost_micros = ?, duration_ms = ?, finish_reason = ?,
            reasoning = ?, cached_input_tokens = ?, saved_micros = ?
        WHERE account_id = ? AND message_id = ?
    """
    tx.execute(statement, (*answer._replace(reasoning=reasoning), account_id, message_id))


def by_message(conn: sqlite3.Connection, account_id: str, message_ids: Collection[str]) -> dict[str, dict[str, Any]]:
    """Return the details of those messages of the account that are answers, by their ids."""
    query = "SELECT * FROM answers WHERE account_id = ? AND message_id IN (SELECT value FROM json_each(?))"
    rows = conn.execute(query, (account_id, orjson.dumps(list(message_ids)).decode()))
    return {row["message_id"]: as_json(row) for row in rows}


def as_json(row: sqlite3.Row) -> dict[str, Any]:
    return {**{name: row[name] for name in AnswerDetails._fields}, "memory": orjson.loads(row["memory"])}
