"""Requests, answers and events of the three formats, validated by the types of OpenAI's and Anthropic's SDKs."""

from collections import Counter
from functools import cache
from typing import Any, get_args

import orjson

from tests.support.late_imports import import_late

# What a newer SDK has no type for, though servers take it.
_UNTYPED = {"messages": {"temperature", "top_p", "top_k"}}
validated: Counter[str] = Counter()  # how many requests, answers and events of each format were valid


@cache
def _types(api: str) -> tuple[Any, Any, Any]:
    """Return the types of a request, an answer and an event."""
    from pydantic import TypeAdapter

    request: Any
    answer: Any
    event: Any
    if api == "messages":
        import_late("anthropic")
        from anthropic.types import Message, RawMessageStreamEvent
        from anthropic.types.message_create_params import MessageCreateParams

        request, answer, event = MessageCreateParams, Message, RawMessageStreamEvent
    elif api == "responses":
        import_late("openai.types.responses")
        from openai.types.responses import Response, ResponseStreamEvent
        from openai.types.responses.response_create_params import ResponseCreateParams

        request, answer, event = ResponseCreateParams, Response, get_args(ResponseStreamEvent)[0]
    else:
        import_late("openai.types.chat")
        from openai.types.chat import ChatCompletion, ChatCompletionChunk
        from openai.types.chat.completion_create_params import CompletionCreateParams

        request, answer, event = CompletionCreateParams, ChatCompletion, ChatCompletionChunk
    return TypeAdapter(request), TypeAdapter(answer), TypeAdapter(event)


def checked_request(api: str, body: dict[str, Any]) -> dict[str, Any]:
    """Return the body of a request that fits the SDK's types in all parts, and has no field that they lack."""
    typed = {name: value for name, value in body.items() if name not in _UNTYPED.get(api, ())}
    read = _read(_types(api)[0].validate_python(typed))
    assert not (lost := list(_lost(typed, read, "body"))), lost
    validated[f"{api} request"] += 1
    return body


def checked_answer(api: str, document: dict[str, Any]) -> dict[str, Any]:
    _types(api)[1].validate_json(orjson.dumps(document), strict=True)
    validated[f"{api} answer"] += 1
    return document


def checked_event(api: str, event: dict[str, Any]) -> dict[str, Any]:
    if event.get("type") == "ping":
        return event
    _types(api)[2].validate_json(orjson.dumps(event), strict=True)
    validated[f"{api} event"] += 1
    return event


def _read(value: Any) -> Any:
    """Return a validated value whole: pydantic validates an `Iterable` only while it is read."""
    if isinstance(value, dict):
        return {name: _read(item) for name, item in value.items()}
    if isinstance(value, list) or type(value).__name__ == "ValidatorIterator":
        return [_read(item) for item in value]
    return value


def _lost(given: Any, read: Any, place: str) -> Any:
    """Yield the places of fields that the types do not have."""
    if isinstance(given, dict) and isinstance(read, dict):
        for name, value in given.items():
            if name in read:
                yield from _lost(value, read[name], f"{place}.{name}")
            else:
                yield f"{place}.{name}"
    elif isinstance(given, list) and isinstance(read, list):
        for number, (one, other) in enumerate(zip(given, read, strict=True)):
            yield from _lost(one, other, f"{place}.{number}")
