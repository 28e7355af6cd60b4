"""Responses as OpenAI's SDK and the Open Responses specification type them, and an independent reading of their
streams.
"""

from collections import Counter
from functools import cache
from typing import Any, get_args

import orjson

from tests.support.late_imports import import_late

CREATED, PROGRESS, ADDED, DONE = (
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.output_item.done",
)
ENDS = ("response.completed", "response.incomplete", "response.failed")
# What was validated, by whose types.
validated: Counter[str] = Counter()


@cache
def _event_types() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the types of events of OpenAI's SDK and of the specification."""
    import_late("openai.types.responses")
    import_late("openresponses_types.types")
    from openai.types.responses import ResponseStreamEvent
    from openresponses_types import types as open_responses

    of_openai = get_args(get_args(ResponseStreamEvent)[0])
    opened = [model for name, model in vars(open_responses).items() if name.endswith("StreamingEvent")]
    return (
        {kind: model for model in of_openai for kind in get_args(model.model_fields["type"].annotation)},
        {kind.value: model for model in opened for kind in model.model_fields["type"].annotation},
    )


def checked_response(value: dict[str, Any]) -> dict[str, Any]:
    """A response object that fits the types of both."""
    import_late("openai.types.responses")
    import_late("openresponses_types.types")
    from openai.types.responses import Response
    from openresponses_types import types as open_responses

    Response.model_validate_json(orjson.dumps(value), strict=True)
    validated["openai"] += 1
    assert value["output"] == [item for item in value["output"] if item["id"] and item["status"]]
    assert len({item["id"] for item in value["output"]}) == len(value["output"])
    assert (value["completed_at"] is not None) == (value["status"] == "completed")
    if _is_open(value):
        open_responses.ResponseResource.model_validate_json(orjson.dumps(value))
        validated["open responses"] += 1
    return value


def _is_open(value: Any) -> bool:
    """Whether the specification knows what is in it: custom tools, namespaces and searches are OpenAI's, and its type
    of a JSON schema is null alone."""
    text = orjson.dumps(value)
    return not any(word in text for word in (b'"custom', b'"namespace"', b'"json_schema"', b'"web_search'))


def checked_events(content: bytes) -> list[dict[str, Any]]:
    """The events of a whole stream: each of the right type, numbered without gaps, in the order of the grammar."""
    assert content.isascii() and content.endswith(b"data: [DONE]\n\n")
    of_openai, opened = _event_types()
    events = []
    for block in content.decode().split("\n\n")[:-2]:
        if block == ": ping":
            continue
        name, data = block.split("\n")
        event = orjson.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}" and data.startswith("data: {")
        of_openai[event["type"]].model_validate_json(data.removeprefix("data: "), strict=True)
        validated["openai"] += 1
        if (open_event := opened.get(event["type"])) is not None and _is_open(event):
            open_event.model_validate_json(data.removeprefix("data: "))
            validated["open responses"] += 1
        events.append(event)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    _check_grammar(events)
    return events


def _check_grammar(events: list[dict[str, Any]]) -> None:
    assert [event["type"] for event in events[:2]] == [CREATED, PROGRESS]
    assert all(event["response"]["status"] == "in_progress" and not event["response"]["output"] for event in events[:2])
    *middle, end = events[2:]
    items: list[dict[str, Any]] = []
    open_item: dict[str, Any] | None = None
    texts: dict[str, str] = {}
    others: list[dict[str, Any]] = []  # of a search, and of annotations
    for event in middle:
        kind = event["type"]
        if kind == ADDED:
            assert open_item is None and event["output_index"] == len(items)
            open_item, texts, others = event["item"], {}, []
            assert open_item["status"] == "in_progress"
            continue
        assert open_item is not None, kind
        assert event["output_index"] == len(items)
        if kind == DONE:
            assert event["item"]["id"] == open_item["id"] and event["item"]["status"] in _ended_as(open_item)
            assert set(texts.values()) in ({_text_of(event["item"])}, set())
            _check_others(event["item"], others)
            items.append(event["item"])
            open_item = None
            continue
        assert event["item_id"] == open_item["id"]
        if kind == "response.output_text.annotation.added" or open_item["type"] == "web_search_call":
            others.append(event)
            continue
        name, _, what = kind.rpartition(".")
        if what == "added":
            texts[name] = ""
        elif what == "delta":
            texts[name] = texts.get(name, "") + event["delta"]
        elif what == "done" and "part" not in name:
            assert texts.get(name, "") == next(
                event[field] for field in ("text", "refusal", "arguments", "input") if field in event
            )
        elif what == "done":
            part = event["part"]
            assert texts.pop(name) == "" and _part_text(part) == _text_of({**open_item, "content": [part]})
    checked_response(end["response"])
    assert end["type"] in ENDS and end["response"]["status"] == end["type"].removeprefix("response.")
    assert all(_text_of(item) or item["type"].endswith("call") or item["encrypted_content"] for item in items)
    if end["type"] == "response.failed":
        assert (
            end["response"]["error"]["code"] in ("server_error", "rate_limit_exceeded")
            and end["response"]["usage"] is None
        )
        assert end["response"]["output"][: len(items)] == items
        assert all(item["status"] in _ended_as(item)[1:] for item in end["response"]["output"][len(items) :])
    else:
        assert (
            open_item is None and end["response"]["output"] == items and end["response"]["usage"]["total_tokens"] >= 0
        )


def _ended_as(item: dict[str, Any]) -> tuple[str, str]:
    """Return the statuses that the item may have at its end."""
    return "completed", "failed" if item["type"] == "web_search_call" else "incomplete"


def _check_others(item: dict[str, Any], others: list[dict[str, Any]]) -> None:
    """The events of a search are its states in order, and those of a message add its annotations in order."""
    if item["type"] == "web_search_call":
        states = [event["type"].rpartition(".")[2] for event in others]
        assert states == ["in_progress", "searching", *(["completed"] if item["status"] == "completed" else [])]
    else:
        assert [event["annotation_index"] for event in others] == [*range(len(others))]
        added = [event["annotation"] for event in others]
        assert added == [one for part in item.get("content", ()) for one in part.get("annotations", ())]


def _text_of(item: dict[str, Any]) -> str:
    if item["type"] == "web_search_call":
        return ""
    if "arguments" in item or "input" in item:
        return str(item.get("arguments", item.get("input")))
    return "".join(_part_text(part) for part in item["content"])


def _part_text(part: dict[str, Any]) -> str:
    return str(part.get("text", part.get("refusal")))
