"""An upgrade keeps what an older database knows, and the database as it was; there is no way back but that one."""

import contextlib
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from svc import cli
from svc.auth import tokens
from svc.billing import payments, usage, wallet
from svc.commands.check import findings, schema_findings
from svc.errors import StartError
from svc.schema import connect, kept_path, newest_schema, prepare
from svc.secrets import open_folder
from tests.support.server import ROOT

SCHEMAS = ROOT / "tests" / "schemas"
NEWEST = len(newest_schema()[1]) + 1
Rows = dict[str, dict[str, list[tuple[Any, ...]]]]  # by table and column, each column's values in order


def database_of(version: int, path: Path) -> Path:
    """A database as that version of the service left it, with rows in every table that matters."""
    prepare(path, (SCHEMAS / f"{version}.sql").read_text(), ["SELECT 1;"] * (version - 1))
    with contextlib.closing(connect(path)) as conn:
        conn.executescript(f"BEGIN; {(SCHEMAS / 'rows' / f'{version}.sql').read_text()} COMMIT;")
    return path


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return database_of(1, tmp_path / "service.db")


def rows(path: Path) -> Rows:
    found: Rows = {}
    with contextlib.closing(connect(path, query_only=True)) as conn:
        tables = conn.execute(
            "SELECT name FROM pragma_table_list WHERE type = 'table' AND schema = 'main' AND name NOT LIKE 'sqlite%'"
        )
        for (table,) in tables.fetchall():
            columns = [row[0] for row in conn.execute("SELECT name FROM pragma_table_info(?)", (table,))]
            found[table] = {
                column: [row[0] for row in conn.execute(f"SELECT {column} FROM {table} ORDER BY {column}")] for column in columns
            }
    return found


# What version 2 put in another place: links with more purposes, usage by key, an artifact's content under an id of its own.
MOVED = {"password_resets", "usage_days", "artifact_pieces"}


@pytest.mark.parametrize("version", sorted(int(path.stem) for path in SCHEMAS.glob("*.sql")))
def test_every_released_database_keeps_its_rows_and_its_money_to_the_micro(version: int, tmp_path: Path) -> None:
    path = database_of(version, tmp_path / "service.db")
    before = rows(path)
    assert all(
        before[table]["account_id"] for table in ("ledger", "wallets", "holds", "messages", "artifacts", "runs", "providers")
    )
    prepare(path, *newest_schema())
    after = rows(path)
    for table in before.keys() - (MOVED if version == 1 else set()):
        for column in before[table].keys() & after[table].keys():
            assert after[table][column] == before[table][column], f"{table}.{column}"
    with contextlib.closing(connect(path)) as conn:
        assert [*schema_findings(conn), *findings(conn), *usage.verify(conn)] == []
        assert tuple(wallet.balances(conn, "a").values()) == (9_999_279, 100, 9_999_179)


def test_version_1_keeps_what_has_moved_links_usage_by_key_and_contents(old: Path) -> None:
    prepare(old, *newest_schema())
    with contextlib.closing(connect(old)) as conn:
        spent = {key.id: key.spent_micros for key in tokens.keys_after(conn, "a", None, 10)}
        assert spent == {"key_1": 711, "key_2": 5}
        by_model = {row["model"]: row for row in usage.usage_by_model(conn, "a", "2026-09-01").items}
        assert {model: (row["requests"], row["input_tokens"], row["cost_micros"]) for model, row in by_model.items()} == {
            "paid/m": (4, 4, 719),
            "paid/n": (1, 1, 2),
            "free/m": (2, 2, 0),
        }
        by_key = {
            row["key_id"]: (row["requests"], row["cost_micros"]) for row in usage.usage_by_key(conn, "a", "2026-09-01").items
        }
        assert by_key == {"key_1": (2, 711), "key_2": (1, 5), "key_gone": (1, 2), None: (3, 3)}, "no key is known of free calls"
        assert [tuple(row) for row in conn.execute("SELECT account_id, purpose, by_mail FROM links")] == [("a", "reset", 1)]
        events = conn.execute("SELECT id, checkout_id, credited, returned_micros FROM payment_events ORDER BY id").fetchall()
        assert [tuple(row) for row in events] == [("evt_1", "chk_1", 1, None), ("evt_2", "chk_2", 0, None)]
        pieces = conn.execute("SELECT content FROM artifact_pieces WHERE account_id = 'a' ORDER BY number")
        assert b"".join(row[0] for row in pieces) == b"hello!"
        with pytest.raises(sqlite3.IntegrityError):
            conn.execute("DELETE FROM checkouts WHERE id = 'chk_1'")


