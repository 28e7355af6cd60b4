"""Agent runs through HTTP: the events, their order, the tools and the records."""

from typing import Any

import httpx
import orjson
import pytest

from svc.billing import wallet
from tests.conftest import JSON, Service, bearer
from tests.support.cases import each

RUN = "/v1/agents/run"
GOAL = "Compute 12 * (3 + 4) and save a note with the result"


def events(answer: httpx.Response) -> list[dict[str, Any]]:
    """The events of a run; checks the framing, `run_id`, `seq`, and that exactly one ends it."""
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/event-stream" and answer.headers["x-accel-buffering"] == "no"
    assert answer.headers["cache-control"] == "no-cache, no-store"
    assert answer.content.isascii() and answer.content.endswith(b"\n\n") and b"[DONE]" not in answer.content
    blocks = [block for block in answer.content.decode().split("\n\n")[:-1] if not block.startswith(":")]
    assert all(block.startswith("data: ") and "\n" not in block for block in blocks)
    found: list[dict[str, Any]] = [orjson.loads(block[6:]) for block in blocks]
    assert [event["seq"] for event in found] == list(range(1, len(found) + 1))
    assert {event["run_id"] for event in found} == {answer.headers["x-service-run"]}
    assert [event["type"] in ("final", "error", "stopped") for event in found] == [False] * (len(found) - 1) + [True]
    return found


async def run(
    service: Service, headers: dict[str, str], goal: str, model: str = "builtin/script", **fields: Any
) -> list[dict[str, Any]]:
    answer = await service.client.post(RUN, json={"goal": goal, "model": model, **fields}, headers=headers)
    found = events(answer)
    record = (await service.client.get(f"/v1/agents/runs/{found[0]['run_id']}", headers=headers)).json()
    last = found[-1]
    assert record["status"] == last["type"] and record["finished_at"] is not None
    assert record["events"][-1] == last
    assert (
        record["usage"] == last["usage"]
        and record["steps"] == last["steps"]
        and record["cost_micros"] == last["cost_micros"]
    )
    assert (
        record["output"] == last.get("output")
        and record["error"] == last.get("error")
        and record["reason"] == last.get("reason")
    )
    return found


def texts(found: list[dict[str, Any]]) -> str:
    return "".join(event["text"] for event in found if event["type"] == "delta")


@pytest.fixture
async def headers(service: Service) -> dict[str, str]:
    return await service.bearer()


async def test_assistant_plans_tool_calls_and_writes_an_artifact(service: Service, headers: dict[str, str]) -> None:
    found = await run(service, headers, GOAL, "builtin/assistant")
    assert found[0] == {**found[0], "type": "started", "model": "builtin/assistant", "max_steps": 6}
    calls = {event["name"]: event for event in found if event["type"] == "tool_call"}
    assert calls["calculate"]["arguments"] == {"expression": "12 * (3 + 4)"}
    results = [event for event in found if event["type"] == "tool_result"]
    assert [result["ok"] for result in results] == [True, True] and results[0]["result"] == "84"
    assert [result["id"] for result in results] == [event["id"] for event in found if event["type"] == "tool_call"]
    final = found[-1]
    assert (
        final["type"] == "final"
        and "84" in final["output"]
        and final["output"] == texts(found)[-len(final["output"]) :]
    )
    assert final["usage"]["total_tokens"] > 0 and final["cost_micros"] == 0
    (artifact,) = final["artifacts"]
    content = await service.client.get(f"/artifacts/{artifact['id']}/content", headers=headers)
    assert "84" in content.text
    shown = (await service.client.get(f"/artifacts/{artifact['id']}", headers=headers)).json()
    assert shown["run_id"] == found[0]["run_id"] and shown["name"] == artifact["name"]


async def test_script_plays_one_part_for_each_step(service: Service, headers: dict[str, str]) -> None:
    found = await run(service, headers, 'say thinking\ntool calculate {"expression": "2 + 2"}\n---\nsay It is 4.')
    kinds = [event["type"] for event in found if event["type"] != "delta"]
    assert kinds == ["started", "step", "tool_call", "tool_result", "step", "final"]
    assert found[-1]["output"] == "It is 4." and found[-1]["steps"] == 2 and texts(found) == "thinkingIt is 4."


async def test_failed_tool_is_a_result_and_the_run_continues(service: Service, headers: dict[str, str]) -> None:
    script = "\n".join(
        [
            'tool calculate {"expression": "1 / 0"}',
            'tool calculate {"expression": "9**9**9"}',
            'tool calculate {"wrong": 1}',
            'tool calculate {"expression": 5}',
            "tool calculate not json",
            "tool no_such_tool {}",
            'tool read_artifact {"id": "art_unknown"}',
            'tool write_artifact {"name": "", "content": "x"}',
            'tool current_time {"zone": "UTC"}',
            "---",
            "say done",
        ]
    )
    found = await run(service, headers, script)
    results = [event for event in found if event["type"] == "tool_result"]
    assert len(results) == 9 and not any(result["ok"] for result in results)
    assert all(isinstance(result["result"], str) and result["result"] for result in results)
    assert found[-1]["type"] == "final" and found[-1]["artifacts"] == []


