"""Places that accounts take in turn, and that cancelled waiters release."""

import asyncio
from collections import Counter

import pytest

from svc.fair_queue import FairQueue, OwnPlaces


async def test_accounts_take_turns_and_one_never_has_all_places() -> None:
    turns, order = FairQueue(2, 1), []

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


async def test_owners_with_slow_work_leave_places_for_new_ones() -> None:
    turns = FairQueue(128, 8)
    for (
        owners,
        each,
    ) in ((16, 5), (64, 1), (110, 1)):
        slow = [asyncio.create_task(turns.take(f"slow{number % owners}")) for number in range(8 * owners)]
        await asyncio.sleep(0)
        had = [sum(task.done() for task in slow[first::owners]) for first in range(owners)]
        assert each in had and set(had) <= {each, each + 1}
        async with asyncio.timeout(20):
            news = [await turns.take(f"new{number}") for number in range(8)]
        assert sum(task.done() for task in slow) == sum(had)
        for release in news:
            release()
        for task in slow:
            if task.done():
                task.result()()
            task.cancel()
        await asyncio.gather(*slow, return_exceptions=True)


async def test_free_place_goes_to_the_owner_with_the_fewest() -> None:
    turns = FairQueue(2, 2)
    release, _ = await turns.take("slow"), await turns.take("slow")
    waiting = [asyncio.create_task(turns.take(owner)) for owner in ("slow", "new", "new", "newer")]
    await asyncio.sleep(0)
    release()
    await asyncio.sleep(0)
    assert [task.done() for task in waiting] == [False, True, False, False]
    (await waiting[1])()
    await asyncio.sleep(0)
    assert [task.done() for task in waiting] == [False, True, False, True], "those that have none take turns"


async def test_one_owner_alone_has_its_share_and_the_operator_all_places() -> None:
    turns = FairQueue(16, 8)
    tasks = [asyncio.create_task(turns.take("alone")) for _ in range(20)]
    await asyncio.sleep(0)
    assert sum(task.done() for task in tasks) == 8
    operators = [asyncio.create_task(turns.take("")) for _ in range(20)]
    await asyncio.sleep(0)
    assert sum(task.done() for task in operators) == 8


async def test_owner_that_has_no_place_in_time_is_refused() -> None:
    turns = FairQueue(1, 1, patience_seconds=0.05)
    release = await turns.take("slow")
    own = asyncio.create_task(turns.take("slow"))
    others = [asyncio.create_task(turns.take("other")) for _ in range(2)]
    refused = await asyncio.gather(*others, return_exceptions=True)
    assert [type(error) for error in refused] == [TimeoutError, TimeoutError]
    assert not own.done(), "its own work may take as long as it likes"
    release()
    (await own)()
    (await turns.take("other"))()


async def test_wait_for_others_begins_after_the_own_work() -> None:
    turns = FairQueue(1, 1, patience_seconds=0.1)
    release = await turns.take("a")
    waiting = asyncio.create_task(turns.take("b"))
    own, patient = asyncio.create_task(turns.take("a")), asyncio.create_task(turns.take("a", patient=True))
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_later(0.09, release)
    await waiting
    with pytest.raises(TimeoutError):
        await own
    assert not patient.done(), "it is never refused"
    (await waiting)()
    await patient


async def test_refused_waiter_that_is_cancelled_at_once_releases_nothing() -> None:
    turns = FairQueue(1, 1, patience_seconds=0.0)
    release = await turns.take("a")
    waiter = asyncio.create_task(turns.take("b"))
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_later(0, waiter.cancel)  # after the refusal, before the waiter hears of it
    with pytest.raises((asyncio.CancelledError, TimeoutError)):
        await waiter
    with pytest.raises(TimeoutError):
        await turns.take("c")
    release()
    (await turns.take("c"))()


async def test_place_of_a_cancelled_waiter_is_released() -> None:
    turns = FairQueue(1, 1)
    release = await turns.take("a")
    waiter = asyncio.create_task(_once(turns, "b"))
    await asyncio.sleep(0)
    release()
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    async with asyncio.timeout(20):
        await _once(turns, "c")


async def test_place_given_to_a_waiter_that_is_cancelled_at_once_is_released() -> None:
    turns = FairQueue(1, 1)
    release = await turns.take("a")
    waiter = asyncio.create_task(_once(turns, "b"))
    await asyncio.sleep(0)
    waiter.cancel()
    release()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    async with asyncio.timeout(20):
        await _once(turns, "c")


async def _once(turns: FairQueue, account_id: str) -> None:
    (await turns.take(account_id))()


async def test_account_waits_only_for_its_own_places_and_fails_at_once_if_others_have_the_rest() -> None:
    places = OwnPlaces(most=32, most_of_one=4)
    end = asyncio.Event()
    open_calls: Counter[str] = Counter()

    async def call(account_id: str) -> None:
        async with places.taken(account_id):
            open_calls[account_id] += 1
            await end.wait()
            open_calls[account_id] -= 1

    calls = [asyncio.create_task(call(f"a{number % 8}")) for number in range(8 * 6)]
    await asyncio.sleep(0)
    assert set(open_calls.values()) == {4} and open_calls.total() == 32, "the fifth call of each waits"
    with pytest.raises(TimeoutError):
        await call("late")
    calls[-1].cancel()
    end.set()
    await asyncio.gather(*calls, return_exceptions=True)
    assert open_calls.total() == 0 and places._accounts == {} and places._free == 32
    await call("late")


async def test_cancelled_call_and_one_that_fails_release_their_place() -> None:
    places = OwnPlaces(most=1, most_of_one=1)

    async def fail() -> None:
        async with places.taken("a"):
            raise ValueError

    async def wait() -> None:
        async with places.taken("a"):
            await asyncio.Event().wait()

    for _ in range(3):
        with pytest.raises(ValueError):
            await fail()
        waiting = [asyncio.create_task(wait()) for _ in range(3)]
        await asyncio.sleep(0)
        for task in reversed(waiting):
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert places._accounts == {} and places._free == 1
