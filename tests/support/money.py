"""Verify the money of a service by its database alone, with separate SQL: read-only, beside a running server or after a
kill.

Usage:
    watch(database)              # once, before any paid call: the database then keeps a row of every hold
    assert_exact(database)       # nothing is under way: no hold is left, no run is open
    assert_exact(database, idle=False)
"""

import contextlib
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from svc.billing import invariants

_WITNESS = """
CREATE TABLE IF NOT EXISTS witness_holds (id TEXT PRIMARY KEY, account_id TEXT, amount_micros INTEGER,
    ends INTEGER DEFAULT 0);
CREATE TRIGGER IF NOT EXISTS witness_begin AFTER INSERT ON holds BEGIN
    INSERT INTO witness_holds (id, account_id, amount_micros) VALUES (NEW.id, NEW.account_id, NEW.amount_micros);
END;
CREATE TRIGGER IF NOT EXISTS witness_end AFTER DELETE ON holds BEGIN
    UPDATE witness_holds SET ends = ends + 1 WHERE id = OLD.id;
END;
"""


def most_tokens(body: dict[str, Any]) -> int:
    """Return the tokens that are held for the body of a chat request without media, as it is sent."""
    framed = [*body["messages"], *(body.get("tools") or ()), *(body.get("functions") or ())]
    for message in body["messages"]:
        framed += message["content"] if isinstance(message["content"], list) else ()
        framed += message.get("tool_calls") or ()
    return len(orjson.dumps(body)) + 16 * len(framed)


def watch(database: Path) -> None:
    """Adds a table to the database in which every hold stays, with how often it ended."""
    with contextlib.closing(sqlite3.connect(database, timeout=10, isolation_level=None)) as conn:
        conn.executescript(_WITNESS)


def unwatch(database: Path) -> None:
    """Remove that table: `svc check` reports tables that are not its own."""
    with contextlib.closing(sqlite3.connect(database, timeout=10, isolation_level=None)) as conn:
        for what in ("TRIGGER witness_begin", "TRIGGER witness_end", "TABLE witness_holds"):
            conn.execute(f"DROP {what}")


@contextlib.contextmanager
def reading(database: Path) -> Iterator[sqlite3.Connection]:
    """A read-only connection in one snapshot."""
    with contextlib.closing(
        sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=10, isolation_level=None)
    ) as conn:
        conn.row_factory = sqlite3.Row
        conn.execute("BEGIN")
        yield conn


def rows(database: Path, query: str, *values: Any) -> list[tuple[Any, ...]]:
    with reading(database) as conn:
        return [tuple(row) for row in conn.execute(query, values)]


def assert_exact(database: Path, *, idle: bool = True) -> None:
    """Fails with every rule of the wallet that the database breaks; `idle`: nothing may be under way."""
    with reading(database) as conn:
        found = findings(conn) + (_open(conn) if idle else [])
    assert found == []


def findings(conn: sqlite3.Connection) -> list[str]:
    """What is wrong with the money, by the service's own check and by a reading that shares nothing with it."""
    found = invariants.broken(conn)
    found += [f"integrity: {row[0]}" for row in conn.execute("PRAGMA integrity_check") if row[0] != "ok"]
    balances: dict[str, int] = defaultdict(int)
    for row in conn.execute("SELECT * FROM ledger ORDER BY seq").fetchall():
        if row["account_id"] is None:
            continue
        balances[row["account_id"]] += row["amount_micros"]
        if row["balance_after_micros"] != balances[row["account_id"]] or row["balance_after_micros"] < 0:
            found.append(
                f"ledger {row['seq']}: {row['balance_after_micros']} after it, not {balances[row['account_id']]}"
            )
    held: dict[str, int] = defaultdict(int)
    for row in conn.execute("SELECT * FROM holds").fetchall():
        held[row["account_id"]] += row["amount_micros"]
    for row in conn.execute("SELECT * FROM wallets").fetchall():
        due = balances[row["account_id"]]
        if row["balance_micros"] != due or not 0 <= held[row["account_id"]] <= due:
            found.append(
                f"wallet {row['account_id']}: {row['balance_micros']}, not {due}, {held[row['account_id']]} held"
            )
    spent = conn.execute(
        "SELECT account_id, -sum(amount_micros) FROM ledger WHERE model IS NOT NULL GROUP BY 1"
    ).fetchall()
    used = dict(conn.execute("SELECT account_id, sum(cost_micros) FROM usage_days GROUP BY 1").fetchall())
    found += [
        f"{who}: {micros} debited, {used.get(who)} used" for who, micros in spent if who and used.get(who) != micros
    ]
    return found + (_against_holds(conn) if _is_watched(conn) else [])


def _is_watched(conn: sqlite3.Connection) -> bool:
    return conn.execute("SELECT 1 FROM sqlite_schema WHERE name = 'witness_holds'").fetchone() is not None


def _against_holds(conn: sqlite3.Connection) -> list[str]:
    holds = {row["id"]: row for row in conn.execute("SELECT * FROM witness_holds")}
    still_open = {row["id"] for row in conn.execute("SELECT id FROM holds")}
    found = [
        f"hold {id} ended {row['ends']} times" for id, row in holds.items() if row["ends"] != (id not in still_open)
    ]
    for row in conn.execute("SELECT * FROM ledger WHERE model IS NOT NULL").fetchall():
        hold = holds.get(row["reference"])
        if (
            hold is None
            or -row["amount_micros"] > hold["amount_micros"]
            or row["account_id"] not in (None, hold["account_id"])
        ):
            found.append(f"ledger {row['seq']}: a debit of {-row['amount_micros']} without such a hold")
    return found


def _open(conn: sqlite3.Connection) -> list[str]:
    holds = [f"hold {row['id']} is left" for row in conn.execute("SELECT id FROM holds")]
    holds += [f"room {row['id']} is reserved" for row in conn.execute("SELECT id FROM reserved_room")]
    return holds + [f"run {row['id']} is open" for row in conn.execute("SELECT id FROM runs WHERE status = 'running'")]
