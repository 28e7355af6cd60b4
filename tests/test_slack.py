"""Remains of deleted rows in unused parts of pages are overwritten, and nothing else in the file changes."""

import contextlib
import itertools
import random
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from svc.checkpoint import Checkpointer
from svc.schema import connect
from svc.slack import Slack
from svc.workers import Pool
from tests.support.databases import open_with_schema, prepare

SCHEMA = """
CREATE TABLE notes (id TEXT PRIMARY KEY, account_id TEXT NOT NULL, text TEXT NOT NULL) STRICT;
CREATE INDEX notes_by_account ON notes (account_id, text);
CREATE TABLE pairs (key TEXT PRIMARY KEY, text TEXT NOT NULL) STRICT, WITHOUT ROWID;
"""
MARK = re.compile(rb"mark\d{6}")
Rows = dict[str, list[tuple[str, ...]]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    prepare(tmp_path / "a.db", SCHEMA, [])
    return tmp_path / "a.db"


@pytest.fixture
def conn(path: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(connect(path)) as conn:
        yield conn


@pytest.fixture
def slack(path: Path, conn: sqlite3.Connection) -> Iterator[Slack]:
    with contextlib.closing(Slack(path)) as slack:
        yield slack


def write(conn: sqlite3.Connection, seed: int) -> None:
    """Insert, change and delete rows so that pages split and merge."""
    chosen = random.Random(seed)

    def text(number: int) -> str:
        return f"mark{number:06d}" + "x" * chosen.randint(5, 300 + 600 * (number % 2))

    for number in range(seed * 2_000, seed * 2_000 + 800):
        place = chosen.randrange(10**6)
        conn.execute("INSERT INTO notes VALUES (?, ?, ?)", (f"{place:06d}{number}", f"a{number % 5}", text(number)))
        conn.execute("INSERT INTO pairs VALUES (?, ?)", (f"{place:06d}{number}", text(number + 1_000)))
    for (row_id,) in conn.execute("SELECT id FROM notes ORDER BY id").fetchall()[::3]:
        conn.execute("UPDATE notes SET text = ? WHERE id = ?", (text(seed * 2_000 + 1_900), row_id))
    for table, column in (("notes", "id"), ("pairs", "key")):
        conn.execute(f"DELETE FROM {table} WHERE {column} LIKE '%{seed % 10}'")


def rows(conn: sqlite3.Connection) -> Rows:
    return {table: [tuple(row) for row in conn.execute(f"SELECT * FROM {table}")] for table in ("notes", "pairs")}


def dead(path: Path, conn: sqlite3.Connection) -> set[bytes]:
    """Return the marks in the file that no row has."""
    live = {text[:10].encode() for table in rows(conn).values() for *_, text in table}
    found = set(MARK.findall(path.read_bytes()))
    return found - live


def truncate(conn: sqlite3.Connection) -> None:
    assert conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0


def examine(slack: Slack) -> None:
    slack.note_copied()
    while slack.examine_written():
        pass


def overwrite(slack: Slack, conn: sqlite3.Connection) -> None:
    while slack.has_remains:
        slack.overwrite(conn)


def test_sqlite_leaves_remains(path: Path, conn: sqlite3.Connection) -> None:
    """The reason for this module. If it fails with a newer SQLite, the module may go."""
    for seed in range(4):
        write(conn, seed)
    truncate(conn)
    assert dead(path, conn)


def test_noted_pages_keep_no_remains_and_all_rows(path: Path, conn: sqlite3.Connection, slack: Slack) -> None:
    for seed in range(4):
        write(conn, seed)
        before = rows(conn)
        slack.note()
        truncate(conn)
        examine(slack)
        overwrite(slack, conn)
        assert dead(path, conn) == set() and rows(conn) == before
        assert conn.execute("PRAGMA integrity_check").fetchall()[0][0] == "ok"
    assert not slack.has_remains


def test_walk_finds_remains_in_pages_that_were_not_noted(path: Path, conn: sqlite3.Connection, slack: Slack) -> None:
    for seed in range(4):
        write(conn, seed)
    truncate(conn)
    while slack.examine_tree(conn):
        pass
    overwrite(slack, conn)
    assert dead(path, conn) == set()
    slack.examine_all()
    while slack.examine_tree(conn):
        pass
    assert not slack.has_remains, "the second walk finds nothing"


def test_writer_does_not_write_remains_back(path: Path, conn: sqlite3.Connection, slack: Slack) -> None:
    conn.execute("PRAGMA cache_size = 10000")
    for seed in range(4):
        write(conn, seed)
    truncate(conn)
    rows(conn)  # every page is in the writer's cache
    while slack.examine_tree(conn):
        pass
    overwrite(slack, conn)
    for table in ("notes", "pairs"):
        conn.execute(f"UPDATE {table} SET text = replace(text, 'x', 'y')")  # no row of a table moves
    truncate(conn)
    assert dead(path, conn) == set()


def test_nothing_is_overwritten_while_the_log_has_pages(path: Path, conn: sqlite3.Connection, slack: Slack) -> None:
    write(conn, 1)
    slack.note()
    conn.execute("PRAGMA wal_checkpoint(PASSIVE)")
    examine(slack)
    before = dead(path, conn)
    assert before and slack.has_remains
    conn.execute("UPDATE notes SET account_id = 'a9'")
    slack.overwrite(conn)
    assert dead(path, conn) >= before and slack.has_remains


@pytest.mark.parametrize("page_bytes", [1024, 8192])
def test_file_with_other_pages_is_not_changed(page_bytes: int, tmp_path: Path) -> None:
    path = tmp_path / "b.db"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as made:
        made.execute(f"PRAGMA page_size = {page_bytes}")
        made.executescript(f"PRAGMA journal_mode = WAL; {SCHEMA}")
    with contextlib.closing(connect(path)) as conn, contextlib.closing(Slack(path)) as slack:
        write(conn, 1)
        slack.note()
        truncate(conn)
        slack.note_copied()
        before = path.stat().st_mtime_ns
        while slack.examine_written() or slack.examine_tree(conn):
            pass
        slack.overwrite(conn)
        assert path.stat().st_mtime_ns == before and len(rows(conn)["notes"]) > 500


def test_uncommitted_pages_are_noted_again(path: Path, conn: sqlite3.Connection, slack: Slack) -> None:
    """A transaction that fills the cache writes to the log before its end. After a rollback, others write there."""
    conn.execute("PRAGMA cache_size = 10")
    conn.execute("BEGIN")
    write(conn, 1)
    slack.note()
    conn.execute("ROLLBACK")
    write(conn, 2)
    slack.note()
    truncate(conn)
    examine(slack)
    overwrite(slack, conn)
    assert dead(path, conn) == set()


@pytest.mark.parametrize("seeds", [1, 4])
async def test_stop_leaves_no_remains(tmp_path: Path, seeds: int) -> None:
    path = tmp_path / "b.db"
    db = await open_with_schema(path, SCHEMA)
    await db.empty_log()
    for seed in range(seeds):
        await db.write(write, seed)
    log_bytes = path.with_name("b.db-wal").stat().st_size
    assert (log_bytes > 1 << 20) is (seeds == 4), "the checkpointer copies a large log first"
    await db.close()
    with contextlib.closing(connect(path)) as conn:
        assert dead(path, conn) == set() and rows(conn)["notes"]


async def test_no_page_is_copied_without_note(
    path: Path, conn: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpointer, seeds = Checkpointer(path, Pool(lambda: conn, lambda *_: False)), itertools.count()
    slack, note = checkpointer._opened(), Slack.note

    def note_and_write(slack: Slack) -> int:
        found = note(slack)
        write(conn, next(seeds))
        return found

    with contextlib.closing(connect(path)) as other, contextlib.closing(connect(path, query_only=True)) as reader:
        for is_written_during, is_written_after in itertools.product((False, True), repeat=2):
            monkeypatch.setattr(Slack, "note", note_and_write if is_written_during else note)
            _, left = checkpointer._checkpoint(other, reader)
            assert (left > 0) is is_written_during
            for _ in range(is_written_after):  # the log restarts
                write(conn, next(seeds))
        monkeypatch.undo()
        with checkpointer._noted(conn):
            truncate(conn)
        examine(slack)
        overwrite(slack, conn)
        assert dead(path, conn) == set()
        slack._begin_walk = False
        with checkpointer._noted(conn):
            other.execute("DELETE FROM notes")
        assert slack._begin_walk, "a command wrote at the same time: all pages are examined"
    slack.close()
