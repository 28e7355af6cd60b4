"""A migration keeps every row, and the database as it was before; only that copy leads back."""

import contextlib
import gzip
import re
import sqlite3
import stat
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import orjson
import pytest

from svc import cli, schema
from svc.billing import invariants, spending, usage, wallet
from svc.commands.check import findings, schema_findings
from svc.errors import StartError
from svc.schema import FIRST_VERSION, connect, kept_path, newest_schema, newest_version, shape
from svc.secrets import open_folder
from tests.support.cases import each
from tests.support.databases import prepare
from tests.support.people import command_on
from tests.support.server import ROOT

ROWS = (ROOT / "tests" / "support" / "rows.sql").read_text()
SCRIPT, MIGRATIONS = newest_schema()
(_PROJECTS,) = re.findall(r"^CREATE TABLE projects \((.*?)^\) STRICT;", SCRIPT, re.DOTALL | re.MULTILINE)
# What a later release may do: replace a table to which others refer, and add a column.
SAMPLE = f"""
CREATE TABLE new_projects (sample_color TEXT NOT NULL DEFAULT 'blue', {_PROJECTS}) STRICT;
INSERT INTO new_projects SELECT 'green', * FROM projects;
DROP TABLE projects;
ALTER TABLE new_projects RENAME TO projects;
"""
OLD, NEW = newest_version(MIGRATIONS), newest_version([*MIGRATIONS, SAMPLE])
Rows = dict[str, dict[str, list[tuple[Any, ...]]]]  # by table and column, each column's values in order


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A database of today's schema with rows in every table that matters."""
    path = tmp_path / "service.db"
    prepare(path, SCRIPT, MIGRATIONS)
    with contextlib.closing(connect(path)) as conn:
        conn.executescript(f"BEGIN; {ROWS} COMMIT;")
    return path


