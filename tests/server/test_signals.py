"""Signals on a real process: SIGHUP reads certificates and catalog again and ends nothing, repeated SIGTERM cuts no
stream.
"""

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

import httpx
import orjson
import pytest

from svc.certificates import tls_files
from svc.server.serve import Server
from tests.support.agent_runs import RUN, Account, Stream, add_accounts, checked
from tests.support.connections import GET, TINY, read_head
from tests.support.model_server import ModelServer
from tests.support.money import assert_exact
from tests.support.people import command
from tests.support.server import COMMAND, RunningServer, hang_up, read_to_end, running_server

CHAT = "/v1/chat/completions"
PROXY = {"SVC_TLS": "proxy", "SVC_TRUSTED_PROXIES": "127.0.0.1"}


async def is_alive(server: RunningServer) -> bool:
    async with server.client(headers={"x-forwarded-proto": "https"}) as client:
        return (await client.get("/healthz")).status_code == 200 and server.process.poll() is None


# --- SIGHUP


@pytest.mark.parametrize("mode", ["auto", "proxy", "files"])
async def test_sighup_does_not_stop_the_server(tmp_path: Path, mode: str) -> None:
    env = {"auto": {}, "proxy": PROXY, "files": files(tmp_path)}[mode]
    async with running_server(tmp_path, env) as server:
        for _ in range(20):
            server.send_signal(signal.SIGHUP)
            await asyncio.sleep(0.01)
        assert await is_alive(server)
        assert [line for line in server.log_lines() if line["level"] != "info"] == []
        assert await server.stop() == 0


def files(folder: Path) -> dict[str, str]:
    made = tls_files(folder, ["127.0.0.1"], time.time())
    (folder / "data").mkdir()
    (folder / "tls").rename(folder / "data" / "tls")  # where the tests' client finds the CA
    paths = {"SVC_TLS_CERT": made.cert.name, "SVC_TLS_KEY": made.key.name}
    return {"SVC_TLS": "files", **{name: str(folder / "data" / "tls" / path) for name, path in paths.items()}}


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


def catalog(base_url: str, price_micros: int, model: str = "drip-100ms") -> str:
    return (
        f'[[providers]]\nname = "fake"\nbase_url = "{base_url}"\n[[providers.models]]\nid = "{model}"\n'
        f"input_micros_per_million_tokens = 0\noutput_micros_per_million_tokens = {price_micros}\n"
    )


async def reloaded(server: RunningServer, times: int) -> str:
    """Sends SIGHUP; the message of the log line that follows, the `times`-th of its kind."""
    server.send_signal(signal.SIGHUP)
    async with asyncio.timeout(10):
        while len(lines := [line for line in server.log_lines() if line["event"] == "catalog"]) < times:
            await asyncio.sleep(0.02)
    assert len(lines) == times
    return str(lines[-1]["message"])


async def test_sighup_reloads_the_catalog_and_keeps_prices_of_open_calls(tmp_path: Path) -> None:
    path = tmp_path / "catalog.toml"
    forwarded = {"x-forwarded-proto": "https"}
    async with ModelServer() as models:
        path.write_text(catalog(models.base_url, 1_000_000_000))
        async with running_server(tmp_path, {**PROXY, "SVC_CATALOG": str(path)}) as server:
            (account,) = add_accounts(server, 1, micros=50_000_000)
            async with server.client(headers={**account.headers, **forwarded}) as client:
                ask = {"model": "fake/drip-100ms", "messages": [{"role": "user", "content": "hi"}], "stream": True}
                async with client.stream("POST", CHAT, json=ask) as stream:
                    blocks = stream.aiter_lines()
                    await anext(blocks)
                    path.write_text(catalog(models.base_url, 2_000_000_000) + '[[providers.models]]\nid = "new"\n')
                    assert await reloaded(server, 1) == "the catalog was read again"
                    assert [line async for line in blocks][-2] == "data: [DONE]"
                assert await prices(client) == {"fake/drip-100ms": 2_000_000_000, "fake/new": 0}
                assert await spent(client, account) == 5_000
                assert (await client.post(CHAT, json={**ask, "stream": False})).status_code == 200
                assert await spent(client, account) == 15_000
                path.write_text(catalog(models.base_url, -1))
                assert "is not replaced" in await reloaded(server, 2) and str(path) in await reloaded(server, 3)
                path.unlink()
                assert "cannot be read" in await reloaded(server, 4)
                assert await prices(client) == {"fake/drip-100ms": 2_000_000_000, "fake/new": 0}
                levels = [line["level"] for line in server.log_lines() if line["event"] == "catalog"]
                assert levels == ["info", "warning", "warning", "warning"]


