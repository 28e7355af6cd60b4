"""svc/routes/completion.py: what all formats share around a chat call."""

import asyncio
from typing import Any

import pytest

from tests.conftest import Service
from tests.inference.test_chat_call import ESTIMATED_INPUT, Lab, lab  # noqa: F401 - a fixture
from tests.support.cases import each
from tests.support.responses import checked_events

RESPONSES = "/v1/responses"


def asked(model: str, **fields: Any) -> dict[str, Any]:
    return {"model": f"lab/{model}", "input": "hi", **fields}


async def test_other_formats_store_no_conversation(service: Service) -> None:
    session = await service.bearer()
    answer = await service.client.post(RESPONSES, json={"model": "builtin/echo", "input": "Hello"}, headers=session)
    assert answer.status_code == 200 and "x-service-conversation" not in answer.headers
    assert (await service.client.get("/conversations", headers=session)).json()["data"] == []


@pytest.mark.parametrize("stream", [False, True])
async def test_disconnected_client_of_a_silent_model_pays_for_the_input(lab: Lab, stream: bool) -> None:  # noqa: F811 - a fixture
    asking = asyncio.create_task(
        lab.client.post(RESPONSES, json=asked("silent", stream=stream), headers=lab.person.headers)
    )
    await lab.asked()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    assert await lab.spent() == ESTIMATED_INPUT
    await asyncio.wait_for(lab.upstream.requests[-1].gone.wait(), 20)


async def test_disconnected_client_pays_for_the_output_so_far(lab: Lab) -> None:  # noqa: F811 - a fixture
    body = asked("silent-after-3-chunks", stream=True)
    async with lab.client.stream("POST", RESPONSES, json=body, headers=lab.person.headers) as answer:
        async for line in answer.aiter_lines():
            if ", " in line and "output_text.delta" in line:
                break
    assert await lab.spent() == ESTIMATED_INPUT + 2 * 2  # "Hello, "


@each(
    ("model", "field", "fields"),
    [
        ("refuses-reasoning_effort", "reasoning_effort", {"reasoning": {"effort": "low"}}),
        ("refuses-verbosity", "verbosity", {"text": {"verbosity": "low"}}),
        (
            "refuses-parallel_tool_calls",
            "parallel_tool_calls",
            {"parallel_tool_calls": False, "tools": [{"type": "function", "name": "look_up"}]},
        ),
        ("refuses-max_tokens+responses", "max_tokens", {"max_output_tokens": 50}),
        ("refuses-stream_options+responses", "stream_options", {"stream": True}),
    ],
)
async def test_translated_field_refused_by_a_model_is_left_out_and_remembered(
    lab: Lab,  # noqa: F811 - a fixture
    model: str,
    field: str,
    fields: dict[str, Any],
) -> None:
    for times in (2, 1):
        lab.upstream.requests.clear()
        answer = await lab.client.post(RESPONSES, json=asked(model, **fields), headers=lab.person.headers)
        assert answer.status_code == 200, answer.text
        assert len(lab.upstream.requests) == times
        body = lab.upstream.requests[-1].body
        assert field not in body and body.get("max_completion_tokens", 50) == 50


async def test_reasoning_refused_by_a_model_is_left_out(lab: Lab) -> None:  # noqa: F811 - a fixture
    thought = {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]}
    items = [
        {"role": "user", "content": "hi"},
        thought,
        {"role": "assistant", "content": "Hi."},
        {"role": "user", "content": "?"},
    ]
    answer = await lab.client.post(
        RESPONSES, json=asked("refuses-reasoning_content", input=items), headers=lab.person.headers
    )
    assert answer.status_code == 200, answer.text
    first, second = (request.body["messages"][1] for request in lab.upstream.requests)
    assert first["reasoning_content"] == "Hm." and "reasoning_content" not in second


async def test_output_limit_of_the_caller_is_not_lowered(lab: Lab) -> None:  # noqa: F811 - a fixture
    answer = await lab.client.post(
        RESPONSES, json=asked("too-large", max_output_tokens=5000), headers=lab.person.headers
    )
    assert answer.status_code == 400 and len(lab.upstream.requests) == 1 and await lab.spent() == 0


async def test_an_answer_beyond_its_limit_is_incomplete(lab: Lab) -> None:  # noqa: F811 - a fixture
    body = asked("endless", stream=True, max_output_tokens=10)
    answer = await lab.client.post(RESPONSES, json=body, headers=lab.person.headers)
    response = checked_events(answer.content)[-1]["response"]
    assert response["incomplete_details"] == {"reason": "max_output_tokens"} and response["usage"]["output_tokens"] > 0
    assert len(response["output"][0]["content"][0]["text"]) == 320
