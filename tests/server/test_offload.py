"""Long work runs away from the loop, and one account's heap of it keeps another waiting for a single piece."""

import asyncio
import threading
import time

import pytest

from svc.server.offload import Offload
from tests.support.waiting import until


@pytest.fixture
def offload() -> Offload:
    return Offload()


async def test_function_runs_in_a_thread_and_raises_in_the_caller(offload: Offload) -> None:
    def fail() -> None:
        raise ValueError("here")

    assert await offload.run("a", threading.get_ident) != threading.get_ident()
    with pytest.raises(ValueError, match="here"):
        await offload.run("a", fail)


async def test_account_with_100_jobs_delays_others_by_one(offload: Offload) -> None:
    heap = [asyncio.create_task(offload.run("busy", time.sleep, 0.02)) for _ in range(100)]
    await until(heap[0].done)
    before = sum(task.done() for task in heap)
    await offload.run("other", time.sleep, 0)
    assert sum(task.done() for task in heap) <= before + 3
    for task in heap:
        task.cancel()
    await asyncio.gather(*heap, return_exceptions=True)


async def test_cancelled_caller_keeps_its_slot_until_the_function_ends(offload: Offload) -> None:
    order: list[str] = []
    began = threading.Event()

    def slow() -> None:
        began.set()
        time.sleep(0.1)
        order.append("slow")

    first = asyncio.create_task(offload.run("a", slow))
    await asyncio.to_thread(began.wait)
    first.cancel()
    await offload.run("a", order.append, "next")
    assert order == ["slow", "next"] and first.cancelled()
