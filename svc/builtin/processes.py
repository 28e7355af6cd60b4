"""Helper processes for work that would block the server: a process for each order, ended with its caller or the server.

run() -> a place (accounts take turns), or 503 -> a process: the order as a JSON line to its stdin -> its stdout
      -> its end | it is killed when the caller is cancelled | UpstreamFault when it takes too long, fails or dies
converse() -> the same, but the process may ask before: a line `?...` on its stdout, answered by a line on its stdin
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, ParamSpec

import orjson

from svc.errors import ApiError, UpstreamFault
from svc.fair_queue import FairQueue

P = ParamSpec("P")
_PATIENCE_SECONDS = 2.0
_LINE_BYTES = 4 * 1024 * 1024
_RETRY_SECONDS = 5
_ROOT = Path(__file__).parent.parent.parent
# Other variables may hold the operator's secrets.
_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "ESPEAK_DATA_PATH")


@dataclass(eq=False)
class _Job:
    """An order with its process. `drop` may be called in any thread."""

    order: bytes
    files: tuple[int, ...]
    process: "subprocess.Popen[bytes] | None" = None
    dropped: bool = False

    def drop(self) -> None:
        self.dropped = True
        if self.process is not None and self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)  # and the processes that it has started

    def ask(self, line: bytes) -> bytes:
        """Send a line to the process, and return its next line, or nothing if it has ended. For a thread."""
        assert self.process is not None and self.process.stdin is not None and self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(line)
            self.process.stdin.flush()
        return self.process.stdout.readline(_LINE_BYTES)

    def close(self) -> None:
        """Wait for the end of the dropped process, and close its pipes. For a thread."""
        assert self.process is not None
        with contextlib.suppress(BrokenPipeError), self.process:
            pass


class ProcessPool:
    """Runs orders in processes of a module (see helper.py), `at_once` of them, less one for each account.

    An account waits for its own orders, but for those of others at most 2 seconds. The callers limit how many wait.
    With `wait_seconds` it waits at most so long. If it also `waits_for_others` as long, a refusal is its own (429).
    """

    def __init__(
        self,
        module: str,
        *,
        at_once: int = 2,
        seconds: float = 120.0,
        wait_seconds: float | None = None,
        waits_for_others: bool = False,
    ) -> None:
        # Without site-packages and without the variables that change how Python starts.
        self._command = (sys.executable, "-ESs", "-m", "svc.builtin.helper", module)
        self._queue = FairQueue(at_once, max(at_once - 1, 1), None if waits_for_others else _PATIENCE_SECONDS)
        self._wait_seconds, self._waits_for_others = wait_seconds, waits_for_others
        # To start a process on the event loop would block it for 10 ms and more.
        self._threads = ThreadPoolExecutor(at_once, thread_name_prefix=module)
        self._seconds = seconds
        self._jobs: set[_Job] = set()
        self._closed = False

    async def run(
        self, order: Mapping[str, Any], file: BinaryIO | None = None, *, account_id: str = "", patient: bool = False
    ) -> bytes:
        """Return the stdout of the process. It inherits `file`, whose descriptor is added to the order as `file`.

        `account_id` is the account that pays, or "" for the service. A `patient` order continues work that has begun
        and waits without end. Raises ApiError `overloaded` (with `waits_for_others` `rate_limit_exceeded`) and
        `shutting_down`, and UpstreamFault: `cut` when the process dies, `timeout`.
        """
        async with self._placed(order, file, account_id, patient) as job:
            return await self._threaded(self._run, job)

    async def converse(
        self, order: Mapping[str, Any], answer: Callable[[bytes], Awaitable[bytes]], *, account_id: str
    ) -> bytes:
        """Return the last line of the process, which is its result. `answer` returns the answer to each question.

        Raises what `run` and `answer` raise.
        """
        async with self._placed(order, None, account_id, patient=False) as job:
            try:
                async with asyncio.timeout(self._seconds):
                    line = await self._threaded(self._begin, job)
                    while line.startswith(b"?"):
                        line = await self._threaded(job.ask, await answer(line[1:]) + b"\n")
            except TimeoutError:
                raise UpstreamFault("timeout", "The helper process takes too long.") from None
            finally:
                job.drop()
                if job.process is not None:
                    asyncio.get_running_loop().run_in_executor(None, job.close)
            if not line:
                raise UpstreamFault("cut", "The helper process ended early.")
            return line

    @contextlib.asynccontextmanager
    async def _placed(
        self, order: Mapping[str, Any], file: BinaryIO | None, account_id: str, patient: bool
    ) -> AsyncIterator[_Job]:
        """Wait for a place, and yield the job, which is dropped at the end. Raises ApiError."""
        with contextlib.ExitStack() as at_end:
            try:
                async with asyncio.timeout(None if patient else self._wait_seconds) as wait:
                    at_end.callback(await self._queue.take(account_id, patient=patient))
            except TimeoutError:
                code = "rate_limit_exceeded" if self._waits_for_others else "overloaded"
                message = "The service is busy with the work of others. Try again in a few seconds."
                if wait.expired():
                    message = f"All places were taken for {self._wait_seconds:g} seconds. Try again in a few seconds."
                raise ApiError(code, message, retry_after_seconds=_RETRY_SECONDS) from None
            files = () if file is None else (file.fileno(),)
            job = _Job(orjson.dumps({**order, "file": files[0]} if files else order) + b"\n", files)
            self._jobs.add(job)
            at_end.callback(self._jobs.remove, job)
            at_end.callback(job.drop)
            yield job

    async def _threaded(self, function: Callable[P, bytes], *arguments: P.args, **named: P.kwargs) -> bytes:
        if self._closed:
            raise ApiError("shutting_down")
        return await asyncio.wrap_future(self._threads.submit(function, *arguments, **named))

    def at_work(self) -> int:
        return len(self._jobs)

    def _run(self, job: _Job) -> bytes:
        with self._started(job) as process:
            try:
                output, _ = process.communicate(job.order, self._seconds)
            except subprocess.TimeoutExpired:
                job.drop()
                raise UpstreamFault("timeout", "The helper process takes too long.") from None
        if process.returncode:
            raise UpstreamFault("cut", f"The helper process ended with status {process.returncode}.")
        return output

    def _begin(self, job: _Job) -> bytes:
        self._started(job)
        line = job.ask(job.order)
        if job.dropped:  # before it had a process, so that nobody else closes it
            job.close()
        return line

    def _started(self, job: _Job) -> "subprocess.Popen[bytes]":
        try:
            process = subprocess.Popen(  # noqa: S603 - our own program
                self._command,
                cwd=_ROOT,
                env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
                pass_fds=job.files,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            raise ApiError("overloaded", "No further process can be started now. Try again later.") from error
        job.process = process
        if job.dropped:  # no process gets this job, because its file may be closed
            job.drop()
        return process

    async def close(self) -> None:
        """Kill every process and wait until all have ended."""
        self._closed = True
        for job in self._jobs:
            job.drop()
        await asyncio.to_thread(self._threads.shutdown)
