"""A real model in a helper process, behind a server process: every format, cancellation, crashes, and no process left."""

import asyncio
import contextlib
import itertools
import json
import math
import os
import signal
import sqlite3
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.billing.test_wallet import findings
from tests.inference.test_nine_cells import PATHS, events_in, heard, joined
from tests.support.agent_runs import Account, add_accounts
from tests.support.cases import each
from tests.support.clients import model_file, needed
from tests.support.format_events import APIS
from tests.support.people import command
from tests.support.sdk_types import checked_answer, checked_event
from tests.support.server import RunningServer, running_server, running_server_sync
from tests.support.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
TEXT = "Name three colours."
ASK: dict[str, dict[str, Any]] = {
    "chat": {"messages": [{"role": "user", "content": TEXT}], "max_tokens": 8},
    "responses": {"input": TEXT, "max_output_tokens": 8},
    "messages": {"messages": [{"role": "user", "content": TEXT}], "max_tokens": 8},
}
CATALOG = """
[local]
folder = "{folder}"
context_length = 1024
threads = 1
{settings}

[[local.models]]
file = "priced.gguf"
input_micros_per_million_tokens = 1000000
output_micros_per_million_tokens = 1000000
"""


def configured(tmp_path: Path, settings: str = "") -> dict[str, str]:
    """Return the environment of a server with the same real model twice: `local/free`, and `local/priced`."""
    folder = tmp_path / "models"
    folder.mkdir(exist_ok=True)
    for name in ("free", "priced"):
        with contextlib.suppress(FileExistsError):
            (folder / f"{name}.gguf").symlink_to(needed(model_file))
    (tmp_path / "catalog.toml").write_text(CATALOG.format(folder=folder, settings=settings))
    return {"SVC_CATALOG": str(tmp_path / "catalog.toml")}


@contextlib.asynccontextmanager
async def serving(tmp_path: Path, settings: str = "") -> AsyncIterator[RunningServer]:
    async with running_server(tmp_path, configured(tmp_path, settings)) as server:
        yield server


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server for tests that leave its model as it was: to load it takes a second."""
    folder = tmp_path_factory.mktemp("shared")
    with running_server_sync(folder, configured(folder)) as server:
        yield server


def account_on(server: RunningServer, name: str = "runner") -> Account:
    (account,) = add_accounts(server, 1, micros=50_000_000, name=name)
    return account


def helpers_of(server: RunningServer) -> list[int]:
    """The processes of the server that run a model."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == server.pid and b"local.helper" in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


