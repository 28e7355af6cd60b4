"""Calls of tools by month, for administrators. They are counted in memory first, like free calls of models."""

import sqlite3

from svc.db import Database
from svc.months import month_of
from svc.write_buffer import WriteBuffer

_Counts = tuple[int, int, int]  # calls, failures, cost in micros


class ToolCounter(WriteBuffer[tuple[str, str], _Counts]):
    """The calls that are not written yet, by month and tool."""

    def __init__(self, db: Database) -> None:
        super().__init__(db, _add_counts)

    def count(self, tool: str, now_seconds: float, *, failed: bool, cost_micros: int) -> None:
        key = (month_of(now_seconds), tool)
        calls, failures, micros = self.pending.get(key, (0, 0, 0))
        self.put(key, (calls + 1, failures + failed, micros + cost_micros))


def _add_counts(tx: sqlite3.Connection, counts: list[tuple[tuple[str, str], _Counts]]) -> None:
    statement = """
        INSERT INTO tool_months (month, tool, calls, failures, cost_micros) VALUES (?, ?, ?, ?, ?)
        ON CONFLICT (month, tool) DO UPDATE SET calls = calls + excluded.calls, failures = failures + excluded.failures,
            cost_micros = cost_micros + excluded.cost_micros
    """
    tx.executemany(statement, [(*key, *values) for key, values in counts])


def of_month(conn: sqlite3.Connection, month: str) -> dict[str, dict[str, int]]:
    """Return the calls, failures and cost of a month by tool."""
    rows = conn.execute("SELECT tool, calls, failures, cost_micros FROM tool_months WHERE month = ?", (month,))
    return {row["tool"]: {name: row[name] for name in ("calls", "failures", "cost_micros")} for row in rows}
