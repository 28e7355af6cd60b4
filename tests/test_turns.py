"""Places that accounts take in turn, and that cancelled waiters release."""

import asyncio

import pytest

from svc.turns import Turns


async def test_accounts_take_turns_and_one_never_has_all_places() -> None:
    turns, order = Turns(2, 1), []

    async def work(account_id: str) -> None:
        release = await turns.take(account_id)
        order.append(account_id)
        await asyncio.sleep(0)
        release()

    many = [asyncio.create_task(work("many")) for _ in range(20)]
    await asyncio.sleep(0)
    assert order == ["many"]
    few = [asyncio.create_task(work(name)) for name in ("a", "b", "a")]
    many[5].cancel()
    await asyncio.gather(*many, *few, return_exceptions=True)
    assert {"a", "b"} <= set(order[1:5]) and order.count("many") == 19 and order.count("a") == 2
    await turns.take("many")
    await turns.take("a")  # every place was released


async def test_place_of_a_cancelled_waiter_is_released() -> None:
    turns = Turns(1, 1)
    release = await turns.take("a")
    waiter = asyncio.create_task(_once(turns, "b"))
    await asyncio.sleep(0)
    release()
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    async with asyncio.timeout(1):
        await _once(turns, "c")


async def test_place_given_to_a_waiter_that_is_cancelled_at_once_is_released() -> None:
    turns = Turns(1, 1)
    release = await turns.take("a")
    waiter = asyncio.create_task(_once(turns, "b"))
    await asyncio.sleep(0)
    waiter.cancel()
    release()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    async with asyncio.timeout(1):
        await _once(turns, "c")


async def _once(turns: Turns, account_id: str) -> None:
    (await turns.take(account_id))()
