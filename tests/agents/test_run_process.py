"""Agent runs on the real server process: signals, kills, and readers that stand still."""

import asyncio
import contextlib
import random
import time
from pathlib import Path

import orjson
import pytest

from tests.agents.test_run_connections import AgentAnswers, catalog
from tests.support.agent_runs import (
    RUN,
    Account,
    Stream,
    add_accounts,
    agrees,
    begun,
    books,
    checked,
    ended,
    listed,
    record_of,
)
from tests.support.model_server import ModelServer
from tests.support.people import command
from tests.support.server import RunningServer, running_server
from tests.support.tool_server import Asked, result, scripted, stateless, text, tool

CHAT = "/v1/chat/completions"


# --- signals


async def test_sigterm_ends_100_streams_with_their_final_event(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        people = add_accounts(server, 10, micros=1_000_000)
        ask = {
            "messages": [{"role": "user", "content": "say hi\nwait 60000"}],
            "model": "builtin/script",
            "stream": True,
        }
        scripts = ("say hi\nwait 60000", "tool current_time {}\n---\nwait 60000", "repeat 20000 wait 10", "wait 60000")
        runs = [await begun(server, people[n % 10], scripts[n % 4]) for n in range(50)]
        chats = [await Stream.send(server, CHAT, people[n % 10].key, ask) for n in range(50)]
        for chat in chats:
            await chat.head()
        await asyncio.sleep(0.2)
        server.send_signal()
        await asyncio.gather(*(stream.rest() for stream in (*runs, *chats)))
        assert await server.wait() == 0
        for chat in chats:
            *chunks, error, done = chat.blocks
            assert done == b"data: [DONE]" and orjson.loads(error[6:])["error"]["code"] == "shutting_down"
            assert all(b"finish_reason" in chunk and b'"stop"' not in chunk for chunk in chunks)
    lasts = [checked(run)[-1] for run in runs]
    assert {(last["type"], last["reason"]) for last in lasts} == {("stopped", "shutdown")}
    async with running_server(tmp_path) as server, server.client() as client:
        for number, last in enumerate(lasts):
            assert agrees(last, await record_of(client, people[number % 10], last["run_id"]))
        assert {await books(client, person) for person in people} == {(1_000_000, 0, 1_000_000)}


@pytest.mark.slow
async def test_after_kill_9_at_any_moment_every_run_is_ended_and_every_hold_released(
    tmp_path: Path,
) -> None:
    async def answer_later(asked: Asked) -> bytes:
        await asyncio.sleep(0.1)
        return result(asked, text("seen"))

    tools = stateless([tool("look", annotations={"readOnlyHint": True})], answer_later)  # type: ignore[arg-type]
    async with ModelServer(answers=AgentAnswers) as models, scripted(tools) as wiki:
        entry = f'[[tool_servers]]\nname = "wiki"\nurl = "{wiki.url}"\nmicros_per_call = 700\n'
        (tmp_path / "catalog.toml").write_text(catalog(models.port) + entry)
        await play_kills(tmp_path, {"SVC_CATALOG": str(tmp_path / "catalog.toml")})
        assert wiki.of("tools/call")


async def play_kills(tmp_path: Path, env: dict[str, str]) -> None:
    rnd = random.Random(9)
    known: list[tuple[Account, Stream]] = []
    people: list[Account] = []
    for round_ in range(4):
        async with running_server(tmp_path, env) as server, server.client() as client:
            for account in people:  # what the last kill left
                runs = await listed(client, account, "/v1/agents/runs")
                assert runs and {run["status"] for run in runs} <= {"final", "error", "stopped"}
                assert all(run["error"]["code"] == "interrupted" for run in runs if run["status"] == "error")
                balance, held, total = await books(client, account)
                assert held == 0 and balance == total <= 1_000_000
                assert sum(run["cost_micros"] for run in runs) == 1_000_000 - balance  # so does an interrupted one
            for account, stream in known:  # what was acknowledged is there
                if stream.blocks and (last := stream.events[-1])["type"] in ("final", "stopped", "error"):
                    assert agrees(last, await record_of(client, account, last["run_id"]))
            if round_ == 3:
                checks = await asyncio.to_thread(command, server, "check")
                assert checks.returncode == 0, checks.stdout
                break
            people = add_accounts(server, 8, micros=1_000_000, name=f"round{round_}-")
            known = []
            for number in range(24):
                model = ("lab/drip-100ms", "lab/calls-16", "builtin/assistant-paid", "builtin/script")[number % 4]
                script = "say a\ntool current_time {}\n" + "tool wiki__look {}\n" * 5 + "---\nwait 60000"
                goal = script if model == "builtin/script" else "Compute 6 * 7"
                account = people[number % 8]
                known.append((account, await Stream.send(server, RUN, account.key, {"goal": goal, "model": model})))
            reading = [asyncio.create_task(read_whole(stream)) for _, stream in known]
            await asyncio.sleep(0.05 + rnd.random() * 0.7)
            server.kill()
            await asyncio.gather(*reading)


async def read_whole(stream: Stream) -> None:
    with contextlib.suppress(OSError, EOFError):
        await stream.head()
        await stream.rest()


IMPATIENT = (
    "-c",
    "import sys, app, svc.server.http.protocol, svc.server.sse; svc.server.http.protocol.Protocol.stall_seconds = 1.5; "
    "svc.server.sse.EventStream.__init__.__kwdefaults__['ping_seconds'] = 0.3; sys.exit(app.main())",
)


@pytest.mark.slow
async def test_stalled_client_is_cut_and_silence_has_pings(tmp_path: Path) -> None:
    async with running_server(tmp_path, command=IMPATIENT) as server:
        await stands_still(server, 1.5, late_seconds=30, readers=5)
        (account,) = add_accounts(server, 1, name="silent")
        began = time.monotonic()
        stream = await begun(server, account, "wait 1000\nsay done")
        await stream.rest()
        most = (time.monotonic() - began) / 0.3
        assert checked(stream)[-1]["output"] == "done" and 2 <= stream.blocks.count(b": ping") <= most


@pytest.mark.soak
async def test_stalled_client_is_cut_within_30_seconds_and_pings_follow_15_seconds(
    tmp_path: Path,
) -> None:
    async with running_server(tmp_path) as server:
        (account,) = add_accounts(server, 1, name="silent")
        stream = await begun(server, account, "wait 35000\nsay done")
        silent = asyncio.create_task(stream.rest())
        await stands_still(server, 25, late_seconds=5, readers=20)
        await silent
        assert checked(stream)[-1]["output"] == "done" and stream.blocks.count(b": ping") == 2


async def stands_still(server: RunningServer, stall_seconds: float, late_seconds: float, readers: int) -> None:
    """Stalled readers are cut and their runs end, while other requests do not wait."""
    (account,) = add_accounts(server, 1, name="still")
    at_first = server.counts().descriptors
    # With its first connection libuv opens /dev/null for good, as the one descriptor to give up when there are no more.
    await server.exchange(b"GET /healthz HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n")
    before = await server.settled_descriptors(at_first + 1)
    assert before <= at_first + 1
    streams = [
        await begun(server, account, "repeat 20000 say " + "some text that goes on and on " * 20)
        for _ in range(readers)
    ]
    began = time.monotonic()
    async with server.client() as client:
        for stream in streams:
            record = await ended(client, account, stream.headers["x-service-run"], stall_seconds + late_seconds)
            assert (record["status"], record["reason"]) == ("stopped", "client_disconnected")
            asked = time.monotonic()
            assert (await client.get("/healthz")).status_code == 200 and time.monotonic() - asked < 5
        assert stall_seconds - 1 < time.monotonic() - began < stall_seconds + late_seconds
    assert await server.settled_descriptors(before) <= before
    for stream in streams:
        await stream.close()
