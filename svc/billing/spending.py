"""The usage of all accounts in a period, for administrators, by user, model, group, API key or day, or by two of them.

The days of a period are one range of the primary keys of `usage_days` and `deleted_usage`. So the time does not depend
on the length of the history.
"""

import re
import sqlite3
from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson

from svc.billing.usage import COUNTS, deleted_name
from svc.errors import invalid_value
from svc.months import begin_of_day
from svc.shapes import matching

KINDS = ("user", "model", "group", "key", "day")
_KIND = f"({'|'.join(KINDS)})"
BY = matching(
    re.compile(f"{_KIND}(?:,(?!\\1$){_KIND})?"), f"one or two of {', '.join(KINDS)}, such as user or user,model", 20
)
MOST_ROWS = 1_000
MOST_DAYS = 366
_SLICE_ACCOUNTS = 500
SLICE_ROWS = 10_000
_CHUNK_ROWS = 1_000


class Period(NamedTuple):
    """The first and the last day, in UTC, such as 2026-11-01 and 2026-11-30."""

    first: str
    last: str


def month_period(month: str) -> Period:
    return Period(f"{month}-01", f"{month}-31")


def period_of(first: str | None, last: str | None, today: str) -> Period:
    """Return the days `first` to `last`: by default to today, and from the first of that month.

    Raises ApiError `invalid_value` for a day that is in no calendar, for over 366 days, and for none.
    """
    last = last or today
    period = Period(first or f"{last[:7]}-01", last)
    days = (begin_of_day(period.last, "to") - begin_of_day(period.first, "from")) // 86_400 + 1
    if not 1 <= days <= MOST_DAYS:
        raise invalid_value(f"from and to must be a range of 1 to {MOST_DAYS} days.", "from")
    return period


def columns_of(kinds: list[str]) -> list[str]:
    """Return the fields of a row: `key` for one kind, else the kinds; then the counts."""
    return [*(kinds if len(kinds) > 1 else ["key"]), *COUNTS]


# Each call by its names. Those in parentheses cannot be names of users, models and groups.
_NAMES = f"""
    model, ifnull(nullif(group_name, ''), '(no group)') AS "group", day, {", ".join(COUNTS)}
"""
_KEY = "ifnull(nullif(key_id, ''), '(sessions)') AS key"
_IN_PERIOD = "day BETWEEN :first AND :last"
_OF_ACCOUNTS = f"SELECT account_id AS user, {_KEY}, {_NAMES} FROM usage_days WHERE {_IN_PERIOD}"
# An account that is being deleted counts as deleted.
_GONE = "account_id IN (SELECT id FROM accounts WHERE deleting_at IS NOT NULL)"
_OF_DELETED = f"""
    SELECT {deleted_name("account_id")} AS user, {_KEY}, {_NAMES} FROM usage_days WHERE {_GONE} AND {_IN_PERIOD}
    UNION ALL
    SELECT {deleted_name("deleted_id")}, '(deleted accounts)', {_NAMES} FROM deleted_usage WHERE {_IN_PERIOD}
"""
_OF_ALL = f"{_OF_ACCOUNTS} AND NOT {_GONE} UNION ALL {_OF_DELETED}"
# SQLite would read all days of the accounts, or all accounts of the days, without the join.
_OF_SOME = f"""
    SELECT * FROM (SELECT id FROM accounts WHERE id > :after AND id <= :until AND deleting_at IS NULL)
    CROSS JOIN ({_OF_ACCOUNTS}) ON user = id
"""
_SUMS = ", ".join(f"ifnull(sum({name}), 0) AS {name}" for name in COUNTS)


def _summed(calls: str, kinds: list[str], rest: str = "") -> str:
    """Return the query of the sums of `calls` by `kinds`. `rest` follows GROUP BY."""
    names = _quoted(kinds)
    return f"SELECT {names}, {_SUMS} FROM ({calls}) GROUP BY {names} {rest}"


