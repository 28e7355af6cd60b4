"""Jobs that wait for a connection to the database: what goes first, then one of each account in turn, many at a time.

submit -> WaitingJobs -> _start, once for all of this turn of the loop -> on the connection's thread -> _finish, on the loop
"""

import asyncio
import contextlib
import sqlite3
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import aiosqlite

from svc.durable import UncancellableFuture
from svc.errors import ApiError

T = TypeVar("T")
Outcome = tuple[Any, BaseException | None]

_BATCH = 256


class Job(NamedTuple):
    """A function that waits for a connection."""

    fn: Callable[..., Any]
    args: tuple[Any, ...]
    future: "asyncio.Future[Any]"
    account_id: str
    first: bool
    much: bool
    synced: bool


Ran = tuple[list[Outcome], bool]  # the outcomes of those jobs that were run, and whether there is more to do without any


Queues = OrderedDict[str, deque[Job]]  # of each account, in the order of their turns


class WaitingJobs:
    """The jobs that wait: what goes first, then one of each account in turn; every other time, alone, one that is much."""

    def __init__(self) -> None:
        self._first: deque[Job] = deque()
        self._little: Queues = OrderedDict()
        self._much: Queues = OrderedDict()
        self._much_is_next = False
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, job: Job) -> None:
        self._count += 1
        if job.first:
            self._first.append(job)
        else:
            (self._much if job.much else self._little).setdefault(job.account_id, deque()).append(job)

    def take(self, most: int) -> list[Job]:
        taken: list[Job] = []
        if self._much and (self._much_is_next or not (self._first or self._little)):
            taken.append(_next(self._much))
            self._much_is_next = False
        else:
            while self._first and len(taken) < most:
                taken.append(self._first.popleft())
            while self._little and len(taken) < most:
                taken.append(_next(self._little))
            self._much_is_next = True
        self._count -= len(taken)
        return taken

    def put_back(self, jobs: Sequence[Job]) -> None:
        """Takes jobs again for which there was no time, each before the others of its account, and their accounts in that order
        before the others."""
        self._count += len(jobs)
        for job in reversed(jobs):
            if job.first:
                self._first.appendleft(job)
                continue
            self._little.setdefault(job.account_id, deque()).appendleft(job)
            self._little.move_to_end(job.account_id, last=False)


def _next(queues: Queues) -> Job:
    account_id, jobs = queues.popitem(last=False)
    job = jobs.popleft()
    if jobs:
        queues[account_id] = jobs
    return job


class ConnectionLane:
    """A connection and the jobs that wait for its thread. It is opened by `open`, or with the first job.

    submit -> _start, once for all jobs of this turn of the loop -> _run on the thread -> _finish, back on the loop
    """

    def __init__(
        self, connect: Callable[[], sqlite3.Connection], run_jobs: Callable[[sqlite3.Connection, list[Job]], Ran]
    ) -> None:
        self._connect = connect
        self._connection: aiosqlite.Connection | None = None
        self._run_jobs = run_jobs
        self._loop = asyncio.get_running_loop()
        self._waiting = WaitingJobs()
        self._active = False  # from the first job that waits until none is left
        self._idle = asyncio.Event()
        self._on_thread = 0
        self._closed = False

    async def open(self) -> None:
        """Opens the connection on a thread of its own. Raises what `connect` raises."""
        connection = aiosqlite.Connection(self._connect, iter_chunk_size=64)
        try:
            await connection
        except BaseException:
            # aiosqlite tells its thread to stop and does not wait: the thread would report to an event loop that is closed.
            await asyncio.to_thread(connection._thread.join)
            raise
        # aiosqlite has no public call that runs a whole function on its thread; tests/test_db.py checks these two.
        self._conn, self._tx = connection._conn, connection._tx
        self._connection = connection

    def ahead(self) -> int:
        """How many jobs end before one that is submitted now can begin."""
        return self._on_thread + len(self._waiting) if self._on_thread else 0

    def waiting(self) -> int:
        return len(self._waiting)

    def submit(
        self,
        account_id: str,
        fn: Callable[..., T],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        first: bool = False,
        much: bool = False,
        synced: bool = True,
    ) -> "asyncio.Future[T]":
        """`fn(conn, *args)` on the thread, when it is the turn of `account_id`, or `first`."""
        # Somebody's money depends on what goes first: who is cancelled meanwhile still learns what has come of it.
        future: asyncio.Future[T] = UncancellableFuture(loop=self._loop) if first else self._loop.create_future()
        if self._closed:
            future.set_exception(ApiError("shutting_down"))
            return future
        self._waiting.add(Job(partial(fn, **kwargs) if kwargs else fn, args, future, account_id, first, much, synced))
        if not self._active:
            self.wake()
        return future

    def wake(self) -> None:
        """Lets the thread look for work, which it does not do yet."""
        self._active = True
        self._idle.clear()
        self._loop.call_soon(self._start)

    async def outside(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        """Runs what no transaction may hold, between two of them."""
        done: asyncio.Future[T] = self._loop.create_future()
        self._tx.put_nowait((done, lambda: fn(self._conn)))
        return await done

    def soon(self, fn: Callable[[sqlite3.Connection], object]) -> None:
        """As `outside`, from any thread and without waiting for it."""

        def run() -> None:
            with contextlib.suppress(sqlite3.Error):
                fn(self._conn)

        self._tx.put_nowait((None, run))

    async def _open_and_start(self) -> None:
        try:
            await self.open()
        except Exception as error:
            jobs = self._waiting.take(len(self._waiting))
            self._finish(jobs, [(None, error)] * len(jobs), False)
        else:
            self._start()

    def _start(self) -> None:
        if self._connection is None:
            self._opening = self._loop.create_task(self._open_and_start())
            return
        jobs = self._waiting.take(_BATCH)
        self._on_thread = len(jobs)
        self._tx.put_nowait((None, lambda: self._run(jobs)))

    def _run(self, jobs: list[Job]) -> None:
        try:
            outcomes, more = self._run_jobs(self._conn, jobs)
        except BaseException as error:  # nobody may wait for ever
            outcomes, more = [(None, error)] * len(jobs), False
        # A batch wakes the loop once, whatever its size: that is what makes many small transactions cheap.
        self._loop.call_soon_threadsafe(self._finish, jobs, outcomes, more)

    def _finish(self, jobs: list[Job], outcomes: list[Outcome], more: bool) -> None:
        self._on_thread = 0
        self._waiting.put_back(jobs[len(outcomes) :])
        for job, (result, error) in zip(jobs, outcomes, strict=False):
            if job.future.done():  # its caller was cancelled
                continue
            if error is not None:
                job.future.set_exception(error)
                continue
            job.future.set_result(result)
        jobs.clear()  # the thread holds this list until it has the next one, and would have to free whole requests
        # Not at once: who has just been answered may come again, and then shares the next commit with those who wait.
        if self._waiting or (more and not self._closed):
            self._loop.call_soon(self._start)
        else:
            self._active = False
            self._idle.set()

    async def close(self) -> None:
        self._closed = True
        if self._active:
            await self._idle.wait()
        if self._connection is not None:
            await self._connection.close()
