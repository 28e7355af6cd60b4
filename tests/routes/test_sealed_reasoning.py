"""Reasoning that only its model server can read comes back to it from chat, Responses, Messages, sessions and
agents.
"""

import dataclasses
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from svc.config import Config
from svc.inference.server_formats.seals import encoded
from tests.conftest import Service, bearer
from tests.support.byok import Names
from tests.support.cases import each
from tests.support.format_server import FormatServer, cassette
from tests.support.messages import checked_message, checked_stream
from tests.support.responses import checked_events, checked_response
from tests.support.sdk_types import checked_answer, checked_request

MODEL = "cassette-reasoning_tools+then-text"
QUESTION = "How is the weather in Zürich?"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
HELLO = [{"role": "user", "content": "Hi"}]
SEALS = {
    "responses": {"type": "reasoning.encrypted", "format": "openai-responses-v1", "data": "g==", "id": "rs_9"},
    "messages": {"type": "reasoning.encrypted", "format": "anthropic-claude-v1", "data": "sig==", "text": "Hm."},
}
SENT = {
    "responses": {"type": "reasoning", "id": "rs_9", "summary": [], "encrypted_content": "g=="},
    "messages": {"type": "thinking", "thinking": "Hm.", "signature": "sig=="},
}
FUNCTION = {"name": "get_weather", "parameters": SCHEMA}


@pytest.fixture
async def upstream() -> AsyncIterator[FormatServer]:
    async with FormatServer() as upstream:
        yield upstream


@pytest.fixture
def config(config: Config, upstream: FormatServer, tmp_path: Path) -> Config:
    models = "".join(
        f'[[providers.models]]\nid = "{name}"\napi = "{api}"\naliases = ["{api}-{short}"]\n'
        for api in ("responses", "messages")
        for short, name in (("tools", f"{MODEL}+{api}"), ("redacted", f"cassette-redacted+then-text+{api}"))
    )
    provider = f'[[providers]]\nname = "lab"\nbase_url = "{upstream.base_url}"\napi_key = "sk-of-the-operator-0123"\n'
    models += '[[providers.models]]\nid = "ok"\n'
    models += '[[providers.models]]\nid = "status-503"\napi = "messages"\nfallback = "lab/ok"\n'
    for name in ("include", "reasoning"):
        models += f'[[providers.models]]\nid = "refuses-{name}"\napi = "responses"\n'
    (tmp_path / "catalog.toml").write_text(provider + models)
    return dataclasses.replace(config, catalog=tmp_path / "catalog.toml", resolve=Names())


async def key_of(service: Service) -> dict[str, str]:
    return bearer((await service.make_key(await service.bearer()))["key"])


def expected(api: str, name: str = "reasoning_tools") -> dict[str, Any]:
    """Return the sealed part of a recorded answer, which must come back."""
    answer = cassette(name)[api]["answer"]
    part: dict[str, Any] = (answer["output"] if api == "responses" else answer["content"])[0]
    return part


def returned(upstream: FormatServer, api: str) -> list[dict[str, Any]]:
    """Return the parts of the last request that are reasoning."""
    body = checked_request(api, upstream.requests[-1].body)
    turns = [turn["content"] for turn in body.get("messages", ()) if isinstance(turn["content"], list)]
    parts = body["input"] if api == "responses" else [part for turn in turns for part in turn]
    return [part for part in parts if part.get("type") in ("reasoning", "thinking", "redacted_thinking")]


def events_in(text: str) -> list[dict[str, Any]]:
    blocks = [block.rpartition("data: ")[2] for block in text.split("\n\n")]
    return [json.loads(data) for data in blocks if data.startswith("{")]


@each("api", ["responses", "messages"])
@each("stream", [False, True])
async def test_chat_callers_return_it(service: Service, upstream: FormatServer, api: str, stream: bool) -> None:
    headers = await key_of(service)
    ask = {"model": f"{api}-tools", "stream": stream, "tools": [{"type": "function", "function": FUNCTION}]}
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    answer = await service.client.post("/v1/chat/completions", json={**ask, "messages": messages}, headers=headers)
    if stream:
        deltas = [chunk["choices"][0]["delta"] for chunk in events_in(answer.text) if chunk["choices"]]
        (details,) = [delta["reasoning_details"] for delta in deltas if "reasoning_details" in delta]
        calls = [delta["tool_calls"][0] for delta in deltas if "tool_calls" in delta]
        text = "".join(call["function"].get("arguments", "") for call in calls)
        call = {"id": calls[0]["id"], "type": "function", "function": {"name": "get_weather", "arguments": text}}
        said = {"role": "assistant", "content": None, "tool_calls": [call], "reasoning_details": details}
    else:
        said = answer.json()["choices"][0]["message"]
        call = said["tool_calls"][0]
    assert said["reasoning_details"][0]["type"] == "reasoning.encrypted"
    messages += [said, {"role": "tool", "tool_call_id": call["id"], "content": "Sunny."}]
    again = await service.client.post("/v1/chat/completions", json={**ask, "messages": messages}, headers=headers)
    assert again.status_code == 200 and returned(upstream, api) == [expected(api)]