def _quoted(kinds: list[str]) -> str:
    return ", ".join(f'"{kind}"' for kind in kinds)


SpendingRow = dict[str, Any]
Place = tuple[str, ...]


def all_rows(conn: sqlite3.Connection, period: Period, kinds: list[str], most: int = -1) -> Iterator[SpendingRow]:
    """Yield the rows of all accounts by one or two KINDS, up to `most`: by day, and then the most expensive first.

    Deleted accounts count. The cost equals the debits of calls in the ledger.
    """
    order = f"ORDER BY {'day, ' * ('day' in kinds)} cost_micros DESC, requests DESC, {_quoted(kinds)} LIMIT {most}"
    return _rows(conn, kinds, _summed(_OF_ALL, kinds, order), period)


def dearest(
    conn: sqlite3.Connection, period: Period, kinds: list[str], most: int = MOST_ROWS
) -> tuple[list[SpendingRow], SpendingRow, bool]:
    """Return the first `most` of `all_rows`, the total of all of them, and whether there are more."""
    rows = list(all_rows(conn, period, kinds, most + 1))
    total = conn.execute(f"SELECT 'total' AS key, {_SUMS} FROM ({_OF_ALL})", period._asdict()).fetchone()
    return rows[:most], dict(total), len(rows) > most


def rows_after(
    conn: sqlite3.Connection, period: Period, kinds: list[str], place: Place | None
) -> tuple[list[SpendingRow], Place | None]:
    """Return a slice of all rows in a fixed order, and the place of the next slice, which is None at the end.

    A slice takes some milliseconds, so that a whole list needs no long transaction. Users are in the order of their
    accounts, deleted ones first, and other kinds by name.
    """
    if "user" not in kinds:
        return _names_after(conn, period, kinds, place)
    if place is None:
        return list(_rows(conn, kinds, _summed(_OF_DELETED, kinds), period)), ("",)
    query = "SELECT max(id) FROM (SELECT id FROM accounts WHERE id > ? ORDER BY id LIMIT ?)"
    until = conn.execute(query, (*place, _SLICE_ACCOUNTS)).fetchone()[0]
    if until is None:
        return [], None
    rows = _rows(conn, kinds, _summed(_OF_SOME, kinds), period, after=place[0], until=until)
    return list(rows), (until,)


def _names_after(
    conn: sqlite3.Connection, period: Period, kinds: list[str], place: Place | None
) -> tuple[list[SpendingRow], Place | None]:
    after = {f"after_{number}": name for number, name in enumerate(place or ("",) * len(kinds))}
    calls = f"SELECT * FROM ({_OF_ALL}) WHERE ({_quoted(kinds)}) > ({', '.join(f':{name}' for name in after)})"
    query = _summed(calls, kinds, f"ORDER BY {_quoted(kinds)} LIMIT {SLICE_ROWS}")
    rows = list(_rows(conn, kinds, query, period, **after))
    return rows, tuple(rows[-1].values())[: len(kinds)] if len(rows) == SLICE_ROWS else None


def _rows(
    conn: sqlite3.Connection, kinds: list[str], query: str, period: Period, **values: str
) -> Iterator[SpendingRow]:
    columns = columns_of(kinds)
    found = conn.execute(query, {**period._asdict(), **values})
    while chunk := found.fetchmany(_CHUNK_ROWS):
        rows = [dict(zip(columns, row, strict=True)) for row in chunk]
        if "user" in kinds:
            _name_users(conn, rows, columns[kinds.index("user")])
        yield from rows


def _name_users(conn: sqlite3.Connection, rows: list[SpendingRow], field: str) -> None:
    """Replace the ids of accounts by their addresses. In the query itself, this takes as long as all sums."""
    ids = orjson.dumps([row[field] for row in rows]).decode()
    query = "SELECT id, email FROM accounts WHERE id IN (SELECT value FROM json_each(?))"
    users = dict(conn.execute(query, (ids,)).fetchall())
    for row in rows:
        row[field] = users.get(row[field]) or row[field]
