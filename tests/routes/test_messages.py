"""`POST /v1/messages` and `count_tokens` through HTTP: answers, streams, errors and money, with Anthropic's SDK and
without.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.billing import wallet
from svc.config import Config
from svc.server.sse import EventStream
from tests.conftest import JSON, Clocks, Service, bearer, serving
from tests.inference.formats.test_messages_request import conversations
from tests.support.answers import assert_error
from tests.support.cases import each
from tests.support.late_imports import import_late
from tests.support.messages import checked_message, checked_stream, events_of
from tests.support.model_server import ModelServer

if TYPE_CHECKING:  # a second of CPU in every process that collects the tests
    import anthropic

MESSAGES = "/v1/messages"
COUNT = "/v1/messages/count_tokens"
TOOL = {
    "name": "calculate",
    "description": "Computes.",
    "input_schema": {"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]},
}
SEARCH = {"type": "web_search_20250305", "name": "web_search"}
# What the tests' model server says in every way there is; the last ones break off.
WHOLE = (
    *("ok", "echo", "unicode", "halves", "tools", "tools-bare", "reasoning", "bad-calls", "odd-fields", "no-usage"),
    *(
        "odd-usage",
        "usage-always",
        "no-ids",
        "no-finish",
        "two-done",
        "bytewise",
        "comments",
        "crlf",
        "until-close",
        "late-usage-50ms",
    ),
    *("json-for-stream", "stream-for-json"),
)
BROKEN = (
    *(
        "cut-after-2-chunks",
        "reset-after-2-chunks",
        "error-mid-stream",
        "mid-line",
        "mid-event",
        "mid-bare",
        "broken-json",
    ),
    *("tools+cut-after-4-chunks", "reasoning+cut-after-1-chunks"),
)
REFUSED = {
    "status-400": 400,
    "status-401": 502,
    "status-404": 404,
    "status-422": 422,
    "status-500": 502,
    "status-503": 503,
}
REFUSED |= {"refuse-429": 503, "status-504": 504, "error-200": 502, "html-200": 502, "cut-head": 502, "error-text": 400}
FIELDS = ("top_k", "reasoning_effort", "parallel_tool_calls", "reasoning_content", "max_tokens")
REFUSING = tuple(f"refuses-{name}" for name in FIELDS)
PRICES = "input_micros_per_million_tokens = 3000000\noutput_micros_per_million_tokens = 15000000\n"


def ask(text: str, model: str = "builtin/echo", **fields: Any) -> dict[str, Any]:
    return {"model": model, "max_tokens": 100, "messages": [{"role": "user", "content": text}], **fields}


@dataclass
class Lab:
    """The service in front of `upstream`, whose models have a price, and an account with 10 dollars and a key."""

    service: Service
    upstream: ModelServer
    headers: dict[str, str]

    async def post(self, body: dict[str, Any], path: str = MESSAGES) -> httpx.Response:
        return await self.service.client.post(path, json=body, headers=self.headers)

    async def ledger(self) -> list[dict[str, Any]]:
        answer = await self.service.client.get("/billing/ledger", headers=self.headers)
        found: list[dict[str, Any]] = answer.json()["data"]
        return found


@pytest.fixture
async def headers(service: Service) -> dict[str, str]:
    return {"x-api-key": (await service.make_key(await service.bearer()))["key"]}


@pytest.fixture
async def lab(config: Config, clocks: Clocks, tmp_path: Path) -> AsyncIterator[Lab]:
    async with ModelServer() as upstream:
        models = "".join(
            f'[[providers.models]]\nid = "{name}"\n{PRICES}'
            for name in (*WHOLE, *BROKEN, *REFUSED, *REFUSING, "silent")
        )
        catalog = tmp_path / "catalog.toml"
        catalog.write_text(
            f'[[providers]]\nname = "lab"\nbase_url = "{upstream.base_url}"\ntimeout_seconds = 1\n{models}'
        )
        async with serving(replace(config, catalog=catalog), clocks) as service:
            session = await service.sign_up()
            account_id = session["user"]["id"]
            await service.state["db"].write(
                wallet.book, account_id, 10_000_000, description="Funds", now_seconds=clocks.now
            )
            key = (await service.make_key(bearer(session["access_token"])))["key"]
            yield Lab(service, upstream, bearer(key))


# --- answers


async def test_a_message_is_answered_in_json_and_as_a_stream(service: Service, headers: dict[str, str]) -> None:
    answer = await service.client.post(f"{MESSAGES}?beta=true", json=ask("Hello 🙂"), headers=headers)
    message = checked_message(answer.json())
    assert message["content"] == [{"type": "text", "text": "Hello 🙂"}] and message["model"] == "builtin/echo"
    assert (message["stop_reason"], message["stop_sequence"]) == ("end_turn", None)
    stream = await service.client.post(MESSAGES, json=ask("Hello 🙂", stream=True), headers=headers)
    assert stream.headers["content-type"] == "text/event-stream"
    streamed, error = checked_stream(stream.content)
    assert error is None and {**streamed, "id": ""} == {**message, "id": ""}
    for one in (answer, stream):
        assert one.headers["request-id"] == one.headers["x-request-id"]
        assert "x-ratelimit-remaining-requests" in one.headers and "x-service-ignored-tools" not in one.headers


async def test_messages_store_no_conversation(service: Service) -> None:
    session = await service.bearer()
    answer = await service.client.post(MESSAGES, json=ask("Hello"), headers=session)
    assert answer.status_code == 200 and "x-service-conversation" not in answer.headers
    assert (await service.client.get("/conversations", headers=session)).json()["data"] == []


async def test_token_limit_and_stop_sequences_end_an_answer(service: Service, headers: dict[str, str]) -> None:
    text = "alpha beta gamma delta " * 20
    limited = await service.client.post(MESSAGES, json={**ask(text), "max_tokens": 3}, headers=headers)
    assert checked_message(limited.json())["stop_reason"] == "max_tokens"
    for stream in (False, True):
        body = ask(text, stop_sequences=["delta", "gamma"], stream=stream)
        answer = await service.client.post(MESSAGES, json=body, headers=headers)
        stopped = checked_stream(answer.content)[0] if stream else checked_message(answer.json())
        assert stopped["content"] == [{"type": "text", "text": "alpha beta "}]
        assert (stopped["stop_reason"], stopped["stop_sequence"]) == ("stop_sequence", "gamma")


async def test_refused_stop_sequences_are_named_as_in_the_request(service: Service, headers: dict[str, str]) -> None:
    answer = await service.client.post(MESSAGES, json=ask("hi", stop_sequences=list("abcde")), headers=headers)
    error = answer.json()["error"]
    assert answer.status_code == 400 and error["type"] == "invalid_request_error"
    assert error["message"].startswith("stop_sequences must be")


@each("stream", [False, True])
async def test_the_assistant_calls_a_tool_and_answers_with_its_result(
    service: Service, headers: dict[str, str], stream: bool
) -> None:
    request = ask("What is 12 * (3 + 4)?", "builtin/assistant", tools=[TOOL, SEARCH], stream=stream)

    async def answered() -> dict[str, Any]:
        answer = await service.client.post(MESSAGES, json=request, headers=headers)
        assert answer.headers["x-service-ignored-tools"] == "web_search"
        if not stream:
            return checked_message(answer.json())
        message, error = checked_stream(answer.content)
        assert error is None
        for block in message["content"]:
            if block["type"] == "tool_use":
                block["input"] = orjson.loads(block.pop("arguments"))
        return message

    called = await answered()
    (block,) = called["content"]
    assert called["stop_reason"] == "tool_use" and block["input"] == {"expression": "12 * (3 + 4)"}
    result = {"type": "tool_result", "tool_use_id": block["id"], "content": "84"}
    request["messages"] += [{"role": "assistant", "content": called["content"]}, {"role": "user", "content": [result]}]
    final = await answered()
    assert final["stop_reason"] == "end_turn" and "84" in final["content"][0]["text"]


async def test_a_json_schema_is_followed(service: Service, headers: dict[str, str]) -> None:
    schema = {
        "type": "object",
        "properties": {"sum": {"type": "integer"}},
        "required": ["sum"],
        "additionalProperties": False,
    }
    config = {"format": {"type": "json_schema", "schema": schema}}
    answer = await service.client.post(
        MESSAGES, json=ask("1 + 1", "builtin/assistant", output_config=config), headers=headers
    )
    assert "sum" in orjson.loads(checked_message(answer.json())["content"][0]["text"])


async def test_silent_stream_sends_pings(
    service: Service, headers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(EventStream.__init__.__kwdefaults__ or {}, "ping_seconds", 0.05)
    body = ask("say a\nwait 300\nsay b", "builtin/script", stream=True)
    answer = await service.client.post(MESSAGES, json=body, headers=headers)
    assert {"type": "ping"} in events_of(answer.content) and checked_stream(answer.content)[1] is None


# --- a model server


@each("stream", [False, True])
async def test_answers_match_anthropic_types(lab: Lab, stream: bool) -> None:
    tools = [{"name": "look_up", "input_schema": {"type": "object"}}]
    for model in WHOLE:
        body = ask(
            "hi 🙂", f"lab/{model}", tools=tools, stream=stream, thinking={"type": "enabled", "budget_tokens": 1024}
        )
        answer = await lab.post(body)
        assert answer.status_code == 200, (model, answer.text)
        message, error = checked_stream(answer.content) if stream else (checked_message(answer.json()), None)
        kinds = {block["type"] for block in message["content"]}
        calls = "tools" in model or (model == "bad-calls" and stream)
        assert error is None and (kinds or model == "bad-calls"), model
        assert ("thinking" in kinds) == ("reasoning" in model or "odd-fields" in model), model
        assert ("tool_use" in kinds) == (message["stop_reason"] == "tool_use") == calls, model
        lab.service.clocks.advance(60)


async def test_error_after_the_first_event_is_one_error_event(lab: Lab) -> None:
    for model in BROKEN:
        answer = await lab.post(ask("hi", f"lab/{model}", stream=True, thinking={"type": "adaptive"}))
        message, error = checked_stream(answer.content)
        assert (
            answer.status_code == 200
            and message
            and error is not None
            and error["type"] in ("api_error", "invalid_request_error")
        )
        assert events_of(answer.content)[-1]["request_id"] == answer.headers["request-id"]
        lab.service.clocks.advance(60)


@pytest.mark.slow
@each("stream", [False, True])
async def test_error_before_the_first_event_is_a_status(lab: Lab, stream: bool) -> None:
    for model, status in {**REFUSED, "silent": 504}.items():
        answer = await lab.post(ask("hi", f"lab/{model}", stream=stream))
        assert answer.status_code == status, (model, answer.text)
        body = answer.json()
        assert body["type"] == "error" and body["request_id"] == answer.headers["request-id"]
        lab.service.clocks.advance(60)
    assert len(await lab.ledger()) == 1, "an answer that failed costs nothing"


async def test_refused_translated_fields_are_left_out(lab: Lab) -> None:
    turns = [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": "Hm", "signature": ""}, {"type": "text", "text": "x"}],
        },
        {"role": "user", "content": "on"},
    ]
    fields = {"top_k": 5, "output_config": {"effort": "low"}, "tools": [TOOL]}
    choice = {"type": "auto", "disable_parallel_tool_use": True}
    for name, model in zip(FIELDS, REFUSING, strict=True):
        lab.upstream.requests.clear()
        answer = await lab.post({**ask("", f"lab/{model}"), "messages": turns, **fields, "tool_choice": choice})
        assert answer.status_code == 200, (name, answer.text)
        first, second = (json.dumps(seen.body) for seen in lab.upstream.requests)
        assert f'"{name}"' in first and f'"{name}"' not in second


async def test_model_server_gets_the_translated_request(lab: Lab) -> None:
    await lab.post(ask("hi", "lab/ok", system="Be brief.", top_k=5, stop_sequences=["END"], metadata={"user_id": "u"}))
    assert lab.upstream.requests[-1].path == "/v1/chat/completions"
    assert lab.upstream.requests[-1].body == {
        "model": "ok",
        "max_tokens": 100,
        "top_k": 5,
        "stop": ["END"],
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}],
    }


# --- money


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", ["ok", "no-usage", "tools", "reasoning"])
async def test_messages_cost_the_same_as_chat(lab: Lab, model: str, stream: bool) -> None:
    body = {**ask("hi there", f"lab/{model}", stream=stream), "max_tokens": 50}
    chat = await lab.post(body, "/v1/chat/completions")
    messages = await lab.post(body)
    second, first, _ = await lab.ledger()
    same = ("amount_micros", "description")
    assert [first[name] for name in same] == [second[name] for name in same] and first["amount_micros"] < 0
    if stream:
        message, _ = checked_stream(messages.content)
    else:
        assert chat.headers["x-service-cost-micros"] == messages.headers["x-service-cost-micros"]
        message = messages.json()
        usage = chat.json()["usage"]
        assert (message["usage"]["input_tokens"], message["usage"]["output_tokens"]) == (
            usage["prompt_tokens"],
            usage["completion_tokens"],
        )
    spent = 3 * message["usage"]["input_tokens"] + 15 * message["usage"]["output_tokens"]
    assert -second["amount_micros"] == spent
    (row,) = (await lab.service.client.get("/billing/usage", headers=lab.headers)).json()["data"]
    assert row["requests"] == 2 and row["cost_micros"] == 2 * spent
    assert row["output_tokens"] == 2 * message["usage"]["output_tokens"]


@each(
    ("fields", "param"),
    [
        ({"tools": [SEARCH], "tool_choice": {"type": "tool", "name": "web_search"}}, "tool_choice.name"),
        ({"tools": [SEARCH], "tool_choice": {"type": "any"}}, "tool_choice"),
        ({"mcp_servers": [{"type": "url", "url": "https://x", "name": "x"}]}, "mcp_servers"),
        ({"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}]}, "tool_use_id"),
        (
            {
                "messages": [
                    {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]}
                ]
            },
            "messages[0].content[0]",
        ),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}] * 10_001}]}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "audio"}]}]}, "messages[0].content[0].type"),
    ],
)
@each("path", [MESSAGES, COUNT])
async def test_bad_input_is_400_and_costs_nothing(lab: Lab, path: str, fields: dict[str, Any], param: str) -> None:
    error = assert_error(await lab.post(ask("hi", "lab/ok", **fields), path), 400, "invalid_value")
    assert param in error["message"] and not lab.upstream.requests and len(await lab.ledger()) == 1


# --- errors


async def test_errors_have_the_shape_of_anthropic(service: Service, headers: dict[str, str]) -> None:
    client = service.client

    async def posted(content: bytes = b"{}", path: str = MESSAGES, **more: str) -> httpx.Response:
        return await client.post(path, content=content, headers={**headers, **JSON, **more})

    for path in (MESSAGES, COUNT):
        assert_error(await client.post(path), 401, "invalid_api_key")
        assert_error(
            await client.post(path, headers={"x-api-key": "a", "authorization": "Bearer b"}), 401, "invalid_api_key"
        )
        assert_error(await client.get(path, headers=headers), 405, "method_not_allowed")
        assert_error(await posted(b"broken", path), 400, "invalid_json")
        assert_error(await posted(b"{}", path), 400, "missing_field")
        assert_error(await posted(b"{}", path, **{"content-type": "text/plain"}), 415, "unsupported_media_type")
        too_long = {"content-length": str(16 * 1024 * 1024 + 1)}
        assert_error(await posted(b"{}", path, **too_long), 413, "PAYLOAD_TOO_LARGE")
        assert_error(await posted(orjson.dumps(ask("hi", "no/such")), path), 404, "model_not_found")
    assert_error(await posted(orjson.dumps(ask("hi", "builtin/assistant-paid"))), 402, "insufficient_funds")
    answers = [await posted() for _ in range(30)]
    refused = answers[-1]
    error = assert_error(refused, 429, "rate_limit_exceeded")
    assert error["retry_after"] == int(refused.headers["retry-after"]) and error["type"] == "rate_limit_error"


@each("thread", [{"type": "create"}, {"type": "continue", "previous_message_id": "msg_1"}, {}, "x"])
async def test_thread_is_refused_so_that_sdks_send_the_whole_conversation(
    service: Service, headers: dict[str, str], thread: Any
) -> None:
    answer = await service.client.post(MESSAGES, json={**ask("hi"), "thread": thread}, headers=headers)
    error = assert_error(answer, 400, "unsupported_value")
    assert error["type"] == "invalid_request_error" and error["message"].startswith("thread is not supported")
    assert error["details"] == {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}
    without = await service.client.post(MESSAGES, json={**ask("hi"), "thread": None}, headers=headers)
    counted = await service.client.post(COUNT, json={**ask("hi"), "thread": thread}, headers=headers)
    assert (without.status_code, counted.status_code) == (200, 200)


async def test_other_fields_of_state_are_ignored_or_refused_by_name(service: Service, headers: dict[str, str]) -> None:
    ignored = {
        "container": "container_1",
        "diagnostics": {"previous_message_id": "msg_1"},
        "context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]},
        "fallbacks": "default",
        "cache_control": {"type": "ephemeral"},
    }
    answer = await service.client.post(MESSAGES, json={**ask("hi"), **ignored}, headers=headers)
    assert answer.status_code == 200 and answer.json()["content"] == [{"type": "text", "text": "hi"}]
    refused = await service.client.post(
        MESSAGES, json={**ask("hi"), "compaction": {"type": "summarize"}}, headers=headers
    )
    assert assert_error(refused, 400, "unsupported_value")["message"].startswith("compaction is not supported")


@each("stream", [False, True])
async def test_tool_runner_of_anthropics_sdk_takes_several_steps(
    service: Service, sdk: "anthropic.AsyncAnthropic", stream: bool
) -> None:
    import_late("anthropic")
    from anthropic import beta_async_tool

    expressions: list[str] = []

    @beta_async_tool
    async def calculate(expression: str) -> str:
        """Compute."""
        expressions.append(expression)
        return "7"

    script = "\n---\n".join([*(f'tool calculate {{"expression": "{number}"}}' for number in range(3)), "say It is 7."])
    runner = sdk.beta.messages.tool_runner(
        model="builtin/script",
        max_tokens=100,
        tools=[calculate],
        messages=[{"role": "user", "content": script}],
        stream=stream,
    )
    last: Any = None
    async for step in runner:
        last = await step.get_final_message() if stream else step
    assert expressions == ["0", "1", "2"] and last.content[0].text == "It is 7."


async def test_forbidden_address_is_403(config: Config, clocks: Clocks) -> None:
    async with serving(config, clocks) as service:
        session = await service.bearer()
        made = {"name": "mine", "base_url": "http://127.0.0.1:9/v1", "models": ["m"]}
        assert (await service.client.post("/user/providers", json=made, headers=session)).status_code == 201
    async with serving(replace(config, byok_private=False), clocks) as service:
        answer = await service.client.post(MESSAGES, json=ask("hi", "mine/m"), headers=session)
        assert_error(answer, 403, "address_not_allowed")


async def test_unexpected_exception_is_500_before_and_an_event_after_the_first_event(
    service: Service, headers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: Any) -> None:
        raise ValueError("hunter2")

    monkeypatch.setattr("svc.inference.formats.messages.MessagesAnswer.end", broken)
    answer = await service.client.post(MESSAGES, json=ask("hi", stream=True), headers=headers)
    last = events_of(answer.content)[-1]
    assert last["type"] == "error" and last["error"]["type"] == "api_error" and "hunter2" not in answer.text
    monkeypatch.setattr("svc.inference.formats.messages.MessagesAnswer.answer", broken)
    assert_error(await service.client.post(MESSAGES, json=ask("hi"), headers=headers), 500, "internal_error")


def test_any_blocks_are_answered_or_400(config: Config, clocks: Clocks) -> None:
    with asyncio.Runner() as runner:
        opened = serving(config, clocks)
        service = runner.run(opened.__aenter__())
        key = runner.run(service.make_key(runner.run(service.bearer())))[
            "key"
        ]  # a session ends after 8 hours of the clock

        @given(conversations(), st.booleans())
        def try_blocks(messages: list[Any], stream: bool) -> None:
            clocks.advance(60)
            body = {**ask("", stream=stream), "messages": messages}
            answer = runner.run(service.client.post(MESSAGES, json=body, headers={"x-api-key": key}))
            if answer.status_code == 400:
                assert set(answer.json()["error"]) == {"type", "message"}
            elif stream:
                assert checked_stream(answer.content)[1] is None
            else:
                assert answer.status_code == 200 and checked_message(answer.json())

        try_blocks()
        runner.run(opened.__aexit__(None, None, None))


# --- counting, and large requests


async def test_counting_takes_no_admission(service: Service, headers: dict[str, str]) -> None:
    body = {"model": "builtin/echo", "messages": [{"role": "user", "content": "x" * 400}], "tools": [TOOL]}
    for _ in range(25):
        answer = await service.client.post(COUNT, json=body, headers=headers)
        assert answer.status_code == 200 and "x-ratelimit-remaining-requests" not in answer.headers
    assert 100 + 32 < answer.json()["input_tokens"] < 200
    first = await service.client.post(MESSAGES, json=ask("hi"), headers=headers)
    assert first.headers["x-ratelimit-remaining-requests"] == "19"


async def test_10_000_blocks_and_large_images_do_not_block_the_event_loop(lab: Lab) -> None:
    many = [{"type": "text", "text": f"block {number}"} for number in range(9_999)]
    image = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "AAAA" * (3 * 1024 * 1024)},
    }
    for content in (many, [image, {"type": "text", "text": "What is this?"}]):
        body = {**ask("", "lab/ok"), "messages": [{"role": "user", "content": content}]}
        for path in (MESSAGES, COUNT):
            assert (await lab.post(body, path)).status_code == 200


async def test_ignored_tool_name_cannot_break_the_header(service: Service, headers: dict[str, str]) -> None:
    tools = [{"type": "x", "name": name} for name in ("a\r\nset-cookie: b", "é🙂", "long" * 1000)]
    for stream in (False, True):
        answer = await service.client.post(MESSAGES, json=ask("hi", tools=tools, stream=stream), headers=headers)
        assert answer.status_code == 200 and answer.headers["x-service-ignored-tools"].startswith(
            "a??set-cookie: b, ??, long"
        )
        assert len(answer.headers["x-service-ignored-tools"]) == 1000


# --- Anthropic's own SDK


@pytest.fixture
async def sdk(service: Service, headers: dict[str, str]) -> AsyncIterator["anthropic.AsyncAnthropic"]:
    import_late("anthropic")
    import anthropic
    import httpx2

    transport = httpx2.ASGITransport(service.app)
    http = httpx2.AsyncClient(transport=transport)
    base_url = service.config.base_url
    async with anthropic.AsyncAnthropic(
        api_key=headers["x-api-key"], base_url=base_url, http_client=http, max_retries=0
    ) as made:
        yield made


async def test_the_sdk_creates_streams_and_counts(sdk: "anthropic.AsyncAnthropic") -> None:
    question: list[Any] = [{"role": "user", "content": "Hello 🙂"}]
    message = await sdk.messages.create(model="builtin/echo", max_tokens=50, messages=question)
    assert message.content[0].text == "Hello 🙂" and message.stop_reason == "end_turn"  # type: ignore[union-attr]
    assert message._request_id
    async with sdk.messages.stream(model="builtin/echo", max_tokens=50, messages=question) as stream:
        assert "".join([text async for text in stream.text_stream]) == "Hello 🙂"
        final = await stream.get_final_message()
    assert (
        final.usage.output_tokens == message.usage.output_tokens
        and final.usage.input_tokens == message.usage.input_tokens
    )
    counted = await sdk.messages.count_tokens(model="builtin/echo", messages=question)
    assert counted.input_tokens == 19
    assert "builtin/echo" in [model.id async for model in sdk.models.list()]


async def test_sdk_runs_a_tool_loop(sdk: "anthropic.AsyncAnthropic") -> None:
    tools: list[Any] = [TOOL]
    messages: list[Any] = [{"role": "user", "content": "What is 12 * (3 + 4)?"}]
    for _ in range(2):
        async with sdk.messages.stream(
            model="builtin/assistant", max_tokens=500, messages=messages, tools=tools
        ) as stream:
            message = await stream.get_final_message()
        messages.append({"role": "assistant", "content": message.content})
        uses = [block for block in message.content if block.type == "tool_use"]
        results = [{"type": "tool_result", "tool_use_id": use.id, "content": "84"} for use in uses]
        messages.append({"role": "user", "content": results})
    assert uses == [] and "84" in message.content[0].text  # type: ignore[union-attr]


async def test_the_sdk_raises_its_own_errors(sdk: "anthropic.AsyncAnthropic") -> None:
    import anthropic

    question: list[Any] = [{"role": "user", "content": "hi"}]
    with pytest.raises(anthropic.NotFoundError) as missing:
        await sdk.messages.create(model="no/such", max_tokens=50, messages=question)
    assert missing.value.request_id and missing.value.body["error"]["type"] == "not_found_error"  # type: ignore[index]
    with pytest.raises(anthropic.BadRequestError):
        await sdk.messages.create(model="builtin/echo", max_tokens=0, messages=question)
    with pytest.raises(anthropic.APIStatusError, match="api_error"):
        script: list[Any] = [{"role": "user", "content": "say a\nfail 500 broken"}]
        async with sdk.messages.stream(model="builtin/script", max_tokens=50, messages=script) as stream:
            await stream.get_final_message()
    wrong = sdk.with_options(api_key="svc-v1-wrong")
    with pytest.raises(anthropic.AuthenticationError):
        await wrong.messages.create(model="builtin/echo", max_tokens=50, messages=question)
