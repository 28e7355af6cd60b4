"""What the wallet adds to a paid request: hold before, settle and usage after, these on disk (synchronous FULL).

python -m tests.bench_wallet [SECONDS]
"""

import asyncio
import sqlite3
import sys
import tempfile
import time
from pathlib import Path

import uvloop

from svc.auth import accounts
from svc.billing import invariants, wallet
from svc.billing.usage import add_call
from svc.db import Database, open_database

NOW = 1_790_000_000.0


def funded_account(tx: sqlite3.Connection, number: int) -> str:
    account_id: str = accounts.add_account(tx, f"person{number}@example.com", None, None, NOW).id
    wallet.book(tx, account_id, 10**12, description="", now_seconds=NOW)
    return account_id


def finish(tx: sqlite3.Connection, account_id: str, hold_id: str) -> int:
    charged_micros = wallet.settle(
        tx,
        account_id,
        hold_id,
        40,
        model="builtin/assistant-paid",
        input_tokens=12,
        output_tokens=34,
        request_id=hold_id,
        key_id="key_1",
        now_seconds=NOW,
    )
    add_call(tx, (account_id, None, "builtin/assistant-paid", "2026-09-21", ""), 12, 34, charged_micros)
    return charged_micros


async def measure(db: Database, ids: list[str], seconds: float) -> None:
    """Runs one paid request after another for each entry of `ids`, all entries at once, and prints a line."""
    took_seconds: list[float] = []
    began, cpu_began = time.perf_counter(), time.process_time()

    async def requests(worker: int) -> None:
        number = 0
        while time.perf_counter() - began < seconds:
            number += 1
            hold_id = f"hold_{began}_{worker}_{number}"
            started = time.perf_counter()
            await db.write_as("unsynced", wallet.hold, ids[worker], hold_id, 100, NOW)
            assert await db.write(finish, ids[worker], hold_id) == 40
            took_seconds.append(time.perf_counter() - started)

    await asyncio.gather(*(requests(worker) for worker in range(len(ids))))
    elapsed, cpu = time.perf_counter() - began, time.process_time() - cpu_began
    took_seconds.sort()
    count = len(took_seconds)
    median, late = took_seconds[count // 2] * 1e6, took_seconds[count * 99 // 100] * 1e6
    accounts_text = f"{len(set(ids))} account{'s' if len(set(ids)) > 1 else ''}"
    print(
        f"concurrency {len(ids):>3}, {accounts_text:<11}: {count / elapsed:>7.0f} requests/s, adds {median:>6.0f} µs "
        f"(median), {late:>6.0f} µs (p99), {cpu / count * 1e6:>4.0f} µs of CPU"
    )


async def main(seconds: float) -> None:
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:  # a real disk: /tmp may be memory
        db = await open_database(Path(folder) / "service.db")
        try:
            ids = [await db.write(funded_account, number) for number in range(64)]
            await measure(db, ids[:1], seconds)
            await measure(db, ids, seconds)
            await measure(db, ids[:1] * 64, seconds)
            assert await db.read(invariants.broken) == []
        finally:  # its threads would keep a failed run alive
            await db.close()


if __name__ == "__main__":
    uvloop.run(main(float(sys.argv[1]) if len(sys.argv) > 1 else 5.0))