def test_what_was_there_before_an_upgrade_is_kept_beside_it_and_can_be_restored(
    old: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = rows(old)
    (old.parent / "master.key").write_bytes(b"k" * 32)
    prepare(old, *newest_schema())
    kept = kept_path(old, 1)
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600 and rows(kept) == before
    assert sorted(path.name for path in old.parent.glob("service.db.*")) == [kept.name]
    monkeypatch.setenv("SVC_DATA_DIR", str(old.parent / "back"))
    assert cli.main(["restore", str(kept)]) == 0
    assert "out of a database of schema 1, verified\n" in capsys.readouterr().out
    assert (old.parent / "back" / "master.key").read_bytes() == b"k" * 32
    assert rows(old.parent / "back" / "service.db") == before
    prepare(old, *newest_schema())
    assert rows(kept) == before, "a start on the newest version keeps nothing anew"


def test_a_command_of_a_newer_version_upgrades_nothing_under_a_server_of_an_older_one(
    old: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = rows(old)
    monkeypatch.setenv("SVC_DATA_DIR", str(old.parent))
    server = open_folder(old.parent)
    for arguments in (["user", "list"], ["credit", "ada@example.com", "5"]):
        assert cli.main(arguments) == 1
        assert "of an older version: restart it" in capsys.readouterr().err
    assert rows(old) == before and not kept_path(old, 1).exists()
    server.close()
    assert cli.main(["user", "list"]) == 0 and kept_path(old, 1).exists()


def test_an_older_service_says_that_there_is_no_way_back_and_names_what_was_kept(old: Path) -> None:
    schema, migrations = newest_schema()
    prepare(old, schema, migrations)
    content = old.read_bytes()
    with pytest.raises(StartError) as caught:
        prepare(old, (SCHEMAS / "1.sql").read_text(), [])
    assert "no way back" in str(caught.value) and f"svc restore {kept_path(old, 1)}" in str(caught.value)
    kept_path(old, 1).unlink()
    with pytest.raises(StartError, match="restore a backup"):
        prepare(old, (SCHEMAS / "1.sql").read_text(), [])
    assert old.read_bytes() == content


def test_where_nothing_can_be_kept_nothing_is_migrated(old: Path) -> None:
    before, content = rows(old), old.read_bytes()
    kept_path(old, 1).mkdir()
    (kept_path(old, 1) / "in the way").touch()
    with pytest.raises(StartError, match="not migrated"):
        prepare(old, *newest_schema())
    assert rows(old) == before and old.read_bytes() == content


def test_a_disk_that_is_full_migrates_nothing(old: Path) -> None:
    program = "from svc.schema import *; from pathlib import Path; import sys; prepare(Path(sys.argv[1]), *newest_schema())"
    before = rows(old)
    limited = ["bash", "-c", 'ulimit -f 40; exec "$@"', "-", sys.executable, "-c", program, str(old)]
    answer = subprocess.run(limited, cwd=ROOT, capture_output=True, timeout=60)
    assert answer.returncode == 1 and b"StartError" in answer.stderr and b"kept" in answer.stderr, answer.stderr
    assert rows(old) == before and [path.name for path in old.parent.glob("service.db.version*")] == []


@pytest.mark.parametrize("statement", ["this is no SQL;", "DELETE FROM accounts;"])
def test_a_migration_that_fails_leaves_the_database_as_it_was(statement: str, old: Path) -> None:
    before = rows(old)
    schema, migrations = newest_schema()
    with pytest.raises(StartError):
        prepare(old, schema, [*migrations[:-1], migrations[-1] + statement])
    assert rows(old) == before == rows(kept_path(old, 1))
    prepare(old, schema, migrations)
    with contextlib.closing(connect(old)) as conn:
        assert wallet.verify(conn) == payments.verify(conn) == []
