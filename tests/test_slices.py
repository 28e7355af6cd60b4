"""Rows are deleted in slices, and no part of a deleted text stays in the file, however long it was."""

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from svc.schema import connect
from svc.tables import Table, run_some
from tests.support.databases import prepare

SCHEMA = "CREATE TABLE notes (number INTEGER PRIMARY KEY, account_id TEXT NOT NULL, text TEXT, more TEXT) STRICT;"
NOTES = Table("notes", dict, "note", texts=("text", "more"))
SECRET = "zebra in the cellar "
MB = 1_000_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    prepare(tmp_path / "a.db", SCHEMA, [])
    return tmp_path / "a.db"


@pytest.fixture
def conn(path: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(connect(path)) as conn:
        yield conn


def delete(conn: sqlite3.Connection, number: int) -> bool:
    return NOTES.delete_row(conn, "a", number)


def steps_to_delete(conn: sqlite3.Connection, *texts: str | None) -> int:
    """Adds a row with these texts and deletes it again: in how many steps."""
    given = (*texts, None)[:2]
    number = conn.execute("INSERT INTO notes (account_id, text, more) VALUES ('a', ?, ?)", given).lastrowid or 0
    steps = 1
    while not delete(conn, number):
        steps += 1
    assert conn.execute("SELECT count(*) FROM notes").fetchone()[0] == 0
    return steps


def test_long_row_is_deleted_in_slices_of_1_mb(conn: sqlite3.Connection) -> None:
    assert steps_to_delete(conn, None) == steps_to_delete(conn, "short") == steps_to_delete(conn, "x" * MB) == 1
    assert steps_to_delete(conn, "x" * 2 * MB, "y" * MB) == 4, "three MB to overwrite, and the row"
    assert steps_to_delete(conn, None, "é" * MB) == 3


def test_row_of_another_account_is_not_changed(conn: sqlite3.Connection) -> None:
    text = "x" * 2 * MB
    number = conn.execute("INSERT INTO notes (account_id, text) VALUES ('b', ?)", (text,)).lastrowid or 0
    assert delete(conn, number), "there is nothing more to delete"
    assert conn.execute("SELECT text FROM notes").fetchone()[0] == text


def test_short_texts_are_not_opened_as_blobs() -> None:
    """Python 3.11 keeps 88 bytes of each blob until the connection closes, and the writer's never does."""

    class Counting(sqlite3.Connection):
        opened = 0

        def blobopen(self, *args: Any, **kwargs: Any) -> sqlite3.Blob:
            self.opened += 1
            return super().blobopen(*args, **kwargs)

    conn = sqlite3.connect(":memory:", factory=Counting, isolation_level=None)
    conn.executescript(SCHEMA)
    for text in ("", "short", "x" * MB):
        steps_to_delete(conn, text)
    assert conn.opened == 0 and steps_to_delete(conn, "x" * (MB + 1)) == conn.opened == 3
    conn.close()


def test_deleted_text_leaves_no_bytes_in_the_file(conn: sqlite3.Connection, path: Path) -> None:
    for size in (20, 2_000, MB // 2, 3 * MB):
        text = (SECRET * (size // len(SECRET) + 1))[:size]
        steps_to_delete(conn, text, text)
        conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        assert SECRET[:19].encode() not in path.read_bytes(), size


def test_deletion_slice_ends_at_its_time_limit(conn: sqlite3.Connection) -> None:
    rows = """
        INSERT INTO notes (account_id)
        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2) SELECT ?1 FROM n
    """
    for account_id, count in (("ada", 30_000), ("bob", 200)):
        conn.execute(rows, (account_id, count))
    own = "DELETE FROM notes WHERE number IN (SELECT number FROM notes WHERE account_id = ?1 LIMIT ?2)"
    before = time.thread_time()
    assert run_some(own, conn, "ada", at_once=1)
    assert time.thread_time() - before < 0.05
    assert 0 < conn.execute("SELECT count(*) FROM notes WHERE account_id = 'ada'").fetchone()[0] < 30_000
    while run_some(own, conn, "ada"):
        pass
    assert conn.execute("SELECT account_id, count(*) FROM notes").fetchone()[:] == ("bob", 200)


@pytest.mark.slow
def test_each_step_overwrites_for_a_bounded_time(conn: sqlite3.Connection) -> None:
    def longest_ms() -> float:
        statement = "INSERT INTO notes (account_id, text, more) VALUES ('a', ?, ?)"
        number = conn.execute(statement, ("狗" * MB, "狗" * MB)).lastrowid or 0
        took, more = [], True
        while more:
            began = time.thread_time()
            conn.execute("BEGIN")
            more = not delete(conn, number)
            conn.execute("COMMIT")
            took.append((time.thread_time() - began) * 1000)
        return max(took)

    assert min(longest_ms() for _ in range(3)) < 20, "all at once takes 50"
