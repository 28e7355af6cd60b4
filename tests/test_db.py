"""svc/db.py: what a write promises, what a read sees, which storage faults are survived, and which
files a start takes.
"""

import asyncio
import contextlib
import os
import random
import resource
import signal
import sqlite3
import struct
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import aiosqlite
import anyio
import pytest

from svc import db as db_module
from svc import schema as schema_module
from svc.db import Database, acting_for, open_database
from svc.errors import ApiError, StartError
from svc.schema import APPLICATION_ID, FIRST_VERSION, command_connection, newest_schema, newest_version
from tests.support.cases import each
from tests.support.databases import open_with_schema, prepare, read_only
from tests.support.waiting import until

SCHEMA = "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE) STRICT;"


def insert(tx: sqlite3.Connection, text: str) -> str:
    tx.execute("INSERT INTO notes (text) VALUES (?)", (text,))
    return text


def insert_pair(tx: sqlite3.Connection, text: str) -> str:
    insert(tx, f"{text} begun")
    insert(tx, f"{text} done")
    return text


def insert_and_fail(tx: sqlite3.Connection, text: str) -> None:
    insert(tx, text)
    raise ValueError(text)


def texts(conn: sqlite3.Connection) -> set[str]:
    return {row["text"] for row in conn.execute("SELECT text FROM notes")}


def count(conn: sqlite3.Connection) -> int:
    number: int = conn.execute("SELECT count(*) FROM notes").fetchone()[0]
    return number


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[Database]:
    database = await open_with_schema(tmp_path / "a.db", SCHEMA)
    yield database
    await database.close()


