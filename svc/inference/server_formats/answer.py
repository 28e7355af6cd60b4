"""Answers and events of Responses and Messages servers as raw chunks of chat, as a chat server would have sent them.

one parsed event -> Reader.chunks() -> chunks for svc/inference/answer/chunk_writer.py, which repairs what is odd
a JSON answer    -> Reader.whole()  -> one `chat.completion`
Errors are raised as UpstreamFault. Values of a wrong type are left out.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from svc.errors import UpstreamFault
from svc.inference.answer.events import Chunk
from svc.inference.answer.normalize import json_bytes
from svc.inference.answer.token_usage import chat_usage
from svc.inference.answer.upstream_errors import error_fault
from svc.inference.server_formats import seals

Delta = dict[str, Any]
_STOP_REASONS = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
    "tool_use": "tool_calls",
}
# The field of chat for each text of a response.
_TEXTS = {
    "output_text": "content",
    "refusal": "refusal",
    "reasoning_text": "reasoning_content",
    "reasoning_summary_text": "reasoning_content",
}
_CALLS = {"function_call": "function", "custom_tool_call": "custom"}
_ARGUMENTS = {"function_call_arguments": "function", "custom_tool_call_input": "custom"}


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _place(event: dict[str, Any]) -> int | str | None:
    """Return the place of an item in a response. llama.cpp names no place, and a call only by its `call_id`."""
    item = _dict(event.get("item"))
    named = (event.get("output_index"), event.get("item_id"), item.get("id"), item.get("call_id"))
    return next((place for place in map(_key, named) if place is not None), None)


def _key(place: Any) -> int | str | None:
    return place if isinstance(place, int | str) else None


class Reader:
    """Reads one answer. `ended` is set by the format's last event."""

    def __init__(self) -> None:
        self.ended = False
        self._usage: dict[str, Any] = {}  # what the server has reported so far
        self._has_news = False  # of the usage
        self._calls: dict[Any, int] = {}  # the index of each tool call in chat, by its place in the format
        self._begun: set[Any] = set()  # the places with a part of their text

    def chunks(self, event: dict[str, Any]) -> list[Chunk]:
        """Return the raw chunks of one parsed event. Raises UpstreamFault for an error."""
        raise NotImplementedError

    def whole(self, document: dict[str, Any]) -> Chunk:
        """Return a JSON answer as one raw `chat.completion`. Raises UpstreamFault for an error, and for no answer."""
        raise NotImplementedError

    def _chunk(self, delta: Delta, reason: str | None = None, **fields: Any) -> Chunk:
        """Return a chunk. News of the usage come with the next one: without any chunk, a request can be sent again."""
        chunk: Chunk = {"choices": [{"index": 0, "delta": delta, "finish_reason": reason, **fields}]}
        if self._has_news:
            self._has_news = False
            chunk["usage"] = chat_usage(self._usage)
        return chunk

    def _note_usage(self, usage: Any) -> None:
        if found := {name: value for name, value in _dict(usage).items() if value is not None}:
            self._usage |= found
            self._has_news = True

    def _call(self, place: Any, call_id: Any, name: Any, kind: str = "function", text: str = "") -> Delta:
        """Return the first delta of a tool call."""
        index = self._calls.setdefault(place, len(self._calls))
        body = {"name": _text(name), "input" if kind == "custom" else "arguments": text}
        return {"tool_calls": [{"index": index, "id": _text(call_id), "type": kind, kind: body}]}

    def _more_of_call(self, place: Any, text: str, kind: str = "function") -> list[Chunk]:
        if not text or place not in self._calls:
            return []
        self._begun.add(place)
        body = {kind: {"input" if kind == "custom" else "arguments": text}}
        return [self._chunk({"tool_calls": [{"index": self._calls[place], **body}]})]

    def _completion(self, deltas: Iterable[Delta], reason: str, usage: Any, **fields: Any) -> Chunk:
        """Return `deltas` as one answer."""
        found: dict[str, list[Any]] = {}
        for delta in deltas:
            for name, value in delta.items():
                found.setdefault(name, []).append(value)
        joined = {
            name: "".join(values) if isinstance(values[0], str) else list(chain.from_iterable(values))
            for name, values in found.items()
        }
        self._note_usage(usage)
        choice = {"index": 0, "message": {"role": "assistant", **joined}, "finish_reason": reason, **fields}
        return {"object": "chat.completion", "choices": [choice], "usage": chat_usage(self._usage)}


