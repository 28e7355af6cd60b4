"""Which database files a start takes: made where there is none, migrated where it is older, refused where it is not ours."""

import contextlib
import fcntl
import logging
import os
import re
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from svc.errors import StartError
from svc.secrets import give_to_owner, is_locked

APPLICATION_ID = 0x53564331  # "SVC1" in the file's header: tells our databases from anybody else's
SCHEMA = Path(__file__).parent.parent / "schema.sql"
# The schema version of release 1.0.0. Databases of the versions before it were never released and are refused.
FIRST_VERSION = 5
# A script's name is the version that it leads to, from FIRST_VERSION + 1; schema.sql is the newest schema as a whole.
_MIGRATIONS = Path(__file__).parent / "migrations"
_BUSY_SECONDS = 5.0
_LOG_BYTES = 64 * 1024 * 1024
_PAGE_BYTES = 4096
_READ_WHOLE_BYTES = 8 * 1024 * 1024
_log = logging.getLogger(__name__)


def newest_schema() -> tuple[str, list[str]]:
    """Return schema.sql, and the scripts that migrate an older database to it, one for each version after FIRST_VERSION."""
    paths = sorted(_MIGRATIONS.glob("*.sql"), key=lambda path: int(path.stem))
    return SCHEMA.read_text(), [path.read_text() for path in paths]


def newest_version(migrations: Sequence[str]) -> int:
    """Return the schema version that a database has after all `migrations`."""
    return FIRST_VERSION + len(migrations)


def connect(path: Path, query_only: bool = False) -> sqlite3.Connection:
    """A connection with what each of ours needs: rows by name, no implicit transactions, foreign keys; and where it writes, WAL,
    synchronous FULL, no checkpoint within a commit (see svc/checkpoint.py)."""
    conn = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, cached_statements=256)
    try:
        conn.row_factory = sqlite3.Row
        conn.execute("PRAGMA foreign_keys = ON")
        conn.execute("PRAGMA trusted_schema = OFF")
        conn.execute(f"PRAGMA query_only = {int(query_only)}")
        if not query_only:  # for most of these SQLite reads the schema, 2 ms, for which others wait until their first query
            conn.execute("PRAGMA journal_mode = WAL")
            conn.execute("PRAGMA synchronous = FULL")
            conn.execute("PRAGMA wal_autocheckpoint = 0")
            # A log that a long reader made big is cut when it begins anew.
            conn.execute(f"PRAGMA journal_size_limit = {_LOG_BYTES}")
            # What is deleted was somebody's words: it is overwritten, also where an index is only put together anew.
            conn.execute("PRAGMA secure_delete = ON")
    except BaseException:
        conn.close()
        raise
    return conn


def existing(path: Path) -> Path:
    """`path`, where a database must be. Raises StartError: only a start and `svc user add` make one."""
    if not path.exists():
        raise StartError(f"there is no database in {path.parent}; SVC_DATA_DIR names the data folder")
    return path


@contextlib.contextmanager
def read_only(path: Path) -> Iterator[sqlite3.Connection]:
    """One state of the database at `path`, of any version, read without changing anything in its folder and without holding up
    a server. Raises StartError where there is no database of ours, and where a server begins to write to it meanwhile."""
    with start_errors(existing(path)):
        _refuse_foreign(path)
        # With neither a server nor a log that one left, SQLite would make its side files merely to read.
        unused = not any(path.with_name(f"{path.name}-{end}").exists() for end in ("wal", "journal"))
        before = path.stat()
        uri = f"{path.absolute().as_uri()}?{'immutable=1' if unused else 'mode=ro'}"
        conn = sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)
    with contextlib.closing(conn):
        conn.row_factory = sqlite3.Row
        conn.execute("PRAGMA trusted_schema = OFF")
        conn.execute("BEGIN")
        yield conn
    after = path.stat()
    if unused and (after.st_mtime_ns, after.st_size) != (before.st_mtime_ns, before.st_size):
        raise StartError(f"a server has begun to write to {path} meanwhile: run the command again")


def check_version(conn: sqlite3.Connection, path: Path) -> None:
    """Raises StartError if the database of a `read_only` connection is not of the newest version."""
    newest = newest_version(newest_schema()[1])
    version = _version(conn, path, newest)
    if version != newest:
        raise (
            _older(path)
            if is_locked(path.parent)
            else StartError(
                f"the database {path} is of an older version ({version}, here {newest}): start the service, which upgrades it"
            )
        )


