"""The operator's report of a month: income, spending, and what is owed, all from the ledger.

It reads the whole ledger in one snapshot: two or three seconds for a million rows.
"""

import re
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from svc.billing import spending, usage
from svc.billing.spending import Period
from svc.billing.usage import COUNTS
from svc.errors import StartError
from svc.ids import day_of


@dataclass(frozen=True)
class Line:
    """One line: `part` of the report, `name` within it, the number of bookings or calls, their tokens and micros."""

    part: str
    name: str
    count: int
    input_tokens: int = 0
    output_tokens: int = 0
    micros: int = 0
    cached_input_tokens: int = 0


def month_bounds(text: str) -> tuple[float, float]:
    """Return the begin of the month `text` (2026-09) and of the next one, in Unix seconds. Raises StartError."""
    match = re.fullmatch(r"(20[0-9]{2})-(0[1-9]|1[0-2])", text)
    if match is None:
        raise StartError("--month takes a month such as 2026-09")
    year, month = int(match[1]), int(match[2])
    ends = datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC)
    return datetime(year, month, 1, tzinfo=UTC).timestamp(), ends.timestamp()


_SPENT = """
    SELECT {name} AS name, count(*) AS count, -sum(amount_micros) AS micros, sum(input_tokens) AS input_tokens,
        sum(output_tokens) AS output_tokens, ifnull(sum(cached_input_tokens), 0) AS cached_input_tokens
    FROM ledger LEFT JOIN accounts ON accounts.id = account_id
    WHERE model IS NOT NULL AND ledger.created_at >= :begins AND ledger.created_at < :ends
    GROUP BY {group} ORDER BY micros DESC, name
"""
_PARTS = {
    # A sandbox's sessions have a prefix, so they are known after the account is deleted, too.
    "income": """
        SELECT CASE WHEN reference GLOB 'refund:*' THEN 'refunds and disputes'
            WHEN reference GLOB 'allowance:*' THEN 'allowances'
                WHEN checkouts.id IS NULL THEN iif(ledger.amount_micros > 0, 'booked by hand', 'taken back by hand')
                WHEN session_id LIKE 'sandbox\\_%' ESCAPE '\\' THEN 'checkouts (test money)'
                    ELSE 'checkouts' END AS name,
            count(*) AS count, sum(ledger.amount_micros) AS micros
        FROM ledger LEFT JOIN checkouts ON checkouts.id = reference
        WHERE model IS NULL AND ledger.created_at >= :begins AND ledger.created_at < :ends GROUP BY name ORDER BY name
    """,
    "returned to payers, not in the ledger": """
        SELECT iif(account_id IS NULL, 'of deleted accounts', 'not booked') AS name, count(*) AS count,
            sum(booked_micros - min(returned_micros, paid_micros)) AS micros
        FROM refunds JOIN (
            SELECT checkout_id AS returned, max(received_at) AS since FROM payment_events WHERE returns
            GROUP BY checkout_id
        ) ON payment_id = returned
        WHERE min(returned_micros, paid_micros) > booked_micros AND since >= :begins AND since < :ends GROUP BY name
        ORDER BY name
    """,
    "spent, by model": _SPENT.format(name="model", group="model"),
    "spent, by account": f"""
        SELECT * FROM ({_SPENT.format(name="email", group="account_id")}) WHERE name IS NOT NULL
        UNION ALL SELECT {usage.deleted_name("deleted_id")}, sum(requests), sum(cost_micros), sum(input_tokens),
            sum(output_tokens), sum(cached_input_tokens)
        FROM ({usage.OF_DELETED}) WHERE day >= :first_day AND day < :next_day GROUP BY deleted_id
        ORDER BY micros DESC, name
    """,
    "overruns, by model": """
        SELECT model AS name, sum(calls) AS count, sum(micros) AS micros
        FROM overruns WHERE day >= :first_day AND day < :next_day GROUP BY model ORDER BY micros DESC, name
    """,
    "owed at its end": """
        SELECT 'in wallets' AS name, count(DISTINCT account_id) AS count, ifnull(sum(amount_micros), 0) AS micros
        FROM ledger WHERE created_at < :ends AND account_id IN (SELECT account_id FROM wallets)
    """,
    "without an account": """
        SELECT 'left by deleted accounts' AS name, count(*) AS count, sum(amount_micros) AS micros
        FROM ledger WHERE created_at < :ends AND ifnull(account_id, '') NOT IN (SELECT account_id
        FROM wallets) HAVING count(*)
    """,
}


def lines(conn: sqlite3.Connection, begins: float, ends: float) -> Iterator[Line]:
    """Yield the report on what was booked from `begins` to before `ends` (Unix seconds)."""
    bounds = {"begins": begins, "ends": ends, "first_day": day_of(begins), "next_day": day_of(ends)}
    for part, query in _PARTS.items():
        for row in conn.execute(query, bounds):
            yield Line(part, **dict(row))


def usage_lines(conn: sqlite3.Connection, period: Period, kinds: list[str]) -> Iterator[Line]:
    """Yield the usage of all accounts in a period by one or two kinds."""
    for row in spending.all_rows(conn, period, kinds):
        names = [value for name, value in row.items() if name not in COUNTS]
        yield Line(f"usage, by {','.join(kinds)}", ", ".join(names), *(row[name] for name in COUNTS))
