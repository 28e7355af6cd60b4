"""Counts the calls of models that cost nothing: in memory first, so that no answer waits for the disk on their account."""

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass

from svc.db import Database
from svc.errors import ApiError

_FLUSH_SECONDS = 2.0
_MOST_WAITING = 1_000


@dataclass(frozen=True)
class Call:
    """One call of a model, as `GET /billing/usage` counts it; `day` as 2026-09-21, in UTC."""

    account_id: str
    model: str
    input_tokens: int
    output_tokens: int
    day: str


class UsageCounter:
    """Writes the calls in bundles with `add(tx, call)`. A crash loses the last two seconds of them, and no money."""

    def __init__(self, db: Database, add: Callable[[sqlite3.Connection, Call], None]) -> None:
        self._db = db
        self._add = add
        self._waiting: list[Call] = []
        self._writing = asyncio.Lock()
        self._flushing: asyncio.Task[None] | None = None

    def count(self, call: Call) -> None:
        """Counts a call; it is written within two seconds, or by `flush`."""
        self._waiting.append(call)
        if len(self._waiting) == 1 or len(self._waiting) == _MOST_WAITING:
            delay_seconds = 0.0 if len(self._waiting) == _MOST_WAITING else _FLUSH_SECONDS
            self._flushing = asyncio.create_task(self._flush_later(delay_seconds))

    async def flush(self) -> None:
        """Writes what waits, and waits for what is being written. A storage fault drops it: usage that costs nothing is not
        worth a refusal."""
        async with self._writing:
            calls, self._waiting = self._waiting, []
            if not calls:
                return

            def write(tx: sqlite3.Connection) -> None:
                for call in calls:
                    self._add(tx, call)

            with contextlib.suppress(ApiError):
                await self._db.write(write)

    async def close(self) -> None:
        if self._flushing is not None:
            self._flushing.cancel()
        await self.flush()

    async def _flush_later(self, delay_seconds: float) -> None:
        await asyncio.sleep(delay_seconds)
        await self.flush()
