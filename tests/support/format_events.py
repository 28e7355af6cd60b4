"""What a model says, as the answer and the events of each of the three formats of model servers.

Said: parts, a finish reason and counts of tokens -> answer_of(api, said, model), events_of(api, said, model)
chat_form(api, body): a Responses or Messages request as a chat request, as far as the tests' model server reads it
"""

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

APIS = ("chat", "responses", "messages")
PATHS = {"chat": "/chat/completions", "responses": "/responses", "messages": "/messages"}
Json = dict[str, Any]

_STOP_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}


@dataclass
class Said:
    """An answer. Each part is `{"thought", "seal"}`, `{"redacted"}`, `{"text"}`, `{"refusal"}`, `{"call", "name",
    "arguments"}` or `{"search", "found"}`. `input_tokens` are all: fresh, cached and written to the cache. Texts are
    streamed in pieces of `piece` characters.
    """

    parts: list[Json]
    finish: str = "stop"
    stop_sequence: str | None = None
    input_tokens: int = 7
    cached: int = 0
    written: int = 0
    output_tokens: int = 5
    reasoning_tokens: int = 0
    counted: bool = True  # whether the server reports usage
    piece: int = 5
    number: int = 1  # of the answer, in its ids: Claude Code joins messages with one id

    def calls(self) -> list[Json]:
        return [part for part in self.parts if "call" in part]

    def joined(self, name: str) -> str:
        return "".join(part[name] for part in self.parts if name in part)


def said_of(completion: Json) -> Said:
    """Return what a chat completion says."""
    choice, usage = completion["choices"][0], completion.get("usage")
    message = choice["message"]
    parts = [{"thought": message["reasoning_content"], "seal": ""}] if message.get("reasoning_content") else []
    parts += [{name: message[key]} for name, key in (("text", "content"), ("refusal", "refusal")) if message.get(key)]
    for number, call in enumerate(message.get("tool_calls") or []):
        function = call["function"]
        given = function["arguments"]
        arguments = given if isinstance(given, str) else json.dumps(given)
        parts.append({"call": call.get("id") or f"call_{number}", "name": function["name"], "arguments": arguments})
    said = Said(parts, choice.get("finish_reason") or "stop", counted=usage is not None)
    if usage:
        said.input_tokens, said.output_tokens = usage["prompt_tokens"], usage["completion_tokens"]
    return said


def answer_of(api: str, said: Said, model: str) -> Json:
    return {"chat": _completion, "responses": _response, "messages": _message}[api](said, model)


def events_of(api: str, said: Said, model: str) -> list[Json]:
    """Return the events of a stream; those of chat as if it asked for usage."""
    return list({"chat": _chunks, "responses": _response_events, "messages": _message_events}[api](said, model))


def _pieces(said: Said, text: str) -> list[str]:
    return [text[at : at + said.piece] for at in range(0, len(text), said.piece)]


# --- chat


def _chat_usage(said: Said) -> Json:
    return {
        "prompt_tokens": said.input_tokens,
        "completion_tokens": said.output_tokens,
        "total_tokens": said.input_tokens + said.output_tokens,
        "prompt_tokens_details": {"cached_tokens": said.cached, "cache_write_tokens": said.written},
        "completion_tokens_details": {"reasoning_tokens": said.reasoning_tokens},
    }


def _completion(said: Said, model: str) -> Json:
    calls = [
        {"id": part["call"], "type": "function", "function": {"name": part["name"], "arguments": part["arguments"]}}
        for part in said.calls()
    ]
    message: Json = {"role": "assistant", "content": said.joined("text") or None, "refusal": said.joined("refusal")}
    message["refusal"] = message["refusal"] or None
    message |= {"reasoning_content": said.joined("thought")} if said.joined("thought") else {}
    message |= {"tool_calls": calls} if calls else {}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": said.finish}
    head = {
        "id": f"chatcmpl-{said.number}",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [choice],
    }
    return head | ({"usage": _chat_usage(said)} if said.counted else {})