@each("api, name", [("responses", "tools"), ("messages", "tools"), ("responses", "redacted"), ("messages", "redacted")])
@each("stream", [False, True])
async def test_messages_callers_return_it(
    service: Service, upstream: FormatServer, api: str, name: str, stream: bool
) -> None:
    headers = await key_of(service)
    stream = stream and api != "messages"  # events of the server's own format pass as they came
    ask = {"model": f"{api}-{name}", "max_tokens": 4096, "stream": stream, "thinking": {"type": "adaptive"}}
    ask["tools"] = [{"name": "get_weather", "input_schema": SCHEMA}]
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    answer = await service.client.post("/v1/messages", json={**ask, "messages": messages}, headers=headers)
    assert answer.status_code == 200, answer.text
    if stream:
        message, _ = checked_stream(answer.content)
        for block in message["content"]:
            if "arguments" in block:
                block["input"] = json.loads(block.pop("arguments"))
    else:
        passes = api == "messages"
        message = checked_answer(api, answer.json()) if passes else checked_message(answer.json())
    kind = "redacted_thinking" if name == "redacted" else "thinking"
    assert message["content"][0]["type"] == kind
    calls = [block for block in message["content"] if block["type"] == "tool_use"]
    results = [{"type": "tool_result", "tool_use_id": call["id"], "content": "Sunny."} for call in calls]
    more = {"role": "user", "content": results or "Go on"}
    messages += [{"role": "assistant", "content": message["content"]}, more]
    again = await service.client.post("/v1/messages", json={**ask, "messages": messages}, headers=headers)
    recorded = "reasoning_tools" if name == "tools" else "redacted"
    assert again.status_code == 200 and returned(upstream, api) == [expected(api, recorded)]


@each("api, name", [("responses", "tools"), ("messages", "tools"), ("responses", "redacted"), ("messages", "redacted")])
@each("stream, by_reference", [(False, False), (True, False), (True, True)])
async def test_responses_callers_return_it(
    service: Service, upstream: FormatServer, api: str, name: str, stream: bool, by_reference: bool
) -> None:
    headers = await key_of(service)
    ask = {"model": f"{api}-{name}", "stream": stream, "tools": [{"type": "function", "strict": False, **FUNCTION}]}
    items: list[Any] = [{"role": "user", "content": QUESTION}]
    answer = await service.client.post("/v1/responses", json={**ask, "input": items}, headers=headers)
    assert answer.status_code == 200, answer.text
    if api == "responses":  # the answer passes
        response = events_in(answer.text)[-1]["response"] if stream else checked_answer(api, answer.json())
    else:
        response = checked_events(answer.content)[-1]["response"] if stream else checked_response(answer.json())
    assert response["output"][0]["type"] == "reasoning" and response["output"][0]["encrypted_content"]
    calls = [item for item in response["output"] if item["type"] == "function_call"]
    results = [{"type": "function_call_output", "call_id": call["call_id"], "output": "Sunny."} for call in calls]
    more = results or [{"role": "user", "content": "Go on"}]
    given = [{"type": "item_reference", "id": item["id"]} if by_reference else item for item in response["output"]]
    items = [*items, *given, *more]
    again = await service.client.post("/v1/responses", json={**ask, "input": items}, headers=headers)
    recorded = "reasoning_tools" if name == "tools" else "redacted"
    assert again.status_code == 200 and returned(upstream, api) == [expected(api, recorded)]


