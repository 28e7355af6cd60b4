"""svc/content/forgetting.py: much text goes in parts, between which its index is merged, and nothing of it stays."""

import sqlite3
import time

import pytest

from svc.content import conversations, forgetting, fulltext, history
from svc.content.forgetting import Forgetting
from svc.ids import new_id
from tests.content.test_history import NOW, account, check_indexes, conn, indexed, new_database, say  # noqa: F401

MESSAGES = 300


@pytest.mark.parametrize("most_characters", [0, 2_000, 1_000_000])
def test_all_texts_of_an_account_go_and_those_of_others_stay(
    conn: sqlite3.Connection,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    most_characters: int,
) -> None:
    monkeypatch.setattr(forgetting, "_MOST_CHARACTERS", most_characters)
    ada, bob = account(conn, "ada@example.com"), account(conn, "bob@example.com")
    for account_id in (ada, bob):
        for number in range(MESSAGES):
            conversation_id = conversations.add_conversation(conn, account_id, NOW, title=f"zebra {number}").id
            say(conn, account_id, f"zebra {number} and its kin", conversation_id=conversation_id)
    for forget_some in (history.forget_some, conversations.forget_some):
        texts = Forgetting(forget_some, ada)
        while texts.go_on(conn):
            pass
        assert not texts.go_on(conn)
    while fulltext.forget_vocabulary(conn, ada):
        pass
    for table in ("messages", "conversations", "vocabulary"):
        left = {row[0] for row in conn.execute(f"SELECT DISTINCT account_id FROM {table}")}
        assert left == {bob}, table
    check_indexes(conn)


@pytest.mark.slow
def test_no_step_takes_long_however_much_there_is() -> None:
    conn = new_database()  # noqa: F811
    ada = account(conn, "ada@example.com")
    conn.execute("BEGIN")
    for number in range(6_000):
        words = " ".join(f"word{(number * 31 + place * 97) % 9_973}" for place in range(100))
        conn.execute(
            """
            INSERT INTO messages (number, id, account_id, run_id, role, content, created_at)
            VALUES (?, ?, ?, 'run', 'user', ?, 1)
            """,
            (number, new_id("msg"), ada, words),
        )
        fulltext.add_message_words(conn, ada, number, words)
    conn.execute("COMMIT")
    texts, more, took = Forgetting(history.forget_some, ada), True, []
    while more:
        began = time.thread_time()
        conn.execute("BEGIN")
        more = texts.go_on(conn)
        conn.execute("COMMIT")
        took.append(time.thread_time() - began)
    assert conn.execute("SELECT count(*) FROM messages").fetchone()[0] == 0 and len(took) > 50
    assert max(took) < 0.04, "8 ms, and what FTS5 merges of its own accord"
    conn.close()
