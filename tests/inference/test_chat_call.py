"""A priced chat through a connection: what goes to the model server, what is cut, what leaving costs, and what is
retried.
"""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from tests.support.agent_runs import Account, add_accounts
from tests.support.cases import each
from tests.support.local_server import LocalServer, local_server
from tests.support.model_server import ModelServer
from tests.support.money import most_tokens, rows
from tests.support.waiting import logged, run_ready, until

COMPLETIONS = "/v1/chat/completions"
MODELS = (
    *(
        "ok",
        "silent",
        "silent-after-3-chunks",
        "endless",
        "waits-for-usage",
        "tools",
        "reasoning",
        "mid-line",
        "mid-bare",
    ),
    *(
        "refuses-max_tokens",
        "refuses-reasoning_content+tools+reasoning",
        "status-401",
        "status-402",
        "endless+stream-for-json",
    ),
    *("echo", "echo+json-for-stream"),
    *("refuses-max_tokens+json", "refuses-max_tokens+stream", "small-output+json", "small-output+stream"),
    *(
        "refuses-stream_options",
        "refuses-reasoning_effort",
        "refuses-verbosity",
        "refuses-max_tokens+responses",
        "too-large",
    ),
    *("refuses-parallel_tool_calls", "refuses-reasoning_content", "refuses-stream_options+responses"),
)
ESTIMATED_INPUT = 1  # tokens of "hi", which are a micro each; those of the output are two


def catalog(upstream: ModelServer) -> str:
    prices = "input_micros_per_million_tokens = 1000000\noutput_micros_per_million_tokens = 2000000\n"
    models = "".join(f'[[providers.models]]\nid = "{name}"\n{prices}' for name in MODELS)
    return f'[[providers]]\nname = "lab"\nbase_url = "{upstream.base_url}"\ntimeout_seconds = 5\n{models}'


@dataclass
class Lab:
    """The service, in front of `upstream`, and a person with 5 dollars."""

    server: LocalServer
    upstream: ModelServer
    person: Account
    client: httpx.AsyncClient

    def body(self, model: str, **fields: Any) -> dict[str, Any]:
        return {"model": f"lab/{model}", "messages": [{"role": "user", "content": "hi"}], **fields}

    async def chat(self, model: str, **fields: Any) -> httpx.Response:
        return await self.client.post(COMPLETIONS, json=self.body(model, **fields), headers=self.person.headers)

    async def spent(self) -> int:
        """Micros, once nothing is held."""
        async with asyncio.timeout(10):
            while True:
                account = (await self.client.get("/billing/account", headers=self.person.headers)).json()
                if not account["held_micros"]:
                    return 5_000_000 - int(account["wallet_balance_micros"])
                await asyncio.sleep(0.05)

    async def asked(self, times: int = 1) -> None:
        """Returns when the model server has got so many requests."""
        await until(lambda: len(self.upstream.requests) >= times)


def events(answer: httpx.Response) -> list[Any]:
    assert answer.status_code == 200, answer.text
    return [orjson.loads(block[6:]) for block in answer.text.split("\n\n")[:-1] if block != "data: [DONE]"]


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncIterator[Lab]:
    async with ModelServer() as upstream, local_server(tmp_path, catalog(upstream)) as server:
        (person,) = add_accounts(server, 1, micros=5_000_000)
        async with server.client(timeout=30) as client:
            yield Lab(server, upstream, person, client)


async def test_other_names_of_the_output_limit_are_dropped(lab: Lab) -> None:
    others = {"n_predict": 9, "max_new_tokens": 9, "max_output_tokens": 9, "num_predict": 9, "numPredict": 9}
    nested = {**others, "max_tokens": 9, "n": 9, "stream_options": {"include_usage": False}, "top_k": 1}
    answer = await lab.chat("ok", **others, max_tokens=50, extra_body={**nested, "options": nested}, options=nested)
    assert answer.status_code == 200
    body = lab.upstream.requests[-1].body
    assert body["max_tokens"] == 50 and not others.keys() & body.keys()
    assert body["extra_body"] == {"top_k": 1, "options": {"top_k": 1}} and body["options"] == {"top_k": 1}


