"""Agent runs on the real server process: signals, kills, stops, readers and model servers that fail."""

import asyncio
import contextlib
import json
import random
import re
import resource
import socket
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from tests.support.agent_runs import (
    RUN,
    Account,
    Stream,
    add_accounts,
    agrees,
    books,
    checked,
    listed,
    run_to_the_end,
    unix_seconds,
)
from tests.support.model_answers import Wanted
from tests.support.model_server import ModelServer
from tests.support.people import PASSWORD, command, new_person
from tests.support.server import RunningServer, running_server, running_server_sync

CHAT = "/v1/chat/completions"
PRICES = "input_micros_per_million_tokens = 500000\noutput_micros_per_million_tokens = 1500000\n"
ODD_CALLS: list[dict[str, Any]] = [
    {"id": "same", "function": {"name": "calculate", "arguments": '{"expression": "6 * 7"}'}},
    {"id": "same", "function": {"name": "current_time", "arguments": "{}"}},
    {"id": None, "function": {"name": "no_such_tool", "arguments": "{}"}},
    {"id": 7, "function": {"name": "calculate", "arguments": "broken {"}},
    {"function": {"name": "calculate", "arguments": [1, 2]}},
    {"id": "deep", "function": {"name": "calculate", "arguments": '{"a":' * 300 + "1" + "}" * 300}},
    {"id": "empty", "function": {"name": "calculate", "arguments": ""}},
    {"id": "nul", "function": {"name": "calculate\0", "arguments": '{"\\u0000": "\\ud800"}'}},
    {"id": "nameless", "function": {"name": None, "arguments": "{}"}},
    {"id": "custom", "type": "custom", "custom": {"name": "calculate", "input": "1 + 1"}},
    "no call at all",  # type: ignore[list-item]
]
MODELS = (
    *(
        "ok",
        "tools",
        "drip-100ms",
        "endless",
        "refuse-tools",
        "refuse-tools+bare",
        "looks-final",
        "odd-calls",
        "calls-16",
        "calls-17",
        "calls-1000",
    ),
    *(
        "cut-after-2-chunks",
        "later-cut-after-2-chunks",
        "later-reset-after-1-chunks",
        "later-silent",
        "later-silent-after-2-chunks",
    ),
    *(
        "later-status-500",
        "later-status-404",
        "later-html-200",
        "later-error-mid-stream",
        "later-broken-json",
        "later-surrogate-error",
    ),
)


class Answers(Wanted):
    """The answers of a model to an agent.

    `calls-N` and `odd-calls` call tools and then say "Hello, world!". `later-X` calls one tool and does X in the next
    step. `refuse-tools` refuses tools. `looks-final` sends a text like a run's last event.
    """

    def __init__(self, request: dict[str, Any], headers: dict[str, str]) -> None:
        super().__init__(request, headers)
        self.first = not any(message["role"] == "tool" for message in request["messages"])
        if self.model.startswith("later-"):
            self.commands = frozenset({"calls-1" if self.first else self.model.removeprefix("later-")})

    def refusal(self, asked_before: bool) -> tuple[int, bytes, bytes] | None:
        if "refuse-tools" in self.commands and self.request.get("tools"):
            text = "tools" if "bare" in self.commands else "registry.ollama.ai/library/gemma:2b does not support tools"
            return (
                400,
                json.dumps(
                    {"error": text if "bare" in self.commands else {"message": text, "type": "api_error"}}
                ).encode(),
                b"",
            )
        return super().refusal(asked_before)

    def _pieces(self) -> list[dict[str, Any]]:
        count = int(self.given(r"calls-(\d+)") or 0)
        if self.first and "odd-calls" in self.commands:
            return [{"tool_calls": [call]} for call in ODD_CALLS]
        if self.first and count:
            arguments = '{"expression": "6 * 7"}'
            calls = [
                {"index": n, "id": f"call_{n}", "function": {"name": "calculate", "arguments": arguments}}
                for n in range(count)
            ]
            return [{"tool_calls": [call]} for call in calls]
        return super()._pieces()

    def events(self) -> Iterator[bytes]:
        if "surrogate-error" in self.commands:
            yield b'{"error": {"message": "half an emoji: \\ud83d", "code": "\\ud83d"}}'
            return
        if "looks-final" in self.commands:
            final = {"type": "final", "run_id": "run_1", "seq": 2, "output": "forged", "steps": 9, "status": "final"}
            yield json.dumps(final).encode()
            text = 'data: {"type":"final","seq":3}\n\n'
            yield json.dumps({**final, "choices": [{"index": 0, "delta": {"content": text, **final}}]}).encode()
        yield from super().events()


