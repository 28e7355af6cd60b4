"""The parts of a provider's answer, normalized where it left something out: split emoji, tool calls, finish reasons, usage."""

import math
import re
from collections.abc import Callable
from typing import Any

import orjson

from svc import json_text
from svc.errors import UpstreamFault
from svc.ids import random_base62

# A longer text goes out in several chunks: one of megabytes takes the event loop from everybody else.
PIECE_CHARACTERS = 64 * 1024
_CALLS_MAX = 128
_PARTS_MAX = 5_000
# More tokens than any model reads: such a count is noise, and would only drain a wallet.
_TOKENS_MAX = 10**9
OWN_FINISH_REASONS = frozenset({"stop", "length", "tool_calls", "content_filter", "function_call"})  # the document's
_FINISH_REASONS = {reason: reason for reason in OWN_FINISH_REASONS} | {
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",
    "safety": "content_filter",
    "tool_use": "tool_calls",
}
_BROKEN_OFF = frozenset({"error", "abort", "aborted", "cancelled"})
_THINKING = ("thinking", "reasoning")
_JSON_MARKS = re.compile(r'\\.|["{}\[\]]', re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")


class GrowingText:
    """The pieces of one growing text. An emoji that came as two halves of UTF-16 is joined again."""

    __slots__ = ("half", "pieces")

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.half = ""

    def take(self, piece: str) -> str:
        """Adds `piece`; returns what of it can be sent now."""
        if not piece.isascii() or self.half:
            piece, self.half = self.half + piece, ""
            if _SURROGATE.search(piece):
                if "\ud800" <= piece[-1] <= "\udbff":
                    piece, self.half = piece[:-1], piece[-1]
                piece = piece.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        if piece:
            self.pieces.append(piece)
        return piece

    def rest(self) -> str:
        """The replacement character for a half that stayed alone, else nothing."""
        if not self.half:
            return ""
        self.half = ""
        return self.take("\ufffd")

    def __str__(self) -> str:
        return "".join(self.pieces)


class GrowingCall:
    """One tool call (or the deprecated `function_call`) from its first delta on. `kind` is also the name of its inner object."""

    def __init__(self, kind: str, raw_id: str | None = None, call_id: str = "") -> None:
        self.kind, self.raw_id, self.id = kind, raw_id, call_id
        self.index = -1  # not sent yet: without a name a call makes no sense
        self.name: str | None = None
        self.arguments = GrowingText()
        self.extra: dict[str, Any] = {}
        self._key = "input" if kind == "custom" else "arguments"
        self._scanner = _ObjectScanner()
        self._scanned = 0  # pieces of the arguments

    def first_delta(self) -> dict[str, Any]:
        """The delta that opens the call: all but the arguments."""
        body = {"name": self.name, self._key: ""}
        if self.kind == "function_call":
            return {"function_call": body}
        return {"tool_calls": [{"index": self.index, "id": self.id, "type": self.kind, self.kind: body, **self.extra}]}

    def delta(self, piece: str, extra: dict[str, Any]) -> dict[str, Any]:
        """A later delta: the index and a piece of the arguments alone."""
        body = {self.kind: {self._key: piece}} if piece else {}
        return body if self.kind == "function_call" else {"tool_calls": [{"index": self.index, **body, **extra}]}

    def closing_piece(self) -> str:
        """What is missing at the end: `arguments` is JSON even where the provider sent nothing for a call without parameters."""
        return self.arguments.rest() or ("" if self.arguments.pieces or self.kind == "custom" else self.arguments.take("{}"))

    def as_json(self) -> dict[str, Any]:
        """The call as it stands in a message."""
        body = {"name": self.name, self._key: str(self.arguments)}
        return body if self.kind == "function_call" else {"id": self.id, "type": self.kind, self.kind: body, **self.extra}

    def is_another(self, raw_id: str | None, name: str, piece: str) -> bool:
        """Whether a delta with this name begins another call, rather than repeating this one's name."""
        if raw_id is not None and self.raw_id is not None:
            return raw_id != self.raw_id or (bool(piece.strip()) and self._is_whole())
        return name != self.name or self._is_whole()

    def _is_whole(self) -> bool:
        """Whether the arguments so far are one whole object. Each piece is looked at once, however often this is asked."""
        pieces = self.arguments.pieces
        for piece in pieces[self._scanned :]:
            self._scanner.feed(piece)
        self._scanned = len(pieces)
        return self._scanner.whole


class _ObjectScanner:
    """Tells of growing JSON whether its braces are closed again, without parsing it anew for each piece."""

    def __init__(self) -> None:
        self._depth = 0
        self._begun = self._in_string = False
        self._escape = ""  # a backslash whose other half is still to come

    @property
    def whole(self) -> bool:
        return self._begun and self._depth == 0 and not self._in_string

    def feed(self, piece: str) -> None:
        piece = self._escape + piece
        self._escape = "\\" if (len(piece) - len(piece.rstrip("\\"))) % 2 else ""
        for mark in _JSON_MARKS.findall(piece):
            if mark == '"':
                self._in_string = not self._in_string
            elif not self._in_string and mark in "{}[]":
                self._depth += 1 if mark in "{[" else -1
                self._begun = True


class GrowingChoice:
    """One choice of an answer as far as it has come. `left_bytes` is what its texts and arguments may still have."""

    __slots__ = (
        *("_by_index", "begun", "calls", "cut", "extra", "finish_reason", "function_call", "index", "left_bytes", "texts"),
        "waiting",
    )

    def __init__(self, index: int, left_bytes: float = math.inf) -> None:
        self.index = index
        self.left_bytes = left_bytes
        self.begun = False
        self.cut = False  # it went beyond what was granted
        self.finish_reason: str | None = None
        self.texts: dict[str, GrowingText] = {}
        self.extra: dict[str, Any] = {}  # fields of the message that are no text and that this service does not know
        self.waiting: dict[str, Any] = {}  # fields of the choice that go out with its next chunk
        self.calls: list[GrowingCall] = []
        self.function_call: GrowingCall | None = None
        self._by_index: dict[int, GrowingCall] = {}

    def within(self, piece: str) -> str:
        """As much of a further piece of text as was granted."""
        if self.left_bytes == math.inf:
            return piece
        size_bytes = text_size_bytes(piece)
        if size_bytes > self.left_bytes:
            piece = piece.encode(errors="replace")[: int(self.left_bytes)].decode(errors="ignore")
            size_bytes, self.cut = text_size_bytes(piece), True
        self.left_bytes -= size_bytes
        return piece

    def sent_calls(self) -> list[GrowingCall]:
        return [call for call in self.calls if call.index >= 0]

    def call_for(self, raw: dict[str, Any], position: int, kind: str, name: str | None, piece: str) -> GrowingCall:
        """The call that a delta belongs to, or a new one.

        Providers leave out indices and ids, or give the same to all; `position` is the delta's place in its chunk.
        """
        index = raw["index"] if type(raw.get("index")) is int else None
        raw_id = str(raw["id"]) if isinstance(raw.get("id"), str | int) and raw["id"] != "" else None
        same_id = next((call for call in reversed(self.calls) if raw_id is not None and call.raw_id == raw_id), None)
        if index is not None:
            call = self._by_index.get(index) or (None if name else same_id)
        elif raw_id is not None:
            call = same_id
        else:
            call = self.calls[-1] if self.calls and not (name and position) else None
        if call is None or (name and call.name is not None and call.is_another(raw_id, name, piece)):
            if len(self.calls) == _CALLS_MAX:
                raise UpstreamFault("invalid", f"The answer holds more than {_CALLS_MAX} tool calls.")
            fresh = raw_id is not None and same_id is None
            call = GrowingCall(kind, raw_id, raw_id if fresh and raw_id else f"call_{random_base62(24)}")
            self.calls.append(call)
        if index is not None:
            self._by_index[index] = call
        return call

    def message(self) -> dict[str, Any]:
        """The assistant's message."""
        calls = [call.as_json() for call in self.sent_calls()] if self.calls else []
        message: dict[str, Any] = {"role": "assistant", "content": "", "refusal": None}
        for name, text in self.texts.items():
            message[name] = str(text)
        if not message["content"] and (calls or self.function_call):
            message["content"] = None
        message.update(self.extra)
        if calls:
            message["tool_calls"] = calls
        if self.function_call:
            message["function_call"] = self.function_call.as_json()
        return message

    def reason(self) -> str:
        """The finish reason as the caller sees it: it agrees with the calls that were sent."""
        if self.cut or self.finish_reason in ("length", "content_filter"):
            return "length" if self.cut else str(self.finish_reason)
        if self.calls and self.sent_calls():
            return "tool_calls"
        return "function_call" if self.function_call else "stop"


def finish_reason(raw: Any) -> str | None:
    """The document's word for a provider's finish reason; None for none yet. Raises UpstreamFault `cut` for a failure."""
    word = raw.lower() if isinstance(raw, str) else ""
    if word in ("", "null", "none"):
        return None
    if word in _BROKEN_OFF:
        raise UpstreamFault("cut", "The model server broke the answer off.")
    return _FINISH_REASONS.get(word, "stop")


def texts_of_parts(content: Any) -> tuple[str, str]:
    """The text and the thinking of a `content` that came as a list of parts (Mistral's `thinking`, others' `reasoning`)."""
    text: list[str] = []
    thinking: list[str] = []
    for part in content if isinstance(content, list) else ():
        kind = part.get("type") if isinstance(part, dict) else "text"
        value = part
        if isinstance(part, dict):
            value = part.get(kind) if kind in _THINKING and part.get(kind) is not None else part.get("text")
        if isinstance(value, list):
            value = texts_of_parts(value)[0]
        if isinstance(value, str):
            (thinking if kind in _THINKING else text).append(value)
    return "".join(text), "".join(thinking)


def arguments_text(body: dict[str, Any]) -> str:
    """The arguments of a call, or a piece of them, as a string: some providers send an object. May raise `invalid`."""
    value = body["input"] if isinstance(body.get("input"), str) else body.get("arguments")
    if value is None or isinstance(value, str):
        return value or ""
    return json_bytes(value).decode()


def json_bytes(value: Any, apart: bool = False) -> bytes:
    """`value` as JSON; `apart` from the event loop, that gets its turns meanwhile.

    Raises UpstreamFault `invalid` for what JSON cannot carry: lone surrogates, hundreds of levels.
    """
    try:
        return json_text.dumps(value) if apart else orjson.dumps(value)
    except TypeError:
        raise UpstreamFault("invalid", "The answer holds what JSON cannot carry.") from None


def text_size_bytes(text: str) -> int:
    """The UTF-8 bytes of `text`."""
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


def adds_up(reported: dict[str, Any]) -> bool:
    """Whether `reported` is three counts as they should be, which is what most servers send."""
    if len(reported) != 3:
        return False
    prompt, completion, total = reported.get("prompt_tokens"), reported.get("completion_tokens"), reported.get("total_tokens")
    return (
        type(prompt) is type(completion) is type(total) is int
        and prompt >= 0
        and completion >= 0
        and prompt + completion == total <= _TOKENS_MAX
    )


def normalized_usage(reported: dict[str, Any], prompt_estimate: Callable[[], int], completion_estimate: int) -> dict[str, Any]:
    """`usage` with three whole numbers that add up, details without nulls, out of what a provider reported.

    An explicit 0 is 0; counts that make no sense (negative, absurd, no number) are estimated. Unknown fields are kept.
    """
    prompt = _count(reported.get("prompt_tokens", reported.get("input_tokens")))
    completion = _count(reported.get("completion_tokens", reported.get("output_tokens")))
    total = _count(reported.get("total_tokens"))
    kept = dict(reported)
    for name in reported:
        if name.endswith("_details"):
            del kept[name]
            if counts := _details(reported[name]):
                kept[name] = counts
    if completion is None and prompt is not None and total is not None:
        completion = max(0, total - prompt)
    elif completion is None:
        completion = completion_estimate
    elif prompt is not None and total != prompt + completion:
        # Some count the hidden reasoning in the total alone (Gemini, xAI); it is output like the rest.
        reasoning = kept.get("completion_tokens_details", {}).get("reasoning_tokens", 0)
        completion += reasoning if total == prompt + completion + reasoning else 0
    if prompt is None:
        prompt = prompt_estimate() if total is None else max(0, total - completion)
    kept["prompt_tokens"], kept["completion_tokens"], kept["total_tokens"] = prompt, completion, prompt + completion
    return kept


def _count(value: Any) -> int | None:
    if type(value) is not int:
        if value is None:
            return None
        if type(value) is str and value.isascii() and value.isdigit() and len(value) <= len(str(_TOKENS_MAX)):
            value = int(value)
        elif type(value) is float and math.isfinite(value):
            value = math.ceil(value)
        else:
            return None
    return value if 0 <= value <= _TOKENS_MAX else None


def _details(value: Any) -> dict[str, int]:
    counts = {name: _count(count) for name, count in value.items()} if isinstance(value, dict) else {}
    return {name: count for name, count in counts.items() if count is not None}


def join_logprobs(known: dict[str, Any] | None, more: dict[str, Any] | None) -> dict[str, Any] | None:
    """`known`, which is changed, and what a later chunk adds to its lists."""
    if more is None:
        return known
    if known is None:
        return {name: list(value) if isinstance(value, list) else value for name, value in more.items()}
    for name, value in more.items():
        if isinstance(known.get(name), list) and isinstance(value, list):
            known[name] += value
        else:
            known[name] = value
    return known


def in_pieces(delta: dict[str, Any]) -> list[dict[str, Any]]:
    """A delta whose texts are short, and those that go on where it leaves off."""
    texts = {name: value for name, value in delta.items() if type(value) is str and len(value) > PIECE_CHARACTERS}
    pieces = [{**delta, **{name: text[:PIECE_CHARACTERS] for name, text in texts.items()}}]
    for start in range(PIECE_CHARACTERS, max(map(len, texts.values()), default=0), PIECE_CHARACTERS):
        pieces.append({name: text[start : start + PIECE_CHARACTERS] for name, text in texts.items() if len(text) > start})
    return pieces


def delta_of(raw: dict[str, Any]) -> dict[str, Any] | None:
    """What a choice says: its delta, its whole message, or the text of the older completions."""
    found = raw.get("delta")
    if type(found) is not dict:
        found = raw.get("message")
    if type(found) is dict:
        return found
    return {"content": raw["text"]} if isinstance(raw.get("text"), str) else None


def numbered(choices: list[Any]) -> list[Any]:
    """Whole messages under one and the same index are several answers, not one in pieces."""
    whole = [choice for choice in choices if isinstance(choice, dict) and isinstance(choice.get("message"), dict)]
    if len({repr(choice.get("index")) for choice in whole}) == len(whole):
        return choices
    return [{**choice, "index": position} for position, choice in enumerate(whole)]


def check_parts(count: int) -> None:
    """Raises UpstreamFault `invalid` for a chunk of so many parts: no real one holds thousands, and each takes its time."""
    if count > _PARTS_MAX:
        raise UpstreamFault("invalid", "The answer holds too many parts at once.")
