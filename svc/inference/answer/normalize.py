"""The parts of a provider's answer, repaired: split emoji, tool calls, finish reasons."""

import math
import re
from typing import Any

import orjson

from svc import json_text
from svc.errors import UpstreamFault
from svc.ids import random_base62
from svc.json_text import AT_ONCE_BYTES

_CALLS_MAX = 128
_PARTS_MAX = 5_000
# Arguments in more parts, or longer than AT_ONCE_BYTES, are not checked for their end: each check parses all of them.
_CHECKED_PARTS = 4_000
_FINISH_REASONS = {
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
    "safety": "content_filter",
}
_BROKEN_OFF = frozenset({"error", "abort", "aborted", "cancelled"})
_THINKING = ("thinking", "reasoning")
_SURROGATE = re.compile("[\ud800-\udfff]")


class GrowingText:
    """The parts of one text so far. The two UTF-16 halves of an emoji are joined again."""

    __slots__ = ("half", "parts")

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.half = ""

    def take(self, part: str) -> str:
        """Add `part`, and return the text that can be sent now."""
        if not part.isascii() or self.half:
            part, self.half = self.half + part, ""
            if _SURROGATE.search(part):
                if "\ud800" <= part[-1] <= "\udbff":
                    part, self.half = part[:-1], part[-1]
                part = part.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        if part:
            self.parts.append(part)
        return part

    def rest(self) -> str:
        """Return the replacement character for a half without its other half, else nothing."""
        if not self.half:
            return ""
        self.half = ""
        return self.take("\ufffd")

    def __str__(self) -> str:
        return "".join(self.parts)


class GrowingCall:
    """One tool call, or the deprecated `function_call`. `kind` is also the name of its inner object."""

    def __init__(self, kind: str, raw_id: str | None = None, call_id: str = "") -> None:
        self.kind, self.raw_id, self.id = kind, raw_id, call_id
        self.index = -1  # until the call has a name and is sent
        self.name: str | None = None
        self.arguments = GrowingText()
        self.extra: dict[str, Any] = {}
        self._key = "input" if kind == "custom" else "arguments"

    def first_delta(self) -> dict[str, Any]:
        body = {"name": self.name, self._key: ""}
        if self.kind == "function_call":
            return {"function_call": body}
        return {"tool_calls": [{"index": self.index, "id": self.id, "type": self.kind, self.kind: body, **self.extra}]}

    def delta(self, part: str, extra: dict[str, Any]) -> dict[str, Any]:
        """Return a later delta: the index and a part of the arguments."""
        body = {self.kind: {self._key: part}} if part else {}
        return body if self.kind == "function_call" else {"tool_calls": [{"index": self.index, **body, **extra}]}

    def closing_part(self) -> str:
        """Return what is missing at the end: the arguments are `{}` if the provider sent none."""
        return self.arguments.rest() or (
            "" if self.arguments.parts or self.kind == "custom" else self.arguments.take("{}")
        )

    def as_json(self) -> dict[str, Any]:
        body = {"name": self.name, self._key: str(self.arguments)}
        return (
            body if self.kind == "function_call" else {"id": self.id, "type": self.kind, self.kind: body, **self.extra}
        )

    def is_another(self, raw_id: str | None, name: str, part: str) -> bool:
        """Return whether a delta with this name begins another call, instead of repeating the name of this one."""
        if raw_id is not None and self.raw_id is not None:
            return raw_id != self.raw_id or (bool(part.strip()) and self._is_complete())
        return name != self.name or self._is_complete()

    def _is_complete(self) -> bool:
        parts = self.arguments.parts
        if not parts or not parts[-1].rstrip().endswith("}"):
            return False
        if len(parts) > _CHECKED_PARTS or sum(map(len, parts)) > AT_ONCE_BYTES:
            return False
        try:
            orjson.loads(str(self.arguments))
        except orjson.JSONDecodeError:
            return False
        return True