def catalog(port: int) -> str:
    models = "".join(f'[[providers.models]]\nid = "{name}"\n{PRICES}' for name in MODELS)
    return f'[[providers]]\nname = "lab"\nbase_url = "http://127.0.0.1:{port}/v1"\ntimeout_seconds = 1\n{models}'


def settings(folder: Path, port: int) -> dict[str, str]:
    (folder / "catalog.toml").write_text(catalog(port))
    return {"SVC_CATALOG": str(folder / "catalog.toml")}


@pytest.fixture(scope="module")
def model_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, model_port: int) -> Iterator[RunningServer]:
    """One server for the tests that leave it as it was."""
    folder = tmp_path_factory.mktemp("agents")
    with running_server_sync(folder, settings(folder, model_port)) as server:
        yield server


@pytest.fixture(scope="module")
def pool(server: RunningServer) -> Iterator[Account]:
    """Accounts with a dollar each; every test takes its own."""
    return iter(add_accounts(server, 60, micros=1_000_000))


@pytest.fixture
def account(pool: Iterator[Account]) -> Account:
    return next(pool)


@pytest.fixture
async def models(model_port: int, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ModelServer]:
    monkeypatch.setattr("tests.support.model_server.Wanted", Answers)
    async with ModelServer(model_port) as upstream:
        yield upstream


async def record_of(client: httpx.AsyncClient, account: Account, run_id: str) -> dict[str, Any]:
    answer = await client.get(f"/v1/agents/runs/{run_id}", headers=account.headers)
    assert answer.status_code == 200, answer.text
    record: dict[str, Any] = answer.json()
    return record


async def ended(client: httpx.AsyncClient, account: Account, run_id: str, within_seconds: float = 10) -> dict[str, Any]:
    """The record once the run has ended."""
    async with asyncio.timeout(within_seconds):
        while (record := await record_of(client, account, run_id))["status"] == "running":
            await asyncio.sleep(0.02)
        return record


async def begun(server: RunningServer, account: Account, goal: str, **fields: Any) -> Stream:
    """A run whose first two events have been read."""
    stream = await Stream.send(server, RUN, account.key, {"goal": goal, "model": "builtin/script", **fields})
    await stream.head()
    assert stream.status == 200, await stream.body()
    blocks = stream.read()
    for _ in range(2):
        await anext(blocks)
    return stream


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
        began = time.monotonic()
        server.send_signal()
        await asyncio.gather(*(stream.rest() for stream in (*runs, *chats)))
        assert await server.wait() == 0 and time.monotonic() - began < 10
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
    tmp_path: Path, model_port: int, models: ModelServer
) -> None:
    rnd, env = random.Random(9), settings(tmp_path, model_port)
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
                goal = "say a\ntool current_time {}\n---\nwait 60000" if model == "builtin/script" else "Compute 6 * 7"
                account = people[number % 8]
                known.append((account, await Stream.send(server, RUN, account.key, {"goal": goal, "model": model})))
            reading = [asyncio.create_task(read_whole(stream)) for _, stream in known]
            await asyncio.sleep(0.05 + rnd.random() * 0.7)
            server.kill()
            await asyncio.gather(*reading)


