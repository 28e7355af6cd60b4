"""SQLite under asyncio: whole functions on a connection's own thread, and writers that share one commit.

write(fn) -> waits in a list -> the writer's thread takes the whole list: BEGIN, each fn in a SAVEPOINT, one COMMIT (one fsync)
read(fn)  -> the same, on one of a few read-only connections: one snapshot for the whole list
"""

import asyncio
import contextlib
import fcntl
import os
import sqlite3
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import aiosqlite

from svc.errors import ApiError, StartError

P = ParamSpec("P")
T = TypeVar("T")
Job = tuple[Callable[..., Any], tuple[Any, ...], "asyncio.Future[Any]"]
Outcome = tuple[Any, BaseException | None]

APPLICATION_ID = 0x53564331  # "SVC1" in the file's header: tells our databases from anybody else's
SCHEMA = Path(__file__).parent.parent / "schema.sql"
# `2.sql` takes a database from version 1 to 2, and so on; schema.sql is always the newest as a whole.
_MIGRATIONS = Path(__file__).parent / "migrations"
READERS = 2
_BATCH = 256
_BUSY_SECONDS = 5.0
_PAGE_BYTES = 4096
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


class Database:
    """One writer and a few readers of one file. Made by `open_database`."""

    def __init__(self, writer: aiosqlite.Connection, readers: Sequence[aiosqlite.Connection]) -> None:
        self._writer = _Lane(writer, _run_transaction)
        self._readers = [_Lane(reader, _run_reads) for reader in readers]

    async def write(self, fn: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs `fn(conn, *args)` as one transaction and returns its result once it is on disk.

        It runs whole even if the caller is cancelled meanwhile; what it raises rolls back itself alone.
        Raises ApiError `storage_unavailable` when the disk does not take it, `shutting_down` after `close`.
        """
        return await self._writer.submit(fn, args, kwargs)

    async def read(self, fn: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs `fn(conn, *args)` on a read-only connection and returns its result.

        It sees one state of the database throughout, with every write that was acknowledged before this call.
        """
        return await min(self._readers, key=_Lane.ahead).submit(fn, args, kwargs)

    async def close(self) -> None:
        """Runs what waits, then closes every connection."""
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(self._writer.close)  # closed last: it folds the WAL back into the file
            for reader in self._readers:
                stack.push_async_callback(reader.close)


class _Lane:
    """A connection and the jobs that wait for its thread.

    submit -> _start, once for all jobs of this turn of the loop -> _run on the thread -> _finish, back on the loop
    """

    def __init__(
        self, connection: aiosqlite.Connection, run_jobs: Callable[[sqlite3.Connection, list[Job]], list[Outcome]]
    ) -> None:
        self._connection = connection
        self._conn = connection._conn
        self._run_jobs = run_jobs
        self._loop = asyncio.get_running_loop()
        self._waiting: list[Job] = []
        self._active = False  # from the first job that waits until none is left
        self._on_thread = 0
        self._closed = False

    def ahead(self) -> int:
        """How many jobs end before one that is submitted now can begin."""
        return self._on_thread + len(self._waiting) if self._on_thread else 0

    def submit(self, fn: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> "asyncio.Future[T]":
        if self._closed:
            raise ApiError("shutting_down")
        future: asyncio.Future[T] = self._loop.create_future()
        self._waiting.append((partial(fn, **kwargs) if kwargs else fn, args, future))
        if not self._active:
            self._active = True
            self._loop.call_soon(self._start)
        return future

    def _start(self) -> None:
        if not self._waiting:  # `close` was faster
            return
        jobs, self._waiting = self._waiting[:_BATCH], self._waiting[_BATCH:]
        self._on_thread = len(jobs)
        # aiosqlite has no public call that runs a whole function on its thread; tests/test_db.py holds this one.
        self._connection._tx.put_nowait((None, lambda: self._run(jobs)))

    def _run(self, jobs: list[Job]) -> None:
        try:
            outcomes = self._run_jobs(self._conn, jobs)
        except BaseException as error:  # nobody may wait for ever
            outcomes = [(None, error)] * len(jobs)
        # A batch wakes the loop once, whatever its size: that is what makes many small transactions cheap.
        self._loop.call_soon_threadsafe(self._finish, jobs, outcomes)

    def _finish(self, jobs: list[Job], outcomes: list[Outcome]) -> None:
        self._on_thread = 0
        for (_, _, future), (result, error) in zip(jobs, outcomes, strict=True):
            if future.done():  # its caller was cancelled
                continue
            if error is not None:
                future.set_exception(error)
                continue
            future.set_result(result)
        # Not at once: who has just been answered may come again, and then shares the next commit with those who wait.
        if self._waiting:
            self._loop.call_soon(self._start)
        else:
            self._active = False

    async def close(self) -> None:
        self._closed = True
        while self._waiting:
            self._start()
        await self._connection.close()


def _run_reads(conn: sqlite3.Connection, jobs: list[Job]) -> list[Outcome]:
    conn.execute("BEGIN")
    outcomes = [_outcome(conn, job) for job in jobs]
    with contextlib.suppress(sqlite3.Error):  # it ends the transaction even where it fails, and there the outcomes tell why
        conn.execute("COMMIT")
    return outcomes


def _run_transaction(conn: sqlite3.Connection, jobs: list[Job]) -> list[Outcome]:
    outcomes: list[Outcome] = []
    try:
        conn.execute("BEGIN IMMEDIATE")
        for job in jobs:
            conn.execute("SAVEPOINT job")
            outcome = _outcome(conn, job)
            if outcome[1] is not None:
                if not conn.in_transaction:  # a full disk or an I/O error has rolled back the jobs before this one too
                    raise outcome[1]
                conn.execute("ROLLBACK TO job")
            conn.execute("RELEASE job")
            outcomes.append(outcome)
        conn.execute("COMMIT")
    except BaseException as error:
        if conn.in_transaction:
            with contextlib.suppress(sqlite3.Error):
                conn.execute("ROLLBACK")
        return [(None, _storage_unavailable(error)) for _ in jobs]
    return outcomes


def _outcome(conn: sqlite3.Connection, job: Job) -> Outcome:
    fn, args, _ = job
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


def page(
    conn: sqlite3.Connection, table: str, account_id: str, limit: int, after: str | None, **equal: str | None
) -> list[sqlite3.Row]:
    """Up to `limit + 1` of the account's rows in `table`, newest first, those older than the one called `after` (contract 2).

    `equal` narrows by columns, None does not. `table` and the columns' names are the code's own words, never a caller's.
    Raises ApiError `invalid_value` for an `after` that is none of the account's.
    """
    own = f"FROM {table} WHERE account_id = :account_id"
    values = {"account_id": account_id, "after": after, "most": limit + 1, **equal}
    if after is not None and not conn.execute(f"SELECT 1 {own} AND id = :after", values).fetchone():
        raise ApiError("invalid_value", "after must be the id of an item of this list.", param="after")
    narrowed = "".join(f" AND {column} = :{column}" for column, value in equal.items() if value is not None)
    older = " AND id < :after" if after is not None else ""
    return conn.execute(f"SELECT * {own}{narrowed}{older} ORDER BY id DESC LIMIT :most", values).fetchall()


def newest_schema() -> tuple[str, list[str]]:
    """schema.sql, and the scripts that take an older database there, version by version."""
    paths = sorted(_MIGRATIONS.glob("*.sql"), key=lambda path: int(path.stem))
    return SCHEMA.read_text(), [path.read_text() for path in paths]


async def open_database(path: Path, schema: str | None = None) -> Database:
    """Opens the database at `path`: made anew when there is none, migrated when it is older.

    Raises StartError with one line when it is damaged, foreign or newer, and leaves the file as it is (contract 10).
    """
    await asyncio.to_thread(prepare, path, *(newest_schema() if schema is None else (schema, [])))
    async with contextlib.AsyncExitStack() as stack:
        connections = []
        for query_only in (False, *[True] * READERS):
            with _start_errors(path):
                connection = await aiosqlite.Connection(partial(connect, path, query_only), iter_chunk_size=64)
            stack.push_async_callback(connection.close)
            connections.append(connection)
        stack.pop_all()
    return Database(connections[0], connections[1:])


def connect(path: Path, query_only: bool = False) -> sqlite3.Connection:
    """A connection with what each of ours needs: WAL, synchronous FULL, foreign keys, rows by name, no implicit transactions."""
    conn = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, cached_statements=256)
    try:
        conn.row_factory = sqlite3.Row
        conn.execute("PRAGMA journal_mode = WAL")
        conn.execute("PRAGMA synchronous = FULL")
        conn.execute("PRAGMA foreign_keys = ON")
        conn.execute("PRAGMA trusted_schema = OFF")
        # Where SQLite is built to zero what it frees, deleting 1 GiB would stop every write for seconds.
        conn.execute("PRAGMA secure_delete = FAST")
        conn.execute(f"PRAGMA query_only = {int(query_only)}")
    except BaseException:
        conn.close()
        raise
    return conn


@contextlib.contextmanager
def command_connection(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection for an operator's command beside a running server: one transaction, no checkpoint (contract 10).

    Raises StartError as `open_database` does, sqlite3.OperationalError when another process writes for over 5 seconds.
    """
    prepare(path, *newest_schema())
    with contextlib.closing(connect(path)) as conn:
        conn.execute("PRAGMA wal_autocheckpoint = 0")
        conn.execute("BEGIN IMMEDIATE")
        yield conn
        conn.execute("COMMIT")


def prepare(path: Path, schema: str, migrations: Sequence[str]) -> None:
    """Makes or migrates the file at `path` in one transaction. Raises StartError as `open_database` does."""
    newest = len(migrations) + 1
    with _start_errors(path), _alone_in(path.parent):
        if not _is_blank(path):
            _refuse_foreign(path)
            _refuse_damaged(path, newest)
        with contextlib.closing(connect(path)) as conn:
            # Foreign keys would make a migration that replaces a table delete the rows that refer to it.
            conn.execute("PRAGMA foreign_keys = OFF")
            conn.execute("BEGIN IMMEDIATE")
            version = _version(conn, path, newest)
            if version != newest:
                for script in migrations[version - 1 :] if version else [schema]:
                    for statement in _statements(script):
                        conn.execute(statement)
                if conn.execute("PRAGMA foreign_key_check").fetchone():
                    raise StartError(f"the database {path} cannot be migrated: rows would refer to rows that are gone")
                conn.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                conn.execute(f"PRAGMA user_version = {newest}")
            conn.execute("COMMIT")


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """A server and commands that begin at once prepare the file one after the other: SQLite's switch to WAL does not wait."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _start_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError, UnicodeError) as error:
        raise StartError(f"the database {path} cannot be used: {' '.join(str(error).split())}") from error


def _is_blank(path: Path) -> bool:
    """Whether there is nothing to lose: no file, no bytes, or a first page that SQLite takes back: a kill left its journal."""
    if not path.exists():
        return True
    size = path.stat().st_size
    return size == 0 or (size <= _PAGE_BYTES and path.with_name(f"{path.name}-journal").exists())


def _refuse_foreign(path: Path) -> None:
    """Judges the first page by its bytes: by merely reading it, SQLite would leave its side files beside somebody's database."""
    with path.open("rb") as file:
        page = file.read(_PAGE_BYTES)
    if not page.startswith(b"SQLite format 3\0"):
        raise StartError(f"{path} is damaged, or it is no database; restore a backup, or set SVC_DATA_DIR to another folder")
    application_id, tables = page[68:72], page[103:105]
    if application_id != APPLICATION_ID.to_bytes(4, "big") and (any(application_id) or any(tables)):
        raise _foreign(path)


def _foreign(path: Path) -> StartError:
    return StartError(f"the database {path} belongs to another program; set SVC_DATA_DIR to another folder")


def _refuse_damaged(path: Path, newest: int) -> None:
    """Looks at every page through a read-only connection, so that what is refused stays as it is."""
    uri = f"{path.absolute().as_uri()}?mode=ro"
    with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS)) as conn:
        _version(conn, path, newest)
        verdict = conn.execute("PRAGMA quick_check(1)").fetchone()[0]
    if verdict != "ok":
        raise StartError(f"the database {path} is damaged ({' '.join(verdict.split())}); restore a backup")


def _version(conn: sqlite3.Connection, path: Path, newest: int) -> int:
    """The schema version, 0 for a database without tables that is nobody's."""
    application_id = conn.execute("PRAGMA application_id").fetchone()[0]
    version = int(conn.execute("PRAGMA user_version").fetchone()[0])
    tables = conn.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if not tables and application_id == 0 and version == 0:
        return 0
    if application_id != APPLICATION_ID:
        raise _foreign(path)
    if version > newest:
        raise StartError(f"the database {path} is of a newer version ({version}, known here up to {newest}); update the service")
    if version < 1:
        raise StartError(f"the database {path} is damaged (version {version}); restore a backup")
    return version


def _statements(script: str) -> Iterator[str]:
    # Not `executescript`: it would commit first, and so leave the transaction that holds the migration together.
    statement = ""
    for piece in script.split(";"):
        statement += piece + ";"
        if sqlite3.complete_statement(statement):  # a trigger's body and a string may hold semicolons too
            yield statement
            statement = ""
    yield statement
