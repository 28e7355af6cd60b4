"""SQLite under asyncio: whole functions on a connection's own thread, and writers that share one commit.

write(fn) -> waits in its account's list -> the writer's thread takes from the lists in turn: BEGIN, one fn after the other, after
             20 ms of work at the latest one COMMIT (one fsync); where one fails halfway, once more, each in a SAVEPOINT
read(fn)  -> waits in the same way for one of two read-only workers -> one snapshot, 250 ms of CPU time at most
heavy_read(fn) -> the same on a worker of its own, for searches and exports, 1 s of CPU time at most
look_up(fn) -> at once, on the event loop: for a row or two by their keys
"""

import asyncio
import contextlib
import sqlite3
import time
import traceback
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, TypeVarTuple, cast

from svc.budget import limited, spent
from svc.checkpoint import Checkpointer
from svc.errors import ApiError
from svc.schema import connect, connect_prepared, newest_schema, start_errors
from svc.workers import Finish, Job, JobQueue, Mode, Outcome, Pool

P = ParamSpec("P")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")
U = TypeVar("U")
Between = Callable[[sqlite3.Connection], bool]
Committed = Callable[[int, float], None]

READERS = 2
# CPU time of one read. The largest ordinary pages take a tenth of it.
_READ_SECONDS = 0.25
_HEAVY_READ_SECONDS = 1.0
# SQLite checks the budget after so many of its instructions: 20 microseconds of a scan, up to 50 ms of a prefix search in FTS5.
_CHECKED_INSTRUCTIONS = 1_000
_BATCH = 256
# A transaction ends after so much work, so that nobody waits for what others do; the first half of it may go to work that waits
# for nobody.
_SLICE_SECONDS = 0.02
_BETWEEN_SECONDS = 0.01
_PAGE_CHARACTERS = 2_000_000
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


# Whose request it is that reads or writes: the accounts take turns.
acting_for: ContextVar[str] = ContextVar("acting_for", default="")


