"""`POST /v1/responses` through HTTP: with the built-in models, a model server, and OpenAI's own client."""

import asyncio
from typing import Any

import httpx
import orjson
import pytest

from svc.deletion.slices import begin_deletion
from svc.errors import ApiError
from svc.server.sse import Drain, EventStream
from svc.server.web import refusal
from tests.conftest import PASSWORD, Service, bearer
from tests.inference.test_model_call import Lab, config, lab, upstream  # noqa: F401 - fixtures
from tests.support.answers import assert_error
from tests.support.cases import each
from tests.support.late_imports import import_late
from tests.support.responses import checked_events, checked_response
from tests.support.waiting import logged, run_ready, until

RESPONSES, COMPLETIONS = "/v1/responses", "/v1/chat/completions"
TOOL = {"type": "function", "name": "calculate", "parameters": {"type": "object"}, "strict": False}


@pytest.fixture
async def headers(service: Service) -> dict[str, str]:
    return bearer((await service.make_key(await service.bearer()))["key"])


@pytest.fixture
async def client(service: Service, headers: dict[str, str]) -> Any:
    """OpenAI's client."""
    import_late("openai")
    import openai

    key = headers["authorization"].removeprefix("Bearer ")
    return openai.AsyncOpenAI(
        api_key=key, base_url="https://127.0.0.1:8443/v1", http_client=service.client, max_retries=0
    )


async def asked(service: Service, headers: dict[str, str], **body: Any) -> httpx.Response:
    return await service.client.post(
        RESPONSES, json={"model": "builtin/echo", "input": "Hello 🙂", **body}, headers=headers
    )


async def test_a_response_has_every_field(service: Service, headers: dict[str, str]) -> None:
    answer = await asked(
        service, headers, metadata={"a": "b"}, tools=[TOOL, {"type": "web_search"}], reasoning={"effort": "low"}
    )
    assert answer.status_code == 200, answer.text
    assert (
        answer.headers["x-service-ignored-tools"] == "web_search"
        and answer.headers["x-ratelimit-remaining-requests"] == "19"
    )
    response = checked_response(answer.json())
    assert response["id"].startswith("resp_") and response["output"][0]["id"].startswith("msg_")
    assert response["output"][0]["content"] == [
        {"type": "output_text", "text": "Hello 🙂", "annotations": [], "logprobs": []}
    ]
    assert (
        response["usage"]["total_tokens"] == response["usage"]["input_tokens"] + response["usage"]["output_tokens"] > 0
    )
    assert {name: value for name, value in response.items() if name not in ("id", "output", "usage")} == {
        "object": "response",
        "created_at": int(service.clocks.now),
        "completed_at": int(service.clocks.now),
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "model": "builtin/echo",
        "instructions": None,
        "max_output_tokens": None,
        "max_tool_calls": None,
        "metadata": {"a": "b"},
        "parallel_tool_calls": True,
        "presence_penalty": 0,
        "frequency_penalty": 0,
        "prompt_cache_key": None,
        "safety_identifier": None,
        "temperature": 1,
        "tool_choice": "auto",
        "top_logprobs": 0,
        "top_p": 1,
        "user": None,
        "background": False,
        "previous_response_id": None,
        "service_tier": "default",
        "store": False,
        "truncation": "disabled",
        "reasoning": {"effort": "low", "summary": None},
        "text": {"format": {"type": "text"}},
        "tools": [{"description": None, **TOOL}],
    }


async def test_stream_ends_with_the_complete_response(service: Service, headers: dict[str, str]) -> None:
    answer = await asked(service, headers, stream=True)
    assert answer.headers["content-type"] == "text/event-stream" and "x-ratelimit-limit-requests" in answer.headers
    events = checked_events(answer.content)
    assert events[-1]["response"]["output"][0]["content"][0]["text"] == "Hello 🙂"


async def test_items_can_be_referenced_for_an_hour(service: Service, headers: dict[str, str]) -> None:
    first = (await asked(service, headers)).json()["output"][0]
    items = [
        {"role": "user", "content": "x"},
        {"type": "item_reference", "id": first["id"]},
        {"role": "user", "content": "y"},
    ]
    assert (await asked(service, headers, input=items)).status_code == 200
    other = await service.bearer()
    unknown = await asked(service, other, input=items)
    assert unknown.status_code == 404 and first["id"] in unknown.json()["error"]["message"]
    unkept = (await asked(service, headers, store=False)).json()["output"][0]
    items[1]["id"] = unkept["id"]
    assert (await asked(service, headers, input=items)).status_code == 404