async def test_tools_write_list_and_read_artifacts(service: Service, headers: dict[str, str]) -> None:
    written = await run(service, headers, 'tool write_artifact {"name": "n.txt", "content": "Grüße 🙂"}\n---\nsay ok')
    artifact_id = written[-1]["artifacts"][0]["id"]
    script = (
        f'tool list_artifacts {{}}\ntool read_artifact {{"id": "{artifact_id}"}}\ntool current_time {{}}\n---\nsay ok'
    )
    listed, read, now = [
        event["result"] for event in await run(service, headers, script) if event["type"] == "tool_result"
    ]
    assert listed[0]["id"] == artifact_id and read == "Grüße 🙂" and now.endswith("Z")


async def test_tool_cannot_read_an_artifact_of_another_account(service: Service, headers: dict[str, str]) -> None:
    written = await run(service, headers, 'tool write_artifact {"name": "n.txt", "content": "mine"}\n---\nsay ok')
    artifact_id = written[-1]["artifacts"][0]["id"]
    found = await run(
        service,
        await service.bearer(),
        f'tool read_artifact {{"id": "{artifact_id}"}}\ntool list_artifacts {{}}\n---\nsay ok',
    )
    read, listed = [event for event in found if event["type"] == "tool_result"]
    assert not read["ok"] and listed["result"] == []


async def test_images_and_speech_are_charged_and_stored_as_artifacts(service: Service, headers: dict[str, str]) -> None:
    script = 'tool generate_image {"prompt": "a lighthouse"}\ntool generate_audio {"input": "Hello."}\n---\nsay done'
    broke = await run(service, headers, script)
    assert not any(event["ok"] for event in broke if event["type"] == "tool_result") and broke[-1]["cost_micros"] == 0
    account_id = (await service.client.get("/user/me", headers=headers)).json()["id"]
    await service.state["db"].write(
        wallet.book, account_id, 5_000_000, description="test", now_seconds=service.clocks.now
    )
    found = await run(service, headers, script)
    assert [event["ok"] for event in found if event["type"] == "tool_result"] == [True, True]
    assert [artifact["content_type"] for artifact in found[-1]["artifacts"]] == ["image/png", "audio/wav"]
    spent = 5_000_000 - (await service.client.get("/billing/account", headers=headers)).json()["wallet_balance_micros"]
    assert found[-1]["cost_micros"] == spent > 20_000
    listed = (await service.client.get(f"/artifacts?run_id={found[0]['run_id']}", headers=headers)).json()["data"]
    assert {artifact["id"] for artifact in listed} == {artifact["id"] for artifact in found[-1]["artifacts"]}


async def test_run_stops_after_its_last_step(service: Service, headers: dict[str, str]) -> None:
    script = 'tool calculate {"expression": "1"}\n---\ntool calculate {"expression": "2"}\n---\nsay never'
    found = await run(service, headers, script, max_steps=2)
    assert found[-1] == {**found[-1], "type": "stopped", "reason": "max_steps", "steps": 2}


async def test_projects_lower_step_limit_and_instructions_apply(service: Service, headers: dict[str, str]) -> None:
    project = (
        await service.client.post("/projects", json={"name": "p", "max_planner_steps": 1}, headers=headers)
    ).json()
    found = await run(
        service, headers, 'tool calculate {"expression": "1"}\n---\nsay never', max_steps=9, project_id=project["id"]
    )
    assert found[0]["max_steps"] == 1 and found[-1]["reason"] == "max_steps"
    await service.client.delete(f"/projects/{project['id']}", headers=headers)
    record = (await service.client.get(f"/v1/agents/runs/{found[0]['run_id']}", headers=headers)).json()
    assert record["project_id"] is None


@each(
    ("body", "status", "param"),
    [
        ({}, 400, "goal"),
        ({"goal": None}, 400, "goal"),
        ({"goal": "  "}, 400, "goal"),
        ({"goal": "\u200b\0"}, 400, "goal"),
        ({"goal": "g" * 1_000_001}, 400, "goal"),
        ({"goal": 5}, 400, "goal"),
        ({"goal": "g", "max_steps": 0}, 400, "max_steps"),
        ({"goal": "g", "max_steps": 21}, 400, "max_steps"),
        ({"goal": "g", "max_steps": True}, 400, "max_steps"),
        ({"goal": "g", "max_steps": "6"}, 400, "max_steps"),
        ({"goal": "g", "max_steps": 6.5}, 400, "max_steps"),
        ({"goal": "g", "tools": "calculate"}, 400, "tools"),
        ({"goal": "g", "tools": ["no_such_tool"]}, 400, "tools[0]"),
        ({"goal": "g", "tools": [["calculate"]]}, 400, "tools[0]"),
        ({"goal": "g", "tools": ["fetch_url"]}, 400, "tools[0]"),
        ({"goal": "g", "model": 5}, 400, "model"),
        ({"goal": "g", "model": "no/such"}, 404, "model"),
        ({"goal": "g", "project_id": "proj_unknown"}, 404, "project_id"),
        ({"goal": "g", "project_id": 5}, 400, "project_id"),
    ],
)
async def test_error_before_the_stream_is_a_status_and_stores_no_run(
    service: Service, headers: dict[str, str], body: dict[str, Any], status: int, param: str
) -> None:
    service.clocks.advance(60)
    answer = await service.client.post(RUN, json=body, headers=headers)
    assert (answer.status_code, answer.json()["error"]["param"]) == (status, param), answer.text
    assert (
        answer.headers["content-type"] == "application/json"
        and answer.headers["x-ratelimit-remaining-requests"] == "19"
    )
    assert (await service.client.get("/v1/agents/runs", headers=headers)).json()["data"] == []


