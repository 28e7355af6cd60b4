"""A checkpoint runs beside the writer, and the write-ahead log stays small, also after a long reader."""

import asyncio
import contextlib
import sqlite3
from pathlib import Path

import pytest

from svc.checkpoint import Checkpointer, checkpoint
from svc.db import Database
from svc.schema import connect
from svc.workers import Pool
from tests.support.databases import open_with_schema, prepare

SCHEMA = "CREATE TABLE notes (text TEXT) STRICT;"
TEXT = "x" * 20_000  # five pages


def note(tx: sqlite3.Connection) -> None:
    tx.execute("INSERT INTO notes VALUES (?)", (TEXT,))


def begun(path: Path) -> bytes:
    """Return the part of the log's head that changes whenever the log restarts."""
    with Path(f"{path}-wal").open("rb") as file:
        return file.read(24)[16:]


async def write_until_begun_anew(db: Database, path: Path) -> None:
    before = begun(path)
    async with asyncio.timeout(60):
        while begun(path) == before:
            size = Path(f"{path}-wal").stat().st_size
            assert size < 256 * 1024 * 1024, "the log never restarts"
            if size > 128 * 1024 * 1024:  # a busy machine gives the checkpoint too little time beside the writes
                await asyncio.sleep(0.02)
            await asyncio.gather(*(db.write(note) for _ in range(20)))


async def test_wal_restarts_repeatedly_under_writes(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    db = await open_with_schema(path, SCHEMA)
    await db.write(note)
    for _ in range(3):
        await write_until_begun_anew(db, path)
    await db.close()
    assert not Path(f"{path}-wal").exists()


async def test_commit_runs_no_checkpoint(tmp_path: Path) -> None:
    db = await open_with_schema(tmp_path / "a.db", SCHEMA)
    assert await db.write(lambda tx: tx.execute("PRAGMA wal_autocheckpoint").fetchone()[0]) == 0
    await db.close()


async def test_wal_is_truncated_after_a_long_reader(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    db = await open_with_schema(path, SCHEMA)
    await db.write(note)
    with contextlib.closing(connect(path, query_only=True)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM notes").fetchone()
        before = begun(path)
        while (size := Path(f"{path}-wal").stat().st_size) < 70 * 1024 * 1024:
            await db.write(lambda tx: tx.execute("INSERT INTO notes VALUES (?)", (TEXT * 500,)))
        assert begun(path) == before and reader.execute("SELECT count(*) FROM notes").fetchone()[0] == 1
        reader.execute("COMMIT")
    await write_until_begun_anew(db, path)
    assert Path(f"{path}-wal").stat().st_size <= 64 * 1024 * 1024 < size
    await db.close()


async def test_empty_log_works_during_a_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    db = await open_with_schema(path, SCHEMA)
    for _ in range(3):
        await db.write(
            lambda tx: tx.execute("INSERT INTO notes VALUES (?)", (TEXT * 2_000,))
        )  # folding takes some 50 ms
        assert Path(f"{path}-wal").stat().st_size > 20_000_000
        db._checkpointer.committed(400)
        assert await db.empty_log() and Path(f"{path}-wal").stat().st_size == 0
    await db.close()


async def test_close_stores_all_earlier_writes(tmp_path: Path) -> None:
    db = await open_with_schema(tmp_path / "a.db", SCHEMA)
    writes = [asyncio.ensure_future(db.write(note)) for _ in range(500)]
    await asyncio.sleep(0)
    await db.close()
    await asyncio.gather(*writes)
    with contextlib.closing(sqlite3.connect(tmp_path / "a.db")) as conn:
        assert conn.execute("SELECT count(*) FROM notes").fetchone()[0] == 500


@pytest.mark.parametrize(("left", "waits"), [(0, True), (240, True), (260, False)])
async def test_writer_waits_for_at_most_1_mib_of_checkpoint(tmp_path: Path, left: int, waits: bool) -> None:
    path = tmp_path / "a.db"
    prepare(path, SCHEMA, [])
    with contextlib.closing(connect(path)) as writer, contextlib.closing(connect(path, query_only=True)) as reader:
        writer.execute("INSERT INTO notes VALUES (?)", (TEXT * 250,))  # 1,200 pages
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM notes").fetchone()
        while checkpoint(writer)[1] < left - 5:  # what was written after the reader began cannot be folded beside it
            note(writer)
        assert left - 5 <= checkpoint(writer)[1] < left + 5
        pool = Pool(lambda: writer, lambda conn, queue, finish: False)
        given: list[object] = []
        pool.soon = given.append  # type: ignore[method-assign, assignment]
        checkpointer = Checkpointer(path, pool)
        checkpointer.committed(400)
        await checkpointer.close()
        assert bool(given) is waits
