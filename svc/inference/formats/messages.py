"""Anthropic's Messages format: a request as a chat request, and the answer of the chat call as a message or its events.

body, checked by svc/inference/formats/messages_shape.py -> translate() -> Translated -> MessagesAnswer
"""

import base64
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from orjson import Fragment

from svc import json_text
from svc.errors import ApiError, anthropic_error, invalid_value
from svc.ids import random_base62
from svc.inference.answer import events
from svc.inference.answer.token_usage import input_tokens
from svc.inference.cache_marks import NAME as MARK
from svc.inference.chat_call import ChatCall
from svc.inference.efforts import effort_of_budget
from svc.inference.formats import hosted_search
from svc.inference.formats.answer import Block, BlockWriter, typed_event
from svc.inference.formats.messages_shape import FIELDS
from svc.inference.formats.request import ChatMessages, Part, Translated, image_part, text_part
from svc.inference.passed_fields import not_null
from svc.inference.sent_body import CallerFormat
from svc.inference.server_formats import seals
from svc.inference.servers import BILLING_HEADER
from svc.inference.tokens import FRAME_TOKENS, estimated_input_tokens

_MOST_BLOCKS = 10_000
_CITED_CHARACTERS = 150
_IMAGE_TOKENS = 1024
_PDF = "data:application/pdf;base64,"
_CHOICES = {"auto": "auto", "any": "required", "none": "none"}
_NAMES = {"stop": "stop_sequences", "response_format": "output_config.format"}
_HOSTED = "Tools of Anthropic's servers do not run here."
_STOP_REASONS = {"length": "max_tokens", "content_filter": "refusal", "tool_calls": "tool_use"}
_JSON_DELTA = ("input_json_delta", "partial_json")
_DELTAS = {"reasoning": ("thinking_delta", "thinking"), "call": _JSON_DELTA, "search": _JSON_DELTA}

Content = str | list[dict[str, Any]]