@contextlib.contextmanager
def other_connection(path: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as conn:
        conn.row_factory = sqlite3.Row
        yield conn


async def traced(db: Database) -> list[str]:
    """The control statements that the writer runs from now on."""
    statements: list[str] = []

    def note(sql: str) -> None:
        if sql in ("BEGIN IMMEDIATE", "COMMIT", "ROLLBACK"):
            statements.append(sql)

    await db.write(lambda tx: tx.set_trace_callback(note))
    statements.clear()
    return statements


async def failures(*calls: Any) -> list[str | None]:
    """The error codes of what is called at once, None for what succeeded; anything but an ApiError is raised."""
    answers = await asyncio.gather(*calls, return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException) and not isinstance(answer, ApiError):
            raise answer
    return [answer.code if isinstance(answer, ApiError) else None for answer in answers]


# --- writes


async def test_write_returns_the_result_of_its_function(db: Database) -> None:
    def note(tx: sqlite3.Connection, first: str, *, second: str) -> str:
        return insert(tx, first + second)

    assert await db.write(note, "a", second="b") == "ab"
    assert await db.read(texts) == {"ab"}


async def test_2400_random_cancellations_keep_acknowledged_writes_and_atomicity(db: Database, tmp_path: Path) -> None:
    chance = random.Random(7)
    acknowledged: set[str] = set()

    async def cancelled(number: int) -> None:
        async def note() -> None:
            acknowledged.add(await db.write(insert_pair, str(number)))

        way, delay = chance.randrange(3), chance.random() * chance.choice((0.0, 0.0005, 0.02))
        if way == 0:
            task = asyncio.create_task(note())
            await asyncio.sleep(delay)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        elif way == 1:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await note()
        else:
            with anyio.move_on_after(delay):
                await note()

    for start in range(0, 2400, 60):
        await asyncio.gather(*(cancelled(number) for number in range(start, start + 60)))
    await db.write(insert_pair, "last")  # the connection is not inside a transaction

    found = await db.read(texts)
    assert 100 < len(acknowledged) < 2300, "the delays should hit before and after the commit"
    assert {f"{number} done" for number in acknowledged} <= found
    assert {text.removesuffix(" begun") for text in found if text.endswith("begun")} == {
        text.removesuffix(" done") for text in found if text.endswith("done")
    }
    with other_connection(tmp_path / "a.db") as conn:
        conn.execute("BEGIN IMMEDIATE")  # the write lock is free


async def test_failing_function_rolls_back_only_its_own_changes(db: Database) -> None:
    statements = await traced(db)
    answers = await asyncio.gather(
        db.write(insert, "before"), db.write(insert_and_fail, "gone"), db.write(insert, "after"), return_exceptions=True
    )
    assert [str(answer) for answer in answers] == ["before", "gone", "after"]
    assert isinstance(answers[1], ValueError)
    assert await db.read(texts) == {"before", "after"}
    assert statements == ["BEGIN IMMEDIATE", "ROLLBACK", "BEGIN IMMEDIATE", "COMMIT"]


async def test_failing_function_alone_or_first_is_rolled_back(db: Database) -> None:
    with pytest.raises(ValueError, match="alone"):
        await db.write(insert_and_fail, "alone")
    await asyncio.gather(db.write(insert_and_fail, "first"), db.write(insert, "second"), return_exceptions=True)
    assert await db.read(texts) == {"second"}


async def test_broken_constraint_raises_integrity_error(db: Database) -> None:
    await db.write(insert, "a")
    with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
        await db.write(insert, "a")


@each("error", [StopIteration(), GeneratorExit(), asyncio.CancelledError(), RecursionError()])
async def test_any_exception_releases_all_callers(db: Database, error: BaseException) -> None:
    def fail(tx: sqlite3.Connection) -> None:
        insert(tx, "gone")
        raise error

    calls = [
        asyncio.ensure_future(call)
        for call in (db.write(insert, "before"), db.write(fail), db.read(fail), db.write(insert, "after"))
    ]
    _, pending = await asyncio.wait(calls, timeout=5)
    assert not pending
    assert calls[1].cancelled() or calls[1].exception() is not None
    assert calls[2].cancelled() or calls[2].exception() is not None
    assert await db.read(texts) == {"before", "after"}


async def test_64_waiting_functions_share_one_commit(db: Database) -> None:
    statements = await traced(db)
    await asyncio.gather(*(db.write(insert, str(number)) for number in range(64)))
    assert statements == ["BEGIN IMMEDIATE", "COMMIT"]


async def test_writes_during_a_commit_share_the_next_in_order(db: Database) -> None:
    statements = await traced(db)
    begun, proceed = threading.Event(), threading.Event()

    def slow(tx: sqlite3.Connection) -> None:
        begun.set()
        assert proceed.wait(5)

    first = asyncio.ensure_future(db.write(slow))
    while not begun.is_set():
        await asyncio.sleep(0.001)
    rest = [asyncio.ensure_future(db.write(insert, str(number))) for number in range(600)]
    await asyncio.sleep(0)
    proceed.set()
    await asyncio.gather(first, *rest)
    assert statements.count("COMMIT") == 1 + 3, "the slow one, then 600 in batches of up to 256"
    rows = await db.read(lambda conn: [row["text"] for row in conn.execute("SELECT text FROM notes ORDER BY id")])
    assert rows == [str(number) for number in range(600)]


async def test_repeated_write_shares_the_commit_of_waiting_ones(db: Database) -> None:
    statements = await traced(db)
    begun, proceed = threading.Event(), threading.Event()

    def slow(tx: sqlite3.Connection) -> None:
        begun.set()
        assert proceed.wait(5)

    async def twice() -> None:
        await db.write(slow)
        await db.write(insert, "again")

    first = asyncio.create_task(twice())
    while not begun.is_set():
        await asyncio.sleep(0.001)
    second = asyncio.ensure_future(db.write(insert, "waited"))
    await asyncio.sleep(0)
    proceed.set()
    await asyncio.gather(first, second)
    assert statements.count("COMMIT") == 2


async def test_writes_of_one_account_do_not_delay_other_accounts(db: Database) -> None:
    def slow(tx: sqlite3.Connection) -> None:
        time.sleep(0.01)

    acting_for.set("ada")
    flood = [asyncio.ensure_future(db.write(slow)) for _ in range(100)]
    await until(flood[0].done)
    acting_for.set("bob")
    await db.write(insert, "mine")
    assert sum(job.done() for job in flood) < 60
    await asyncio.gather(*flood)


async def test_reads_of_one_account_do_not_delay_other_accounts(db: Database) -> None:
    acting_for.set("ada")
    flood = [asyncio.ensure_future(db.read(lambda conn: time.sleep(0.01))) for _ in range(200)]
    await until(flood[0].done)
    acting_for.set("bob")
    await db.read(count)
    assert sum(job.done() for job in flood) < 120
    await asyncio.gather(*flood)


async def test_first_job_overtakes_waiting_jobs(db: Database) -> None:
    order: list[str] = []

    def note(tx: sqlite3.Connection, name: str) -> None:
        time.sleep(0.005)
        order.append(name)

    flood = [asyncio.ensure_future(db.write(note, "slow")) for _ in range(30)]
    await until(lambda: order)
    await db.write_as("first", note, "first")
    await asyncio.gather(*flood)
    assert order.index("first") < 15


async def test_cancelled_caller_of_a_first_job_waits_for_its_result(db: Database) -> None:
    task = asyncio.ensure_future(db.write_as("first", insert, "paid"))
    waiting = asyncio.create_task(_told(db.write_as("first", insert, "paid, too")))
    await asyncio.sleep(0)
    assert not task.cancel() and waiting.cancel() and waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert task.done() and await db.read(texts) == {"paid", "paid, too"}


async def _told(writing: "asyncio.Future[None]") -> None:
    try:
        await writing
    finally:
        assert writing.done() and writing.exception() is None


async def test_transaction_ends_after_20_ms_of_work(db: Database) -> None:
    statements = await traced(db)
    await asyncio.gather(*(db.write(lambda tx: time.sleep(0.008)) for _ in range(12)))
    assert 3 <= statements.count("COMMIT") <= 6


async def test_transaction_with_a_long_commit_ends_early_and_others_run_next(db: Database) -> None:
    statements = await traced(db)
    acting_for.set("ada")
    flood = [asyncio.ensure_future(db.write_as("alone", insert, str(number))) for number in range(20)]
    await asyncio.sleep(0)
    acting_for.set("bob")
    began = len(statements)
    await asyncio.gather(*(db.write(insert, f"mine {number}") for number in range(3)))
    assert statements[began:].count("COMMIT") <= 6 and sum(job.done() for job in flood) < 8
    await asyncio.gather(*flood)
    assert statements.count("COMMIT") >= 20


def synchronous(tx: sqlite3.Connection) -> int:
    level: int = tx.execute("PRAGMA synchronous").fetchone()[0]
    return level


async def test_commit_is_synced_unless_all_its_writes_are_unsynced(db: Database) -> None:
    full, normal = 2, 1
    assert await db.write_as("unsynced", synchronous) == normal
    assert await db.write(synchronous) == full
    assert (
        await asyncio.gather(db.write_as("unsynced", synchronous), db.write_as("unsynced", synchronous)) == [normal] * 2
    )
    assert await asyncio.gather(db.write_as("unsynced", synchronous), db.write_as("first", synchronous)) == [full] * 2
    await db.write_as("unsynced", insert, "seen at once")
    assert await db.read(texts) == {"seen at once"}


async def test_refusal_before_a_write_rolls_back_nothing(db: Database) -> None:
    def refuse(tx: sqlite3.Connection) -> None:
        raise ApiError("insufficient_funds")

    await db.write(insert, "a")
    statements = await traced(db)
    answers = await asyncio.gather(
        db.write(insert, "b"), db.write(refuse), db.write(insert, "a"), db.write(insert, "c"), return_exceptions=True
    )
    assert [type(answer) for answer in answers] == [str, ApiError, sqlite3.IntegrityError, str]
    assert statements == ["BEGIN IMMEDIATE", "COMMIT"] and await db.read(texts) == {"a", "b", "c"}


async def test_background_work_runs_between_batches_and_its_errors_are_contained(tmp_path: Path) -> None:
    left, faults = 500, 0

    def between(tx: sqlite3.Connection) -> bool:
        nonlocal left, faults
        if left == 0:
            return False
        insert(tx, f"between {left}")
        if left % 100 == 99:
            left, faults = left - 1, faults + 1
            raise ValueError("it is taken back alone")
        left -= 1
        return left > 0

    db = await open_with_schema(tmp_path / "a.db", SCHEMA, between)
    for number in range(50):
        await db.write(insert, f"job {number}")
    while left > 0:
        await db.write(insert, f"other {left}")
    found = await db.read(texts)
    assert faults == 5 and {f"job {number}" for number in range(50)} <= found
    assert sum(text.startswith("between") for text in found) == 495
    await db.close()


# --- reads


async def test_read_sees_all_earlier_acknowledged_writes(db: Database) -> None:
    acknowledged = 0

    async def write(number: int) -> None:
        nonlocal acknowledged
        for step in range(40):
            await db.write(insert, f"{number} {step}")
            acknowledged += 1

    async def read() -> None:
        for _ in range(60):
            expected = acknowledged
            assert await db.read(count) >= expected
            await asyncio.sleep(0)

    await asyncio.gather(*(write(number) for number in range(8)), *(read() for _ in range(8)))


async def test_read_sees_one_snapshot(db: Database, tmp_path: Path) -> None:
    def read_twice(conn: sqlite3.Connection) -> tuple[int, int]:
        before = count(conn)
        with other_connection(tmp_path / "a.db") as other:
            insert(other, "meanwhile")
        return before, count(conn)

    assert await db.read(read_twice) == (0, 0)
    assert await db.read(count) == 1


async def test_failed_read_releases_its_snapshot(db: Database) -> None:
    await asyncio.gather(*(db.write(insert, str(number)) for number in range(5)))

    def fail(conn: sqlite3.Connection) -> None:
        cursor = conn.execute("SELECT text FROM notes")
        cursor.fetchone()
        raise ValueError("in the middle of the rows")

    kept = await asyncio.gather(*(db.read(fail) for _ in range(4)), return_exceptions=True)
    await db.write(insert, "new")
    assert [await db.read(count) for _ in range(4)] == [6] * 4
    assert len(kept) == 4


async def test_lookup_on_the_loop_sees_new_data_and_releases_its_snapshot(db: Database) -> None:
    for text in ("a", "b"):
        await db.write(insert, text)
        assert text in db.look_up(texts)
    with pytest.raises(ApiError) as caught:
        db.look_up(insert, "c")
    assert caught.value.code == "storage_unavailable"
    assert db.look_up(texts) == {"a", "b"}


async def test_readers_cannot_write(db: Database) -> None:
    for fn in (insert, insert_pair):
        with pytest.raises(ApiError):
            await db.read(fn, "no")
    assert await db.read(count) == 0


async def test_slow_read_does_not_delay_other_reads(db: Database) -> None:
    begun, proceed = threading.Event(), threading.Event()
    slow = asyncio.ensure_future(db.read(lambda conn: begun.set() or proceed.wait(20)))
    await until(begun.is_set)
    assert await asyncio.gather(*(db.read(count) for _ in range(20))) == [0] * 20
    proceed.set()
    assert await slow


async def test_slow_read_does_not_delay_its_batch(db: Database) -> None:
    proceed = threading.Event()
    before = [asyncio.ensure_future(db.read(count)) for _ in range(10)]
    slow = asyncio.ensure_future(db.read(lambda conn: proceed.wait(20)))
    after = [asyncio.ensure_future(db.read(count)) for _ in range(10)]
    async with asyncio.timeout(10):
        assert await asyncio.gather(*before, *after) == [0] * 20
    proceed.set()
    assert await slow


async def test_heavy_reads_do_not_delay_other_reads(db: Database) -> None:
    begun, proceed = threading.Event(), threading.Event()
    heavy = [asyncio.ensure_future(db.heavy_read(lambda conn: begun.set() or proceed.wait(20))) for _ in range(10)]
    await until(begun.is_set)
    async with asyncio.timeout(10):
        for _ in range(5):
            assert await asyncio.gather(*(db.read(count) for _ in range(20))) == [0] * 20
    proceed.set()
    assert all(await asyncio.gather(*heavy))


async def test_account_has_one_heavy_read_at_a_time(db: Database) -> None:
    proceed, begun, loop = threading.Event(), asyncio.Event(), asyncio.get_running_loop()
    done: list[str] = []

    def heavy(conn: sqlite3.Connection, name: str) -> None:
        loop.call_soon_threadsafe(begun.set)
        proceed.wait(20)
        done.append(name)

    def start(account_id: str, number: int) -> list[asyncio.Task[None]]:
        acting_for.set(account_id)
        return [asyncio.ensure_future(db.heavy_read(heavy, f"{account_id}{position}")) for position in range(number)]

    reads = start("a", 4)
    await begun.wait()
    reads += [*start("b", 2), *start("c", 1)]
    await asyncio.sleep(0)
    proceed.set()
    await asyncio.gather(*reads)
    assert done == ["a0", "b0", "c0", "a1", "b1", "a2", "a3"]


async def test_read_of_a_cancelled_caller_is_not_run(db: Database) -> None:
    begun, proceed, ran = threading.Event(), threading.Event(), []
    first = asyncio.ensure_future(db.heavy_read(lambda conn: begun.set() or proceed.wait(20)))
    gone = [asyncio.ensure_future(db.heavy_read(lambda conn: ran.append(1))) for _ in range(5)]
    await until(begun.is_set)
    for task in gone:
        task.cancel()
    await asyncio.gather(*gone, return_exceptions=True)
    proceed.set()
    assert await first and await db.heavy_read(count) == 0 and not ran


ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"


@pytest.mark.parametrize(
    ("kind", "cpu_seconds"), [("read", 0.25), pytest.param("heavy_read", 1.0, marks=pytest.mark.slow)]
)
async def test_read_over_its_cpu_limit_is_overloaded_and_the_reader_continues(
    db: Database, kind: str, cpu_seconds: float
) -> None:
    used: list[float] = []

    def endless(conn: sqlite3.Connection) -> None:
        began = time.thread_time()
        try:
            conn.execute(ENDLESS).fetchall()
        finally:
            used.append(time.thread_time() - began)

    read = getattr(db, kind)
    with pytest.raises(ApiError) as caught:
        await read(endless)
    assert (caught.value.code, caught.value.status, caught.value.headers["retry-after"]) == ("overloaded", 503, "1")
    assert await read(count) == 0
    await db.write(insert, "new")
    assert await read(count) == 1, "no old state stays open"
    # The time also counts what comes before the function, which takes longer on a busy machine.
    assert all(cpu_seconds - 0.02 < one < cpu_seconds + 0.2 for one in used)


# --- storage that fails


@contextlib.contextmanager
def descriptor_replaced(path: Path, replacement: str) -> Iterator[None]:
    """Lets this process's descriptor of `path` lead to `replacement`, such as the disk that is always full."""
    number = next(int(entry.name) for entry in Path("/proc/self/fd").iterdir() if os.path.realpath(entry) == str(path))
    kept, other = os.dup(number), os.open(replacement, os.O_RDWR)
    os.dup2(other, number)
    try:
        yield
    finally:
        os.dup2(kept, number)
        os.close(kept)
        os.close(other)


@contextlib.contextmanager
def file_size_limit(limit_bytes: int) -> Iterator[None]:
    """Writes beyond it are I/O errors (EFBIG; Python ignores the signal that comes along)."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs the device that is always full")
async def test_full_disk_fails_the_batch_and_recovers(db: Database, tmp_path: Path) -> None:
    await db.write(insert, "before")
    for _ in range(3):
        with other_connection(tmp_path / "a.db") as conn:
            conn.execute(
                "PRAGMA wal_checkpoint(TRUNCATE)"
            )  # that device reads as zeros: nothing may be left to read there
        with descriptor_replaced(tmp_path / "a.db-wal", "/dev/full"):
            codes = await failures(*(db.write(insert, f"lost {number}") for number in range(5)))
        assert codes == ["storage_unavailable"] * 5
        assert await db.read(texts) == {"before"}
    await db.write(insert, "after")
    assert await db.read(texts) == {"before", "after"}


async def test_io_error_fails_the_batch_and_recovers(db: Database, tmp_path: Path) -> None:
    await db.write(insert, "before")
    with file_size_limit((tmp_path / "a.db-wal").stat().st_size + 100):
        codes = await failures(*(db.write(insert, f"lost {number}") for number in range(5)))
    assert codes == ["storage_unavailable"] * 5
    await db.write(insert, "after")
    assert await db.read(texts) == {"before", "after"}


async def test_database_at_its_size_limit_refuses_only_large_writes(db: Database) -> None:
    pages = await db.read(lambda conn: conn.execute("PRAGMA page_count").fetchone()[0])
    await db.write(lambda tx: tx.execute(f"PRAGMA max_page_count = {pages + 2}").fetchall())
    codes = await failures(db.write(insert, "x" * 100_000), db.write(insert, "y" * 100_000))
    assert codes == ["storage_unavailable"] * 2
    await db.write(insert, "small")
    await db.write(lambda tx: tx.execute("PRAGMA max_page_count = 1000000").fetchall())
    await db.write(insert, "x" * 100_000)
    assert len(await db.read(texts)) == 2


async def test_transaction_rolled_back_by_sqlite_fails_for_all_callers(db: Database) -> None:
    await db.write(insert, "before")

    def lose(tx: sqlite3.Connection) -> None:
        tx.execute("INSERT OR ROLLBACK INTO notes (text) VALUES ('before')")

    def lose_unseen(tx: sqlite3.Connection) -> None:
        with contextlib.suppress(sqlite3.Error):
            lose(tx)

    with pytest.raises(ApiError) as caught:
        await db.write(lose)
    assert isinstance(caught.value.__cause__, sqlite3.IntegrityError), "it says what SQLite said"
    for loser in (lose, lose_unseen):
        codes = await failures(db.write(insert, "a"), db.write(loser), db.write(insert, "b"))
        assert codes == ["storage_unavailable"] * 3
        assert await db.read(texts) == {"before"}
    await db.write(insert, "after")
    assert await db.read(texts) == {"before", "after"}


async def test_failing_commit_fails_the_batch(tmp_path: Path) -> None:
    schema = SCHEMA + "CREATE TABLE marks (note INTEGER REFERENCES notes (id) DEFERRABLE INITIALLY DEFERRED) STRICT;"
    db = await open_with_schema(tmp_path / "a.db", schema)

    def dangle(tx: sqlite3.Connection) -> None:
        tx.execute("INSERT INTO marks VALUES (99)")

    assert await failures(db.write(insert, "a"), db.write(dangle)) == ["storage_unavailable"] * 2
    await db.write(insert, "b")
    assert await db.read(texts) == {"b"}
    await db.close()


async def test_read_only_database_is_unavailable_until_it_is_writable(db: Database) -> None:
    async with read_only(db):
        assert await failures(db.write(insert, "a"), db.write(insert, "b")) == ["storage_unavailable"] * 2
    await db.write(insert, "c")
    assert await db.read(texts) == {"c"}


async def test_locked_database_refuses_writes_and_serves_reads(db: Database, tmp_path: Path) -> None:
    await db.write(insert, "before")
    await db.write(lambda tx: tx.execute("PRAGMA busy_timeout = 50").fetchall())
    with other_connection(tmp_path / "a.db") as conn:
        conn.execute("BEGIN IMMEDIATE")
        codes = await failures(db.write(insert, "a"), db.write(insert, "b"), db.read(count))
        assert codes == ["storage_unavailable", "storage_unavailable", None]
    await db.write(insert, "after")
    assert await db.read(texts) == {"before", "after"}


async def test_damaged_page_fails_only_its_readers(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    db = await open_with_schema(path, SCHEMA)
    await db.write(
        lambda tx: tx.executemany("INSERT INTO notes (text) VALUES (?)", [(f"{n:500}",) for n in range(500)])
    )
    await db.close()
    db = await open_with_schema(path, SCHEMA)
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (path.stat().st_size - 4096))
    assert await failures(db.read(count), db.read(texts)) == ["storage_unavailable"] * 2
    await db.close()


# --- the end


async def test_close_runs_waiting_jobs_and_refuses_later_ones(tmp_path: Path) -> None:
    threads = threading.active_count()
    db = await open_with_schema(tmp_path / "a.db", SCHEMA)
    calls = [asyncio.ensure_future(db.write(insert, str(number))) for number in range(700)]
    calls += [asyncio.ensure_future(db.read(count)) for _ in range(20)]
    await asyncio.sleep(0)
    async with asyncio.timeout(10):
        await db.close()
        await asyncio.gather(*calls)
    for late in (db.write(insert, "late"), db.read(count)):
        with pytest.raises(ApiError) as caught:
            await late
        assert caught.value.code == "shutting_down"
    await db.close()
    with other_connection(tmp_path / "a.db") as conn:
        assert count(conn) == 700
    assert not (tmp_path / "a.db-wal").exists(), "the last one folds the WAL back into the file"
    await threads_are(threads)


async def test_cancelled_close_ends_threads_and_waiting_jobs(tmp_path: Path) -> None:
    threads = threading.active_count()
    db = await open_with_schema(tmp_path / "a.db", SCHEMA)
    calls = [asyncio.ensure_future(db.write(insert, str(number))) for number in range(300)]
    await asyncio.sleep(0)
    closing = asyncio.create_task(db.close())
    await asyncio.sleep(0)
    closing.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await closing
    async with asyncio.timeout(10):
        await asyncio.gather(*calls)
    async with asyncio.timeout(10):  # the close continues in a separate task
        await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()})
    await threads_are(threads)


async def threads_are(expected: int) -> None:
    async with asyncio.timeout(5):
        while threading.active_count() > expected + 1:  # the loop's own executor may keep one
            await asyncio.sleep(0.01)


async def test_used_private_parts_of_aiosqlite_exist() -> None:
    async with aiosqlite.connect(":memory:") as connection:
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def work() -> None:
            answer = (
                connection._conn.execute("SELECT 1").fetchone()[0],
                threading.current_thread() is not threading.main_thread(),
            )
            done.get_loop().call_soon_threadsafe(done.set_result, answer)

        connection._tx.put_nowait((None, work))
        assert await asyncio.wait_for(done, 5) == (1, True)
        assert await connection._execute(id, connection._conn) == id(connection._conn) and connection._thread.is_alive()


WRITER = """
    import asyncio, os, sys
    from pathlib import Path
    from tests.support.databases import open_with_schema

    def insert(tx, text):
        tx.execute("INSERT INTO notes (text) VALUES (?)", (text + " begun",))
        tx.execute("INSERT INTO notes (text) VALUES (?)", (text + " done",))

    async def main():
        db = await open_with_schema(Path(sys.argv[1]), sys.argv[2])
        async def repeat(writer):
            for number in range(100_000):
                await db.write(insert, f"{sys.argv[3]} {writer} {number}")
                os.write(1, f"{sys.argv[3]} {writer} {number}\\n".encode())
        await asyncio.gather(*(repeat(writer) for writer in range(8)))

    asyncio.run(main())
"""


@pytest.mark.slow
def test_kill_9_at_any_moment_keeps_acknowledged_writes(tmp_path: Path) -> None:
    chance = random.Random(3)
    acknowledged: set[str] = set()
    for round_ in range(6):
        arguments = [sys.executable, "-c", textwrap.dedent(WRITER), str(tmp_path / "a.db"), SCHEMA, str(round_)]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            first = process.stdout.readline()
            time.sleep(chance.random() * 0.05)
            process.send_signal(signal.SIGKILL)
            lines = (first + process.stdout.read()).decode().split("\n")
        assert process.returncode == -signal.SIGKILL
        acknowledged |= set(lines[:-1])
    prepare(tmp_path / "a.db", SCHEMA, ())
    with other_connection(tmp_path / "a.db") as conn:
        found = texts(conn)
    assert len(acknowledged) > 100
    assert {f"{text} done" for text in acknowledged} <= found
    assert len([text for text in found if text.endswith("done")]) == len(
        [text for text in found if text.endswith("begun")]
    )


# --- a command beside a running server


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Database]:
    """A database of the version that commands know too."""
    database = await open_database(tmp_path / "a.db")
    await database.write(lambda tx: tx.execute(SCHEMA) and None)
    yield database
    await database.close()


async def test_command_and_server_see_each_others_writes(served: Database, tmp_path: Path) -> None:
    await served.write(insert, "from the server")
    with command_connection(tmp_path / "a.db") as tx:
        assert texts(tx) == {"from the server"}
        insert(tx, "from the command")
    assert await served.read(texts) == {"from the server", "from the command"}
    await served.write(insert, "later")
    assert await served.read(count) == 3


async def test_failing_command_writes_nothing(served: Database, tmp_path: Path) -> None:
    with pytest.raises(ValueError), command_connection(tmp_path / "a.db") as tx:
        insert_and_fail(tx, "gone")
    assert await served.read(count) == 0
    await served.write(insert, "free")


async def test_a_command_does_not_checkpoint_beside_a_server(served: Database, tmp_path: Path) -> None:
    before = (tmp_path / "a.db").read_bytes()
    with command_connection(tmp_path / "a.db") as tx:
        for number in range(1500):
            insert(tx, f"{number:5000}")
    assert (tmp_path / "a.db").read_bytes() == before
    assert (tmp_path / "a.db-wal").stat().st_size > 1500 * 4096
    assert await served.read(count) == 1500


async def test_a_server_waits_for_a_command_and_then_writes(served: Database, tmp_path: Path) -> None:
    with command_connection(tmp_path / "a.db") as tx:
        insert(tx, "from the command")
        write = asyncio.ensure_future(served.write(insert, "from the server"))
        await asyncio.sleep(0.1)
        assert not write.done()
        assert await served.read(texts) == set()
    await asyncio.wait_for(write, 5)
    assert await served.read(count) == 2


# --- what a start takes and makes


def folder_of(path: Path) -> dict[str, bytes]:
    return {entry.name: entry.read_bytes() for entry in path.parent.iterdir() if not entry.name.endswith("-shm")}


def refused(path: Path, newest_migrations: tuple[str, ...] = (), schema: str = SCHEMA) -> str:
    """The one line with which a start refuses the file, which it leaves as it was."""
    before = path.read_bytes()
    with pytest.raises(StartError) as caught:
        prepare(path, schema, newest_migrations)
    assert path.read_bytes() == before
    line = str(caught.value)
    assert "\n" not in line and str(path) in line
    return line


def made(path: Path, rows: int = 0, close: bool = True) -> sqlite3.Connection:
    """A database of ours at `path` with so many rows."""
    prepare(path, SCHEMA, ())
    conn = schema_module.connect(path)
    conn.execute("BEGIN")
    conn.executemany("INSERT INTO notes (text) VALUES (?)", [(f"{number:200}",) for number in range(rows)])
    conn.execute("COMMIT")
    if close:
        conn.close()
    return conn


async def test_every_connection_is_set_up_for_durability_and_safety(db: Database) -> None:
    def settings(conn: sqlite3.Connection) -> list[Any]:
        names = ("journal_mode", "synchronous", "foreign_keys", "trusted_schema", "busy_timeout", "query_only")
        return [conn.execute(f"PRAGMA {name}").fetchone()[0] for name in names]

    assert await db.write(settings) == ["wal", 2, 1, 0, 5000, 0]
    assert await db.read(settings) == ["wal", 2, 1, 0, 5000, 1]


async def test_new_database_is_created_and_reopened(tmp_path: Path) -> None:
    for round_ in range(3):
        db = await open_with_schema(tmp_path / "a.db", SCHEMA)
        await db.write(insert, str(round_))
        assert await db.read(count) == round_ + 1
        await db.close()


def test_a_start_on_the_newest_version_writes_nothing(tmp_path: Path) -> None:
    made(tmp_path / "a.db", 3)
    before = (tmp_path / "a.db").read_bytes()
    prepare(tmp_path / "a.db", SCHEMA, ())
    assert (tmp_path / "a.db").read_bytes() == before


def test_real_schema_sets_the_application_id(tmp_path: Path) -> None:
    prepare(tmp_path / "a.db", *newest_schema())
    with other_connection(tmp_path / "a.db") as conn:
        assert conn.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
        assert conn.execute("PRAGMA user_version").fetchone()[0] == newest_version(newest_schema()[1])
        assert conn.execute("PRAGMA integrity_check").fetchone()[0] == "ok"


async def test_database_in_another_journal_mode_returns_to_wal(tmp_path: Path) -> None:
    made(tmp_path / "a.db", 3)
    with other_connection(tmp_path / "a.db") as conn:
        conn.execute("PRAGMA journal_mode = DELETE")
    db = await open_with_schema(tmp_path / "a.db", SCHEMA)
    assert await db.read(lambda conn: conn.execute("PRAGMA journal_mode").fetchone()[0]) == "wal"
    await db.close()


def cut_first_starts(tmp_path: Path) -> Iterator[tuple[str, dict[str, bytes]]]:
    """What a kill can leave of a first start, by the order in which SQLite writes: journal, page 1, WAL, checkpoint,
    removal.
    """
    whole = tmp_path / "whole.db"
    with other_connection(whole) as conn:
        conn.execute("PRAGMA journal_mode = WAL")
        page_1 = whole.read_bytes()
        conn.executescript(
            f"BEGIN; {SCHEMA} PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {FIRST_VERSION}; COMMIT;"
        )
        wal = Path(f"{whole}-wal").read_bytes()
    pages = whole.read_bytes()
    journal = bytes.fromhex("d9d505f920a163d7") + struct.pack(">5I", 0, 0x12345678, 0, 512, 4096)
    journal += bytes(512 - len(journal))
    assert len(page_1) == 4096 < len(pages) < len(wal)
    yield "an empty file", {"": b""}
    yield "an empty file and a journal", {"": b"", "-journal": journal}
    for size in (512, 1024, 4096):
        yield f"{size} bytes of page 1 and its journal", {"": page_1[:size], "-journal": journal}
    yield "WAL mode and no tables", {"": page_1}
    for size in [0, 16, 32, *range(40, len(wal), 1000), len(wal)]:
        yield f"{size} bytes of the WAL", {"": page_1, "-wal": wal[:size]}
    for size in range(4096, len(pages) + 1, 2048):
        yield f"{size} bytes of the checkpoint", {"": pages[:size], "-wal": wal}
    yield "everything but the removal", {"": pages, "-wal": wal, "-shm": b"\0" * 32768}


def test_first_start_killed_anywhere_is_repeated(tmp_path: Path) -> None:
    for number, (state, files) in enumerate(cut_first_starts(tmp_path)):
        path = tmp_path / f"{number}.db"
        for suffix, content in files.items():
            Path(f"{path}{suffix}").write_bytes(content)
        prepare(path, SCHEMA, ())
        with other_connection(path) as conn:
            insert(conn, "works")
            assert conn.execute("PRAGMA user_version").fetchone()[0] == FIRST_VERSION, state
            assert conn.execute("PRAGMA integrity_check").fetchone()[0] == "ok", state


def test_concurrent_starts_create_one_database(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        for round_ in range(20):
            path = tmp_path / f"{round_}.db"
            list(pool.map(lambda _, path=path: prepare(path, SCHEMA, ()), range(8)))
            with other_connection(path) as conn:
                assert count(conn) == 0


MIGRATIONS = (
    """
    CREATE TABLE tags (note INTEGER NOT NULL REFERENCES notes (id) ON DELETE CASCADE,
        tag TEXT NOT NULL) STRICT; -- one; comment
    CREATE TRIGGER tags_not_blank BEFORE INSERT ON tags WHEN NEW.tag = '' BEGIN
        SELECT RAISE(ABORT, 'blank; refused');
    END;
    INSERT INTO tags SELECT id, 'old; ' || text FROM notes;
    """,
    """
    CREATE TABLE new_notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE, stars INTEGER NOT NULL) STRICT;
    INSERT INTO new_notes SELECT id, text || '!', 0 FROM notes; DROP TABLE notes; ALTER TABLE new_notes RENAME TO notes;
    -- the end
    """,
)


def test_older_database_is_migrated_with_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    made(path, 2)
    prepare(path, "not used", MIGRATIONS[:1])
    with other_connection(path) as conn:
        assert conn.execute("SELECT count(*) FROM tags").fetchone()[0] == 2
        with pytest.raises(sqlite3.IntegrityError, match="blank; refused"):
            conn.execute("INSERT INTO tags VALUES (1, '')")
    prepare(path, "not used", MIGRATIONS)
    with other_connection(path) as conn:
        assert conn.execute("PRAGMA user_version").fetchone()[0] == FIRST_VERSION + 2
        assert conn.execute("SELECT count(*) FROM tags").fetchone()[0] == 2, (
            "replacing a table does not delete what refers to it"
        )
        assert {row["text"][-1] for row in conn.execute("SELECT text FROM notes")} == {"!"}


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ("INSERT INTO nowhere VALUES (1);", "no such table"),
        ("UPDATE notes SET text = 'same';", "UNIQUE"),
        ("CREATE TABLE never (a", "syntax error"),
        ("DELETE FROM notes;", "refer to deleted rows"),
    ],
)
def test_failed_migration_leaves_the_older_version(tmp_path: Path, broken: str, reason: str) -> None:
    path = tmp_path / "a.db"
    made(path, 2)
    line = refused(path, (*MIGRATIONS, broken))
    assert reason in line
    with other_connection(path) as conn:
        assert conn.execute("PRAGMA user_version").fetchone()[0] == FIRST_VERSION
        assert [row["name"] for row in conn.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")] == ["notes"]
    prepare(path, SCHEMA, ())


def test_concurrent_starts_migrate_once(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    made(path, 1)
    migration = "UPDATE notes SET text = text || '+';"
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: prepare(path, SCHEMA, (migration,)), range(8)))
    with other_connection(path) as conn:
        assert [text.count("+") for text in texts(conn)] == [1]


def test_a_newer_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    made(path, 3)
    with other_connection(path) as conn:
        conn.execute(f"PRAGMA user_version = {FIRST_VERSION + 1}")
    assert f"newer version ({FIRST_VERSION + 1}" in refused(path)
    prepare(path, SCHEMA, ("this is never run",))


@pytest.mark.parametrize("version", [0, -1])
def test_database_of_an_unknown_version_is_refused(tmp_path: Path, version: int) -> None:
    made(tmp_path / "a.db", 3)
    with other_connection(tmp_path / "a.db") as conn:
        conn.execute(f"PRAGMA user_version = {version}")
    assert "damaged" in refused(tmp_path / "a.db", MIGRATIONS)


@pytest.mark.parametrize("version", range(1, FIRST_VERSION))
def test_a_database_from_before_the_first_release_is_refused(tmp_path: Path, version: int) -> None:
    made(tmp_path / "a.db", 3)
    with other_connection(tmp_path / "a.db") as conn:
        conn.execute(f"PRAGMA user_version = {version}")
    assert "before 1.0.0" in refused(tmp_path / "a.db", MIGRATIONS)


@pytest.mark.parametrize(
    "setup", ["", "PRAGMA journal_mode = WAL;", "PRAGMA application_id = 7;", "PRAGMA user_version = 1;"]
)
def test_database_of_another_program_is_refused_without_new_files(tmp_path: Path, setup: str) -> None:
    path = tmp_path / "a.db"
    with other_connection(path) as conn:
        conn.executescript(setup + "CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1);")
    before = folder_of(path)
    assert "another program" in refused(path)
    assert folder_of(path) == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.db"]


@each(
    "content",
    [
        b"x",
        b"hello\n" * 1000,
        bytes(8192),
        b"SQLite format 3\0" + b"\xff" * 8176,
        b"SQLite format 3\0",
        bytes(range(256)) * 20,
    ],
)
def test_other_file_is_refused_as_a_database(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.db"
    path.write_bytes(content)
    refused(path)


def test_folder_is_refused_as_a_database(tmp_path: Path) -> None:
    (tmp_path / "a.db").mkdir()
    with pytest.raises(StartError, match="cannot be used"):
        prepare(tmp_path / "a.db", SCHEMA, ())
    with pytest.raises(StartError, match="cannot be used"):
        prepare(tmp_path / "nowhere" / "a.db", SCHEMA, ())


def test_a_truncated_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    made(path, 200)
    whole = path.read_bytes()
    for size in [*range(4096, len(whole), 4096), 100, 4000, 5000, len(whole) - 2000]:
        path.write_bytes(whole[:size])
        refused(path)


def test_a_database_with_a_damaged_page_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    made(path, 200)
    whole = path.read_bytes()
    for start in range(0, len(whole), 4096):
        for offset in (100, 101) if start == 0 else (0, 3):
            path.write_bytes(flipped(whole, start + offset))
            refused(path)


@pytest.mark.slow
def test_start_finds_a_truncated_large_database_with_few_reads(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    made(path, 200)
    with other_connection(path) as conn:
        conn.execute(
            """
            WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 400)
            INSERT INTO notes (text) SELECT printf('%250000d', n) FROM numbers
            """
        )
    began = time.thread_time()
    prepare(path, SCHEMA, ())
    assert time.thread_time() - began < 0.15, "reading 100 MB takes longer"
    whole = path.stat().st_size
    with path.open("r+b") as file:
        file.truncate(whole - 100_000)
    refused(path)


def test_flipped_byte_is_refused_with_one_line_or_harmless(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    made(path, 60)
    whole = path.read_bytes()
    chance = random.Random(11)
    places = [*range(108), *(start + chance.randrange(4096) for start in range(0, len(whole), 4096) for _ in range(10))]
    outcomes = {"taken": 0, "refused": 0}
    for place in places:
        for suffix in ("-wal", "-shm", "-journal"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
        path.write_bytes(flipped(whole, place))
        outcomes[taken_or_refused(path)] += 1
    assert min(outcomes.values()) > 20


def flipped(content: bytes, place: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :]


def taken_or_refused(path: Path) -> str:
    before = path.read_bytes()
    try:
        prepare(path, SCHEMA, ())
    except StartError as error:
        assert "\n" not in str(error)
        assert path.read_bytes() == before
        return "refused"
    return "taken"


async def test_refused_start_closes_its_connections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unable(path: Path, query_only: bool) -> sqlite3.Connection:
        raise sqlite3.OperationalError("unable to open")

    monkeypatch.setattr(db_module, "connect", unable)
    threads = threading.active_count()
    with pytest.raises(StartError, match="unable to open"):
        await open_with_schema(tmp_path / "a.db", SCHEMA)
    await threads_are(threads)
    assert not (tmp_path / "a.db-wal").exists()
