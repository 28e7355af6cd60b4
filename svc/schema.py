"""Prepare a database file at start: create it, migrate an older one, refuse one that is not ours."""

import contextlib
import logging
import re
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from svc.errors import StartError
from svc.secrets import give_to_owner, is_locked, locked, private_file

APPLICATION_ID = 0x53564331  # "SVC1" in the file's header identifies our databases
SCHEMA = Path(__file__).parent.parent / "schema.sql"
# The schema version of release 1.0.0. Older versions were never released and are refused.
FIRST_VERSION = 5
# A script's name is the version after it, from FIRST_VERSION + 1. schema.sql is the newest schema.
MIGRATIONS = Path(__file__).parent / "migrations"
_WITH_DELETED_FILES = 5  # up to this version, the contents of deleted files stayed in free pages
BUSY_SECONDS = 5.0
_LOG_BYTES = 64 * 1024 * 1024
_PAGE_BYTES = 4096
_READ_WHOLE_BYTES = 8 * 1024 * 1024
_log = logging.getLogger(__name__)


def newest_schema() -> tuple[str, list[str]]:
    """Return schema.sql, and the scripts that migrate to it, one for each version after FIRST_VERSION."""
    paths = sorted(MIGRATIONS.glob("*.sql"), key=lambda path: int(path.stem))
    return SCHEMA.read_text(), [path.read_text() for path in paths]


def newest_version(migrations: Sequence[str]) -> int:
    return FIRST_VERSION + len(migrations)


def connect(path: Path, query_only: bool = False) -> sqlite3.Connection:
    """Return a connection without implicit transactions and checkpoints (svc/checkpoint.py makes them)."""
    conn = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, cached_statements=256)
    conn.row_factory = sqlite3.Row
    conn.execute("PRAGMA foreign_keys = ON")
    conn.execute("PRAGMA trusted_schema = OFF")
    conn.execute(f"PRAGMA query_only = {int(query_only)}")
    if not query_only:  # most of these read the schema, which takes 2 ms
        conn.execute("PRAGMA journal_mode = WAL")
        conn.execute("PRAGMA synchronous = FULL")
        conn.execute("PRAGMA wal_autocheckpoint = 0")
        # A log that has grown because of a long reader is truncated when it restarts.
        conn.execute(f"PRAGMA journal_size_limit = {_LOG_BYTES}")
        # Overwrite deleted texts, also when a page of an index is only reorganized.
        conn.execute("PRAGMA secure_delete = ON")
    return conn


def existing(path: Path) -> Path:
    """Return `path`. Raises StartError if there is no database: only a start and `svc user add` create one."""
    if not path.exists():
        raise StartError(f"there is no database in {path.parent}; SVC_DATA_DIR names the data folder")
    return path


@contextlib.contextmanager
def read_only(path: Path, *, any_version: bool = False, or_older: bool = False) -> Iterator[sqlite3.Connection]:
    """Yield a connection to one snapshot of the database at `path`. It changes no file in the folder.

    Raises StartError if it is not our database, or not of the newest version unless `any_version` or `or_older`. So it
    does if a server begins to write to it during the block.
    """
    with start_errors(existing(path)):
        _refuse_foreign(path)
        # Without a server and without the log of one, SQLite would create its side files only to read.
        unused = not any(path.with_name(f"{path.name}-{end}").exists() for end in ("wal", "journal"))
        before = path.stat()
        uri = f"{path.absolute().as_uri()}?{'immutable=1' if unused else 'mode=ro'}"
        conn = sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None)
    with contextlib.closing(conn):
        conn.row_factory = sqlite3.Row
        conn.execute("PRAGMA trusted_schema = OFF")
        conn.execute("BEGIN")
        newest = newest_version(newest_schema()[1])
        if not any_version and (version := _version(conn, path, newest)) != newest and not or_older:
            text = f"the database {path} has version {version}, not {newest}: start the service, which migrates it"
            raise _older(path) if is_locked(path.parent) else StartError(text)
        yield conn
    after = path.stat()
    if unused and (after.st_mtime_ns, after.st_size) != (before.st_mtime_ns, before.st_size):
        raise StartError(f"a server has begun to write to {path}: run the command again")


@contextlib.contextmanager
def command_connection(path: Path) -> Iterator[sqlite3.Connection]:
    """Yield a connection in one transaction for an operator's command, also beside a running server.

    Raises StartError as `open_database` does, and sqlite3.OperationalError if others write for 5 seconds.
    """
    try:
        prepared = connect_prepared(path, *newest_schema(), may_upgrade=not is_locked(path.parent))
        with contextlib.closing(prepared) as conn:
            conn.execute("BEGIN IMMEDIATE")
            yield conn
            conn.execute("COMMIT")
    finally:
        give_to_owner(path.parent)