class Database:
    """One writer and a few readers of one file, on which the accounts take turns. Made by `open_database`."""

    def __init__(
        self,
        path: Path,
        connect_writer: Callable[[], sqlite3.Connection],
        between: Between | None = None,
        committed: Committed = lambda jobs, seconds: None,
    ) -> None:
        self._path = path
        self._between = between

        def note(jobs: int, seconds: float) -> None:
            committed(jobs, seconds)
            checkpointer.committed(jobs)

        self._writer = Pool(connect_writer, partial(_run_transaction, between, note, _Disk()))
        self._checkpointer = checkpointer = Checkpointer(path, self._writer.soon)
        self._readers = Pool(partial(_connect_reader, path), partial(_run_reads, _READ_SECONDS), READERS)
        # One worker: searches are mostly Python code, and two of them at once would only slow down the event loop.
        self._heavy = Pool(partial(_connect_reader, path), partial(_run_reads, _HEAVY_READ_SECONDS))

    async def open(self) -> None:
        """Raises StartError, and leaves no connection open then."""
        await self._writer.open()
        try:
            with start_errors(self._path):
                self._own = connect(self._path, query_only=True)
                self._own.execute("PRAGMA busy_timeout = 0")  # the event loop waits for nobody
        except BaseException:
            await self._writer.close()
            raise
        if self._between is not None:
            self._writer.wake()  # a crash may have left work

    async def write(self, fn: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs `fn(conn, *args)` as one transaction and returns its result once it is on disk.

        It runs whole even if the caller is cancelled meanwhile; what it raises rolls back itself alone.
        Raises ApiError `storage_unavailable` when the disk does not take it, `shutting_down` after `close`.
        """
        return await self._writer.submit(acting_for.get(), fn, args, kwargs)

    def write_as(
        self, mode: Mode, fn: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> "asyncio.Future[T]":
        """Run `fn` as `write` does, but with another order or durability.

        `first`: before everything that waits, for what takes microseconds and settles money. A cancelled caller continues to
        wait, and the cancellation is raised after the outcome. `unsynced`: as `first`, but it may return before it is on disk:
        for data that a power failure makes meaningless. Every reader sees it, it survives the end of this process, and no later
        write is on disk without it. `alone`: in a transaction of its own, for what takes milliseconds or writes megabytes.
        """
        return self._writer.submit(acting_for.get() if mode == "alone" else "", fn, args, kwargs, mode)

    async def read(self, fn: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs `fn(conn, *args)` on a read-only connection and returns its result.

        It sees one state of the database throughout, with every write that was acknowledged before this call.
        Raises ApiError `overloaded` when it has used 250 ms of CPU time in SQLite.
        """
        return await self._readers.submit(acting_for.get(), fn, args, kwargs)

    async def heavy_read(self, fn: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """As `read`, on the worker for heavy reads, where the accounts take turns, and with 1 s of CPU time.

        Use it for what can take over 20 ms. No other read waits for it. See svc/budget.py for partial results.
        """
        return await self._heavy.submit(acting_for.get(), fn, args, kwargs)

    def look_up(self, fn: Callable[[sqlite3.Connection, *Ts], T], *args: *Ts) -> T:
        """As `read`, at once and on the event loop: for a row or two by their keys, which takes less time than to change threads.

        Raises ApiError `storage_unavailable`.
        """
        result, error = _outcome(self._own, fn, *args)
        if error is not None:
            raise error
        return cast(T, result)

    def waiting(self) -> tuple[int, int]:
        """How many functions wait for the writer, and how many for the readers."""
        return self._writer.waiting(), self._readers.waiting() + self._heavy.waiting()

    async def empty_log(self) -> bool:
        """Folds the write-ahead log into the file and empties it: what was deleted stands in it until then.

        False where another process's reader, a backup or a replica, still needs it: then it stays, and no write waits for that.
        """
        emptied = await self._writer.outside(_empty_log)
        while not emptied and await self._checkpointer.wait():
            emptied = await self._writer.outside(_empty_log)
        return emptied

    async def close(self) -> None:
        """Runs what waits, then closes every connection, also where its caller is cancelled meanwhile."""
        await asyncio.shield(self._close())

    async def _close(self) -> None:
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(self._checkpointer.close)  # SQLite makes the last checkpoint with the last connection
            stack.push_async_callback(self._writer.close)
            stack.callback(self._own.close)
            stack.push_async_callback(self._readers.close)
            stack.push_async_callback(self._heavy.close)


def _connect_reader(path: Path) -> sqlite3.Connection:
    try:
        conn = connect(path, query_only=True)
    except sqlite3.Error as error:
        raise _storage_unavailable(error) from error
    conn.set_progress_handler(spent, _CHECKED_INSTRUCTIONS)
    return conn


def _run_reads(cpu_seconds: float, conn: sqlite3.Connection, queue: JobQueue, finish: Finish) -> bool:
    while jobs := queue.take(1):
        job = jobs[0]
        if job.future.cancelled():
            continue
        outcome = _outcome(conn, _begin_and_run, job.fn, cpu_seconds, job.args)
        with contextlib.suppress(sqlite3.Error):  # it ends the transaction even where it fails; the outcome then has the reason
            conn.execute("COMMIT")
        finish(jobs, [outcome])  # at once: the next one may take long
    return False


def _begin_and_run(conn: sqlite3.Connection, fn: Callable[..., T], cpu_seconds: float, args: tuple[Any, ...]) -> T:
    with limited(cpu_seconds):
        conn.execute("BEGIN")
        return fn(conn, *args)


@dataclass
class _Disk:
    """Whether the last transaction failed: the next ones wait for the disk then, so that nothing begins which cannot be kept."""

    failed: bool = False


def _run_transaction(
    between: Between | None, committed: Committed, disk: _Disk, conn: sqlite3.Connection, queue: JobQueue, finish: Finish
) -> bool:
    """Runs jobs for 20 ms, at least one, and in what is left of the first half of that what is done between them."""
    began = time.monotonic()
    more = False
    jobs = queue.take(_BATCH)
    try:
        # A commit that does not wait for the disk keeps its place before the next one that does.
        synced = disk.failed or not jobs or any(job.mode != "unsynced" for job in jobs)
        conn.execute(f"PRAGMA synchronous = {'FULL' if synced else 'NORMAL'}")
        conn.execute("BEGIN IMMEDIATE")
        ends = began + _SLICE_SECONDS
        outcomes = _run_writes(conn, jobs, ends, _outcome)
        if outcomes is None:
            conn.execute("ROLLBACK")
            conn.execute("BEGIN IMMEDIATE")
            outcomes = _run_writes(conn, jobs, ends, _savepoint) or []
        more = between is not None
        while between is not None and more and time.monotonic() - began < _BETWEEN_SECONDS:
            more = _savepoint(conn, between)[0] is True
        ended = time.monotonic()
        conn.execute("COMMIT")
        disk.failed = False
        committed(len(outcomes), time.monotonic() - ended)
    except BaseException as error:
        disk.failed = True
        if conn.in_transaction:
            with contextlib.suppress(sqlite3.Error):
                conn.execute("ROLLBACK")
        outcomes, more = [(None, _storage_unavailable(error)) for _ in jobs], False
    queue.put_back(jobs[len(outcomes) :])
    finish(jobs, outcomes)
    return more


def _run_writes(conn: sqlite3.Connection, jobs: list[Job], ends: float, run: Callable[..., Outcome]) -> list[Outcome] | None:
    """The outcomes of the jobs for which there was time; None where one has failed and left behind what it had written."""
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


def _empty_log(conn: sqlite3.Connection) -> bool:
    patience_ms = conn.execute("PRAGMA busy_timeout").fetchone()[0]
    conn.execute("PRAGMA busy_timeout = 0")
    try:
        busy: int = conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        return not busy
    finally:
        conn.execute(f"PRAGMA busy_timeout = {patience_ms}")


def _savepoint(conn: sqlite3.Connection, fn: Callable[..., Any], *args: Any) -> Outcome:
    """Runs one function of a transaction; where it fails, what it wrote is taken back alone."""
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
    except BaseException as error:  # it belongs to the caller, never to this thread
        traceback.clear_frames(error.__traceback__)  # a cursor that a local still holds would keep its snapshot open
        if isinstance(error, StopIteration):
            return None, RuntimeError("the function let StopIteration out")  # a future does not take it
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_INTERRUPT:
            return None, ApiError("overloaded", "Reading this takes too long. Ask for less, or try again later.")
        return None, _storage_unavailable(error) if code in _STORAGE_FAULTS else error


def _storage_unavailable(cause: BaseException) -> ApiError:
    error = ApiError("storage_unavailable")
    error.__cause__ = cause
    return error


@dataclass(frozen=True)
class Page(Generic[T]):
    """Part of a list, and whether more of it follows."""

    items: list[T]
    has_more: bool

    def of(self, make: Callable[[T], U]) -> "Page[U]":
        """The same page of what `make` makes of each item."""
        return Page([make(item) for item in self.items], self.has_more)


def page(
    conn: sqlite3.Connection,
    table: str,
    account_id: str,
    limit: int,
    after: str | None,
    *,
    order: Sequence[str] = ("rowid",),
    **narrowed: str | list[int] | None,
) -> Page[sqlite3.Row]:
    """Up to `limit` of the account's rows in `table`, the last by `order` first, behind the one whose id is `after`.

    By itself that is the order in which they were added, whatever the clock said: it may have been set back.
    `narrowed` keeps the rows whose column equals the text or is in the list; None does not narrow. A page of long rows is
    shorter than `limit`, so that it fits in memory, and has one at least. `table` and the columns' names are the code's own
    words, never a caller's. Raises ApiError `invalid_value` for an `after` that is none of the list.
    """
    values: dict[str, Any] = {"account_id": account_id, "after": after, "most": limit + 1}
    own = f"FROM {table} WHERE account_id = :account_id"
    for column, value in narrowed.items():
        if value is not None:
            listed = isinstance(value, list)
            values[column] = str(value) if listed else value
            own += f" AND {column} " + (f"IN (SELECT value FROM json_each(:{column}))" if listed else f"= :{column}")  # noqa: S608
    further = ""
    if after is not None:
        place = conn.execute(f"SELECT {', '.join(order)} {own} AND id = :after", values).fetchone()
        if place is None:
            raise ApiError("invalid_value", "after must be the id of an item of this list.", param="after")
        further = f" AND ({', '.join(order)}) < ({', '.join(f':after_{column}' for column in order)})"
        values |= {f"after_{column}": value for column, value in zip(order, place, strict=True)}
    descending = ", ".join(f"{column} DESC" for column in order)
    items: list[sqlite3.Row] = []
    characters = 0
    for row in conn.execute(f"SELECT * {own}{further} ORDER BY {descending} LIMIT :most", values):
        if len(items) == limit or characters > _PAGE_CHARACTERS:
            return Page(items, has_more=True)
        items.append(row)
        characters += sum(len(value) for value in row if isinstance(value, str | bytes))
    return Page(items, has_more=False)


async def open_database(
    path: Path,
    schema: str | None = None,
    between: Between | None = None,
    committed: Committed = lambda jobs, seconds: None,
) -> Database:
    """Opens the database at `path`: made anew when there is none, migrated when it is older.

    `between(conn)` is called in the writer's transactions when there is time: it does a few milliseconds of work that waits for
    nobody and tells whether more is left. `committed(jobs, seconds)` is told on the writer's thread how many functions a commit
    held, and how long the disk took for it. Raises StartError with one line when the database is damaged, foreign or newer, and
    leaves the file as it is.
    """
    script, migrations = newest_schema() if schema is None else (schema, [])
    db = Database(path, partial(connect_prepared, path, script, migrations), between, committed)
    await db.open()
    return db
