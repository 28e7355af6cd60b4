"""A chat request as a request of Messages."""

import re
from collections.abc import Mapping
from typing import Any

import orjson

from svc.inference.catalog import Model
from svc.inference.efforts import nearest_effort, thinking_budget
from svc.inference.passed_fields import not_null
from svc.inference.server_formats import seals
from svc.inference.server_formats.chat_parts import (
    BY_EFFORT,
    NO_SCHEMA,
    SUMMARY,
    Block,
    base64_of,
    calls_of,
    file_of,
    limit_of,
    mark_of,
    parts_of,
    refusal_of,
    schema_of,
    stops_of,
    text_and_refusal,
    tools_of,
    url_of,
)

_OUTPUT_TOKENS = 8192
_EFFORTS = ("low", "medium", "high", "xhigh", "max")  # of a model that has not named its own
_LEAST_BUDGET_TOKENS = 1024
# The type that a server knows, by that of the data.
_IMAGES = {name: name for name in ("image/jpeg", "image/png", "image/gif", "image/webp")} | {"image/jpg": "image/jpeg"}
_DOCUMENTS = {"application/pdf": "application/pdf"}
_NOTHING = {"type": "text", "text": "(nothing)"}
_NOT_IN_IDS = re.compile(r"[^a-zA-Z0-9_-]")


def messages_request(model: Model, chat: dict[str, Any]) -> dict[str, Any]:
    system, turns = _system_and_turns(chat)
    limits = (limit_of(chat), model.max_output_tokens, _OUTPUT_TOKENS)
    limit = next(limit for limit in limits if limit is not None)
    body = {**not_null(chat, "model", "stream"), **mark_of(chat), "max_tokens": limit, "messages": turns}
    body |= {**({"system": system} if system else {}), **_offered(chat)}
    if stops := stops_of(chat):
        if not all(map(str.strip, stops)):
            raise refusal_of("stop", "must have more than spaces for this model.")
        body["stop_sequences"] = stops
    thinking, output = _thinking(model, chat, body)
    if (chat.get("response_format") or {}).get("type") == "json_object":
        raise refusal_of("response_format", "must be of the type json_schema for this model.")
    if schema := schema_of(chat):
        output["format"] = {"type": "json_schema", "schema": schema["schema"]}
    if not thinking:  # a model that thinks refuses these
        thinking = not_null(chat, "temperature", "top_p", "top_k")
        thinking |= {"temperature": 1} if thinking.get("temperature", 0) > 1 else {}
    return {**body, **thinking, **({"output_config": output} if output else {})}


def _system_and_turns(chat: dict[str, Any]) -> tuple[list[Block], list[dict[str, Any]]]:
    system: list[Block] = []
    turns: list[dict[str, Any]] = []
    for place, message in enumerate(chat["messages"]):
        param = f"messages[{place}]"
        role, blocks = _turn(message, param)
        if role == "system":
            if any(block["type"] != "text" for block in blocks):
                raise refusal_of(f"{param}.content", "must be text.")
            system += blocks
        elif turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        elif blocks:
            turns.append({"role": role, "content": blocks})
    for turn in turns:  # results come first
        turn["content"].sort(key=lambda block: block["type"] != "tool_result")
    return (system, turns) if turns else ([], [{"role": "user", "content": system or [_NOTHING]}])


def _thinking(model: Model, chat: dict[str, Any], body: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the fields that make the model think, and the output's effort. A model that thinks chooses its tools."""
    known = model.efforts or (_EFFORTS if chat.get(BY_EFFORT) else None)
    effort = nearest_effort(chat.get("reasoning_effort"), known)
    if effort in (None, "none"):
        return {}, {}
    forced = body.get("tool_choice", {}).get("type") in ("any", "tool")
    if known:
        display = {"display": "summarized"} if chat.get(SUMMARY) else {}
        return ({} if forced else {"thinking": {"type": "adaptive", **display}}), {"effort": effort}
    budget = min(thinking_budget(str(effort)), body["max_tokens"] - 1)
    if forced or budget < _LEAST_BUDGET_TOKENS or _has_open_loop(body["messages"]):
        return {}, {}
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}, {}


