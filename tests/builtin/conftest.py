"""The built-in voice with the processes that it speaks through."""

from collections.abc import AsyncIterator

import pytest

from svc.builtin.voice import Voice
from svc.builtin.workshop import Workshop


@pytest.fixture
async def workshop() -> AsyncIterator[Workshop]:
    workshop = Workshop("svc.builtin.speak")
    yield workshop
    await workshop.close()


@pytest.fixture
def voice(workshop: Workshop) -> Voice:
    return Voice(workshop)
