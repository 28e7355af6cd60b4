"""Waiting for a condition, in place of a sleep whose length only an idle machine keeps."""

import asyncio
from collections.abc import Callable
from typing import Any


async def until(condition: Callable[[], object], within_seconds: float = 20.0, *, every_seconds: float = 0.005) -> None:
    """Return when `condition()` is true. Raises TimeoutError; an idle machine needs a small part of that time."""
    async with asyncio.timeout(within_seconds):
        while not condition():
            await asyncio.sleep(every_seconds)


async def logged(lines: Callable[[], list[dict[str, Any]]], count: int = 1, **fields: Any) -> list[dict[str, Any]]:
    """Return the log lines with these `fields` once there are `count`. `lines` reads the log. Its thread writes a line
    after the client has the answer.
    """

    def found() -> list[dict[str, Any]]:
        return [line for line in lines() if fields.items() <= line.items()]

    await until(lambda: len(found()) >= count)
    return found()


async def run_ready(count: int = 20) -> None:
    """Let the event loop run what is ready, and what that makes ready, without threads and timers."""
    for _ in range(count):
        await asyncio.sleep(0)