def is_running(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


async def test_all_formats_say_the_same(shared: RunningServer) -> None:
    async with shared.client(timeout=120) as client:
        key = account_on(shared, "reader").headers
        texts = set()
        for api, stream in itertools.product(APIS, (False, True)):
            body = {**ASK[api], "model": "local/free", "temperature": 0, "stream": stream}
            if api == "chat":
                body["stream_options"] = {"include_usage": True}
            answer = await client.post(PATHS[api], json=body, headers=key)
            assert answer.status_code == 200, answer.text
            events = [event for event in events_in(answer.content) if event.get("type") != "ping"] if stream else []
            document = joined(api, events) if stream else answer.json()
            for event in events:
                checked_event(api, event)
            if not stream:
                checked_answer(api, document)
            said = heard(api, document)
            assert said.usage[0] > 5 and said.usage[-1] == 8, (api, stream, said)
            texts.add(said.text)
        assert len(texts) == 1 and texts != {""}
        model = (await client.get("/v1/models/local/free", headers=key)).json()
        assert model["state"] == "ready" and model["context_length"] == 1024
        (helper,) = helpers_of(shared)
        assert os.getpriority(os.PRIO_PROCESS, helper) == 10, "the service goes first"


async def test_schema_tools_and_a_run(shared: RunningServer) -> None:
    async with shared.client(timeout=120) as client:
        key = account_on(shared, "caller").headers
        colour = {"type": "string", "enum": ["red", "green"]}
        number = {"type": "integer", "minimum": 0, "maximum": 9}
        schema = {"type": "object", "properties": {"colour": colour, "number": number}, "additionalProperties": False}
        schema["required"] = ["colour", "number"]
        wanted = {"type": "json_schema", "json_schema": {"name": "thing", "strict": True, "schema": schema}}
        body = {**ASK["chat"], "model": "local/free", "max_tokens": 60, "response_format": wanted}
        answer = await client.post(PATHS["chat"], json=body, headers=key)
        thing = json.loads(answer.json()["choices"][0]["message"]["content"])
        assert thing["colour"] in ("red", "green") and 0 <= thing["number"] <= 9
        tool = {"type": "function", "function": {"name": "paint", "parameters": schema}}
        body = {**ASK["chat"], "model": "local/free", "tools": [tool]}  # its template has no calls
        answer = await client.post(PATHS["chat"], json=body, headers=key)
        assert answer.json()["choices"][0]["finish_reason"] in ("stop", "length", "tool_calls")
        run = {"goal": "Say hello.", "model": "local/free", "max_steps": 1}
        events = [*events_in((await client.post("/v1/agents/run", json=run, headers=key)).content)]
        ends = [event for event in events if event.get("type") in ("final", "error", "stopped")]
        assert len(ends) == 1 and events[-1] == ends[0]


async def test_disconnected_call_frees_its_place(shared: RunningServer) -> None:
    async with shared.client(timeout=120) as client:
        key = account_on(shared, "leaver").headers
        long = {**ASK["chat"], "model": "local/free", "max_tokens": 900, "stream": True, "ignore_eos": True}
        for _ in range(6):  # more than calls at once
            async with client.stream("POST", PATHS["chat"], json=long, headers=key) as stream:
                async for line in stream.aiter_lines():
                    if '"content"' in line:
                        break
        short = {**ASK["chat"], "model": "local/free"}
        assert (await client.post(PATHS["chat"], json=short, headers=key)).status_code == 200


@pytest.mark.parametrize("parallel", [2, pytest.param(4, marks=pytest.mark.soak)])
async def test_four_streams_at_once_are_whole(tmp_path: Path, parallel: int) -> None:
    """With two places, the last two streams begin after an end of the first two. With four, all begin at once."""
    async with serving(tmp_path, f"parallel = {parallel}") as server, server.client(timeout=120) as client:
        key, order = account_on(server).headers, list[str]()

        async def stream(tokens: int) -> None:
            body = {**ASK["chat"], "model": "local/free", "max_tokens": tokens, "stream": True, "ignore_eos": True}
            async with client.stream("POST", PATHS["chat"], json=body, headers=key) as answer:
                lines = [line async for line in noted(answer, order)]
            assert lines[-2:] == ["data: [DONE]", ""], lines[-3:]

        await stream(1)  # loads the model
        order.clear()
        await asyncio.gather(*(stream(30) for _ in range(4)))
        assert order.count("begun") == order.count("ended") == 4
        assert order.index("ended") == parallel, order


async def noted(answer: httpx.Response, order: list[str]) -> AsyncIterator[str]:
    """Yield the lines of a stream, and note when its text begins and ends."""
    begun = False
    async for line in answer.aiter_lines():
        if not begun and '"content":"' in line:
            begun = True
            order.append("begun")
        if line == "data: [DONE]":
            order.append("ended")
        yield line


async def test_kills_of_the_helper_under_load_lose_and_double_nothing(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    kills = math.ceil(pytestconfig.getoption("--kills") / 5)  # a start of the model takes seconds
    async with serving(tmp_path) as server, server.client(timeout=120) as client:
        accounts = add_accounts(server, 4, micros=50_000_000)
        body = {**ASK["chat"], "model": "local/priced", "max_tokens": 10, "stream": True}
        body["stream_options"] = {"include_usage": True}
        costs: dict[str, int] = {}  # of whole answers, by request id
        ends: list[str] = []
        over = asyncio.Event()

        async def ask_on(account: Account) -> None:
            while not over.is_set():
                answer = await client.post(PATHS["chat"], json=body, headers=account.headers)
                if answer.status_code == 429:
                    await asyncio.sleep(0.2)
                    continue
                ends.append(_end_of(answer))
                if ends[-1] == "whole":
                    usage = [event["usage"] for event in events_in(answer.content) if event.get("usage")][-1]
                    costs[answer.headers["x-request-id"]] = usage["prompt_tokens"] + usage["completion_tokens"]

        asking = [asyncio.create_task(ask_on(account)) for account in accounts]
        for _ in range(kills):
            before = len(costs)
            await until(lambda: len(costs) > before and helpers_of(server), 60)  # noqa: B023
            for pid in helpers_of(server):
                os.kill(pid, signal.SIGKILL)
            command(server, "reload")  # or the third crash of a minute would be the last
        before = len(costs)
        await until(lambda: len(costs) > before, 60)
        over.set()
        await asyncio.gather(*asking)
        assert set(ends) <= {"whole", "upstream_error", "upstream_unreachable"}, ends
        with contextlib.closing(sqlite3.connect(server.data_dir / "service.db")) as conn:
            conn.row_factory = sqlite3.Row
            debits = conn.execute("SELECT request_id, -amount_micros AS micros FROM ledger WHERE kind = 'debit'")
            booked = [(row["request_id"], row["micros"]) for row in debits]
            assert len(dict(booked)) == len(booked), "no call is debited twice"
            assert {request_id: dict(booked).get(request_id) for request_id in costs} == costs
            assert conn.execute("SELECT count(*) FROM holds").fetchone()[0] == 0
            assert findings(conn) == []


def _end_of(answer: httpx.Response) -> str:
    if answer.status_code != 200:
        return str(answer.json()["error"]["code"])
    assert answer.text.endswith("data: [DONE]\n\n") and answer.text.count("[DONE]") == 1
    errors = [event["error"]["code"] for event in events_in(answer.content) if "error" in event]
    assert len(errors) <= 1
    return errors[0] if errors else "whole"


@each("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV])
async def test_no_helper_is_left_after_the_service(tmp_path: Path, number: signal.Signals) -> None:
    folder = tmp_path / number.name
    folder.mkdir()
    async with serving(folder) as server, server.client(timeout=120) as client:
        key = account_on(server).headers
        body = {**ASK["chat"], "model": "local/free", "max_tokens": 900, "stream": True, "ignore_eos": True}
        with contextlib.suppress(httpx.HTTPError):
            async with client.stream("POST", PATHS["chat"], json=body, headers=key) as stream:
                await anext(stream.aiter_lines())
                (helper,) = helpers_of(server)
                server.send_signal(number)
        await server.wait()
        await until(lambda: not is_running(helper), 5)


async def test_helper_that_is_loading_ends_with_a_killed_service(tmp_path: Path) -> None:
    async with serving(tmp_path) as server, server.client(timeout=120) as client:
        key = account_on(server).headers
        asking = asyncio.create_task(
            client.post(PATHS["chat"], json={**ASK["chat"], "model": "local/free"}, headers=key)
        )
        await until(lambda: helpers_of(server))
        (helper,) = helpers_of(server)
        server.kill()
        await asyncio.gather(asking, return_exceptions=True)
        await until(lambda: not is_running(helper), 5)