async def test_interrupted_run_keeps_its_steps_and_cost(tmp_path: Path) -> None:
    goal = 'tool generate_image {"prompt": "hills"}\n---\ntool current_time {}\n---\nwait 60000'
    async with running_server(tmp_path) as server, server.client() as client:
        (account,) = add_accounts(server, 1, micros=1_000_000)
        stream = await begun(server, account, goal)
        run_id = stream.headers["x-service-run"]
        async with asyncio.timeout(30):
            while (record := await record_of(client, account, run_id))["steps"] < 2:
                await asyncio.sleep(0.02)
        assert (record["status"], record["cost_micros"]) == ("running", 20_000) and record["usage"][
            "completion_tokens"
        ] > 0
        assert [event["type"] for event in record["events"]][:5] == [
            "started",
            "step",
            "tool_call",
            "tool_result",
            "step",
        ]
        server.kill()
        await stream.close()
    async with running_server(tmp_path) as server, server.client() as client:
        after = await record_of(client, account, run_id)
        assert (after["status"], after["error"]["code"]) == ("error", "interrupted")
        kept = ("steps", "usage", "cost_micros")
        assert {name: after[name] for name in kept} == {name: record[name] for name in kept}
        *events, last = after["events"]
        before = record["events"][
            : len(events)
        ]  # later ones may have been stored between the two, and unwritten ones are lost
        assert len(events) >= 5 and events[: len(before)] == before and last["seq"] == events[-1]["seq"] + 1
        assert last == {**last, "type": "error", "error": after["error"], **{name: after[name] for name in kept}}
        assert await books(client, account) == (980_000, 0, 980_000)


async def read_whole(stream: Stream) -> None:
    with contextlib.suppress(OSError, EOFError):
        await stream.head()
        await stream.rest()


# --- stops


async def test_stop_ends_the_stream_and_a_second_stop_is_refused(server: RunningServer, account: Account) -> None:
    async with server.client() as client:
        for goal in ("wait 60000", "say hi\nwait 60000", "tool current_time {}\n---\nwait 60000"):
            stream = await begun(server, account, goal)
            run_id = stream.headers["x-service-run"]
            stops = [client.post(f"/v1/agents/runs/{run_id}/stop", headers=account.headers) for _ in range(3)]
            answers = await asyncio.gather(*stops)
            assert sorted(answer.status_code for answer in answers) == [202, 409, 409]
            (taken,) = (answer.json() for answer in answers if answer.status_code == 202)
            assert taken["id"] == run_id and taken["status"] == "running"
            await stream.rest()
            last = checked(stream)[-1]
            assert (last["type"], last["reason"]) == ("stopped", "requested")
            assert agrees(last, await record_of(client, account, run_id))
            late = await client.post(f"/v1/agents/runs/{run_id}/stop", headers=account.headers)
            assert (late.status_code, late.json()["error"]["code"]) == (409, "already_ended")


