"""What the hot path costs, beside bare pass-throughs in the same rounds: `python -m tests.bench [--help]`.

CPU is that of all threads of the server process, on open connections. Other programs on the machine hardly change it.
Each server has one core. A second core saves the single-threaded servers nothing, and ours pays for passing Python's
lock between cores. The rounds of a row are interleaved: each server runs once, then each again. The cost of an event
depends on how many events one read returns. Therefore the model server sends the next burst only when the last one has
arrived.
"""

import argparse
import asyncio
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from pathlib import Path

import uvloop

from tests.support.bench_load import Figures, Load, Target, cpu_seconds, on_one_core, play
from tests.support.bench_model import EVENTS, RUN_EVENTS, BenchModel
from tests.support.server import ROOT, RunningServer, running_server

ACCOUNTS = 400
FEWEST_REQUESTS = 8
RUNS = "/v1/agents/run"
CATALOG = """
[[providers]]
name = "lab"
base_url = "http://127.0.0.1:{port}/v1"
[[providers.models]]
id = "ok"
[[providers.models]]
id = "silent"
[[providers.models]]
id = "agent"
[[providers.models]]
id = "paid"
input_micros_per_million_tokens = 1_000_000
output_micros_per_million_tokens = 2_000_000
"""
for _api in ("responses", "messages"):
    CATALOG += f"""
[[providers]]
name = "{_api}"
base_url = "http://127.0.0.1:{{port}}/v1"
api = "{_api}"
[[providers.models]]
id = "ok"
"""


@dataclass(frozen=True)
class Row:
    """A row of the table: its load, the name of the model for each server, the requests of a round, and the servers."""

    title: str
    model: str
    requests: int
    over: str = "plain"  # how our service is asked; the pass-throughs always plainly
    stream: bool = False
    burst: int = 8  # events a read
    in_flight: int = 64
    path: str = "/v1/chat/completions"
    units: int = 1
    yardsticks: tuple[str, ...] = ("aiohttp",)
    provider: str = "lab"

    def load(self, service: bool) -> Load:
        model = f"{self.provider}/{self.model}" if service else self.model
        return Load(model, self.stream, self.units, self.path, self.in_flight)


_OF_EVENTS = ("aiohttp", "events", "own")
ROWS = {
    "free": Row("JSON chat, free", "ok", 3000, yardsticks=("aiohttp", "httpx", "own", "static")),
    "paid": Row("JSON chat, paid", "paid", 3000),
    "free-tls": Row("JSON chat, free, TLS", "ok", 3000, "tls"),
    "paid-tls": Row("JSON chat, paid, TLS", "paid", 3000, "tls"),
    "stream-8": Row("an event, 8 a read", "ok", 192, stream=True, units=EVENTS, yardsticks=_OF_EVENTS),
    "stream-1": Row("an event, 1 a read", "ok", 96, stream=True, burst=1, units=EVENTS, yardsticks=_OF_EVENTS),
    "stream-8-tls": Row("an event, 8 a read, TLS", "ok", 192, "tls", stream=True, units=EVENTS),
    "run": Row("an event of an agent's run", "agent", 128, path=RUNS, units=RUN_EVENTS, yardsticks=()),
}
_PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
_SERVERS = {"chat": "lab", "responses": "responses", "messages": "messages"}
# All pairs of the caller's and the server's format, without those of chat alone. The events of a stream in its server's
# format are as many as those of chat.
for _caller, _path in _PATHS.items():
    for _server, _provider in _SERVERS.items():
        if _caller != "chat" or _server != "chat":
            _pair = {"path": _path, "provider": _provider, "yardsticks": ()}
            _name = f"{_caller} to {_server}"
            ROWS[_name.replace(" ", "-")] = Row(f"JSON, {_name}", "ok", 3000, **_pair)
            if _caller == _server:
                _title = f"an event, 8 a read, {_name}"
                ROWS[f"stream-8-{_caller}"] = Row(_title, "ok", 192, stream=True, units=EVENTS, **_pair)
                _title = f"an event, 1 a read, {_name}"
                ROWS[f"stream-1-{_caller}"] = Row(_title, "ok", 96, stream=True, burst=1, units=EVENTS, **_pair)
OTHERS = ("latency", "memory", "start")


# --- the servers


@contextlib.asynccontextmanager
async def pass_through(kind: str, url: str) -> AsyncIterator[Target]:
    """A bare pass-through in its own process."""
    command = [sys.executable, "-m", "tests.support.bench_proxies", kind, url]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        port = int(await process.stdout.readline())
        yield Target(kind, on_one_core(process.pid), port)
    finally:
        process.terminate()
        await process.wait()


