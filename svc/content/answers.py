"""The details of a conversation's answers: tokens, cost, time, reasoning, and the passages recalled for them."""

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

_REASONING_LENGTH = 200_000


class AnswerDetails(NamedTuple):
    """The details of an answer. `finish_reason` is None if it was cut off; `memory` holds the passages
    recalled for it.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cost_micros: int = 0
    duration_ms: int = 0
    finish_reason: str | None = None
    reasoning: str | None = None
    memory: Sequence[Mapping[str, Any]] = ()

    def as_json(self) -> dict[str, Any]:
        return self._asdict()


def store(tx: sqlite3.Connection, account_id: str, message_id: str, answer: AnswerDetails) -> None:
    """Store the details of a message, or replace all but its `memory`. Raises sqlite3.IntegrityError without such a
    message.
    """
    reasoning = answer.reasoning
    if reasoning is not None:
        reasoning = reasoning[:_REASONING_LENGTH].encode("utf-8", "replace").decode()
    tx.execute(
        """
        INSERT INTO answers
            (message_id, account_id, input_tokens, output_tokens, cost_micros, duration_ms, finish_reason, reasoning,
                memory)
        VALUES (:message_id, :account_id, :input_tokens, :output_tokens, :cost_micros, :duration_ms,
            :finish_reason, :reasoning, :memory)
        ON CONFLICT DO UPDATE SET input_tokens = excluded.input_tokens, output_tokens = excluded.output_tokens,
            cost_micros = excluded.cost_micros, duration_ms = excluded.duration_ms,
                finish_reason = excluded.finish_reason,
            reasoning = excluded.reasoning
        """,
        {
            **answer.as_json(),
            "account_id": account_id,
            "message_id": message_id,
            "reasoning": reasoning,
            "memory": orjson.dumps(list(answer.memory)).decode(),
        },
    )


def by_message(conn: sqlite3.Connection, account_id: str, message_ids: Collection[str]) -> dict[str, AnswerDetails]:
    """Return the details of those messages of the account that are answers, by their ids."""
    rows = conn.execute(
        "SELECT * FROM answers WHERE account_id = ? AND message_id IN (SELECT value FROM json_each(?))",
        (account_id, orjson.dumps(list(message_ids)).decode()),
    ).fetchall()
    return {row["message_id"]: of_row(row) for row in rows}


def of_row(row: sqlite3.Row) -> AnswerDetails:
    details = AnswerDetails(*(row[name] for name in AnswerDetails._fields))
    return details._replace(memory=orjson.loads(row["memory"]))