@pytest.fixture
def next_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on, the service is a release whose only change is the sample migration."""
    folder = tmp_path / "migrations"
    folder.mkdir()
    for number, script in enumerate([*MIGRATIONS, SAMPLE], FIRST_VERSION + 1):
        (folder / f"{number}.sql").write_text(script)
    monkeypatch.setattr(schema, "MIGRATIONS", folder)


def migrate(path: Path, *scripts: str) -> None:
    prepare(path, SCRIPT, [*MIGRATIONS, *(scripts or [SAMPLE])])


def rows(path: Path) -> Rows:
    found: Rows = {}
    with contextlib.closing(connect(path, query_only=True)) as conn:
        tables = conn.execute(
            "SELECT name FROM pragma_table_list WHERE type = 'table' AND schema = 'main' AND name NOT LIKE 'sqlite%'"
        )
        for (table,) in tables.fetchall():
            columns = [row[0] for row in conn.execute("SELECT name FROM pragma_table_info(?)", (table,))]
            found[table] = {
                column: [row[0] for row in conn.execute(f"SELECT {column} FROM {table} ORDER BY {column}")]
                for column in columns
            }
    return found


def test_migration_keeps_all_rows_and_exact_money(old: Path) -> None:
    before = rows(old)
    owned = ("ledger", "wallets", "holds", "messages", "artifacts", "runs", "providers")
    assert all(before[table]["account_id"] for table in owned)
    migrate(old)
    after = rows(old)
    assert after["projects"].pop("sample_color") == ["green"]
    assert after == before
    with contextlib.closing(connect(old)) as conn:
        assert [*findings(conn), *invariants.broken_usage(conn)] == []
        assert tuple(wallet.balances(conn, "a").values()) == (9_999_279, 100, 9_999_179)
        with pytest.raises(sqlite3.IntegrityError):
            conn.execute("DELETE FROM checkouts WHERE id = 'chk_1'")


def test_database_before_a_migration_can_be_restored(
    old: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], next_release: None
) -> None:
    before = rows(old)
    (old.parent / "master.key").write_bytes(b"k" * 32)
    prepare(old, *newest_schema())
    kept = kept_path(old, OLD)
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600 and rows(kept) == before
    assert sorted(path.name for path in old.parent.glob("service.db.*")) == [kept.name]
    monkeypatch.setenv("SVC_DATA_DIR", str(old.parent / "back"))
    assert cli.main(["restore", str(kept)]) == 0
    assert f"out of a database of schema {OLD}, verified\n" in capsys.readouterr().out
    assert (old.parent / "back" / "master.key").read_bytes() == b"k" * 32
    assert rows(old.parent / "back" / "service.db") == before
    prepare(old, *newest_schema())
    assert rows(kept) == before, "a start on the newest version keeps nothing again"


def test_command_does_not_migrate_under_an_older_server(
    old: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], next_release: None
) -> None:
    before = rows(old)
    monkeypatch.setenv("SVC_DATA_DIR", str(old.parent))
    server = open_folder(old.parent)
    for arguments in (["user", "list"], ["credit", "ada@example.com", "5"]):
        assert cli.main(arguments) == 1
        assert "has an older version: restart it" in capsys.readouterr().err
    assert rows(old) == before and not kept_path(old, OLD).exists()
    server.close()


def test_a_migration_is_logged(old: Path, caplog: pytest.LogCaptureFixture) -> None:
    migrate(old)
    (record,) = caplog.records
    assert record.getMessage() == (
        f"migrated the database from schema version {OLD} to {NEW}; a copy of the old one is {kept_path(old, OLD)}"
    )
    caplog.clear()
    migrate(old)
    assert caplog.records == [], "there was nothing to migrate"


def test_older_service_refuses_the_database_and_names_the_copy(old: Path) -> None:
    migrate(old)
    content = old.read_bytes()
    with pytest.raises(StartError) as caught:
        prepare(old, SCRIPT, MIGRATIONS)
    assert "has a newer version" in str(caught.value) and f"svc restore {kept_path(old, OLD)}" in str(caught.value)
    kept_path(old, OLD).unlink()
    with pytest.raises(StartError, match="restore an older backup"):
        prepare(old, SCRIPT, MIGRATIONS)
    assert old.read_bytes() == content


def test_migration_without_space_for_the_copy_is_refused(old: Path) -> None:
    before, content = rows(old), old.read_bytes()
    kept_path(old, OLD).mkdir()
    (kept_path(old, OLD) / "in the way").touch()
    with pytest.raises(StartError, match="not migrated"):
        migrate(old)
    assert rows(old) == before and old.read_bytes() == content


def test_full_disk_stops_the_migration(old: Path) -> None:
    program = (
        "from svc.schema import newest_schema; from tests.support.databases import prepare; from pathlib import Path; "
        "import sys;"
        "script, migrations = newest_schema();"
        "prepare(Path(sys.argv[1]), script, [*migrations, sys.argv[2]])"
    )
    before = rows(old)
    limited = ["bash", "-c", 'ulimit -f 40; exec "$@"', "-", sys.executable, "-c", program, str(old), SAMPLE]
    answer = subprocess.run(limited, cwd=ROOT, capture_output=True, timeout=60)
    assert answer.returncode == 1 and b"StartError" in answer.stderr and b"copied" in answer.stderr, answer.stderr
    assert rows(old) == before and [path.name for path in old.parent.glob("service.db.version*")] == []


@each("statement", ["this is no SQL;", "DELETE FROM accounts;"])
def test_failed_migration_leaves_the_database_unchanged(statement: str, old: Path) -> None:
    before = rows(old)
    with pytest.raises(StartError):
        migrate(old, SAMPLE + statement)
    assert rows(old) == before == rows(kept_path(old, OLD))
    prepare(old, SCRIPT, MIGRATIONS)
    with contextlib.closing(connect(old)) as conn:
        assert [*schema_findings(conn), *findings(conn)] == []


# --- released schemas


@pytest.mark.parametrize("released", sorted((ROOT / "tests" / "schemas").glob("*.sql")))
def test_every_released_schema_is_migrated_to_the_newest(released: Path, tmp_path: Path) -> None:
    """Fails when schema.sql changes without a migration: the newest released schema must lead to it, too."""
    migrated = MIGRATIONS[: int(released.stem) - FIRST_VERSION]
    prepare(tmp_path / "old.db", released.read_text(), migrated)
    prepare(tmp_path / "old.db", SCRIPT, MIGRATIONS)
    prepare(tmp_path / "new.db", SCRIPT, MIGRATIONS)
    with (
        contextlib.closing(connect(tmp_path / "old.db")) as old,
        contextlib.closing(connect(tmp_path / "new.db")) as new,
    ):
        assert shape(old) == shape(new), "write the change of schema.sql into the newest script of svc/migrations/ too"


ARCHIVES = sorted((ROOT / "tests" / "releases").glob("*.tar.gz"))


@pytest.fixture(params=ARCHIVES, ids=lambda path: path.name.removesuffix(".tar.gz"))
def archive(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The archive of a release, which its own `svc backup` made."""
    path = tmp_path / "a.tar"
    path.write_bytes(gzip.decompress(request.param.read_bytes()))
    return path


