"""Memory does not grow: mixed load on a server process, and the slope of its memory in use at rest.

`python -m tests.soak_memory [--minutes 30]` prints a line for each sample. At the end it prints the slope in MB per
hour of load, without the first third, in which caches and pools fill. The figure is the memory that the allocator has
given out, which is exact. Freed memory that it keeps and the pages in SQLite's caches do not count: they vary more than
a leak of hours. These two have a bound each.
"""

import argparse
import asyncio
import json
import random
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.support.agent_runs import Account, add_accounts
from tests.support.server import RunningServer, running_server

MOST_MB_AN_HOUR = 1.0
MOST_HELD_MB, MOST_SQLITE_MB = 250.0, 24.0
_PEOPLE = 24
_PAUSE_SECONDS = 1.0  # of each of them between two requests: 120 a minute are theirs
_SAMPLE_SECONDS = 20.0
_REST_SECONDS = 0.5
_MIB = 2**20
# The server itself; at SIGUSR1 it writes into the file MEMORY_FILE how many bytes it has in use, how many of them are
# SQLite's, and how many objects of each type there are. Python's own allocator, which would hide them in arenas, is
# off.
_ENV = {"PYTHONMALLOC": "malloc"}
_COMMAND = (
    "-c",
    """
import _sqlite3, collections, ctypes, gc, json, os, signal, sys
import app

NAMES = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"

class Mallinfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in NAMES.split()]

libc, sqlite = ctypes.CDLL(None), ctypes.CDLL(_sqlite3.__file__)
libc.mallinfo2.restype, sqlite.sqlite3_memory_used.restype = Mallinfo, ctypes.c_int64

def tell(*_):
    gc.collect()
    libc.malloc_trim(0)
    found = libc.mallinfo2()
    types = collections.Counter(type(thing).__qualname__ for thing in gc.get_objects())
    with open(os.environ["MEMORY_FILE"] + ".new", "w") as file:
        json.dump([found.uordblks + found.hblkhd, sqlite.sqlite3_memory_used(), types.most_common(80)], file)
    os.replace(os.environ["MEMORY_FILE"] + ".new", os.environ["MEMORY_FILE"])

signal.signal(signal.SIGUSR1, tell)
sys.exit(app.main())
""",
)


@dataclass(frozen=True)
class Sample:
    """The memory so many seconds after the start: in use without SQLite, of SQLite, and resident. `objects` counts the
    objects of each type."""

    seconds: float
    used_mb: float
    sqlite_mb: float
    held_mb: float
    objects: dict[str, int]


@dataclass
class Load:
    """Requests by status. 0 counts broken connections, as a kept one may break when it is used again."""

    rnd: random.Random
    statuses: Counter[int] = field(default_factory=Counter)
    goes_on: asyncio.Event = field(default_factory=asyncio.Event)
    under_way: int = 0

    async def at_rest(self) -> None:
        """Returns when nothing is under way and nothing begins."""
        self.goes_on.clear()
        while self.under_way:
            await asyncio.sleep(0.05)
        await asyncio.sleep(_REST_SECONDS)

    async def ask(self, client: httpx.AsyncClient, method: str, path: str, **options: Any) -> httpx.Response:
        answer = await client.request(method, path, **options)
        self.statuses[answer.status_code] += 1
        return answer


async def _chat(load: Load, client: httpx.AsyncClient) -> None:
    messages = [{"role": "user", "content": "hello " * load.rnd.randrange(1, 2_000)}]
    model = load.rnd.choice(["builtin/echo", "builtin/assistant", "builtin/assistant-paid"])
    body = {"model": model, "messages": messages, "stream": load.rnd.random() < 0.7}
    await load.ask(client, "POST", "/v1/chat/completions", json=body)


async def _leave(load: Load, client: httpx.AsyncClient) -> None:
    body = {
        "model": "builtin/script",
        "messages": [{"role": "user", "content": "repeat 100 say x\nwait 5000"}],
        "stream": True,
    }
    async with client.stream("POST", "/v1/chat/completions", json=body) as answer:
        load.statuses[answer.status_code] += 1
        await anext(answer.aiter_bytes())


async def _run(load: Load, client: httpx.AsyncClient) -> None:
    await load.ask(
        client, "POST", "/v1/agents/run", json={"goal": "Compute 12 * (3 + 4)", "model": "builtin/assistant"}
    )
    await load.ask(client, "GET", "/v1/agents/runs?limit=5")


async def _files(load: Load, client: httpx.AsyncClient) -> None:
    made = (await load.ask(client, "POST", "/artifacts", json={"name": "x", "content": "x"})).json()
    path = f"/artifacts/{made['id']}"
    await load.ask(client, "PUT", f"{path}/content", content=bytes(load.rnd.randrange(3_000_000)))
    await load.ask(client, "GET", f"{path}/content")
    await load.ask(client, "DELETE", path)


async def _talk(load: Load, client: httpx.AsyncClient) -> None:
    made = (await load.ask(client, "POST", "/conversations", json={"title": "x"})).json()
    path = f"/conversations/{made['id']}"
    words = " ".join(load.rnd.choices(["alpha", "beta", "gamma", "delta", "epsilon"], k=load.rnd.randrange(1, 3_000)))
    await load.ask(client, "POST", f"{path}/messages", json={"role": "user", "content": words})
    await load.ask(client, "GET", "/conversations?q=gamma")
    await load.ask(client, "DELETE", path)


