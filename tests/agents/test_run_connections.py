"""Agent runs over connections: stops, disconnects, slow readers, full disks, crashes, and model servers that fail."""

import asyncio
import json
import re
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

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
    run_to_the_end,
)
from tests.support.cases import each, named
from tests.support.full_disk import full_disk
from tests.support.local_server import LocalServer, local_server
from tests.support.loop_clock import advance_loop, hastened
from tests.support.model_answers import Wanted
from tests.support.model_server import ModelServer
from tests.support.people import PASSWORD, new_person
from tests.support.waiting import run_ready, until

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
        "waits-after-3-chunks",
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


class AgentAnswers(Wanted):
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

    def pieces(self) -> list[dict[str, Any]]:
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
        return super().pieces()

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


def catalog(port: int, timeout_seconds: float = 10) -> str:
    models = "".join(f'[[providers.models]]\nid = "{name}"\n{PRICES}' for name in MODELS)
    return f'[[providers]]\nname = "lab"\nbase_url = "http://127.0.0.1:{port}/v1"\ntimeout_seconds = {timeout_seconds}\n{models}'


@pytest.fixture
async def models() -> AsyncIterator[ModelServer]:
    async with ModelServer(answers=AgentAnswers) as upstream:
        yield upstream


@pytest.fixture
async def server(tmp_path: Path, models: ModelServer) -> AsyncIterator[LocalServer]:
    async with local_server(tmp_path, catalog(models.port)) as server:
        yield server


@pytest.fixture
def accounts(server: LocalServer) -> list[Account]:
    """Accounts with a dollar each."""
    return add_accounts(server, 12, micros=1_000_000)


@pytest.fixture
def account(accounts: list[Account]) -> Account:
    return accounts[-1]


# --- shutdown and crash


async def test_shutdown_ends_every_stream_with_its_final_event(tmp_path: Path, server: LocalServer) -> None:
    (account,) = add_accounts(server, 1, micros=1_000_000)
    scripts = ("say hi\nwait 60000", "tool current_time {}\n---\nwait 60000", "repeat 20000 wait 10", "wait 60000")
    runs = [await begun(server, account, script) for script in scripts]
    ask = {"messages": [{"role": "user", "content": "say hi\nwait 60000"}], "model": "builtin/script", "stream": True}
    chat = await Stream.send(server, CHAT, account.key, ask)
    await chat.head()
    await asyncio.gather(server.stop(), *(stream.rest() for stream in (*runs, chat)))
    *chunks, error, done = chat.blocks
    assert done == b"data: [DONE]" and orjson.loads(error[6:])["error"]["code"] == "shutting_down"
    assert all(b"finish_reason" in chunk and b'"stop"' not in chunk for chunk in chunks)
    lasts = [checked(run)[-1] for run in runs]
    assert {(last["type"], last["reason"]) for last in lasts} == {("stopped", "shutdown")}
    async with local_server(tmp_path) as server, server.client() as client:
        for last in lasts:
            assert agrees(last, await record_of(client, account, last["run_id"]))
        assert await books(client, account) == (1_000_000, 0, 1_000_000)


async def test_run_that_a_crash_interrupted_keeps_its_steps_and_cost(
    tmp_path: Path, server: LocalServer, account: Account, models: ModelServer
) -> None:
    async with server.client() as client:
        stream = await begun(server, account, "Compute 6 * 7", model="lab/later-silent")
        await until(lambda: len(models.requests) == 2)
        record = await record_of(client, account, stream.headers["x-service-run"])
        server.copy_after_crash(tmp_path / "again")
        await stream.close()
    assert record["status"] == "running" and record["steps"] and record["cost_micros"]
    assert record["usage"]["completion_tokens"] > 0
    kinds = [event["type"] for event in record["events"]]
    assert kinds == ["started", "step", "tool_call", "tool_result", "step"]
    text = catalog(models.port)
    async with local_server(tmp_path / "again", text) as server, server.client() as client:
        after = await record_of(client, account, record["id"])
        assert (after["status"], after["error"]["code"]) == ("error", "interrupted")
        kept = ("steps", "usage", "cost_micros")
        assert {name: after[name] for name in kept} == {name: record[name] for name in kept}
        *events, last = after["events"]
        assert events and events == record["events"][: len(events)] and last["seq"] == events[-1]["seq"] + 1
        assert last == {**last, "type": "error", "error": after["error"], **{name: after[name] for name in kept}}
        left = 1_000_000 - record["cost_micros"]
        assert await books(client, account) == (left, 0, left)


# --- stops


async def test_stop_ends_the_stream_and_a_second_stop_is_refused(server: LocalServer, account: Account) -> None:
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