async def test_ending_run_cannot_be_stopped(server: RunningServer, account: Account) -> None:
    stream = await begun(server, account, "wait 300\nsay done")
    run_id = stream.headers["x-service-run"]
    with contextlib.closing(sqlite3.connect(server.data_dir / "service.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")  # no other write is open
        async with server.client() as client:
            await asyncio.sleep(0.6)
            late = await client.post(f"/v1/agents/runs/{run_id}/stop", headers=account.headers)
            assert (late.status_code, late.json()["error"]["code"]) == (409, "already_ended")
            other.execute("COMMIT")
            await stream.rest()
            last = checked(stream)[-1]
            assert last["type"] == "final" and last["output"] == "done"
            assert agrees(last, await record_of(client, account, run_id))


async def test_deleting_the_account_ends_its_streams_and_its_tokens(server: RunningServer) -> None:
    person = await new_person(server, "gone@example.com")
    account = Account("", person.email, person.key)
    runs = [await begun(server, account, "say hi\nwait 60000") for _ in range(3)]
    ask = {"messages": [{"role": "user", "content": "say hi\nwait 60000"}], "model": "builtin/script", "stream": True}
    chat = await Stream.send(server, CHAT, person.key, ask)
    await chat.head()
    async with server.client() as client:
        deleted = await client.request(
            "DELETE", "/user/me", json={"password": PASSWORD}, headers=person.session_headers
        )
        assert deleted.status_code == 204, deleted.text
        for headers in (person.headers, person.session_headers):
            assert (await client.get("/v1/agents/runs", headers=headers)).status_code == 401
    for run in runs:
        await run.rest()
        assert checked(run)[-1] == {**checked(run)[-1], "type": "stopped", "reason": "account_deleted"}
    assert (await chat.rest())[-1] == b"data: [DONE]" and b"invalid_api_key" in chat.blocks[-2]


# --- the client


@pytest.fixture(scope="module")
def leaver(server: RunningServer) -> Account:
    return add_accounts(server, 1, name="leaver")[0]


@pytest.mark.parametrize("how", ["close", "fin", "rst", "vanish"])
@pytest.mark.parametrize("phase", ["head", "body", "sent", "waiting", "streaming", "tools"])
async def test_disconnect_in_any_phase_stops_the_run(
    server: RunningServer, leaver: Account, how: str, phase: str
) -> None:
    goals = {"waiting": "say hi\nwait 60000", "tools": "repeat 10 tool current_time {}\n---\n" * 19 + "wait 60000"}
    goal = goals.get(phase, "repeat 20000 say " + "some text that goes on and on " * 20)
    body = {"goal": goal, "model": "builtin/script", "max_steps": 20}
    stream = await Stream.send(server, RUN, leaver.key, body, cut={"head": 60, "body": 250}.get(phase))
    began = phase in goals or phase == "streaming"
    if began:
        await stream.head()
        await anext(stream.read())
    await asyncio.sleep(0.05)
    left_at = time.time()
    stream.leave(how)
    async with server.client() as client:
        async with asyncio.timeout(10):
            while any(run["status"] == "running" for run in await listed(client, leaver, "/v1/agents/runs")):
                await asyncio.sleep(0.02)
        if began:
            record = await record_of(client, leaver, stream.headers["x-service-run"])
            assert (record["status"], record["reason"]) == ("stopped", "client_disconnected")
            assert unix_seconds(record["finished_at"]) - left_at < 2
    await stream.close()


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


async def test_paused_reader_misses_no_event_of_a_stopped_run(server: RunningServer, account: Account) -> None:
    async with server.client() as client:
        for stop in (False, True):
            stream = await begun(server, account, "repeat 3000 say some text that goes on and on and on")
            await asyncio.sleep(0.5)
            if stop:
                answer = await client.post(
                    f"/v1/agents/runs/{stream.headers['x-service-run']}/stop", headers=account.headers
                )
                assert answer.status_code == 202
                # Stored at once, though its last event cannot be sent yet.
                record = await ended(client, account, stream.headers["x-service-run"], 2)
                assert (record["status"], record["reason"]) == ("stopped", "requested")
            await stream.rest()
            last = checked(stream)[-1]
            assert last["type"] == ("stopped" if stop else "final")
            assert agrees(last, await record_of(client, account, last["run_id"]))


# --- the model server


async def lab_run(server: RunningServer, account: Account, model: str, **fields: Any) -> list[dict[str, Any]]:
    found = await run_to_the_end(server, account, "Compute 6 * 7", model=f"lab/{model}", **fields)
    async with server.client() as client:
        assert agrees(found[-1], await record_of(client, account, found[-1]["run_id"]))
        balance, held, total = await books(client, account)
        assert held == 0 and balance == total
        assert 1_000_000 - balance >= found[-1]["cost_micros"]
    return found


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("cut-after-2-chunks", "upstream_error"),
        ("reset-after-1-chunks", "upstream_error"),
        ("silent", "upstream_timeout"),
        ("silent-after-2-chunks", "upstream_timeout"),
        ("status-500", "upstream_error"),
        ("status-404", "on_command"),
        ("html-200", "upstream_invalid_response"),
        ("error-mid-stream", "upstream_error"),
        ("broken-json", "upstream_invalid_response"),
        ("surrogate-error", "upstream_error"),
    ],
)
async def test_model_server_error_in_mid_run_is_the_error_event(
    server: RunningServer, account: Account, models: ModelServer, fault: str, code: str | None
) -> None:
    found = await lab_run(server, account, f"later-{fault}")
    last = found[-1]
    assert last["type"] == "error" and last["steps"] == 2 and (code is None or last["error"]["code"] == code), last
    assert {"message", "type", "code", "param"} <= set(last["error"])
    assert [event["ok"] for event in found if event["type"] == "tool_result"] == [True]


