"""Checkpoints of the write-ahead log, made beside the writer, on another thread and connection.

SQLite's automatic checkpoint runs inside a commit, which then takes 1.6 ms for each MB of the log. A backup holds back
checkpoints while it copies. Afterwards one commit took 0.4 s for every 250 MB that had been written during the copy.

committed() on the writer's thread, after every 400 functions -> _run() here -> the last few pages, between two
transactions of the writer: SQLite restarts the log only if the writer has nothing more to add
"""

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from svc.schema import connect

_EVERY_JOBS = 400  # a page that all of them write is copied once
_LOG_PAGES = 1_000  # a smaller log need not restart
_FEW_PAGES = 250  # 1 MiB, which may be copied while the writer waits
_PASSES = 4


class Checkpointer:
    """Checkpoints the database at `path`. `between_transactions(fn)` runs `fn(conn)` on the writer's thread."""

    def __init__(
        self, path: Path, between_transactions: Callable[[Callable[[sqlite3.Connection], object]], None]
    ) -> None:
        self._path = path
        self._between_transactions = between_transactions
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
        self._conn: sqlite3.Connection | None = None
        self._jobs = 0
        self._last: Future[None] | None = None

    def committed(self, jobs: int) -> None:
        """Count a commit of `jobs` functions. The writer's thread calls it after each commit."""
        self._jobs += jobs + 1
        if self._jobs >= _EVERY_JOBS and (self._last is None or self._last.done()):
            self._jobs = 0
            self._last = self._threads.submit(self._run)

    async def wait(self) -> bool:
        """Wait for a running checkpoint; return whether there was one."""
        if self._last is None or self._last.done():
            return False
        await asyncio.wrap_future(self._last)
        return True

    async def close(self) -> None:
        """Wait for a running checkpoint and close the connection. Call it after the writer has ended."""
        await self.wait()
        if self._conn is not None:
            await asyncio.wrap_future(self._threads.submit(self._conn.close))
        self._threads.shutdown()

    def _run(self) -> None:
        # The writers report a full or broken disk; the log grows until there is room.
        with contextlib.suppress(sqlite3.Error):
            self._conn = self._conn or connect(self._path)
            pages = left = 0
            for _ in range(_PASSES):  # one is enough unless much is written at the same time
                pages, left = checkpoint(self._conn)
                if left <= _FEW_PAGES:
                    break
            if pages >= _LOG_PAGES and left <= _FEW_PAGES:  # more is left if a reader needs it
                self._between_transactions(checkpoint)


def checkpoint(conn: sqlite3.Connection) -> tuple[int, int]:
    """Copy pages into the file without waiting. Return how many the log has, and how many are left to copy."""
    _, pages, copied = conn.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    return pages, pages - copied