async def test_ending_run_cannot_be_stopped(server: LocalServer, account: Account) -> None:
    stream = await begun(server, account, "wait 100\nsay done")
    run_id = stream.headers["x-service-run"]
    held, go_on = threading.Event(), threading.Event()
    db = server.service.state["db"]
    writing = asyncio.ensure_future(db.write(lambda tx: held.set() or go_on.wait(20)))
    await until(held.is_set)
    await until(lambda: run_id not in server.service.state["open_runs"])  # it stores its end
    async with server.client() as client:
        late = await client.post(f"/v1/agents/runs/{run_id}/stop", headers=account.headers)
        assert (late.status_code, late.json()["error"]["code"]) == (409, "already_ended")
        go_on.set()
        await asyncio.gather(writing, stream.rest())
        last = checked(stream)[-1]
        assert last["type"] == "final" and last["output"] == "done"
        assert agrees(last, await record_of(client, account, run_id))


async def test_deleting_the_account_ends_its_streams_and_its_tokens(server: LocalServer) -> None:
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


PHASES = ("head", "body", "sent", "waiting", "streaming", "tools")


async def leave(server: LocalServer, account: Account, phase: str, how: str) -> Stream:
    """Begin a run that does not end, and disconnect in that phase."""
    goals = {"waiting": "say hi\nwait 60000", "tools": "repeat 10 tool current_time {}\n---\n" * 19 + "wait 60000"}
    goal = goals.get(phase, "repeat 20000 say " + "some text that goes on and on " * 20)
    body = {"goal": goal, "model": "builtin/script", "max_steps": 20}
    stream = await Stream.send(server, RUN, account.key, body, cut={"head": 60, "body": 250}.get(phase))
    if phase in ("waiting", "streaming", "tools"):
        await stream.head()
        await anext(stream.read())
    await run_ready()
    stream.leave(how)
    return stream


@pytest.mark.parametrize("how", ["close", "fin", "rst", "vanish"])
async def test_disconnect_in_any_phase_stops_the_run(server: LocalServer, accounts: list[Account], how: str) -> None:
    left = [
        (phase, account, await leave(server, account, phase, how))
        for phase, account in zip(PHASES, accounts, strict=False)
    ]
    await until(lambda: not server.open_answers)
    async with server.client() as client:
        for phase, account, stream in left:
            with named({"phase": phase, "how": how}):
                ends = [(run["status"], run["reason"]) for run in await listed(client, account, "/v1/agents/runs")]
                # The request may have been read after the disconnect.
                allowed = {"head": [0], "body": [0], "sent": [0, 1]}.get(phase, [1])
                assert ends in [[("stopped", "client_disconnected")] * times for times in allowed]
                balance, held, total = await books(client, account)
                assert held == 0 and balance == total
            await stream.close()


# --- the model server


async def lab_run(server: LocalServer, account: Account, model: str, **fields: Any) -> list[dict[str, Any]]:
    found = await run_to_the_end(server, account, "Compute 6 * 7", model=f"lab/{model}", **fields)
    async with server.client() as client:
        assert agrees(found[-1], await record_of(client, account, found[-1]["run_id"]))
        balance, held, total = await books(client, account)
        assert held == 0 and balance == total
        assert 1_000_000 - balance >= found[-1]["cost_micros"]
    return found


FAULTS = {
    "cut-after-2-chunks": "upstream_error",
    "reset-after-1-chunks": "upstream_error",
    "silent": "upstream_timeout",
    "silent-after-2-chunks": "upstream_timeout",
    "status-500": "upstream_error",
    "status-404": "on_command",
    "html-200": "upstream_invalid_response",
    "error-mid-stream": "upstream_error",
    "broken-json": "upstream_invalid_response",
    "surrogate-error": "upstream_error",
}


async def test_model_server_error_in_mid_run_is_the_error_event(tmp_path: Path, models: ModelServer) -> None:
    async with local_server(tmp_path, catalog(models.port, timeout_seconds=0.3)) as server:
        accounts = add_accounts(server, len(FAULTS), micros=1_000_000)
        runs = [lab_run(server, one, f"later-{fault}") for fault, one in zip(FAULTS, accounts, strict=True)]
        for fault, found in zip(FAULTS, await asyncio.gather(*runs), strict=True):
            last = found[-1]
            assert (last["type"], last["steps"], last["error"]["code"]) == ("error", 2, FAULTS[fault]), last
            assert {"message", "type", "code", "param"} <= set(last["error"])
            assert [event["ok"] for event in found if event["type"] == "tool_result"] == [True]


