"""Messages as Anthropic's SDK types them: answers and the events of a stream, checked against its types and the
grammar.
"""

from functools import cache
from typing import Any

import orjson

from tests.support.late_imports import import_late

_DELTAS = {
    "text": ("text_delta", "text"),
    "thinking": ("thinking_delta", "thinking"),
    "tool_use": ("input_json_delta", "partial_json"),
    "server_tool_use": ("input_json_delta", "partial_json"),
}
_WITHOUT_DELTAS = ("redacted_thinking", "web_search_tool_result")
validated = {"messages": 0, "events": 0}  # how many fitted Anthropic's types


@cache
def _types() -> tuple[Any, Any, Any]:
    """Return Anthropic's types of a message, an event and an error."""
    import_late("anthropic")
    from anthropic.types import Message, RawMessageStreamEvent
    from anthropic.types.shared.error_response import ErrorResponse
    from pydantic import TypeAdapter

    return Message, TypeAdapter(RawMessageStreamEvent), ErrorResponse


def checked_message(value: dict[str, Any]) -> dict[str, Any]:
    """A message that fits Anthropic's type and has no empty text."""
    message, _, _ = _types()
    message.model_validate(value, strict=True)
    validated["messages"] += 1
    assert value["stop_reason"] is not None
    assert all(block.get("text", block.get("thinking", "x")) for block in value["content"])
    assert len({block["id"] for block in value["content"] if block["type"] == "tool_use"}) == sum(
        block["type"] == "tool_use" for block in value["content"]
    )
    return value


def events_of(content: bytes) -> list[dict[str, Any]]:
    """The events of a stream as they came, each of one of Anthropic's types; a text that ends inside an event fails."""
    assert content.isascii() and content.endswith(b"\n\n")
    _, any_event, error = _types()
    events = []
    for block in content.decode().split("\n\n")[:-1]:
        name, data = block.split("\n")
        event = orjson.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}" and data.startswith("data: ")
        if event["type"] == "error":
            error.model_validate(event)
        elif event["type"] != "ping":
            any_event.validate_python(event, strict=True)
        validated["events"] += 1
        events.append(event)
    return events


def checked_stream(content: bytes) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The message that a stream comes to, and the error that ended it, if one did. Fails unless the stream obeys the
    grammar: message_start, blocks that never overlap and are not empty, message_delta, message_stop; or an error, and
    nothing after it.
    """
    events = [event for event in events_of(content) if event["type"] != "ping"]
    error = events.pop()["error"] if events[-1]["type"] == "error" else None
    assert all(event["type"] != "error" for event in events)
    if not events:
        return {}, error
    message = events[0]["message"]
    assert events[0]["type"] == "message_start" and message["content"] == [] and message["stop_reason"] is None
    open_block: dict[str, Any] | None = None
    ended: list[str] = []
    for event in events[1:]:
        kind = event["type"]
        assert "message_stop" not in ended
        if kind == "content_block_start":
            assert open_block is None and event["index"] == len(message["content"]) and not ended
            open_block = event["content_block"]
            assert not open_block.get("text") and not open_block.get("thinking") and not open_block.get("input")
            message["content"].append({**open_block, "pieces": []})
        elif kind == "content_block_delta":
            assert open_block is not None and event["index"] == len(message["content"]) - 1
            if event["delta"]["type"] == "signature_delta":
                assert open_block["type"] == "thinking" and event["delta"]["signature"]
                message["content"][-1]["signature"] = event["delta"]["signature"]
                continue
            if event["delta"]["type"] == "citations_delta":
                assert open_block["type"] == "text"
                message["content"][-1].setdefault("citations", []).append(event["delta"]["citation"])
                continue
            delta, field = _DELTAS[open_block["type"]]
            assert event["delta"]["type"] == delta and event["delta"][field]
            message["content"][-1]["pieces"].append(event["delta"][field])
        elif kind == "content_block_stop":
            assert open_block is not None and event["index"] == len(message["content"]) - 1
            sealed = open_block["type"] in _WITHOUT_DELTAS
            assert bool(message["content"][-1]["pieces"]) != sealed, "an empty block"
            open_block = None
        elif kind == "message_delta":
            assert open_block is None and not ended
            message |= event["delta"]
            message["usage"] |= event["usage"]
            ended.append(kind)
        else:
            assert kind == "message_stop" and ended == ["message_delta"]
            ended.append(kind)
    assert (ended == ["message_delta", "message_stop"]) != (error is not None), "it ends once"
    for block in message["content"]:
        text = "".join(block.pop("pieces"))
        if block["type"] in _WITHOUT_DELTAS:
            continue
        block[block["type"] if block["type"] in ("text", "thinking") else "arguments"] = text
    return message, error