def _chunks(said: Said, model: str) -> Iterator[Json]:
    head = {"id": f"chatcmpl-{said.number}", "object": "chat.completion.chunk", "created": 1, "model": model}

    def chunk(delta: Json, finish: str | None = None) -> Json:
        return {**head, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    names = {"thought": "reasoning_content", "text": "content", "refusal": "refusal"}
    index = itertools.count()
    for part in said.parts:
        for kind in names.keys() & part.keys():
            for piece in _pieces(said, part[kind]):
                yield chunk({names[kind]: piece})
        if "call" in part:
            at, function = next(index), {"name": part["name"], "arguments": ""}
            yield chunk({"tool_calls": [{"index": at, "id": part["call"], "type": "function", "function": function}]})
            for piece in _pieces(said, part["arguments"]):
                yield chunk({"tool_calls": [{"index": at, "function": {"arguments": piece}}]})
    yield chunk({}, said.finish)
    if said.counted:
        yield {**head, "choices": [], "usage": _chat_usage(said)}


# --- Responses


def _response_usage(said: Said) -> Json:
    return {
        "input_tokens": said.input_tokens,
        "input_tokens_details": {"cached_tokens": said.cached, "cache_write_tokens": said.written},
        "output_tokens": said.output_tokens,
        "output_tokens_details": {"reasoning_tokens": said.reasoning_tokens},
        "total_tokens": said.input_tokens + said.output_tokens,
    }


def _items(said: Said) -> list[Json]:
    """Return the output items, whose ids are the same each time."""
    items: list[Json] = []
    for number, part in enumerate(said.parts):
        if "thought" in part or "redacted" in part:
            summary = [{"type": "summary_text", "text": part["thought"]}] if part.get("thought") else []
            seal = part.get("seal") or part.get("redacted") or None
            items.append(
                {"id": f"rs_{said.number}_{number}", "type": "reasoning", "summary": summary, "encrypted_content": seal}
            )
        elif "call" in part:
            named = {"call_id": part["call"], "name": part["name"], "arguments": part["arguments"]}
            items.append({"id": f"fc_{said.number}_{number}", "type": "function_call", "status": "completed", **named})
        elif "search" in part:
            action = {"type": "search", "query": part["search"], "sources": [{"type": "url", "url": part["found"]}]}
            items.append(
                {"id": f"ws_{said.number}_{number}", "type": "web_search_call", "status": "completed", "action": action}
            )
        else:
            content: Json = {"type": "output_text", "text": part.get("text"), "annotations": [], "logprobs": []}
            if "refusal" in part:
                content = {"type": "refusal", "refusal": part["refusal"]}
            body = {"role": "assistant", "content": [content]}
            items.append({"id": f"msg_{said.number}_{number}", "type": "message", "status": "completed", **body})
    if said.finish in ("length", "content_filter") and items and "status" in items[-1]:
        items[-1]["status"] = "incomplete"
    return items


def _response(said: Said, model: str, status: str = "") -> Json:
    reason = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(said.finish)
    if said.joined("refusal"):
        reason = None
    ended = status or ("incomplete" if reason else "completed")
    done = ended != "in_progress"
    return {
        "id": f"resp_{said.number}",
        "object": "response",
        "created_at": 1,
        "status": ended,
        "background": False,
        "completed_at": 2 if ended == "completed" else None,
        "error": None,
        "incomplete_details": {"reason": reason} if reason and done else None,
        "instructions": None,
        "max_output_tokens": None,
        "max_tool_calls": None,
        "model": model,
        "output": _items(said) if done else [],
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "prompt_cache_key": None,
        "reasoning": {"effort": "medium", "summary": None},
        "safety_identifier": None,
        "service_tier": "default",
        "store": False,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "tool_choice": "auto",
        "tools": [],
        "top_logprobs": 0,
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": _response_usage(said) if said.counted and done else None,
        "user": None,
        "metadata": {},
    }


def _response_events(said: Said, model: str) -> Iterator[Json]:
    number = itertools.count()
    for kind in ("response.created", "response.in_progress"):
        yield {"type": kind, "sequence_number": next(number), "response": _response(said, model, "in_progress")}
    whole = _response(said, model)
    for index, item in enumerate(whole["output"]):
        for event in _item_events(said, item):
            yield {**event, "output_index": index, "sequence_number": next(number)}
    yield {"type": f"response.{whole['status']}", "sequence_number": next(number), "response": whole}


def _item_events(said: Said, item: Json) -> Iterator[Json]:
    opened = {**item, "status": "in_progress"} if "status" in item else dict(item)
    place: Json = {"item_id": item["id"]}
    if item["type"] == "reasoning":
        opened |= {"summary": [], "encrypted_content": item["encrypted_content"] and item["encrypted_content"][:8]}
    elif item["type"] == "message":
        opened["content"] = []
    elif item["type"] == "function_call":
        opened["arguments"] = ""
    yield {"type": "response.output_item.added", "item": opened}
    if item["type"] == "message":
        (part,) = item["content"]
        kind, field_name = ("output_text", "text") if part["type"] == "output_text" else ("refusal", "refusal")
        place |= {"content_index": 0}
        yield {"type": "response.content_part.added", **place, "part": {**part, field_name: ""}}
        for piece in _pieces(said, part[field_name]):
            more = {"logprobs": [], "obfuscation": "x" * 3} if kind == "output_text" else {}
            yield {"type": f"response.{kind}.delta", **place, "delta": piece, **more}
        more = {"logprobs": []} if kind == "output_text" else {}
        yield {"type": f"response.{kind}.done", **place, field_name: part[field_name], **more}
        yield {"type": "response.content_part.done", **place, "part": part}
    elif item["type"] == "function_call":
        for piece in _pieces(said, item["arguments"]):
            yield {"type": "response.function_call_arguments.delta", **place, "delta": piece, "obfuscation": "xy"}
        named = {"name": item["name"], "arguments": item["arguments"]}
        yield {"type": "response.function_call_arguments.done", **place, **named}
    elif item["type"] == "web_search_call":
        for state in ("in_progress", "searching", "completed"):
            yield {"type": f"response.web_search_call.{state}", **place}
    for index, part in enumerate(item.get("summary", ())):
        where = {**place, "summary_index": index}
        yield {"type": "response.reasoning_summary_part.added", **where, "part": {**part, "text": ""}}
        for piece in _pieces(said, part["text"]):
            yield {"type": "response.reasoning_summary_text.delta", **where, "delta": piece, "obfuscation": "xyz"}
        yield {"type": "response.reasoning_summary_text.done", **where, "text": part["text"]}
        yield {"type": "response.reasoning_summary_part.done", **where, "part": part}
    yield {"type": "response.output_item.done", "item": item}


# --- Messages


def _message_usage(said: Said) -> Json:
    return {
        "input_tokens": said.input_tokens - said.cached - said.written,
        "cache_creation_input_tokens": said.written,
        "cache_read_input_tokens": said.cached,
        "cache_creation": {"ephemeral_5m_input_tokens": said.written, "ephemeral_1h_input_tokens": 0},
        "output_tokens": said.output_tokens,
        "service_tier": "standard",
    }


def _blocks(said: Said) -> Iterator[Json]:
    for number, part in enumerate(said.parts):
        if "thought" in part:
            yield {"type": "thinking", "thinking": part["thought"], "signature": part.get("seal", "")}
        elif "redacted" in part:
            yield {"type": "redacted_thinking", "data": part["redacted"]}
        elif "call" in part:
            yield {"type": "tool_use", "id": part["call"], "name": part["name"], "input": _object(part["arguments"])}
        elif "search" in part:
            call = {"id": f"srvtoolu_{said.number}_{number}", "name": "web_search", "input": {"query": part["search"]}}
            yield {"type": "server_tool_use", **call}
            result = {"type": "web_search_result", "url": part["found"], "title": "A page", "encrypted_content": "Eo4="}
            found = [{**result, "page_age": None}]
            yield {"type": "web_search_tool_result", "tool_use_id": call["id"], "content": found}
        else:
            yield {"type": "text", "text": part.get("text", part.get("refusal")), "citations": None}


def _object(arguments: str) -> Json:
    try:
        value = json.loads(arguments)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _message(said: Said, model: str) -> Json:
    usage = _message_usage(said)
    if searches := sum("search" in part for part in said.parts):
        usage["server_tool_use"] = {"web_search_requests": searches, "web_fetch_requests": 0}
    return {
        "id": f"msg_{said.number}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": list(_blocks(said)),
        "stop_reason": _stop_reason(said),
        "stop_sequence": said.stop_sequence,
        **({"usage": usage} if said.counted else {}),
    }


def _stop_reason(said: Said) -> str:
    if said.joined("refusal"):
        return "refusal"
    return "stop_sequence" if said.stop_sequence else _STOP_REASONS[said.finish]


def _message_events(said: Said, model: str) -> Iterator[Json]:
    whole = _message(said, model)
    opened = {**whole, "content": [], "stop_reason": None, "stop_sequence": None}
    if said.counted:
        opened["usage"] = {**whole["usage"], "output_tokens": 1}
        opened["usage"].pop("server_tool_use", None)
    yield {"type": "message_start", "message": opened}
    deltas = {"text": "text_delta", "thinking": "thinking_delta"}
    arguments = iter([part["arguments"] for part in said.calls()])
    for index, block in enumerate(whole["content"]):
        at = {"index": index}
        kind = block["type"]
        if kind in deltas:
            start = {**block, kind: ""} | ({"signature": ""} if kind == "thinking" else {})
            pieces = [{"type": deltas[kind], kind: piece} for piece in _pieces(said, block[kind])]
            if block.get("signature"):
                pieces.append({"type": "signature_delta", "signature": block["signature"]})
        elif kind in ("tool_use", "server_tool_use"):
            start, text = {**block, "input": {}}, json.dumps(block["input"])
            text = next(arguments) if kind == "tool_use" else text
            pieces = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *_pieces(said, text))]
        else:
            start, pieces = block, []
        yield {"type": "content_block_start", **at, "content_block": start}
        if index == 0:
            yield {"type": "ping"}
        for piece in pieces:
            yield {"type": "content_block_delta", **at, "delta": piece}
        yield {"type": "content_block_stop", **at}
    left_out = ("cache_creation", "service_tier")
    usage = {name: count for name, count in whole.get("usage", {}).items() if name not in left_out}
    delta = {"stop_reason": whole["stop_reason"], "stop_sequence": whole["stop_sequence"]}
    yield {"type": "message_delta", "delta": delta, **({"usage": usage} if usage else {})}
    yield {"type": "message_stop"}


