"""A provider's answer, of any quality, rewritten in the format of OpenAI's chat completions.

raw chunks -> ChunkWriter.feed() -> the chunks to send now -> blocks() -> bytes
              ChunkWriter.finish() -> the closing chunks, after the provider's clean end
              or answer() -> one JSON answer; plain_answer() is a shortcut for an ordinary one
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from svc.errors import UpstreamFault
from svc.inference.answer.events import Chunk, TextChunks, around_text
from svc.inference.answer.normalize import (
    GrowingCall,
    GrowingChoice,
    GrowingText,
    arguments_text,
    check_parts,
    delta_of,
    finish_reason,
    join_logprobs,
    json_bytes,
    numbered,
    split_text,
    text_size_bytes,
    texts_of_parts,
)
from svc.inference.answer.plain_answer import plain_text
from svc.inference.answer.token_usage import UsageReports, of_all_choices
from svc.inference.answer.upstream_errors import error_fault
from svc.inference.tokens import estimated_input_tokens, estimated_tokens
from svc.json_text import AT_ONCE_BYTES

# More than twice the longest answer of today's models.
ANSWER_LIMIT_BYTES = 8 * 1024 * 1024
_CHOICES_MAX = 128
_FIELD_OVERHEAD_BYTES = 200
_TOP_FIELDS = frozenset({"id", "object", "created", "model", "choices", "usage", "error"})
_CHOICE_FIELDS = frozenset({"index", "delta", "message", "text", "finish_reason", "logprobs", "usage", "error"})
_DELTA_FIELDS = frozenset({"role", "tool_calls", "function_call"})
_CALL_FIELDS = frozenset({"index", "id", "type", "function", "custom", "name", "arguments", "input"})


@dataclass(slots=True)
class _LastText:
    """The last raw chunk, if it was only a text, with its choice, the parts of the text, and the chunk sent for it.

    `before` and `after` are the block of that chunk without the text, once another chunk repeats it.
    """

    raw: dict[str, Any]
    choice: GrowingChoice
    parts: list[str]
    chunk: Chunk
    before: bytes = b""
    after: bytes = b""


class ChunkWriter:
    """Rewrites one answer of a provider, chunk by chunk.

    `request` is the caller's, from which the usage is estimated if the provider reports none. The finish chunks wait
    for `finish()`, so that a stream that is cut off after them never looks finished. `closing` has them, to be sent
    after the settlement.
    `text_bytes` is the size of all text so far, with reasoning and arguments. A choice whose text exceeds
    `choice_bytes` (set before the first `feed`) ends with `length` and sets `cut`. If `whole` is set, `feed` returns no
    chunks, and `answer()` returns everything at the end.
    """

    def __init__(self, id: str, created: int, model: str, request: dict[str, Any]) -> None:
        self.head: dict[str, Any] = {"id": id, "object": "chat.completion.chunk", "created": created, "model": model}
        self._include_usage = (request.get("stream_options") or {}).get("include_usage")
        self._request = request
        self._requested = int(self._request.get("n") or 1)
        self.reports = UsageReports(self._requested)
        self.whole = self.cut = self._closed = False
        self.text_bytes = self._kept_bytes = 0
        self._parts = 0  # of the current chunk
        self.choice_bytes = math.inf
        self._last: _LastText | None = None
        self._growing: tuple[GrowingChoice, GrowingText] | None = None  # for `grow`
        self.known_input: int | None = None
        self.estimated_from: Callable[[], dict[str, Any]] | None = None  # makes another request for the estimate
        self._final_usage: dict[str, Any] | None = None
        self._choices: dict[int, GrowingChoice] = {}
        self._waiting: dict[str, Any] = {}  # fields for the next chunk
        self._out: list[Chunk] = []  # the chunks of the current raw chunk
        self.closing: list[Any] = []  # those that `finish` has made, or the last events of an answer that passes

    @property
    def finished(self) -> bool:
        """Whether every requested choice has ended, or `finish()` was called."""
        reasons = [choice.finish_reason for choice in self._choices.values()]
        return self._closed or (len(reasons) >= self._requested and None not in reasons)

    @property
    def usage(self) -> dict[str, Any]:
        """The provider's report, normalized, or the estimate for the output so far."""
        if self._final_usage is not None:
            return self._final_usage
        usage = self.reports.normalized(self.estimated_input, estimated_tokens(self.text_bytes))
        if self._closed:
            if self._requested > 1 < len(self._choices) and not self.reports.of_each:
                usage = of_all_choices(usage, [choice.all_text() for choice in self._choices.values()])
            self._final_usage = usage
        return usage

    def estimated_input(self) -> int:
        if self.known_input is None:
            request = self.estimated_from() if self.estimated_from else self._request
            self.known_input = estimated_input_tokens(request)
        return self.known_input

    def feed(self, raw: Chunk | TextChunks) -> Sequence[Chunk | TextChunks]:
        """Return the chunks to send for a raw chunk, for several that repeat one, or for a raw `chat.completion`.

        Raises UpstreamFault: `status` for an error object, `cut` for a choice that broke off. `invalid` is an answer
        that is too long or not valid JSON.
        """
        chunks = self._read_repeats(raw) if isinstance(raw, TextChunks) else self._read(raw, raw)
        if self.text_bytes + self._kept_bytes > ANSWER_LIMIT_BYTES:
            raise UpstreamFault("invalid", "The answer is too long.")
        return chunks

    def grow(self, text: str) -> None:
        """Add to the text, or the arguments, that the last raw chunk of a `whole` answer has added to. Raises what
        `feed` does.
        """
        if self._growing is None or (choice := self._growing[0]).finish_reason is not None:
            return
        part = self._growing[1].take(choice.within(text))
        self.text_bytes += text_size_bytes(part)
        if choice.cut:
            choice.finish_reason, self.cut = "length", True
        if self.text_bytes + self._kept_bytes > ANSWER_LIMIT_BYTES:
            raise UpstreamFault("invalid", "The answer is too long.")

    def _read_repeats(self, repeats: TextChunks) -> Sequence[Chunk | TextChunks]:
        last, text = self._last, repeats.text
        size_bytes = len(text) if text.isascii() else text_size_bytes(text)
        if (
            last is None
            or last.raw is not repeats.like
            or size_bytes > AT_ONCE_BYTES
            or size_bytes > last.choice.left_bytes
        ):
            return [chunk for raw in repeats.raws() for chunk in self._read(repeats.like, raw)]
        last.parts.append(text)
        last.choice.left_bytes -= size_bytes
        self.text_bytes += size_bytes
        if not last.before:
            last.before, last.after = around_text(last.chunk)
        repeats.before, repeats.after = last.before, last.after
        return [repeats]

    def _read(self, like: dict[str, Any], raw: dict[str, Any]) -> list[Chunk]:
        """Read `raw`, and note it as the last text: texts like `like` repeat it."""
        if self.whole:
            return self._read_chunk(raw)
        late = self._waiting or any(choice.waiting for choice in self._choices.values())  # fields of earlier chunks
        chunks, self._last = self._read_chunk(raw), None
        if len(chunks) == 1 and not late:
            (sent,) = chunks[0]["choices"]
            choice = self._choices[sent["index"]]
            if choice.finish_reason is None and sent["delta"].keys() == {"content"}:
                text = choice.texts["content"]
                if not text.half:  # it is sent with the next text
                    self._last = _LastText(like, choice, text.parts, chunks[0])
        return chunks

    def _read_chunk(self, raw: dict[str, Any]) -> list[Chunk]:
        self._out = []
        self._note_fields(raw)
        choices = raw.get("choices")
        if isinstance(choices, list) and not self._closed:
            for position, choice in enumerate(choices if len(choices) == 1 else numbered(choices)):
                if isinstance(choice, dict):
                    self._read_choice(choice, position)
        if self._out:
            self._waiting = {}
        return self._out

    def finish(self) -> list[Chunk]:
        """Return the closing chunks after a clean end. Raises UpstreamFault `invalid` if there was no choice at all."""
        if not self._choices:
            raise UpstreamFault("invalid", "The answer holds no choice.")
        self._out = []
        if self._closed:
            return []
        self._closed, self._last, self.closing = True, None, self._out
        self._choices = dict(sorted(self._choices.items()))
        for choice in self._choices.values():
            for name, text in choice.texts.items():
                if rest := text.rest():
                    self._send(choice, {name: rest})
            for call in choice.sent_calls:
                if not choice.cut and (part := call.closing_part()):
                    self._send(choice, call.delta(part, {}))
            self._send(choice, {}, choice.reason())
        if self._include_usage and not self.whole:
            self._out.append({**self.head, **self._waiting, "choices": [], "usage": self.usage})
        return self._out

    def answer(self, apart: bool = False) -> tuple[dict[str, Any], bytes]:
        """Return the answer as one `chat.completion`, and as JSON, after a clean end; `apart` is for threads.

        Raises what `finish()` does, and UpstreamFault `invalid` for what JSON cannot represent.
        """
        self.finish()
        choices = [
            {"index": choice.index, "message": choice.message(), "logprobs": None, "finish_reason": choice.reason()}
            | choice.waiting
            for choice in self._choices.values()
        ]
        return self._completion(choices, apart)

    def plain_answer(self, raw: dict[str, Any]) -> tuple[dict[str, Any], bytes] | None:
        """Return the same as `feed` and `answer` for an answer of one text, or None. Raises the same faults."""
        if (plain := plain_text(raw)) is None:
            return None
        text, size_bytes, reason = plain
        if size_bytes > self.choice_bytes:
            return None
        self._closed, self.text_bytes = True, size_bytes
        self._note_fields(raw)
        message = {"role": "assistant", "content": text, "refusal": None}
        return self._completion([{"index": 0, "message": message, "logprobs": None, "finish_reason": reason}])

    def _completion(self, choices: list[dict[str, Any]], apart: bool = False) -> tuple[dict[str, Any], bytes]:
        answer = {**self.head, "object": "chat.completion", **self._waiting, "choices": choices, "usage": self.usage}
        return answer, json_bytes(answer, apart)

    def texts_after(self, sent: dict[str, int]) -> dict[str, str]:
        """Return what the texts of the first choice have gained, as its `texts_after` does."""
        choice = self._choices.get(0)
        return choice.texts_after(sent) if choice is not None else {}

    def content(self) -> dict[str, Any]:
        return (self._choices.get(0) or GrowingChoice(0)).message()

    def finish_reason(self) -> str | None:
        """Return the finish reason of the first choice, or None before `finish()`."""
        choice = self._choices.get(0)
        return choice.reason() if choice is not None and self._closed else None

    def _note_fields(self, raw: dict[str, Any]) -> None:
        """Note the fields of a raw chunk beside its choices."""
        self._parts = len(raw)
        check_parts(self._parts)
        if "usage" in raw:
            ended = None if raw.get("choices") else self._ended_choices()
            self.reports.note(raw["usage"], ended)
        if not _TOP_FIELDS.issuperset(raw):
            self._waiting |= _unknown(raw, _TOP_FIELDS)

    def _ended_choices(self) -> int:
        return sum(choice.finish_reason is not None for choice in self._choices.values())

    def _send(
        self, choice: GrowingChoice, delta: dict[str, Any], reason: str | None = None, *, later: bool = False
    ) -> None:
        """Add the chunk for a delta, with the waiting fields unless it is a `later` part of a long text."""
        if self.whole:
            return
        written = {"index": choice.index, "delta": delta, "logprobs": None, "finish_reason": reason}
        if choice.waiting and "role" not in delta:  # the opening delta has no other fields
            written |= choice.waiting
            choice.waiting = {}
        chunk = self.head.copy()
        if self._waiting and not later:
            chunk |= self._waiting
        chunk["choices"] = [written]
        if self._include_usage:
            chunk["usage"] = None
        self._out.append(chunk)

    def _read_choice(self, raw: dict[str, Any], position: int) -> None:
        if raw.get("error") or raw.get("object") == "error":
            raise error_fault(raw)
        delta = delta_of(raw)
        calls = delta.get("tool_calls") if delta else None
        self._parts += len(raw) + (len(delta) if delta else 0) + (len(calls) if type(calls) is list else 0)
        check_parts(self._parts)
        index = raw.get("index")
        if type(index) is not int or not 0 <= index < _CHOICES_MAX:
            index = position
        choice = self._choices.get(index)
        if choice is None:
            if delta is None or index >= _CHOICES_MAX:
                return
            choice = self._choices[index] = GrowingChoice(index, self.choice_bytes)
        if "usage" in raw:  # Moonshot puts it here
            self.reports.note(raw["usage"])
        if choice.finish_reason is not None:
            return
        if raw.get("logprobs") is not None or not _CHOICE_FIELDS.issuperset(raw):
            choice.waiting |= _unknown(raw, _CHOICE_FIELDS)
            if isinstance(logprobs := raw.get("logprobs"), dict):
                json_bytes(logprobs)
                choice.waiting["logprobs"] = join_logprobs(choice.waiting.get("logprobs", {}), logprobs)
        if delta is not None:
            self._read_delta(choice, delta)
        if choice.cut:
            choice.finish_reason, self.cut = "length", True
        elif (reason := raw.get("finish_reason")) is not None:
            choice.finish_reason = finish_reason(reason)

    def _read_delta(self, choice: GrowingChoice, raw: dict[str, Any]) -> None:
        if not choice.begun:
            choice.begun = True
            bare = (raw.get("tool_calls") or raw.get("function_call")) and not raw.get("content")
            self._send(choice, {"role": "assistant", "content": None if bare else ""})
        if type(raw.get("content")) is list:
            text, thinking = texts_of_parts(raw["content"])
            raw = {**raw, "content": text}
            if thinking:
                raw["reasoning_content"] = f"{raw.get('reasoning_content') or ''}{thinking}"
        self._read_fields(choice, raw)
        calls = raw.get("tool_calls")
        for position, call in enumerate(calls if isinstance(calls, list) else ()):
            if isinstance(call, dict):
                self._read_call(choice, call, position)
        if isinstance(old_call := raw.get("function_call"), dict):
            choice.function_call = choice.function_call or GrowingCall("function_call")
            self._read_part(choice, choice.function_call, old_call.get("name"), arguments_text(old_call), {})

    def _read_fields(self, choice: GrowingChoice, raw: dict[str, Any]) -> None:
        delta: dict[str, Any] = {}
        later: list[dict[str, Any]] = []  # of long texts
        for name, value in raw.items():
            if value is None or name in _DELTA_FIELDS:
                continue
            if type(value) is str:
                text = choice.texts.get(name)
                if text is None:
                    if not value:
                        continue
                    json_bytes(name)
                    self._kept_bytes += _FIELD_OVERHEAD_BYTES
                    text = choice.texts[name] = GrowingText()
                self._growing = choice, text
                if part := text.take(choice.within(value)):
                    self.text_bytes += text_size_bytes(part)
                    if len(part) > AT_ONCE_BYTES:
                        part, *parts = text.parts[-1:] = split_text(part)
                        later += [{name: text} for text in parts]
                    delta[name] = part
            elif name not in ("content", "refusal"):
                delta[name] = value
                self._keep({name: value})
                if isinstance(value, list) and isinstance(known := choice.extra.get(name), list):
                    known.extend(value)
                else:
                    choice.extra[name] = list(value) if isinstance(value, list) else value
        if delta:
            self._send(choice, delta)
        for part_delta in later:
            self._send(choice, part_delta, later=True)

    def _keep(self, unknown: dict[str, Any]) -> None:
        self._kept_bytes += len(json_bytes(unknown)) + _FIELD_OVERHEAD_BYTES

    def _read_call(self, choice: GrowingChoice, raw: dict[str, Any], position: int) -> None:
        kind = "custom" if isinstance(raw.get("custom"), dict) else "function"
        body = raw[kind] if isinstance(raw.get(kind), dict) else raw  # some send the function's fields flat
        name = body["name"] if isinstance(body.get("name"), str) and body["name"] else None
        part = arguments_text(body)
        call = choice.call_for(raw, position, kind, name, part)
        if extra := _unknown(raw, _CALL_FIELDS):
            self._keep(extra)
            call.extra |= extra
        self._read_part(choice, call, name, part, extra)

    def _read_part(self, choice: GrowingChoice, call: GrowingCall, name: Any, part: str, extra: dict[str, Any]) -> None:
        self._growing = choice, call.arguments
        part = call.arguments.take(choice.within(part))
        self.text_bytes += text_size_bytes(part)
        if call.name is None:
            if not isinstance(name, str) or not name:
                return
            json_bytes([name, call.id])
            call.name = name
            if call is not choice.function_call:
                call.index = len(choice.sent_calls)
                choice.sent_calls.append(call)
            self.text_bytes += text_size_bytes(name)
            self._send(choice, call.first_delta())
            part, extra = str(call.arguments), {}
        if part or extra:
            for place, text in enumerate(split_text(part)):
                self._send(choice, call.delta(text, {} if place else extra), later=place > 0)


def _unknown(raw: dict[str, Any], known: frozenset[str]) -> dict[str, Any]:
    """Return the fields of `raw` that are not `known`. Raises UpstreamFault `invalid`."""
    unknown = {name: value for name, value in raw.items() if value is not None and name not in known}
    json_bytes(unknown)
    return unknown
