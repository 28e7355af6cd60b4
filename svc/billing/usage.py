"""The usage of each account, by day, model and key.

Free calls are counted in memory first, so that no answer waits for the disk.
"""

import functools
import sqlite3
from typing import Any

from svc.billing.tool_usage import ToolCounter
from svc.db import Database
from svc.errors import invalid_value
from svc.tables import Page, run_some
from svc.write_buffer import WriteBuffer

COUNTS = ("requests", "input_tokens", "output_tokens", "cost_micros", "cached_input_tokens")
_SUMS = ", ".join(f"ifnull(sum({name}), 0) AS {name}" for name in COUNTS)
_MOST_ROWS = 10_000
_MOST_OVERRUN_MICROS = 10**15


# The account's id, the key's id (None for a session), the model, the day in UTC (2026-09-21), and the account's group
# or "". The day is that on which the call is settled, which may be in a later month than its hold.
UsagePlace = tuple[str, str | None, str, str, str]


def add_call(
    tx: sqlite3.Connection,
    place: UsagePlace,
    input_tokens: int,
    output_tokens: int,
    cost_micros: int,
    requests: int = 1,
    cached_input_tokens: int = 0,
) -> None:
    """Add a call, or several, to the usage of their day, unless the account is deleted."""
    account_id, key_id, model, day, group = place
    key = (account_id, day, model, key_id or "", group)
    values = (*key, requests, input_tokens, output_tokens, cost_micros, cached_input_tokens)
    # UPDATE first: nearly every call adds to a row, and an upsert takes half as long again. By the primary key: SQLite
    # prefers the index of accounts, and then looks each row up.
    statement = """
        UPDATE usage_days INDEXED BY sqlite_autoindex_usage_days_1
        SET requests = requests + ?6, input_tokens = input_tokens + ?7, output_tokens = output_tokens + ?8,
            cost_micros = cost_micros + ?9, cached_input_tokens = cached_input_tokens + ?10
        WHERE account_id = ?1 AND day = ?2 AND model = ?3 AND key_id = ?4 AND group_name = ?5
    """
    added = tx.execute(statement, values).rowcount
    if not added:
        statement = """
            INSERT INTO usage_days
                (account_id, day, model, key_id, group_name, requests, input_tokens, output_tokens, cost_micros,
                cached_input_tokens)
            SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10 FROM accounts WHERE id = ?1
        """
        tx.execute(statement, values)


def add_overrun(tx: sqlite3.Connection, day: str, model: str, micros: int) -> None:
    """Add what a call cost beyond its hold to the operator's loss of the day."""
    statement = """
        INSERT INTO overruns (day, model, calls, micros) VALUES (?, ?, 1, ?)
        ON CONFLICT (day, model) DO UPDATE
        SET calls = calls + 1, micros = min(micros + excluded.micros, 1000000000000000000)
    """
    tx.execute(statement, (day, model, min(micros, _MOST_OVERRUN_MICROS)))


_DELETE_SOME = """
    DELETE FROM usage_days WHERE (account_id, day, model, key_id, group_name) IN (
        SELECT account_id, day, model, key_id, group_name FROM usage_days WHERE account_id = ?1 LIMIT ?2)
"""
delete_some = functools.partial(run_some, _DELETE_SOME)  # a trigger keeps what was paid


def usage_page(
    conn: sqlite3.Connection, account_id: str, first_day: str, after: str | None = None, *, by: str = "model"
) -> Page[dict[str, Any]]:
    """Return requests, tokens and cost since `first_day`, per day and `model` or `key`, newest first.

    A page has at most 10,000 rows. The `key_id` of sessions is None. Raises ApiError `invalid_value` for `after`.
    """
    column = "key_id" if by == "key" else "model"
    last_day, colon, name = ("9999:" if after is None else after).partition(":")
    place = (account_id, last_day, name)
    its_row = f"SELECT 1 FROM usage_days WHERE (account_id, day, {column}) = (?, ?, ?)"
    if after is not None and not (colon and conn.execute(its_row, place).fetchone()):
        raise invalid_value("after must be the id of an item of this list.", "after")
    query = f"""
        SELECT day || ':' || {column} AS id, day, nullif({column}, '') AS {column}, {_SUMS}
        FROM usage_days WHERE account_id = ?1 AND day >= ?4 AND day <= ?2 AND (day < ?2 OR {column} > ?3)
        GROUP BY day, {column} ORDER BY day DESC, {column} LIMIT ?5
    """
    rows = conn.execute(query, (*place, first_day, _MOST_ROWS + 1)).fetchall()
    return Page([dict(row) for row in rows[:_MOST_ROWS]], len(rows) > _MOST_ROWS)


def deleted_name(account_id: str) -> str:
    """Return the SQL of what reports call the deleted account whose id is the SQL `account_id`."""
    return f"'(deleted ' || ifnull(nullif({account_id}, ''), 'accounts') || ')'"


# The paid usage of accounts that are deleted, or about to be.
OF_DELETED = """
    SELECT day, deleted_id, requests, input_tokens, output_tokens, cost_micros, cached_input_tokens FROM deleted_usage
    UNION ALL SELECT day, account_id, requests, input_tokens, output_tokens, cost_micros, cached_input_tokens
    FROM usage_days WHERE cost_micros > 0 AND account_id IN (SELECT id FROM accounts WHERE deleting_at IS NOT NULL)
"""


class UsageCounter(WriteBuffer[UsagePlace, list[int]]):
    """The free calls that are not written yet: requests, input, output and cached input tokens by place.

    `tools` has the calls of tools.
    """

    def __init__(self, db: Database) -> None:
        super().__init__(db, _add_counts)
        self.tools = ToolCounter(db)

    async def close(self) -> None:
        await self.tools.close()
        await super().close()

    def count(self, place: UsagePlace, input_tokens: int, output_tokens: int, cached_input_tokens: int) -> None:
        counts = self.pending.get(place)
        if counts is None:
            self.put(place, [1, input_tokens, output_tokens, cached_input_tokens])
            return
        counts[0] += 1
        counts[1] += input_tokens
        counts[2] += output_tokens
        counts[3] += cached_input_tokens


def _add_counts(tx: sqlite3.Connection, calls: list[tuple[UsagePlace, list[int]]]) -> None:
    for place, (requests, input_tokens, output_tokens, cached_input_tokens) in calls:
        add_call(tx, place, input_tokens, output_tokens, 0, requests, cached_input_tokens)
