"""Changes that are written later: the newest of a key, in batches, once."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from svc.db import Database, open_database
from svc.errors import ApiError
from svc.write_buffer import WriteBuffer


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[Database]:
    db = await open_database(tmp_path / "service.db")
    yield db
    await db.close()


async def test_newest_change_of_each_key_is_written_once_in_batches(db: Database) -> None:
    batches: list[dict[int, str]] = []
    buffer = WriteBuffer[int, str](db, lambda tx, changes: batches.append(dict(changes)))
    for value in ("old", "new"):
        for number in range(250):
            buffer.put(number, value)
    await asyncio.gather(buffer.flush(), buffer.flush())
    assert [len(batch) for batch in batches] == [100, 100, 50]
    assert {value for batch in batches for value in batch.values()} == {"new"}
    await buffer.close()
    assert len(batches) == 3 and not buffer.pending


async def test_flush_waits_for_a_concurrent_flush(db: Database) -> None:
    begun, done = asyncio.Event(), []
    loop = asyncio.get_running_loop()

    def write(tx: sqlite3.Connection, changes: list[tuple[int, str]]) -> None:
        loop.call_soon_threadsafe(begun.set)
        done.extend(changes)

    buffer = WriteBuffer[int, str](db, write)
    buffer.put(1, "a")
    first = asyncio.create_task(buffer.flush())
    await asyncio.sleep(0)
    await buffer.flush()
    assert done == [(1, "a")] and begun.is_set()
    await first


async def test_storage_fault_drops_buffered_changes(db: Database) -> None:
    def refuse(tx: sqlite3.Connection, changes: list[tuple[int, str]]) -> None:
        raise ApiError("storage_unavailable")

    buffer = WriteBuffer[int, str](db, refuse)
    buffer.put(1, "a")
    await buffer.flush()
    assert not buffer.pending
    await buffer.close()
