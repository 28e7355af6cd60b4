"""A priced chat through a real server: what goes to the model server, what is cut, what leaving costs, and what is
retried.
"""

import asyncio
import contextlib
import itertools
import re
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
import pytest_asyncio

from tests.support.agent_runs import Account, add_accounts
from tests.support.cases import each
from tests.support.model_server import ModelServer
from tests.support.money import most_tokens
from tests.support.server import RunningServer, running_server
from tests.support.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")
COMPLETIONS = "/v1/chat/completions"
MODELS = (
    *(
        "ok",
        "silent",
        "silent-after-3-chunks",
        "endless",
        "late-usage-800ms",
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
    # The server remembers what these refuse, so each of them is for the one test in its name.
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

    server: RunningServer
    upstream: ModelServer
    person: Account
    client: httpx.AsyncClient
    logged_before: int = 0

    def lines(self) -> list[dict[str, Any]]:
        """Return the log lines of this account since the test began: the last lines of an earlier test
        may come late.
        """
        return [
            line
            for line in self.server.log_lines()[self.logged_before :]
            if line.get("account") in (None, self.person.id)
        ]

    async def line_of(self, route: str) -> dict[str, Any]:
        """Return the one log line of a request to this route; it may come after the answer."""

        def found() -> list[dict[str, Any]]:
            return [line for line in self.lines() if line.get("route") == route]

        await until(found)
        (line,) = found()
        return line

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


_numbers = itertools.count(1)


def person_with_funds(server: RunningServer) -> Account:
    (person,) = add_accounts(server, 1, micros=5_000_000, name=f"person{next(_numbers)}-")
    return person


@contextlib.asynccontextmanager
async def laboratory(folder: Path) -> AsyncIterator[Lab]:
    async with ModelServer() as upstream:
        (folder / "catalog.toml").write_text(catalog(upstream))
        settings = {"SVC_CATALOG": str(folder / "catalog.toml")}
        async with running_server(folder, settings) as server, server.client(timeout=30) as client:
            yield Lab(server, upstream, person_with_funds(server), client)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Lab]:
    async with laboratory(tmp_path_factory.mktemp("lab")) as lab:
        yield lab


@pytest_asyncio.fixture(loop_scope="module")
async def lab(shared: Lab) -> Lab:
    """A new account on the server that these tests share."""
    shared.upstream.requests.clear()
    return replace(shared, person=person_with_funds(shared.server), logged_before=len(shared.server.log_lines()))


@pytest_asyncio.fixture(loop_scope="module")
async def own_lab(tmp_path: Path) -> AsyncIterator[Lab]:
    """A separate server, for its counters or its end."""
    async with laboratory(tmp_path) as lab:
        yield lab


async def test_other_names_of_the_output_limit_are_dropped(lab: Lab) -> None:
    others = {"n_predict": 9, "max_new_tokens": 9, "max_output_tokens": 9, "num_predict": 9, "numPredict": 9}
    nested = {**others, "max_tokens": 9, "n": 9, "stream_options": {"include_usage": False}, "top_k": 1}
    answer = await lab.chat("ok", **others, max_tokens=50, extra_body={**nested, "options": nested}, options=nested)
    assert answer.status_code == 200
    body = lab.upstream.requests[-1].body
    assert body["max_tokens"] == 50 and not others.keys() & body.keys()
    assert body["extra_body"] == {"top_k": 1, "options": {"top_k": 1}} and body["options"] == {"top_k": 1}


async def test_answer_beyond_its_limit_is_cut_with_length_and_canceled(own_lab: Lab) -> None:
    found = events(await own_lab.chat("endless", stream=True, max_tokens=20))
    text = "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in found)
    assert len(text) == 640 and found[-1]["choices"][0]["finish_reason"] == "length"
    await asyncio.wait_for(own_lab.upstream.requests[-1].gone.wait(), 20)
    assert await own_lab.spent() == most_tokens(own_lab.upstream.requests[-1].body) + 2 * 20  # all that was held
    metrics = (await own_lab.client.get("/metrics")).text
    micros = int(re.search(r"^svc_overrun_micros_total ([1-9]\d*)$", metrics, re.MULTILINE)[1])  # type: ignore[index]
    with contextlib.closing(sqlite3.connect(own_lab.server.data_dir / "service.db")) as conn:
        kept = conn.execute("SELECT model, calls, micros FROM overruns").fetchall()
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
    body = lab.body("late-usage-800ms", stream=True)
    async with lab.client.stream("POST", COMPLETIONS, json=body, headers=lab.person.headers) as answer:
        async for line in answer.aiter_lines():
            if '"!"' in line:
                break
        await asyncio.sleep(0.2)
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


async def test_a_shutdown_charges_nothing_for_a_silent_model(own_lab: Lab) -> None:
    asking = asyncio.create_task(own_lab.chat("silent", stream=True))
    await own_lab.asked()
    assert await own_lab.server.stop() == 0
    assert (await asking).status_code == 503
    with contextlib.closing(sqlite3.connect(own_lab.server.data_dir / "service.db")) as conn:
        assert conn.execute("SELECT count(*) FROM ledger WHERE kind = 'debit'").fetchone() == (0,)
        assert conn.execute("SELECT count(*) FROM holds").fetchone() == (0,)


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
async def test_error_in_mid_stream_keeps_its_message(lab: Lab, model: str) -> None:
    answer = await lab.chat(model, stream=True)
    assert "exceeds the context size" in events(answer)[-1]["error"]["message"]
    assert '"finish_reason":"stop"' not in answer.text and answer.text.endswith("data: [DONE]\n\n")
    run = await lab.client.post(
        "/v1/agents/run", json={"model": f"lab/{model}", "goal": "hi"}, headers=lab.person.headers
    )
    assert "exceeds the context size" in events(run)[-1]["error"]["message"]
    line = await lab.line_of(COMPLETIONS)
    assert line["upstream_status"] == 400 and "exceeds the context size" in line["upstream_error"]


@pytest.mark.parametrize("status", [401, 402])
async def test_fault_of_the_configuration_is_logged_and_not_retried(lab: Lab, status: int) -> None:
    answer = await lab.chat(f"status-{status}")
    assert (answer.status_code, answer.headers["x-should-retry"]) == (502, "false")
    assert "on_command" not in answer.text and "asked for it" not in answer.text
    line = await lab.line_of(COMPLETIONS)
    assert (line["upstream_status"], line["upstream_error"]) == (status, "the … asked for it")
