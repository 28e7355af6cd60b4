"""The answer of `POST /v1/responses`: one response object, or the events of its stream.

Each text is written as JSON once, and so are the fields that the response repeats from its request.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson
from orjson import Fragment

from svc.errors import ApiError
from svc.ids import random_base62
from svc.inference.answer import too_long
from svc.inference.answer.events import DONE, ascii_json, ascii_strings
from svc.inference.chat_call import ChatCall
from svc.inference.formats.answer import Block, BlockWriter, typed_event
from svc.inference.formats.hosted_search import citations, entries
from svc.inference.server_formats.seals import encoded

_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
_EMPTY = Fragment(b'""')
_MOST_LOGPROB = 1e6  # real ones are between -100 and 0, and JSON has no number for some others


class NamedTool(NamedTuple):
    """The name of a tool in the request. The model server may know it under another name."""

    name: str
    custom: bool = False
    namespace: str | None = None


class _Stream(NamedTuple):
    """A text of an item: a part in the list `holder`, or without `part` the field itself. `event` lacks its ending."""

    event: str
    field: str  # of the text in the part, and in the event at its end
    holder: str
    part: str = ""
    part_event: str = "content_part"


_TEXT = _Stream("output_text", "text", "content", "output_text")
_ARGUMENTS = _Stream("function_call_arguments", "arguments", "arguments")
_INPUT = _Stream("custom_tool_call_input", "input", "input")
_STREAMS = {
    "text": [_TEXT],
    "refusal": [_Stream("refusal", "refusal", "content", "refusal")],
    "reasoning": [
        _Stream("reasoning_text", "text", "content", "reasoning_text"),
        _Stream("reasoning_summary_text", "text", "summary", "summary_text", "reasoning_summary_part"),
    ],
    "call": [_ARGUMENTS],
}


@dataclass(eq=False)
class ResponseWriter(BlockWriter):
    """Writes one response. `tools` are the tools of the request by their names at the model server.

    `echo` are the fields repeated from the request, as JSON. With `summary`, reasoning is also returned as its own
    summary. `remember` gets the items of a complete answer, as JSON by their ids.
    """

    call: ChatCall
    echo: Mapping[str, bytes]
    tools: Mapping[str, NamedTool]
    summary: bool
    clock: Callable[[], float]
    remember: Callable[[dict[str, bytes]], None]

    def __post_init__(self) -> None:
        super().__init__(self.call)
        self._id = f"resp_{random_base62(32)}"
        self._echo = {name: Fragment(value) for name, value in self.echo.items()}
        if sum(map(len, self.echo.values())) > self.long_bytes:
            self.long_bytes = -1  # even a short answer is long with its echo
        self._sequence = 0
        self._templates: list[tuple[bytes, bytes, bytes]] = []  # the delta events of the open item

    def whole(self) -> dict[str, Any]:
        for block in self.blocks:
            self._begin(block)
            self._finish(block)
        return self._finished()

    def end(self) -> bytes:
        self._event(self._status(), response=self._finished())
        return self.parts.pop() + DONE

    def fault(self, error: ApiError) -> bytes:
        if not self.model:  # the client has only got pings
            self.model, self.created = self.call.chunk_writer.head["model"], self.call.chunk_writer.head["created"]
            self.begun()
        for block in self.blocks[self._open :]:
            if block.item:
                self._fill(block, "incomplete")
        self._event("failed", response=self._response("failed", error_of_response(error)))
        return b"".join([*self.parts, DONE])

    def late_fault(self, error: ApiError, events: int) -> bytes:
        return late_error(error, events)

    def _finished(self) -> dict[str, Any]:
        self.remember({block.item["id"]: orjson.dumps(block.item) for block in self.blocks})
        return self._response(self._status())

    def _status(self) -> str:
        return "incomplete" if self.finish_reason in _INCOMPLETE else "completed"

    def _response(self, status: str, error: dict[str, Any] | None = None) -> dict[str, Any]:
        return {
            "id": self._id,
            "object": "response",
            "created_at": self.created,
            "completed_at": max(int(self.clock()), self.created) if status == "completed" else None,
            "status": status,
            "error": error,
            "incomplete_details": {"reason": _INCOMPLETE[self.finish_reason or ""]} if status == "incomplete" else None,
            "model": _ascii(self.model),
            "output": [block.item for block in self.blocks if block.item],
            "usage": usage_of_response(self.usage) if self.usage and status in ("completed", "incomplete") else None,
            **self._echo,
        }

    # --- items

    def _begin(self, block: Block) -> None:
        """Make the item of a block, without its text."""
        fields: dict[str, Any]
        if block.kind == "call":
            tool, (stream,) = self.tools.get(block.name) or NamedTool(block.name), self._streams(block)
            prefix, kind = ("ctc", "custom_tool_call") if tool.custom else ("fc", "function_call")
            namespace = {} if tool.namespace is None else {"namespace": _ascii(tool.namespace)}
            fields = {"call_id": _ascii(block.call_id), "name": _ascii(tool.name), **namespace, stream.holder: ""}
        elif block.kind == "search":
            prefix, kind, fields = "ws", "web_search_call", {"action": {"type": "search", "query": ""}}
        elif block.kind == "reasoning":
            prefix, kind, fields = "rs", "reasoning", {"content": [], "summary": []}
        else:
            prefix, kind, fields = "msg", "message", {"role": "assistant", "content": []}
        block.item = {"id": f"{prefix}_{random_base62(32)}", "type": kind, "status": "in_progress", **fields}

    def _fill(self, block: Block, status: str) -> None:
        block.item["status"], text = status, self._text(block)
        if block.kind == "search":
            self._fill_search(block)
        elif block.kind == "text" and block.found:
            block.annotations = [
                {"type": "url_citation", "start_index": start, "end_index": end} | _ascii_fields(entry, "url", "title")
                for start, end, entry in citations(block.text, block.found)
            ]
        if block.seal is not None:
            block.item["encrypted_content"] = encoded(block.seal)
        for stream in self._streams(block):
            block.item[stream.holder] = [_part(block, stream, text)] if stream.part else text

    def _fill_search(self, block: Block) -> None:
        query = (block.arguments or {}).get("query")
        query = _ascii(query if isinstance(query, str) else "")
        action = {"type": "search", "query": query, "queries": [query]}
        if self.search is not None and self.search.with_sources and block.result:
            action["sources"] = [{"type": "url"} | _ascii_fields(one, "url") for one in entries(block.result)]
        block.item["action"] = action
        # A search has no status `incomplete`, also if the answer ends while it runs, or after it without a text.
        block.item["status"] = "completed" if block.result.get("ok") else "failed"

    def _finish(self, block: Block) -> None:
        self._fill(block, self._status() if block is self.blocks[-1] else "completed")

    def _is_custom(self, block: Block) -> bool:
        return block.kind == "call" and block.name in self.tools and self.tools[block.name].custom

    def _streams(self, block: Block) -> list[_Stream]:
        if self._is_custom(block):
            return [_INPUT]
        if block.is_sealed or block.kind == "search":
            return []
        return _STREAMS[block.kind] if self.summary else _STREAMS[block.kind][:1]

    def _text(self, block: Block) -> Fragment:
        """Return the text, the arguments, or the one argument of a custom tool. Without it, all arguments."""
        if not self._is_custom(block):
            return Fragment(block.json)
        given = (block.arguments or {}).get("input")
        return Fragment(ascii_strings([given if isinstance(given, str) else block.text])[0])

    # --- events

    def begun(self) -> None:
        response = Fragment(orjson.dumps(self._response("in_progress")))
        self._event("created", response=response)
        self._event("in_progress", response=response)

    def opened(self, block: Block) -> None:
        self._begin(block)
        self._event("output_item.added", output_index=block.index, item=block.item)
        if block.kind == "search":
            for state in ("in_progress", "searching"):
                self._event(f"web_search_call.{state}", output_index=block.index, item_id=block.item["id"])
        streams = self._streams(block)
        for stream in streams:
            if stream.part:
                self._event(f"{stream.part_event}.added", **_place(block, stream), part=_part(block, stream, _EMPTY))
        # The input of a custom tool is a part of the arguments, and is sent at their end.
        self._templates = [_template(block, stream, []) for stream in streams if stream is not _INPUT]

    def deltas(self, block: Block, tokens: Sequence[bytes], logprobs: list[Any] | None = None) -> None:
        for before, between, after in [_template(block, _TEXT, logprobs)] if logprobs else self._templates:
            numbered = enumerate(tokens, self._sequence)
            events = [b"%b%d%b%b%b" % (before, number, between, token, after) for number, token in numbered]
            self.parts.append(b"".join(events))
            self._sequence += len(tokens)

    def closed(self, block: Block) -> None:
        self._finish(block)
        if block.item["status"] == "completed" and block.kind == "search":
            self._event("web_search_call.completed", output_index=block.index, item_id=block.item["id"])
        for number, annotation in enumerate(block.annotations):
            place = _place(block, _TEXT) | {"annotation_index": number}
            self._event("output_text.annotation.added", **place, annotation=annotation)
        for stream in self._streams(block):
            place, text = _place(block, stream), self._text(block)
            more: dict[str, Any] = {}
            if stream is _INPUT:
                self._event(f"{stream.event}.delta", **place, delta=text)
            elif stream is _ARGUMENTS:
                more = {"name": block.item["name"]}
            elif stream is _TEXT:
                more = {"logprobs": _logprobs(block.logprobs)}
            self._event(f"{stream.event}.done", **place, **{stream.field: text}, **more)
            if stream.part:
                self._event(f"{stream.part_event}.done", **place, part=block.item[stream.holder][0])
        self._event("output_item.done", output_index=block.index, item=block.item)

    def _event(self, kind: str, **fields: Any) -> None:
        self.parts.append(typed_event(f"response.{kind}", sequence_number=self._sequence, **fields))
        self._sequence += 1


def error_of_response(error: ApiError) -> dict[str, Any]:
    """Return the `error` of a failed response."""
    code = "rate_limit_exceeded" if error.status == 429 else "server_error"
    if error.code == too_long.CODE:  # Codex shortens the conversation
        code = too_long.CODE
    return {"code": code, "message": _ascii(str(error))}


def late_error(error: ApiError, events: int) -> bytes:
    """Return the last events of a stream that has `events` before them, and no response that could fail."""
    fields = {name: error.error.get(name) for name in ("code", "message", "param")}
    return typed_event("error", sequence_number=events, **fields) + DONE


def _ascii(value: Any) -> Fragment:
    return Fragment(ascii_json(value))


def _ascii_fields(entry: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: _ascii(entry[name] or "") for name in names}


def _template(block: Block, stream: _Stream, logprobs: list[Any]) -> tuple[bytes, bytes, bytes]:
    """Return the parts of a delta event before its number, between its number and its text, and after the text."""
    more = {"logprobs": _logprobs(logprobs)} if stream is _TEXT else {}
    number, text = Fragment(b"\0"), Fragment(b"\1")
    place, kind = _place(block, stream), f"response.{stream.event}.delta"
    event = typed_event(kind, sequence_number=number, **place, delta=text, **more)
    before, _, rest = event.partition(b"\0")
    between, _, after = rest.partition(b"\1")
    return before, between, after


def _place(block: Block, stream: _Stream) -> dict[str, Any]:
    counter = {f"{stream.holder}_index": 0} if stream.part else {}
    return {"item_id": block.item["id"], "output_index": block.index, **counter}


def _part(block: Block, stream: _Stream, text: Fragment) -> dict[str, Any]:
    logprobs = [] if text is _EMPTY else _logprobs(block.logprobs)
    more = {"annotations": block.annotations, "logprobs": logprobs} if stream is _TEXT else {}
    return {"type": stream.part, stream.field: text, **more}


def _logprobs(found: Any, *, top: bool = True) -> list[dict[str, Any]]:
    """Return the log probabilities of chat in the form of Responses, which has the bytes of every token."""
    entries = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    entries = [one for one in entries if isinstance(one.get("token"), str) and type(one.get("logprob")) in (int, float)]
    return [
        {
            "token": _ascii(one["token"]),
            "logprob": one["logprob"],
            "bytes": [*one["token"].encode(errors="replace")],
            **({"top_logprobs": _logprobs(one.get("top_logprobs"), top=False)} if top else {}),
        }
        for one in entries
        if abs(one["logprob"]) <= _MOST_LOGPROB
    ]


def usage_of_response(usage: Mapping[str, Any]) -> dict[str, Any]:
    prompt, completion = usage.get("prompt_tokens_details") or {}, usage.get("completion_tokens_details") or {}
    return {
        "input_tokens": usage["prompt_tokens"],
        "input_tokens_details": {name: prompt.get(name, 0) for name in ("cached_tokens", "cache_write_tokens")},
        "output_tokens": usage["completion_tokens"],
        "output_tokens_details": {"reasoning_tokens": completion.get("reasoning_tokens", 0)},
        "total_tokens": usage["total_tokens"],
    }
