"""One agent run through HTTP: its record during the run, its last event, and its stop."""

import asyncio
import gc
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from svc import tables
from svc.agents.run import AgentRun
from svc.agents.tools.offered import TOOLS
from svc.agents.tools.registry import ToolContext, ToolFailure
from svc.billing import wallet
from svc.inference.chat_call import ChatCall
from tests.conftest import Clocks, Service, serving
from tests.routes.test_agents import RUN, events, run
from tests.support.cases import each
from tests.support.model_server import ModelServer
from tests.support.waiting import until


@pytest.fixture
async def headers(service: Service) -> dict[str, str]:
    signed_up = await service.sign_up()
    await service.state["db"].write(wallet.book, signed_up["user"]["id"], 1_000_000, description="", now_seconds=1.0)
    return {"authorization": f"Bearer {signed_up['access_token']}"}


async def test_steps_usage_and_cost_are_visible_during_a_paid_run(
    service: Service, headers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow(run: ToolContext, name: str, content: str) -> str:
        begun.set()
        await go_on.wait()
        return "written"

    monkeypatch.setitem(TOOLS, "write_artifact", replace(TOOLS["write_artifact"], function=slow))
    body = {"goal": "Compute 6 * 7 and save a note with the result", "model": "builtin/assistant-paid"}
    running = asyncio.create_task(service.client.post(RUN, json=body, headers=headers))
    await asyncio.wait_for(begun.wait(), 30)
    (record,) = (await service.client.get("/v1/agents/runs", headers=headers)).json()["data"]
    ledger = (await service.client.get("/billing/ledger", headers=headers)).json()["data"]
    spent = -sum(row["amount_micros"] for row in ledger if row["kind"] == "debit")
    assert (record["status"], record["steps"], record["cost_micros"]) == ("running", 2, spent) and spent > 0
    assert (
        record["usage"]["total_tokens"] == record["usage"]["prompt_tokens"] + record["usage"]["completion_tokens"] > 0
    )
    kinds = [event["type"] for event in (await shown(service, headers, record["id"]))["events"]]
    assert kinds == ["started", "step", "tool_call", "tool_result", "step", "tool_call"]
    go_on.set()
    last = events(await running)[-1]
    assert last["type"] == "final" and last["finish_reason"] == "stop"
    assert last["cost_micros"] > spent and last["usage"]["total_tokens"] > record["usage"]["total_tokens"]


async def test_ended_run_leaves_no_reference_cycle(service: Service, headers: dict[str, str]) -> None:
    def left() -> set[int]:
        return {id(kept) for kept in gc.get_objects() if isinstance(kept, (AgentRun, ChatCall, ToolContext))}

    gc.collect()
    before = left()
    gc.disable()
    try:
        body = {"goal": "Compute 6 * 7 and save a note with the result", "model": "builtin/assistant-paid"}
        assert events(await service.client.post(RUN, json=body, headers=headers))[-1]["type"] == "final"
        await service.state["db"].write(lambda tx: None)  # the writer holds what it has written until there is more
        await until(lambda: left() <= before)  # its task ends after its last byte
    finally:
        gc.enable()


async def test_last_event_lists_artifacts_even_of_a_cancelled_tool(
    service: Service, headers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    written = TOOLS["write_artifact"].function

    async def cut_short(run: ToolContext, name: str, content: str) -> str:
        await written(run, name, content)
        raise ToolFailure("The tool took too long.")

    monkeypatch.setitem(TOOLS, "write_artifact", replace(TOOLS["write_artifact"], function=cut_short))
    *_, result, _, _, final = await run(
        service, headers, 'tool write_artifact {"name": "n.txt", "content": "x"}\n---\nsay ok'
    )
    assert (result["type"], result["ok"]) == ("tool_result", False)
    listed = (await service.client.get(f"/artifacts?run_id={final['run_id']}", headers=headers)).json()["data"]
    assert [made["id"] for made in final["artifacts"]] == [made["id"] for made in listed] and len(listed) == 1
    assert final["artifacts"][0] == {name: listed[0][name] for name in ("id", "name", "content_type", "size")}


async def test_last_event_lists_more_artifacts_than_a_page_has(
    service: Service, headers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "PAGE_CHARACTERS", 100)
    line = 'repeat 3 tool write_artifact {"name": "n.txt", "content": "x"}'
    assert len((await run(service, headers, f"{line}\n---\nsay ok"))[-1]["artifacts"]) == 3


async def shown(service: Service, headers: dict[str, str], run_id: str) -> dict[str, Any]:
    answer = await service.client.get(f"/v1/agents/runs/{run_id}", headers=headers)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.parametrize(
    ("goal", "last"),
    [("say 2 \u00e4", "final"), ("fail 400 no", "error"), ("tool current_time {}\n---\nsay 3", "stopped")],
)
async def test_record_keeps_all_events_except_texts(
    service: Service, headers: dict[str, str], goal: str, last: str
) -> None:
    found = await run(service, headers, f'say a\ntool calculate {{"expression": "1"}}\n---\n{goal}', max_steps=2)
    record = await shown(service, headers, found[0]["run_id"])
    assert record["events"] == [event for event in found if event["type"] != "delta"]
    assert found[-1]["type"] == last and len(record["events"]) >= 6
    (listed,) = (await service.client.get("/v1/agents/runs", headers=headers)).json()["data"]
    assert listed == {name: value for name, value in record.items() if name not in ("events", "sources", "citations")}


async def test_record_cuts_results_and_events_beyond_256_kib(
    service: Service, headers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    result = ["\u00e4" * 3_000] * 2

    async def long(run: ToolContext) -> list[str]:
        return result

    monkeypatch.setitem(TOOLS, "current_time", replace(TOOLS["current_time"], function=long))
    before = (await service.client.get("/billing/account", headers=headers)).json()["stored_bytes"]
    found = await run(service, headers, "repeat 16 tool current_time {}\n---\n" * 3 + "say ok")
    *kept, truncated, last = (await shown(service, headers, found[0]["run_id"]))["events"]
    assert truncated == {"type": "truncated"} and last == found[-1]
    assert [event["seq"] for event in kept] == [event["seq"] for event in found[: len(kept)]]
    results = [event["result"] for event in kept if event["type"] == "tool_result"]
    assert set(results) == {orjson.dumps(result).decode()[:4_000]}
    assert 200 * 1024 < len(json.dumps(kept, separators=(",", ":"))) <= 256 * 1024
    stored = (await service.client.get("/billing/account", headers=headers)).json()["stored_bytes"] - before
    assert 200 * 1024 < stored <= 260 * 1024


async def test_free_run_shows_its_steps(service: Service, headers: dict[str, str]) -> None:
    body = {"goal": "tool current_time {}\n---\nwait 60000", "model": "builtin/script"}
    running = asyncio.create_task(service.client.post(RUN, json=body, headers=headers))
    async with asyncio.timeout(30):
        while True:
            listed = (await service.client.get("/v1/agents/runs", headers=headers)).json()["data"]
            if listed and listed[0]["usage"]["completion_tokens"]:
                break
            await asyncio.sleep(0.01)
    assert listed[0]["status"] == "running" and listed[0]["steps"] >= 1 and listed[0]["cost_micros"] == 0
    stopped = await service.client.post(f"/v1/agents/runs/{listed[0]['id']}/stop", headers=headers)
    again = await service.client.post(f"/v1/agents/runs/{listed[0]['id']}/stop", headers=headers)
    assert stopped.status_code == 202 and (again.status_code, again.json()["error"]["code"]) == (409, "already_ended")
    assert events(await running)[-1]["reason"] == "requested"


@each(("goal", "reason"), [("say ok", "stop"), ("say ok\nlength", "length")])
async def test_last_event_has_the_finish_reason(
    service: Service, headers: dict[str, str], goal: str, reason: str
) -> None:
    assert (await run(service, headers, goal))[-1]["finish_reason"] == reason


MODELS = (
    *("content_filter", "length", "tools+returned", "strict+tools+odd-fields", "strict+tools+odd-fields+returned"),
    *("strict+tools+reasoning", "strict+bad-calls"),
)


@pytest.fixture
async def upstream() -> AsyncIterator[ModelServer]:
    async with ModelServer() as upstream:
        yield upstream


@pytest.fixture
async def with_model_server(
    config: Any, clocks: Clocks, upstream: ModelServer, tmp_path: Path
) -> AsyncIterator[Service]:
    models = "".join(f'[[providers.models]]\nid = "{name}"\n' for name in MODELS)
    (tmp_path / "catalog.toml").write_text(f'[[providers]]\nname = "lab"\nbase_url = "{upstream.base_url}"\n{models}')
    async with serving(replace(config, catalog=tmp_path / "catalog.toml"), clocks) as service:
        yield service


@each("reason", ["content_filter", "length"])
async def test_the_finish_reason_is_the_model_servers_own(with_model_server: Service, reason: str) -> None:
    found = await run(with_model_server, await with_model_server.bearer(), "hello", f"lab/{reason}")
    assert found[-1]["type"] == "final" and found[-1]["finish_reason"] == reason


@pytest.mark.parametrize("model", [name for name in MODELS if name.startswith("strict")])
async def test_strict_model_server_accepts_every_step(
    with_model_server: Service, upstream: ModelServer, model: str
) -> None:
    found = await run(with_model_server, await with_model_server.bearer(), "hello", f"lab/{model}", max_steps=3)
    assert (found[-1]["type"], found[-1].get("reason"), found[-1]["steps"]) == ("stopped", "max_steps", 3), found[-1]
    if "returned" not in model and "reasoning" not in model:
        assert len(upstream.requests) == 3, "nothing was refused"
    turns = [message for message in upstream.requests[-1].body["messages"] if message["role"] == "assistant"]
    results = [
        message["tool_call_id"] for message in upstream.requests[-1].body["messages"] if message["role"] == "tool"
    ]
    assert [turn.keys() for turn in turns] == [{"role", "content", "tool_calls"}] * 2
    assert [call["id"] for turn in turns for call in turn["tool_calls"]] == results and len(results) == 4
    if "bad-calls" in model:
        names = [call["function"]["name"] for call in turns[0]["tool_calls"]]
        assert names == [("no_such__tool__" * 9)[:64], "_nknown"]
        assert [event["name"] for event in found if event["type"] == "tool_call"][:2] == [
            "no such: tool! " * 9,
            "\u00fcnknown",
        ]


async def test_fields_that_model_servers_need_are_returned_unchanged(
    with_model_server: Service, upstream: ModelServer
) -> None:
    await run(with_model_server, await with_model_server.bearer(), "hello", "lab/tools+returned", max_steps=2)
    (turn,) = [message for message in upstream.requests[-1].body["messages"] if message["role"] == "assistant"]
    assert (turn["reasoning_content"], turn["reasoning_details"]) == ("Hm.", [{"type": "x"}])
    assert turn["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "x"}}
    assert turn["tool_calls"][0]["function"]["arguments"] == '{"city": "Z\\u00fcrich", "days": 3}', (
        "as the model wrote it"
    )


async def test_stopped_run_that_never_began_is_not_found(service: Service, headers: dict[str, str]) -> None:
    answer = await service.client.post("/v1/agents/runs/run_unknown/stop", headers=headers)
    assert answer.status_code == 404 and orjson.loads(answer.content)["error"]["code"] == "not_found"
