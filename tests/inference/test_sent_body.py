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


async def test_fallback_is_asked_in_its_own_format_and_within_the_hold(
    service: Service, upstream: FormatServer
) -> None:
    headers = await funded(service)
    long = [{"role": "user", "content": f"Hi {number}"} for number in range(50)]
    answer = await chat(service, headers, "lab/status-503", stream=False, messages=long)
    assert answer.status_code == 200 and answer.json()["choices"][0]["message"]["content"] == "Hello, world!"
    assert [seen.path for seen in upstream.requests][-1] == "/v1/messages"
    assert {seen.path for seen in upstream.requests[:-1]} == {"/v1/chat/completions"}
    assert (await account(service, headers))["held_micros"] == 0


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
