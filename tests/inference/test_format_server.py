"""The model server of the tests: its recordings fit the vendors' own types, and each format says the same."""

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest

from tests.support.cases import each
from tests.support.format_events import APIS, PATHS, Said, answer_of, chat_form, events_of
from tests.support.format_server import NEEDS_NONE, FormatServer, cassette, cassettes
from tests.support.sdk_types import checked_answer, checked_event, checked_request

ASK: dict[str, dict[str, Any]] = {
    "chat": {"messages": [{"role": "user", "content": "Hi"}]},
    "responses": {"input": "Hi"},
    "messages": {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 100},
}


@pytest.fixture
async def server() -> AsyncIterator[FormatServer]:
    async with FormatServer() as server:
        yield server


@pytest.fixture
async def client(server: FormatServer) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=server.base_url, verify=False) as client:
        yield client


async def ask(client: httpx.AsyncClient, api: str, model: str, **more: Any) -> httpx.Response:
    return await client.post(PATHS[api], json={"model": model, **ASK[api], **more})


def events_in(content: bytes) -> Iterator[dict[str, Any]]:
    for block in content.decode().split("\n\n")[:-1]:
        data = block.rpartition("data: ")[2]
        if data != "[DONE]":
            yield json.loads(data)


def recordings() -> list[tuple[str, str]]:
    return [(name, api) for name in cassettes() for api in cassette(name) if api in APIS]


@pytest.mark.slow
@each("name, api", recordings())
def test_recorded_traffic_fits_the_vendors_types(name: str, api: str) -> None:
    recorded = cassette(name)[api]
    checked_request(api, recorded["request"])
    if "status" in recorded:
        return
    checked_answer(api, recorded["answer"])
    for event in recorded["events"]:
        if api == "responses" or "error" not in event:
            checked_event(api, event)


@pytest.mark.slow
@each("api", APIS)
def test_an_answer_that_a_test_makes_fits_the_vendors_types(api: str) -> None:
    said = Said(
        [
            {"thought": "Hm.", "seal": "c2VhbA=="},
            {"text": "It is 7."},
            {"call": "call_1", "name": "look_up", "arguments": '{"a": 1}'},
            {"call": "call_2", "name": "look_up", "arguments": "{}"},
        ],
        finish="tool_calls",
        input_tokens=100,
        cached=60,
        written=10,
        reasoning_tokens=2,
    )
    checked_answer(api, answer_of(api, said, "m"))
    for event in events_of(api, said, "m"):
        checked_event(api, event)


@each("name, api", recordings())
async def test_a_recording_is_played_as_it_is(name: str, api: str, client: httpx.AsyncClient) -> None:
    recorded = cassette(name)[api]
    if recorded.get("ends") == "cut":
        with pytest.raises(httpx.RemoteProtocolError):
            await ask(client, api, f"cassette-{name}", stream=True)
        return
    answer = await ask(client, api, f"cassette-{name}")
    assert answer.status_code == recorded.get("status", 200)
    assert {**answer.json(), "model": None} == {**recorded["answer"], "model": None}
    if "events" in recorded:
        stream = await ask(client, api, f"cassette-{name}", stream=True)
        assert list(events_in(stream.content)) == recorded["events"]


@each("api", APIS)
async def test_each_format_plays_the_same_script(api: str, client: httpx.AsyncClient) -> None:
    script = 'say Hello.\ntool look_up {"city": "Bern"}'
    ask_for = {"responses": {"input": script}}.get(api, {"messages": [{"role": "user", "content": script}]})
    answer = (await ask(client, api, "script", **ask_for)).json()
    assert '"look_up"' in json.dumps(answer) and "Hello." in json.dumps(answer) and "call_0_0" in json.dumps(answer)
    streamed = list(events_in((await ask(client, api, "script", stream=True, **ask_for)).content))
    assert "look_up" in json.dumps(streamed)


@each("api", APIS)
async def test_a_result_of_a_tool_gets_the_recording_after_then(api: str, client: httpx.AsyncClient) -> None:
    results: dict[str, dict[str, Any]] = {
        "chat": {
            "messages": [
                {"role": "user", "content": "x"},
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
                },
                {"role": "tool", "tool_call_id": "c", "content": "4"},
            ]
        },
        "responses": {
            "input": [
                {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c", "output": "4"},
            ]
        },
        "messages": {
            "messages": [
                {"role": "user", "content": "x"},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "4"}]},
            ]
        },
    }
    turns = [message["role"] for message in chat_form(api, results[api])["messages"]]
    assert turns[-2:] == ["assistant", "tool"]
    model = "cassette-parallel_tools+then-text"
    assert "look both up" in (await ask(client, api, model)).text
    assert "Gr\\u00fc\\u00df dich" in (await ask(client, api, model, **results[api])).text


async def test_a_chat_server_may_refuse_tools_without_effort_none(client: httpx.AsyncClient) -> None:
    tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
    for effort in ({}, {"reasoning_effort": "low"}):
        refused = await ask(client, "chat", "tools-need-none", tools=tools, **effort)
        assert refused.status_code == 400
        assert refused.json()["error"]["message"] == NEEDS_NONE
        assert refused.json()["error"]["param"] == "reasoning_effort"
    assert (await ask(client, "chat", "tools-need-none", tools=tools, reasoning_effort="none")).status_code == 200
    assert (await ask(client, "responses", "tools-need-none", tools=tools)).status_code == 200


@each("api", APIS)
async def test_each_format_has_its_own_form_of_a_refusal(api: str, client: httpx.AsyncClient) -> None:
    error = (await ask(client, api, "status-503")).json()
    assert error["error"]["message"] == "the test asked for it"
    assert (error.get("type") == "error") == (api == "messages")
    refused = await ask(client, api, "refuses-top_p", top_p=0.5)
    assert refused.status_code == 400 and "top_p" in refused.text


@each("api", APIS)
async def test_each_format_ends_after_the_same_pieces(
    api: str, server: FormatServer, client: httpx.AsyncClient
) -> None:
    server.said["one"] = Said([{"thought": "abcdefghij"}, {"text": "ABCDEFGHIJ"}])
    content = b""
    with pytest.raises(httpx.RemoteProtocolError):
        body = {"model": "said-one+cut-after-3-pieces", "stream": True, **ASK[api]}
        async with client.stream("POST", PATHS[api], json=body) as answer:
            async for part in answer.aiter_bytes():
                content += part
    assert b'"abcde"' in content and b'"fghij"' in content and b'"ABCDE"' in content and b'"FGHIJ"' not in content
