"""The laboratory of the attacks: a server of any checkout with a watched event loop, attackers, and a probe."""

import asyncio
import contextlib
import importlib
import json
import os
import pkgutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

import tests.attacks
from tests.support.server import ROOT, RunningServer, hang_up, running_server

PASSWORD = "correct horse battery"
MOST_SECONDS = 25.0
# The server itself, whose event loop has a pulse: the CPU time of its thread between two beats is what kept it from all
# else, however busy the machine is; and that of the writer's thread in a transaction is what others' writes wait for.
# SIGUSR1 writes the longest of each in milliseconds into the file PULSE_FILE, and starts again.
_COMMAND = (
    "-c",
    """
import os, signal, sys, time, uvloop
import app
from svc import db

make_loop, longest, last = uvloop.new_event_loop, 0.0, time.thread_time()
transaction, longest_transaction = db._Transactions.run, 0.0

def timed_transaction(*arguments):
    global longest_transaction
    began = time.thread_time()
    try:
        return transaction(*arguments)
    finally:
        longest_transaction = max(longest_transaction, time.thread_time() - began)

def new_event_loop():
    loop = make_loop()
    def beat():
        global longest, last
        now = time.thread_time()
        longest, last = max(longest, now - last), now
        loop.call_later(0.002, beat)
    loop.call_soon(beat)
    return loop

def write(*_):
    global longest, longest_transaction
    with open(os.environ["PULSE_FILE"] + ".new", "w") as file:
        print(max(longest, time.thread_time() - last) * 1000, longest_transaction * 1000, file=file)
    os.replace(os.environ["PULSE_FILE"] + ".new", os.environ["PULSE_FILE"])
    longest = longest_transaction = 0.0

db._Transactions.run = timed_transaction
uvloop.new_event_loop = new_event_loop
signal.signal(signal.SIGUSR1, write)
sys.exit(app.main())
""",
)


