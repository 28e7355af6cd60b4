"""Fills the database of a server that tests/bench.py measures: accounts with keys and money, and rows in the large
tables.

python tests/support/bench_fill.py DATABASE ACCOUNTS ROWS     prints the keys; PYTHONPATH is the checkout that is
measured
"""

import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

from svc.auth import accounts, tokens
from svc.billing import wallet
from svc.schema import connect

MICROS = 1_000_000_000
_DAY = "2026-01-01"
_NUMBERS = "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :rows)"
# Rows of many accounts, spread as in use: each has its part of every table.
_OWNER = "(SELECT id FROM owners WHERE number = n % :accounts)"
_LARGE = (
    f"""
    {_NUMBERS} INSERT INTO api_keys (id, account_id, token_hash, key_prefix, name, created_at)
    SELECT 'key_bench' || n, {_OWNER}, CAST(printf('%032d', n) AS BLOB), 'svc-v1-aaa', 'old', 1 FROM numbers
    """,
    f"""
    {_NUMBERS} INSERT INTO ledger
        (id, account_id, kind, amount_micros, balance_after_micros, description, reference, model, request_id,
            created_at)
    SELECT 'led_bench' || n, {_OWNER}, 'debit', -1, {MICROS} - (n - 1) / :accounts - 1, 'old', 'hold_bench' || n,
        'model' || n, 'r', unixepoch('{_DAY}')
    FROM numbers
    """,
    f"""
    UPDATE wallets SET month = '{_DAY[:7]}', month_spent_micros = {MICROS} - balance_micros
    WHERE balance_micros < {MICROS}
    """,
    f"""
    {_NUMBERS} INSERT INTO usage_days
        (account_id, day, model, key_id, requests, input_tokens, output_tokens, cost_micros)
    SELECT {_OWNER}, '{_DAY}', 'model' || n, '', 1, 1, 1, 1 FROM numbers
    """,
    f"""
    {_NUMBERS} INSERT INTO runs (id, account_id, status, goal, model, max_steps, output, created_at, finished_at)
    SELECT 'run_bench' || n, {_OWNER}, 'final', 'goal', 'm', 6, '42', 1, 2 FROM numbers
    """,
    f"""
    {_NUMBERS} INSERT INTO conversations (id, account_id, title, created_at, updated_at)
    SELECT 'conv_bench' || n, {_OWNER}, 'talk', 1, 1 FROM numbers
    """,
    f"""
    {_NUMBERS} INSERT INTO messages (id, account_id, conversation_id, role, content, created_at)
    SELECT 'msg_bench' || n, {_OWNER}, 'conv_bench' || n, 'user', 'hello there, how are you today', 1 FROM numbers
    """,
)


def fill(tx: sqlite3.Connection, count: int, rows: int) -> list[str]:
    """`count` pro accounts with money and `rows` rows in each large table; the accounts' keys."""
    now, keys = time.time(), [tokens.new_key_token() for _ in range(count)]
    tx.execute("CREATE TEMP TABLE owners (number INTEGER PRIMARY KEY, id TEXT)")
    for number, key in enumerate(keys):
        account_id = accounts.add_account(tx, f"bench{number}@example.com", None, None, now).id
        wallet.book(tx, account_id, MICROS, description="", now_seconds=now)
        tokens.add_key(tx, account_id, "bench", key, now)
        tx.execute("INSERT INTO owners VALUES (?, ?)", (number, account_id))
    for statement in _LARGE if rows else ():
        tx.execute(statement, {"rows": rows, "accounts": count})
    return keys


def main() -> None:
    path, count, rows = sys.argv[1:]
    with closing(connect(Path(path))) as tx:
        tx.execute("PRAGMA synchronous = OFF")
        tx.execute("PRAGMA cache_size = -600000")  # KiB: what does not fit is written twice
        tx.execute("BEGIN IMMEDIATE")
        keys = fill(tx, int(count), int(rows))
        tx.execute("COMMIT")
    print("\n".join(keys))


if __name__ == "__main__":
    main()
