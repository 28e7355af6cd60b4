"""What a call sends to model servers in their own formats, what it costs, and requests that are sent again."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from svc.billing import wallet
from svc.config import Config
from svc.server import status
from tests.conftest import Service, bearer
from tests.support.byok import KEY, Names, add_provider
from tests.support.cases import each
from tests.support.format_server import NEEDS_NONE, FormatServer

HELLO = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
PATHS = {"responses": "/v1/responses", "messages": "/v1/messages"}
PRICES = "input_micros_per_million_tokens = 1_000_000\noutput_micros_per_million_tokens = 1_000_000\n"
FREE = "input_micros_per_million_tokens = 0\n"
TOOLS = [{"type": "function", "function": {"name": "look_up", "parameters": {"type": "object", "properties": {}}}}]
# The ids of the catalog, each with the format of its server, its prices and its fallback.
MODELS = {
    "ok-responses": ("responses", PRICES, None),
    "ok-messages": ("messages", PRICES, None),
    "tools-need-none": ("chat", FREE, None),
    "tools-need-none+priced": ("chat", PRICES, None),
    "tools-need-none+refuses-reasoning_effort": ("chat", FREE, None),
    "status-503": ("chat", PRICES, "ok-messages"),
    "status-503+responses": ("responses", PRICES, "ok-responses"),
    "status-503+messages": ("messages", PRICES, "ok"),
    "ok": ("chat", PRICES, None),
    "fail-once+responses": ("responses", PRICES, None),
    "fail-once+messages": ("messages", PRICES, None),
    "ok+efforts": ("chat", f'{FREE}efforts = ["low", "high"]\n', None),
    "refuses-include": ("responses", FREE, None),
    "no-budgets": ("messages", PRICES, None),
    "status-503+no-place": ("chat", PRICES, "ok-messages"),
}


@pytest.fixture
async def upstream() -> AsyncIterator[FormatServer]:
    async with FormatServer() as upstream:
        yield upstream


@pytest.fixture
def config(config: Config, upstream: FormatServer, tmp_path: Path) -> Config:
    provider = f'[[providers]]\nname = "lab"\nbase_url = "{upstream.base_url}"\napi_key = "sk-of-the-operator-0123"\n'
    models = "".join(
        f'[[providers.models]]\nid = "{name}"\napi = "{api}"\n{prices}'
        + (f'fallback = "lab/{fallback}"\n' if fallback else "")
        for name, (api, prices, fallback) in MODELS.items()
    )
    (tmp_path / "catalog.toml").write_text(provider + models)
    return dataclasses.replace(config, catalog=tmp_path / "catalog.toml", resolve=Names())


async def chat(service: Service, headers: dict[str, str], model: str, **fields: Any) -> httpx.Response:
    service.clocks.advance(60)  # a full chat bucket each time
    body = {"model": model, "messages": HELLO, "stream": True, **fields}
    return await service.client.post("/v1/chat/completions", json=body, headers=headers)


async def funded(service: Service) -> dict[str, str]:
    signed_up = await service.sign_up()
    booked = {"description": "", "now_seconds": service.clocks.now}
    await service.state["db"].write(wallet.book, signed_up["user"]["id"], 1_000_000, **booked)
    return bearer(signed_up["access_token"])


async def account(service: Service, headers: dict[str, str]) -> Any:
    return (await service.client.get("/billing/account", headers=headers)).json()


# --- formats


@each("api", PATHS)
async def test_server_is_asked_in_its_format_with_its_headers(
    service: Service, upstream: FormatServer, api: str
) -> None:
    headers = await service.bearer()
    own = await add_provider(service, headers, upstream.base_url, api=api)
    upstream.requests.clear()
    answer = await chat(service, headers, f"{own['name']}/m", max_tokens=9)
    assert answer.status_code == 200 and '"content":"Hello' in answer.text and answer.text.endswith("[DONE]\n\n")
    (seen,) = upstream.requests
    assert (seen.path, seen.body["model"], seen.body["stream"]) == (PATHS[api], "m", True)
    key = {"x-api-key": KEY, "anthropic-version": "2023-06-01"}
    expected = key if api == "messages" else {"authorization": f"Bearer {KEY}"}
    names = ("x-api-key", "anthropic-version", "authorization")
    assert {name: seen.headers[name] for name in names if name in seen.headers} == expected


@each("api", PATHS)
async def test_call_costs_the_usage_of_the_servers_format(service: Service, upstream: FormatServer, api: str) -> None:
    headers = await funded(service)
    upstream.requests.clear()
    for stream in (True, False):
        before = await account(service, headers)
        answer = await chat(service, headers, f"lab/ok-{api}", stream=stream)
        assert answer.status_code == 200, answer.text
        after = await account(service, headers)
        assert after["wallet_balance_micros"] == before["wallet_balance_micros"] - 12 and after["held_micros"] == 0
    assert [seen.path for seen in upstream.requests] == [PATHS[api]] * 2


@each("api", PATHS)
async def test_stream_without_the_last_event_of_its_format_is_cut(
    service: Service, upstream: FormatServer, api: str
) -> None:
    own = await add_provider(service, headers := await service.bearer(), upstream.base_url, api=api)
    answer = await chat(service, headers, f"{own['name']}/no-done")
    assert "Hello" in answer.text and "was cut off before its end" in answer.text
    assert '"finish_reason":"stop"' not in answer.text


@each(
    ("model", "paths"),
    [
        ("fail-once+responses", ["/v1/responses"] * 2),
        ("fail-once+messages", ["/v1/messages"] * 2),
        ("status-503", ["/v1/chat/completions"] * 2 + ["/v1/messages"]),
        ("status-503+responses", ["/v1/responses"] * 3),
        ("status-503+messages", ["/v1/messages"] * 2 + ["/v1/chat/completions"]),
    ],
)
async def test_second_try_and_fallback_are_asked_in_their_own_format(
    service: Service, upstream: FormatServer, model: str, paths: list[str]
) -> None:
    headers = await funded(service)
    upstream.requests.clear()
    for stream in (False, True):
        long = [{"role": "user", "content": f"Hi {number}"} for number in range(50)]
        before = await account(service, headers)
        answer = await chat(service, headers, f"lab/{model}", stream=stream, messages=long)
        assert answer.status_code == 200 and "Hello" in answer.text
        after = await account(service, headers)
        assert after["held_micros"] == 0
        assert after["wallet_balance_micros"] == before["wallet_balance_micros"] - 12
    assert [seen.path for seen in upstream.requests][: len(paths)] == paths


async def test_fallback_without_a_place_for_the_request_is_not_asked(service: Service, upstream: FormatServer) -> None:
    answer = await chat(service, await funded(service), "lab/status-503+no-place", logit_bias={"1": 1})
    assert answer.status_code == 503
    assert {seen.path for seen in upstream.requests} == {"/v1/chat/completions"}


@each(
    ("effort", "sent"),
    [
        ("none", None),
        ("minimal", "low"),
        ("low", "low"),
        ("medium", "low"),
        ("xhigh", "high"),
        ("odd", "odd"),
        (None, None),
    ],
)
async def test_nearest_effort_is_sent_to_a_chat_server(
    service: Service, upstream: FormatServer, effort: str | None, sent: str | None
) -> None:
    upstream.requests.clear()
    answer = await chat(service, await service.bearer(), "lab/ok+efforts", reasoning_effort=effort)
    assert answer.status_code == 200 and efforts(upstream) == [sent]


async def test_budget_of_thinking_becomes_an_effort(service: Service, upstream: FormatServer) -> None:
    for thinking, output, sent in (
        ({"type": "enabled", "budget_tokens": 2048}, {}, "low"),
        ({"type": "enabled", "budget_tokens": 2049}, {}, "medium"),
        ({"type": "enabled", "budget_tokens": 99_999}, {}, "max"),
        ({"type": "enabled", "budget_tokens": 2048}, {"effort": "high"}, "high"),
        ({"type": "adaptive"}, {}, None),
        ({"type": "disabled", "budget_tokens": 2048}, {}, None),
    ):
        upstream.requests.clear()
        body = {
            "model": "lab/ok",
            "max_tokens": 9,
            "messages": HELLO[1:],
            "thinking": thinking,
            "output_config": output,
        }
        answer = await service.client.post("/v1/messages", json=body, headers=await funded(service))
        assert answer.status_code == 200 and efforts(upstream) == [sent]


async def test_refused_field_of_another_format_is_left_out_and_remembered(
    service: Service, upstream: FormatServer
) -> None:
    headers = await service.bearer()
    assert (await chat(service, headers, "lab/refuses-include")).status_code == 200
    assert (await chat(service, headers, "lab/refuses-include")).status_code == 200
    assert ["include" in seen.body for seen in upstream.requests] == [True, False, False]


# --- tools with reasoning


def efforts(upstream: FormatServer) -> list[Any]:
    """Return `reasoning_effort` of each request since the last call."""
    found = [seen.body.get("reasoning_effort") for seen in upstream.requests]
    upstream.requests.clear()
    return found


@each("effort", [{}, {"reasoning_effort": "high"}, {"reasoning_effort": None}])
async def test_refused_tools_are_tried_once_more_without_reasoning(
    service: Service, upstream: FormatServer, effort: dict[str, Any]
) -> None:
    await service.state["reload"]()
    upstream.requests.clear()
    headers, first = await service.bearer(), effort.get("reasoning_effort")
    assert (await chat(service, headers, "lab/tools-need-none", tools=TOOLS, **effort)).status_code == 200
    assert efforts(upstream) == [first, "none"]
    assert (await chat(service, await service.bearer(), "lab/tools-need-none", tools=TOOLS)).status_code == 200
    assert efforts(upstream) == ["none"], "it is remembered for all accounts"
    assert (await chat(service, headers, "lab/tools-need-none", **effort)).status_code == 200
    assert efforts(upstream) == [first], "a call without tools reasons"
    told = await asyncio.to_thread(status.ask, service.config.data_dir)
    assert told["tools_without_reasoning"] == ["lab/tools-need-none"]
    await service.state["reload"]()
    assert (await chat(service, headers, "lab/tools-need-none", tools=TOOLS)).status_code == 200
    assert efforts(upstream) == [None, "none"], "a reload forgets it"


@each("path", ["/v1/responses", "/v1/messages"])
async def test_tools_of_every_format_are_tried_once_more(service: Service, upstream: FormatServer, path: str) -> None:
    await service.state["reload"]()
    upstream.requests.clear()
    tool = {"name": "look_up", "input_schema": {"type": "object"}}
    body: dict[str, Any] = {"model": "lab/tools-need-none", "tools": [tool], "messages": HELLO[1:], "max_tokens": 9}
    if path == "/v1/responses":
        tool = {"type": "function", "name": "look_up", "parameters": {"type": "object"}}
        body = {"model": body["model"], "tools": [tool], "input": "Hi", "reasoning": {"effort": "high"}}
    answer = await service.client.post(path, json=body, headers=await service.bearer())
    assert answer.status_code == 200, answer.text
    assert efforts(upstream)[-1] == "none"


async def test_own_provider_is_tried_once_more_and_remembered_for_its_account(
    service: Service, upstream: FormatServer
) -> None:
    for _ in range(2):
        own = await add_provider(service, headers := await service.bearer(), upstream.base_url)
        for expected in ([None, "none"], ["none"]):
            assert (await chat(service, headers, f"{own['name']}/tools-need-none", tools=TOOLS)).status_code == 200
            assert efforts(upstream) == expected


async def test_priced_tools_without_reasoning_cost_what_was_used(service: Service, upstream: FormatServer) -> None:
    headers = await funded(service)
    before = await account(service, headers)
    answer = await chat(service, headers, "lab/tools-need-none+priced", tools=TOOLS)
    assert answer.status_code == 200 and efforts(upstream) == [None, "none"]
    after = await account(service, headers)
    assert after["wallet_balance_micros"] == before["wallet_balance_micros"] - 12 and after["held_micros"] == 0


async def test_model_that_takes_no_none_either_is_reported_as_the_first_time(
    service: Service, upstream: FormatServer
) -> None:
    model = "lab/tools-need-none+refuses-reasoning_effort"
    answer = await chat(service, await service.bearer(), model, tools=TOOLS)
    assert (answer.status_code, answer.json()["error"]["message"]) == (400, NEEDS_NONE)
    assert efforts(upstream) == [None, "none"]


@each(
    "fields",
    [
        {"reasoning_effort": "tools with reasoning_effort"},
        {"messages": [{"role": "user", "content": "reasoning_effort"}]},
        {"messages": [{"role": "user", "content": "/v1/responses"}]},
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://a.example"}}]}]},
    ],
)
async def test_words_of_the_caller_are_not_remembered_for_others(
    service: Service, upstream: FormatServer, fields: dict[str, Any]
) -> None:
    await service.state["reload"]()
    headers = await service.bearer()
    upstream.requests.clear()
    assert (await chat(service, headers, "lab/tools-need-none", tools=TOOLS, **fields)).status_code == 200
    assert efforts(upstream)[-1] == "none"
    assert (await chat(service, headers, "lab/tools-need-none", tools=TOOLS)).status_code == 200
    assert efforts(upstream) == [None, "none"]


@each("path", ["/v1/chat/completions", "/v1/responses"])
async def test_refused_budget_is_tried_once_more_as_an_effort(
    service: Service, upstream: FormatServer, path: str
) -> None:
    await service.state["reload"]()
    headers = await funded(service)
    for effort, word in (("minimal", "low"), ("high", "high")):
        upstream.requests.clear()
        before = await account(service, headers)
        body: dict[str, Any] = {"model": "lab/no-budgets", "messages": HELLO, "reasoning_effort": effort}
        if path == "/v1/responses":
            body = {"model": "lab/no-budgets", "input": "Hi", "reasoning": {"effort": effort}}
        answer = await service.client.post(path, json={**body, "max_tokens": 3000}, headers=headers)
        assert answer.status_code == 200, answer.text
        *first, last = [seen.body for seen in upstream.requests]
        assert last["thinking"]["type"] == "adaptive" and last["output_config"]["effort"] == word
        assert len(first) == (1 if effort == "minimal" else 0), "the refusal is remembered"
        after = await account(service, headers)
        assert after["wallet_balance_micros"] == before["wallet_balance_micros"] - 12 and after["held_micros"] == 0
