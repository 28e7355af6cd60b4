"""Live support within its bounds: one active conversation of an account, 200 messages, and who has the last word."""

import sqlite3
from collections.abc import Iterator

import pytest

from svc import audit
from svc.auth import accounts
from svc.content import support
from svc.errors import ApiError
from tests.billing.test_wallet import empty_database

HELP = support.NewSupport("Help", None)


@pytest.fixture
def conn() -> Iterator[sqlite3.Connection]:
    conn = empty_database()
    yield conn
    conn.close()


@pytest.fixture
def ada(conn: sqlite3.Connection) -> str:
    return accounts.add_account(conn, "ada@example.com", None, None, 1.0).id


def test_active_conversation_of_another_account_does_not_count(conn: sqlite3.Connection, ada: str) -> None:
    bob = accounts.add_account(conn, "bob@example.com", None, None, 1.0).id
    for account_id in (ada, bob):
        support.add_support(conn, account_id, HELP, 1.0)
        with pytest.raises(ApiError) as refused:
            support.add_support(conn, account_id, HELP, 1.0)
        assert refused.value.code == "already_active"
    assert len(support.inbox_page(conn, "active", 20, None).items) == 2


def test_a_conversation_ends_at_200_messages(conn: sqlite3.Connection, ada: str) -> None:
    support_id = support.add_support(conn, ada, support.NewSupport("Help", "0"), 1.0)["id"]
    for number in range(1, 200):
        support.add_message(conn, ada, support_id, ("user", "operator")[number % 2], str(number), 1.0)
    for role in ("user", "operator"):
        with pytest.raises(ApiError) as refused:
            support.add_message(conn, ada, support_id, role, "one more", 1.0)
        assert refused.value.code == "PAYLOAD_TOO_LARGE"
    shown = support.support_with_messages(conn, ada, support_id)
    assert [message["content"] for message in shown["messages"]] == [str(number) for number in range(200)]


def test_conversation_waits_until_the_operator_has_answered(conn: sqlite3.Connection, ada: str) -> None:
    support_id = support.add_support(conn, ada, HELP, 1.0)["id"]
    waiting = []
    for role in (None, "user", "operator", "user"):
        if role == "operator":
            support.reply(conn, audit.OPERATOR, support_id, "yes?", 1.0)
        elif role:
            support.add_message(conn, ada, support_id, role, "hello", 1.0)
        waiting.append(support.inbox_page(conn, "active", 20, None).items[0]["waiting"])
    assert waiting == [True, True, False, True]