async def _key(load: Load, client: httpx.AsyncClient) -> None:
    made = (await load.ask(client, "POST", "/user/api-keys", json={"name": "x"})).json()
    await load.ask(client, "GET", "/user/me", headers={"authorization": f"Bearer {made['key']}"})
    await load.ask(client, "DELETE", f"/user/api-keys/{made['id']}")


async def _wrong(load: Load, client: httpx.AsyncClient) -> None:
    await load.ask(client, "POST", "/v1/chat/completions", content=b"{" * load.rnd.randrange(1, 100_000))
    await load.ask(client, "GET", f"/artifacts/art_{load.rnd.getrandbits(64)}")


KINDS: tuple[Callable[[Load, httpx.AsyncClient], Awaitable[None]], ...] = (
    _chat,
    _leave,
    _run,
    _files,
    _talk,
    _key,
    _wrong,
)


async def measure(folder: Path, seconds: float, tell: Callable[[str], None] = print) -> tuple[list[Sample], Load]:
    """Plays the load for `seconds`: the samples, and what was answered."""
    load = Load(random.Random(0))
    samples: list[Sample] = []
    file = folder / "memory"
    async with running_server(folder, {**_ENV, "MEMORY_FILE": str(file)}, _COMMAND) as server:
        people = add_accounts(server, _PEOPLE, micros=1_000_000_000)
        began = time.monotonic()
        working = [asyncio.create_task(_work(server, who, load)) for who in people]
        try:
            while time.monotonic() - began < seconds:
                load.goes_on.set()
                await asyncio.sleep(min(_SAMPLE_SECONDS, seconds / 4))
                await load.at_rest()  # what requests hold while they are under way would hide a slope
                samples.append(await _sample(server, file, time.monotonic() - began))
                last = samples[-1]
                memory = f"{last.used_mb:7.2f} MB in use, SQLite {last.sqlite_mb:6.2f}, held {last.held_mb:7.2f}"
                tell(f"{last.seconds:5.0f} s {memory}, {sum(load.statuses.values())} requests")
                for task in working:
                    if task.done():
                        await task
        finally:
            for task in working:
                task.cancel()
            await asyncio.gather(*working, return_exceptions=True)
    return samples, load


async def _sample(server: RunningServer, file: Path, seconds: float) -> Sample:
    file.unlink(missing_ok=True)
    server.send_signal(signal.SIGUSR1)
    async with asyncio.timeout(30):
        while not file.exists():
            await asyncio.sleep(0.02)
    used, sqlite, objects = json.loads(file.read_text())
    return Sample(seconds, (used - sqlite) / _MIB, sqlite / _MIB, _held_mb(server.pid), dict(objects))


async def _work(server: RunningServer, who: Account, load: Load) -> None:
    """One client, with a connection for the whole load: an open one has 100 KB of TLS at rest."""
    while True:
        await load.goes_on.wait()
        load.under_way += 1
        try:
            async with server.client(headers={**who.headers, "content-type": "application/json"}, timeout=60) as client:
                while load.goes_on.is_set():
                    try:
                        await load.rnd.choice(KINDS)(load, client)
                    except httpx.TransportError:
                        load.statuses[0] += 1
                    await asyncio.sleep(load.rnd.uniform(0.5, 1.5) * _PAUSE_SECONDS)
        finally:
            load.under_way -= 1


def _held_mb(pid: int) -> float:
    """Return the process's private memory, resident or swapped out, without the pages of files."""
    lines = (line.split() for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:])
    kib = {name: int(number) for name, number, *_ in lines}
    return (kib["Anonymous:"] + kib["Swap:"]) / 1024


def mb_an_hour(samples: list[tuple[float, float]]) -> float:
    """The slope of the samples, (seconds, MB), behind the first third."""
    late = [sample for sample in samples if sample[0] > samples[-1][0] / 3]
    return statistics.linear_regression(*zip(*late, strict=True)).slope * 3600


def within_bounds(samples: list[Sample]) -> bool:
    return all(sample.held_mb < MOST_HELD_MB and sample.sqlite_mb < MOST_SQLITE_MB for sample in samples)


def grown(samples: list[Sample]) -> dict[str, int]:
    """Return the growth of the number of objects of each type since the first third, the largest first."""
    first, last = samples[len(samples) // 3].objects, samples[-1].objects
    more = Counter({name: count - first.get(name, count) for name, count in last.items()})
    return {name: count for name, count in more.most_common(8) if count > 0}


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        samples, load = await measure(Path(folder), arguments.minutes * 60, lambda line: print(line, flush=True))
    used = mb_an_hour([(sample.seconds, sample.used_mb) for sample in samples])
    held = mb_an_hour([(sample.seconds, sample.held_mb) for sample in samples])
    print(f"{used:+.2f} MB an hour of load in use, {held:+.2f} held; answers: {dict(sorted(load.statuses.items()))}")
    print(f"objects that have become more: {grown(samples)}")
    return 0 if used < MOST_MB_AN_HOUR and within_bounds(samples) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
