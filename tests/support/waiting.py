"""Waiting for a condition, in place of a sleep whose length only an idle machine keeps."""

import asyncio
from collections.abc import Callable


async def until(condition: Callable[[], object], within_seconds: float = 20.0, *, every_seconds: float = 0.005) -> None:
    """Return when `condition()` is true. Raises TimeoutError; an idle machine needs a small part of that time."""
    async with asyncio.timeout(within_seconds):
        while not condition():
            await asyncio.sleep(every_seconds)


async def run_ready(count: int = 20) -> None:
    """Let the event loop run what is ready, and what that makes ready, without threads and timers."""
    for _ in range(count):
        await asyncio.sleep(0)
