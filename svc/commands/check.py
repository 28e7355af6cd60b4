"""`svc check`: verify the whole database, also beside a running server. It reads every page."""

import argparse
import contextlib
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

from svc.billing.invariants import broken, broken_usage
from svc.commands.database import command, database
from svc.config import Config
from svc.schema import SCHEMA, as_newest, connect, newest_schema, newest_version, read_only, shape
from svc.secrets import is_locked

# Litestream keeps its position in two tables.
_OF_A_REPLICA = "_litestream_"


@command("check", "verify the database: its integrity, its schema, and the ledger against balances and usage")
def _check(config: Config, options: argparse.Namespace) -> int:
    # Two connections: integrity_check verifies CHECK constraints only on a connection that is not opened read-only.
    # While the read-only one is open, closing the other one makes no checkpoint, which would change the files.
    path = database(config)
    with read_only(path, or_older=True), contextlib.closing(connect(path, query_only=True)) as conn:
        conn.execute("BEGIN")
        version = conn.execute("PRAGMA user_version").fetchone()[0]
        is_newest = version == newest_version(newest_schema()[1])
        # A container may have no folder for temporary files.
        place = contextlib.nullcontext("") if is_newest else tempfile.TemporaryDirectory()
        with place as folder, as_newest(conn, Path(folder)) as newest:
            found = [*schema_findings(newest), *findings(newest), *broken_usage(newest)]
        open_runs = conn.execute("SELECT count(*) FROM runs WHERE status = 'running'").fetchone()[0]
        rows = sizes(conn)
    for finding in found:
        print(finding)
    if open_runs and not is_locked(config.data_dir):
        print(f"note: {open_runs} agent runs were open at the server's end; the next start ends them")
    if not is_newest:
        print(f"note: the database has schema {version}; it was checked as the next start will migrate it")
    print(f"{len(found)} findings" if found else f"ok: {rows} add up")
    return 1 if found else 0


def findings(conn: sqlite3.Connection) -> list[str]:
    """Return what is wrong in a database of the newest version, a line each: its pages, foreign keys, and the money."""
    # Each row is looked up in all its indexes. With a cache of 2 MB, a large file would be read many times.
    conn.execute("PRAGMA cache_size = -65536")
    found = [f"integrity: {row[0]}" for row in conn.execute("PRAGMA integrity_check") if row[0] != "ok"]
    found += [
        f"table {row[0]}, row {row[1]}: it refers to a missing row" for row in conn.execute("PRAGMA foreign_key_check")
    ]
    return found + broken(conn)


def sizes(conn: sqlite3.Connection) -> str:
    wallets, entries = conn.execute("SELECT (SELECT count(*) FROM wallets), (SELECT count(*) FROM ledger)").fetchone()
    return f"{wallets} wallets and {entries} ledger rows"


def schema_findings(conn: sqlite3.Connection) -> Iterator[str]:
    """Return how the schema of a database differs from the newest one, which holds the rules of the money."""
    with contextlib.closing(sqlite3.connect(":memory:")) as newest:
        newest.executescript(SCHEMA.read_text())
        expected, found = shape(newest), shape(conn)
        found = {place: sql for place, sql in found.items() if not place[1].startswith(_OF_A_REPLICA)}
        for kind, name in sorted(expected.keys() | found.keys()):
            if (kind, name) not in found:
                yield f"schema: the {kind} {name} is missing"
            elif (kind, name) not in expected:
                yield f"schema: the {kind} {name} was added"
            elif expected[kind, name] != found[kind, name]:
                known, there = _columns(newest, name), _columns(conn, name)
                changes = [f"without {column}" for column in sorted(known - there)]
                changes += [f"with the new column {column}" for column in sorted(there - known)]
                yield f"schema: the {kind} {name} was changed{': ' * bool(changes)}{', '.join(changes)}"


def _columns(conn: sqlite3.Connection, table: str) -> set[str]:
    return {row[0] for row in conn.execute("SELECT name FROM pragma_table_info(?)", (table,))}
