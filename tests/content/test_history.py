"""Messages are found by their words, with any query, and only by their account."""

import sqlite3
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from svc.auth import accounts
from svc.content import conversations, fulltext, history, recall, search, word_runs
from svc.content.fulltext import chunks_of
from svc.content.word_runs import CHUNKS
from svc.content.words import indexed_words
from svc.errors import ApiError
from svc.schema import SCHEMA
from tests.support.cases import each

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
    check_indexes(conn)
    conn.close()


def check_indexes(conn: sqlite3.Connection) -> None:
    """Fails when the index of words holds anything but the words of messages and titles."""
    tidy(conn)
    messages = {
        (account_id, word, number * CHUNKS + chunk)
        for account_id, number, content in conn.execute("SELECT account_id, number, content FROM messages")
        for chunk, part in enumerate(chunks_of(content))
        for word in indexed_words(part)
    }
    titles = {
        (account_id, "=" + word, number * CHUNKS + version)
        for account_id, number, version, title in conn.execute(
            "SELECT account_id, number, title_version, title FROM conversations WHERE title IS NOT NULL"
        )
        for word in indexed_words(title)
    }
    assert indexed(conn) == messages | titles


def tidy(conn: sqlite3.Connection) -> None:
    """Does all that is due or becomes due, which takes few steps."""
    for _ in range(10_000):
        conn.execute("UPDATE word_purges SET due_at = 0")
        if not fulltext.index_some(conn):
            return
    raise AssertionError("the index is never tidy")


def indexed(conn: sqlite3.Connection) -> set[tuple[str, str, int]]:
    """Each word of the index with its account and place."""
    found = [
        (account_id, line)
        for account_id, packed in conn.execute("SELECT account_id, lines FROM word_blocks JOIN word_runs ON run = id")
        for line in word_runs.unpacked(packed)[1:-1].split("\n")
    ]
    for account_id, place, words in conn.execute("SELECT account_id, place, words FROM fresh_words"):
        found += [(account_id, f"{word} {place[-10:]}") for word in words.strip("\n").split("\n")]
    return {(account_id, line[:-11], int(line[-10:], 16)) for account_id, line in found}


def account(conn: sqlite3.Connection, email: str) -> str:
    return str(accounts.add_account(conn, email, None, None, NOW).id)


def say(conn: sqlite3.Connection, account_id: str, content: str, **source: Any) -> sqlite3.Row:
    return history.add_message(
        conn, account_id, role="user", content=content, now_seconds=NOW, **source or {"run_id": "run_1"}
    )


def texts(conn: sqlite3.Connection, account_id: str, query: str, known: tuple[str, ...] = ()) -> list[str]:
    return [passage.text for passage in recall.matching_passages(conn, account_id, query, known)]


@pytest.fixture
def ada(conn: sqlite3.Connection) -> str:
    return account(conn, "ada@example.com")


@pytest.fixture
def bob(conn: sqlite3.Connection) -> str:
    return account(conn, "bob@example.com")


def test_a_passage_is_found_by_any_of_its_words_with_its_source(conn: sqlite3.Connection, ada: str) -> None:
    say(conn, ada, "The zebra is called Ada.")
    conversation = conversations.add_conversation(conn, ada, NOW)
    say(conn, ada, "Größe in Zürich", conversation_id=conversation.id)
    (found,) = recall.matching_passages(conn, ada, "what was the ZEBRA's name?")
    assert (found.text, found.role, found.source) == ("The zebra is called Ada.", "user", "run_1")
    assert found.line() == "[2026-09-21, the user said] The zebra is called Ada."
    (found,) = recall.matching_passages(conn, ada, "zürich zurich")
    assert (found.text, found.source) == ("Größe in Zürich", conversation.id)
    assert texts(conn, ada, "lion") == []


def test_at_most_five_passages_best_first(conn: sqlite3.Connection, ada: str) -> None:
    say(conn, ada, "zebra zebra lion")
    for number in range(20):
        say(conn, ada, f"zebra number {number} and many more words that matter little")
    found = texts(conn, ada, "my zebra")
    assert len(found) == recall.MOST_PASSAGES
    assert [text.split()[2] for text in found] == ["19", "18", "17", "16", "15"]  # equal ones: the newest
    assert texts(conn, ada, "zebra lion") == ["zebra zebra lion"]


def test_a_rare_word_counts_more_than_several_common_ones(conn: sqlite3.Connection, ada: str) -> None:
    say(conn, ada, "Rex")
    for number in range(500):
        say(conn, ada, f"the weather in town number {number}")
    assert texts(conn, ada, "what is the weather in my town for Rex")[0] == "Rex"


def test_known_and_repeated_passages_are_left_out(conn: sqlite3.Connection, ada: str) -> None:
    for content in ("zebra one", "zebra two", "zebra two", "zebra three"):
        say(conn, ada, content)
    assert texts(conn, ada, "zebra", ("zebra three", "other")) == ["zebra two", "zebra one"]


def test_recall_finds_only_the_accounts_messages(conn: sqlite3.Connection, ada: str, bob: str) -> None:
    for number in range(50):
        say(conn, (ada, bob)[number % 2], f"{('a secret', 'my own')[number % 2]} zebra")
    assert texts(conn, bob, "my zebra") == ["my own zebra"] and texts(conn, bob, "secret") == []
    assert texts(conn, "user_unknown", "zebra") == []


def test_long_text_gives_the_passage_around_the_words(conn: sqlite3.Connection, ada: str) -> None:
    say(conn, ada, "many words " * 8_000 + "the zebra is called Ada " + "and more words " * 20_000)
    while fulltext.index_some(conn):
        pass
    (text,) = texts(conn, ada, "how is the ZEBRA called")
    assert "the zebra is called Ada" in text and len(text) <= 702 and text[0] == text[-1] == "…"