class _MessagesReader(Reader):
    """Reads an answer of Messages, which is a list of blocks, one after another."""

    def __init__(self) -> None:
        super().__init__()
        self._block: dict[str, Any] = {}  # the open one
        self._thought: list[str] = []  # of the open block

    def chunks(self, event: dict[str, Any]) -> list[Chunk]:
        kind = event.get("type")
        if kind == "content_block_delta":
            return self._delta(_key(event.get("index")), _dict(event.get("delta")))
        if kind == "content_block_start":
            return self._start(_key(event.get("index")), _dict(event.get("content_block")))
        if kind == "content_block_stop":
            return self._stop(_key(event.get("index")))
        if kind == "message_start":
            self._note_usage(_dict(event.get("message")).get("usage"))
        elif kind == "message_delta":
            self._note_usage(event.get("usage"))
            return self._finish(_dict(event.get("delta")))
        elif kind == "message_stop":
            self.ended = True
        elif kind == "error":
            raise error_fault(event)
        return []

    def _delta(self, place: Any, delta: dict[str, Any]) -> list[Chunk]:
        if text := _text(delta.get("text")):
            return [self._chunk({"content": text})]
        if thought := _text(delta.get("thinking")):
            self._thought.append(thought)
            return [self._chunk({"reasoning_content": thought})]
        if signature := _text(delta.get("signature")):
            self._block["signature"] = _text(self._block.get("signature")) + signature
        return self._more_of_call(place, _text(delta.get("partial_json")))

    def _start(self, place: Any, block: dict[str, Any]) -> list[Chunk]:
        self._block, self._thought = block.copy(), []
        if block.get("type") == "tool_use":
            return [self._chunk(self._call(place, block.get("id"), block.get("name")))]
        if block.get("type") == "redacted_thinking":
            return self._sealed(block)
        return self._delta(place, {name: block.get(name) for name in ("text", "thinking")})

    def _stop(self, place: Any) -> list[Chunk]:
        block, self._block = self._block, {}
        if block.get("type") == "thinking":
            return self._sealed({**block, "thinking": "".join(self._thought)})
        if block.get("type") == "tool_use" and block.get("input") and place not in self._begun:
            return self._more_of_call(place, json_bytes(block["input"]).decode())
        return []

    def _sealed(self, block: dict[str, Any]) -> list[Chunk]:
        found = seals.of_thinking(block)
        return [self._chunk({seals.FIELD: found})] if found else []

    def _finish(self, delta: dict[str, Any]) -> list[Chunk]:
        reason = _text(delta.get("stop_reason"))
        if not reason:
            return []
        refusal = [self._chunk(found)] if (found := _refusal(delta)) else []
        return [*refusal, self._chunk({}, _STOP_REASONS.get(reason, "stop"), **_stopped_by(delta))]

    def whole(self, document: dict[str, Any]) -> Chunk:
        if document.get("type") == "error":
            raise error_fault(document)
        if not isinstance(blocks := document.get("content"), list):
            raise UpstreamFault("invalid", "The answer is no message.")
        deltas = [delta for place, block in enumerate(blocks) for delta in self._deltas(place, _dict(block))]
        reason = _STOP_REASONS.get(_text(document.get("stop_reason")), "stop")
        return self._completion([*deltas, _refusal(document)], reason, document.get("usage"), **_stopped_by(document))

    def _deltas(self, place: int, block: dict[str, Any]) -> list[Delta]:
        """Return the deltas of a whole block."""
        kind = block.get("type")
        if kind == "tool_use":
            text = json_bytes(_dict(block.get("input"))).decode()
            return [self._call(place, block.get("id"), block.get("name"), text=text)]
        if kind == "text":
            return [{"content": _text(block.get("text"))}]
        sealed = seals.of_thinking(block) if kind in ("thinking", "redacted_thinking") else []
        seal: list[Delta] = [{seals.FIELD: sealed}] if sealed else []
        return [{"reasoning_content": _text(block.get("thinking"))}, *seal] if kind == "thinking" else seal


def _refusal(ending: dict[str, Any]) -> Delta:
    text = _text(_dict(ending.get("stop_details")).get("explanation"))
    return {"refusal": text} if text and ending.get("stop_reason") == "refusal" else {}