def test_every_released_schema_has_an_archive() -> None:
    versions = set()
    for path in ARCHIVES:
        with tarfile.open(path) as tar:
            manifest = tar.extractfile("manifest.json")
            assert manifest is not None
            versions.add(orjson.loads(manifest.read())["schema_version"])
    assert versions == {int(path.stem) for path in (ROOT / "tests" / "schemas").glob("*.sql")}, "see CONTRIBUTING.md"


def test_archive_of_every_release_is_restored_checked_and_migrated(archive: Path, tmp_path: Path) -> None:
    newest, data = newest_version(MIGRATIONS), tmp_path / "data"
    restored = command_on(data, "restore", str(archive))
    assert restored.returncode == 0 and ", verified\n" in restored.stdout, restored
    before = rows(data / "service.db")
    assert len(before["messages"]["id"]) > 60 and len(before["artifact_chunks"]["number"]) == 4
    version = user_version(data / "service.db")
    assert (f"the next start will migrate the database from schema {version} to {newest}\n" in restored.stdout) is (
        version < newest
    )
    checked = command_on(data, "check")
    assert checked.returncode == 0 and (f"schema {version};" in checked.stdout) is (version < newest), checked
    assert command_on(data, "backup", str(tmp_path / "again.tar")).returncode == 0, "before the upgrade"
    assert user_version(data / "service.db") == version, "the next start migrates it"
    listed = command_on(data, "credit", "ada@example.com", "1")
    assert listed.returncode == 0 and user_version(data / "service.db") == newest, listed
    after = rows(data / "service.db")
    for table in before.keys() - {"ledger", "wallets", "stored", "audit"}:
        for column, values in before[table].items():
            assert after[table][column] == values, (table, column)
    assert command_on(data, "check").stdout.startswith("ok: ")
    if version < newest:
        kept = command_on(tmp_path / "kept", "restore", str(kept_path(data / "service.db", version)))
        assert kept.returncode == 0 and f"out of a database of schema {version}, verified" in kept.stdout, kept
    again = command_on(tmp_path / "again", "restore", str(tmp_path / "again.tar"))
    found = rows(tmp_path / "again" / "service.db")
    assert again.returncode == 0 and {**found, "audit": None} == {**before, "audit": None}  # restores are audited


def test_damaged_database_of_an_older_schema_is_not_restored(archive: Path, tmp_path: Path) -> None:
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path / "old", filter="data")
    path = tmp_path / "old" / "service.db"
    with contextlib.closing(connect(path)) as conn:
        conn.execute("DROP TRIGGER wallets_follow_the_ledger")
        conn.execute("UPDATE wallets SET balance_micros = balance_micros + 1")
    restored = command_on(tmp_path / "data", "restore", str(path))
    assert restored.returncode == 1 and "is not sound: " in restored.stderr, restored
    checked = command_on(path.parent, "check")
    assert checked.returncode == 1 and " findings\n" in checked.stdout, checked


def user_version(path: Path) -> int:
    with contextlib.closing(connect(path, query_only=True)) as conn:
        version: int = conn.execute("PRAGMA user_version").fetchone()[0]
        return version


