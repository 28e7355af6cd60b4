"""Tables of accounts: a row of another account looks like a missing one, and deletions touch only the rows of the
account.
"""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from svc.errors import ApiError
from svc.schema import connect
from svc.tables import Table
from tests.support.databases import prepare

SCHEMA = "CREATE TABLE notes (id TEXT PRIMARY KEY, account_id TEXT NOT NULL, project_id TEXT, pinned INTEGER NOT NULL) STRICT;"
NOTES = Table("notes", dict, "note", order=("pinned", "rowid"), at_once=1)


@pytest.fixture
def conn(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    prepare(tmp_path / "a.db", SCHEMA, [])
    with contextlib.closing(connect(tmp_path / "a.db")) as conn:
        rows = [(f"{account}{number}", account, "p", number == 0) for account in "ab" for number in range(4)]
        conn.executemany("INSERT INTO notes VALUES (?, ?, ?, ?)", rows)
        yield conn


def ids(conn: sqlite3.Connection, account_id: str) -> list[str]:
    return [note["id"] for note in NOTES.page(conn, account_id, 10, None).items]


def test_rows_of_other_accounts_are_missing(conn: sqlite3.Connection) -> None:
    assert NOTES.by_id(conn, "a", "a1") == {"id": "a1", "account_id": "a", "project_id": "p", "pinned": 0}
    for read_or_delete in (NOTES.by_id, NOTES.delete):
        with pytest.raises(ApiError, match="There is no such note") as raised:
            read_or_delete(conn, "b", "a1")
        assert raised.value.error["code"] == "not_found"
    with pytest.raises(ApiError) as raised:
        NOTES.by_id(conn, "a", "a9", "note_id")
    assert raised.value.error["param"] == "note_id"


def test_changes_leave_the_rows_of_other_accounts(conn: sqlite3.Connection) -> None:
    before = {"id": "a9", "account_id": "a", "project_id": None, "pinned": 1}
    assert NOTES.insert(conn, before) == before
    assert NOTES.update(conn, "a", "a9", {"project_id": "p", "pinned": 0}) == {**before, "project_id": "p", "pinned": 0}
    with pytest.raises(ApiError, match="There is no such note"):
        NOTES.update(conn, "b", "a9", {"pinned": 1})
    assert [row["id"] for row in conn.execute("SELECT id FROM notes WHERE pinned")] == ["a0", "b0"]
    with pytest.raises(sqlite3.IntegrityError):
        NOTES.insert(conn, before)


def test_lists_have_their_order_and_are_narrowed(conn: sqlite3.Connection) -> None:
    assert ids(conn, "a") == ["a0", "a3", "a2", "a1"]
    first = NOTES.page(conn, "a", 1, "a3", project_id="p", pinned=[0])
    assert ([note["id"] for note in first.items], first.has_more) == (["a2"], True)


def test_deletions_leave_the_rows_of_other_accounts(conn: sqlite3.Connection) -> None:
    NOTES.delete(conn, "a", "a1")
    assert ids(conn, "a") == ["a0", "a3", "a2"]
    while NOTES.detach_some(conn, "a", "p"):
        pass
    assert {row["account_id"] for row in conn.execute("SELECT * FROM notes WHERE project_id IS NULL")} == {"a"}
    while NOTES.delete_some(conn, "a"):
        pass
    assert (ids(conn, "a"), len(ids(conn, "b"))) == ([], 4)
