"""Helper processes for work that would block the server: one for each order, a few at once, ended with the caller or the server.

run() -> a turn (503 when too many wait) -> a process: the order as a JSON line to its stdin -> its stdout
      -> its end | the caller has left: it is killed | it takes too long, fails or dies: UpstreamFault
A process lives as long as its order: none is left behind, none has to be mended, and its memory goes with it.
"""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from svc.errors import ApiError, UpstreamFault

_ROOT = Path(__file__).parent.parent.parent
# Nothing else of the environment goes along: it may hold the operator's secrets.
_PASSED_ON = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "ESPEAK_DATA_PATH")
_RETRY_SECONDS = 5


class Workshop:
    """Runs orders in processes of `python -m <module>`: `at_once` of them, while up to `waiting` more wait for their turn."""

    def __init__(self, module: str, *, at_once: int = 2, waiting: int = 64, seconds: float = 120.0) -> None:
        # Without site-packages and without the variables that would change how Python starts.
        self._command = (sys.executable, "-ESs", "-m", module)
        self._turns = asyncio.Semaphore(at_once)
        self._waiting = 0
        self._most_waiting = waiting
        self._seconds = seconds
        self._processes: set[asyncio.subprocess.Process] = set()
        self._closed = False

    async def run(self, order: Mapping[str, Any], *, files: Sequence[int] = ()) -> bytes:
        """What the process writes to stdout; `files` are descriptors that it inherits under their numbers.

        Raises ApiError `overloaded`, `shutting_down`, and UpstreamFault: `cut` when the process dies, `timeout`.
        """
        if self._waiting >= self._most_waiting:
            message = "Too much is being made already. Try again in a few seconds."
            raise ApiError("overloaded", message, retry_after_seconds=_RETRY_SECONDS)
        self._waiting += 1
        try:
            await self._turns.acquire()
        finally:
            self._waiting -= 1
        try:
            return await self._run(orjson.dumps(order) + b"\n", files)
        finally:
            self._turns.release()

    async def _run(self, order: bytes, files: Sequence[int]) -> bytes:
        if self._closed:
            raise ApiError("shutting_down")
        self._processes = {process for process in self._processes if process.returncode is None}
        process = await asyncio.create_subprocess_exec(
            *self._command,
            cwd=str(_ROOT),
            env={name: os.environ[name] for name in _PASSED_ON if name in os.environ},
            pass_fds=files,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,  # so that what it starts in turn can be ended with it
        )
        self._processes.add(process)
        try:
            async with asyncio.timeout(self._seconds):
                output, _ = await process.communicate(order)
        except TimeoutError:
            raise UpstreamFault("timeout", "The helper process takes too long.") from None
        finally:
            _end(process)
        if process.returncode:
            raise UpstreamFault("cut", f"The helper process ended with status {process.returncode}.")
        return output

    async def close(self) -> None:
        """Kills every process and waits until all are gone."""
        self._closed = True
        for process in self._processes:
            _end(process)
        await asyncio.gather(*(process.wait() for process in self._processes))


def _end(process: asyncio.subprocess.Process) -> None:
    # With what it has started in turn. Nobody waits for the end, which a caller who has left could not do: the loop reaps it.
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
