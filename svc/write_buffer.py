"""Changes that are written in batches two seconds later, so that no request waits for the disk."""

import asyncio
import contextlib
import itertools
import sqlite3
from collections.abc import Callable
from typing import Generic, TypeVar

from svc.db import Database
from svc.errors import ApiError
from svc.workers import Mode

K = TypeVar("K")
V = TypeVar("V")
_FLUSH_SECONDS = 2.0
_AT_ONCE = 100  # in a transaction of about 1 ms


class WriteBuffer(Generic[K, V]):
    """Changes by key, which `write` stores. A crash or a storage fault loses those of the last two seconds."""

    def __init__(
        self, db: Database, write: Callable[[sqlite3.Connection, list[tuple[K, V]]], None], mode: Mode = "queued"
    ) -> None:
        self.pending: dict[K, V] = {}
        self._db, self._write, self._mode = db, write, mode
        self._timer: asyncio.Task[None] | None = None
        self._writing = asyncio.Lock()

    def put(self, key: K, value: V) -> None:
        self.pending[key] = value
        if self._timer is None:
            self._timer = asyncio.create_task(self._flush_later())

    async def flush(self) -> None:
        """Write all changes. On return, those that another call was writing are written, too."""
        async with self._writing:
            while batch := list(itertools.islice(self.pending.items(), _AT_ONCE)):
                for key, _ in batch:
                    del self.pending[key]
                with contextlib.suppress(ApiError):
                    await self._db.write_as(self._mode, self._write, batch)

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self.flush()

    async def _flush_later(self) -> None:
        await asyncio.sleep(_FLUSH_SECONDS)
        self._timer = None
        await self.flush()
