"""Writes that must happen: through cancellations, through a storage that is full for a while, and later if need be."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

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
    cancelled: asyncio.CancelledError | None = None
    while True:
        tries -= 1
        writing = asyncio.ensure_future(write())
        cancelled = await _ended(writing) or cancelled
        error = writing.exception()
        if not isinstance(error, ApiError):
            break
        if tries < 1:
            failed(error)
            asyncio.ensure_future(_write_later(write))
            break
        cancelled = await _ended(asyncio.ensure_future(asyncio.sleep(_PAUSE_SECONDS))) or cancelled
    if cancelled is not None:
        raise cancelled
    return writing.result()


async def _ended(future: "asyncio.Future[Any]") -> asyncio.CancelledError | None:
    """Waits until `future` is done, whatever its outcome; the last cancellation of this task meanwhile."""
    cancelled = None
    while not future.done():
        ended: asyncio.Future[None] = future.get_loop().create_future()  # to be cancelled in the place of `future`
        future.add_done_callback(partial(_tell, ended))
        try:
            await ended
        except asyncio.CancelledError as error:
            cancelled = error
    return cancelled


def _tell(ended: "asyncio.Future[None]", future: "asyncio.Future[Any]") -> None:
    if not ended.done():
        ended.set_result(None)


async def _write_later(write: Callable[[], Awaitable[object]]) -> None:
    while True:
        await asyncio.sleep(_LATER_SECONDS)
        try:
            await write()
            return
        except ApiError as error:
            if error.code == "shutting_down":
                return
