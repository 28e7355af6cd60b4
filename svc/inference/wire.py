"""What a provider answered, of any quality, written anew in the shape of wire.md; and how large its input and output are.

raw dicts -> ChunkWriter.feed() -> the chunks to send now -> event() -> bytes
             ChunkWriter.finish() -> the closing chunks, after the provider's clean end
raw dict  -> completion() -> one JSON answer: the same reading, put together again
"""

import json
from typing import Any

import orjson

from svc.errors import UpstreamFault
from svc.inference.normalize import (
    Call,
    Choice,
    Text,
    arguments_text,
    finish_reason,
    joined_parts,
    json_bytes,
    mended_usage,
    text_size_bytes,
)

DONE = b"data: [DONE]\n\n"
# More than twice the longest answer of today's models; what goes on beyond is endless.
ANSWER_LIMIT_BYTES = 8 * 1024 * 1024
_CHOICES_MAX = 128
_FIELD_OVERHEAD_BYTES = 200
_TOP_FIELDS = frozenset({"id", "object", "created", "model", "choices", "usage", "error"})
_CHOICE_FIELDS = frozenset({"index", "delta", "message", "text", "finish_reason", "logprobs", "usage", "error"})
_DELTA_FIELDS = frozenset({"role", "tool_calls", "function_call"})
_CALL_FIELDS = frozenset({"index", "id", "type", "function", "custom", "name", "arguments", "input"})
_ascii_json = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


# --- events


def event(chunk: dict[str, Any]) -> bytes:
    """One block of a chat stream, in ASCII (wire.md 3 and 4)."""
    try:
        data = orjson.dumps(chunk)
    except TypeError:  # some 250 levels deep, or a lone surrogate: the slower way takes it
        data = _ascii_json(chunk).encode()
    if not data.isascii():
        data = _ascii_json(chunk).encode()
    return b"data: " + data + b"\n\n"


def error_event(error: dict[str, Any]) -> bytes:
    """The block that ends a stream in the middle (wire.md 27): `error` is the inner object, `DONE` follows."""
    return event({"error": error})


# --- sizes

# Beside the messages these reach the model's prompt.
_PROMPT_FIELDS = (
    *("tools", "functions", "response_format", "prediction", "documents"),
    *("chat_template", "chat_template_kwargs", "guided_json", "structured_outputs"),
)
_NO_TEXT = frozenset({"role", "type", "id", "tool_call_id", "index"})


def text_bytes(request: dict[str, Any]) -> int:
    """The UTF-8 bytes of all text that a model gets to read: an upper bound of its tokens (contract 6: 1 token a byte).

    Counted are the strings of the messages without roles, types, ids and images, and as JSON the tools and the other fields
    that reach the prompt. Files and audio count as the text that they arrive as. `request` has been checked.
    """
    total = sum(_text_bytes(message) for message in request["messages"])
    return total + sum(len(orjson.dumps(request[name])) for name in _PROMPT_FIELDS if request.get(name))


def _text_bytes(value: Any) -> int:
    if isinstance(value, str):
        return text_size_bytes(value)
    if isinstance(value, list):
        return sum(_text_bytes(item) for item in value)
    if isinstance(value, dict) and not _is_image(value):
        return sum(_text_bytes(item) for key, item in value.items() if key not in _NO_TEXT)
    return 0


def image_parts(request: dict[str, Any]) -> int:
    """How many images the messages hold (contract 6 counts 8,192 tokens for each). `request` has been checked."""
    contents = (message.get("content") for message in request["messages"])
    return sum(_is_image(part) for content in contents if isinstance(content, list) for part in content)