@contextlib.contextmanager
def command_connection(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection for an operator's command beside a running server: one transaction, no checkpoint.

    Raises StartError as `open_database` does, sqlite3.OperationalError when another process writes for over 5 seconds.
    """
    try:
        with contextlib.closing(connect_prepared(path, *newest_schema(), may_upgrade=not is_locked(path.parent))) as conn:
            conn.execute("BEGIN IMMEDIATE")
            yield conn
            conn.execute("COMMIT")
    finally:
        give_to_owner(path.parent)


def connect_prepared(path: Path, schema: str, migrations: Sequence[str], *, may_upgrade: bool = True) -> sqlite3.Connection:
    """A connection that writes to the file at `path`, which it has made or migrated in one transaction; an older database is kept
    beside it first (`kept_path`).

    Raises StartError as `open_database` does, and for an older database unless it `may_upgrade`: an older server is using it.
    """
    with start_errors(path), _alone_in(path.parent), contextlib.ExitStack() as stack:
        if not _is_blank(path):
            _refuse_foreign(path)
            _refuse_damaged(path, newest_version(migrations))
        conn = stack.enter_context(contextlib.closing(connect(path)))
        # Foreign keys would make a migration that replaces a table delete the rows that refer to it.
        conn.execute("PRAGMA foreign_keys = OFF")
        conn.execute("BEGIN IMMEDIATE")
        _migrate(conn, path, schema, migrations, may_upgrade)
        conn.execute("COMMIT")
        conn.execute("PRAGMA foreign_keys = ON")
        stack.pop_all()  # it stays open
        return conn


def _migrate(conn: sqlite3.Connection, path: Path, schema: str, migrations: Sequence[str], may_upgrade: bool) -> None:
    newest = newest_version(migrations)
    version = _version(conn, path, newest)
    if version == newest:
        return
    if version and not may_upgrade:
        raise _older(path)
    if version:
        _keep(path, version)
    for script in migrations[version - FIRST_VERSION :] if version else [schema]:
        for statement in _statements(script):
            conn.execute(statement)
    if conn.execute("PRAGMA foreign_key_check").fetchone():
        raise StartError(f"the database {path} cannot be migrated: rows would refer to rows that are gone")
    conn.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    conn.execute(f"PRAGMA user_version = {newest}")
    if version:
        kept = kept_path(path, version)
        _log.warning("migrated the database from schema version %d to %d; the old one is kept as %s", version, newest, kept)


def kept_path(path: Path, version: int) -> Path:
    """Where the database at `path` is kept as it was at `version`, when it is taken to a newer one."""
    return path.with_name(f"{path.name}.version-{version}")


def _keep(path: Path, version: int) -> None:
    """Copies the database to `kept_path`, whole and on disk. Raises StartError, and leaves no half copy."""
    kept = kept_path(path, version)
    fresh = kept.with_name(f"{kept.name}.new")
    try:
        fresh.unlink(missing_ok=True)
        fresh.touch(mode=0o600)
        # The connection that migrates cannot be copied from while it is in its transaction; this one sees the state before it.
        with contextlib.closing(connect(path, query_only=True)) as source, contextlib.closing(sqlite3.connect(fresh)) as copy:
            source.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")  # what it holds is in this one file
            verdict = copy.execute("PRAGMA quick_check(1)").fetchone()[0]
        if verdict != "ok":
            raise StartError(f"the database {path} is damaged ({' '.join(verdict.split())}); restore a backup")
        with fresh.open("rb") as file:
            os.fsync(file.fileno())
        fresh.rename(kept)
    except (OSError, sqlite3.Error) as error:
        raise StartError(f"the database {path} is not migrated: no copy of it can be kept as {kept}: {error}") from error
    finally:
        fresh.unlink(missing_ok=True)


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
def start_errors(path: Path) -> Iterator[None]:
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
    """Looks at the file through a read-only connection, so that what is refused stays as it is.

    A small file is read whole; of a big one, which would take many seconds, its length and the first and last rows of each table:
    there a write that was cut off shows. `svc check` reads everything.
    """
    uri = f"{path.absolute().as_uri()}?mode=ro"
    with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS)) as conn:
        _version(conn, path, newest)
        pages, page_bytes = (conn.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
        log = path.with_name(f"{path.name}-wal")
        if path.stat().st_size < pages * page_bytes and not (log.exists() and log.stat().st_size):
            raise StartError(f"the database {path} is damaged (its end is missing); restore a backup")
        if pages * page_bytes <= _READ_WHOLE_BYTES:
            verdict = conn.execute("PRAGMA quick_check(1)").fetchone()[0]
            if verdict != "ok":
                raise StartError(f"the database {path} is damaged ({' '.join(verdict.split())}); restore a backup")
            return
        for (table,) in conn.execute("SELECT name FROM pragma_table_list WHERE type = 'table' AND schema = 'main'").fetchall():
            for direction in ("ASC", "DESC"):
                conn.execute(f"SELECT * FROM {table} ORDER BY 1 {direction} LIMIT 20").fetchall()  # noqa: S608 - our own names


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
        raise _newer(path, version, newest)
    if version < 1:
        raise StartError(f"the database {path} is damaged (version {version}); restore a backup")
    if version < FIRST_VERSION:
        raise StartError(
            f"the database {path} was made by a version before 1.0.0 (schema {version}), which cannot be migrated: "
            "set SVC_DATA_DIR to a new folder"
        )
    return version


def _older(path: Path) -> StartError:
    return StartError(f"the server that uses {path} is of an older version: restart it, which upgrades the database")


def _newer(path: Path, version: int, newest: int) -> StartError:
    kept = next(
        (kept_path(path, older) for older in range(newest, FIRST_VERSION - 1, -1) if kept_path(path, older).exists()), None
    )
    back = f"'svc restore {kept}' makes a new folder of what it was before" if kept else "restore a backup from before"
    return StartError(
        f"the database {path} is of a newer version ({version}, known here up to {newest}), from which there is no way back: "
        f"install the newer service again, or {back}"
    )


def shape(conn: sqlite3.Connection) -> dict[tuple[str, str], str]:
    """Every table, index, trigger and view by kind and name: its SQL without comments, and with as little space as it needs, as
    it is the same whether it was made at once or by migrations."""
    rows = conn.execute("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
    return {(kind, name): _bare(sql) for kind, name, sql in rows}


def _bare(sql: str) -> str:
    without_comments = re.sub(r"--[^\n]*", " ", sql).replace('"', "")
    return re.sub(r" ?([(),]) ?", r"\1", re.sub(r"\s+", " ", without_comments)).strip()


def _statements(script: str) -> Iterator[str]:
    # Not `executescript`: it would commit first, and so leave the transaction that holds the migration together.
    statement = ""
    for piece in script.split(";"):
        statement += piece + ";"
        if sqlite3.complete_statement(statement):  # a trigger's body and a string may hold semicolons too
            yield statement
            statement = ""
    yield statement