@contextlib.asynccontextmanager
async def service(
    root: Path, folder: Path, port: int, over: str, rows: int = 0
) -> AsyncIterator[tuple[RunningServer, Target]]:
    """The service of the checkout `root`, its model server at `port`, with accounts and `rows` rows in each large
    table.

    It is started twice: the first start makes the certificate and the bytecode.
    """
    folder.mkdir(parents=True)
    (folder / "catalog.toml").write_text(CATALOG.format(port=port))
    env = {"SVC_CATALOG": str(folder / "catalog.toml"), "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": ""}
    if over == "plain":
        env |= {"SVC_TLS": "proxy", "SVC_TRUSTED_PROXIES": "127.0.0.1"}
    async with running_server(folder, env, command=(root / "app.py",), cwd=root) as server:
        script, arguments = (
            root / "tests/support/bench_fill.py",
            (str(server.data_dir / "service.db"), str(ACCOUNTS), str(rows)),
        )
        filling = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", script, *arguments),
            env={**os.environ, "PYTHONPATH": str(root)},
            stdout=subprocess.PIPE,
        )
        keys = (await filling.communicate())[0].decode().split()
        assert filling.returncode == 0
    async with running_server(folder, env, command=(root / "app.py",), cwd=root) as server:
        name = f"{root.name} with {rows:,} rows" if rows else root.name
        yield server, Target(name, on_one_core(server.pid), server.port, keys, server.tls)


# --- the table


async def compared(
    row: Row, model: BenchModel, targets: Iterable[Target], rounds: int, share: float
) -> dict[str, list[Figures]]:
    """Return the figures of each server by round, without the first round."""
    found: dict[str, list[Figures]] = {}
    model.burst = row.burst
    for number in range(rounds + 1):
        for target in targets:
            requests = max(int(row.requests * (share if number else share / 4)), FEWEST_REQUESTS)
            figures = await play(target, row.load(bool(target.keys)), requests, model.arrived)
            if number:
                found.setdefault(target.name, []).append(figures)
    return found


def show(title: str, found: dict[str, list[Figures]], yardstick: str = "aiohttp") -> dict[str, float]:
    """Print a row: the median CPU of each server per unit, and the ratio to the yardstick by round."""
    medians = {name: statistics.median(one.cpu_micros for one in rounds) for name, rounds in found.items()}
    cells = []
    for name, rounds in found.items():
        pairs = zip(rounds, found.get(yardstick, []), strict=False)
        ratios = [one.cpu_micros / other.cpu_micros for one, other in pairs]
        ratio = f" ({statistics.median(ratios):.2f})" if ratios and name != yardstick else ""
        cells.append(f"{name} {medians[name]:.1f} µs{ratio}, {statistics.median(one.rate for one in rounds):,.0f}/s")
    print(f"{title:28} {' | '.join(cells)}", flush=True)
    return medians


async def measure_rows(
    names: list[str], roots: list[Path], folder: Path, rows: int, rounds: int, share: float
) -> dict[str, float]:
    """Run the rows, with `rows` also on a service with as many rows in each large table. Return the first root's
    figures by row."""
    model, took = BenchModel(), {}
    await model.start()
    url = f"http://127.0.0.1:{model.port}/v1/chat/completions"
    wanted = [ROWS[name] for name in names if name in ROWS]
    async with contextlib.AsyncExitStack() as stack:
        kinds = dict.fromkeys(kind for row in wanted for kind in row.yardsticks)
        yardsticks = {kind: await stack.enter_async_context(pass_through(kind, url)) for kind in kinds}
        services: dict[str, list[Target]] = {}
        for over in dict.fromkeys(row.over for row in wanted):
            for root, filled in [*((root, 0) for root in roots), *([(roots[0], rows)] if rows else [])]:
                place = folder / f"{over}-{len(services.get(over, []))}"
                _, target = await stack.enter_async_context(service(root, place, model.port, over, filled))
                services.setdefault(over, []).append(target)
        for name in names:
            if row := ROWS.get(name):
                targets = [*(yardsticks[kind] for kind in row.yardsticks), *services[row.over]]
                medians = show(row.title, await compared(row, model, targets, rounds, share))
                took[name] = medians[services[row.over][0].name]
    await model.stop()
    return took


# --- what is no table