async def test_output_limit_under_another_name_limits_the_output_and_the_hold(lab: Lab) -> None:
    answer = await lab.chat("endless+stream-for-json", n_predict=9, num_predict=90)
    assert answer.status_code == 200 and answer.json()["choices"][0]["finish_reason"] == "length"
    body = lab.upstream.requests[-1].body
    assert body["max_tokens"] == 9 and not {"n_predict", "num_predict"} & body.keys()
    assert await lab.spent() == most_tokens(body) + 2 * 9  # all that was held


async def test_answer_beyond_its_limit_is_cut_with_length_and_canceled(lab: Lab) -> None:
    found = events(await lab.chat("endless", stream=True, max_tokens=20))
    text = "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in found)
    assert len(text) == 640 and found[-1]["choices"][0]["finish_reason"] == "length"
    await asyncio.wait_for(lab.upstream.requests[-1].gone.wait(), 20)
    assert await lab.spent() == most_tokens(lab.upstream.requests[-1].body) + 2 * 20  # all that was held
    metrics = (await lab.client.get("/metrics")).text
    micros = int(re.search(r"^svc_overrun_micros_total ([1-9]\d*)$", metrics, re.MULTILINE)[1])  # type: ignore[index]
    kept = lab.server.rows("SELECT model, calls, micros FROM overruns")
    assert "svc_overruns_total 1\n" in metrics and kept == [("lab/endless", 1, micros)]


async def test_json_answer_beyond_its_limit_is_cut(lab: Lab) -> None:
    answer = (await lab.chat("endless+stream-for-json", max_tokens=10)).json()
    (choice,) = answer["choices"]
    assert len(choice["message"]["content"]) == 320 and choice["finish_reason"] == "length"
    await asyncio.wait_for(lab.upstream.requests[-1].gone.wait(), 20)


@each("model", ["echo", "echo+json-for-stream"])
async def test_long_text_is_sent_in_several_chunks_unchanged(lab: Lab, model: str) -> None:
    said = "éx\U0001f642" * 70_000
    body = {
        "model": f"lab/{model}",
        "messages": [{"role": "user", "content": said}],
        "stream": True,
        "max_tokens": 60_000,
    }
    answer = await lab.client.post(COMPLETIONS, json=body, headers=lab.person.headers)
    texts = [chunk["choices"][0]["delta"].get("content") or "" for chunk in events(answer)]
    assert "".join(texts) == said and max(map(len, texts)) == 65_536


@pytest.mark.parametrize("stream", [False, True])
async def test_disconnected_client_of_a_silent_model_pays_for_the_input(lab: Lab, stream: bool) -> None:
    with contextlib.suppress(httpx.ReadTimeout):
        asking = asyncio.create_task(lab.chat("silent", stream=stream))
        await lab.asked()
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
    assert await lab.spent() == ESTIMATED_INPUT


async def test_disconnected_client_pays_for_the_input_and_the_output_so_far(lab: Lab) -> None:
    body = lab.body("silent-after-3-chunks", stream=True)
    async with lab.client.stream("POST", COMPLETIONS, json=body, headers=lab.person.headers) as answer:
        async for line in answer.aiter_lines():
            if ", " in line and "content" in line:
                break
    assert await lab.spent() == ESTIMATED_INPUT + 2 * 2  # "Hello, "


async def test_finished_answer_is_read_for_its_usage_after_a_disconnect(lab: Lab) -> None:
    body = lab.body("waits-for-usage", stream=True)
    async with lab.client.stream("POST", COMPLETIONS, json=body, headers=lab.person.headers) as answer:
        async for line in answer.aiter_lines():
            if '"!"' in line:
                break
        await until(lambda: lab.upstream.waiting)
        await run_ready()  # the service has read the finish reason
    await until(lambda: not lab.server.connections)
    lab.upstream.release.set()
    assert await lab.spent() == 7 + 2 * 5