# --- requests


def chat_form(api: str, body: Json) -> Json:
    """Return a request as a chat request: roles, texts, calls and results, functions, limit and effort."""
    if api == "chat":
        return body
    chat = {name: body[name] for name in ("model", "stream") if name in body}
    limit = body.get("max_output_tokens" if api == "responses" else "max_tokens")
    chat |= {"max_tokens": limit} if limit is not None else {}
    chat["messages"] = list(_from_items(body) if api == "responses" else _from_messages(body))
    tools = [
        tool
        for tool in body.get("tools") or ()
        if "name" in tool and tool.get("type", "custom") in ("function", "custom")
    ]
    schema = "parameters" if api == "responses" else "input_schema"
    functions = [{"name": tool["name"], "parameters": tool.get(schema)} for tool in tools]
    return chat | ({"tools": [{"type": "function", "function": one} for one in functions]} if functions else {})


def text_of(content: Any) -> str:
    """Return the text of a content: a string, or parts and blocks."""
    if isinstance(content, str):
        return content
    texts = (part.get("text") if isinstance(part, dict) else None for part in content or ())
    return "\n".join(text for text in texts if text)


def _from_items(body: Json) -> Iterator[Json]:
    if body.get("instructions"):
        yield {"role": "system", "content": body["instructions"]}
    items = body.get("input") or []
    if isinstance(items, str):
        items = [{"role": "user", "content": items}]
    turn: Json | None = None  # items of the model, one after another, are one turn
    for item in items:
        kind = item.get("type", "message")
        if kind in ("reasoning", "function_call") or (kind == "message" and item["role"] == "assistant"):
            turn = turn or {"role": "assistant", "content": "", "tool_calls": []}
            turn["content"] += text_of(item.get("content")) if kind == "message" else ""
            if kind == "function_call":
                function = {"name": item["name"], "arguments": item["arguments"]}
                turn["tool_calls"].append({"id": item["call_id"], "type": "function", "function": function})
            continue
        if turn:
            yield turn
            turn = None
        if kind == "function_call_output":
            yield {"role": "tool", "tool_call_id": item["call_id"], "content": text_of(item["output"])}
        elif kind == "message":
            yield {"role": item["role"], "content": text_of(item.get("content"))}
    if turn:
        yield turn


def _from_messages(body: Json) -> Iterator[Json]:
    if body.get("system"):
        yield {"role": "system", "content": text_of(body["system"])}
    for message in body.get("messages") or []:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in blocks:
            if block["type"] == "tool_result":
                yield {"role": "tool", "tool_call_id": block["tool_use_id"], "content": text_of(block.get("content"))}
        calls = [
            {
                "id": block["id"],
                "type": "function",
                "function": {"name": block["name"], "arguments": json.dumps(block["input"])},
            }
            for block in blocks
            if block["type"] == "tool_use"
        ]
        texts = [block["text"] for block in blocks if block["type"] == "text"]
        if message["role"] == "assistant":
            yield {"role": "assistant", "content": "\n".join(texts), **({"tool_calls": calls} if calls else {})}
        else:  # messages of a user, one after another, are blocks of one message in this format
            yield from ({"role": message["role"], "content": text} for text in texts)
