"""The details of imported answers, whatever an export has in their places."""

import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest

from svc.auth import accounts
from svc.content import answers, conversations, history
from svc.content.imported_answers import add_details
from svc.schema import SCHEMA
from tests.support.cases import each

NOW = 1_790_000_000.0


@pytest.fixture
def conn() -> Iterator[sqlite3.Connection]:
    conn = sqlite3.connect(":memory:", isolation_level=None)
    conn.row_factory = sqlite3.Row
    conn.executescript(SCHEMA.read_text())
    yield conn
    conn.close()


def added(conn: sqlite3.Connection, details: dict[str, Any], **fields: Any) -> dict[str, Any] | None:
    """Return the stored details of an answer after the question that the export calls `q`."""
    ada = accounts.add_account(conn, "ada@example.com", None, None, NOW).id
    chat = conversations.add_conversation(conn, ada, NOW).id
    question, answer = (
        history.add_message(conn, ada, conversation_id=chat, role=role, content="x", now_seconds=NOW)
        for role in ("user", "assistant")
    )
    message = {"steps": [], "reasoning": None, "details": details, **fields}
    add_details(conn, ada, answer.id, message, {"q": question.id, "a": answer.id})
    found = answers.by_message(conn, ada, [answer.id]).get(answer.id)
    if found is not None and found["first_sent_message_id"] == question.id:
        found["first_sent_message_id"] = "q"
    return found


def test_view_of_the_model_begins_at_the_same_message(conn: sqlite3.Connection) -> None:
    found = added(conn, {"answer": True, "first_sent_message_id": "q", "input_tokens": 7})
    assert found is not None and (found["first_sent_message_id"], found["input_tokens"]) == ("q", 7)


def test_answer_without_details_has_none(conn: sqlite3.Connection) -> None:
    assert added(conn, {}) is None


@each("wrong", [None, -1, 1.5, "x", [], {}, True, [[]], [{"number": []}], 2**60])
def test_wrong_values_are_left_out(wrong: Any) -> None:
    conn = sqlite3.connect(":memory:", isolation_level=None)
    conn.row_factory = sqlite3.Row
    conn.executescript(SCHEMA.read_text())
    names = ("input_tokens", "sources", "memory", "first_sent_message_id")
    listed = wrong if isinstance(wrong, list) else [wrong]
    details = {"answer": True, **dict.fromkeys(names, wrong), "sources": listed, "memory": listed}
    found = added(conn, details, steps=listed)
    assert found is not None and found["input_tokens"] == 0 and found["first_sent_message_id"] is None
    assert found["sources"] == found["memory"] == found["steps"] == []
