"""What an account said is found again by its words, whatever is asked, and by nobody else (contract 4 and 5)."""

import sqlite3
import time
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from svc import accounts, history
from svc.db import SCHEMA

NOW = 1_790_000_000.0


def new_database() -> sqlite3.Connection:
    conn = sqlite3.connect(":memory:", isolation_level=None)
    conn.row_factory = sqlite3.Row
    conn.execute("PRAGMA foreign_keys = ON")
    conn.execute("PRAGMA trusted_schema = OFF")
    conn.executescript(SCHEMA.read_text())
    return conn


@pytest.fixture
def conn() -> Iterator[sqlite3.Connection]:
    conn = new_database()
    yield conn
    conn.close()


def account(conn: sqlite3.Connection, email: str) -> str:
    return str(accounts.add_account(conn, email, None, None, NOW)["id"])


def texts(conn: sqlite3.Connection, account_id: str, query: str) -> list[str]:
    return [passage["text"] for passage in history.matching_passages(conn, account_id, query)]


@pytest.fixture
def ada(conn: sqlite3.Connection) -> str:
    return account(conn, "ada@example.com")


def test_a_passage_is_found_by_any_of_its_words_with_its_source(conn: sqlite3.Connection, ada: str) -> None:
    history.add_passage(conn, ada, "run_1", "The zebra is called Ada.", NOW)
    history.add_passage(conn, ada, "run_2", "Größe in Zürich", NOW)
    (found,) = history.matching_passages(conn, ada, "what was the ZEBRA's name?")
    assert found == {"text": "The zebra is called Ada.", "source": "run_1", "created_at": "2026-09-21T14:13:20.000Z"}
    assert texts(conn, ada, "zürich") == ["Größe in Zürich"] and texts(conn, ada, "lion") == []


def test_at_most_five_come_and_the_best_first(conn: sqlite3.Connection, ada: str) -> None:
    for number in range(20):
        history.add_passage(conn, ada, "run_1", f"zebra number {number} and many more words that matter little", NOW)
    history.add_passage(conn, ada, "run_1", "zebra zebra lion", NOW)
    found = texts(conn, ada, "zebra lion")
    assert len(found) == history.MOST_PASSAGES and found[0] == "zebra zebra lion"


def test_one_account_never_finds_what_another_said(conn: sqlite3.Connection, ada: str) -> None:
    bob = account(conn, "bob@example.com")
    history.add_passage(conn, ada, "run_1", "a secret zebra", NOW)
    history.add_passage(conn, bob, "run_2", "my own zebra", NOW)
    assert texts(conn, bob, "zebra secret") == ["my own zebra"]
    assert texts(conn, "user_unknown", "zebra") == []


def test_what_is_forgotten_is_in_no_table_and_no_index(conn: sqlite3.Connection, ada: str) -> None:
    bob = account(conn, "bob@example.com")
    for account_id in (ada, bob):
        history.add_passage(conn, account_id, "run_1", "zebra crossing", NOW)
    history.forget(conn, ada)
    accounts.delete_account(conn, ada)
    assert texts(conn, ada, "zebra") == [] and texts(conn, bob, "zebra") == ["zebra crossing"]
    assert conn.execute("SELECT count(*) FROM passages_text WHERE passages_text MATCH 'zebra'").fetchone()[0] == 1
    conn.execute("INSERT INTO passages_text (passages_text, rank) VALUES ('integrity-check', 1)")
    history.forget(conn, ada)  # and again


def test_a_long_passage_is_kept_in_part_and_a_blank_one_not_at_all(conn: sqlite3.Connection, ada: str) -> None:
    history.add_passage(conn, ada, "run_1", "zebra " * 10_000, NOW)
    history.add_passage(conn, ada, "run_1", " \n\u2003", NOW)
    (text,) = texts(conn, ada, "zebra")
    assert len(text) == 2000 and conn.execute("SELECT count(*) FROM passages").fetchone()[0] == 1


@pytest.mark.parametrize(
    "query",
    ['"', "AND", "NOT zebra", "zebra AND", "NEAR(zebra, 5)", "zebra*", "text:zebra", "(", "^zebra", "- zebra", "{a b}: c", "\0zebra", "zebra\0", "'; --"],
)
def test_the_syntax_of_the_index_means_nothing_in_a_query(conn: sqlite3.Connection, ada: str, query: str) -> None:
    history.add_passage(conn, ada, "run_1", "the zebra and near not text", NOW)
    found = texts(conn, ada, query)
    assert bool(found) is any(word in query.lower() for word in ("zebra", "and", "near", "not", "text"))


@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=60), query=st.text(max_size=60))
@settings(max_examples=150, deadline=None)
def test_any_text_and_any_query_work(text: str, query: str) -> None:
    conn = new_database()
    ada = account(conn, "ada@example.com")
    history.add_passage(conn, ada, "run_1", text, NOW)
    assert texts(conn, ada, query) in ([], [text])
    history.forget(conn, ada)
    assert conn.execute("SELECT count(*) FROM passages").fetchone()[0] == 0
    conn.close()


def test_ten_thousand_terms_cost_little(conn: sqlite3.Connection, ada: str) -> None:
    for number in range(2_000):
        history.add_passage(conn, ada, "run_1", f"zebra {number} lion tiger bear", NOW)
    began = time.perf_counter()
    texts(conn, ada, " ".join(f"word{number}" for number in range(10_000)))
    texts(conn, ada, "zebra lion tiger bear " * 5_000)
    assert time.perf_counter() - began < 0.5
