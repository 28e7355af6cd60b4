"""The built-in voice with the processes that it speaks through."""

from collections.abc import AsyncIterator

import pytest

from svc.builtin.processes import ProcessPool
from svc.builtin.voice import Voice


@pytest.fixture
async def pool() -> AsyncIterator[ProcessPool]:
    pool = ProcessPool("svc.builtin.speak")
    yield pool
    await pool.close()


@pytest.fixture
def voice(pool: ProcessPool) -> Voice:
    return Voice(pool)
