"""Threads with a database connection each, and the queue of jobs that they share. It serves the accounts round robin.

submit -> JobQueue -> a worker's thread takes jobs and runs them -> _finish on the event loop resolves their futures
"""

import asyncio
import sqlite3
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, TypeVar

import aiosqlite

from svc.errors import ApiError
from svc.retry import UncancellableFuture

T = TypeVar("T")
Outcome = tuple[Any, BaseException | None]
Mode = Literal["queued", "first", "unsynced", "alone"]  # see Database.write_as
# These jobs settle money, so they run before the others, and cancelling the caller must not lose their result.
UNCANCELLABLE = ("first", "unsynced")

# A second worker joins when jobs have waited this long: to wake it for less costs more than it saves.
_PATIENCE_SECONDS = 0.002


class Job(NamedTuple):
    """A function that waits for a connection."""

    fn: Callable[..., Any]
    args: tuple[Any, ...]
    future: "asyncio.Future[Any]"
    account_id: str
    mode: Mode


Queues = OrderedDict[str, deque[Job]]  # of each account, in the order in which they are served


class JobQueue:
    """Waiting jobs: `first` and `unsynced` ones, then one of each account in turn. Every second batch is a single
    `alone` job.

    Any thread may call its methods.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._first: deque[Job] = deque()
        self._queued: Queues = OrderedDict()
        self._alone: Queues = OrderedDict()
        self._alone_is_next = False
        self._served = ""  # the account of the last job that was taken

    def __len__(self) -> int:
        with self._lock:
            return len(self._first) + sum(map(len, (*self._queued.values(), *self._alone.values())))

    def __bool__(self) -> bool:
        return bool(self._first or self._queued or self._alone)

    def add(self, job: Job) -> None:
        if job.mode in UNCANCELLABLE:
            self._first.append(job)
            return
        with self._lock:
            queues = self._alone if job.mode == "alone" else self._queued
            if job.account_id not in queues:
                queues[job.account_id] = deque()
                if self._served in queues:  # its job may still run, and the next turn is for one that has waited
                    queues.move_to_end(self._served)
            queues[job.account_id].append(job)

    def take(self, most: int) -> list[Job]:
        """Remove and return the next batch, up to `most` jobs; an empty list if no job waits."""
        taken: list[Job] = []
        with self._lock:
            if self._alone and (self._alone_is_next or not (self._first or self._queued)):
                taken.append(self._next(self._alone))
                self._alone_is_next = False
            else:
                while self._first and len(taken) < most:
                    taken.append(self._first.popleft())
                while self._queued and len(taken) < most:
                    taken.append(self._next(self._queued))
                self._alone_is_next = True
        return taken

    def _next(self, queues: Queues) -> Job:
        self._served, jobs = queues.popitem(last=False)
        job = jobs.popleft()
        if jobs:
            queues[self._served] = jobs
        return job

    def put_back(self, jobs: Sequence[Job]) -> None:
        """Return jobs of a batch that were not run to the front of the queue."""
        with self._lock:
            for job in reversed(jobs):
                if job.mode != "queued":
                    self._first.appendleft(job)
                    continue
                self._queued.setdefault(job.account_id, deque()).appendleft(job)
                self._queued.move_to_end(job.account_id, last=False)


Finish = Callable[[list[Job], list[Outcome]], None]
# Runs on a worker's thread: takes jobs and passes their outcomes to Finish. Returns whether other work is left.
Run = Callable[[sqlite3.Connection, JobQueue, Finish], bool]


class _Worker(aiosqlite.Connection):
    """A connection and its thread. tests/test_db.py checks the private names of aiosqlite that are used here."""

    async def open(self) -> None:
        """Open the connection on its thread. Raises what `connect` raises."""
        try:
            await self
        except BaseException:
            # aiosqlite stops its thread without waiting for it: the thread would call an event loop that is closed.
            await asyncio.to_thread(self._thread.join)
            raise

    def call(self, fn: Callable[[], object]) -> None:
        self._tx.put_nowait((None, fn))


class Pool:
    """Workers that share one queue. The first one does all the work until jobs have to wait for it."""

    def __init__(self, connect: Callable[[], sqlite3.Connection], run: Run, workers: int = 1) -> None:
        self._run = run
        self._workers = [_Worker(connect, iter_chunk_size=64) for _ in range(workers)]
        self._busy: set[_Worker] = set()
        self.queue = JobQueue()
        self._more = False  # the writer has work that is not in the queue
        self._loop = asyncio.get_running_loop()
        self._starting = False
        self._joining: asyncio.TimerHandle | None = None
        self._idle = asyncio.Event()
        self._idle.set()
        self._closed = False

    async def open(self) -> None:
        """Open the connections. Raises what `connect` raises; `close` must be called then too."""
        for worker in self._workers:
            await worker.open()

    def submit(
        self,
        account_id: str,
        fn: Callable[..., T],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        mode: Mode = "queued",
    ) -> "asyncio.Future[T]":
        """Run `fn(conn, *args)` on a worker, in the turn of `account_id` or as `mode` says."""
        kept = mode in UNCANCELLABLE
        future: asyncio.Future[T] = UncancellableFuture(loop=self._loop) if kept else self._loop.create_future()
        if self._closed:
            future.set_exception(ApiError("shutting_down"))
            return future
        self.queue.add(Job(partial(fn, **kwargs) if kwargs else fn, args, future, account_id, mode))
        if not self._busy:
            self._start_soon()
        else:
            self._join_later()
        return future

    def wake(self) -> None:
        """Start a worker that has work without a job in the queue."""
        self._more = True
        self._start_soon()

    async def outside(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        """Run `fn(conn)` on the first worker between two batches, for what no transaction may contain."""
        result: T = await self._workers[0]._execute(fn, self._workers[0]._conn)  # type: ignore[no-untyped-call]
        return result

    def soon(self, fn: Callable[[sqlite3.Connection], object]) -> None:
        """Run `fn` as `outside` does, from any thread and without waiting for it. Its errors are ignored."""
        self._workers[0].call(lambda: fn(self._workers[0]._conn))

    def _start_soon(self) -> None:
        if not self._starting:
            self._starting = True
            self._idle.clear()
            self._loop.call_soon(self._start)

    def _join_later(self) -> None:
        if self._joining is None and len(self._busy) < len(self._workers):
            self._joining = self._loop.call_later(_PATIENCE_SECONDS, self._join)

    def _join(self) -> None:
        self._joining = None
        if self.queue:
            self._start()

    def _start(self) -> None:
        self._starting = False
        worker = next((worker for worker in self._workers if worker not in self._busy), None)
        if worker is not None and (self.queue or self._more):
            self._busy.add(worker)
            self._more = False
            worker.call(partial(self._work, worker))
            if len(self.queue) > 1:
                self._join_later()
        if not (self._busy or self.queue):
            self._idle.set()

    def _work(self, worker: _Worker) -> None:
        def finish(jobs: list[Job], outcomes: list[Outcome]) -> None:
            self._loop.call_soon_threadsafe(self._finish, jobs, outcomes)

        more = self._run(worker._conn, self.queue, finish)
        self._loop.call_soon_threadsafe(self._ended, worker, more)

    def _finish(self, jobs: list[Job], outcomes: list[Outcome]) -> None:
        for job, (result, error) in zip(jobs, outcomes, strict=False):
            if job.future.done():  # its caller was cancelled
                continue
            if error is None:
                job.future.set_result(result)
            else:
                job.future.set_exception(error)
        jobs.clear()  # the thread still refers to this list and would otherwise have to free whole requests

    def _ended(self, worker: _Worker, more: bool) -> None:
        self._busy.discard(worker)
        self._more = more and not self._closed
        # Not at once: a caller that was just answered may come again, and then shares the next commit.
        self._start_soon()

    async def finish(self) -> None:
        """Run what waits, and refuse new jobs."""
        self._closed = True
        await self._idle.wait()

    async def close(self) -> None:
        """Run what waits, then close the connections."""
        await self.finish()
        if self._joining is not None:
            self._joining.cancel()
        for worker in self._workers:
            await worker.close()