def connect_prepared(
    path: Path, schema: str, migrations: Sequence[str], *, may_upgrade: bool = True
) -> sqlite3.Connection:
    """Return a connection that writes to the file at `path`, after it was created or migrated in one transaction.

    An older database is first copied to `kept_path`; without `may_upgrade` it is refused, because an older server is
    using it. Raises StartError as `open_database` does.
    """
    # One process after another prepares the file: SQLite's switch to WAL does not wait.
    with start_errors(path), locked(path.parent), contextlib.ExitStack() as stack:
        if not _is_blank(path):
            with read_only(path, any_version=True) as conn:
                _version(conn, path, newest_version(migrations))
                _refuse_damaged(conn, path)
        conn = stack.enter_context(contextlib.closing(connect(path)))
        # With foreign keys, a migration that replaces a table would delete the rows that refer to it.
        conn.execute("PRAGMA foreign_keys = OFF")
        conn.execute("BEGIN IMMEDIATE")
        before = _migrate(conn, path, schema, migrations, may_upgrade)
        conn.execute("COMMIT")
        conn.execute("PRAGMA foreign_keys = ON")
        if before == _WITH_DELETED_FILES:
            _delete_free_pages(conn)
        stack.pop_all()  # the connection stays open after this function
        return conn


def _migrate(conn: sqlite3.Connection, path: Path, schema: str, migrations: Sequence[str], may_upgrade: bool) -> int:
    """Create or migrate the database and return its version before, 0 for a new one."""
    newest = newest_version(migrations)
    version = _version(conn, path, newest)
    if version == newest:
        return version
    if version and not may_upgrade:
        raise _older(path)
    if version:
        _keep(path, version)
    _run_scripts(conn, path, migrations[version - FIRST_VERSION :] if version else [schema], newest)
    if version:
        kept = kept_path(path, version)
        _log.warning(
            "migrated the database from schema version %d to %d; a copy of the old one is %s", version, newest, kept
        )
    return version


def _run_scripts(conn: sqlite3.Connection, path: Path, scripts: Sequence[str], newest: int) -> None:
    for script in scripts:
        for statement in _statements(script):
            conn.execute(statement)
    if conn.execute("PRAGMA foreign_key_check").fetchone():
        raise StartError(f"the database {path} cannot be migrated: rows would refer to deleted rows")
    conn.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    conn.execute(f"PRAGMA user_version = {newest}")


@contextlib.contextmanager
def as_newest(conn: sqlite3.Connection, folder: Path) -> Iterator[sqlite3.Connection]:
    """Yield `conn`, or if its database is older a connection to a copy in `folder`, migrated as a start would do it.

    Raises StartError if that fails.
    """
    migrations, path = newest_schema()[1], folder / "migrated.db"
    newest, version = newest_version(migrations), conn.execute("PRAGMA user_version").fetchone()[0]
    if version >= newest:
        yield conn
        return
    with private_file(path):
        pass
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as copy:
        try:
            conn.backup(copy)
            copy.row_factory = sqlite3.Row
            copy.execute("PRAGMA journal_mode = DELETE")
            copy.execute("PRAGMA synchronous = OFF")
            copy.execute("BEGIN")
            _run_scripts(copy, path, migrations[version - FIRST_VERSION :], newest)
            copy.execute("COMMIT")
        except sqlite3.Error as error:
            raise StartError(f"the database of schema {version} cannot be migrated: {error}") from error
        yield copy
    path.unlink()


def _delete_free_pages(conn: sqlite3.Connection) -> None:
    if conn.execute("PRAGMA freelist_count").fetchone()[0]:
        try:
            conn.execute("VACUUM")
        except sqlite3.Error as error:
            _log.warning("deleted files are still in free pages of the database, until others use them: %s", error)


def kept_path(path: Path, version: int) -> Path:
    """Return the path of the copy of the database at `version`, made before its migration."""
    return path.with_name(f"{path.name}.version-{version}")


def _keep(path: Path, version: int) -> None:
    """Copy the database to `kept_path` and sync it. Raises StartError, and then leaves no incomplete copy."""
    kept = kept_path(path, version)
    fresh = kept.with_name(f"{kept.name}.new")
    try:
        # The migrating connection is in a transaction, so another one is copied, which sees the state before it.
        with (
            private_file(kept),
            contextlib.closing(connect(path, query_only=True)) as source,
            contextlib.closing(sqlite3.connect(fresh)) as copy,
        ):
            source.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")  # one file
            _refuse_unsound(copy, path)
    except (OSError, sqlite3.Error) as error:
        text = f"the database {path} is not migrated, because it cannot be copied to {kept}: {error}"
        raise StartError(text) from error
    finally:
        fresh.unlink(missing_ok=True)


