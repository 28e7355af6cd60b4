"""SQLite under asyncio: whole functions on a connection's own thread, and writers that share one commit.

write(fn) -> waits in a list -> the writer's thread takes the whole list: BEGIN, each fn in a SAVEPOINT, one COMMIT (one fsync)
read(fn)  -> the same, on one of a few read-only connections, without a transaction
"""

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable, Sequence
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
# Each entry takes a database from one version to the next; schema.sql is always the newest as a whole.
MIGRATIONS: tuple[str, ...] = ()
READERS = 2
_BATCH = 256
_BUSY_SECONDS = 5.0
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
        self._connections = [writer, *readers]
        self._writer = _Lane(writer, _run_transaction)
        self._readers = [_Lane(reader, _run_reads) for reader in readers]

    async def write(self, fn: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs `fn(conn, *args)` as one transaction and returns its result once it is on disk.

        It runs whole even if the caller is cancelled meanwhile; what it raises rolls back itself alone.
        Raises ApiError `storage_unavailable` when the disk does not take it.
        """
        return await self._writer.run(fn, args, kwargs)

    async def read(self, fn: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs `fn(conn, *args)` on a read-only connection and returns its result."""
        return await min(self._readers, key=_Lane.load).run(fn, args, kwargs)

    async def close(self) -> None:
        for connection in reversed(self._connections):  # the writer last: it folds the WAL back into the file
            await connection.close()


class _Lane:
    """A connection and the jobs that wait for its thread."""

    def __init__(
        self, connection: aiosqlite.Connection, run_jobs: Callable[[sqlite3.Connection, list[Job]], list[Outcome]]
    ) -> None:
        self._connection = connection
        self._run_jobs = run_jobs
        self._waiting: list[Job] = []
        self._task: asyncio.Task[None] | None = None

    def load(self) -> int:
        return len(self._waiting) + (self._task is not None)

    async def run(self, fn: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> T:
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        call = fn if not kwargs else lambda conn, *rest: fn(conn, *rest, **kwargs)
        self._waiting.append((call, args, future))
        if self._task is None:
            self._task = asyncio.create_task(self._drain())
        return await future

    async def _drain(self) -> None:
        # A batch wakes the loop once, whatever its size: that is what makes many small transactions cheap.
        try:
            while self._waiting:
                jobs, self._waiting = self._waiting[:_BATCH], self._waiting[_BATCH:]
                for (_, _, future), (result, error) in zip(jobs, await self._run(jobs), strict=True):
                    if future.done():  # its caller was cancelled
                        continue
                    if error is not None:
                        future.set_exception(error)
                        continue
                    future.set_result(result)
        finally:
            self._task = None

    async def _run(self, jobs: list[Job]) -> list[Outcome]:
        # aiosqlite has no public call that runs a whole function on its thread; tests/test_db.py holds this one.
        try:
            outcomes: list[Outcome] = await self._connection._execute(lambda: self._run_jobs(self._connection._conn, jobs))
        except Exception as error:
            return [(None, error)] * len(jobs)
        return outcomes


def _run_reads(conn: sqlite3.Connection, jobs: list[Job]) -> list[Outcome]:
    outcomes: list[Outcome] = []
    for fn, args, _ in jobs:
        try:
            outcomes.append((fn(conn, *args), None))
        except Exception as error:
            outcomes.append((None, _translated(error)))
    return outcomes


def _run_transaction(conn: sqlite3.Connection, jobs: list[Job]) -> list[Outcome]:
    outcomes: list[Outcome] = []
    try:
        conn.execute("BEGIN IMMEDIATE")
        for fn, args, _ in jobs:
            conn.execute("SAVEPOINT job")
            try:
                outcomes.append((fn(conn, *args), None))
            except Exception as error:
                if not conn.in_transaction:  # a full disk or an I/O error has rolled back the jobs before this one too
                    raise
                conn.execute("ROLLBACK TO job")
                outcomes.append((None, _translated(error)))
            conn.execute("RELEASE job")
        conn.execute("COMMIT")
    except Exception as error:
        if conn.in_transaction:
            with contextlib.suppress(sqlite3.Error):
                conn.execute("ROLLBACK")
        failed = [own for _, own in outcomes] + [None] * (len(jobs) - len(outcomes))
        return [(None, own or _translated(error)) for own in failed]
    return outcomes


def _translated(error: Exception) -> Exception:
    code = getattr(error, "sqlite_errorcode", None)
    if isinstance(error, sqlite3.Error) and isinstance(code, int) and (code & 0xFF) in _STORAGE_FAULTS:
        fault = ApiError("storage_unavailable")
        fault.__cause__ = error
        return fault
    return error


async def open_database(path: Path, schema: str | None = None, migrations: Sequence[str] = MIGRATIONS) -> Database:
    """Opens the database at `path`: made anew when there is none, migrated when it is older.

    Raises StartError with one line, and touches nothing, when it is damaged, foreign or newer (contract 10).
    """
    schema = SCHEMA.read_text() if schema is None else schema
    await asyncio.to_thread(prepare, path, schema, migrations)
    opened: list[aiosqlite.Connection] = []
    try:
        for number in range(1 + READERS):
            connection = await aiosqlite.connect(path, isolation_level=None, cached_statements=256)
            opened.append(connection)
            await connection._execute(configure, connection._conn)
            if number > 0:
                await connection.execute("PRAGMA query_only = 1")
    except BaseException:
        for connection in opened:
            await connection.close()
        raise
    return Database(opened[0], opened[1:])


def configure(conn: sqlite3.Connection) -> None:
    """Sets what every connection of ours needs."""
    conn.row_factory = sqlite3.Row
    conn.execute(f"PRAGMA busy_timeout = {int(_BUSY_SECONDS * 1000)}")
    conn.execute("PRAGMA foreign_keys = ON")
    conn.execute("PRAGMA synchronous = FULL")
    conn.execute("PRAGMA trusted_schema = OFF")


@contextlib.contextmanager
def command_connection(path: Path) -> Any:
    """A connection for an operator's command beside a running server: one transaction, no checkpoint (contract 10)."""
    prepare(path, SCHEMA.read_text(), MIGRATIONS)
    conn = sqlite3.connect(path, isolation_level=None, timeout=_BUSY_SECONDS)
    try:
        configure(conn)
        conn.execute("PRAGMA wal_autocheckpoint = 0")
        conn.execute("BEGIN IMMEDIATE")
        yield conn
        conn.execute("COMMIT")
    finally:
        conn.close()


def prepare(path: Path, schema: str, migrations: Sequence[str]) -> None:
    """Makes or migrates the file at `path` in one transaction. Raises StartError as `open_database` does."""
    newest = len(migrations) + 1
    try:
        version = _version_of(path, newest) if path.exists() and path.stat().st_size else 0
        if version == newest:
            return
        script = schema if version == 0 else "".join(migrations[version - 1 :])
        conn = sqlite3.connect(path, isolation_level=None, timeout=_BUSY_SECONDS)
        try:
            conn.execute("PRAGMA journal_mode = WAL")
            conn.execute("PRAGMA synchronous = FULL")
            conn.executescript(
                f"BEGIN IMMEDIATE; {script}; PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {newest}; COMMIT;"
            )
        finally:
            conn.close()
    except sqlite3.Error as error:
        raise StartError(f"the database {path} cannot be used: {error}") from error


def _version_of(path: Path, newest: int) -> int:
    """The schema version of the file, 0 when it is still empty. Opens it read-only: a database that is refused stays as it is."""
    conn = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=_BUSY_SECONDS)
    try:
        application_id = conn.execute("PRAGMA application_id").fetchone()[0]
        version = int(conn.execute("PRAGMA user_version").fetchone()[0])
        tables = conn.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
        if not tables and application_id == 0 and version == 0:
            return 0
        if application_id != APPLICATION_ID:
            raise StartError(f"the database {path} belongs to another program; set SVC_DATA_DIR to another folder")
        if version > newest:
            raise StartError(
                f"the database {path} is of a newer version ({version}, known here up to {newest}); update the service"
            )
        verdict = conn.execute("PRAGMA quick_check(1)").fetchone()[0]
        if verdict != "ok":
            raise StartError(f"the database {path} is damaged ({verdict}); restore a backup")
        return version
    finally:
        conn.close()
