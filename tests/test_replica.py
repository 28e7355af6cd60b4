"""What a replica by Litestream needs of the database. Litestream holds a lock that prevents a reset of the write-ahead
log, copies the log, and runs the checkpoints. The rules are Litestream's ("How it works", "Tips & caveats"); it is
played here.
"""

import asyncio
import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from svc import cli
from svc.billing import wallet
from svc.schema import connect
from tests.conftest import PASSWORD, Service, bearer
from tests.support.cases import each
from tests.support.money import assert_exact


@contextlib.contextmanager
def replicating(database: Path) -> Iterator[sqlite3.Connection]:
    """A connection as Litestream keeps one: its own tables, no checkpoints but its own, and always a
    read transaction.
    """
    with contextlib.closing(sqlite3.connect(database, isolation_level=None, timeout=5)) as conn:
        conn.execute("PRAGMA wal_autocheckpoint = 0")
        conn.execute("CREATE TABLE IF NOT EXISTS _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER)")
        conn.execute("CREATE TABLE IF NOT EXISTS _litestream_lock (id INTEGER)")
        conn.execute("INSERT INTO _litestream_seq VALUES (1, 1) ON CONFLICT DO UPDATE SET seq = seq + 1")
        conn.execute("BEGIN")
        conn.execute("SELECT count(*) FROM _litestream_seq").fetchone()
        yield conn
        conn.execute("ROLLBACK")


def salt(database: Path) -> bytes:
    """What is new in the log's head whenever SQLite begins to write it from its start again."""
    return database.with_name("service.db-wal").read_bytes()[16:24]


def restored(database: Path, target: Path) -> None:
    """The database as a replica gives it back: the file as it was, and what the log has on top of it."""
    target.write_bytes(database.read_bytes())
    target.with_name(f"{target.name}-wal").write_bytes(database.with_name("service.db-wal").read_bytes())
    with contextlib.closing(sqlite3.connect(target)) as conn:
        conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    target.with_name(f"{target.name}-wal").unlink(missing_ok=True)


def test_every_connection_keeps_a_log_syncs_it_and_waits_for_a_lock(tmp_path: Path) -> None:
    for query_only in (False, True):
        with contextlib.closing(connect(tmp_path / "service.db", query_only)) as conn:
            told = {
                name: conn.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("journal_mode", "synchronous", "busy_timeout")
            }
            assert told == {"journal_mode": "wal", "synchronous": 2, "busy_timeout": 5000}


async def test_replica_loses_no_write_and_delays_no_writer(service: Service, tmp_path: Path) -> None:
    database, db = service.config.data_dir / "service.db", service.state["db"]
    user = (await service.sign_up("ada@example.com"))["user"]["id"]
    leaving = await service.sign_up()
    with replicating(database):
        before = salt(database)
        for _ in range(150):  # over the 1,000 pages at which SQLite folds in the log by itself
            await db.write(
                lambda tx: [wallet.book(tx, user, 1, description="x" * 4000, now_seconds=1.0) for _ in range(10)]
            )
        size = database.with_name("service.db-wal").stat().st_size
        assert size > 1_000 * 4096
        async with asyncio.timeout(20):
            answer = await service.client.request(
                "DELETE", "/user/me", json={"password": PASSWORD}, headers=bearer(leaving["access_token"])
            )
        assert answer.status_code == 204
        assert salt(database) == before, "the log was begun anew before the replica had it"
        assert database.with_name("service.db-wal").stat().st_size >= size
        restored(database, tmp_path / "replica.db")
    assert await db.empty_log() is True
    with contextlib.closing(connect(tmp_path / "replica.db", query_only=True)) as conn:
        assert wallet.balances(conn, user)["wallet_balance_micros"] == 1_500
        assert conn.execute("SELECT count(*) FROM accounts").fetchone()[0] == 1


async def test_replica_restores_into_a_new_folder_with_the_secrets(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = service.config.data_dir
    user = (await service.sign_up("ada@example.com"))["user"]["id"]
    await service.state["db"].write(wallet.book, user, 7_000_000, description="", now_seconds=1.0)
    (tmp_path / "replica").mkdir()
    with replicating(folder / "service.db"):
        restored(folder / "service.db", tmp_path / "replica" / "service.db")
    for number, secrets_there in enumerate((False, True)):
        if secrets_there:
            (tmp_path / "replica" / "master.key").write_bytes((folder / "master.key").read_bytes())
        target = tmp_path / f"restored-{number}"
        monkeypatch.setenv("SVC_DATA_DIR", str(target))
        assert await asyncio.to_thread(cli.main, ["restore", str(tmp_path / "replica" / "service.db")]) == 0
        assert ("no master.key beside it" in capsys.readouterr().out) != secrets_there
        assert (target / "master.key").exists() == secrets_there
        assert await asyncio.to_thread(cli.main, ["check"]) == 0, capsys.readouterr().out
        assert_exact(target / "service.db")
    (tmp_path / "replica" / "service.db-wal").write_bytes(b"x")
    monkeypatch.setenv("SVC_DATA_DIR", str(tmp_path / "no"))
    assert await asyncio.to_thread(cli.main, ["restore", str(tmp_path / "replica" / "service.db")]) == 1
    assert "holds a part of this database" in capsys.readouterr().err and not (tmp_path / "no").exists()


@each("content", [b"SQLite format 3\0" + bytes(4080), b"SQLite format 3\0"])
def test_foreign_database_is_not_restored(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "theirs.db").write_bytes(content)
    monkeypatch.setenv("SVC_DATA_DIR", str(tmp_path / "data"))
    assert cli.main(["restore", str(tmp_path / "theirs.db")]) == 1
    assert capsys.readouterr().err.startswith("svc: ") and not (tmp_path / "data").exists()