@dataclass
class Lab:
    """What an attack may use. `headers` are those of the attacker's session; `short`: a smaller or shorter form will
    do.

    `network` is the attack's own part of the loopback addresses: it shares no limit per address with others.
    """

    server: RunningServer
    client: httpx.AsyncClient
    headers: dict[str, str]
    email: str
    short: bool
    network: str
    root: Path = ROOT
    statuses: dict[str, int] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """Where the attacker comes from."""
        return f"{self.network}.0.3"

    @property
    def seconds(self) -> float:
        """How many seconds to continue an attack that has no fixed end."""
        return 0.3 if self.short else 3.0

    async def request(self, method: str, path: str, **options: Any) -> httpx.Response | None:
        """A request of the attacker; None when the server did not answer it at all. Its outcome is counted."""
        options["headers"] = {**self.headers, **options.get("headers", {})}
        try:
            answer = await self.client.request(method, path, **options)
        except httpx.HTTPError as error:
            self.count(type(error).__name__)
            return None
        self.count(str(answer.status_code))
        return answer

    async def post(self, path: str, body: Any, **options: Any) -> httpx.Response | None:
        """A request with `body` as JSON."""
        return await self.request("POST", path, json=body, **options)

    async def chat(self, **body: Any) -> httpx.Response | None:
        """A chat with the built-in assistant, unless `body` names another model."""
        return await self.post("/v1/chat/completions", {"model": "builtin/assistant", **body})

    def from_elsewhere(self, last: int, **options: Any) -> httpx.AsyncClient:
        """A client at another address of the attack's."""
        transport = httpx.AsyncHTTPTransport(verify=self.server.tls or False, local_address=f"{self.network}.1.{last}")
        return self.server.client(transport=transport, **options)

    async def account(self, number: int) -> dict[str, str]:
        """Return the headers of one more account, created from its own address."""
        async with self.from_elsewhere(10 + number) as client:
            return await _sign_up(client, f"{number}-{self.email}")

    @contextlib.asynccontextmanager
    async def connections(self, number: int, data: bytes = b"") -> AsyncIterator[list[asyncio.StreamWriter]]:
        """Connections of the attacker that have sent `data` and stay; fewer where the server takes no more."""
        opened = []
        for _ in range(number):
            try:
                async with asyncio.timeout(10):
                    _, writer = await self.server.raw(local_addr=(self.address, 0))
                writer.write(data)
                opened.append(writer)
            except (OSError, TimeoutError) as error:
                self.count(type(error).__name__)
        try:
            yield opened
        finally:
            for writer in opened:
                await hang_up(writer)

    async def fund(self) -> None:
        """Gives the attacker's account 20 dollars."""
        arguments = [sys.executable, "-m", "svc", "credit", self.email, "20"]
        env = {**os.environ, "PYTHONPATH": str(self.root), "SVC_DATA_DIR": str(self.server.data_dir)}
        process = await asyncio.create_subprocess_exec(*arguments, cwd=self.root, env=env, stdout=subprocess.DEVNULL)
        assert await process.wait() == 0

    async def at_once(self, number: int, one: Callable[[], Awaitable[Any]]) -> None:
        """Plays `one` as often, all at the same time."""
        await asyncio.gather(*(one() for _ in range(number)))

    async def flood(self, path: str, body: bytes, number: int = 20) -> None:
        """The same JSON body as often at the same time, a fourth as often in short."""
        headers = {"content-type": "application/json"}
        await self.at_once(
            max(number // 4, 1) if self.short else number,
            lambda: self.request("POST", path, content=body, headers=headers),
        )

    def count(self, outcome: str) -> None:
        self.statuses[outcome] = self.statuses.get(outcome, 0) + 1


Play = Callable[[Lab], Awaitable[None]]


@dataclass(frozen=True)
class Attack:
    name: str
    about: str
    play: Play


ATTACKS: dict[str, Attack] = {}


def attack(about: str) -> Callable[[Play], Play]:
    def register(play: Play) -> Play:
        name = getattr(play, "__name__")  # noqa: B009 - a callable need not have one, for mypy
        ATTACKS[name] = Attack(name, about, play)
        return play

    return register


def load() -> dict[str, Attack]:
    """All attacks of all modules in this folder."""
    for module in pkgutil.iter_modules(tests.attacks.__path__):
        if not module.name.startswith("__"):
            importlib.import_module(f"tests.attacks.{module.name}")
    return ATTACKS


@dataclass(frozen=True)
class Outcome:
    """What an attack did. `stall_ms`: the longest CPU time of one step of the event loop. `transaction_ms`: the longest
    transaction. `wait_ms`: the longest wait for /healthz. `write_ms`: the longest small write of another account over a
    new connection. `memory_mb`: the largest growth of the server."""

    stall_ms: float
    transaction_ms: float
    wait_ms: float
    write_ms: float
    memory_mb: float
    failures: int
    over_time: bool = False
    statuses: dict[str, int] = field(default_factory=dict)


class Pulse:
    """How long the loop of a server of `pulsing_server` stood still, and how long its writer was at one transaction."""

    def __init__(self, server: RunningServer, file: Path) -> None:
        self._server = server
        self._file = file

    async def longest_stall_ms(self) -> float:
        """Of the loop, as `longest_ms`."""
        return (await self.longest_ms())[0]

    async def longest_ms(self) -> tuple[float, float]:
        """Return the longest delay of the loop and of a transaction, in CPU time, since the last call. It is infinite
        if the loop does not reach the signal."""
        self._file.unlink(missing_ok=True)
        self._server.send_signal(signal.SIGUSR1)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(MOST_SECONDS):
                while not self._file.exists():
                    await asyncio.sleep(0.005)
                stall_ms, transaction_ms = map(float, self._file.read_text().split())
                return stall_ms, transaction_ms
        return float("inf"), float("inf")


@contextlib.asynccontextmanager
async def pulsing_server(
    folder: Path, env: Mapping[str, str] | None = None, root: Path = ROOT
) -> AsyncIterator[tuple[RunningServer, Pulse]]:
    """A server of the checkout `root` with its data in `folder`, and its pulse."""
    file = folder / "pulse"
    env = {"PYTHONPATH": str(root), "PULSE_FILE": str(file), **(env or {})}
    async with running_server(folder, env, _COMMAND, cwd=root) as server:
        yield server, Pulse(server, file)


class Laboratory:
    """A server, and a probe that sends it requests again and again."""

    def __init__(
        self, server: RunningServer, pulse: Pulse, probe: asyncio.subprocess.Process, root: Path, *, short: bool
    ) -> None:
        self._server = server
        self._pulse = pulse
        self._probe = probe
        self._root = root
        self._short = short
        self._played = 0
        self._before_mb = 0.0

    async def watch(self, seconds: float) -> Outcome:
        """Measure the waits of the probe without an attack."""
        await self._begin()
        await asyncio.sleep(seconds)
        return await self._noticed()

    async def play(self, attack: Attack) -> Outcome:
        """Run `attack` with its own account and addresses."""
        self._played += 1
        network = f"127.{self._played}"
        email = f"attacker{self._played}@example.com"
        transport = httpx.AsyncHTTPTransport(
            verify=self._server.tls or False, local_address=f"{network}.0.3", limits=httpx.Limits(max_connections=None)
        )
        async with self._server.client(transport=transport, timeout=MOST_SECONDS) as client:
            headers = await _sign_up(client, email)
            lab = Lab(self._server, client, headers, email, self._short, network, self._root)
            await self._begin()
            over_time = False
            try:
                async with asyncio.timeout(MOST_SECONDS):
                    await attack.play(lab)
            except TimeoutError:
                over_time = True
            found = await self._noticed(over_time=over_time, statuses=lab.statuses)
        if over_time:  # it may never come to its end
            self._server.kill()
        return found

    async def _begin(self) -> None:
        await self._report()
        await self._pulse.longest_stall_ms()
        self._before_mb = _peak_mb(self._server.pid, reset=True)

    async def _noticed(self, **more: Any) -> Outcome:
        found = await self._report()
        grown_mb = _peak_mb(self._server.pid) - self._before_mb
        stall_ms, transaction_ms = await self._pulse.longest_ms()
        return Outcome(
            stall_ms, transaction_ms, found["wait_ms"], found["write_ms"], grown_mb, int(found["failures"]), **more
        )

    async def _report(self) -> dict[str, float]:
        """What the probe has found since the last report."""
        assert self._probe.stdin is not None and self._probe.stdout is not None
        self._probe.stdin.write(b"report\n")
        found: dict[str, float] = json.loads(await self._probe.stdout.readline())
        return found


@contextlib.asynccontextmanager
async def laboratory(folder: Path, root: Path = ROOT, *, short: bool = False) -> AsyncIterator[Laboratory]:
    """A server of the checkout `root` with its data in `folder`, and the probe."""
    async with pulsing_server(folder, root=root) as (server, pulse):
        async with server.client() as client:
            other = await _sign_up(client, "somebody@example.com")
        token = other["authorization"].removeprefix("Bearer ")
        # A request each 20 ms takes a fifth of a core. The tests look for waits of half a second.
        what = [server.host, str(server.port), str(server.ca), token, "0.05" if short else "0.02"]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        probe = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.attacks.probe", *what, cwd=ROOT, **pipes
        )
        try:
            yield Laboratory(server, pulse, probe, root, short=short)
        finally:
            await probe.communicate(b"")


async def _sign_up(client: httpx.AsyncClient, email: str) -> dict[str, str]:
    answer = await client.post("/auth/signup", json={"email": email, "password": PASSWORD})
    assert answer.status_code == 201, answer.text
    return {"authorization": f"Bearer {answer.json()['access_token']}"}


def _peak_mb(pid: int, *, reset: bool = False) -> float:
    """The most memory that the process has had since the last reset; with `reset` what it has now."""
    with contextlib.suppress(OSError):
        if reset:
            Path(f"/proc/{pid}/clear_refs").write_text("5")
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 1024
    return 0.0
