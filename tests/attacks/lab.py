"""The laboratory of the attacks: a server of any checkout, an attacker, somebody else, and the measuring of one attack."""

import asyncio
import contextlib
import importlib
import json
import os
import pkgutil
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

import tests.attacks
from tests.support.server import ROOT, RunningServer, hang_up, running_server

PASSWORD = "correct horse battery"
ATTACKER = "127.0.0.3"
MOST_SECONDS = 25.0


@dataclass
class Lab:
    """What an attack may use. `headers` are those of the attacker's session; `short`: a smaller or shorter form will do."""

    server: RunningServer
    client: httpx.AsyncClient
    headers: dict[str, str]
    short: bool
    root: Path = ROOT
    statuses: dict[str, int] = field(default_factory=dict)

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

    async def account(self, number: int) -> dict[str, str]:
        """The headers of a further account, made from an address of its own."""
        options = {
            "transport": httpx.AsyncHTTPTransport(verify=self.server.tls or False, local_address=f"127.1.{number // 250}.9")
        }
        async with self.server.client(**options) as client:
            return await _sign_up(client, f"attacker{number}@example.com")

    @contextlib.asynccontextmanager
    async def connections(self, number: int, data: bytes = b"") -> AsyncIterator[list[asyncio.StreamWriter]]:
        """Connections of the attacker that have sent `data` and stay; fewer where the server takes no more."""
        opened = []
        for _ in range(number):
            try:
                async with asyncio.timeout(10):
                    _, writer = await self.server.raw(local_addr=(ATTACKER, 0))
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
        arguments = [sys.executable, "-m", "svc", "credit", "attacker@example.com", "20"]
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
            max(number // 4, 1) if self.short else number, lambda: self.request("POST", path, content=body, headers=headers)
        )

    def count(self, outcome: str) -> None:
        self.statuses[outcome] = self.statuses.get(outcome, 0) + 1


Play = Callable[[Lab], Awaitable[None]]


@dataclass(frozen=True)
class Attack:
    name: str
    about: str
    play: Play
    env: dict[str, str]


ATTACKS: dict[str, Attack] = {}


def attack(about: str, **env: str) -> Callable[[Play], Play]:
    """Registers an attack; `env` are settings that its server needs, such as SVC_SIGNUP="closed"."""

    def register(play: Play) -> Play:
        name = getattr(play, "__name__")  # noqa: B009 - a callable need not have one, for mypy
        ATTACKS[name] = Attack(name, about, play, env)
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
    """What an attack did. `stall_ms`: the CPU time of the longest wait for /healthz, which nothing else explains; `wait_ms`: the
    wait itself; `write_ms`: of another account's small write over a new connection; `memory_mb`: what the server grew by at most.
    """

    stall_ms: float
    wait_ms: float
    write_ms: float
    memory_mb: float
    failures: int
    over_time: bool
    statuses: dict[str, int]


async def measure(attack: Attack, folder: Path, root: Path = ROOT, *, short: bool = False) -> Outcome:
    """Plays `attack` against a server of the checkout `root` with its data in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    env = {**attack.env, "PYTHONPATH": str(root)}
    async with running_server(folder, env, (root / "app.py",), cwd=root) as server:
        async with server.client() as client:
            other = await _sign_up(client, "somebody@example.com")
        transport = httpx.AsyncHTTPTransport(
            verify=server.tls or False, local_address=ATTACKER, limits=httpx.Limits(max_connections=None)
        )
        async with server.client(transport=transport, timeout=MOST_SECONDS) as client:
            lab = Lab(server, client, await _sign_up(client, "attacker@example.com"), short, root)
            outcome = await _watched(lab, attack, other)
        if outcome.over_time:
            server.kill()
        return outcome


async def _watched(lab: Lab, attack: Attack, other: dict[str, str]) -> Outcome:
    token = other["authorization"].removeprefix("Bearer ")
    await asyncio.sleep(0.3)  # what the start left to do
    before_mb = _peak_mb(lab.server.pid, reset=True)
    what = [lab.server.host, str(lab.server.port), str(lab.server.ca), token, str(lab.server.pid)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    probe = await asyncio.create_subprocess_exec(sys.executable, "-m", "tests.attacks.probe", *what, cwd=ROOT, **pipes)
    over_time = False
    try:
        await asyncio.sleep(0.5)
        async with asyncio.timeout(MOST_SECONDS):
            await attack.play(lab)
    except TimeoutError:
        over_time = True
    finally:
        output, _ = await probe.communicate(b"")
    found = json.loads(output)
    grown_mb = _peak_mb(lab.server.pid) - before_mb
    failures = int(found["failures"])
    return Outcome(found["stall_ms"], found["wait_ms"], found["write_ms"], grown_mb, failures, over_time, lab.statuses)


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
