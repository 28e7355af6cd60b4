"""The real server process for tests: started from the repository, spoken to over TLS, watched through
/proc, and ended.
"""

import asyncio
import contextlib
import json
import os
import random
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from tests.support import forked
from tests.support.forked import Forked

ROOT = Path(__file__).parent.parent.parent
APP = ROOT / "app.py"
COMMAND = ("app.py",)  # for a test of the start itself: the process is not forked
START_SECONDS = 30.0  # a second on an idle machine
STOP_SECONDS = 30.0  # the server itself takes at most 9.5 seconds of an idle machine


@dataclass(frozen=True)
class Counts:
    """What a process holds at one moment. `descriptors` leaves out those of the database, whose few readers open when
    needed.
    """

    descriptors: int
    threads: int
    rss_bytes: int


class RunningServer:
    """A server process that is listening. `folder` holds its data folder and its output; `plain` means
    SVC_TLS=proxy.
    """

    def __init__(
        self, process: subprocess.Popen[bytes] | Forked, folder: Path, data_dir: Path, base_url: str, *, plain: bool
    ) -> None:
        self.process = process
        self.pid = process.pid
        self.data_dir = data_dir
        self.base_url = base_url
        self.ca = data_dir / "tls" / "ca.pem"
        self.host = urlsplit(base_url).hostname or ""
        self.port = urlsplit(base_url).port or 0
        self._folder = folder
        self._plain = plain

    @cached_property
    def tls(self) -> ssl.SSLContext | None:
        """A client's TLS context that trusts the server's CA alone; None when the server speaks plain HTTP."""
        return None if self._plain else ssl.create_default_context(cafile=self.ca)

    def client(self, **options: Any) -> httpx.AsyncClient:
        """An httpx client for the server; `options` go to httpx.AsyncClient."""
        base_url = self.base_url.replace("https://", "http://") if self._plain else self.base_url
        if "verify" not in options:
            options["verify"] = self.tls or False
        return httpx.AsyncClient(**{"base_url": base_url, "trust_env": False, **options})

    async def raw(self, **options: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to the server, under TLS unless the server speaks plain HTTP."""
        return await asyncio.open_connection(self.host, self.port, ssl=self.tls, **options)

    async def exchange(self, data: bytes) -> bytes:
        """Sends `data` over a new connection and gives everything that comes back until the server hangs up."""
        reader, writer = await self.raw()
        writer.write(data)
        answer = await read_to_end(reader)
        await hang_up(writer)
        return answer

    def stdout(self) -> str:
        return (self._folder / "stdout").read_text()

    def stderr(self) -> str:
        return (self._folder / "stderr").read_text()

    def log_lines(self) -> list[dict[str, Any]]:
        """The log so far; fails when a line is no JSON object. A line comes after its answer: `logged` waits for it."""
        lines = [json.loads(line) for line in self.stderr().splitlines()]
        assert all(isinstance(line, dict) for line in lines)
        return lines

    def counts(self) -> Counts:
        """What the process holds now; some of it goes only a moment after its cause."""
        proc = Path("/proc") / str(self.pid)
        pages = int((proc / "statm").read_text().split()[1])
        opened, database = [], str(self.data_dir.resolve() / "service.db")
        for entry in (proc / "fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # closed in the meantime
                opened.append(os.readlink(entry))
        descriptors = sum(not target.startswith(database) for target in opened)
        return Counts(descriptors, len(list((proc / "task").iterdir())), pages * os.sysconf("SC_PAGE_SIZE"))

    async def settled_descriptors(self, at_most: int, within_seconds: float = 10.0) -> int:
        """The number of open descriptors once it is down to `at_most`, or after `within_seconds`."""
        deadline = time.monotonic() + within_seconds
        while self.counts().descriptors > at_most and time.monotonic() < deadline:
            await asyncio.sleep(0.05)
        return self.counts().descriptors

    def send_signal(self, number: signal.Signals = signal.SIGTERM) -> None:
        self.process.send_signal(number)

    async def wait(self) -> int:
        """The exit status. Raises subprocess.TimeoutExpired when the process has not ended within STOP_SECONDS."""
        return await asyncio.to_thread(self.process.wait, STOP_SECONDS)

    async def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Sends the signal and gives the exit status."""
        self.send_signal(number)
        return await self.wait()

    def kill(self) -> None:
        """Ends the process as a power cut would."""
        self.process.kill()
        self.process.wait()


def free_port() -> int:
    """Return a free port below those that the system gives to the servers of other tests."""
    while True:
        port = random.randrange(10_000, 32_000)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


@contextlib.contextmanager
def running_server_sync(
    tmp_path: Path, env: Mapping[str, str] | None = None, command: Sequence[str | Path] = (APP,), **popen: Any
) -> Iterator[RunningServer]:
    """A server in `tmp_path` with `env` over the tests' defaults; at the end it gets SIGTERM and must have exited in
    time.

    `command` is what follows `python`; `popen` goes to subprocess.Popen. Without `popen`, the application and a module
    (`-m`) are forked from a process that has imported the application.
    """
    settings = _settings(tmp_path, env)
    process = _start(tmp_path, settings, command, **popen)
    try:
        base_url = _wait_until_listening(process, tmp_path)
        data_dir = Path(settings["SVC_DATA_DIR"])
        yield RunningServer(process, tmp_path, data_dir, base_url, plain=settings.get("SVC_TLS") == "proxy")
        if process.poll() is None:
            process.terminate()
            process.wait(STOP_SECONDS)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


@contextlib.asynccontextmanager
async def running_server(
    tmp_path: Path, env: Mapping[str, str] | None = None, command: Sequence[str | Path] = (APP,), **popen: Any
) -> AsyncIterator[RunningServer]:
    """As `running_server_sync`, without blocking the event loop."""
    context = running_server_sync(tmp_path, env, command, **popen)
    server = await asyncio.to_thread(context.__enter__)
    try:
        yield server
    except BaseException as error:
        if not await asyncio.to_thread(context.__exit__, type(error), error, error.__traceback__):
            raise
    else:
        await asyncio.to_thread(context.__exit__, None, None, None)


def start_fails(
    tmp_path: Path, env: Mapping[str, str] | None = None, command: Sequence[str | Path] = (APP,)
) -> tuple[int, str, str]:
    """Starts a server that is expected to give up by itself: its exit status, stdout and stderr."""
    process = _start(tmp_path, _settings(tmp_path, env), command)
    try:
        status = process.wait(START_SECONDS)
    finally:
        process.kill()
        process.wait()
    return status, (tmp_path / "stdout").read_text(), (tmp_path / "stderr").read_text()


async def read_to_end(reader: asyncio.StreamReader, within_seconds: float = 15.0) -> bytes:
    """Everything that comes until the other side hangs up, be it rudely. Raises TimeoutError when it does not."""
    received = b""
    async with asyncio.timeout(within_seconds):
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            while data := await reader.read(65536):
                received += data
    return received


async def hang_up(writer: asyncio.StreamWriter) -> None:
    """Drops a connection without any ceremony."""
    writer.transport.abort()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


def _settings(tmp_path: Path, env: Mapping[str, str] | None) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("SVC_")}
    defaults = {"SVC_PORT": "0", "SVC_DATA_DIR": str(tmp_path / "data"), "SVC_DISCOVER": "0"}
    return {**inherited, **defaults, **(env or {})}


def _start(
    tmp_path: Path, env: dict[str, str], command: Sequence[str | Path], **popen: Any
) -> subprocess.Popen[bytes] | Forked:
    if command[0] in (APP, "-m") and not popen:
        module, *arguments = ["app"] if command[0] == APP else map(str, command[1:])
        return forked.start(module, tmp_path, env, arguments)
    # Files, not pipes: they never fill up, and outlive the process.
    with (tmp_path / "stdout").open("wb") as stdout, (tmp_path / "stderr").open("wb") as stderr:
        options = {"cwd": ROOT, "env": env, "stdout": stdout, "stderr": stderr, **popen}
        return subprocess.Popen([sys.executable, *command], **options)


def _wait_until_listening(process: subprocess.Popen[bytes] | Forked, tmp_path: Path) -> str:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        first, end, _ = (tmp_path / "stdout").read_text().partition("\n")
        if end:
            assert first.startswith("listening on https://"), first
            return first.removeprefix("listening on ")
        if process.poll() is not None:
            break
        time.sleep(0.01)
    raise AssertionError(f"the server did not start (status {process.poll()}): " + (tmp_path / "stderr").read_text())
