"""SQLite under asyncio: plain functions run on threads with a connection each, and writers share commits.

write(fn) -> queue -> the writer's thread: BEGIN, functions for up to 20 ms, one COMMIT (one fsync)
          -> if one fails after it has written, the batch runs again with each function in a SAVEPOINT
read(fn)  -> queue -> one of two read-only workers: one snapshot, up to 250 ms of CPU time
heavy_read(fn) -> the same on a separate worker, for searches and exports: up to 1 s of CPU time
look_up(fn) -> at once, on the event loop: for a row or two by key
"""

import asyncio
import contextlib
import sqlite3
import time
import traceback
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar, TypeVarTuple

from svc.budget import limited, spent
from svc.checkpoint import Checkpointer
from svc.errors import ApiError
from svc.schema import connect, connect_prepared, newest_schema, start_errors
from svc.workers import Finish, Job, JobQueue, Mode, Outcome, Pool

P = ParamSpec("P")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")
Work = Callable[Concatenate[sqlite3.Connection, P], T]
Between = Callable[[sqlite3.Connection], bool]
Committed = Callable[[int, float], None]

READERS = 2
# CPU time of one read. The largest pages take a tenth of it.
READ_SECONDS = 0.25
_HEAVY_READ_SECONDS = 1.0
# SQLite checks the budget after so many of its instructions, 20 microseconds of a scan.
_CHECKED_INSTRUCTIONS = 1_000
_BATCH = 256
# A transaction ends after so much work, so that other accounts need not wait.
_SLICE_SECONDS = 0.02
# Background work may take so much of a transaction without jobs. Beside jobs, which wait for it, it does one step.
_BACKGROUND_SECONDS = 0.01
_LARGE_JOBS = 20  # a job that runs alone, or a step of background work, writes as much as so many jobs
_STORAGE_FAULTS = {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_PROTOCOL,
}
# The account whose request reads or writes: each queue serves the accounts round robin.
acting_for: ContextVar[str] = ContextVar("acting_for", default="")

# Work that an earlier process has left begins later: its first query on each reader takes 2 ms, to read the schema, and
# the first requests would wait for it.
AFTER_START_SECONDS = 1.0