def _is_image(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") in ("image_url", "input_image", "image")


def estimated_tokens(size_bytes: int) -> int:
    """The tokens of a text that nobody counted: one for each 4 bytes, rounded up (contract 6)."""
    return -(-size_bytes // 4)


# --- streams


class ChunkWriter:
    """Writes one answer of a provider anew, chunk by chunk (wire.md 8 and 10-15).

    `request` is the caller's, from which the usage is estimated when the provider counts nothing. The finish chunks wait for
    `finish()`, so that a stream that is cut off after them never looks finished (wire.md 27).
    `text_bytes` is the size of all text produced so far, reasoning and arguments included; `finished` tells that the provider
    has given every choice its finish reason, or that `finish()` was called.
    """

    def __init__(self, id: str, created: int, model: str, include_usage: bool, request: dict[str, Any]) -> None:
        self._head = {"id": id, "object": "chat.completion.chunk", "created": created, "model": model}
        self._include_usage = include_usage
        self._request = request
        self._reported: dict[str, Any] = {}
        self._choices: dict[int, Choice] = {}
        self._waiting: dict[str, Any] = {}  # fields of the chunk that go out with the next one
        self._closed = False
        self._kept_bytes = 0
        self.text_bytes = 0

    @property
    def finished(self) -> bool:
        return self._closed or (bool(self._choices) and all(c.finish_reason is not None for c in self._choices.values()))

    @property
    def usage(self) -> dict[str, Any]:
        """What the provider reported, mended, or the estimate for what was produced so far (wire.md 9)."""
        return mended_usage(
            self._reported, lambda: estimated_tokens(text_bytes(self._request)), estimated_tokens(self.text_bytes)
        )

    def feed(self, raw: dict[str, Any]) -> list[dict[str, Any]]:
        """The chunks that a raw chunk, or a whole raw `chat.completion`, gives to send now.

        Raises UpstreamFault: `status` (502) for an error object, `cut` for a choice that broke off, `invalid` for an answer
        without end or one that JSON cannot carry.
        """
        _refuse_error(raw)
        self._note_usage(raw)
        for name, value in raw.items():
            if name not in _TOP_FIELDS and value is not None:
                json_bytes({name: value})
                self._waiting[name] = value
        chunks: list[dict[str, Any]] = []
        choices = raw.get("choices")
        if isinstance(choices, list) and not self._closed:
            for position, choice in enumerate(choices if len(choices) == 1 else _numbered(choices)):
                if isinstance(choice, dict):
                    self._read_choice(choice, position, chunks)
            if self.text_bytes + self._kept_bytes > ANSWER_LIMIT_BYTES:
                raise UpstreamFault("invalid", "The answer is too long.")
        if chunks:
            self._waiting = {}
        return chunks

    def finish(self) -> list[dict[str, Any]]:
        """The closing chunks after a clean end. Raises UpstreamFault `invalid` when there was no choice at all."""
        if not self._choices:
            raise UpstreamFault("invalid", "The answer holds no choice.")
        chunks: list[dict[str, Any]] = []
        if self._closed:
            return chunks
        self._closed = True
        for _, choice in sorted(self._choices.items()):
            for name, text in choice.texts.items():
                if rest := text.rest():
                    chunks.append(self._chunk(choice, {name: rest}))
            for call in choice.sent_calls():
                if piece := call.closing_piece():
                    chunks.append(self._chunk(choice, call.delta(piece, {})))
            chunks.append(self._chunk(choice, {}, choice.reason()))
        if self._include_usage:
            chunks.append({**self._head, **self._waiting, "choices": [], "usage": self.usage})
        return chunks

    def content(self, index: int = 0) -> dict[str, Any]:
        """The assistant's message of the choice `index` as far as it has come: a `message` of wire.md 8, 13 and 14."""
        return (self._choices.get(index) or Choice(index)).message()

    def finish_reason(self, index: int = 0) -> str | None:
        """Why the choice `index` ended, as the closing chunks have said it; None before."""
        choice = self._choices.get(index)
        return choice.reason() if choice is not None and self._closed else None

    def _note_usage(self, raw: dict[str, Any]) -> None:
        usage = raw.get("usage")
        if isinstance(usage, dict):
            self._reported.update((name, value) for name, value in usage.items() if value is not None)

    def _chunk(self, choice: Choice, delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        written = {"index": choice.index, "delta": delta, "logprobs": None, "finish_reason": reason}
        # The opening delta carries nothing else; what waits belongs to the text or the end.
        if choice.waiting and "role" not in delta:
            written.update(choice.waiting)
            choice.waiting = {}
        chunk = {**self._head, **self._waiting, "choices": [written]}
        if self._include_usage:
            chunk["usage"] = None
        return chunk

    def _read_choice(self, raw: dict[str, Any], position: int, chunks: list[dict[str, Any]]) -> None:
        _refuse_error(raw)
        delta = raw.get("delta")
        if not isinstance(delta, dict):
            delta = raw.get("message")
        if not isinstance(delta, dict):
            delta = {"content": raw["text"]} if isinstance(raw.get("text"), str) else None
        index = raw.get("index")
        if type(index) is not int or not 0 <= index < _CHOICES_MAX:
            index = position
        choice = self._choices.get(index)
        if choice is None:
            if delta is None or index >= _CHOICES_MAX:
                return
            choice = self._choices[index] = Choice(index)
        self._note_usage(raw)  # Moonshot puts it here
        if choice.finish_reason is not None:
            return
        for name, value in raw.items():
            if name not in _CHOICE_FIELDS and value is not None:
                json_bytes({name: value})
                choice.waiting[name] = value
        if isinstance(raw.get("logprobs"), dict):
            json_bytes(raw["logprobs"])
            choice.waiting["logprobs"] = raw["logprobs"]
        if delta is not None:
            self._read_delta(choice, delta, chunks)
        choice.finish_reason = finish_reason(raw.get("finish_reason"))

    def _read_delta(self, choice: Choice, raw: dict[str, Any], chunks: list[dict[str, Any]]) -> None:
        if not choice.begun:
            choice.begun = True
            bare = (raw.get("tool_calls") or raw.get("function_call")) and not raw.get("content")
            chunks.append(self._chunk(choice, {"role": "assistant", "content": None if bare else ""}))
        delta: dict[str, Any] = {}
        for name, value in raw.items():
            if name in _DELTA_FIELDS or value is None:
                continue
            if name == "content" and type(value) is not str:
                value = joined_parts(value)
            if type(value) is str:
                if piece := self._take_text(choice, name, value):
                    delta[name] = piece
            elif name != "refusal":
                delta[name] = value
                self._keep(choice, name, value)
        if delta:
            chunks.append(self._chunk(choice, delta))
        calls = raw.get("tool_calls")
        for position, call in enumerate(calls if isinstance(calls, list) else ()):
            if isinstance(call, dict):
                self._read_call(choice, call, position, chunks)
        if isinstance(old_call := raw.get("function_call"), dict):
            choice.function_call = choice.function_call or Call("function_call")
            self._read_piece(choice, choice.function_call, old_call.get("name"), arguments_text(old_call), {}, chunks)

    def _take_text(self, choice: Choice, name: str, value: str) -> str:
        text = choice.texts.get(name)
        if text is None:
            if not value:
                return ""
            json_bytes(name)
            text = choice.texts[name] = Text()
            self._kept_bytes += _FIELD_OVERHEAD_BYTES
        piece = text.take(value)
        self.text_bytes += text_size_bytes(piece)
        return piece

    def _keep(self, choice: Choice, name: str, value: Any) -> None:
        """Keeps a field of the message that this service does not know; lists of several deltas are joined."""
        self._kept_bytes += len(json_bytes({name: value})) + _FIELD_OVERHEAD_BYTES
        known = choice.extra.get(name)
        if isinstance(known, list) and isinstance(value, list):
            known.extend(value)
        else:
            choice.extra[name] = list(value) if isinstance(value, list) else value

    def _read_call(self, choice: Choice, raw: dict[str, Any], position: int, chunks: list[dict[str, Any]]) -> None:
        kind = "custom" if isinstance(raw.get("custom"), dict) else "function"
        body = raw[kind] if isinstance(raw.get(kind), dict) else raw  # some send the function's fields flat
        name = body["name"] if isinstance(body.get("name"), str) and body["name"] else None
        piece = arguments_text(body)
        call = choice.call_for(raw, position, kind, name, piece)
        extra = {key: value for key, value in raw.items() if key not in _CALL_FIELDS and value is not None}
        if extra:
            self._kept_bytes += len(json_bytes(extra)) + _FIELD_OVERHEAD_BYTES
            call.extra.update(extra)
        self._read_piece(choice, call, name, piece, extra, chunks)

    def _read_piece(
        self, choice: Choice, call: Call, name: Any, piece: str, extra: dict[str, Any], chunks: list[dict[str, Any]]
    ) -> None:
        piece = call.arguments.take(piece)
        self.text_bytes += text_size_bytes(piece)
        if call.name is None:
            if not isinstance(name, str) or not name:
                return
            json_bytes([name, call.id])
            call.name = name
            call.index = len(choice.sent_calls())
            self.text_bytes += text_size_bytes(name)
            chunks.append(self._chunk(choice, call.first_delta()))
            piece, extra = str(call.arguments), {}
        if piece or extra:
            chunks.append(self._chunk(choice, call.delta(piece, extra)))


# --- answers


def completion(raw: dict[str, Any], *, id: str, created: int, model: str, request: dict[str, Any]) -> dict[str, Any]:
    """One `chat.completion` (wire.md 8, 9, 11, 13, 14) out of a raw one, or out of one whose `choices` are a stream's deltas.

    `request` as in ChunkWriter. Raises UpstreamFault: `status` (502) for an error object, `invalid` when there is no usable
    choice or JSON cannot carry the answer, `cut` when it broke off.
    """
    writer = ChunkWriter(id, created, model, False, request)
    choices: dict[int, dict[str, Any]] = {}
    for chunk in writer.feed(raw) + writer.finish():
        for part in chunk["choices"]:
            choice = choices.setdefault(part["index"], {"index": part["index"], "message": None, "logprobs": None})
            choice.update(part, logprobs=_joined_logprobs(choice["logprobs"], part["logprobs"]))
    for index, choice in choices.items():
        del choice["delta"]
        choice["message"] = writer.content(index)
    extra = {name: value for name, value in raw.items() if name not in _TOP_FIELDS and value is not None}
    head = {"id": id, "object": "chat.completion", "created": created, "model": model}
    answer = {**head, **extra, "choices": [choices[index] for index in sorted(choices)], "usage": writer.usage}
    json_bytes(answer)  # raises before the 200
    return answer


def _joined_logprobs(known: Any, more: Any) -> Any:
    if known is None or more is None:
        return known or more
    lists = {name: (known.get(name) or []) + value for name, value in more.items() if isinstance(value, list)}
    return {**known, **more, **lists}


def _refuse_error(raw: dict[str, Any]) -> None:
    error = raw.get("error")
    if not error and raw.get("object") != "error":
        return
    if not isinstance(error, dict):
        error = {"message": error if isinstance(error, str) else str(raw.get("message") or "")}
    raise UpstreamFault("status", "The answer is an error.", status=502, error=error)


def _numbered(choices: list[Any]) -> list[Any]:
    """Whole messages under one and the same index are several answers, not one in pieces."""
    whole = [choice for choice in choices if isinstance(choice, dict) and isinstance(choice.get("message"), dict)]
    if len({repr(choice.get("index")) for choice in whole}) == len(whole):
        return choices
    return [{**choice, "index": position} for position, choice in enumerate(whole)]