@each("api", ["responses", "messages"])
@each("stream", [False, True])
async def test_session_keeps_it_with_the_answer(
    service: Service, upstream: FormatServer, api: str, stream: bool
) -> None:
    """Most clients do not return fields that they do not know."""
    headers = await service.bearer()
    ask = {"model": f"{api}-tools", "stream": stream, "tools": [{"type": "function", "function": FUNCTION}]}
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    answer = await service.client.post("/v1/chat/completions", json={**ask, "messages": messages}, headers=headers)
    assert answer.status_code == 200, answer.text
    call_id = cassette("reasoning_tools")[api]["answer"][{"responses": "output", "messages": "content"}[api]][1]
    call_id = call_id["call_id" if api == "responses" else "id"]
    call = {"id": call_id, "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
    messages += [{"role": "assistant", "content": None, "tool_calls": [call]}]
    messages += [{"role": "tool", "tool_call_id": call_id, "content": "Sunny."}]
    of_another_question = {"model": "lab/ok", "messages": HELLO}
    another = await service.client.post("/v1/chat/completions", json=of_another_question, headers=headers)
    conversations = [one.headers["x-service-conversation"] for one in (answer, another)]
    for conversation, found in zip([*conversations, None], ([expected(api)], [], []), strict=True):
        continued = {**headers, "x-service-conversation": conversation} if conversation else headers
        again = await service.client.post("/v1/chat/completions", json={**ask, "messages": messages}, headers=continued)
        assert again.status_code == 200 and returned(upstream, api) == found
    other = await service.bearer()
    stolen = {**other, "x-service-conversation": answer.headers["x-service-conversation"]}
    refused = await service.client.post("/v1/chat/completions", json={**ask, "messages": messages}, headers=stolen)
    assert refused.status_code == 404


@each("api", ["responses", "messages"])
async def test_agents_keep_it_with_the_step(service: Service, upstream: FormatServer, api: str) -> None:
    body = {"goal": QUESTION, "model": f"{api}-tools", "max_steps": 3}
    run = await service.client.post("/v1/agents/run", json=body, headers=await service.bearer())
    assert '"type":"final"' in run.text, run.text
    assert returned(upstream, api) == [expected(api)]


async def test_chat_servers_do_not_get_it(service: Service, upstream: FormatServer) -> None:
    """Only the servers that have sealed it know the field."""
    headers = await key_of(service)
    asked = {
        "/v1/messages": history("messages", SEALS["messages"]),
        "/v1/responses": history("responses", SEALS["responses"]),
    }
    for path, body in asked.items():
        for model in ("lab/ok", "lab/status-503"):  # which has the first one as its fallback
            service.clocks.advance(60)
            upstream.requests.clear()
            answer = await service.client.post(path, json={**body, "model": model}, headers=headers)
            assert answer.status_code == 200, answer.text
            seen = upstream.requests[-1]
            assert seen.path.endswith("/chat/completions") and "So" in json.dumps(seen.body)
            assert "reasoning.encrypted" not in json.dumps(seen.body), (path, model)


@each("field", ["include", "reasoning"])
async def test_model_that_does_not_reason_is_asked_again_without(
    service: Service, upstream: FormatServer, field: str
) -> None:
    headers = await key_of(service)
    body = {"model": f"lab/refuses-{field}", "messages": [{"role": "user", "content": "Hi"}]}
    upstream.requests.clear()
    for _ in range(2):
        (await service.client.post("/v1/chat/completions", json=body, headers=headers)).raise_for_status()
    assert [field in seen.body for seen in upstream.requests] == [True, False, False]


def history(caller: str, *found: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a caller's request with these seals in its earlier answer."""
    texts = [encoded(seal) for seal in found]
    if caller == "messages":
        blocks = [{"type": "thinking", "thinking": "Hm.", "signature": text} for text in texts]
        turn = {"role": "assistant", "content": [*blocks, {"type": "text", "text": "So"}]}
        alone = {"role": "assistant", "content": blocks[:1]}
        return {"messages": [*HELLO, turn, *HELLO, alone, *HELLO], "max_tokens": 99}
    items = [{"type": "reasoning", "id": "rs_0", "summary": [], "encrypted_content": text} for text in texts]
    return {"input": [*HELLO, *items, {"role": "assistant", "content": "So"}, *HELLO]}


@each("api, path", [("messages", "/v1/messages"), ("responses", "/v1/responses")])
async def test_server_gets_no_seal_of_another_in_its_own_format(
    service: Service, upstream: FormatServer, api: str, path: str
) -> None:
    """An earlier answer may be that of a fallback, or of a model with another format."""
    foreign, own = (
        SEALS[name] for name in (("responses", "messages") if api == "messages" else ("messages", "responses"))
    )
    body = {"model": f"{api}-redacted", **history(api, foreign, own)}
    (await service.client.post(path, json=body, headers=await service.bearer())).raise_for_status()
    assert returned(upstream, api) == [SENT[api]]


async def test_item_by_reference_is_sent_as_its_server_sealed_it(service: Service, upstream: FormatServer) -> None:
    headers = await service.bearer()
    first = {"model": "messages-redacted", "input": "Hi"}
    answer = (await service.client.post("/v1/responses", json=first, headers=headers)).json()
    items = [{"type": "item_reference", "id": item["id"]} for item in answer["output"]]
    body = {"model": "responses-redacted", "input": [*HELLO, *items, *HELLO]}
    (await service.client.post("/v1/responses", json=body, headers=headers)).raise_for_status()
    assert returned(upstream, "responses") == []
    assert [item["type"] for item in upstream.requests[-1].body["input"][1:-1]] == ["message"]
