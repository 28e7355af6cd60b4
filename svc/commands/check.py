"""`svc check`: the proof of a database, as a whole and beside a running server. It reads every page."""

import argparse
import contextlib
import sqlite3
from collections.abc import Iterator
from typing import Any

from svc.billing import matching, usage, wallet
from svc.commands.database import database, is_served, reading
from svc.config import Config
from svc.schema import SCHEMA, connect, shape

# Litestream keeps its place in two tables of its own.
_OF_A_REPLICA = "_litestream_"


def add_parsers(commands: Any) -> None:
    text = "prove the database: its integrity, its schema, the ledger against balances and usage, what a crash left open"
    commands.add_parser("check", help=text).set_defaults(run=_check)


def _check(config: Config, options: argparse.Namespace) -> int:
    """One state of the database, read beside a running server without stopping its writes; every finding is a line."""
    # SQLite examines CHECK constraints on a connection that could write alone. The one that cannot keeps it from folding a log.
    with reading(config), contextlib.closing(connect(database(config), query_only=True)) as conn:
        conn.execute("BEGIN")
        found = [*schema_findings(conn), *findings(conn), *usage.verify(conn)]
        left_open = 0 if is_served(config) else _left_open(conn)
        rows = sizes(conn)
    for finding in found:
        print(finding)
    if left_open:
        print(f"note: {left_open} agent runs were open when the server stopped or the backup was made; the next start ends them")
    print(f"{len(found)} findings" if found else f"ok: {rows} add up")
    return 1 if found else 0


def findings(conn: sqlite3.Connection) -> list[str]:
    """What is wrong in a database of any version, a line each: its pages, what rows refer to, the money."""
    # Each row is looked up in each of its indexes: with SQLite's usual 2 MB of pages in memory a large file is read many times.
    conn.execute("PRAGMA cache_size = -65536")
    found = [f"integrity: {row[0]}" for row in conn.execute("PRAGMA integrity_check") if row[0] != "ok"]
    found += [f"table {row[0]}, row {row[1]}: what it refers to is gone" for row in conn.execute("PRAGMA foreign_key_check")]
    return found + wallet.verify(conn) + matching.verify(conn)


def sizes(conn: sqlite3.Connection) -> str:
    wallets, entries = conn.execute("SELECT (SELECT count(*) FROM wallets), (SELECT count(*) FROM ledger)").fetchone()
    return f"{wallets} wallets and {entries} ledger rows"


def schema_findings(conn: sqlite3.Connection) -> Iterator[str]:
    """Where the schema of a database is not the newest one: the rules of the money stand there, and a trigger that was dropped
    breaks nothing at once."""
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


def _left_open(conn: sqlite3.Connection) -> int:
    """The number of agent runs that no server works on. They are no fault, and holds take no money: the next start ends both."""
    return int(conn.execute("SELECT count(*) FROM runs WHERE status = 'running'").fetchone()[0])
