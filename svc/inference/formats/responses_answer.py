"""The answer of `POST /v1/responses`: one response object, or the events of its stream.

The JSON is put together from bytes: each text is written once, and what the response repeats of its request (`echo`) is ready.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import orjson

from svc.errors import ApiError
from svc.ids import random_base62
from svc.inference.blocks import DONE, ascii_json, ascii_strings
from svc.inference.chat_call import ChatCall
from svc.inference.formats.answer import Block, BlockWriter

_ID_CHARACTERS = 32
_PREFIXES = {"reasoning": "rs", "text": "msg", "refusal": "msg", "call": "fc"}
_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}


class NamedTool(NamedTuple):
    """How a tool is named in the request: the model server knows it under another name where a namespace makes that necessary."""

    name: str
    custom: bool = False
    namespace: str | None = None


class ResponseWriter(BlockWriter):
    """Writes one response. `tools` are those of the request, by the name that the model server knows.

    `echo` is what the response repeats of the request, as JSON without the braces. `summary` is whether reasoning is returned as
    its own summary, too. `remember` gets each item of a whole answer, by its id.
    """

    def __init__(
        self,
        call: ChatCall,
        *,
        echo: bytes,
        tools: dict[str, NamedTool],
        summary: bool,
        clock: Callable[[], float],
        remember: Callable[[dict[str, bytes]], None],
    ) -> None:
        super().__init__(call)
        self._id = "resp_" + random_base62(_ID_CHARACTERS)
        self._echo = echo
        self._tools = tools
        self._summary = summary
        self._clock = clock
        self._remember = remember
        self._sequence = 0
        self._items: list[bytes] = []  # those that are done
        self._templates: list[tuple[bytes, bytes, bytes]] = []  # of the deltas of the open item

    # --- one answer

    def answer(self, completion: dict[str, Any], written: bytes) -> bytes:
        self.read_whole(completion)
        self._items = [self._item(self._with_id(block), self._status()) for block in self.blocks]
        return self._finished()

    def end(self) -> bytes:
        response = self._finished()
        return self._response_event(f"response.{self._status()}", response) + DONE

    def fault(self, error: ApiError) -> bytes:
        code = "rate_limit_exceeded" if error.status == 429 else "server_error"
        items = self._items + [self._item(block, "incomplete") for block in self.blocks if block.id and not block.closed]
        response = self._response("failed", items, {"code": code, "message": str(error)})
        return self._response_event("response.failed", response) + DONE

    def _finished(self) -> bytes:
        self._remember({block.id: item for block, item in zip(self.blocks, self._items, strict=True)})
        return self._response(self._status(), self._items)

    def _status(self) -> str:
        return "incomplete" if self.finish_reason in _INCOMPLETE else "completed"

    def _response(self, status: str, items: Sequence[bytes], error: dict[str, str] | None = None) -> bytes:
        completed = status == "completed"
        reason = _INCOMPLETE[self.finish_reason or ""] if status == "incomplete" else None
        head = ascii_json(
            {
                "id": self._id,
                "object": "response",
                "created_at": self.created,
                "completed_at": max(int(self._clock()), self.created) if completed else None,
                "status": status,
                "error": error,
                "incomplete_details": reason and {"reason": reason},
                "model": self.model,
                "usage": _usage(self.usage) if self.usage and status in ("completed", "incomplete") else None,
            }
        )
        return b'%b,"output":[%b],%b}' % (head[:-1], b",".join(items), self._echo)

    # --- one item

    def _with_id(self, block: Block) -> Block:
        prefix = "ctc" if block.kind == "call" and self._tool(block).custom else _PREFIXES[block.kind]
        block.id = f"{prefix}_{random_base62(_ID_CHARACTERS)}"
        return block

    def _tool(self, block: Block) -> NamedTool:
        return self._tools.get(block.name) or NamedTool(block.name)

    def _item(self, block: Block, status: str, *, empty: bool = False) -> bytes:
        """Return an item as JSON; `empty` is one that begins."""
        text = b'""' if empty else block.json
        item: dict[str, Any] = {"id": block.id, "type": "message", "status": status}
        if block.kind == "call":
            tool = self._tool(block)
            item |= {"type": "custom_tool_call" if tool.custom else "function_call", "call_id": block.call_id, "name": tool.name}
            if tool.namespace is not None:
                item["namespace"] = tool.namespace
            field, value = (b"input", text if empty else _custom_input(block)) if tool.custom else (b"arguments", text)
            return b'%b,"%b":%b}' % (ascii_json(item)[:-1], field, value)
        parts = b"" if empty else self._part(block, text)
        if block.kind != "reasoning":
            return b'%b,"content":[%b]}' % (ascii_json({**item, "role": "assistant"})[:-1], parts)
        summary = b'{"type":"summary_text","text":%b}' % text if self._summary and not empty else b""
        return b'%b,"summary":[%b],"content":[%b]}' % (ascii_json({**item, "type": "reasoning"})[:-1], summary, parts)

    def _part(self, block: Block, text: bytes) -> bytes:
        if block.kind == "reasoning":
            return b'{"type":"reasoning_text","text":%b}' % text
        if block.kind == "refusal":
            return b'{"type":"refusal","refusal":%b}' % text
        return b'{"type":"output_text","text":%b,"annotations":[],"logprobs":%b}' % (text, _logprobs(block.logprobs))

    # --- events

    def begun(self) -> None:
        response = self._response("in_progress", [])
        self.parts += [self._response_event("response.created", response), self._response_event("response.in_progress", response)]

    def opened(self, block: Block) -> None:
        self._with_id(block)
        item = self._item(block, "in_progress", empty=True)
        self._write("response.output_item.added", b'"output_index":%d,"item":%b' % (block.index, item))
        self._templates = []
        if block.kind == "call":
            if not self._tool(block).custom:
                self._templates.append(self._template(block, "response.function_call_arguments.delta"))
            return
        self._write("response.content_part.added", self._place(block) + b',"part":' + self._part(block, b'""'))
        if block.kind == "reasoning":
            self._templates.append(self._template(block, "response.reasoning_text.delta"))
            if self._summary:
                place, part = self._summary_place(block), b'{"type":"summary_text","text":""}'
                self._write("response.reasoning_summary_part.added", place + b',"part":' + part)
                self._templates.append(self._template(block, "response.reasoning_summary_text.delta", place))
        elif block.kind == "refusal":
            self._templates.append(self._template(block, "response.refusal.delta"))
        else:
            self._templates.append(self._template(block, "response.output_text.delta", logprobs=b"[]"))

    def deltas(self, block: Block, tokens: Sequence[bytes], logprobs: list[Any] | None = None) -> None:
        templates = self._templates
        if logprobs:
            templates = [self._template(block, "response.output_text.delta", logprobs=_logprobs(logprobs))]
        for before, between, after in templates:
            numbered = enumerate(tokens, self._sequence)
            self.parts.append(b"".join([b"%b%d%b%b%b" % (before, number, between, token, after) for number, token in numbered]))
            self._sequence += len(tokens)

    def closed(self, block: Block) -> None:
        place, text = self._place(block), block.json
        if block.kind == "call":
            self._close_call(block, text)
        else:
            if block.kind == "text":
                self._write("response.output_text.done", b'%b,"text":%b,"logprobs":%b' % (place, text, _logprobs(block.logprobs)))
            elif block.kind == "refusal":
                self._write("response.refusal.done", b'%b,"refusal":%b' % (place, text))
            else:
                self._write("response.reasoning_text.done", b'%b,"text":%b' % (place, text))
                if self._summary:
                    of_summary, part = self._summary_place(block), b'{"type":"summary_text","text":%b}' % text
                    self._write("response.reasoning_summary_text.done", b'%b,"text":%b' % (of_summary, text))
                    self._write("response.reasoning_summary_part.done", b'%b,"part":%b' % (of_summary, part))
            self._write("response.content_part.done", b'%b,"part":%b' % (place, self._part(block, text)))
        item = self._item(block, "completed" if self.finish_reason not in _INCOMPLETE else "incomplete")
        self._items.append(item)
        self._write("response.output_item.done", b'"output_index":%d,"item":%b' % (block.index, item))

    def _close_call(self, block: Block, text: bytes) -> None:
        of_item = b'"item_id":"%b","output_index":%d' % (block.id.encode(), block.index)
        if self._tool(block).custom:
            given = _custom_input(block)
            self._write("response.custom_tool_call_input.delta", b'%b,"delta":%b' % (of_item, given))
            self._write("response.custom_tool_call_input.done", b'%b,"input":%b' % (of_item, given))
        else:
            name = ascii_json(self._tool(block).name)
            self._write("response.function_call_arguments.done", b'%b,"name":%b,"arguments":%b' % (of_item, name, text))

    def _place(self, block: Block) -> bytes:
        return b'"item_id":"%b","output_index":%d,"content_index":0' % (block.id.encode(), block.index)

    def _summary_place(self, block: Block) -> bytes:
        return self._place(block).replace(b"content_index", b"summary_index")

    def _template(
        self, block: Block, kind: str, place: bytes | None = None, logprobs: bytes | None = None
    ) -> tuple[bytes, bytes, bytes]:
        """Return what stands before the sequence number, between it and the text, and after the text of a delta."""
        place = (place or self._place(block)) if block.kind != "call" else self._place(block).removesuffix(b',"content_index":0')
        after = b"}\n\n" if logprobs is None else b',"logprobs":%b}\n\n' % logprobs
        return _before(kind), b',%b,"delta":' % place, after

    def _write(self, kind: str, fields: bytes) -> None:
        self.parts.append(b"%b%d,%b}\n\n" % (_before(kind), self._sequence, fields))
        self._sequence += 1

    def _response_event(self, kind: str, response: bytes) -> bytes:
        self._sequence += 1
        return b'%b%d,"response":%b}\n\n' % (_before(kind), self._sequence - 1, response)


def _before(kind: str) -> bytes:
    return b'event: %b\ndata: {"type":"%b","sequence_number":' % (kind.encode(), kind.encode())


def _custom_input(block: Block) -> bytes:
    """Return the one argument of a custom tool, or all arguments where the model has not given that one."""
    try:
        arguments = orjson.loads(block.text)
    except orjson.JSONDecodeError:
        arguments = None
    given = arguments.get("input") if isinstance(arguments, dict) else None
    return ascii_strings([given if isinstance(given, str) else block.text])[0]


def _logprobs(found: list[Any]) -> bytes:
    """Return the log probabilities of chat as those of Responses, which have the bytes of every token."""
    return ascii_json(
        [{**_token(one), "top_logprobs": [*map(_token, _tokens(one.get("top_logprobs")))]} for one in _tokens(found)]
    )


def _tokens(found: Any) -> list[dict[str, Any]]:
    entries = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    return [one for one in entries if isinstance(one.get("token"), str) and type(one.get("logprob")) in (int, float)]


def _token(one: dict[str, Any]) -> dict[str, Any]:
    return {"token": one["token"], "logprob": one["logprob"], "bytes": [*one["token"].encode(errors="replace")]}


def _usage(usage: dict[str, Any]) -> dict[str, Any]:
    """Return the usage of a chat answer as a response tells it."""
    prompt, completion = usage.get("prompt_tokens_details") or {}, usage.get("completion_tokens_details") or {}
    cached = {"cached_tokens": prompt.get("cached_tokens", 0), "cache_write_tokens": prompt.get("cache_write_tokens", 0)}
    return {
        "input_tokens": usage["prompt_tokens"],
        "input_tokens_details": cached,
        "output_tokens": usage["completion_tokens"],
        "output_tokens_details": {"reasoning_tokens": completion.get("reasoning_tokens", 0)},
        "total_tokens": usage["total_tokens"],
    }
