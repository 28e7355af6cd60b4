"""`POST /v1/responses` through HTTP with the built-in provider."""

import pytest

from tests.conftest import Service, bearer
from tests.support.responses import checked_events, checked_response

RESPONSES = "/v1/responses"


@pytest.fixture
async def headers(service: Service) -> dict[str, str]:
    return bearer((await service.make_key(await service.bearer()))["key"])


async def test_a_text_is_answered(service: Service, headers: dict[str, str]) -> None:
    answer = await service.client.post(RESPONSES, json={"model": "builtin/echo", "input": "Hello 🙂"}, headers=headers)
    assert answer.status_code == 200, answer.text
    response = checked_response(answer.json())
    assert response["status"] == "completed" and response["output"][0]["content"][0]["text"] == "Hello 🙂"


async def test_a_stream_ends_with_the_whole_response(service: Service, headers: dict[str, str]) -> None:
    body = {"model": "builtin/echo", "input": "Hello 🙂", "stream": True}
    events = checked_events((await service.client.post(RESPONSES, json=body, headers=headers)).content)
    assert [event["type"] for event in events[:4]] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
    ]
    assert events[-1]["type"] == "response.completed"
    assert events[-1]["response"]["output"][0]["content"][0]["text"] == "Hello 🙂"
    assert events[-1]["response"]["usage"]["total_tokens"] > 0
