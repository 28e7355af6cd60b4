"""The words of messages: in chunks, indexed to the end whatever their length, found by their owner alone, and gone with
them.
"""

import asyncio
import contextlib
import sqlite3
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc import db as database
from svc.auth import accounts
from svc.content import conversations, fulltext
from svc.content.fulltext import CHUNK_CHARACTERS, INDEXED_CHARACTERS
from svc.content.word_blocks import packed
from svc.content.word_runs import CHUNKS, MESSAGES, TITLES, words_beginning
from svc.schema import FIRST_VERSION, connect, newest_schema
from tests.bench_words import KINDS, measure, note_transactions
from tests.content.test_history import NOW, ada, bob, conn, indexed, tidy  # noqa: F401 - fixtures
from tests.support.cases import each
from tests.support.databases import prepare
from tests.support.loop_clock import advance_loop
from tests.support.server import ROOT


def say(conn: sqlite3.Connection, account_id: str, content: str) -> int:  # noqa: F811
    """The number of a new message."""
    made = conversations.add_conversation(conn, account_id, NOW)
    conversations.add_message(conn, account_id, made.id, role="user", content=content, now_seconds=NOW)
    number: int = conn.execute("SELECT max(number) FROM messages").fetchone()[0]
    return number


@given(st.text("ab ", max_size=5_000))
def test_chunks_join_to_the_text(text: str) -> None:
    chunks = fulltext.chunks_of(text)
    assert "".join(chunks) == text and all(0 < len(chunk) <= CHUNK_CHARACTERS for chunk in chunks)


def test_long_text_is_indexed_in_a_limited_number_of_chunks() -> None:
    for text in ("word " * INDEXED_CHARACTERS, "x" * (2 * INDEXED_CHARACTERS)):
        chunks = fulltext.chunks_of(text)
        assert "".join(chunks) == text[:INDEXED_CHARACTERS] and len(chunks) <= CHUNKS
    assert not any(chunk.rstrip().endswith("wor") for chunk in fulltext.chunks_of("word " * 10_000)), (
        "cut between words"
    )


def test_a_long_message_is_indexed_to_its_end_in_steps(conn: sqlite3.Connection, ada: str) -> None:  # noqa: F811
    number = say(conn, ada, "\0" + "many words " * 9_000 + "giraffe")
    assert MESSAGES.newest(conn, ada, ["giraffe"], 1) == []
    steps = 0
    while fulltext.index_some(conn):
        steps += 1
    assert steps > 1 and not fulltext.index_some(conn)
    (place,) = MESSAGES.newest(conn, ada, ["giraffe"], 1)
    assert place // CHUNKS == number


