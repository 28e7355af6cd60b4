"""SQLite under asyncio: whole functions on a connection's own thread, and writers that share one commit.

write(fn) -> waits in its account's list -> the writer's thread takes from the lists in turn: BEGIN, each fn in a SAVEPOINT, after
             20 ms of work at the latest one COMMIT (one fsync)
read(fn)  -> the same, on one of a few read-only connections: one snapshot for the whole list
"""

import asyncio
import contextlib
import sqlite3
import time
import traceback
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, Generic, NamedTuple, ParamSpec, TypeVar

import aiosqlite

from svc.errors import ApiError
from svc.schema import connect, newest_schema, prepare, start_errors

P = ParamSpec("P")
T = TypeVar("T")
U = TypeVar("U")
Outcome = tuple[Any, BaseException | None]
Between = Callable[[sqlite3.Connection], bool]
Committed = Callable[[int, float], None]
Ran = tuple[list[Outcome], bool]  # the outcomes of those jobs that were run, and whether there is more to do without any

READERS = 2
_BATCH = 256
# A transaction ends after so much work, so that nobody waits for what others do; the first half of it may go to work that waits
# for nobody.
_SLICE_SECONDS = 0.02
_BETWEEN_SECONDS = 0.01
_PAGE_CHARACTERS = 4_000_000
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


class Job(NamedTuple):
    """A function that waits for a connection."""

    fn: Callable[..., Any]
    args: tuple[Any, ...]
    future: "asyncio.Future[Any]"
    account_id: str
    first: bool
    much: bool


# Whose request it is that reads or writes: the accounts take turns.
acting_for: ContextVar[str] = ContextVar("acting_for", default="")


