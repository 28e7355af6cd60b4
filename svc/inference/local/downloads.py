"""The download that an administrator has started: one at a time, in the background, with its progress."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from svc.inference.local.add import NotAdded, Wanted, add
from svc.outbound.client import Outbound


class Downloads:
    """`on_end` is called after a download that succeeded."""

    def __init__(self, client: Outbound, on_end: Callable[[], Awaitable[None]]) -> None:
        self._client, self._on_end = client, on_end
        self._task: asyncio.Task[None] | None = None
        self._last: Wanted | None = None
        self._bytes, self._size_bytes, self._error = 0, None, None

    _bytes: int
    _size_bytes: int | None
    _error: str | None

    @property
    def running(self) -> Wanted | None:
        return self._last if self._task is not None and not self._task.done() else None

    def start(self, order: Wanted) -> None:
        self._last = order
        self._bytes, self._size_bytes, self._error = 0, None, None
        self._task = asyncio.create_task(self._run(order))

    async def stop(self) -> None:
        """Stop the download. What has arrived is kept for the next time."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def as_json(self) -> dict[str, Any] | None:
        """Return the last download since the start of the service."""
        if self._last is None:
            return None
        return {
            "name": self._last.path.stem,
            "url": self._last.source,
            "running": self.running is not None,
            "bytes": self._bytes,
            "size_bytes": self._size_bytes,
            "error": self._error,
        }

    async def _run(self, order: Wanted) -> None:
        try:
            await add(order, self._client, self._note)
            await self._on_end()
        except NotAdded as refusal:
            self._error = str(refusal)
        except asyncio.CancelledError:
            self._error = "It was stopped. Add it again to continue."
            raise

    def _note(self, done: int, size: int | None) -> None:
        self._bytes, self._size_bytes = done, size