def test_migration_removes_files_that_version_5_left_in_free_pages(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    prepare(path, (ROOT / "tests" / "schemas" / "5.sql").read_text(), [])
    with contextlib.closing(connect(path)) as conn:
        conn.execute("PRAGMA secure_delete = FAST")  # as version 1.0.0 did
        conn.executescript("""
            INSERT INTO accounts (id, email, email_key, created_at) VALUES ('a', 'a@x', 'a@x', 1), ('b', 'b@x', 'b@x', 1);
            INSERT INTO artifact_contents VALUES ('a', 'c');
            INSERT INTO artifact_chunks VALUES ('a', 'c', 0, CAST(printf('%.*c', 9000, 'z') AS BLOB));
            DELETE FROM artifact_contents;
        """)
    assert b"z" * 1_000 in path.read_bytes()
    prepare(path, *newest_schema())
    assert b"z" * 1_000 not in path.read_bytes()
    assert rows(path)["accounts"]["id"] == ["a", "b"]


@each("released", [None, "5.sql"])
def test_call_is_added_to_its_day_by_the_primary_key_also_after_a_migration(
    tmp_path: Path, released: str | None
) -> None:
    """The statement names SQLite's own index of the primary key, and through another one it takes a quarter longer."""
    path = tmp_path / f"{released}.db"
    if released:
        prepare(path, (ROOT / "tests" / "schemas" / released).read_text(), [])
    prepare(path, *newest_schema())
    with contextlib.closing(connect(path)) as conn:
        conn.execute("INSERT INTO accounts (id, email, email_key, created_at) VALUES ('a', 'a@x', 'a@x', 1)")
        statements: list[str] = []
        conn.set_trace_callback(statements.append)
        for _ in range(2):
            usage.add_call(conn, ("a", None, "m", "2026-09-21", ""), 1, 2, 3)
        conn.set_trace_callback(None)
        assert [*conn.execute("SELECT requests, cost_micros FROM usage_days").fetchone()] == [2, 6]
        (update, *_) = [statement for statement in statements if "UPDATE usage_days" in statement]
        (step,) = conn.execute(f"EXPLAIN QUERY PLAN {update}").fetchall()
        assert step[3].startswith("SEARCH usage_days USING PRIMARY KEY (day=? AND account_id=? AND")


def test_usage_of_deleted_accounts_and_spending_of_the_month_are_taken_from_the_ledger(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    prepare(path, (ROOT / "tests" / "schemas" / "5.sql").read_text(), [])
    with contextlib.closing(connect(path)) as conn:
        conn.executescript("""
            INSERT INTO accounts (id, email, email_key, created_at)
            VALUES ('a', 'a@x', 'a@x', 1), ('b', 'b@x', 'b@x', 1);
            INSERT INTO ledger (seq, id, account_id, kind, amount_micros, balance_after_micros, description, reference,
                model,
                input_tokens, output_tokens, created_at)
            VALUES (1, '1', 'a', 'credit', 100, 100, '', NULL, NULL, NULL, NULL, 1790000000),
                (2, '2', 'b', 'credit', 100, 100, '', NULL, NULL, NULL, NULL, 1790000000),
                (3, '3', 'a', 'debit', -7, 93, '', 'h1', 'm', 1, 2, 1790034559.9999),
                (4, '4', 'a', 'debit', -5, 88, '', 'h2', 'm', 1, 2, 1790000000),
                (5, '5', 'b', 'debit', -3, 97, '', 'h3', 'm', 1, 2, 1790000000);
            INSERT INTO usage_days
            VALUES ('b', '2026-09-21', 'm', '', 2, 2, 4, 3), ('b', '2026-09-21', 'own/m', '', 1, 1, 1, 0);
            INSERT INTO api_keys (id, account_id, token_hash, key_prefix, name, created_at, spent_micros)
            VALUES ('k', 'b', zeroblob(32), 'svc-v1-aaa', 'laptop', 1, 0);
            INSERT INTO ledger (seq, id, account_id, kind, amount_micros, balance_after_micros, description, reference,
                model, input_tokens, output_tokens, key_id, created_at)
            VALUES (6, '6', 'b', 'debit', -11, 86, '', 'h4', 'm', 1, 2, 'k', 1793000000),
                (7, '7', 'b', 'debit', -2, 84, '', 'h5', 'm', 1, 2, NULL, 1793000000);
            INSERT INTO usage_days VALUES ('b', '2026-10-26', 'm', 'k', 1, 1, 2, 11), ('b', '2026-10-26', 'm', '', 1, 1, 2, 2);
            INSERT INTO holds VALUES ('h6', 'b', 5, 1793000000);
            UPDATE accounts SET deleting_at = 2, email = NULL, email_key = NULL WHERE id = 'a';
            DELETE FROM accounts WHERE id = 'a';
        """)
    prepare(path, *newest_schema())
    with contextlib.closing(connect(path)) as conn:
        assert invariants.broken_usage(conn) == []
        assert [tuple(row) for row in conn.execute("SELECT * FROM deleted_usage")] == [
            ("2026-09-21", "m", "", "", 2, 2, 4, 12, 0)
        ]
        assert spending.dearest(conn, spending.month_period("2026-09"), ["user"])[1]["cost_micros"] == 15
        assert [*conn.execute("SELECT month, month_spent_micros FROM wallets").fetchone()] == ["2026-10", 13]
        assert [*conn.execute("SELECT month, month_spent_micros FROM api_keys").fetchone()] == ["2026-10", 11]
        assert wallet.held_in_all(conn)["holds"] == 0, "a start releases them anyway"