async def test_items_of_a_deleted_account_are_deleted(service: Service) -> None:
    session = await service.bearer()
    item = (await asked(service, session)).json()["output"][0]
    (account_id,) = service.state["item_memory"].owners()
    assert service.state["item_memory"].item(account_id, item["id"], "")
    deleted = await service.client.request("DELETE", "/user/me", json={"password": PASSWORD}, headers=session)
    assert deleted.status_code == 204 and not service.state["item_memory"].owners()


async def test_items_of_an_account_that_a_command_deletes_are_deleted(service: Service) -> None:
    await asked(service, await service.bearer())
    await asked(service, await service.bearer())
    gone, stays = service.state["item_memory"].owners()
    await service.state["db"].write(begin_deletion, gone, service.clocks.now, "operator")
    await until(lambda: service.state["item_memory"].owners() == {stays})


@each("method", ["GET", "DELETE"])
async def test_response_is_never_stored(service: Service, headers: dict[str, str], method: str) -> None:
    response = (await asked(service, headers)).json()
    assert (await service.client.request(method, f"{RESPONSES}/{response['id']}", headers=headers)).status_code == 404


async def test_refused_request_is_free_and_counted(lab: Lab) -> None:  # noqa: F811 - a fixture
    person = await lab.person(1_000)
    items = [{"type": "function_call_output", "call_id": "a", "output": ""}]
    answer = await lab.service.client.post(RESPONSES, json={"model": "lab/ok", "input": items}, headers=person.headers)
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "input[0]"
    assert lab.upstream.requests == [] and await lab.balance(person) == 1_000 and lab.holds(person) == []


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", ["lab/ok+odd", "lab/no-usage", "lab/tools"])
async def test_responses_cost_the_same_as_chat(lab: Lab, stream: bool, model: str) -> None:  # noqa: F811 - a fixture
    person = await lab.person(100_000)
    streams = {"stream": True} if stream else {}
    messages = [{"role": "user", "content": "hello"}]
    body = {"model": model, "messages": messages, "max_tokens": 100, **streams}
    chat = await lab.service.client.post(COMPLETIONS, json=body, headers=person.headers)
    body = {"model": model, "input": "hello", "max_output_tokens": 100, **streams}
    answer = await lab.service.client.post(RESPONSES, json=body, headers=person.headers)
    assert chat.status_code == answer.status_code == 200, answer.text
    response = checked_events(answer.content)[-1]["response"] if stream else checked_response(answer.json())
    first, second = await lab.debits(person)
    assert first["amount_micros"] == second["amount_micros"] < 0 and first["description"] == second["description"]
    assert lab.holds(person)[0] == lab.holds(person)[1]
    if not stream:
        assert (
            answer.headers["x-service-cost-micros"]
            == chat.headers["x-service-cost-micros"]
            == str(-first["amount_micros"])
        )
        usage = chat.json()["usage"]
        assert [usage[name] for name in ("prompt_tokens", "completion_tokens")] == [
            response["usage"][name] for name in ("input_tokens", "output_tokens")
        ]
    (line,) = await logged(lab.service.log_lines, route=COMPLETIONS)
    (other,) = await logged(lab.service.log_lines, route=RESPONSES)
    assert {name: line[name] for name in ("input_tokens", "output_tokens", "cost_micros", "model")} == {
        name: other[name] for name in ("input_tokens", "output_tokens", "cost_micros", "model")
    }


@each(
    ("model", "status"),
    [
        ("lab/status-400", 400),
        ("lab/status-500", 502),
        ("lab/cut-head", 502),
        ("lab/error-200", 502),
        ("lab/nothing", 404),
    ],
)
async def test_error_before_the_first_event_is_that_of_chat(lab: Lab, model: str, status: int) -> None:  # noqa: F811 - a fixture
    person = await lab.person(100_000)
    chat = await lab.chat(person, model, True)
    answer = await lab.service.client.post(
        RESPONSES, json={"model": model, "input": "hello", "stream": True}, headers=person.headers
    )
    assert answer.status_code == chat.status_code == status and answer.json() == chat.json()


@each(
    "model", ["error-mid-stream", "cut-after-2-chunks", "reset-after-3-chunks", "broken-json", "silent-after-3-chunks"]
)
async def test_error_after_the_first_event_is_a_failed_response(lab: Lab, model: str) -> None:  # noqa: F811 - a fixture
    person = await lab.person(100_000)
    body = {"model": f"lab/{model}", "input": "hello", "stream": True}
    answer = await lab.service.client.post(RESPONSES, json=body, headers=person.headers)
    events = checked_events(answer.content)
    assert events[-1]["type"] == "response.failed" and "response.output_item.done" not in [
        event["type"] for event in events
    ]
    assert await lab.balance(person) < 100_000


