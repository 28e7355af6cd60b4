"""Writes that must happen: through cancellations, through a storage that is full for a while, and later if need be."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from svc.errors import ApiError

T = TypeVar("T")
_PAUSE_SECONDS = 0.5
_LATER_SECONDS = 2.0


async def write_until_done(
    write: Callable[[], Awaitable[T]], failed: Callable[[ApiError], None] = lambda error: None, *, tries: int = 1
) -> T:
    """The result of `write()`, waited for however often this task is cancelled meanwhile; the cancellation is raised afterwards.

    A write that the storage refuses (ApiError) is tried `tries` times. Then `failed(error)` may change what is to be written,
    the error is raised, and the write is tried again in the background until it succeeds or the process ends: what must hold
    after that, the next start sees to. `write` must be harmless to repeat. What else it raises is raised at once.
    """
    writing = asyncio.ensure_future(_write(write, failed, tries))
    cancelled: asyncio.CancelledError | None = None
    while not writing.done():
        try:
            await asyncio.wait([writing])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        writing.exception()  # looked at, so that nobody complains of it
        raise cancelled
    return writing.result()


async def _write(write: Callable[[], Awaitable[T]], failed: Callable[[ApiError], None], tries: int) -> T:
    while True:
        tries -= 1
        try:
            return await write()
        except ApiError as error:
            if tries < 1:
                failed(error)
                asyncio.ensure_future(_write_later(write))
                raise
        await asyncio.sleep(_PAUSE_SECONDS)


async def _write_later(write: Callable[[], Awaitable[object]]) -> None:
    while True:
        await asyncio.sleep(_LATER_SECONDS)
        try:
            await write()
            return
        except ApiError as error:
            if error.code == "shutting_down":
                return
