"""Checkpoints of the write-ahead log, made beside the writer, on another thread and connection.

SQLite's automatic checkpoint runs inside a commit, which then takes 1.6 ms for each MB of the log. A backup holds back
checkpoints while it copies. Afterwards one commit took 0.4 s for every 250 MB that had been written during the copy.

committed() on the writer's thread, after every 400 functions -> _run() here -> the last few pages, between two
transactions of the writer: SQLite restarts the log only if the writer has nothing more to add
empty_in_time(), every 20 s -> empty(): the same, then the log is truncated, because it holds deleted texts, and remains
of deleted rows are overwritten (svc/slack.py)
"""

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from svc.schema import BUSY_SECONDS, connect
from svc.slack import FRAME_BYTES, Slack
from svc.workers import Pool

T = TypeVar("T")
_EVERY_JOBS = 400  # a page that all of them write is copied once
_LOG_PAGES = 1_000  # a smaller log need not restart
_FEW_PAGES = 250  # 1 MiB, which may be copied while the writer waits
_MORE_PAGES = 2_000  # up to 20 ms: if they were written during the last pass, the next one comes first
_LARGE_LOG_BYTES = 64 * 1024 * 1024  # then the writer waits, whatever is left: else the log might never restart
_PASSES = 6
_EMPTY_SECONDS = 20.0  # together with the purge of words (svc/content/fulltext.py), less than a minute
_TRIES, _PAUSE_SECONDS = 10, 0.1
_READERS_MS = 10  # a writer waits so long for readers of the log
_WALK_PAUSE_SECONDS = 0.01


class Checkpointer:
    """Checkpoints the database at `path`, between the transactions of `writer`."""

    def __init__(self, path: Path, writer: Pool) -> None:
        self._path = path
        self._writer = writer
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
        self._conns: tuple[sqlite3.Connection, sqlite3.Connection] | None = None
        self._slack: Slack | None = None
        self._jobs = 0
        self._last: Future[None] | None = None
        self._emptying = asyncio.Lock()

    def committed(self, jobs: int) -> None:
        """Count a commit of `jobs` functions. The writer's thread calls it after each commit."""
        self._jobs += jobs + 1
        if self._jobs >= _EVERY_JOBS and (self._last is None or self._last.done()):
            self._jobs = 0
            self._last = self._threads.submit(self._run)

    async def empty_in_time(self) -> None:
        """Empty the log every 20 seconds if there is something in it, until cancelled."""
        while True:
            await asyncio.sleep(_EMPTY_SECONDS)
            with contextlib.suppress(sqlite3.Error, OSError):  # the disk is broken; the writers report it
                more = True
                while more:
                    more = await self._on_thread(self._walk)
                    await asyncio.sleep(_WALK_PAUSE_SECONDS)
                if self._log_bytes() or self._opened().has_remains:
                    await self.empty()

    async def empty(self) -> bool:
        """Empty the log and overwrite remains of deleted rows. A write waits for at most some 20 ms.

        Return False if another process's reader, such as a backup or a replica, still needs the log.
        """
        emptied = False
        async with self._emptying:
            for _ in range(_TRIES):
                _, left = await self._on_thread(self._copy)
                if left <= _FEW_PAGES and await self._writer.outside(self._truncate):
                    emptied = True
                    while await self._on_thread(self._opened().examine_written):
                        pass
                    if not self._opened().has_remains:
                        break
                else:
                    await asyncio.sleep(_PAUSE_SECONDS)
            await self._on_thread(self._opened().sync)
        return emptied

    async def empty_last(self) -> None:
        """Empty the log as far as that needs no waiting. Call it after the last transaction of the writer."""
        if self._slack is None:
            return
        with contextlib.suppress(sqlite3.Error, OSError):
            more = bool(self._log_bytes()) or self._slack.has_remains
            while more:
                await self._on_thread(self._copy)
                more = await self._writer.outside(self._truncate) and (
                    await self._on_thread(self._slack.examine_written) or self._slack.has_remains
                )

    async def close(self) -> None:
        """Close the connections. Call it after all others are closed."""
        await self._on_thread(self._close)
        self._threads.shutdown()

    async def _on_thread(self, fn: Callable[[], T]) -> T:
        return await asyncio.wrap_future(self._threads.submit(fn))

    def _log_bytes(self) -> int:
        log = self._path.with_name(f"{self._path.name}-wal")
        return log.stat().st_size if log.exists() else 0

    def _opened(self) -> Slack:
        self._slack = self._slack or Slack(self._path)
        return self._slack

    def _run(self) -> None:
        # The writers report a full or broken disk; the log grows until there is room.
        with contextlib.suppress(sqlite3.Error, OSError):
            pages, left = self._copy()
            # More is left if a reader needs it, or if much is written all the time.
            if pages >= _LOG_PAGES and (left <= _FEW_PAGES or self._log_bytes() > _LARGE_LOG_BYTES):
                self._writer.soon(self._checkpoint_between)

    def _copy(self) -> tuple[int, int]:
        """Copy the log into the file until the rest is small. Return how many pages it has, and how many are left."""
        pages = left = self._log_bytes() // FRAME_BYTES
        if left <= _FEW_PAGES:  # to open two connections would take longer: each reads the schema
            return pages, left
        for _ in range(_PASSES):  # one is enough unless much is written at the same time
            pages, left = self._checkpoint(*self._connected())
            if left <= _FEW_PAGES and self._opened().note() <= _MORE_PAGES:
                break
        return pages, left

    def _connected(self) -> tuple[sqlite3.Connection, sqlite3.Connection]:
        """Return a connection for checkpoints, and one that reads."""
        self._conns = self._conns or (connect(self._path), connect(self._path, query_only=True))
        return self._conns

    def _checkpoint(self, conn: sqlite3.Connection, reader: sqlite3.Connection) -> tuple[int, int]:
        reader.execute("BEGIN")
        try:
            # Pages that are written after this read are not copied, and the log does not restart.
            reader.execute("SELECT 1 FROM sqlite_schema").fetchone()
            self._opened().note()
            return checkpoint(conn)
        finally:
            reader.execute("COMMIT")

    def _checkpoint_between(self, conn: sqlite3.Connection) -> None:
        with self._noted(conn):
            checkpoint(conn)

    @contextlib.contextmanager
    def _noted(self, conn: sqlite3.Connection) -> Iterator[int]:
        """Note the log's pages before the block, which runs on the writer's thread between its transactions.

        Yield how many pages were added to the log since the last note.
        """
        version = _version(conn)
        yield self._opened().note()
        if _version(conn) != version:  # a command has written meanwhile
            self._opened().examine_all()

    def _walk(self) -> bool:
        return self._opened().examine_tree(self._connected()[1])

    def _truncate(self, conn: sqlite3.Connection) -> bool:
        """Empty the log, and then overwrite remains. No transaction may be open."""
        conn.execute(f"PRAGMA busy_timeout = {_READERS_MS}")
        try:
            with self._noted(conn) as added:
                if added > _MORE_PAGES or conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                    return False
            self._opened().note_copied()
            self._opened().overwrite(conn)
            return True
        finally:
            conn.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000:.0f}")

    def _close(self) -> None:
        for conn in self._conns or ():
            conn.close()
        if self._slack is not None:
            self._slack.close()


def checkpoint(conn: sqlite3.Connection) -> tuple[int, int]:
    """Copy pages into the file without waiting. Return how many the log has, and how many are left to copy."""
    _, pages, copied = conn.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    return pages, pages - copied


def _version(conn: sqlite3.Connection) -> int:
    version: int = conn.execute("PRAGMA data_version").fetchone()[0]
    return version
