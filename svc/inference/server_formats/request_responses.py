"""A chat request as a request of Responses."""

from typing import Any

from svc.inference.answer import said
from svc.inference.catalog import Model
from svc.inference.efforts import nearest_effort
from svc.inference.passed_fields import not_null
from svc.inference.server_formats import seals
from svc.inference.server_formats.chat_parts import (
    NO_SCHEMA,
    SEALED,
    SUMMARY,
    Block,
    Tools,
    calls_of,
    file_of,
    limit_of,
    parts_of,
    refusal_of,
    schema_of,
    stops_of,
    text_and_refusal,
    tools_of,
    url_of,
)

_MOST_STOPS = 16
_STOP_CHARACTERS = 1000


def responses_request(model: Model, chat: dict[str, Any]) -> dict[str, Any]:
    custom: set[str] = set()  # the ids of calls of custom tools
    items: list[Block] = []
    for place, message in enumerate(chat["messages"]):
        items += _items(message, f"messages[{place}]", place, custom)
    stops = stops_of(chat)  # the reader of the answer looks for them
    if len(stops) > _MOST_STOPS or sum(map(len, stops)) > _STOP_CHARACTERS:
        raise refusal_of("stop", f"must be at most {_MOST_STOPS} texts of {_STOP_CHARACTERS:,} characters together.")
    kept = not_null(chat, "model", "stream", "temperature", "top_p", "top_logprobs", "user", "service_tier")
    kept |= not_null(chat, "safety_identifier", "prompt_cache_key")
    body = {**kept, "input": items, "store": model.byok and bool(chat.get("store"))}
    if tools := _offered(tools_of(chat, ("function", "custom"))):
        body |= {**tools, **not_null(chat, "parallel_tool_calls")}
    if (limit := limit_of(chat)) is not None:
        body["max_output_tokens"] = limit
    effort = nearest_effort(chat.get("reasoning_effort"), model.efforts)
    logprobs = ["message.output_text.logprobs"] if chat.get("logprobs") or chat.get("top_logprobs") else []
    others = {
        "include": [*([SEALED] if chat.get(SEALED) else ()), *logprobs],
        "reasoning": not_null({"effort": effort, "summary": chat.get(SUMMARY)}, "effort", "summary"),
        "text": {**_text_format(chat), **not_null(chat, "verbosity")},
        "metadata": {name: text for name, text in (chat.get("metadata") or {}).items() if isinstance(text, str)},
    }
    return body | {name: value for name, value in others.items() if value}


def _text_format(chat: dict[str, Any]) -> dict[str, Any]:
    if schema := schema_of(chat):
        named = {"name": str(schema.get("name") or "answer"), **not_null(schema, "schema", "strict", "description")}
        return {"format": {"type": "json_schema", **named}}
    is_json = (chat.get("response_format") or {}).get("type") == "json_object"
    return {"format": {"type": "json_object"}} if is_json else {}


def _items(message: dict[str, Any], param: str, place: int, custom: set[str]) -> list[Block]:
    role, content = message["role"], message.get("content")
    if role == "tool":
        kind = "custom_tool_call_output" if message["tool_call_id"] in custom else "function_call_output"
        output = content if isinstance(content, str) else parts_of(content, _input_part, param)
        return [{"type": kind, "call_id": message["tool_call_id"], "output": output or ""}]
    if role == "function":
        raise refusal_of(f"{param}.role", "must be tool for the result of a tool.")
    if role != "assistant":
        parts = content if isinstance(content, str) else parts_of(content, _input_part, param)
        return [{"type": "message", "role": role, "content": parts or ""}]
    items: list[Block] = []
    text, refusal = text_and_refusal(message)
    if refusal:
        texts = [{"type": "output_text", "text": text, "annotations": []}] if text else []
        parts = [*texts, {"type": "refusal", "refusal": refusal}]
        head = {"id": f"msg_{place}", "type": "message", "role": role, "status": "completed"}
        items.append({**head, "content": parts})
    elif text:
        items.append({"type": "message", "role": role, "content": text})
    for kind, name, written, call in calls_of(message, param):
        call_id = str(call.get("id") or "")
        if kind == "custom":
            custom.add(call_id)
            items.append({"type": "custom_tool_call", "call_id": call_id, "name": name, "input": written})
        else:
            items.append({"type": "function_call", "call_id": call_id, "name": name, "arguments": written})
    # A server refuses reasoning that nothing follows.
    return [*_reasoning_items(message, place), *items] if items else []


def _reasoning_items(message: dict[str, Any], place: int) -> list[Block]:
    if sealed := [seals.reasoning_item(seal) for seal in seals.of_message(message, seals.RESPONSES)]:
        return sealed
    if not (thought := said.reasoning(message)):
        return []
    text = {"type": "reasoning_text", "text": thought}
    return [{"type": "reasoning", "id": f"rs_{place}", "summary": [], "content": [text]}]


def _input_part(part: dict[str, Any], param: str) -> Block:
    if part["type"] == "text":
        return {"type": "input_text", "text": part["text"]}
    if part["type"] == "image_url":
        detail = part["image_url"].get("detail") if isinstance(part["image_url"], dict) else None
        return {"type": "input_image", "image_url": url_of(part), "detail": detail or "auto"}
    file = file_of(part, param)
    return {"type": "input_file", **not_null(file, "file_data", "file_url", "filename")}


def _offered(tools: Tools) -> dict[str, Any]:
    if not tools.offered:
        return {}
    offered: list[Block] = []
    for name, (kind, body) in tools.offered.items():
        described = {"type": kind, "name": name, **not_null(body, "description")}
        if kind == "function":
            strict = {"parameters": body.get("parameters") or NO_SCHEMA, "strict": bool(body.get("strict"))}
            offered.append({**described, **strict})
        else:
            offered.append({**described, **_custom_format(body)})
    choice: Any = tools.mode
    if tools.one is not None:
        choice = {"type": tools.offered[tools.one][0], "name": tools.one}
    elif tools.among is not None:
        allowed = [{"type": tools.offered[name][0], "name": name} for name in tools.among]
        choice = {"type": "allowed_tools", "mode": tools.mode, "tools": allowed} if allowed else "none"
    return {"tools": offered, **({"tool_choice": choice} if choice else {})}


def _custom_format(body: dict[str, Any]) -> dict[str, Any]:
    found = body.get("format")
    if not isinstance(found, dict):
        return {}
    grammar = found.get("grammar")
    return {"format": {"type": "grammar", **grammar} if isinstance(grammar, dict) else found}
