"""The queue of jobs: accounts take turns."""

import asyncio

from svc.workers import Job, JobQueue


async def filled(*names: str) -> JobQueue:
    """A queue of jobs of the account that is a name's first letter. Capitals: mode `first`; with `!`: `alone`."""
    queue, loop = JobQueue(), asyncio.get_running_loop()
    for name in names:
        mode = "first" if name.isupper() else "alone" if "!" in name else "queued"
        queue.add(Job(len, (name,), loop.create_future(), name[0], mode))
    return queue


def names(jobs: list[Job]) -> list[str]:
    return [job.args[0] for job in jobs]


async def test_accounts_have_one_job_per_round_after_first_jobs() -> None:
    queue = await filled("a1", "a2", "a3", "b1", "c1", "B2")
    assert names(queue.take(4)) == ["B2", "a1", "b1", "c1"] and len(queue) == 2
    assert names(queue.take(4)) == ["a2", "a3"] and len(queue) == 0


async def test_new_account_precedes_the_account_of_the_running_job() -> None:
    queue, loop = await filled("a1", "a2", "a3"), asyncio.get_running_loop()
    assert names(queue.take(1)) == ["a1"]
    for name in ("b1", "c1"):
        queue.add(Job(len, (name,), loop.create_future(), name[0], "queued"))
    assert [names(queue.take(1)) for _ in range(4)] == [["b1"], ["c1"], ["a2"], ["a3"]]


async def test_job_that_is_put_back_is_next() -> None:
    queue = await filled("a1", "a2", "b1", "b2")
    taken = queue.take(2)
    queue.put_back(taken[1:])
    assert names(taken) == ["a1", "b1"] and names(queue.take(4)) == ["b1", "a2", "b2"]


async def test_alone_jobs_are_every_second_batch() -> None:
    queue = await filled("a1!", "a2!", "b1", "B2", "a3", "c1!")
    assert [names(queue.take(9)) for _ in range(5)] == [["B2", "b1", "a3"], ["a1!"], ["c1!"], ["a2!"], []]
    queue = await filled("a1!", "a2!", "b1", "b2")
    assert [names(queue.take(1)) for _ in range(5)] == [["b1"], ["a1!"], ["b2"], ["a2!"], []]