async def measure_latency(roots: list[Path], folder: Path, rounds: int, share: float) -> None:
    """Measure what the service adds to the median of a paid chat, one at a time."""
    model = BenchModel()
    await model.start()
    row = Row("one paid chat at a time", "paid", 200, in_flight=1)
    async with contextlib.AsyncExitStack() as stack:
        targets = [Target("direct", os.getpid(), model.port)]
        for number, root in enumerate(roots):
            made = service(root, folder / f"latency-{number}", model.port, "plain")
            targets.append((await stack.enter_async_context(made))[1])
        found = await compared(row, model, targets, rounds, share)
    direct = [one.p50_millis for one in found.pop("direct")]
    for name, figures in found.items():
        added = [one.p50_millis - other for one, other in zip(figures, direct, strict=True)]
        print(
            f"{row.title:28} {name} adds {statistics.median(added):.2f} ms to the median of "
            f"{statistics.median(direct):.2f} ms"
        )
    await model.stop()


async def measure_memory(roots: list[Path], folder: Path, streams: int) -> float:
    """Resident memory with so many streams open, in megabytes; the last one measured."""
    model, held_mb = BenchModel(), 0.0
    await model.start()
    for over in ("plain", "tls"):
        for number, root in enumerate(roots):
            async with service(root, folder / f"memory-{over}-{number}", model.port, over) as (server, target):
                before_mb = server.counts().rss_bytes / 1e6
                opened, load = [], Load("lab/silent", stream=True)
                for key in (target.keys * (streams // len(target.keys) + 1))[:streams]:
                    reader, writer = await asyncio.open_connection("127.0.0.1", target.port, ssl=target.tls)
                    writer.write(load.request(key))
                    opened.append((reader, writer))
                for reader, _ in opened:
                    await reader.readuntil(b"data: ")
                held_mb = server.counts().rss_bytes / 1e6
                title = f"{streams:,} open streams, {over}"
                print(f"{title:28} {target.name} {held_mb:.0f} MB ({before_mb:.0f} MB before)", flush=True)
                for _, writer in opened:
                    writer.transport.abort()
    await model.stop()
    return held_mb


async def measure_start(roots: list[Path], folder: Path, rounds: int) -> float:
    """Print the seconds and the CPU seconds from the start of the process to the first chat's answer. Return the last
    measurement.

    Each one was started before, so that its bytecode exists, as in an installed service.
    """
    model, seconds = BenchModel(), 0.0
    await model.start()
    took: dict[str, list[tuple[float, float]]] = {}
    requests: list[bytes] = []
    for number, root in enumerate(roots):
        async with service(root, folder / f"start-{number}", model.port, "tls") as (_, target):
            requests.append(Load("builtin/echo").request(target.keys[0]))
    for _ in range(rounds):
        for number, (root, request) in enumerate(zip(roots, requests, strict=True)):
            place, began = folder / f"start-{number}", time.perf_counter()
            async with running_server(place, {"PYTHONPATH": str(root)}, command=(root / "app.py",), cwd=root) as server:
                reader, writer = await server.raw()
                writer.write(request)
                assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 200")
                seconds = time.perf_counter() - began
                took.setdefault(root.name, []).append((seconds, cpu_seconds(server.pid)))
                writer.transport.abort()
    await model.stop()
    for name, pairs in took.items():
        wall, cpu = (statistics.median(column) for column in zip(*pairs, strict=True))
        print(f"{'cold start to an answer':28} {name} {wall:.2f} s, {cpu:.2f} s of CPU", flush=True)
    return seconds


async def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--only", action="append", choices=[*ROWS, *OTHERS], help="this row alone; may be given several times"
    )
    parser.add_argument(
        "--root", action="append", type=Path, default=[], help="another checkout to measure beside this one"
    )
    parser.add_argument(
        "--rows", type=int, default=0, help="measure beside it one with so many rows in each large table"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--share", type=float, default=1.0, help="of the requests of a round: less is quicker and less exact"
    )
    parser.add_argument("--streams", type=int, default=1000, help="how many are open when memory is looked at")
    asked = parser.parse_args()
    names = asked.only or [*ROWS, *OTHERS]
    roots = [ROOT, *(root.resolve() for root in asked.root)]
    # A folder of the disk that the service would use; the temporary one may be memory.
    with tempfile.TemporaryDirectory(prefix="bench-", dir=".") as made:
        folder = Path(made).resolve()
        if set(names) & set(ROWS):
            await measure_rows(names, roots, folder, asked.rows, asked.rounds, asked.share)
        if "latency" in names:
            await measure_latency(roots, folder, asked.rounds, asked.share)
        if "memory" in names:
            await measure_memory(roots, folder, asked.streams)
        if "start" in names:
            await measure_start(roots, folder, asked.rounds)


if __name__ == "__main__":
    uvloop.run(main())