class GrowingChoice:
    """One choice of an answer so far. `left_bytes` is the limit for the rest of its texts and arguments."""

    def __init__(self, index: int, left_bytes: float = math.inf) -> None:
        self.index = index
        self.left_bytes = left_bytes
        self.begun = False
        self.cut = False  # it exceeded `left_bytes`
        self.finish_reason: str | None = None
        self.texts: dict[str, GrowingText] = {}
        self.extra: dict[str, Any] = {}  # unknown fields of the message
        self.waiting: dict[str, Any] = {}  # fields for the next chunk of the choice
        self.calls: list[GrowingCall] = []
        self.sent_calls: list[GrowingCall] = []
        self.function_call: GrowingCall | None = None
        self._by_index: dict[int, GrowingCall] = {}

    def within(self, part: str) -> str:
        """Return `part`, cut at `left_bytes`."""
        if self.left_bytes == math.inf:
            return part
        size_bytes = text_size_bytes(part)
        if size_bytes > self.left_bytes:
            part = part.encode(errors="replace")[: int(self.left_bytes)].decode(errors="ignore")
            size_bytes, self.cut = text_size_bytes(part), True
        self.left_bytes -= size_bytes
        return part

    def call_for(self, raw: dict[str, Any], position: int, kind: str, name: str | None, part: str) -> GrowingCall:
        """Return the call to which the delta at `position` of its chunk belongs, or a new one.

        Some providers send no indices or ids, or the same for all calls.
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
        if call is None or (name and call.name is not None and call.is_another(raw_id, name, part)):
            if len(self.calls) == _CALLS_MAX:
                raise UpstreamFault("invalid", f"The answer holds more than {_CALLS_MAX} tool calls.")
            fresh = raw_id is not None and same_id is None
            call = GrowingCall(kind, raw_id, raw_id if fresh and raw_id else f"call_{random_base62(24)}")
            self.calls.append(call)
        if index is not None:
            self._by_index[index] = call
        return call

    def all_text(self) -> str:
        """Return all texts and arguments, for a count."""
        arguments = [str(call.arguments) for call in self.sent_calls]
        return "\n".join([*map(str, self.texts.values()), *arguments])

    def texts_after(self, sent: dict[str, int]) -> dict[str, str]:
        """Return what the texts have gained since the numbers of parts in `sent`, and update these.

        At most 64 KiB of JSON and one part of each are returned at once: a reader that does not read holds them.
        """
        gained = {}
        for name, text in self.texts.items():
            first = last = sent.get(name, 0)
            size_bytes = 0
            while last < len(text.parts) and size_bytes < AT_ONCE_BYTES:
                part = text.parts[last]
                size_bytes += len(part) if part.isascii() else 6 * len(part)
                last += 1
            if last > first:
                gained[name], sent[name] = "".join(text.parts[first:last]), last
        return gained

    def message(self) -> dict[str, Any]:
        calls = [call.as_json() for call in self.sent_calls]
        message: dict[str, Any] = {"role": "assistant", "content": "", "refusal": None}
        for name, text in self.texts.items():
            message[name] = str(text)
        if not message["content"] and (calls or self.function_call):
            message["content"] = None
        message |= self.extra
        if calls:
            message["tool_calls"] = calls
        if self.function_call:
            message["function_call"] = self.function_call.as_json()
        return message

    def reason(self) -> str:
        """Return the finish reason for the caller, which agrees with the calls that were sent."""
        if self.finish_reason in ("length", "content_filter"):
            return self.finish_reason
        if self.sent_calls:
            return "tool_calls"
        return "function_call" if self.function_call else "stop"


def finish_reason(raw: Any) -> str | None:
    """Return OpenAI's name for a provider's finish reason, or None. Raises UpstreamFault `cut` for a failure."""
    word = raw.lower() if isinstance(raw, str) else ""
    if word in ("", "null", "none"):
        return None
    if word in _BROKEN_OFF:
        raise UpstreamFault("cut", "The model server broke the answer off.")
    return _FINISH_REASONS.get(word, "stop")


def texts_of_parts(parts: list[Any]) -> tuple[str, str]:
    """Return the text and the thinking of a `content` that is a list (Mistral's `thinking`, others' `reasoning`)."""
    text: list[str] = []
    thinking: list[str] = []
    for part in parts:
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
    """Return the arguments of a call, or a part of them, as a string: some providers send an object."""
    value = body["input"] if isinstance(body.get("input"), str) else body.get("arguments")
    if value is None or isinstance(value, str):
        return value or ""
    return json_bytes(value).decode()


def json_bytes(value: Any, apart: bool = False) -> bytes:
    """Return `value` as JSON; `apart` is for threads, and does not block the event loop.

    Raises UpstreamFault `invalid` for lone surrogates and hundreds of levels.
    """
    try:
        return json_text.dumps(value) if apart else orjson.dumps(value)
    except TypeError:
        raise UpstreamFault("invalid", "The answer holds what JSON cannot carry.") from None


def text_size_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


def join_logprobs(known: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Add the lists of a later chunk to those of `known`, and return it."""
    for name, value in more.items():
        if isinstance(value, list) and isinstance(known.setdefault(name, []), list):
            known[name] += value
        else:
            known[name] = value
    return known


def split_text(text: str) -> list[str]:
    return [text[start : start + AT_ONCE_BYTES] for start in range(0, len(text) or 1, AT_ONCE_BYTES)]


def delta_of(raw: dict[str, Any]) -> dict[str, Any] | None:
    """Return the delta of a choice, its whole message, or the text of the older completions API."""
    found = raw.get("delta")
    if type(found) is not dict:
        found = raw.get("message")
    if type(found) is dict:
        return found
    return {"content": raw["text"]} if isinstance(raw.get("text"), str) else None


def numbered(choices: list[Any]) -> list[Any]:
    """Return `choices` with indices: whole messages with the same index are several answers, not parts of one."""
    whole = [choice for choice in choices if isinstance(choice, dict) and isinstance(choice.get("message"), dict)]
    if len({repr(choice.get("index")) for choice in whole}) == len(whole):
        return choices
    return [{**choice, "index": position} for position, choice in enumerate(whole)]


def check_parts(count: int) -> None:
    """Raise UpstreamFault `invalid` for a chunk of too many parts, each of which takes time."""
    if count > _PARTS_MAX:
        raise UpstreamFault("invalid", "The answer holds too many parts at once.")
