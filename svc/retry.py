"""Writes that must happen: they survive cancellation, and are retried while the storage is full."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from svc.errors import ApiError

T = TypeVar("T")
_PAUSE_SECONDS = 0.5
_LATER_SECONDS = 2.0


class UncancellableFuture(asyncio.Future[T]):
    """A future that a cancelled task continues to wait for. The cancellation is raised when the future is done."""

    def cancel(self, msg: object = None) -> bool:
        return False


async def retry_write(
    write: Callable[[], Awaitable[T]], failed: Callable[[ApiError], None] = lambda error: None, *, tries: int = 1
) -> T:
    """Return the result of `write()`. If this task is cancelled, the cancellation is raised afterwards.

    A write that fails with an ApiError is tried `tries` times. Then `failed(error)` may change what is written, and the
    error is raised. The write is retried in the background until it succeeds or the process ends. The next start
    repairs the rest. `write` must be harmless to repeat. Other exceptions are raised at once.
    """
    cancelled: asyncio.CancelledError | None = None
    while True:
        tries -= 1
        writing = asyncio.ensure_future(write())
        cancelled = await _ended(writing) or cancelled
        fault = writing.exception()
        if not isinstance(fault, ApiError):
            break
        if tries < 1:
            failed(fault)
            asyncio.ensure_future(_write_later(write))
            break
        cancelled = await _ended(asyncio.ensure_future(asyncio.sleep(_PAUSE_SECONDS))) or cancelled
    if cancelled is not None:
        raise cancelled
    return writing.result()


async def _ended(future: "asyncio.Future[T]") -> asyncio.CancelledError | None:
    """Wait until `future` is done, even if this task is cancelled. Return the cancellation."""
    cancelled = None
    while not future.done():
        try:
            await (future if isinstance(future, UncancellableFuture) else asyncio.wait([future]))
        except asyncio.CancelledError as error:
            cancelled = error
        except Exception:  # noqa: S110 - the caller reads it from the future
            pass
    return cancelled


async def _write_later(write: Callable[[], Awaitable[object]]) -> None:
    while True:
        await asyncio.sleep(_LATER_SECONDS)
        try:
            await write()
            return
        except ApiError as error:
            if error.code == "shutting_down":
                return
