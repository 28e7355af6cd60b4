"""Who waits for a connection: accounts take turns, and nobody is forgotten."""

import asyncio

from svc.workers import Job, JobQueue


async def waiting(*names: str) -> JobQueue:
    """Jobs `name` of the account that is its first letter; those in capitals go first, those with a `!` are much."""
    turns, loop = JobQueue(), asyncio.get_running_loop()
    for name in names:
        turns.add(Job(len, (name,), loop.create_future(), name[0], name.isupper(), "!" in name, True))
    return turns


def names(jobs: list[Job]) -> list[str]:
    return [job.args[0] for job in jobs]


async def test_an_account_with_many_jobs_has_one_in_each_turn_and_what_goes_first_waits_for_none() -> None:
    turns = await waiting("a1", "a2", "a3", "b1", "c1", "B2")
    assert names(turns.take(4)) == ["B2", "a1", "b1", "c1"] and len(turns) == 2
    assert names(turns.take(4)) == ["a2", "a3"] and len(turns) == 0


async def test_an_account_that_comes_while_a_job_runs_is_before_that_jobs_account() -> None:
    queue, loop = await waiting("a1", "a2", "a3"), asyncio.get_running_loop()
    assert names(queue.take(1)) == ["a1"]
    for name in ("b1", "c1"):
        queue.add(Job(len, (name,), loop.create_future(), name[0], False, False, True))
    assert [names(queue.take(1)) for _ in range(4)] == [["b1"], ["c1"], ["a2"], ["a3"]]


async def test_a_job_for_which_there_was_no_time_comes_before_all_others() -> None:
    turns = await waiting("a1", "a2", "b1", "b2")
    taken = turns.take(2)
    turns.put_back(taken[1:])
    assert names(taken) == ["a1", "b1"] and names(turns.take(4)) == ["b1", "a2", "b2"]


async def test_what_is_much_runs_alone_and_every_other_time() -> None:
    turns = await waiting("a1!", "a2!", "b1", "B2", "a3", "c1!")
    assert [names(turns.take(9)) for _ in range(5)] == [["B2", "b1", "a3"], ["a1!"], ["c1!"], ["a2!"], []]
    turns = await waiting("a1!", "a2!", "b1", "b2")
    assert [names(turns.take(1)) for _ in range(5)] == [["b1"], ["a1!"], ["b2"], ["a2!"], []]