class Database:
    """One writer and a few readers of one file. Made by `open_database`."""

    def __init__(
        self, path: Path, connect_writer: Callable[[], sqlite3.Connection], between: Between, committed: Committed
    ) -> None:
        self._path = path
        self._stack = contextlib.AsyncExitStack()

        transactions = _Transactions(between, committed)
        self._writer = Pool(connect_writer, transactions.run)
        self._checkpointer = Checkpointer(path, self._writer)
        transactions.wrote = self._checkpointer.committed
        self._readers = Pool(partial(_connect_reader, path), partial(_run_reads, READ_SECONDS), READERS)
        # One worker: searches are mostly Python code, and two at a time would slow down the event loop.
        self._heavy = Pool(partial(_connect_reader, path), partial(_run_reads, _HEAVY_READ_SECONDS))

    async def open(self) -> None:
        """Open the connections. Raises StartError, and then leaves none open."""
        # It closes last: SQLite makes the last checkpoint with the last connection.
        self._stack.push_async_callback(self._checkpointer.close)
        try:
            with start_errors(self._path):
                self._stack.push_async_callback(self._close_writer)
                await self._writer.open()
                for pool in (self._readers, self._heavy):
                    self._stack.push_async_callback(pool.close)
                    await pool.open()
                self._own = self._stack.enter_context(contextlib.closing(connect(self._path, query_only=True)))
                self._own.execute("PRAGMA busy_timeout = 0")  # the event loop must not wait
        except BaseException:
            await self._stack.aclose()
            raise
        self._writer.wake()  # a crash may have left work
        self._stack.callback(asyncio.create_task(self._checkpointer.empty_in_time()).cancel)

    async def _close_writer(self) -> None:
        await self._writer.finish()
        await self._checkpointer.empty_last()
        await self._writer.close()

    def write(self, fn: Work[P, T], *args: P.args, **kwargs: P.kwargs) -> "asyncio.Future[T]":
        """Run `fn(conn, *args)` as one transaction and return its result when it is on disk.

        It runs completely even if the caller is cancelled. What it raises rolls back only its own writes.
        Raises ApiError `storage_unavailable` if the disk fails, and `shutting_down` after `close`.
        """
        return self._writer.submit(acting_for.get(), fn, args, kwargs)

    def write_as(self, mode: Mode, fn: Work[P, T], *args: P.args, **kwargs: P.kwargs) -> "asyncio.Future[T]":
        """Run `fn` as `write` does, but with another order or durability.

        `first`: before everything that waits, for what takes microseconds and settles money. A cancelled caller
        continues to wait, and the cancellation is raised after the outcome. `unsynced`: as `first`, but it may return
        before it is on disk: for data that a power failure makes meaningless. Every reader sees it, it survives the end
        of this process, and no later write is on disk without it. `alone`: in a separate transaction, for what takes
        milliseconds or writes megabytes.
        """
        return self._writer.submit(acting_for.get() if mode == "alone" else "", fn, args, kwargs, mode)

    def read(self, fn: Work[P, T], *args: P.args, **kwargs: P.kwargs) -> "asyncio.Future[T]":
        """Run `fn(conn, *args)` on a read-only connection and return its result.

        It sees one snapshot of the database, with every write that was acknowledged before this call.
        Raises ApiError `overloaded` if it uses 250 ms of CPU time in SQLite.
        """
        return self._readers.submit(acting_for.get(), fn, args, kwargs)

    def heavy_read(self, fn: Work[P, T], *args: P.args, **kwargs: P.kwargs) -> "asyncio.Future[T]":
        """Run `fn` as `read` does, with 1 s of CPU time, for what can take over 20 ms.

        See svc/budget.py for partial results.
        """
        return self._heavy.submit(acting_for.get(), fn, args, kwargs)

    def look_up(self, fn: Callable[[sqlite3.Connection, *Ts], T], *args: *Ts) -> T:
        """Run `fn` as `read` does, when that takes less than a switch of threads. Raises `storage_unavailable`."""
        try:
            return fn(self._own, *args)
        except BaseException as error:
            seen = _as_caller_sees(error)
            raise seen from seen.__cause__

    def waiting(self) -> tuple[int, int]:
        return len(self._writer.queue), len(self._readers.queue) + len(self._heavy.queue)

    async def empty_log(self) -> bool:
        """Empty the write-ahead log, which still holds deleted texts. It is also done every 20 seconds.

        Return False if another process's reader, such as a backup or a replica, still needs the log.
        """
        return await self._checkpointer.empty()

    async def close(self) -> None:
        """Run what waits, then close every connection, even if the caller is cancelled."""
        await asyncio.shield(self._stack.aclose())


def _connect_reader(path: Path) -> sqlite3.Connection:
    conn = connect(path, query_only=True)
    conn.set_progress_handler(spent, _CHECKED_INSTRUCTIONS)
    return conn


def _run_reads(cpu_seconds: float, conn: sqlite3.Connection, queue: JobQueue, finish: Finish) -> bool:
    while jobs := queue.take(1):
        job = jobs[0]
        if job.future.cancelled():
            continue
        outcome = _outcome(conn, _begin_and_run, job.fn, cpu_seconds, job.args)
        with contextlib.suppress(sqlite3.Error):  # it ends the transaction even if it fails; the outcome has the reason
            conn.execute("COMMIT")
        finish(jobs, [outcome])  # not with the next one, which may take long
    return False


def _begin_and_run(conn: sqlite3.Connection, fn: Callable[..., T], cpu_seconds: float, args: tuple[Any, ...]) -> T:
    with limited(cpu_seconds):
        conn.execute("BEGIN")
        return fn(conn, *args)


