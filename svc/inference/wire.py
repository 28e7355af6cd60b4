"""What a provider answered, of any quality, written anew in the shape of OpenAI's chat completions.

raw dicts -> ChunkWriter.feed() -> the chunks to send now -> blocks() -> bytes
             ChunkWriter.finish() -> the closing chunks, after the provider's clean end
             or answer() -> one JSON answer, where nothing was to be sent on the way; an ordinary one is a plain_answer()
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from svc.errors import UpstreamFault
from svc.inference.blocks import Chunk, Texts, event
from svc.inference.normalize import (
    PIECE_CHARACTERS,
    GrowingCall,
    GrowingChoice,
    GrowingText,
    adds_up,
    arguments_text,
    check_parts,
    delta_of,
    finish_reason,
    in_pieces,
    join_logprobs,
    json_bytes,
    normalized_usage,
    numbered,
    text_size_bytes,
    texts_of_parts,
)
from svc.inference.plain_answer import plain_text
from svc.inference.repeats import Repeat
from svc.inference.tokens import estimated_input_tokens, estimated_tokens
from svc.inference.upstream_errors import told_in

# More than twice the longest answer of today's models; what goes on beyond is endless.
ANSWER_LIMIT_BYTES = 8 * 1024 * 1024
_CHOICES_MAX = 128
_FIELD_OVERHEAD_BYTES = 200
_TOP_FIELDS = frozenset({"id", "object", "created", "model", "choices", "usage", "error"})
_CHOICE_FIELDS = frozenset({"index", "delta", "message", "text", "finish_reason", "logprobs", "usage", "error"})
_DELTA_FIELDS = frozenset({"role", "tool_calls", "function_call"})
_CALL_FIELDS = frozenset({"index", "id", "type", "function", "custom", "name", "arguments", "input"})


@dataclass(slots=True)
class _Plain:
    """A raw chunk, the choice that it was a text of, that text as it grows, and the chunk that was sent of it: whose block has
    `before` and `after` around the text, once another repeats it."""

    raw: dict[str, Any]
    choice: GrowingChoice
    text: GrowingText
    chunk: Chunk
    before: bytes = b""
    after: bytes = b""

    def repeated(self) -> None:
        (choice,) = self.chunk["choices"]
        empty, other = (event({**self.chunk, "choices": [{**choice, "delta": {"content": text}}]}) for text in ("", "x"))
        # They differ behind the quote that opens the text. A search for `"content":""` could find another field's.
        place = next(place for place, (byte, others) in enumerate(zip(empty, other, strict=False)) if byte != others)
        self.before, self.after = empty[: place - 1], empty[place + 1 :]


class ChunkWriter:
    """Writes one answer of a provider anew, chunk by chunk.

    `request` is the caller's, from which the usage is estimated when the provider counts nothing. The finish chunks wait for
    `finish()`, so that a stream that is cut off after them never looks finished.
    `text_bytes` is the size of all text produced so far, reasoning and arguments included. A choice whose text goes beyond
    `choice_bytes`, where that is set before the first `feed`, ends there with `length`; `cut` tells of it. `finished` tells
    that all choices that were asked for have their end, or that `finish()` was called. Where `whole` is set, nothing is sent on
    the way: there are no chunks, and `answer()` tells it all in the end.
    """

    __slots__ = (
        *("choice_bytes", "cut", "head", "text_bytes", "whole", "_choices", "_closed", "_estimated_input"),
        *("_include_usage", "_kept_bytes", "_parts", "_plain", "_reported", "_request", "_waiting", "_whole_usage"),
    )

    def __init__(self, id: str, created: int, model: str, include_usage: bool, request: dict[str, Any]) -> None:
        self.head: dict[str, Any] = {"id": id, "object": "chat.completion.chunk", "created": created, "model": model}
        self._include_usage = include_usage
        self._request = request
        self.whole = self.cut = self._closed = False
        self.text_bytes = self._kept_bytes = self._parts = 0  # the parts are those of the chunk that is being read
        self.choice_bytes = math.inf
        self._plain: _Plain | None = None  # the last chunk, if it was a text and nothing else, and another may follow it
        self._estimated_input: int | None = None
        self._whole_usage: dict[str, Any] | None = None  # once it is closed: nothing is added to it then
        self._reported: dict[str, Any] = {}
        self._choices: dict[int, GrowingChoice] = {}
        self._waiting: dict[str, Any] = {}  # fields of the chunk that go out with the next one

    @property
    def finished(self) -> bool:
        reasons = [choice.finish_reason for choice in self._choices.values()]
        return self._closed or (len(reasons) >= (self._request.get("n") or 1) and None not in reasons)

    @property
    def usage(self) -> dict[str, Any]:
        """What the provider reported, normalized, or the estimate for what was produced so far."""
        if self._whole_usage is not None:
            return self._whole_usage
        told = self._reported
        usage = told.copy() if adds_up(told) else normalized_usage(told, self.estimated_input, estimated_tokens(self.text_bytes))
        if self._closed:
            self._whole_usage = usage
        return usage

    def estimated_input(self) -> int:
        """The tokens of the request where nobody has counted them."""
        if self._estimated_input is None:
            self._estimated_input = estimated_input_tokens(self._request)
        return self._estimated_input

    def feed(self, raw: dict[str, Any] | Repeat) -> Sequence[Chunk | Texts]:
        """The chunks that a raw chunk, several that repeat another, or a whole raw `chat.completion`, give to send now.

        Raises UpstreamFault: `status` for an error object, `cut` for a choice that broke off, `invalid` for an answer without
        end or one that JSON cannot carry.
        """
        chunks = self._read_repeat(raw) if isinstance(raw, Repeat) else self._read(raw, raw)
        if self.text_bytes + self._kept_bytes > ANSWER_LIMIT_BYTES:
            raise UpstreamFault("invalid", "The answer is too long.")
        return chunks

    def _read_repeat(self, repeat: Repeat) -> Sequence[Chunk | Texts]:
        """The chunks of further texts: together where nothing else is new and none is long or beyond what was granted."""
        plain, together = self._plain, repeat.text
        size_bytes = len(together) if together.isascii() else text_size_bytes(together)
        if plain is None or plain.raw is not repeat.like or size_bytes > PIECE_CHARACTERS or size_bytes > plain.choice.left_bytes:
            chunks: list[Chunk] = []
            for raw in repeat.raws():
                chunks += self._read(repeat.like, raw)
            return chunks
        plain.text.pieces.append(together)
        plain.choice.left_bytes -= size_bytes
        self.text_bytes += size_bytes
        if not plain.before:
            plain.repeated()
        return [Texts(repeat.texts, repeat.tokens, plain.before, plain.after)]

    def _read(self, like: dict[str, Any], raw: dict[str, Any]) -> list[Chunk]:
        """The chunks of `raw`; what it holds is `like` what comes next, but for the text, where that is all it holds."""
        if self.whole:
            return self._read_chunk(raw)
        late = self._waiting or any(choice.waiting for choice in self._choices.values())  # it came before and goes out now
        chunks, self._plain = self._read_chunk(raw), None
        if len(chunks) == 1 and not late and chunks[0]["choices"][0]["delta"].keys() == {"content"}:
            choice = self._choices[chunks[0]["choices"][0]["index"]]
            text = choice.texts["content"]
            if not text.half and choice.finish_reason is None:  # an emoji that waits for its half goes out with the next text
                self._plain = _Plain(like, choice, text, chunks[0])
        return chunks

    def _read_chunk(self, raw: dict[str, Any]) -> list[Chunk]:
        self._read_beside(raw)
        choices = raw.get("choices")
        if not isinstance(choices, list) or self._closed:
            return []
        chunks: list[Chunk] = []
        for position, choice in enumerate(choices if len(choices) == 1 else numbered(choices)):
            if isinstance(choice, dict):
                chunks += self._read_choice(choice, position)
        if chunks:
            self._waiting = {}
        return chunks

    def _read_beside(self, raw: dict[str, Any]) -> None:
        """Notes what a chunk says beside its choices."""
        if raw.get("error") or raw.get("object") == "error":
            raise told_in(raw)
        self._parts = len(raw)
        if "usage" in raw:
            self._note_usage(raw)
        if not _TOP_FIELDS.issuperset(raw):
            check_parts(self._parts)
            for name, value in raw.items():
                if name not in _TOP_FIELDS and value is not None:
                    json_bytes({name: value})
                    self._waiting[name] = value

    def finish(self) -> list[Chunk]:
        """The closing chunks after a clean end. Raises UpstreamFault `invalid` when there was no choice at all."""
        if not self._choices:
            raise UpstreamFault("invalid", "The answer holds no choice.")
        if self._closed:
            return []
        self._closed, self._plain = True, None
        chunks: list[Chunk] = []
        if len(self._choices) > 1:
            self._choices = dict(sorted(self._choices.items()))
        for choice in self._choices.values():
            for name, text in choice.texts.items():
                if text.half and (rest := text.rest()):
                    chunks += self._chunks(choice, {name: rest})
            for call in choice.sent_calls() if choice.calls else ():
                if not choice.cut and (piece := call.closing_piece()):
                    chunks += self._chunks(choice, call.delta(piece, {}))
            if not self.whole:
                chunks.append(self._chunk(choice, {}, choice.reason()))
        if self._include_usage and not self.whole:
            chunks.append({**self.head, **self._waiting, "choices": [], "usage": self.usage})
        return chunks

    def answer(self, apart: bool = False) -> tuple[dict[str, Any], bytes]:
        """All of it as one `chat.completion`, and that as JSON, after a clean end; `apart` from the event loop, that gets its
        turns meanwhile. Raises what `finish()` does, and UpstreamFault `invalid` for what JSON cannot carry."""
        self.finish()
        choices = []
        for choice in self._choices.values():  # in order since then
            told = {"index": choice.index, "message": choice.message(), "logprobs": None, "finish_reason": choice.reason()}
            choices.append(told | choice.waiting if choice.waiting else told)
        return self._answer(choices, apart)

    def plain_answer(self, raw: dict[str, Any]) -> tuple[dict[str, Any], bytes] | None:
        """What `feed` and `answer` make of an answer that came whole, where it is one text; None, and nothing done, for another.
        Raises what they do."""
        plain = plain_text(raw)
        if plain is None or plain.size_bytes > self.choice_bytes:
            return None
        self._read_beside(raw)
        self._closed, self.text_bytes = True, plain.size_bytes
        message = {"role": "assistant", "content": plain.text, "refusal": None}
        return self._answer([{"index": 0, "message": message, "logprobs": None, "finish_reason": plain.finish_reason}])

    def _answer(self, choices: list[dict[str, Any]], apart: bool = False) -> tuple[dict[str, Any], bytes]:
        answer = {**self.head, "object": "chat.completion", **self._waiting, "choices": choices, "usage": self.usage}
        return answer, json_bytes(answer, apart)

    def content(self, index: int = 0) -> dict[str, Any]:
        """The assistant's message of the choice `index` as far as it has come."""
        return (self._choices.get(index) or GrowingChoice(index)).message()

    def finish_reason(self, index: int = 0) -> str | None:
        """Why the choice `index` ended, as the closing chunks have said it; None before."""
        choice = self._choices.get(index)
        return choice.reason() if choice is not None and self._closed else None

    def _note_usage(self, raw: dict[str, Any]) -> None:
        if isinstance(usage := raw.get("usage"), dict):
            told = usage if None not in usage.values() else {name: value for name, value in usage.items() if value is not None}
            self._reported.update(told)

    def _chunks(self, choice: GrowingChoice, delta: dict[str, Any]) -> list[Chunk]:
        """The chunk of `delta`, or several that together say the same where a text in it is long."""
        if self.whole:
            return []
        for value in delta.values():
            if type(value) is str and len(value) > PIECE_CHARACTERS:
                first, *more = in_pieces(delta)
                return [self._chunk(choice, first), *(self._chunk(choice, piece, goes_on=True) for piece in more)]
        return [self._chunk(choice, delta)]

    def _chunk(self, choice: GrowingChoice, delta: dict[str, Any], reason: str | None = None, *, goes_on: bool = False) -> Chunk:
        written = {"index": choice.index, "delta": delta, "logprobs": None, "finish_reason": reason}
        # The opening delta carries nothing else; what waits belongs to the text or the end.
        if choice.waiting and "role" not in delta:
            written.update(choice.waiting)
            choice.waiting = {}
        chunk = self.head.copy()
        if self._waiting and not goes_on:
            chunk.update(self._waiting)
        chunk["choices"] = [written]
        if self._include_usage:
            chunk["usage"] = None
        return chunk

    def _read_choice(self, raw: dict[str, Any], position: int) -> list[Chunk]:
        if raw.get("error") or raw.get("object") == "error":
            raise told_in(raw)
        delta = delta_of(raw)
        calls = delta.get("tool_calls") if delta else None
        self._parts += len(raw) + (len(delta) if delta else 0) + (len(calls) if type(calls) is list else 0)
        check_parts(self._parts)
        choice = self._choice_at(raw.get("index"), position, begins=delta is not None)
        if choice is None:
            return []
        if "usage" in raw:
            self._note_usage(raw)  # Moonshot puts it here
        if choice.finish_reason is not None:
            return []
        if raw.get("logprobs") is not None or not _CHOICE_FIELDS.issuperset(raw):
            for name, value in raw.items():
                if value is not None and (name not in _CHOICE_FIELDS or (name == "logprobs" and isinstance(value, dict))):
                    json_bytes({name: value})
                    choice.waiting[name] = join_logprobs(choice.waiting.get(name), value) if name == "logprobs" else value
        chunks = [] if delta is None else self._read_delta(choice, delta)
        if choice.cut:
            choice.finish_reason, self.cut = "length", True
        elif (reason := raw.get("finish_reason")) is not None:
            choice.finish_reason = finish_reason(reason)
        return chunks

    def _choice_at(self, index: Any, position: int, *, begins: bool) -> GrowingChoice | None:
        if type(index) is not int or not 0 <= index < _CHOICES_MAX:
            index = position
        choice = self._choices.get(index)
        if choice is None and begins and index < _CHOICES_MAX:
            choice = self._choices[index] = GrowingChoice(index, self.choice_bytes)
        return choice

    def _read_delta(self, choice: GrowingChoice, raw: dict[str, Any]) -> list[Chunk]:
        chunks: list[Chunk] = []
        if not choice.begun:
            choice.begun = True
            if not self.whole:
                bare = (raw.get("tool_calls") or raw.get("function_call")) and not raw.get("content")
                chunks += self._chunks(choice, {"role": "assistant", "content": None if bare else ""})
        if type(raw.get("content")) is list:
            text, thinking = texts_of_parts(raw["content"])
            raw = {**raw, "content": text}
            if thinking:
                raw["reasoning_content"] = f"{raw.get('reasoning_content') or ''}{thinking}"
        if delta := self._read_fields(choice, raw):
            chunks += self._chunks(choice, delta)
        if "tool_calls" in raw or "function_call" in raw:
            chunks += self._read_calls(choice, raw)
        return chunks

    def _read_calls(self, choice: GrowingChoice, raw: dict[str, Any]) -> list[Chunk]:
        chunks: list[Chunk] = []
        calls = raw.get("tool_calls")
        for position, call in enumerate(calls if isinstance(calls, list) else ()):
            if isinstance(call, dict):
                chunks += self._read_call(choice, call, position)
        if isinstance(old_call := raw.get("function_call"), dict):
            choice.function_call = choice.function_call or GrowingCall("function_call")
            chunks += self._read_piece(choice, choice.function_call, old_call.get("name"), arguments_text(old_call), {})
        return chunks

    def _read_fields(self, choice: GrowingChoice, raw: dict[str, Any]) -> dict[str, Any]:
        """What is new in the fields of a delta beside its calls."""
        delta: dict[str, Any] = {}
        for name, value in raw.items():
            if value is None or name in _DELTA_FIELDS:
                continue
            if type(value) is str:
                text = choice.texts.get(name) or (self._new_text(choice, name) if value else None)
                if text is not None and (piece := text.take(choice.within(value))):
                    self.text_bytes += text_size_bytes(piece)
                    delta[name] = piece
            elif name not in ("content", "refusal"):
                delta[name] = value
                self._keep(choice, name, value)
        return delta

    def _new_text(self, choice: GrowingChoice, name: str) -> GrowingText:
        if not name.isascii():
            json_bytes(name)
        self._kept_bytes += _FIELD_OVERHEAD_BYTES
        text = choice.texts[name] = GrowingText()
        return text

    def _keep(self, choice: GrowingChoice, name: str, value: Any) -> None:
        """Keeps a field of the message that this service does not know; lists of several deltas are joined."""
        self._kept_bytes += len(json_bytes({name: value})) + _FIELD_OVERHEAD_BYTES
        known = choice.extra.get(name)
        if isinstance(known, list) and isinstance(value, list):
            known.extend(value)
        else:
            choice.extra[name] = list(value) if isinstance(value, list) else value

    def _read_call(self, choice: GrowingChoice, raw: dict[str, Any], position: int) -> list[Chunk]:
        kind = "custom" if isinstance(raw.get("custom"), dict) else "function"
        body = raw[kind] if isinstance(raw.get(kind), dict) else raw  # some send the function's fields flat
        name = body["name"] if isinstance(body.get("name"), str) and body["name"] else None
        piece = arguments_text(body)
        call = choice.call_for(raw, position, kind, name, piece)
        extra = {key: value for key, value in raw.items() if key not in _CALL_FIELDS and value is not None}
        if extra:
            self._kept_bytes += len(json_bytes(extra)) + _FIELD_OVERHEAD_BYTES
            call.extra.update(extra)
        return self._read_piece(choice, call, name, piece, extra)

    def _read_piece(self, choice: GrowingChoice, call: GrowingCall, name: Any, piece: str, extra: dict[str, Any]) -> list[Chunk]:
        chunks: list[Chunk] = []
        piece = call.arguments.take(choice.within(piece))
        self.text_bytes += text_size_bytes(piece)
        if call.name is None:
            if not isinstance(name, str) or not name:
                return []
            json_bytes([name, call.id])
            call.name = name
            call.index = len(choice.sent_calls())
            self.text_bytes += text_size_bytes(name)
            chunks += self._chunks(choice, call.first_delta())
            piece, extra = str(call.arguments), {}
        if (piece or extra) and not self.whole:
            first, *more = in_pieces({"piece": piece})
            chunks.append(self._chunk(choice, call.delta(first["piece"], extra)))
            chunks += [self._chunk(choice, call.delta(rest["piece"], {}), goes_on=True) for rest in more]
        return chunks