@contextlib.contextmanager
def start_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError, UnicodeError) as error:
        raise StartError(f"the database {path} cannot be used: {' '.join(str(error).split())}") from error


def _is_blank(path: Path) -> bool:
    """Whether there is no data: no file, no bytes, or one page with the journal of a killed process."""
    if not path.exists():
        return True
    size = path.stat().st_size
    return size == 0 or (size <= _PAGE_BYTES and path.with_name(f"{path.name}-journal").exists())


def _refuse_foreign(path: Path) -> None:
    """Check the first page. SQLite would create its side files beside the database of another program."""
    with path.open("rb") as file:
        page = file.read(_PAGE_BYTES)
    if not page.startswith(b"SQLite format 3\0"):
        raise StartError(
            f"{path} is damaged or not a database; restore a backup, or set SVC_DATA_DIR to another folder"
        )
    application_id, tables = page[68:72], page[103:105]
    if application_id != APPLICATION_ID.to_bytes(4, "big") and (any(application_id) or any(tables)):
        raise _foreign(path)


def _foreign(path: Path) -> StartError:
    return StartError(f"the database {path} belongs to another program; set SVC_DATA_DIR to another folder")


def _refuse_damaged(conn: sqlite3.Connection, path: Path) -> None:
    """Check the file through a read-only connection, so that a refused file does not change.

    A small file is read completely. For a large one that takes many seconds, so only its length and the ends of each
    table are checked, to find a truncated file. `svc check` reads everything.
    """
    pages, page_bytes = (conn.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
    log = path.with_name(f"{path.name}-wal")
    if path.stat().st_size < pages * page_bytes and not (log.exists() and log.stat().st_size):
        raise StartError(f"the database {path} is damaged (its end is missing); restore a backup")
    if pages * page_bytes <= _READ_WHOLE_BYTES:
        _refuse_unsound(conn, path)
        return
    tables = conn.execute("SELECT name FROM pragma_table_list WHERE type = 'table' AND schema = 'main'").fetchall()
    for (table,) in tables:
        for direction in ("ASC", "DESC"):
            conn.execute(f"SELECT * FROM {table} ORDER BY 1 {direction} LIMIT 20").fetchall()  # noqa: S608 - our own names


def _refuse_unsound(conn: sqlite3.Connection, path: Path) -> None:
    verdict = conn.execute("PRAGMA quick_check(1)").fetchone()[0]
    if verdict != "ok":
        raise StartError(f"the database {path} is damaged ({' '.join(verdict.split())}); restore a backup")


def _version(conn: sqlite3.Connection, path: Path, newest: int) -> int:
    """Return the schema version, 0 for an empty database. Raises StartError if it is not ours."""
    application_id = conn.execute("PRAGMA application_id").fetchone()[0]
    version = int(conn.execute("PRAGMA user_version").fetchone()[0])
    tables = conn.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if not tables and application_id == 0 and version == 0:
        return 0
    if application_id != APPLICATION_ID:
        raise _foreign(path)
    if version > newest:
        copies = (kept_path(path, older) for older in range(newest, FIRST_VERSION - 1, -1))
        kept = next((copy for copy in copies if copy.exists()), None)
        restoring = f"run 'svc restore {kept}', which makes a new folder of the older one"
        advice = restoring if kept else "restore an older backup"
        raise StartError(
            f"the database {path} has a newer version ({version}, known here up to {newest}): "
            f"install the newer service again, or {advice}"
        )
    if version < 1:
        raise StartError(f"the database {path} is damaged (version {version}); restore a backup")
    if version < FIRST_VERSION:
        raise StartError(
            f"the database {path} is from a version before 1.0.0 (schema {version}) and cannot be migrated: "
            "set SVC_DATA_DIR to a new folder"
        )
    return version


def _older(path: Path) -> StartError:
    return StartError(f"the server that uses {path} has an older version: restart it, which migrates the database")


def shape(conn: sqlite3.Connection) -> dict[tuple[str, str], str]:
    """Return the SQL of the schema by kind and name. A new and a migrated database have the same."""
    rows = conn.execute("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
    return {(kind, name): _bare(sql) for kind, name, sql in rows}


def _bare(sql: str) -> str:
    without_comments = re.sub(r"--[^\n]*", " ", sql).replace('"', "")
    return re.sub(r" ?([(),]) ?", r"\1", re.sub(r"\s+", " ", without_comments)).strip()


def _statements(script: str) -> Iterator[str]:
    # `executescript` would commit the transaction first.
    statement = ""
    for part in script.split(";"):
        statement += part + ";"
        if sqlite3.complete_statement(statement):  # triggers and strings may contain semicolons
            yield statement
            statement = ""
    yield statement