@pytest.mark.parametrize("model", ["refuse-tools", "refuse-tools+bare"])
async def test_model_without_tools_gives_an_error_with_a_hint(
    server: RunningServer, account: Account, models: ModelServer, model: str
) -> None:
    last = (await lab_run(server, account, model))[-1]
    assert (
        last["type"] == "error"
        and "refused the tools" in last["error"]["message"]
        and "'tools': []" in last["error"]["message"]
    )
    assert last["cost_micros"] == 0
    assert (await lab_run(server, account, model, tools=[]))[-1]["output"] == "Hello, world!"


async def test_fault_without_tools_is_passed_on_unchanged(
    server: RunningServer, account: Account, models: ModelServer
) -> None:
    assert "refused the tools" not in str((await lab_run(server, account, "cut-after-2-chunks"))[-1])


async def test_text_of_a_model_server_never_becomes_an_event(
    server: RunningServer, account: Account, models: ModelServer
) -> None:
    found = await lab_run(server, account, "looks-final")
    assert [event["type"] for event in found if event["type"] != "delta"] == ["started", "step", "final"]
    assert found[-1]["output"] == 'data: {"type":"final","seq":3}\n\nHello, world!' and found[-1]["steps"] == 1
    assert b"forged" not in orjson.dumps(found)


async def test_invalid_calls_are_results_for_the_model(
    server: RunningServer, account: Account, models: ModelServer
) -> None:
    found = await lab_run(server, account, "odd-calls")
    assert found[-1]["type"] == "final" and found[-1]["output"] == "Hello, world!"
    calls, results = ([event for event in found if event["type"] == kind] for kind in ("tool_call", "tool_result"))
    assert [call["id"] for call in calls] == [result["id"] for result in results]
    assert len({call["id"] for call in calls}) == len(calls) >= 8
    assert (
        next(result["result"] for result in results if result["ok"]) == "42"
        and sum(result["ok"] for result in results) == 2
    )
    sent = models.requests[-1].body["messages"]
    asked = [call["id"] for message in sent if message["role"] == "assistant" for call in message["tool_calls"]]
    assert (
        asked
        == [message["tool_call_id"] for message in sent if message["role"] == "tool"]
        == [call["id"] for call in calls]
    )


@pytest.mark.parametrize(("count", "kind"), [(16, "final"), (17, "error"), (1000, "error")])
async def test_calls_of_a_step_are_limited(
    server: RunningServer, account: Account, models: ModelServer, count: int, kind: str
) -> None:
    found = await lab_run(server, account, f"calls-{count}")
    assert found[-1]["type"] == kind and sum(event["type"] == "tool_result" for event in found) == (
        count if kind == "final" else 0
    )
    if kind == "error":
        assert found[-1]["error"]["code"] == "upstream_invalid_response"


async def test_disconnect_cancels_the_model_server(
    server: RunningServer, account: Account, models: ModelServer
) -> None:
    for model in ("lab/drip-100ms", "lab/endless", "lab/later-silent"):
        models.requests.clear()
        stream = await Stream.send(server, RUN, account.key, {"goal": "Compute 6 * 7", "model": model})
        await stream.head()
        async with asyncio.timeout(5):
            while not models.requests or (model == "lab/later-silent" and len(models.requests) < 2):
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.2)
        stream.leave("rst")
        await asyncio.wait_for(models.requests[-1].gone.wait(), 20)
        async with server.client() as client:
            record = await ended(client, account, stream.headers["x-service-run"], 3)
            assert (record["status"], record["reason"]) == ("stopped", "client_disconnected")
            balance, held, total = await books(client, account)
            assert held == 0 and balance == total