class _Transactions:
    """Runs the jobs of the writer in batches."""

    def __init__(self, between: Between, committed: Committed) -> None:
        self._between, self._committed = between, committed
        self.wrote: Callable[[int], None] = lambda jobs: None  # as many pages as usual jobs write
        self._failed = False  # the last one; the next one is then synced, so that no work begins that cannot be stored

    def run(self, conn: sqlite3.Connection, queue: JobQueue, finish: Finish) -> bool:
        """Run jobs for 20 ms, then background work, if they were quick. Return whether more of it is left."""
        began = time.monotonic()
        jobs = queue.take(_BATCH)
        try:
            # The next synced commit also writes an unsynced one before it to the disk.
            synced = self._failed or any(job.mode != "unsynced" for job in jobs)
            conn.execute(f"PRAGMA synchronous = {'FULL' if synced else 'NORMAL'}")
            conn.execute("BEGIN IMMEDIATE")
            ends = began + _SLICE_SECONDS
            outcomes = _run_writes(conn, jobs, ends, _outcome)
            if outcomes is None:
                conn.execute("ROLLBACK")
                conn.execute("BEGIN IMMEDIATE")
                outcomes = _run_writes(conn, jobs, ends, _savepoint) or []
            more, large = True, sum(job.mode == "alone" for job in jobs)
            while more and time.monotonic() - began < _BACKGROUND_SECONDS:
                more = _savepoint(conn, self._between)[0] is True
                large += more
                if jobs:
                    break
            ended = time.monotonic()
            conn.execute("COMMIT")
            self._failed = False
            self._committed(len(outcomes), time.monotonic() - ended)
            self.wrote(len(outcomes) + _LARGE_JOBS * large)
        except BaseException as error:
            self._failed = True
            with contextlib.suppress(sqlite3.Error):  # there may be none
                conn.execute("ROLLBACK")
            outcomes, more = [(None, _storage_unavailable(error)) for _ in jobs], False
        queue.put_back(jobs[len(outcomes) :])
        finish(jobs, outcomes)
        return more


def _run_writes(
    conn: sqlite3.Connection, jobs: list[Job], ends: float, run: Callable[..., Outcome]
) -> list[Outcome] | None:
    """Return the outcomes of the jobs for which there was time, or None if one has failed after it had written."""
    outcomes: list[Outcome] = []
    for job in jobs:
        written = conn.total_changes
        outcome = run(conn, job.fn, *job.args)
        if not conn.in_transaction:  # a full disk or an I/O error has rolled back the jobs before this one too
            raise outcome[1] or sqlite3.OperationalError("the transaction is gone")
        if outcome[1] is not None and run is not _savepoint and conn.total_changes != written:
            return None
        outcomes.append(outcome)
        if time.monotonic() > ends:
            break
    return outcomes


def _savepoint(conn: sqlite3.Connection, fn: Callable[..., Any], *args: Any) -> Outcome:
    """Run one function of a transaction. If it fails, only its own writes are rolled back."""
    conn.execute("SAVEPOINT job")
    outcome = _outcome(conn, fn, *args)
    if outcome[1] is not None:
        if not conn.in_transaction:
            raise outcome[1]
        conn.execute("ROLLBACK TO job")
    conn.execute("RELEASE job")
    return outcome


def _outcome(conn: sqlite3.Connection, fn: Callable[..., Any], *args: Any) -> Outcome:
    try:
        return fn(conn, *args), None
    except BaseException as error:
        return None, _as_caller_sees(error)


def _as_caller_sees(error: BaseException) -> BaseException:
    traceback.clear_frames(error.__traceback__)  # a cursor in a local variable would keep its snapshot open
    if isinstance(error, StopIteration):
        return RuntimeError("the function raised StopIteration")  # a future does not accept it
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_INTERRUPT:
        return ApiError("overloaded", "Reading this takes too long. Ask for less, or try again later.")
    return _storage_unavailable(error) if code in _STORAGE_FAULTS else error


def _storage_unavailable(cause: BaseException) -> ApiError:
    error = ApiError("storage_unavailable")
    error.__cause__ = cause
    return error


async def open_database(
    path: Path, between: Between = lambda conn: False, committed: Committed = lambda jobs, seconds: None
) -> Database:
    """Open the database at `path`. It is created if there is none, and migrated if it is older.

    The writer calls `between(conn)` in its transactions when there is time. It does some milliseconds of background
    work and returns whether more is left. `committed(jobs, seconds)` is called on the writer's thread after each
    commit, with its number of functions and the time of the disk. Raises StartError if the database is damaged, foreign
    or newer, and does not change it.
    """
    db = Database(path, partial(connect_prepared, path, *newest_schema()), between, committed)
    await db.open()
    return db