def _has_open_loop(turns: list[dict[str, Any]]) -> bool:
    """Return whether the last turn has results of calls that were made without sealed thinking: thinking cannot begin
    between them.
    """
    if len(turns) < 2 or turns[-1]["content"][0]["type"] != "tool_result":
        return False
    return turns[-2]["content"][0]["type"] not in ("thinking", "redacted_thinking")


def _marked(blocks: list[Block], holder: dict[str, Any]) -> list[Block]:
    """Return `blocks`, the last one with the mark of what holds them."""
    mark = mark_of(holder)
    return [*blocks[:-1], {**blocks[-1], **mark}] if blocks and mark else blocks


def _turn(message: dict[str, Any], param: str) -> tuple[str, list[Block]]:
    role, content = message["role"], message.get("content")
    if role == "function":
        raise refusal_of(f"{param}.role", "must be tool for the result of a tool.")
    if role == "assistant":
        return role, _assistant_blocks(message, param)
    blocks = parts_of(content, _block, param)
    if role == "tool":
        blocks = [{"type": "tool_result", "tool_use_id": _id(message["tool_call_id"]), "content": blocks}]
    return {"tool": "user", "developer": "system"}.get(role, role), _marked(blocks, message)


def _assistant_blocks(message: dict[str, Any], param: str) -> list[Block]:
    content, (text, refusal) = message.get("content"), text_and_refusal(message)
    blocks: list[Block] = [{"type": "text", "text": text + refusal}] if text or refusal else []
    if isinstance(content, list) and not refusal:  # with their marks
        blocks = parts_of(content, _block, param)
    blocks = _marked(blocks, message)
    for kind, name, written, call in calls_of(message, param):
        given = {"input": written} if kind == "custom" else _input_of(written)
        use = {"type": "tool_use", "id": _id(call.get("id")), "name": name, "input": given}
        blocks.append({**use, **mark_of(call, call.get(kind))})
    return [*map(seals.thinking_block, seals.of_message(message, seals.MESSAGES)), *blocks]


def _id(call_id: Any) -> str:
    return _NOT_IN_IDS.sub("_", str(call_id or "")) or "_"


def _input_of(arguments: str) -> dict[str, Any]:
    """Return the arguments of a call as an object: the model may have written something else."""
    try:
        found = orjson.loads(arguments or "{}")
    except orjson.JSONDecodeError:
        found = None
    return found if isinstance(found, dict) else {"arguments": arguments}


def _block(part: dict[str, Any], param: str) -> Block:
    mark = mark_of(part)
    if part["type"] == "text":
        return {"type": "text", "text": part["text"], **mark}
    if part["type"] == "image_url":
        return {"type": "image", "source": _source(url_of(part), _IMAGES, f"{param}.image_url"), **mark}
    file = file_of(part, param)
    source = _source(file.get("file_data") or file["file_url"], _DOCUMENTS, f"{param}.file")
    title = {"title": file["filename"]} if isinstance(file.get("filename"), str) else {}
    return {"type": "document", "source": source, **title, **mark}


def _source(url: str, kinds: Mapping[str, str], param: str) -> dict[str, str]:
    found = base64_of(url)
    if found is None and not url.lower().startswith("data:"):
        return {"type": "url", "url": url}
    if found is None or found[0] not in kinds:
        raise refusal_of(param, f"must be base64 of the type {' or '.join(kinds)}, or an address.")
    return {"type": "base64", "media_type": kinds[found[0]], "data": found[1]}


def _offered(chat: dict[str, Any]) -> dict[str, Any]:
    tools = tools_of(chat, ("function",))
    offered = []
    for name in tools.offered if tools.among is None else tools.among:
        body = tools.offered[name][1]
        schema = {"type": "object", **(body.get("parameters") or NO_SCHEMA)}
        strict = {"strict": True} if body.get("strict") else {}
        offered.append(
            {"name": name, "input_schema": schema, **not_null(body, "description"), **strict, **mark_of(body)}
        )
    if not offered:
        return {}
    mode = tools.mode or "auto"
    choice: dict[str, Any] = {"type": "any" if mode == "required" else mode}
    if tools.one is not None:
        choice = {"type": "tool", "name": tools.one}
    if chat.get("parallel_tool_calls") is False and mode != "none":
        choice["disable_parallel_tool_use"] = True
    return {"tools": offered, **({"tool_choice": choice} if choice != {"type": "auto"} else {})}