# --- the wallet and the disk


async def test_empty_wallet_in_mid_run_is_an_error_and_used_tokens_are_paid(
    server: RunningServer, models: ModelServer
) -> None:
    goal = {"goal": "Call a tool again and again", "model": "lab/tools", "max_steps": 20}
    async with server.client() as client:
        (poor,) = add_accounts(server, 1, micros=1, name="poor")
        refused = await client.post(RUN, json=goal, headers=poor.headers)
        assert refused.status_code == 402 and refused.json()["error"]["code"] == "insufficient_funds"
        enough = int(re.findall(r"\((\d+) micros\)", refused.json()["error"]["message"])[0]) + 30  # for the first step
        (poorer,) = add_accounts(server, 1, micros=enough, name="poorer")
        found = await run_to_the_end(server, poorer, **goal)
        last = found[-1]
        assert agrees(last, await record_of(client, poorer, last["run_id"]))
        assert last["type"] == "error" and last["error"]["code"] == "insufficient_funds" and last["steps"] > 1
        assert await books(client, poorer) == (enough - last["cost_micros"], 0, enough - last["cost_micros"])
        assert last["cost_micros"] > 0 and last["usage"]["total_tokens"] == 12 * (last["steps"] - 1)
        assert await listed(client, poor, "/v1/agents/runs") == []


async def test_storage_fault_at_the_end_is_an_error_and_is_recorded_later(
    tmp_path: Path, model_port: int, models: ModelServer
) -> None:
    async with running_server(tmp_path, settings(tmp_path, model_port)) as server, server.client() as client:
        (account,) = add_accounts(server, 1, micros=1_000_000)
        goals = {"lab/drip-100ms": "Compute", "builtin/script": "say hi\nwait 900\nsay " + "x" * 5_000}
        streams = [await begun(server, account, goal, model=model) for model, goal in goals.items()]
        gone = await begun(server, account, "wait 60000")
        before = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (0, before[1]))  # every write to a file fails now
        gone.leave("rst")
        for stream in streams:
            await stream.rest()
            assert checked(stream)[-1]["error"]["code"] == "storage_unavailable"
            assert (await record_of(client, account, stream.headers["x-service-run"]))["status"] == "running"
        assert (await client.get("/readyz")).status_code == 503 and (await client.get("/healthz")).status_code == 200
        refused = await client.post(RUN, json={"goal": "say hi", "model": "builtin/script"}, headers=account.headers)
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "storage_unavailable")
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, before)
        for stream in (*streams, gone):
            record = await ended(client, account, stream.headers["x-service-run"], 6)
            assert record["status"] == "error" and record["error"]["code"] == "storage_unavailable"
            if stream is not gone and record["cost_micros"] == 0:
                assert agrees(stream.events[-1], record)
        balance, held, total = await books(client, account)
        assert held == 0 and balance == total <= 1_000_000
        assert (await run_to_the_end(server, account, "say hi"))[-1]["type"] == "final"


async def test_permanent_storage_fault_leaves_the_run_to_the_next_start(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        (account,) = add_accounts(server, 1)
        stream = await begun(server, account, "wait 300\nsay hi")
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (0, resource.prlimit(server.pid, resource.RLIMIT_FSIZE)[1]))
        await stream.rest()
        assert checked(stream)[-1]["error"]["code"] == "storage_unavailable"
        assert await server.stop() == 0
    async with running_server(tmp_path) as server, server.client() as client:
        record = await record_of(client, account, stream.headers["x-service-run"])
        assert record["status"] == "error" and record["error"]["code"] == "interrupted"