def test_texts_of_an_older_release_are_indexed_again_in_steps(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    prepare(path, (ROOT / "tests" / "schemas" / "6.sql").read_text(), newest_schema()[1][: 6 - FIRST_VERSION])
    with contextlib.closing(connect(path)) as old:
        old.execute("INSERT INTO accounts (id, email, email_key, created_at) VALUES ('a', 'a@x', 'a@x', 1)")
        old.execute(
            "INSERT INTO conversations (number, id, account_id, title, created_at, updated_at) "
            "VALUES (5, 'c', 'a', 'हिन्दी', 1, 1)"
        )
        old.execute("""
            WITH RECURSIVE n (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM n WHERE number < 5000)
            INSERT INTO messages (number, id, account_id, conversation_id, role, content, created_at)
            SELECT number, number, 'a', 'c', 'user', iif(number = 7, 'وَالقِيادَةُ', 'plain'), 1 FROM n
        """)
        lines = ["=हिन 0000000280", "ق 0000000380"]  # places of the title and of message 7
        old.execute("INSERT INTO word_runs (id, account_id, level) VALUES (1, 'a', 1)")
        old.execute("INSERT INTO word_blocks (run, first, lines) VALUES (1, ?, ?)", (lines[0], packed(lines)))
    prepare(path, *newest_schema())
    with contextlib.closing(connect(path)) as old:
        steps = 0
        while fulltext.index_some(old):
            steps += 1
        assert steps > 2 and old.execute("SELECT count(*) FROM reindexing").fetchone()[0] == 0
        assert MESSAGES.newest(old, "a", ["قياده"], 9) == [7 * CHUNKS]
        assert TITLES.newest(old, "a", ["हिन्दी"], 9) == [5 * CHUNKS]
        assert MESSAGES.newest(old, "a", ["plain"], 9) == [], "a text without such words is not indexed again"
        for index, number in ((MESSAGES, 7), (TITLES, 5)):
            index.remove(old, "a", number * CHUNKS, (number + 1) * CHUNKS, 1)
        old.execute("DELETE FROM messages")
        old.execute("DELETE FROM conversations")
        tidy(old)
        assert indexed(old) == set(), "the old words are deleted with their text"


def test_words_are_found_only_by_their_account(
    conn: sqlite3.Connection,  # noqa: F811
    ada: str,  # noqa: F811
    bob: str,  # noqa: F811
) -> None:
    say(conn, ada, "a zebra")
    say(conn, bob, "an elephant")
    assert MESSAGES.newest(conn, ada, ["zebra"], 5) and not MESSAGES.newest(conn, bob, ["zebra"], 5)


def test_words_of_a_deleted_message_are_deleted_unless_another_has_them(
    conn: sqlite3.Connection,  # noqa: F811
    ada: str,  # noqa: F811
) -> None:
    number = say(conn, ada, "zebra and lion")
    say(conn, ada, "one more lion")
    fulltext.remove_message_words(conn, ada, number)
    conn.execute("DELETE FROM messages WHERE number = ?", (number,))
    assert MESSAGES.newest(conn, ada, ["zebra"], 5) == [] and len(MESSAGES.newest(conn, ada, ["lion"], 5)) == 1
    assert words_beginning(conn, ada, "zebra", 1) == [] and words_beginning(conn, ada, "lion", 1) == ["lion"]


async def test_a_purge_begins_in_time_on_an_idle_server(tmp_path: Path) -> None:
    db = await database.open_database(tmp_path / "a.db", between=fulltext.index_some)
    account_id = (await db.write(accounts.add_account, "ada@example.com", None, None, NOW)).id
    due_at = "INSERT INTO word_purges (account_id, due_at, deleted_bytes) VALUES (?, ?, 1)"
    await db.write(lambda tx: tx.execute(due_at, (account_id, time.time() + 0.2)))
    waking = asyncio.create_task(fulltext.purge_in_time(db))
    while await db.read(lambda tx: tx.execute("SELECT 1 FROM word_purges").fetchone()):
        await asyncio.sleep(0.01)
        advance_loop(10)
    waking.cancel()
    await db.close()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ordinary", "short, 3 letters", "look-alikes", "squares"])
async def test_any_words_keep_the_file_small_and_transactions_short(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await check_costs(kind, 0.25, 1.5, tmp_path, monkeypatch)


@pytest.mark.soak
@each("kind", KINDS)
async def test_any_words_are_cheap_in_a_large_account(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await check_costs(kind, 4, 1.0, tmp_path, monkeypatch)


async def check_costs(
    kind: str, megabytes: float, most_seconds: float, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of five tries the best counts: other programs make CPU time longer, never shorter."""
    monkeypatch.setattr(database._Transactions, "run", database._Transactions.run)  # it is put back at the end
    noted = note_transactions()
    tries = []
    for number in range(5):
        tried = folder / f"{kind} {number}"
        tried.mkdir()
        tries.append(await measure(kind, megabytes, noted, tried))
        assert tries[-1].growth <= 3
        if tries[-1].indexing_seconds <= most_seconds and max(tries[-1].longest_ms.values()) <= 20:
            return
    raise AssertionError("\n".join(map(str, tries)))
