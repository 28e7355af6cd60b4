"""Resolves names that users chose, in processes that end in time.

getaddrinfo() cannot be cancelled: a name whose DNS server never answers would block a thread for half a minute.

call -> a place (accounts take turns) -> a line to the helper process (svc/outbound/resolver_process.py)
     -> its answer, or none after the timeout; only then the place is free, even if the caller was cancelled before
"""

import asyncio
import contextlib
import itertools
import os
import re
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from ipaddress import ip_address
from pathlib import Path

from svc.fair_queue import FairQueue

_AT_ONCE = 128  # processes of 0.4 MB
_AT_ONCE_OF_ACCOUNT = 8
_NAME = re.compile(r"[A-Za-z0-9._-]{1,255}")
PROGRAM = Path(__file__).with_name("resolver_process.py")
_PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "LOCALDOMAIN", "RES_OPTIONS")  # other variables may hold secrets


class Resolver:
    """Resolves through the system. Accounts with silent DNS servers wait behind those without, and always leave places
    for them.

    `seconds` is the timeout of a lookup. By default it ends when glibc would ask a second time.
    """

    def __init__(self, seconds: float = 5.0) -> None:
        self._seconds = seconds
        self._queue = FairQueue(_AT_ONCE, _AT_ONCE_OF_ACCOUNT)
        self._process: Process | None = None
        self._starting = asyncio.Lock()
        self._reading: asyncio.Task[None] | None = None
        self._numbers = itertools.count()
        self._closed = False
        self._answers: dict[int, asyncio.Future[list[str]]] = {}

    async def __call__(self, host: str, port: int, account_id: str = "") -> list[str]:
        """Return the addresses of `host`, which `account_id` named ("" for the operator, who has no share).

        Raises OSError for a name without an address or an answer in time, ValueError for what is no name.
        """
        with contextlib.suppress(ValueError):  # an address needs no lookup
            return [str(ip_address(host))]
        if _NAME.fullmatch(host) is None:
            raise ValueError("the host is no name")
        release = await self._queue.take(account_id)
        try:
            process = await self._started()
        except BaseException:
            release()
            raise
        loop = asyncio.get_running_loop()
        number = next(self._numbers)
        answer: asyncio.Future[list[str]] = loop.create_future()
        self._answers[number] = answer
        answer.add_done_callback(lambda _: release())
        loop.call_later(self._seconds, self._end, number, [])
        assert process.stdin is not None
        process.stdin.write(f"{number} {host}\n".encode())
        if not (addresses := await asyncio.shield(answer)):
            raise OSError("the name has no address, or the DNS server did not answer in time")
        return addresses

    async def _started(self) -> Process:
        async with self._starting:
            if self._closed:
                raise OSError("the resolver is closed")
            if self._process is None:
                self._process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-IS", PROGRAM, str(self._seconds)),
                    stdin=PIPE,
                    stdout=PIPE,
                    stderr=DEVNULL,
                    env={name: os.environ[name] for name in _PASSED_ON if name in os.environ},
                    start_new_session=True,
                )
                self._reading = asyncio.create_task(self._read(self._process))
            return self._process

    async def _read(self, process: Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            number, *addresses = line.decode().split()
            self._end(int(number), addresses)
        self._process = None  # the next lookup starts another one
        for pending in list(self._answers):
            self._end(pending, [])
        await process.wait()

    def _end(self, number: int, addresses: list[str]) -> None:
        if (answer := self._answers.pop(number, None)) is not None:
            answer.set_result(addresses)

    async def aclose(self) -> None:
        """End the helper process and with it every lookup."""
        self._closed = True
        async with self._starting:
            if self._process is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)
        if self._reading is not None:
            await self._reading
