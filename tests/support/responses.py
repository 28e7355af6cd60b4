"""Responses as OpenAI's SDK types them: answers and the events of a stream, checked against its types and the grammar."""

from typing import Any

import orjson
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

_EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


def checked_response(value: dict[str, Any]) -> dict[str, Any]:
    """A response object that fits OpenAI's type."""
    Response.model_validate(value, strict=False)
    return value


def checked_events(content: bytes) -> list[dict[str, Any]]:
    """The events of a whole stream, each one of OpenAI's types, numbered without gaps; `[DONE]` ends it."""
    assert content.isascii() and content.endswith(b"data: [DONE]\n\n")
    events = []
    for block in content.decode().split("\n\n")[:-2]:
        if block == ": ping":
            continue
        name, data = block.split("\n")
        event = orjson.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        _EVENT.validate_python(event)
        events.append(event)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    return events
