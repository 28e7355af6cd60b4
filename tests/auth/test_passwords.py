"""Password hashes: bounded queues, a share for logins, and eviction of the oldest call."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from typing import ClassVar

import pytest

from svc.auth.passwords import Passwords
from svc.errors import ApiError
from tests.conftest import PASSWORD


@pytest.fixture
async def slow() -> AsyncIterator[Passwords]:
    """Hashes of about 30 ms each, and queues of 20."""
    passwords = Passwords(16_384, 3, waiting=20)
    yield passwords
    passwords.close()


async def test_password_matches_only_its_own_hash() -> None:
    passwords = Passwords(8, 1)
    stored = await passwords.hash(PASSWORD)
    assert await passwords.matches(PASSWORD, stored)
    assert not await passwords.matches(PASSWORD + "x", stored)
    assert not await passwords.matches(PASSWORD, None)
    assert not await passwords.matches(PASSWORD, "no hash")
    passwords.close()


async def test_full_queue_evicts_the_oldest_call_with_503() -> None:
    passwords = Passwords(8, 1)
    outcomes = await asyncio.gather(*(passwords.hash(PASSWORD) for _ in range(57)), return_exceptions=True)
    passwords.close()
    refused = [number for number, outcome in enumerate(outcomes) if isinstance(outcome, ApiError)]
    assert refused == [1, 2, 3, 4, 5, 6], "the first one is running, the last 50 wait"
    first = outcomes[1]
    assert isinstance(first, ApiError) and first.status == 503 and first.headers["retry-after"] == "1"


class Held(str):
    """A password whose hash takes until the test sets `go_on`. `begun` lists the passwords in threads."""

    begun: ClassVar[list[str]] = []
    go_on: ClassVar[threading.Event] = threading.Event()

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
        Held.begun.append(str(self))
        assert Held.go_on.wait(20)
        return super().encode(encoding, errors)


@pytest.fixture
async def held() -> AsyncIterator[Passwords]:
    """Hashes of `Held` passwords."""
    Held.begun.clear()
    Held.go_on.clear()
    passwords = Passwords(8, 1)
    yield passwords
    Held.go_on.set()
    passwords.close()


async def both_threads_run(*expected: str) -> None:
    async with asyncio.timeout(20):
        while len(Held.begun) < 2:
            await asyncio.sleep(0.001)
    assert sorted(Held.begun) == sorted(expected)


async def test_other_hashes_leave_a_thread_to_logins(held: Passwords) -> None:
    others = [asyncio.ensure_future(held.hash(Held("sign-up"))) for _ in range(3)]
    others += [asyncio.ensure_future(held.matches(Held("delete"), None, login=False)) for _ in range(3)]
    await asyncio.sleep(0)
    login = asyncio.ensure_future(held.matches(Held("login"), None))
    await both_threads_run("sign-up", "login")
    Held.go_on.set()
    await asyncio.gather(login, *others)


async def test_logins_use_both_threads(held: Passwords) -> None:
    logins = [asyncio.ensure_future(held.matches(Held("login"), None)) for _ in range(3)]
    await both_threads_run("login", "login")
    Held.go_on.set()
    await asyncio.gather(*logins)


@pytest.mark.slow
async def test_130_other_hashes_do_not_delay_a_login(slow: Passwords) -> None:
    stored = await slow.hash(PASSWORD)

    async def seconds() -> float:
        began = time.perf_counter()
        assert await slow.matches(PASSWORD, stored)
        return time.perf_counter() - began

    alone = min([await seconds() for _ in range(5)])
    others = [asyncio.ensure_future(slow.matches("a guess", stored, login=False)) for _ in range(130)]
    await asyncio.sleep(0)
    beside = min([await seconds() for _ in range(5)])
    outcomes = await asyncio.gather(*others, return_exceptions=True)
    assert sum(isinstance(outcome, ApiError) for outcome in outcomes) == 109
    assert beside < 4 * alone + 0.05


async def test_130_logins_do_not_starve_a_sign_up(slow: Passwords) -> None:
    stored = await slow.hash(PASSWORD)
    logins = [asyncio.ensure_future(slow.matches("a guess", stored)) for _ in range(130)]
    await asyncio.sleep(0)
    await slow.hash(PASSWORD)
    assert sum(login.done() for login in logins) < 120, "it did not wait for them all"
    for login in logins:
        login.cancel()
    await asyncio.gather(*logins, return_exceptions=True)


async def test_cancelled_calls_release_their_turn() -> None:
    passwords = Passwords(8, 1)
    for _ in range(20):
        tasks = [
            asyncio.ensure_future(passwords.matches(PASSWORD, None, login=bool(number % 2))) for number in range(12)
        ]
        await asyncio.sleep(0)
        for task in tasks[::3]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    async with asyncio.timeout(5):
        assert await passwords.matches(PASSWORD, await passwords.hash(PASSWORD))
    passwords.close()
