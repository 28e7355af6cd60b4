"""What is known about the operator's tool servers, between two readings and after a restart."""

import sqlite3
from collections.abc import Iterable
from typing import Any

import orjson

from svc import audit
from svc.errors import ApiError
from svc.inference.tool_servers.operator_server import OperatorServer
from svc.inference.tool_servers.reading import Reading, accepted_now, columns_of, due_before
from svc.outbound.addresses import same_origin


def sync(tx: sqlite3.Connection, servers: Iterable[OperatorServer], now_seconds: float) -> None:
    """Store which servers the catalog has, and their changes in the audit log. All are read again.

    The tools of a new address are accepted as they are, like those of a new server.
    """
    before = {row["name"]: row for row in rows(tx)}
    for server in servers:
        row = before.pop(server.name, None)
        if row is None or row["settings"] != server.settings:
            moved = row is None or not same_origin(orjson.loads(row["settings"])["url"], server.url)
            tx.execute(
                """
                INSERT INTO operator_tool_servers (name, settings) VALUES (?1, ?2)
                ON CONFLICT (name) DO UPDATE SET settings = ?2, tools = iif(?3, '[]', tools),
                    accepted = iif(?3, NULL, accepted)
                """,
                (server.name, server.settings, moved),
            )
            action = "tool_server.add" if row is None else "tool_server.change"
            audit.add(tx, now_seconds, audit.OPERATOR, action, server.name, orjson.loads(server.settings))
    for name in before:
        tx.execute("DELETE FROM operator_tool_servers WHERE name = ?", (name,))
        audit.add(tx, now_seconds, audit.OPERATOR, "tool_server.delete", name)
    tx.execute("UPDATE operator_tool_servers SET read_at = NULL")


def rows(conn: sqlite3.Connection) -> list[sqlite3.Row]:
    return conn.execute("SELECT * FROM operator_tool_servers ORDER BY name").fetchall()


def exist(conn: sqlite3.Connection) -> bool:
    """Return whether the catalog had tool servers the last time."""
    return bool(conn.execute("SELECT EXISTS (SELECT 1 FROM operator_tool_servers)").fetchone()[0])


def due(conn: sqlite3.Connection, now_seconds: float) -> list[str]:
    """Return the names of the servers that are to be read."""
    query = "SELECT name FROM operator_tool_servers WHERE read_at IS NULL OR read_at < iif(failed, ?2, ?1)"
    return [name for (name,) in conn.execute(query, due_before(now_seconds))]


def store(tx: sqlite3.Connection, server: OperatorServer, reading: Reading, now_seconds: float) -> bool:
    """Store a reading, unless the catalog has changed since it began. Return whether the tools have changed."""
    query = "SELECT * FROM operator_tool_servers WHERE name = ? AND settings = ?"
    if (row := tx.execute(query, (server.name, server.settings)).fetchone()) is None:
        return False
    columns: dict[str, Any] = columns_of(reading, row["accepted"], now_seconds, server.tools or ())
    assigned = ", ".join(f"{column} = :{column}" for column in columns)
    statement = f"UPDATE operator_tool_servers SET {assigned} WHERE name = :name"  # noqa: S608 - our names
    tx.execute(statement, {**columns, "name": server.name})
    return bool(columns.get("tools", row["tools"]) != row["tools"])


def accept(tx: sqlite3.Connection, name: str, now_seconds: float) -> int:
    """Accept all tools of a server as they now are, and return their number. Raises ApiError `not_found`."""
    row = tx.execute("SELECT * FROM operator_tool_servers WHERE name = ?", (name,)).fetchone()
    if row is None:
        raise ApiError("not_found", f"There is no tool server {name!r} in the catalog of the running service.")
    accepted = accepted_now(row)
    tx.execute("UPDATE operator_tool_servers SET accepted = ? WHERE name = ?", (accepted, name))
    digests = orjson.loads(accepted)
    audit.add(tx, now_seconds, audit.OPERATOR, "tool_server.accept", name, {"tools": sorted(digests)})
    return len(digests)
