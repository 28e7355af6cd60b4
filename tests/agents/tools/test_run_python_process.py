"""Programs that try to leave the sandbox of run_python, 32 at once, on the real server process.

The soak run plays all hundred, the normal run every third one."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from svc.builtin import sandbox
from tests.attacks.lab import pulsing_server
from tests.support.agent_runs import Account, add_accounts, run_to_the_end
from tests.support.escapes import HOGS, QUICK
from tests.support.server import RunningServer

pytestmark = pytest.mark.skipif(sandbox.binary() is None, reason="needs the extra python")

AT_ONCE = 32
SECRET = "canary-4711-of-the-operator"
MOST_STALL_MS = 100


async def health(client: httpx.AsyncClient, until: asyncio.Event) -> None:
    """Send one request after another."""
    while not until.is_set():
        assert (await client.get("/healthz")).status_code == 200
        await asyncio.sleep(0.05)


async def played(server: RunningServer, account: Account, code: str) -> dict[str, Any]:
    goal = f"tool run_python {orjson.dumps({'code': code}).decode()}\n---\nsay done"
    events = await run_to_the_end(server, account, goal)
    assert events[-1]["type"] == "final", (code, events[-1])
    (result,) = [event for event in events if event["type"] == "tool_result"]
    return result


async def play(server: RunningServer, programs: list[str]) -> list[dict[str, Any]]:
    """The results of the programs, 32 at once, 4 of each account."""
    people = add_accounts(server, AT_ONCE // 4, name=f"player-of-{len(programs)}-")
    left = list(enumerate(programs))
    results: dict[int, dict[str, Any]] = {}

    async def worker(account: Account) -> None:
        while left:
            number, code = left.pop(0)
            results[number] = await played(server, account, code)

    await asyncio.gather(*(worker(people[number % len(people)]) for number in range(AT_ONCE)))
    return [results[number] for number in range(len(programs))]


async def assert_none_leaves(tmp_path: Path, programs: list[str]) -> None:
    file, made = tmp_path / "secret.txt", tmp_path / "made"
    file.write_text(SECRET)
    connections = []
    listener = await asyncio.start_server(lambda reader, writer: connections.append(writer.close()), "127.0.0.1", 0)
    port = str(listener.sockets[0].getsockname()[1])
    programs = [code.replace("FILE", str(file)).replace("MADE", str(made)).replace("PORT", port) for code in programs]
    async with pulsing_server(tmp_path, {"CANARY": SECRET}) as (server, pulse), server.client(timeout=60) as client:
        await play(server, ["1 + 1"])  # the first use imports
        await pulse.longest_stall_ms()
        ended = asyncio.Event()
        watching = asyncio.create_task(health(client, ended))
        results = await play(server, programs)
        ended.set()
        await watching
        stall_ms = await pulse.longest_stall_ms()
    listener.close()
    assert file.read_text() == SECRET and not made.exists() and connections == []
    for code, result in zip(programs, results, strict=True):
        assert SECRET not in str(result) and "root:" not in str(result), code
        assert not result["ok"] or result["result"].keys() == {"output", "value"}, code
        assert len(orjson.dumps(result["result"])) < 4 * sandbox.RESULT_BYTES, code
    for number, code in enumerate(programs):
        if code in HOGS:
            assert not results[number]["ok"], code
    assert stall_ms < MOST_STALL_MS, "CPU time of the event loop"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("each", [3, pytest.param(1, marks=pytest.mark.soak)])
async def test_no_program_leaves_the_sandbox(tmp_path: Path, each: int) -> None:
    await assert_none_leaves(tmp_path, QUICK[each - 1 :: each])


@pytest.mark.soak
@pytest.mark.timeout(900)
async def test_no_program_leaves_the_sandbox_while_32_use_it_up(tmp_path: Path) -> None:
    await assert_none_leaves(tmp_path, [*HOGS * 3, *QUICK, *HOGS])