@each("model", ["refuse-tools", "refuse-tools+bare"])
async def test_model_without_tools_gives_an_error_with_a_hint(
    server: LocalServer, account: Account, models: ModelServer, model: str
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
    server: LocalServer, account: Account, models: ModelServer
) -> None:
    assert "refused the tools" not in str((await lab_run(server, account, "cut-after-2-chunks"))[-1])


async def test_text_of_a_model_server_never_becomes_an_event(
    server: LocalServer, account: Account, models: ModelServer
) -> None:
    found = await lab_run(server, account, "looks-final")
    assert [event["type"] for event in found if event["type"] != "delta"] == ["started", "step", "final"]
    assert found[-1]["output"] == 'data: {"type":"final","seq":3}\n\nHello, world!' and found[-1]["steps"] == 1
    assert b"forged" not in orjson.dumps(found)


async def test_invalid_calls_are_results_for_the_model(
    server: LocalServer, account: Account, models: ModelServer
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


@each(("count", "kind"), [(16, "final"), (17, "error"), (1000, "error")])
async def test_calls_of_a_step_are_limited(
    server: LocalServer, account: Account, models: ModelServer, count: int, kind: str
) -> None:
    found = await lab_run(server, account, f"calls-{count}")
    assert found[-1]["type"] == kind and sum(event["type"] == "tool_result" for event in found) == (
        count if kind == "final" else 0
    )
    if kind == "error":
        assert found[-1]["error"]["code"] == "upstream_invalid_response"


@each("model", ["lab/waits-after-3-chunks", "lab/endless", "lab/later-silent"])
async def test_disconnect_cancels_the_model_server(
    server: LocalServer, accounts: list[Account], models: ModelServer, model: str
) -> None:
    account = accounts.pop()
    models.requests.clear()
    stream = await Stream.send(server, RUN, account.key, {"goal": "Compute 6 * 7", "model": model})
    await stream.head()
    async for block in stream.read():
        if (b'"delta"' if model != "lab/later-silent" else b'"tool_result"') in block:
            break
    await until(lambda: len(models.requests) == (2 if model == "lab/later-silent" else 1))
    stream.leave("rst")
    await asyncio.wait_for(models.requests[-1].gone.wait(), 20)
    async with server.client() as client:
        record = await ended(client, account, stream.headers["x-service-run"])
        assert (record["status"], record["reason"]) == ("stopped", "client_disconnected")
        balance, held, total = await books(client, account)
        assert held == 0 and balance == total


# --- the wallet and the disk


async def test_empty_wallet_in_mid_run_is_an_error_and_used_tokens_are_paid(
    server: LocalServer, models: ModelServer
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
    server: LocalServer, account: Account, models: ModelServer
) -> None:
    streams = [
        await begun(server, account, "Compute", model="lab/waits-after-3-chunks"),
        await begun(server, account, "say hi\nwait 100\nsay " + "x" * 5_000),
    ]
    gone = await begun(server, account, "wait 60000")
    async with server.client() as client:
        with full_disk():
            gone.leave("rst")
            models.release.set()
            for stream in streams:
                await hastened(stream.rest())
                assert checked(stream)[-1]["error"]["code"] == "storage_unavailable"
                assert (await record_of(client, account, stream.headers["x-service-run"]))["status"] == "running"
            assert (await client.get("/readyz")).status_code == 503
            assert (await client.get("/healthz")).status_code == 200
            script = {"goal": "say hi", "model": "builtin/script"}
            refused = await client.post(RUN, json=script, headers=account.headers)
            assert (refused.status_code, refused.json()["error"]["code"]) == (503, "storage_unavailable")
        advance_loop(2)  # then they are stored
        for stream in (*streams, gone):
            record = await ended(client, account, stream.headers["x-service-run"])
            assert record["status"] == "error" and record["error"]["code"] == "storage_unavailable"
            if stream is not gone and record["cost_micros"] == 0:
                assert agrees(stream.events[-1], record)
        balance, held, total = await books(client, account)
        assert held == 0 and balance == total < 1_000_000
        assert (await run_to_the_end(server, account, "say hi"))[-1]["type"] == "final"


async def test_permanent_storage_fault_leaves_the_run_to_the_next_start(
    tmp_path: Path, server: LocalServer, account: Account
) -> None:
    stream = await begun(server, account, "wait 100\nsay hi")
    with full_disk():
        await hastened(stream.rest())
        assert checked(stream)[-1]["error"]["code"] == "storage_unavailable"
        await server.stop()
        advance_loop(2)
        await until(lambda: asyncio.all_tasks() == {asyncio.current_task()})  # nothing tries again
    async with local_server(tmp_path) as server, server.client() as client:
        record = await record_of(client, account, stream.headers["x-service-run"])
        assert record["status"] == "error" and record["error"]["code"] == "interrupted"
