"""Signals to a real process: during the start, from a closed terminal, and again and again."""

import asyncio
import contextlib
import fcntl
import os
import pty
import random
import re
import signal
import termios
import time
from pathlib import Path

import orjson
import pytest

from svc.server.serve import Server
from tests.support.agent_runs import RUN, Stream, add_accounts, checked
from tests.support.connections import GET, TINY, read_head
from tests.support.money import assert_exact
from tests.support.server import COMMAND, RunningServer, hang_up, running_server

CHAT = "/v1/chat/completions"
PROXY = {"SVC_TLS": "proxy", "SVC_TRUSTED_PROXIES": "127.0.0.1"}


async def is_alive(server: RunningServer) -> bool:
    async with server.client(headers={"x-forwarded-proto": "https"}) as client:
        return (await client.get("/healthz")).status_code == 200 and server.process.poll() is None


async def test_sighup_during_the_start_is_ignored(tmp_path: Path) -> None:
    others = children()  # such as the process that forks the servers of other tests
    starting = running_server(tmp_path, command=COMMAND)
    entering = asyncio.create_task(starting.__aenter__())
    process_id = await ignoring_sighup(others)
    while not entering.done():
        os.kill(process_id, signal.SIGHUP)
        await asyncio.sleep(0.005)
    server = entering.result()
    assert server.pid == process_id and await is_alive(server)
    await starting.__aexit__(None, None, None)
    assert "library" not in server.stderr()


def children() -> set[str]:
    return set(" ".join(task.read_text() for task in Path("/proc/self/task").glob("*/children")).split())


async def ignoring_sighup(others: set[str]) -> int:
    """The id of the child process, none of `others`, that has begun to ignore SIGHUP."""
    async with asyncio.timeout(20):
        while True:
            for child in children() - others:
                ignored = re.search(r"SigIgn:\t(\w+)", Path(f"/proc/{child}/status").read_text())
                if ignored and int(ignored[1], 16) & 1:
                    return int(child)
            await asyncio.sleep(0.005)


async def test_closed_terminal_does_not_stop_the_server(tmp_path: Path) -> None:
    terminal, its_end = pty.openpty()

    def in_terminal() -> None:
        os.setsid()
        fcntl.ioctl(its_end, termios.TIOCSCTTY, 0)
        os.dup2(its_end, 0)
        os.dup2(its_end, 2)

    async with running_server(tmp_path, preexec_fn=in_terminal, pass_fds=(its_end,)) as server:
        os.close(its_end)
        assert await is_alive(server)
        os.close(terminal)  # SIGHUP for the server, and from now on its log goes nowhere
        await asyncio.sleep(0.3)
        for _ in range(3):
            assert await is_alive(server)
        assert await server.stop() == 0


async def begun_to_read(server: RunningServer, path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await server.raw()
    writer.write(GET.replace(b"/healthz", path.encode()))
    await read_head(reader)
    return reader, writer


@pytest.mark.parametrize("first", [(signal.SIGINT,), (signal.SIGTERM, signal.SIGINT, signal.SIGTERM)])
async def test_second_sigint_stops_at_once(tmp_path: Path, first: tuple[signal.Signals, ...]) -> None:
    async with running_server(tmp_path, command=TINY) as server:
        _, writer = await begun_to_read(server, "/deaf-stream")
        for number in first:
            server.send_signal(number)
            await asyncio.sleep(0.3)
        assert server.process.poll() is None
        began = time.monotonic()
        assert await server.stop(signal.SIGINT) == 1
        assert time.monotonic() - began < Server.answers_seconds
        await hang_up(writer)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("rounds", [4, pytest.param(200, marks=pytest.mark.soak)])
async def test_repeated_signals_end_each_stream_with_its_final_event(tmp_path: Path, rounds: int) -> None:
    seed = random.randrange(10_000)
    print(f"seed {seed}")
    chance = random.Random(seed)
    for number in range(rounds):
        folder = tmp_path / str(number)
        folder.mkdir()
        await one_round(folder, chance)


async def one_round(folder: Path, chance: random.Random) -> None:
    async with running_server(folder) as server:
        people = add_accounts(server, 2, micros=1_000_000)
        script = {
            "model": "builtin/script",
            "messages": [{"role": "user", "content": "say hi\nwait 60000"}],
            "stream": True,
        }
        goals = ("say hi\nwait 60000", "tool current_time {}\n---\nwait 60000", "repeat 20000 wait 10")
        asks = [{"model": "builtin/script", "goal": goals[n % 3]} for n in range(12)]
        runs = [await Stream.send(server, RUN, people[0].key, ask) for ask in asks]
        chats = [await Stream.send(server, CHAT, people[1].key, script) for _ in range(6)]
        for stream in (*runs, *chats):
            await stream.head()
            assert stream.status == 200
        await asyncio.sleep(chance.uniform(0, 0.2))
        reading = asyncio.gather(*(stream.rest() for stream in (*runs, *chats)))
        server.send_signal()
        while server.process.poll() is None:
            await asyncio.sleep(chance.choice([0, 0.001, 0.01, 0.05]))
            with contextlib.suppress(ProcessLookupError):
                server.send_signal(chance.choice([signal.SIGTERM, signal.SIGTERM, signal.SIGHUP]))
        await reading
        assert server.process.returncode == 0
        assert all("Traceback" not in line for line in server.stderr().splitlines())
        for run in runs:
            last = checked(run)[-1]
            assert (last["type"], last["reason"]) == ("stopped", "shutdown")
        for chat in chats:
            *_, error, done = chat.blocks
            assert done == b"data: [DONE]" and orjson.loads(error[6:])["error"]["code"] == "shutting_down"
    assert_exact(server.data_dir / "service.db")
