"""Limits of one's own: what an account and an API key may spend in a calendar month (UTC).

schema.sql adds up each month's debits and refuses a hold beyond a limit. A call belongs to the month of its hold.
"""

import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

from svc.errors import ApiError
from svc.money import dollars
from svc.months import end_of, month_of

# Where the web application sets the limits.
_PAGES = {"account": "Wallet", "API key": "API keys"}


class Limit(NamedTuple):
    """A limit of the account or the API key (`owner`). `held_micros` are reserved for running requests."""

    owner: str
    limit_micros: int
    spent_micros: int
    held_micros: int

    @property
    def left_micros(self) -> int:
        return self.limit_micros - self.spent_micros - self.held_micros


def month_now(conn: sqlite3.Connection, account_id: str, now_seconds: float) -> str:
    """Return the month that a new hold belongs to: never before the newest one with spending of the account."""
    row = conn.execute("SELECT month FROM wallets WHERE account_id = ?", (account_id,)).fetchone()
    return max(month_of(now_seconds), (row and row["month"]) or "")


def of_call(conn: sqlite3.Connection, account_id: str, key_id: str | None, month: str) -> list[Limit]:
    """Return the limits of a call with an API key, or with a session if that is None."""
    query = """
        SELECT 'account', monthly_limit_micros, iif(month = :month, month_spent_micros, 0),
            (SELECT ifnull(sum(amount_micros), 0) FROM holds WHERE account_id = :account_id AND month = :month)
        FROM wallets WHERE account_id = :account_id AND monthly_limit_micros IS NOT NULL
        UNION ALL SELECT 'API key', monthly_limit_micros, iif(month = :month, month_spent_micros, 0), (
            SELECT ifnull(sum(amount_micros), 0) FROM holds
            WHERE account_id = :account_id AND key_id = :key_id AND month = :month)
        FROM api_keys WHERE account_id = :account_id AND id = :key_id AND monthly_limit_micros IS NOT NULL
    """
    values = {"account_id": account_id, "key_id": key_id, "month": month}
    return [Limit(*row) for row in conn.execute(query, values)]


def reached(limits: Iterable[Limit], needed_micros: int, month: str) -> ApiError:
    """Return the error of a call that needs more than one of its `limits` leaves: the one with the least left."""
    limit = min(limits, key=lambda limit: limit.left_micros)
    resets_at = end_of(month)
    details = {"limit_micros": limit.limit_micros, "spent_micros": limit.spent_micros, "resets_at": resets_at}
    return ApiError(
        "spending_limit_reached",
        f"This needs {dollars(needed_micros)} ({needed_micros} micros). The monthly limit of this {limit.owner} is "
        f"{dollars(limit.limit_micros)}, of which {dollars(limit.spent_micros)} is spent and "
        f"{dollars(limit.held_micros)} is reserved for running requests. Raise it on the page "
        f"{_PAGES[limit.owner]!r}, or wait until {resets_at[:10]}.",
        details=details,
        anthropic=details,
    )
