"""Writes what a built-in model says as OpenAI's chunks, within the limits of the request.

    parts (text, tool call, finish) -> _limited: stop, max_tokens, caps -> chunks -> usage

A token is 4 bytes of UTF-8, rounded up for each choice: its text, and the names and arguments of its calls.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from typing import Any, Literal, NamedTuple

from svc.builtin.request import BYTES_PER_TOKEN, MAX_STOP_CHARACTERS, BuiltinRequest, text_bytes, token_count
from svc.ids import new_id

# The caps of one answer, shared evenly by its choices. An answer beyond them ends with `length`.
MAX_OUTPUT_BYTES = 1 << 20
MAX_TOOL_CALLS = 1_000
STEPS_BETWEEN_RESTS = 100

_WORD = re.compile(r"\S{1,24}\s?|\s{1,24}")
_FRAGMENT = re.compile(r"(?s).{1,32}")


class TextPart(NamedTuple):
    text: str


class ToolCallPart(NamedTuple):
    name: str
    arguments: str


class FinishPart(NamedTuple):
    """The end. `stop_sequence` is the one that ended the text; the answer names it as `stop_reason`, as vLLM does."""

    reason: Literal["stop", "length", "tool_calls"]
    stop_sequence: str = ""


Part = TextPart | ToolCallPart | FinishPart
Play = Callable[[], AsyncGenerator[Part, None]]


async def replay(parts: Sequence[Part]) -> AsyncGenerator[Part, None]:
    for part in parts:
        yield part


async def answer(request: BuiltinRequest, play: Play) -> AsyncGenerator[dict[str, Any], None]:
    """Yield chunks and a last one for the usage. Each of `request.choices` is a separate play.

    svc/inference/wire.py adds ids, `created` and `model`, and joins the chunks for a client that wants no stream. An exception of
    `play()` passes through.
    """
    completion_tokens = 0
    for index in range(request.choices):
        calls = size_bytes = 0
        opening = {"role": "assistant", "content": ""}
        async with aclosing(_limited(request, play)) as parts:
            async for part in parts:
                if opening:
                    yield _chunk(index, opening)
                    opening = {}
                if isinstance(part, FinishPart):
                    yield _chunk(index, {}, part.reason, **({"stop_reason": part.stop_sequence} if part.stop_sequence else {}))
                    break
                for count, delta in enumerate(_deltas(part, calls, request.stream), 1):
                    yield _chunk(index, delta)
                    if count % STEPS_BETWEEN_RESTS == 0:
                        await asyncio.sleep(0)
                size_bytes += sum(map(text_bytes, part))
                calls += isinstance(part, ToolCallPart)
        completion_tokens += token_count(size_bytes)
    usage = {"prompt_tokens": request.prompt_tokens, "completion_tokens": completion_tokens}
    usage["total_tokens"] = sum(usage.values())
    yield {"object": "chat.completion.chunk", "choices": [], "usage": usage}


async def _limited(request: BuiltinRequest, play: Play) -> AsyncGenerator[Part, None]:
    """Yield one play without stop sequences, within the limits of the request, and exactly one FinishPart, last."""
    limits = _Limits(request)
    steps = 0
    async with aclosing(play()) as parts:
        async for part in parts:
            for passed in limits.apply(part):
                yield passed
                if isinstance(passed, FinishPart):
                    return
            steps += 1
            if steps % STEPS_BETWEEN_RESTS == 0:
                await asyncio.sleep(0)
    for passed in limits.apply(FinishPart("stop")):
        yield passed


class _Limits:
    """Cuts the parts of one choice. After a FinishPart, `apply` is not called again."""

    def __init__(self, request: BuiltinRequest) -> None:
        self._stops = request.stops
        self._bytes_left = MAX_OUTPUT_BYTES // request.choices
        if request.max_tokens:
            self._bytes_left = min(self._bytes_left, request.max_tokens * BYTES_PER_TOKEN)
        self._calls_left = max(1, MAX_TOOL_CALLS // request.choices)
        self._called = False
        self._held = ""

    def apply(self, part: Part) -> Iterator[Part]:
        stop = ""
        if isinstance(part, TextPart):
            # A stop sequence after these characters changes nothing: the text before it is too long.
            text = (self._held + _encodable(part.text))[: self._bytes_left + MAX_STOP_CHARACTERS]
            text, self._held, stop = _before_stop(text, self._stops)
        else:
            text, self._held = self._held, ""
        kept = self._within(text)
        if kept:
            yield TextPart(kept)
        if kept != text:
            yield FinishPart("length")
        elif stop or isinstance(part, FinishPart):
            reason = part.reason if isinstance(part, FinishPart) else "stop"
            yield FinishPart("tool_calls" if self._called and reason == "stop" else reason, stop)
        elif isinstance(part, ToolCallPart):
            yield from self._call(_encodable(part.name), _encodable(part.arguments))

    def _call(self, name: str, arguments: str) -> Iterator[Part]:
        if self._calls_left == 0 or self._within(name) != name:
            yield FinishPart("length")
            return
        self._calls_left -= 1
        self._called = True
        kept = self._within(arguments)
        yield ToolCallPart(name, kept)
        if kept != arguments:
            yield FinishPart("length")

    def _within(self, text: str) -> str:
        data = text.encode()
        if len(data) > self._bytes_left:
            data = data[: self._bytes_left]
            text = data.decode("utf-8", "ignore")
        self._bytes_left -= len(data)
        return text


def _before_stop(text: str, stops: Sequence[str]) -> tuple[str, str, str]:
    """Return `text` before the first complete stop sequence, the end of `text` where one may begin, and the sequence found."""
    found = [(start + len(stop), start) for stop in stops if (start := text.find(stop)) >= 0]
    if found:
        end, start = min(found)
        return text[:start], "", text[start:end]
    longest = max(map(len, stops), default=1) - 1
    for start in range(max(0, len(text) - longest), len(text)):
        if any(stop.startswith(text[start:]) for stop in stops):
            return text[:start], text[start:], ""
    return text, "", ""


def _encodable(text: str) -> str:
    """Return `text` with surrogate pairs joined and lone ones replaced: a script may contain escapes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _chunk(index: int, delta: dict[str, Any], finish_reason: str | None = None, **fields: Any) -> dict[str, Any]:
    choice = {"index": index, "delta": delta, "finish_reason": finish_reason, **fields}
    return {"object": "chat.completion.chunk", "choices": [choice]}


def _deltas(part: TextPart | ToolCallPart, call_index: int, stream: bool) -> Iterator[dict[str, Any]]:
    """Yield the deltas of a part: in a stream word by word, else the whole text at once."""
    if isinstance(part, TextPart):
        for word in _WORD.finditer(part.text) if stream else [[part.text]]:
            yield {"content": word[0]}
        return
    function = {"name": part.name, "arguments": ""}
    yield {"tool_calls": [{"index": call_index, "id": new_id("call"), "type": "function", "function": function}]}
    for fragment in _FRAGMENT.finditer(part.arguments) if stream else [[part.arguments]]:
        yield {"tool_calls": [{"index": call_index, "function": {"arguments": fragment[0]}}]}
