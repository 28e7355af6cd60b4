"""CPU time of the query of `GET /admin/usage` by each kind, for one of 60 months of usage.

python -m tests.bench_usage [ACCOUNTS ROWS]: by default 50,000 and a million
"""

import random
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from svc.billing import spending
from svc.schema import connect, newest_schema
from tests.support.databases import prepare

MONTHS = [f"{year}-{month:02}" for year in range(2022, 2027) for month in range(1, 13)]
BY = ("user", "model", "group", "key", "day", "user,model")


def fill(conn: sqlite3.Connection, accounts: int, rows: int) -> None:
    """Store accounts with usage of 5 years: a third of them uses an API key, and 40 models have calls."""
    choose = random.Random(1)
    conn.execute("BEGIN")
    conn.executemany(
        "INSERT INTO accounts (id, email, email_key, created_at) VALUES (?1, ?1 || '@example.com', ?1 || '@x', 1.0)",
        ((_account(number),) for number in range(accounts)),
    )

    def row(number: int) -> tuple[object, ...]:
        account = number % accounts
        day = f"{choose.choice(MONTHS)}-{choose.randint(1, 28):02}"
        key = f"key_{account}" if account % 3 == 0 else ""
        model, group = f"openai/model-{choose.randrange(40)}", ("", "research", "sales")[account % 3]
        return _account(account), day, model, key, group, 3, 900, 300, choose.randrange(10_000), 100

    columns = "account_id, day, model, key_id, group_name, requests, input_tokens, output_tokens, cost_micros"
    statement = f"INSERT OR IGNORE INTO usage_days ({columns}, cached_input_tokens) VALUES (?{', ?' * 9})"
    conn.executemany(statement, (row(number) for number in range(rows)))
    conn.execute("COMMIT")


def _account(number: int) -> str:
    return f"user_{number:026}"


def timings(conn: sqlite3.Connection) -> Iterator[tuple[str, float]]:
    def best(by: str) -> float:
        took = []
        for _ in range(5):
            began = time.thread_time()
            spending.dearest(conn, spending.month_period(MONTHS[-1]), by.split(","))
            took.append(time.thread_time() - began)
        return min(took)

    for by in BY:
        yield by, best(by)


def main(accounts: int, rows: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "service.db"
        prepare(path, *newest_schema())
        with closing(connect(path)) as conn:
            fill(conn, accounts, rows)
            print(f"{accounts} accounts, {rows} rows, {path.stat().st_size >> 20} MB")
            for by, seconds in timings(conn):
                print(f"a month by {by:<11} {seconds * 1000:>7.1f} ms of CPU")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:] or ("50000", "1000000")))