def translate(
    request: dict[str, Any], *, marks: bool = False, with_seals: bool = False, searches: bool = False
) -> Translated:
    """Return a checked `request` as a chat request. Raises ApiError `invalid_value`.

    With `marks` of what to cache all texts are parts: a mark moves on with each request, and what it leaves must not
    change. Otherwise a message is one text, because some chat templates accept nothing else. `with_seals` keeps the
    signatures of thinking. With `searches`, the service has a search engine.
    """
    body = not_null(request, "model", "max_tokens", "temperature", "top_p", "top_k", "stream")
    body["messages"] = _messages(request, marks, with_seals)
    if stop_sequences := request.get("stop_sequences") or []:
        body["stop"] = stop_sequences
    output, thinking = request.get("output_config") or {}, request.get("thinking") or {"type": "disabled"}
    if output.get("effort"):
        body["reasoning_effort"] = output["effort"]
    elif thinking["type"] == "enabled" and thinking.get("budget_tokens"):
        body["reasoning_effort"] = effort_of_budget(thinking["budget_tokens"])
    if wanted := output.get("format") or request.get("output_format"):
        schema = {"name": "answer", "schema": wanted["schema"], "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    placed = ((tool, f"tools[{place}]") for place, tool in enumerate(request.get("tools") or ()))
    search = hosted_search.of_tools(placed) if searches else None
    ignored_tools = _add_tools(request, body, marks, hosted=search is not None)
    # `display: omitted` changes nothing: some model servers need their reasoning back, and it is kept nowhere but in
    # the client.
    reasoning = thinking["type"] != "disabled"
    without_place = {name: request[name] for name in request if name not in FIELDS}
    caller_format = CallerFormat(_NAMES, "auto" if reasoning else None)
    writer = partial(MessagesAnswer, reasoning, stop_sequences)
    return Translated(body, ignored_tools, writer, caller_format, without_place, search)


def _mark_of(block: dict[str, Any], marks: bool) -> dict[str, Any]:
    return {MARK: block[MARK]} if marks and isinstance(block.get(MARK), dict) else {}


def counted_tokens(request: dict[str, Any]) -> int:
    """Return the estimated input tokens of a checked `request`. Raises ApiError `invalid_value`."""
    chat = translate(request).chat
    contents = [message["content"] for message in chat["messages"] if isinstance(message["content"], list)]
    images = sum(part["type"] == "image_url" for content in contents for part in content)
    frames = len(chat["messages"]) + len(chat.get("tools", ()))
    return int(estimated_input_tokens(chat) + FRAME_TOKENS * frames + _IMAGE_TOKENS * images)


# --- tools


def _add_tools(request: dict[str, Any], body: dict[str, Any], marks: bool, *, hosted: bool) -> tuple[str, ...]:
    """Add the tools that a model can call to the chat request `body`. Return the names of the others.

    With `hosted`, web search is one that the service runs.
    """
    functions: dict[str, dict[str, Any]] = {}
    ignored: list[str] = []
    choice = request.get("tool_choice") or {"type": "auto"}
    found = {block["tool_name"] for block in _result_blocks(request) if block["type"] == "tool_reference"}
    found.add(choice.get("name"))
    for position, tool in enumerate(request.get("tools") or ()):
        if tool.get("defer_loading") and tool.get("name") not in found:
            continue
        searches = hosted and hosted_search.is_search(tool)
        if not searches and tool.get("type") not in (None, "custom"):
            ignored.append(tool.get("name") or tool["type"])
            continue
        name = hosted_search.NAME if searches else tool["name"]
        if name in functions:
            raise invalid_value(f"There is another tool with the name {name[:200]}.", f"tools[{position}].name")
        if searches:
            functions[name] = hosted_search.FUNCTION
            continue
        function = {"name": name, "parameters": tool["input_schema"], **not_null(tool, "description", "strict")}
        functions[name] = {"type": "function", "function": function, **_mark_of(tool, marks)}
    if choice["type"] == "tool" and choice["name"] not in functions:
        message = f"tool_choice.name must be the name of a tool with an input_schema. {_HOSTED}"
        raise invalid_value(message, "tool_choice.name")
    if choice["type"] == "any" and not functions:
        message = f"tool_choice must not be any without a tool that has an input_schema. {_HOSTED}"
        raise invalid_value(message, "tool_choice")
    if functions:
        body["tools"] = [*functions.values()]
        if request.get("tool_choice"):
            named = {"type": "function", "function": {"name": choice.get("name")}}
            body["tool_choice"] = _CHOICES.get(choice["type"], named)
        if choice.get("disable_parallel_tool_use"):
            body["parallel_tool_calls"] = False
    return tuple(ignored)


def _result_blocks(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for message in request["messages"]:
        for block in message["content"] if isinstance(message["content"], list) else ():
            if block["type"] == "tool_result" and isinstance(block.get("content"), list):
                yield from block["content"]


# --- messages


def _messages(request: dict[str, Any], marks: bool, with_seals: bool) -> list[dict[str, Any]]:
    messages = ChatMessages(with_seals=with_seals)
    _add_system(messages, request.get("system") or "", marks)
    count = 0
    for position, message in enumerate(request["messages"]):
        content, param = message["content"], f"messages[{position}].content"
        found = [text_part(content)] if isinstance(content, str) else content
        count += len(found) + sum(len(block["content"]) for block in found if isinstance(block.get("content"), list))
        if count > _MOST_BLOCKS:
            raise invalid_value(f"messages must hold at most {_MOST_BLOCKS:,} blocks.", "messages")
        if message["role"] == "system":
            _add_system(messages, content, marks)
        else:
            add = _add_user if message["role"] == "user" else _add_assistant
            add(messages, found, param, marks)
    translated = messages.all()
    if not translated:
        raise invalid_value("messages must hold a message with content.", "messages")
    last = translated[-1]
    if isinstance(last["content"], list):  # the mark of the whole request is for its last block
        last["content"] = _marked(last["content"], request, marks)
    return translated


def _add_system(messages: ChatMessages, content: Content, marks: bool) -> None:
    blocks = [text_part(content)] if isinstance(content, str) else content
    for block in blocks:
        text = block["text"]
        if text and not (text.startswith(BILLING_HEADER) and blocks is content):
            messages.add_system(_text_of(block, marks))


def _text_of(block: dict[str, Any], marks: bool) -> str | Part:
    return text_part(block["text"], **_mark_of(block, marks)) if marks else str(block["text"])


def _add_user(messages: ChatMessages, given: list[dict[str, Any]], param: str, marks: bool) -> None:
    parts: list[Part] = []
    results = 0
    for position, block in enumerate(given):
        at = f"{param}[{position}]"
        if block["type"] == "tool_result":
            results += 1
            failed = [text_part("The tool failed:")] if block.get("is_error") else []
            found = failed + _parts_of(block.get("content") or "", f"{at}.content")
            messages.add_result(block["tool_use_id"], _marked(found, block, marks), f"{at}.tool_use_id", apart=marks)
        else:
            parts += _marked(_parts(block, at), block, marks)
    if any(part["type"] != "text" for part in parts) or (marks and parts):
        messages.add_user(parts)
    elif parts or not results:  # one string: some chat templates accept nothing else
        messages.add_user("\n".join(part["text"] for part in parts))


def _marked(parts: list[Part], block: dict[str, Any], marks: bool) -> list[Part]:
    """Return `parts`, the last one with the mark of their block."""
    mark = _mark_of(block, marks)
    return [*parts[:-1], {**parts[-1], **mark}] if parts and mark else parts


def _add_assistant(messages: ChatMessages, given: list[dict[str, Any]], param: str, marks: bool) -> None:
    for position, block in enumerate(given):
        if block["type"] == "tool_use":
            arguments = json_text.dumps(block["input"]).decode()
            messages.add_call(block["id"], block["name"], arguments, f"{param}[{position}]", **_mark_of(block, marks))
        elif block["type"] == "text" and block["text"]:
            messages.add_said("content", _text_of(block, marks))
        elif block["type"] in ("thinking", "redacted_thinking"):
            messages.add_reasoning(block.get("thinking") or "", seals.of_callers_thinking(block))


def _parts_of(content: Content, param: str) -> list[Part]:
    if isinstance(content, str):
        return [text_part(content)]
    return [part for position, block in enumerate(content) for part in _parts(block, f"{param}[{position}]")]


def _parts(block: dict[str, Any], param: str) -> list[Part]:
    """Return the parts of a text, an image, a document or a tool reference."""
    if block["type"] == "text":
        return [text_part(block["text"])] if block["text"] else []
    if block["type"] == "tool_reference":
        return [text_part(f"The tool {block['tool_name']} is available now.")]
    source = block["source"]
    if block["type"] == "image":
        if source["type"] == "base64":
            return [image_part(f"data:{source['media_type']};base64,{source['data']}", param)]
        return [image_part(source["url"], f"{param}.source.url")]
    if source["type"] in ("base64", "url"):
        context = [text_part(block["context"])] if block.get("context") else []
        data = {"file_url": source["url"]} if source["type"] == "url" else {"file_data": f"{_PDF}{source['data']}"}
        return [*context, {"type": "file", "file": {"filename": block.get("title") or "document.pdf", **data}}]
    content = source["data"] if source["type"] == "text" else source["content"]
    heading = [text_part(block[name]) for name in ("title", "context") if block.get(name)]
    return heading + _parts_of(content, f"{param}.source.content")


# --- the answer


class MessagesAnswer(BlockWriter):
    """Writes the answer of `call`, with thinking blocks if `reasoning`. The request has these `stop_sequences`."""

    ping = b'event: ping\ndata: {"type":"ping"}\n\n'

    def __init__(self, reasoning: bool, stop_sequences: list[str], call: ChatCall) -> None:
        super().__init__(call)
        self.reasoning = reasoning
        self._stop_sequences = stop_sequences
        self._around_delta = (b"", b"")  # the bytes before and after the text in a delta of the open block

    def whole(self) -> dict[str, Any]:
        content = [self._content(block) for block in self.blocks]
        return self._message(content, **self._ending(), usage=self._with_searches(usage_of_message(self.usage)))

    def _with_searches(self, usage: dict[str, Any]) -> dict[str, Any]:
        """Add the number of searches to the usage."""
        made = sum(block.kind == "search_result" and bool(block.result["ok"]) for block in self.blocks)
        used = {"web_search_requests": made, "web_fetch_requests": 0}  # the SDK requires both
        return {**usage, "server_tool_use": used} if self.search else usage

    def searched(self, block: Block) -> None:
        super().searched(block)
        self._append(Block("search_result", len(self.blocks), call_id=block.call_id, result=block.result))

    def _message(self, content: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
        head = {"id": f"msg_{random_base62(24)}", "type": "message", "role": "assistant", "model": self.model}
        return {**head, "content": content, **fields}

    def _content(self, block: Block) -> dict[str, Any]:
        content = _started(block, block.text)
        if block.seal is not None and block.tokens:
            content["signature"] = seals.encoded(block.seal)
        if cited := self._citations(block):
            content["citations"] = cited
        if block.kind in ("call", "search") and block.arguments is not None:
            content["input"] = Fragment(block.text)
        elif block.kind == "call":
            self.call.log_fields["invalid_arguments"] = self.call.log_fields.get("invalid_arguments", 0) + 1
        return content

    def _ending(self) -> dict[str, Any]:
        reason = _STOP_REASONS.get(self.finish_reason or "", "end_turn")
        if any(block.kind == "refusal" for block in self.blocks):
            reason = "refusal"
        if reason == "end_turn" and self.stop_reason in self._stop_sequences:
            return {"stop_reason": "stop_sequence", "stop_sequence": self.stop_reason}
        return {"stop_reason": reason, "stop_sequence": None}

    def begun(self) -> None:
        usage = usage_of_message({"prompt_tokens": self.call.chunk_writer.estimated_input(), "completion_tokens": 0})
        usage["cache_creation"] = None  # not known yet
        message = self._message([], stop_reason=None, stop_sequence=None, usage=usage)
        self.parts.append(typed_event("message_start", message=message))

    def opened(self, block: Block) -> None:
        self.parts.append(typed_event("content_block_start", index=block.index, content_block=_started(block)))
        kind, name = _DELTAS.get(block.kind, ("text_delta", "text"))
        delta = {"type": kind, name: Fragment(b"\0")}
        before, _, after = typed_event("content_block_delta", index=block.index, delta=delta).partition(b"\0")
        self._around_delta = before, after

    def deltas(self, block: Block, tokens: Sequence[bytes], logprobs: list[Any] | None = None) -> None:
        before, after = self._around_delta
        self.parts.append(before + (after + before).join(tokens) + after)

    def closed(self, block: Block) -> None:
        if block.seal is not None and block.tokens:
            delta = {"type": "signature_delta", "signature": seals.encoded(block.seal)}
            self.parts.append(typed_event("content_block_delta", index=block.index, delta=delta))
        for citation in self._citations(block):
            cited = {"type": "citations_delta", "citation": citation}
            self.parts.append(typed_event("content_block_delta", index=block.index, delta=cited))
        self.parts.append(typed_event("content_block_stop", index=block.index))

    def _citations(self, block: Block) -> list[dict[str, Any]]:
        if block.kind != "text" or not block.found:
            return []
        cited = {entry["number"]: entry for _, _, entry in hosted_search.citations(block.text, block.found)}
        return [
            {
                "type": "web_search_result_location",
                "url": entry["url"],
                "title": entry["title"],
                "encrypted_index": _opaque(str(number)),
                "cited_text": (entry["snippet"] or "")[:_CITED_CHARACTERS],
            }
            for number, entry in cited.items()
        ]

    def end(self) -> bytes:
        usage = self._with_searches(usage_of_message(self.call.usage))
        return typed_event("message_delta", delta=self._ending(), usage=usage) + typed_event("message_stop")

    def fault(self, error: ApiError) -> bytes:
        return b"event: error\n" + events.event(anthropic_error(error, self.call.request_id))


def _started(block: Block, text: str = "") -> dict[str, Any]:
    if block.kind == "call":
        return {"type": "tool_use", "id": block.call_id, "name": block.name, "input": {}}
    if block.kind == "search":
        return {"type": "server_tool_use", "id": _search_id(block), "name": hosted_search.NAME, "input": {}}
    if block.kind == "search_result":
        content: Any = _results(block.result)
        return {"type": "web_search_tool_result", "tool_use_id": _search_id(block), "content": content}
    if block.seal is not None and block.is_sealed:
        return {"type": "redacted_thinking", "data": seals.encoded(block.seal)}
    if block.kind == "reasoning":
        return {"type": "thinking", "thinking": text, "signature": ""}
    return {"type": "text", "text": text}


def _search_id(block: Block) -> str:
    return f"srvtoolu_{block.call_id.removeprefix('call_')}"


def _opaque(text: str) -> str:
    return base64.b64encode(text.encode("utf-8", "replace")).decode()


def _results(result: dict[str, Any]) -> Any:
    if not result["ok"]:
        code = "max_uses_exceeded" if result["result"] == hosted_search.USED_UP else "unavailable"
        return {"type": "web_search_tool_result_error", "error_code": code}
    return [
        {
            "type": "web_search_result",
            "url": entry["url"],
            "title": entry["title"] or "",
            "encrypted_content": _opaque(entry["snippet"] or ""),
            "page_age": entry["published"],
        }
        for entry in hosted_search.entries(result)
    ]


def usage_of_message(usage: Mapping[str, Any]) -> dict[str, Any]:
    tokens = input_tokens(usage)
    return {
        "input_tokens": tokens.fresh,
        "output_tokens": usage["completion_tokens"],
        "cache_creation_input_tokens": tokens.written + tokens.written_1h,
        "cache_read_input_tokens": tokens.cached,
        "cache_creation": {
            "ephemeral_5m_input_tokens": tokens.written,
            "ephemeral_1h_input_tokens": tokens.written_1h,
        },
    }
