"""A write that must happen: cancelled as often as one likes, refused by a full storage, and tried again until it is
done.
"""

import asyncio

import pytest

from svc.errors import ApiError
from svc.retry import retry_write
from tests.support.loop_clock import hastened


class Storage:
    """Takes a write after `refusals` of them; each takes a moment."""

    def __init__(self, refusals: int = 0, code: str = "storage_unavailable") -> None:
        self.refusals = refusals
        self.code = code
        self.tries = 0
        self.written = asyncio.Event()

    async def write(self) -> str:
        self.tries += 1
        await asyncio.sleep(0.01)
        if self.tries <= self.refusals:
            raise ApiError(self.code)
        self.written.set()
        return "written"


async def test_retried_write_runs_once_and_returns_its_result() -> None:
    storage = Storage()
    assert await retry_write(storage.write) == "written"
    assert storage.tries == 1


async def test_cancellations_do_not_end_the_write_and_one_is_raised_after_it() -> None:
    storage = Storage()
    task = asyncio.create_task(retry_write(storage.write))
    for _ in range(5):
        await asyncio.sleep(0.001)
        task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert storage.written.is_set() and storage.tries == 1


async def test_write_is_retried_after_a_short_storage_fault() -> None:
    storage = Storage(refusals=2)
    assert await hastened(retry_write(storage.write, tries=3)) == "written"


async def test_write_is_logged_and_retried_during_a_long_storage_fault() -> None:
    storage, told = Storage(refusals=4), []
    with pytest.raises(ApiError, match="cannot write"):
        await hastened(retry_write(storage.write, told.append, tries=2))
    assert [error.code for error in told] == ["storage_unavailable"] and storage.tries == 2
    await hastened(storage.written.wait())
    assert storage.tries == 5


async def test_shutdown_ends_the_retries() -> None:
    storage = Storage(refusals=10**6, code="shutting_down")
    with pytest.raises(ApiError):
        await retry_write(storage.write)
    await hastened(asyncio.sleep(60))
    assert storage.tries == 2


async def test_other_errors_are_raised_without_retry() -> None:
    async def write() -> None:
        raise ValueError("a bug")

    with pytest.raises(ValueError):
        await retry_write(write, tries=3)
