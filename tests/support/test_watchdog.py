"""The watchdog of the tests sees what holds up the loop on behalf of the application, and nothing else."""

import asyncio
import time

from tests.support.waiting import run_ready
from tests.support.watchdog import MOST_SECONDS, WATCHDOG


def burn() -> None:
    """Take more than a step may, also beside other programs, which slow the watchdog's own measure up to three times."""
    until = time.thread_time() + 3.2 * MOST_SECONDS
    while time.thread_time() < until:
        pass


def taken() -> list[str]:
    names = [name for name, _ in WATCHDOG.stalls]
    WATCHDOG.stalls.clear()
    return names


async def test_stalls_of_requests_and_their_tasks_are_recorded() -> None:
    async def later() -> None:
        await asyncio.sleep(0)
        burn()

    async def handle(in_task: bool) -> str:
        await asyncio.sleep(0)
        if in_task:
            await asyncio.create_task(later())
        else:
            burn()
        return "answer"

    assert await WATCHDOG.drive(handle(False), "here") == "answer" and taken() == ["here"]
    assert await WATCHDOG.drive(handle(True), "here") == "answer"
    (name,) = taken()
    assert "later" in name


async def test_waits_threads_and_tests_are_not_recorded() -> None:
    async def handle() -> None:
        await asyncio.sleep(0.15)
        await asyncio.to_thread(burn)

    await WATCHDOG.drive(handle(), "here")
    burn()
    await asyncio.create_task(asyncio.to_thread(burn))
    assert taken() == []


async def test_an_error_and_a_cancellation_pass_through() -> None:
    async def handle() -> str:
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            return "ended"
        return ""

    async def driven() -> str:
        ended: str = await WATCHDOG.drive(handle(), "here")
        return ended

    task = asyncio.create_task(driven())
    await run_ready()
    task.cancel()
    assert await task == "ended"
