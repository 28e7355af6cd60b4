"""Calendar months in UTC, such as 2026-11, of allowances and of the limits of accounts and API keys. And days."""

import functools
import sqlite3
from datetime import UTC, datetime

from svc.errors import invalid_value
from svc.ids import timestamp


def month_of(now_seconds: float) -> str:
    return _month(int(now_seconds // 86_400))


@functools.lru_cache(maxsize=4)
def _month(day: int) -> str:
    return timestamp(day * 86_400)[:7]


def end_of(month: str) -> str:
    """Return when the next month begins, as the API shows times."""
    year, number = map(int, month.split("-"))
    return timestamp(datetime(year + number // 12, number % 12 + 1, 1, tzinfo=UTC).timestamp())


def begin_of_day(day: str, param: str) -> float:
    """Return when a day such as 2026-11-30 begins, in Unix seconds. Raises ApiError `invalid_value`."""
    try:
        return datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise invalid_value(f"{param} must be a day such as 2026-11-30.", param) from None


def spent_this_month(row: sqlite3.Row, now_seconds: float) -> int:
    """Return the micros that a row of `wallets` or `api_keys` has spent in this month.

    Its month is a later one if the clock has gone back.
    """
    spent_micros: int = row["month_spent_micros"] if (row["month"] or "") >= month_of(now_seconds) else 0
    return spent_micros