async def test_a_stopped_run_pays_for_the_input_of_its_silent_model(lab: Lab) -> None:
    body = {"model": "lab/silent", "goal": "hi", "tools": []}
    async with lab.client.stream("POST", "/v1/agents/run", json=body, headers=lab.person.headers) as answer:
        await lab.asked()
        run_id = answer.headers["x-service-run"]
        assert (await lab.client.post(f"/v1/agents/runs/{run_id}/stop", headers=lab.person.headers)).status_code == 202
        last = (await answer.aread()).decode().strip().rpartition("data: ")[2]
    spent = await lab.spent()
    assert spent > 1 and orjson.loads(last)["cost_micros"] == spent


async def test_a_shutdown_charges_nothing_for_a_silent_model(lab: Lab) -> None:
    asking = asyncio.create_task(lab.chat("silent", stream=True))
    await lab.asked()
    await lab.server.stop()
    assert (await asking).status_code == 503
    database = lab.server.data_dir / "service.db"
    assert rows(database, "SELECT count(*) FROM ledger WHERE model IS NOT NULL") == [(0,)]
    assert rows(database, "SELECT count(*) FROM holds") == [(0,)]


@each("stream", [False, True])
async def test_added_field_that_a_model_refuses_is_left_out_and_remembered(lab: Lab, stream: bool) -> None:
    requests, form = lab.upstream.requests, "stream" if stream else "json"
    for times in (2, 1):
        before = len(requests)
        assert (await lab.chat(f"refuses-max_tokens+{form}", stream=stream)).status_code == 200
        assert len(requests) == before + times and requests[-1].body["max_completion_tokens"] == 4096
    before = len(requests)
    assert (await lab.chat(f"small-output+{form}", stream=stream)).status_code == 200
    assert len(requests) == before + 2 and requests[-1].body["max_tokens"] == 1024, "a priced model always has a limit"
    if stream:
        for times in (2, 1):
            before = len(requests)
            assert (await lab.chat("refuses-stream_options", stream=True)).status_code == 200
            assert len(requests) == before + times and "stream_options" not in requests[-1].body


async def test_refused_field_of_the_caller_is_an_error(lab: Lab) -> None:
    answer = await lab.chat("refuses-max_tokens", max_tokens=50)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "max_tokens")
    assert len(lab.upstream.requests) == 1 and await lab.spent() == 0


async def test_reasoning_of_a_step_is_sent_back_only_to_a_model_that_accepts_it(lab: Lab) -> None:
    body = {
        "model": "lab/refuses-reasoning_content+tools+reasoning",
        "goal": "hi",
        "tools": ["current_time"],
        "max_steps": 2,
    }
    answer = await lab.client.post("/v1/agents/run", json=body, headers=lab.person.headers)
    assert '"type":"stopped"' in answer.text, answer.text
    turns = [message for message in lab.upstream.requests[-1].body["messages"] if message["role"] == "assistant"]
    assert turns and not any({"reasoning_content", "refusal"} & turn.keys() for turn in turns)


@pytest.mark.parametrize("model", ["mid-line", "mid-bare"])
async def test_error_in_mid_stream_keeps_its_message_but_a_run_says_what_is_too_long(lab: Lab, model: str) -> None:
    answer = await lab.chat(model, stream=True)
    assert "exceeds the context size" in events(answer)[-1]["error"]["message"]
    assert '"finish_reason":"stop"' not in answer.text and answer.text.endswith("data: [DONE]\n\n")
    run = await lab.client.post(
        "/v1/agents/run", json={"model": f"lab/{model}", "goal": "hi"}, headers=lab.person.headers
    )
    assert events(run)[-1]["error"]["message"].startswith("This message is too long for the model")
    (line,) = await logged(lab.server.log_lines, route=COMPLETIONS)
    assert line["upstream_status"] == 400 and "exceeds the context size" in line["upstream_error"]


@pytest.mark.parametrize("status", [401, 402])
async def test_fault_of_the_configuration_is_logged_and_not_retried(lab: Lab, status: int) -> None:
    answer = await lab.chat(f"status-{status}")
    assert (answer.status_code, answer.headers["x-should-retry"]) == (502, "false")
    assert "on_command" not in answer.text and "asked for it" not in answer.text
    (line,) = await logged(lab.server.log_lines, route=COMPLETIONS)
    assert (line["upstream_status"], line["upstream_error"]) == (status, "the … asked for it")