async def test_run_can_call_only_the_named_tools(service: Service, headers: dict[str, str]) -> None:
    found = await run(service, headers, 'tool calculate {"expression": "1"}\n---\nsay ok', tools=["current_time"])
    assert found[0]["tools"] == ["current_time"]
    assert not next(event for event in found if event["type"] == "tool_result")["ok"]
    found = await run(service, headers, "say ok", tools=[])
    assert found[0]["tools"] == [] and found[-1]["type"] == "final"


async def test_only_sessions_can_search_memory(service: Service, headers: dict[str, str]) -> None:
    key = bearer((await service.make_key(headers))["key"])
    assert "search_memory" not in (await run(service, key, "say The zebra is called Ada."))[0]["tools"]
    script = 'tool search_memory {"query": "zebra AND (\\" OR"}\n---\nsay ok'
    (found,) = [event["result"] for event in await run(service, headers, script) if event["type"] == "tool_result"]
    assert found == []  # what a key said left no trace
    await run(service, headers, "say The zebra is called Bob.")
    (found,) = [event["result"] for event in await run(service, headers, script) if event["type"] == "tool_result"]
    assert any("Bob" in passage["text"] for passage in found) and len(found) <= 5
    (none,) = [
        event["result"]
        for event in await run(service, await service.bearer(), script)
        if event["type"] == "tool_result"
    ]
    assert none == []


async def test_model_error_is_the_error_event(service: Service, headers: dict[str, str]) -> None:
    for script, code in (
        ("fail 500 oops", "upstream_error"),
        ("say hi\ndrop", "upstream_error"),
        ("say hi\nfail 429 slow", "upstream_error"),
    ):
        last = (await run(service, headers, script))[-1]
        assert (
            last["type"] == "error"
            and last["error"]["code"] == code
            and {"message", "type", "param"} <= set(last["error"])
        )


async def test_any_text_stays_in_one_event(service: Service, headers: dict[str, str]) -> None:
    text = 'data: {"type":"final"}\n\nevent: x\r\n\u2028\u0085\x00 🙂 "quoted"'
    found = await run(service, headers, f"say {orjson.dumps(text).decode()}")
    assert texts(found) == text == found[-1]["output"]


async def test_run_takes_one_admission(service: Service, headers: dict[str, str]) -> None:
    script = 'tool calculate {"expression": "1"}\n---\ntool calculate {"expression": "1"}\n---\nsay ok'
    answer = await service.client.post(RUN, json={"goal": script, "model": "builtin/script"}, headers=headers)
    assert events(answer)[-1]["steps"] == 3 and answer.headers["x-ratelimit-remaining-requests"] == "19"
    for _ in range(19):
        await service.client.post("/v1/chat/completions", content=b"", headers={**headers, **JSON})
    assert (await service.client.post(RUN, json={"goal": "g"}, headers=headers)).status_code == 429


async def test_stopping_an_ended_run_is_409(service: Service, headers: dict[str, str]) -> None:
    run_id = (await run(service, headers, "say ok"))[0]["run_id"]
    answer = await service.client.post(f"/v1/agents/runs/{run_id}/stop", headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "already_ended")


async def test_list_is_filtered_by_status_and_project(service: Service, headers: dict[str, str]) -> None:
    project = (await service.client.post("/projects", json={"name": "Thesis"}, headers=headers)).json()["id"]
    filed = (await run(service, headers, "say done", project_id=project))[0]["run_id"]
    failed = (await run(service, headers, "fail 500 no"))[0]["run_id"]

    async def found(query: str) -> list[str]:
        return [
            run["id"] for run in (await service.client.get(f"/v1/agents/runs{query}", headers=headers)).json()["data"]
        ]

    assert await found("") == [failed, filed]
    assert await found("?status=error") == [failed] and await found("?status=final") == [filed]
    assert await found(f"?project_id={project}") == [filed] and await found(f"?project_id={project}&status=error") == []
    wrong = await service.client.get("/v1/agents/runs?status=completed", headers=headers)
    assert wrong.status_code == 400 and wrong.json()["error"]["param"] == "status"
    strange = await service.client.get("/v1/agents/runs?project_id=proj_x", headers=headers)
    assert strange.status_code == 404