def test_message_has_a_million_characters_and_no_lone_surrogates(conn: sqlite3.Connection, ada: str) -> None:
    assert len(say(conn, ada, "🙂" * 1_000_001).content) == 1_000_000
    assert say(conn, ada, "half \ud83d of it\0").content == "half ? of it\0"


def test_deleted_message_is_in_no_table_and_no_index(conn: sqlite3.Connection, ada: str, bob: str) -> None:
    for account_id in (ada, bob):
        conversation_id = conversations.add_conversation(conn, account_id, NOW, title="zebra talk").id
        conversations.add_conversation(conn, account_id, NOW)
        for number in range(5):
            say(conn, account_id, f"zebra {number}", conversation_id=conversation_id)
        say(conn, account_id, "zebra crossing")
    with pytest.raises(sqlite3.IntegrityError):  # words would stay behind
        accounts.delete_account(conn, ada)
    for delete_some in (word_runs.delete_some, history.delete_some, conversations.TABLE.delete_some):
        while delete_some(conn, ada):
            pass
    assert accounts.delete_account(conn, ada)
    check_indexes(conn)
    assert texts(conn, ada, "zebra") == [] and len(texts(conn, bob, "zebra")) == 5
    assert conn.execute("SELECT count(*), count(DISTINCT account_id) FROM messages").fetchone()[:] == (6, 1)
    assert not history.delete_some(conn, ada) and not conversations.TABLE.delete_some(conn, ada)


def test_many_messages_are_deleted_in_steps(conn: sqlite3.Connection, ada: str) -> None:
    conversation_id = conversations.add_conversation(conn, ada, NOW).id
    for number in range(1_200):
        say(conn, ada, f"zebra {number}", conversation_id=conversation_id)
    left, more = [], True
    while more:
        more = conversations.delete_conversation(conn, ada, conversation_id)
        left.append(conn.execute("SELECT count(*) FROM messages").fetchone()[0])
    assert len(left) > 2 and sorted(left, reverse=True) == left and texts(conn, ada, "zebra") == []
    with pytest.raises(ApiError):
        conversations.delete_conversation(conn, ada, conversation_id)


@each(
    ("text", "query"),
    [
        ("Größe in Zürich", "zurich"),
        ("naïve café", "CAFE\u0301"),
        ("我的狗叫雷克斯", "狗"),
        ("東京へ行きました", "東京"),
        ("한국어를 배워요", "한국어"),
        ("ฉันรักแมว", "แมว"),
        ("\uff26\uff35\uff2c\uff2c", "full"),
        ("Ελληνικά", "ελληνικα"),
        ("snake_case and kebab-case", "case snake"),
        ("it's pi31.4", "pi31"),
        ("x" * 100_000, "x" * 100),
    ],
)
def test_words_of_any_script_case_and_accent_are_found(
    conn: sqlite3.Connection, ada: str, text: str, query: str
) -> None:
    conversation_id = conversations.add_conversation(conn, ada, NOW).id
    say(conn, ada, text, conversation_id=conversation_id)
    say(conn, ada, "something else")
    assert len(texts(conn, ada, query)) == 1
    assert [found["id"] for found in search.search(conn, ada, query, 20, None, None)["data"]] == [conversation_id]


@each(
    "query",
    [
        *('"', "AND", "NOT zebra", "zebra AND", "NEAR(zebra, 5)", "zebra*", "content:zebra", "(", "^zebra", "- zebra"),
        *("{a b}: c", "\0zebra", "zebra\0", "'; --", "_", "a_b", "\ud800", ""),
    ],
)
def test_query_has_no_syntax(conn: sqlite3.Connection, ada: str, query: str) -> None:
    conversation_id = conversations.add_conversation(conn, ada, NOW).id
    say(conn, ada, "the zebra and near not content", conversation_id=conversation_id)
    found = texts(conn, ada, query)
    assert bool(found) is any(word in query.lower() for word in ("zebra", "content"))
    listed = search.search(conn, ada, query, 20, None, None)["data"]
    wanted = [word for word in query.lower().replace("_", " ").replace("'", " ").split() if word.isalnum()]
    assert not listed or all(word in "the zebra and near not content" for word in wanted)


@pytest.mark.slow
@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=60), query=st.text(max_size=60))
@example(text="\u0e33", query="\u0e33")  # becomes two signs when it is folded
@example(text="\x000", query="0")
def test_any_text_and_any_query_work(text: str, query: str) -> None:
    conn = new_database()
    ada = account(conn, "ada@example.com")
    conversation_id = conversations.add_conversation(conn, ada, NOW, title=conversations.title_of(text)).id
    say(conn, ada, text, conversation_id=conversation_id)
    assert texts(conn, ada, query) in ([], [text.strip()])
    assert len(search.search(conn, ada, query, 20, None, None)["data"]) <= 1
    check_indexes(conn)
    while conversations.delete_conversation(conn, ada, conversation_id):
        pass
    assert conn.execute("SELECT count(*) FROM messages").fetchone()[0] == 0
    check_indexes(conn)
    conn.close()


def test_ten_thousand_terms_cost_little(conn: sqlite3.Connection, ada: str) -> None:
    for number in range(2_000):
        say(conn, ada, f"zebra {number} lion tiger bear")
    for query in (
        " ".join(f"word{number}" for number in range(10_000)),
        "zebra lion tiger bear " * 5_000,
        "x" * 16_000_000,
    ):
        began = time.thread_time()
        texts(conn, ada, query)
        search.search(conn, ada, query, 20, None, None)
        assert time.thread_time() - began < 0.5
