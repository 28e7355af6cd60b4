"""Helper processes for work that would block the server: one for each order, a few at once, ended with the caller or the server.

run() -> a turn (fair among accounts; 503 when too many wait) -> a process: the order as a JSON line to its stdin -> its stdout
      -> its end | the caller has left: it is killed | it takes too long, fails or dies: UpstreamFault
A process lives as long as its order: none is left behind, none has to be mended, and its memory goes with it.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections import Counter, deque
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from svc.errors import ApiError, UpstreamFault

_ROOT = Path(__file__).parent.parent.parent
# Nothing else of the environment goes along: it may hold the operator's secrets.
_PASSED_ON = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "ESPEAK_DATA_PATH")
_RETRY_SECONDS = 5


@dataclass(eq=False)
class _Job:
    """An order under way. Whoever comes second, the thread with its process or the loop with the end, ends the process."""

    order: bytes
    files: tuple[int, ...]  # copies of descriptors: the caller may leave and close its own before the process starts
    process: "subprocess.Popen[bytes] | None" = None
    dropped: bool = False

    def drop(self) -> None:
        self.dropped = True
        if self.process is not None and self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)  # with what it has started in turn

    def close_files(self) -> None:
        for file in self.files:
            os.close(file)


class Turns:
    """`at_once` turns, which go round among the accounts that wait; of several, one account never has all."""

    def __init__(self, at_once: int, most_waiting: int) -> None:
        self._free = at_once
        self._most_of_one = max(at_once - 1, 1)
        self._most_waiting = most_waiting
        self._taken: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # the account whose turn is next stands first

    @contextlib.asynccontextmanager
    async def taken(self, account_id: str) -> AsyncIterator[None]:
        """Has a turn for the block. Raises ApiError `overloaded`."""
        if sum(map(len, self._waiting.values())) >= self._most_waiting:
            message = "Too much is being made already. Try again in a few seconds."
            raise ApiError("overloaded", message, retry_after_seconds=_RETRY_SECONDS)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(account_id, deque()).append(turn)
        self._give()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():  # it still waits in its line, where it is passed over
                self._give()
            else:
                self._give_back(account_id)
            raise
        try:
            yield
        finally:
            self._give_back(account_id)

    def _give_back(self, account_id: str) -> None:
        self._free += 1
        self._taken[account_id] -= 1
        if not self._taken[account_id]:
            del self._taken[account_id]
        self._give()

    def _give(self) -> None:
        passed: dict[str, deque[asyncio.Future[None]]] = {}
        served: dict[str, deque[asyncio.Future[None]]] = {}
        for account_id, line in self._waiting.items():
            while line and line[0].done():
                line.popleft()
            if line and self._free and self._taken[account_id] < self._most_of_one:
                self._free -= 1
                self._taken[account_id] += 1
                line.popleft().set_result(None)
                served[account_id] = line
            else:
                passed[account_id] = line
        self._waiting = {account_id: line for account_id, line in (passed | served).items() if line}


class Workshop:
    """Runs orders in processes of `python -m <module>`: `at_once` of them, while up to `waiting` more wait for their turn."""

    def __init__(self, module: str, *, at_once: int = 2, waiting: int = 256, seconds: float = 120.0) -> None:
        # Without site-packages and without the variables that would change how Python starts.
        self._command = (sys.executable, "-ESs", "-m", module)
        self._turns = Turns(at_once, waiting)
        # A process is started and awaited in a thread: the event loop would stand still for 10 ms and more while it starts.
        self._threads = ThreadPoolExecutor(at_once, thread_name_prefix=module)
        self._seconds = seconds
        self._open: set[_Job] = set()
        self._begun_any = False
        self._closed = False

    async def run(self, order: Mapping[str, Any], file: BinaryIO | None = None, *, account_id: str = "") -> bytes:
        """What the process writes to stdout. It inherits `file`; the order tells it the descriptor as `file`.

        `account_id` is whose order it is, "" for the service's own.
        Raises ApiError `overloaded`, `shutting_down`, and UpstreamFault: `cut` when the process dies, `timeout`.
        """
        async with self._turns.taken(account_id):
            if self._closed:
                raise ApiError("shutting_down")
            return await self._begun(order, file)

    def at_work(self) -> int:
        """How many orders have a process now."""
        return len(self._open)

    async def _begun(self, order: Mapping[str, Any], file: BinaryIO | None) -> bytes:
        files: tuple[int, ...] = ()
        if file is not None:
            files = (os.dup(file.fileno()),)
            order = {**order, "file": files[0]}
        job = _Job(orjson.dumps(order) + b"\n", files)
        self._open.add(job)
        self._begun_any = True
        working = self._threads.submit(self._run, job)
        try:
            return await asyncio.wrap_future(working)
        finally:
            job.drop()
            if working.cancel():  # before it began
                job.close_files()
            self._open.remove(job)

    def _run(self, job: _Job) -> bytes:
        try:
            process = self._start(job)
        except OSError as error:
            raise ApiError("overloaded", "No further process can be started now. Try again later.") from error
        finally:
            job.close_files()
        with process:
            job.process = process
            if job.dropped:
                job.drop()
            try:
                output, _ = process.communicate(job.order, self._seconds)
            except subprocess.TimeoutExpired:
                job.drop()
                raise UpstreamFault("timeout", "The helper process takes too long.") from None
        if process.returncode:
            raise UpstreamFault("cut", f"The helper process ended with status {process.returncode}.")
        return output

    def _start(self, job: _Job) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(  # noqa: S603 - our own program
            self._command,
            cwd=_ROOT,
            env={name: os.environ[name] for name in _PASSED_ON if name in os.environ},
            pass_fds=job.files,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    async def close(self) -> None:
        """Kills every process and waits until all are gone."""
        self._closed = True
        for job in self._open:
            job.drop()
        if self._begun_any:  # or there is no thread, and another one need not begin for this
            await asyncio.to_thread(self._threads.shutdown)