class Database:
    """One writer and a few readers of one file, on which the accounts take turns. Made by `open_database`."""

    def __init__(
        self,
        writer: aiosqlite.Connection,
        readers: Sequence[aiosqlite.Connection],
        between: Between | None = None,
        committed: Committed = lambda jobs, seconds: None,
    ) -> None:
        self._writer = _Lane(writer, partial(_run_transaction, between, committed))
        if between is not None:
            self._writer.wake()  # a crash may have left work
        self._readers = [_Lane(reader, _run_reads) for reader in readers]

    async def write(self, fn: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs `fn(conn, *args)` as one transaction and returns its result once it is on disk.

        It runs whole even if the caller is cancelled meanwhile; what it raises rolls back itself alone.
        Raises ApiError `storage_unavailable` when the disk does not take it, `shutting_down` after `close`.
        """
        return await self._writer.submit(fn, args, kwargs)

    async def write_first(self, fn: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """As `write`, before all that waits: for what takes microseconds and somebody's money depends on."""
        return await self._writer.submit(fn, args, kwargs, first=True)

    async def write_much(self, fn: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """As `write`, for what makes the commit itself take long: its transaction ends with it."""
        return await self._writer.submit(fn, args, kwargs, much=True)

    async def read(self, fn: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs `fn(conn, *args)` on a read-only connection and returns its result.

        It sees one state of the database throughout, with every write that was acknowledged before this call.
        """
        return await min(self._readers, key=_Lane.ahead).submit(fn, args, kwargs)

    def waiting(self) -> tuple[int, int]:
        """How many functions wait for the writer, and how many for the readers."""
        return self._writer.waiting(), sum(map(_Lane.waiting, self._readers))

    async def empty_log(self) -> None:
        """Folds the write-ahead log into the file and empties it: what was deleted stands in it until then."""
        await self._writer.outside("PRAGMA wal_checkpoint(TRUNCATE)")

    async def close(self) -> None:
        """Runs what waits, then closes every connection."""
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(self._writer.close)  # closed last: it folds the WAL back into the file
            for reader in self._readers:
                stack.push_async_callback(reader.close)


class _Turns:
    """The jobs that wait: what goes first, then one of each account in turn."""

    def __init__(self) -> None:
        self._first: deque[Job] = deque()
        self._by_account: OrderedDict[str, deque[Job]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, job: Job) -> None:
        self._count += 1
        (self._first if job.first else self._by_account.setdefault(job.account_id, deque())).append(job)

    def take(self, most: int) -> list[Job]:
        taken: list[Job] = []
        while self._first and len(taken) < most:
            taken.append(self._first.popleft())
        while self._by_account and len(taken) < most:
            account_id, jobs = self._by_account.popitem(last=False)
            taken.append(jobs.popleft())
            if jobs:
                self._by_account[account_id] = jobs
        self._count -= len(taken)
        return taken

    def put_back(self, jobs: Sequence[Job]) -> None:
        """Takes jobs again for which there was no time, each before the others of its account, and their accounts in that order
        before the others."""
        self._count += len(jobs)
        for job in reversed(jobs):
            if job.first:
                self._first.appendleft(job)
                continue
            self._by_account.setdefault(job.account_id, deque()).appendleft(job)
            self._by_account.move_to_end(job.account_id, last=False)


class _Lane:
    """A connection and the jobs that wait for its thread.

    submit -> _start, once for all jobs of this turn of the loop -> _run on the thread -> _finish, back on the loop
    """

    def __init__(self, connection: aiosqlite.Connection, run_jobs: Callable[[sqlite3.Connection, list[Job]], Ran]) -> None:
        self._connection = connection
        self._conn = connection._conn
        self._run_jobs = run_jobs
        self._loop = asyncio.get_running_loop()
        self._waiting = _Turns()
        self._active = False  # from the first job that waits until none is left
        self._idle = asyncio.Event()
        self._on_thread = 0
        self._closed = False

    def ahead(self) -> int:
        """How many jobs end before one that is submitted now can begin."""
        return self._on_thread + len(self._waiting) if self._on_thread else 0

    def waiting(self) -> int:
        return len(self._waiting)

    def submit(
        self,
        fn: Callable[..., T],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        first: bool = False,
        much: bool = False,
    ) -> "asyncio.Future[T]":
        if self._closed:
            raise ApiError("shutting_down")
        future: asyncio.Future[T] = self._loop.create_future()
        self._waiting.add(Job(partial(fn, **kwargs) if kwargs else fn, args, future, acting_for.get(), first, much))
        self.wake()
        return future

    def wake(self) -> None:
        """Lets the thread look for work."""
        if not self._active:
            self._active = True
            self._idle.clear()
            self._loop.call_soon(self._start)

    async def outside(self, statement: str) -> None:
        """Runs a statement that no transaction may hold, between two of them."""
        await self._connection.execute_fetchall(statement)

    def _start(self) -> None:
        jobs = self._waiting.take(_BATCH)
        self._on_thread = len(jobs)
        # aiosqlite has no public call that runs a whole function on its thread; tests/test_db.py holds this one.
        self._connection._tx.put_nowait((None, lambda: self._run(jobs)))

    def _run(self, jobs: list[Job]) -> None:
        try:
            outcomes, more = self._run_jobs(self._conn, jobs)
        except BaseException as error:  # nobody may wait for ever
            outcomes, more = [(None, error)] * len(jobs), False
        # A batch wakes the loop once, whatever its size: that is what makes many small transactions cheap.
        self._loop.call_soon_threadsafe(self._finish, jobs, outcomes, more)

    def _finish(self, jobs: list[Job], outcomes: list[Outcome], more: bool) -> None:
        self._on_thread = 0
        self._waiting.put_back(jobs[len(outcomes) :])
        for job, (result, error) in zip(jobs, outcomes, strict=False):
            if job.future.done():  # its caller was cancelled
                continue
            if error is not None:
                job.future.set_exception(error)
                continue
            job.future.set_result(result)
        # Not at once: who has just been answered may come again, and then shares the next commit with those who wait.
        if self._waiting or (more and not self._closed):
            self._loop.call_soon(self._start)
        else:
            self._active = False
            self._idle.set()

    async def close(self) -> None:
        self._closed = True
        if self._active:
            await self._idle.wait()
        await self._connection.close()


def _run_reads(conn: sqlite3.Connection, jobs: list[Job]) -> Ran:
    ends = time.monotonic() + _SLICE_SECONDS
    outcomes: list[Outcome] = []
    conn.execute("BEGIN")
    for job in jobs:
        outcomes.append(_outcome(conn, job.fn, *job.args))
        if time.monotonic() > ends:
            break
    with contextlib.suppress(sqlite3.Error):  # it ends the transaction even where it fails, and there the outcomes tell why
        conn.execute("COMMIT")
    return outcomes, False


def _run_transaction(between: Between | None, committed: Committed, conn: sqlite3.Connection, jobs: list[Job]) -> Ran:
    """Runs jobs for 20 ms, at least one, and in what is left of the first half of that what is done between them."""
    began = time.monotonic()
    outcomes: list[Outcome] = []
    more = False
    try:
        conn.execute("BEGIN IMMEDIATE")
        for job in jobs:
            outcomes.append(_savepoint(conn, job.fn, *job.args))
            if job.much or time.monotonic() - began > _SLICE_SECONDS:
                break
        more = between is not None
        while between is not None and more and time.monotonic() - began < _BETWEEN_SECONDS:
            more = _savepoint(conn, between)[0] is True
        ended = time.monotonic()
        conn.execute("COMMIT")
        committed(len(outcomes), time.monotonic() - ended)
    except BaseException as error:
        if conn.in_transaction:
            with contextlib.suppress(sqlite3.Error):
                conn.execute("ROLLBACK")
        return [(None, _storage_unavailable(error)) for _ in jobs], False
    return outcomes, more


def _savepoint(conn: sqlite3.Connection, fn: Callable[..., Any], *args: Any) -> Outcome:
    """Runs one function of a transaction; where it fails, what it wrote is taken back alone."""
    conn.execute("SAVEPOINT job")
    outcome = _outcome(conn, fn, *args)
    if outcome[1] is not None:
        if not conn.in_transaction:  # a full disk or an I/O error has rolled back the jobs before this one too
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
        return None, _storage_unavailable(error) if code in _STORAGE_FAULTS else error


def _storage_unavailable(cause: BaseException) -> ApiError:
    error = ApiError("storage_unavailable")
    error.__cause__ = cause
    return error


@contextlib.contextmanager
def without_overwriting(tx: sqlite3.Connection) -> Iterator[None]:
    """What is deleted in the block, files of many megabytes, is freed as it is: to overwrite it would hold up all writes."""
    tx.execute("PRAGMA secure_delete = FAST")
    try:
        yield
    finally:
        tx.execute("PRAGMA secure_delete = ON")


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
    await asyncio.to_thread(prepare, path, *(newest_schema() if schema is None else (schema, [])))
    async with contextlib.AsyncExitStack() as stack:
        connections = []
        for query_only in (False, *[True] * READERS):
            with start_errors(path):
                connection = await aiosqlite.Connection(partial(connect, path, query_only), iter_chunk_size=64)
            stack.push_async_callback(connection.close)
            connections.append(connection)
        stack.pop_all()
    return Database(connections[0], connections[1:], between, committed)
