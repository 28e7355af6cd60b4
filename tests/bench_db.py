"""What group commit yields on this machine's disk, beside a bare sqlite3 loop: `python -m tests.bench_db`.

Print writes per second at synchronous FULL with 1, 16 and 64 callers, and point reads per second with 1 and 64.
Both run on asyncio and on uvloop. Each figure has its CPU (all threads) and its ratio to a bare loop that ran in the second before.
The bare loop writes as many rows in each commit, or reads one row after the other, on one thread without an event loop.
A disk that is busy with something else slows both.
"""

import asyncio
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import uvloop

from svc.schema import connect
from tests.support.databases import open_with_schema

SECONDS = 1.0
SCHEMA = "CREATE TABLE events (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT;"
TEXT = "x" * 60
ROWS = 1000

Rate = tuple[float, float]  # calls a second, microseconds of CPU each


def insert(tx: sqlite3.Connection, text: str) -> int | None:
    return tx.execute("INSERT INTO events (text) VALUES (?)", (text,)).lastrowid


def point_read(conn: sqlite3.Connection, key: int) -> Any:
    return conn.execute("SELECT id, text FROM events WHERE id = ?", (key,)).fetchone()


class Stopwatch:
    """Measures from its making: wall clock, and the CPU of the whole process."""

    def __init__(self) -> None:
        self._began, self._cpu_began = time.perf_counter(), time.process_time()

    def running(self) -> bool:
        return time.perf_counter() - self._began < SECONDS

    def rate(self, calls: int) -> Rate:
        return calls / (time.perf_counter() - self._began), (time.process_time() - self._cpu_began) / calls * 1e6


def bare_writes(conn: sqlite3.Connection, rows_a_commit: int) -> Rate:
    watch, calls = Stopwatch(), 0
    while watch.running():
        conn.execute("BEGIN IMMEDIATE")
        for _ in range(rows_a_commit):
            insert(conn, TEXT)
        conn.execute("COMMIT")
        calls += rows_a_commit
    return watch.rate(calls)


def bare_reads(conn: sqlite3.Connection) -> Rate:
    watch, calls = Stopwatch(), 0
    while watch.running():
        point_read(conn, calls % ROWS + 1)
        calls += 1
    return watch.rate(calls)


async def waiting(callers: int, call: Callable[[int], Coroutine[Any, Any, Any]]) -> Rate:
    """So many callers, each of which repeats `call` as soon as it is answered."""
    watch = Stopwatch()

    async def repeat() -> int:
        calls = 0
        while watch.running():
            await call(calls)
            calls += 1
        return calls

    return watch.rate(sum(await asyncio.gather(*(repeat() for _ in range(callers)))))


async def main(name: str, folder: Path) -> None:
    db = await open_with_schema(folder / f"{name}.db", SCHEMA)
    bare = connect(folder / f"{name}.db")
    try:
        for callers in (1, 16, 64):
            yardstick = bare_writes(bare, callers)
            show(
                f"{name}, write, {callers} waiting", await waiting(callers, lambda _: db.write(insert, TEXT)), yardstick
            )
        for callers in (1, 64):
            yardstick = bare_reads(bare)
            rate = await waiting(callers, lambda number: db.read(point_read, number % ROWS + 1))
            show(f"{name}, read, {callers} waiting", rate, yardstick)
    finally:
        bare.close()
        await db.close()


def show(label: str, rate: Rate, yardstick: Rate) -> None:
    print(
        f"{label:28} {rate[0]:9,.0f}/s {rate[1]:7.1f} µs CPU   bare {yardstick[0]:9,.0f}/s {yardstick[1]:6.1f} µs CPU"
        f"   ratio {rate[0] / yardstick[0]:5.2f}",
        flush=True,
    )


if __name__ == "__main__":
    # A folder of the disk that the service would use; the temporary one may be memory.
    with tempfile.TemporaryDirectory(prefix="bench-db-", dir=sys.argv[1] if len(sys.argv) > 1 else ".") as made:
        asyncio.run(main("asyncio", Path(made)))
        uvloop.run(main("uvloop", Path(made)))