def _stopped_by(ending: dict[str, Any]) -> dict[str, str]:
    """Return vLLM's field for the stop sequence that has ended the text."""
    found = _text(ending.get("stop_sequence"))
    return {"stop_reason": found} if found else {}


_TEXT_FIELDS = (("content", "text"), ("refusal", "refusal"))  # the field in chat, and in a part of Responses


class _ResponsesReader(Reader):
    """Reads a response, which is a list of items. Its text ends at one of `stops`: servers of this format have none."""

    def __init__(self, stops: Sequence[str]) -> None:
        super().__init__()
        self._reasoning: dict[Any, str] = {}  # by item, which of its two texts is read
        self._stops = _Stops(stops) if stops else None

    def chunks(self, event: dict[str, Any]) -> list[Chunk]:
        kind, place = _text(event.get("type")), _place(event)
        name, _, what = kind.removeprefix("response.").rpartition(".")
        if what == "delta":
            text = _text(event.get("delta"))
            if name in _ARGUMENTS:
                return self._more_of_call(place, text, _ARGUMENTS[name])
            return self._text_chunks(name, place, text, event.get("logprobs")) if name in _TEXTS else []
        if name == "output_item" and what in ("added", "done"):
            item = _dict(event.get("item"))
            return self._added(place, item) if what == "added" else self._done(place, item)
        if kind == "response.reasoning_summary_part.added":
            return self._text_chunks("reasoning_summary_text", place, "\n\n") if place in self._begun else []
        if kind in ("response.completed", "response.incomplete", "response.failed"):
            return self._finish(_dict(event.get("response")), what == "failed")
        if kind == "error":
            raise error_fault({"error": event.get("error") or event})
        return []

    def _text_chunks(self, name: str, place: Any, text: str, logprobs: Any = None) -> list[Chunk]:
        field = _TEXTS[name]
        if not text or (field == "reasoning_content" and self._reasoning.setdefault(place, name) != name):
            return []
        self._begun.add(place)
        fields: dict[str, Any] = {"logprobs": {"content": found}} if (found := _logprobs(logprobs)) else {}
        return self._sent([{field: text}], **fields)

    def _sent(self, deltas: list[Delta], **fields: Any) -> list[Chunk]:
        """Return the chunks of `deltas` up to a stop sequence, which ends the answer."""
        deltas, stopped = self._cut(deltas)
        chunks = [self._chunk(delta, **fields) for delta in deltas if any(delta.values())]
        if stopped:
            self.ended = True
            chunks.append(self._chunk({}, "stop", **stopped))
        return chunks

    def _added(self, place: Any, item: dict[str, Any]) -> list[Chunk]:
        kind = _CALLS.get(_text(item.get("type")))
        return [self._chunk(self._call(place, item.get("call_id"), item.get("name"), kind))] if kind else []

    def _done(self, place: Any, item: dict[str, Any]) -> list[Chunk]:
        """Return what of an item has not come in events before: the rest of a call, the seal of reasoning, or all."""
        kind = _CALLS.get(_text(item.get("type")))
        if kind and place in self._calls:
            text = "" if place in self._begun else _arguments(kind, item)
            return self._more_of_call(place, text, kind)
        if place in self._begun:
            return [self._chunk({seals.FIELD: found})] if (found := _seal(item)) else []
        self._begun.add(place)
        return self._sent(self._deltas(place, item))

    def _finish(self, response: dict[str, Any], failed: bool) -> list[Chunk]:
        if failed or response.get("error"):
            raise error_fault({"error": response.get("error") or "The response has failed."})
        self._note_usage(response.get("usage"))
        seen = self._begun or self._calls
        chunks = self._sent([] if seen else self._all_deltas(_list(response.get("output"))))
        if not self.ended:
            self.ended = True
            rest = self._rest()
            chunks += [self._chunk(delta) for delta in rest] + [self._chunk({}, self._reason(response))]
        return chunks

    def _cut(self, deltas: list[Delta]) -> tuple[list[Delta], dict[str, str]]:
        """Return `deltas` up to a stop sequence, and the field that names it."""
        if self._stops is None:
            return deltas, {}
        kept = []
        for delta in deltas:
            kept.append({"content": self._stops.take(delta["content"])} if "content" in delta else delta)
            if self._stops.found is not None:
                return kept, {"stop_reason": self._stops.found}
        return kept, {}

    def _rest(self) -> list[Delta]:
        """Return the end of the text, which could have been the beginning of a stop sequence."""
        return [{"content": self._stops.rest()}] if self._stops and self._stops.held else []

    def _reason(self, response: dict[str, Any]) -> str:
        if response.get("status") != "incomplete":
            return "tool_calls" if self._calls else "stop"
        reason = _dict(response.get("incomplete_details")).get("reason")
        return "content_filter" if reason == "content_filter" else "length"

    def whole(self, document: dict[str, Any]) -> Chunk:
        if not isinstance(document.get("output"), list):
            raise UpstreamFault("invalid", "The answer is no response.")
        if document.get("status") in ("failed", "cancelled") or document.get("error"):
            raise error_fault({"error": document.get("error") or "The response has failed."})
        items = document["output"]
        deltas, stopped = self._cut(self._all_deltas(items))
        deltas += [] if stopped else self._rest()
        parts = [_dict(part) for item in items for part in _list(_dict(item).get("content"))]
        found = [one for part in parts for one in _logprobs(part.get("logprobs"))]
        fields: dict[str, Any] = {"logprobs": {"content": found}} if found else {}
        reason = "stop" if stopped else self._reason(document)
        return self._completion(deltas, reason, document.get("usage"), **stopped, **fields)

    def _all_deltas(self, items: list[Any]) -> list[Delta]:
        return [delta for place, item in enumerate(items) for delta in self._deltas(place, _dict(item))]

    def _deltas(self, place: Any, item: dict[str, Any]) -> list[Delta]:
        """Return the deltas of a whole item."""
        kind = _text(item.get("type"))
        if kind in _CALLS:
            call = (item.get("call_id"), item.get("name"), _CALLS[kind], _arguments(_CALLS[kind], item))
            return [self._call(place, *call)]
        if kind == "reasoning":
            texts = _texts(item.get("content")) or ["\n\n".join(_texts(item.get("summary")))]
            seal: list[Delta] = [{seals.FIELD: found}] if (found := _seal(item)) else []
            return [*({"reasoning_content": text} for text in texts), *seal]
        parts = map(_dict, _list(item.get("content"))) if kind == "message" else ()
        return [{name: text} for part in parts for name, field in _TEXT_FIELDS if (text := _text(part.get(field)))]