@pytest.mark.parametrize("mode", ["auto", "files"])
async def test_svc_reload_reads_the_catalog_and_exits_1_if_it_is_wrong(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "catalog.toml"
    path.write_text("default_model = 'builtin/echo'")
    env = files(tmp_path) if mode == "files" else {}
    async with running_server(tmp_path, {**env, "SVC_CATALOG": str(path)}) as server:
        (account,) = add_accounts(server, 1)
        async with server.client(headers=account.headers) as client:
            for text, status, told in (
                ("default_model = 'builtin/echo'\n[access]\nmodels = ['builtin/echo']", 0, "were read again"),
                ("[access]\nmodels = 'all'", 1, f"svc: not replaced: the catalog {path}: access.models must be a list"),
                ("# nothing\n", 1, f"svc: not replaced: the catalog {path} is empty: list providers in it"),
            ):
                path.write_text(text)
                ended = await asyncio.to_thread(command, server, "reload")
                assert (ended.returncode, told in ended.stdout + ended.stderr) == (status, True), ended
                assert len((ended.stdout + ended.stderr).splitlines()) == 1
                listed = (await client.get("/v1/models")).json()["data"]
                assert [model["id"] for model in listed] == ["builtin/echo", "echo"], "the old one stays"
            if mode == "files":
                Path(env["SVC_TLS_CERT"]).write_text("no certificate")
                ended = await asyncio.to_thread(command, server, "reload")
                assert ended.returncode == 1 and len(ended.stderr.splitlines()) == 2
                assert await is_alive(server)


async def prices(client: httpx.AsyncClient) -> dict[str, int]:
    listed = (await client.get("/v1/models")).json()["data"]
    return {
        one["id"]: one["pricing"]["output_micros_per_million_tokens"] for one in listed if one["owned_by"] == "fake"
    }


async def spent(client: httpx.AsyncClient, account: Account) -> int:
    return 50_000_000 - int((await client.get("/billing/account")).json()["wallet_balance_micros"])


# --- the end


async def test_a_second_sigterm_and_sighup_change_nothing(tmp_path: Path) -> None:
    async with running_server(tmp_path, {"TINY_ANSWERS_SECONDS": "1"}, TINY) as server:
        streams = [await server.raw() for _ in range(20)]
        _, deaf = await begun_to_read(server, "/deaf-stream")  # keeps the end waiting for a second
        for _, writer in streams:
            writer.write(GET.replace(b"/healthz", b"/stream"))
        for reader, _ in streams:
            await reader.readuntil(b"data: begun\n\n")
        began = time.monotonic()
        while server.process.poll() is None:
            server.send_signal(random.choice([signal.SIGTERM, signal.SIGHUP]))
            await asyncio.sleep(0.02)
        assert server.process.returncode == 0 and time.monotonic() - began > 0.9
        for reader, writer in streams:
            assert (await read_to_end(reader)).endswith(b"data: stopped\n\n\r\n0\r\n\r\n")
            await hang_up(writer)
        await hang_up(deaf)


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
        assert time.monotonic() - began < Server.answers_seconds / 2
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