async def test_error_after_pings_is_a_failed_response(
    service: Service, headers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(EventStream.__init__.__kwdefaults__ or {}, "ping_seconds", 0.05)
    answer = await asked(service, headers, model="builtin/script", input="wait 300\ndrop", stream=True)
    assert answer.content.startswith(b": ping\n\n")
    end = checked_events(answer.content)[-1]["response"]
    assert end["status"] == "failed" and end["model"] == "builtin/script" and end["created_at"]


async def test_shutdown_ends_the_stream_with_a_failed_response(service: Service, headers: dict[str, str]) -> None:
    drain: Drain = service.state["drain"]
    body = {"model": "builtin/script", "input": "say one\nwait 60000\nsay two", "stream": True}
    asking = asyncio.ensure_future(service.client.post(RESPONSES, json=body, headers=headers))
    await until(lambda: len(drain))
    await run_ready(200)  # for the head of the stream
    drain.begin()
    end = checked_events((await asking).content)[-1]
    assert end["type"] == "response.failed" and end["response"]["error"]["code"] == "server_error"


async def test_the_sdk_creates_streams_and_parses(client: Any) -> None:
    import pydantic

    made = await client.responses.create(model="builtin/echo", input="Hello")
    assert made.output_text == "Hello" and made.usage is not None and made.usage.output_tokens == 2
    async with client.responses.stream(model="builtin/echo", input="Hello there") as stream:
        texts = [event.delta async for event in stream if event.type == "response.output_text.delta"]
        assert "".join(texts) == (await stream.get_final_response()).output_text == "Hello there"

    class Answer(pydantic.BaseModel):
        value: int

    parsed = await client.responses.parse(model="builtin/script", input='say {"value": 42}', text_format=Answer)
    assert parsed.output_parsed is not None and parsed.output_parsed.value == 42


@each("stream", [False, True])
async def test_sdk_runs_a_tool_loop(client: Any, stream: bool) -> None:
    items: list[Any] = [{"role": "user", "content": "Calculate 12 * (3 + 4)"}]
    for _ in range(3):
        options: dict[str, Any] = {"model": "builtin/assistant", "input": items, "tools": [TOOL]}
        if stream:
            async with client.responses.stream(**options) as events:
                async for _event in events:
                    pass
                response = await events.get_final_response()
        else:
            response = await client.responses.create(**options)
        items += [item.to_dict() for item in response.output]
        calls = [item for item in response.output if item.type == "function_call"]
        if not calls:
            break
        assert orjson.loads(calls[0].arguments)
        items += [{"type": "function_call_output", "call_id": call.call_id, "output": "84"} for call in calls]
    assert "84" in response.output_text and len(items) == 4


async def test_the_sdk_reads_a_failed_stream_and_a_refusal(client: Any) -> None:
    import openai

    stream = await client.responses.create(model="builtin/script", input="say one\ndrop", stream=True)
    assert [event.type async for event in stream][-1] == "response.failed"
    with pytest.raises(openai.BadRequestError, match="tool_choice must name"):
        await client.responses.create(model="builtin/echo", input="x", tool_choice={"type": "web_search_preview"})


@each("stream", [False, True])
async def test_empty_wallet_is_final_for_codex(service: Service, headers: dict[str, str], stream: bool) -> None:
    answer = await asked(service, headers, model="builtin/assistant-paid", stream=stream)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["type"]) == (400, "insufficient_quota", "insufficient_funds_error")
    assert "The wallet has" in error["message"]


@each("code", ["insufficient_funds", "spending_limit_reached"])
def test_every_402_is_final_for_codex(code: str) -> None:
    error = {"message": "No.", "type": "insufficient_funds_error", "code": code, "param": None, "limit_micros": 7}
    found = refusal(ApiError("insufficient_funds", error=error), "/v1/responses")
    assert found.status_code == 400
    assert orjson.loads(found.body)["error"] == {**error, "code": "insufficient_quota"}


@each("upgrade", ["websocket", "WebSocket"])
async def test_web_socket_is_426_after_authentication(service: Service, headers: dict[str, str], upgrade: str) -> None:
    asks = {"connection": "Upgrade", "upgrade": upgrade, "sec-websocket-version": "13", "sec-websocket-key": "eA=="}
    answer = await service.client.get(RESPONSES, headers={**asks, **headers})
    assert_error(answer, 426, "upgrade_required")
    assert_error(await service.client.get(RESPONSES, headers=asks), 401, "invalid_api_key")
    plain = await service.client.get(RESPONSES, headers=headers)
    assert_error(plain, 405, "method_not_allowed")
    assert plain.headers["allow"] == "POST"