def _texts(parts: Any) -> list[str]:
    return [text for part in _list(parts) if (text := _text(_dict(part).get("text")))]


def _seal(item: dict[str, Any]) -> list[seals.Seal]:
    return seals.of_item(item) if item.get("type") == "reasoning" else []


def _arguments(kind: str, item: dict[str, Any]) -> str:
    return _text(item.get("input" if kind == "custom" else "arguments"))


def _logprobs(entries: Any) -> list[dict[str, Any]]:
    """Return log probabilities of a response as chat has them, with the bytes of each token."""
    found = []
    for entry in map(_dict, _list(entries)):
        if isinstance(entry.get("token"), str):
            sizes = [*entry["token"].encode(errors="replace")]
            top = {"top_logprobs": _logprobs(entry["top_logprobs"])} if "top_logprobs" in entry else {}
            found.append({"token": entry["token"], "logprob": entry.get("logprob"), "bytes": sizes, **top})
    return found


class _Stops:
    """Finds the first of some stop sequences in a text that comes in parts. `held` may be the beginning of one."""

    def __init__(self, stops: Sequence[str]) -> None:
        self.held = ""
        self.found: str | None = None
        self._stops = stops
        self._longest = max(map(len, stops))

    def take(self, text: str) -> str:
        """Return the text that can be sent now."""
        text, self.held = self.held + text, ""
        places = ((text.find(stop), stop) for stop in self._stops)
        if found := [(place + len(stop), place, stop) for place, stop in places if place >= 0]:
            _, place, self.found = min(found)  # the one that is whole first
            return text[:place]
        for size in range(min(len(text), self._longest - 1), 0, -1):
            if any(stop.startswith(text[-size:]) for stop in self._stops):
                self.held = text[-size:]
                return text[:-size]
        return text

    def rest(self) -> str:
        held, self.held = self.held, ""
        return held


def reader_of(api: str, stops: Sequence[str] = ()) -> Reader:
    """Return a reader for the answer of a `responses` or `messages` server to a request with these stop sequences."""
    return _ResponsesReader(stops) if api == "responses" else _MessagesReader()
