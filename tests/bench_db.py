"""What group commit yields on this disk, beside a bare sqlite3 loop: `python -m tests.bench_db`.

Prints writes a second at synchronous FULL with 1, 16 and 64 callers waiting, and point reads a second with 1 and 64, on asyncio and on
uvloop, with the CPU that each costs (all threads) and the ratio to the bare loop of the same run.
"""

import asyncio
import sqlite3
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import uvloop

from svc.db import Database, connect, open_database

SECONDS = 1.0
SCHEMA = "CREATE TABLE events (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT;"


def insert(tx: sqlite3.Connection, text: str) -> int | None:
    return tx.execute("INSERT INTO events (text) VALUES (?)", (text,)).lastrowid


def point_read(conn: sqlite3.Connection, key: int) -> Any:
    return conn.execute("SELECT id, text FROM events WHERE id = ?", (key,)).fetchone()


async def main(rows: "list[tuple[str, float, float]]") -> None:
    with tempfile.TemporaryDirectory(prefix="bench-db-", dir=".") as folder:
        db = await open_database(Path(folder) / "bench.db", SCHEMA)
        try:
            for callers in (1, 16, 64):
                rows.append((f"write, {callers} waiting", *await measured(callers, lambda number: db.write(insert, "x" * 60))))
            for callers in (1, 64):
                rows.append((f"read, {callers} waiting", *await measured(callers, lambda number: db.read(point_read, number % 999))))
        finally:
            await db.close()


async def measured(callers: int, call: Callable[[int], Coroutine[Any, Any, Any]]) -> tuple[float, float]:
    """Calls a second, and microseconds of CPU each, when so many callers repeat `call` one after the other."""
    began, cpu_began = time.perf_counter(), time.process_time()

    async def repeat() -> int:
        number = 0
        while time.perf_counter() - began < SECONDS:
            await call(number)
            number += 1
        return number

    total = sum(await asyncio.gather(*(repeat() for _ in range(callers))))
    return total / (time.perf_counter() - began), (time.process_time() - cpu_began) / total * 1e6


def bare(rows: "list[tuple[str, float, float]]") -> None:
    with tempfile.TemporaryDirectory(prefix="bench-db-", dir=".") as folder:
        conn = sqlite3.connect(Path(folder) / "bench.db", isolation_level=None)
        configure(conn)
        conn.execute("PRAGMA journal_mode = WAL")
        conn.execute(SCHEMA)
        for batch in (1, 16, 64):
            count, began, cpu_began = 0, time.perf_counter(), time.process_time()
            while time.perf_counter() - began < SECONDS:
                conn.execute("BEGIN IMMEDIATE")
                for _ in range(batch):
                    insert(conn, "x" * 60)
                conn.execute("COMMIT")
                count += batch
            rows.append((f"bare write, {batch} a commit", count / (time.perf_counter() - began), (time.process_time() - cpu_began) / count * 1e6))
        count, began, cpu_began = 0, time.perf_counter(), time.process_time()
        while time.perf_counter() - began < SECONDS:
            point_read(conn, count % 999)
            count += 1
        rows.append(("bare read", count / (time.perf_counter() - began), (time.process_time() - cpu_began) / count * 1e6))
        conn.close()


if __name__ == "__main__":
    for name, runner in (("bare", None), ("asyncio", asyncio.run), ("uvloop", uvloop.run)):
        rows: list[tuple[str, float, float]] = []
        if runner is None:
            bare(rows)
        else:
            runner(main(rows))
        for label, rate, micros in rows:
            print(f"{name:8} {label:26} {rate:10,.0f}/s {micros:8.1f} us")
