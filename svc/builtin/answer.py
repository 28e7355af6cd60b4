"""Turns what a built-in model has to say into OpenAI's chunks or completion; here alone act the limits that all models share.

    pieces (TextPiece, ToolCallPiece, FinishPiece) -> _limited: stop, max_tokens, caps -> _stream or _completion -> usage

Counting: one token is 4 bytes of UTF-8, rounded up, per choice, over its text and its calls' names and arguments.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from typing import Any, Literal, NamedTuple

from svc.builtin.request import BYTES_PER_TOKEN, MAX_STOP_CHARACTERS, Request, text_bytes, token_count
from svc.ids import new_id

# Caps on one answer, shared evenly by its choices: past them it ends with `length`.
MAX_OUTPUT_BYTES = 1 << 20
MAX_TOOL_CALLS = 1_000
STEPS_BETWEEN_RESTS = 100

_WORD = re.compile(r"\S{1,24}\s?|\s{1,24}")
_ARGUMENT_CHARACTERS = 32


class TextPiece(NamedTuple):
    text: str


class ToolCallPiece(NamedTuple):
    name: str
    arguments: str


class FinishPiece(NamedTuple):
    reason: Literal["stop", "length", "tool_calls"]


Piece = TextPiece | ToolCallPiece | FinishPiece
Play = Callable[[], AsyncGenerator[Piece, None]]


async def replay(pieces: Sequence[Piece]) -> AsyncGenerator[Piece, None]:
    """A known sequence of pieces, as a model that plays in time yields them."""
    for piece in pieces:
        yield piece


def answer(request: Request, play: Play) -> AsyncGenerator[dict[str, Any], None]:
    """Chunks with a last one for the usage, or one completion, of `request.choices` plays one after the other.

    `play()` begins a choice; whatever it raises goes through. Ids, `created` and `model` are left to svc/inference/wire.py.
    """
    return _stream(request, play) if request.stream else _completion(request, play)


async def _stream(request: Request, play: Play) -> AsyncGenerator[dict[str, Any], None]:
    completion_tokens = 0
    for index in range(request.choices):
        size_bytes = calls = 0
        opening = {"role": "assistant", "content": ""}
        async with aclosing(_limited(request, play)) as pieces:
            async for piece in pieces:
                if opening:
                    yield _chunk(index, opening)
                    opening = {}
                for count, delta in enumerate(_deltas(piece, calls), 1):
                    yield _chunk(index, delta)
                    if count % STEPS_BETWEEN_RESTS == 0:
                        await asyncio.sleep(0)
                if isinstance(piece, FinishPiece):
                    yield _chunk(index, {}, piece.reason)
                calls += isinstance(piece, ToolCallPiece)
                size_bytes += _size_bytes(piece)
        completion_tokens += token_count(size_bytes)
    yield {"object": "chat.completion.chunk", "choices": [], "usage": _usage(request, completion_tokens)}


async def _completion(request: Request, play: Play) -> AsyncGenerator[dict[str, Any], None]:
    completion_tokens = 0
    choices = []
    for index in range(request.choices):
        texts: list[str] = []
        calls: list[dict[str, Any]] = []
        finish_reason = ""
        size_bytes = 0
        async with aclosing(_limited(request, play)) as pieces:
            async for piece in pieces:
                size_bytes += _size_bytes(piece)
                if isinstance(piece, TextPiece):
                    texts.append(piece.text)
                elif isinstance(piece, ToolCallPiece):
                    calls.append(_call(piece.name, piece.arguments))
                else:
                    finish_reason = piece.reason
        message: dict[str, Any] = {"role": "assistant", "content": "".join(texts) if texts or not calls else None}
        if calls:
            message["tool_calls"] = calls
        choices.append({"index": index, "message": message, "finish_reason": finish_reason})
        completion_tokens += token_count(size_bytes)
    yield {"object": "chat.completion", "choices": choices, "usage": _usage(request, completion_tokens)}


async def _limited(request: Request, play: Play) -> AsyncGenerator[Piece, None]:
    """One play under the request's limits: no stop sequence in it, within its bytes, and exactly one FinishPiece, last."""
    limits = _Limits(request)
    steps = 0
    async with aclosing(play()) as pieces:
        async for piece in pieces:
            for passed in limits.apply(piece):
                yield passed
                if isinstance(passed, FinishPiece):
                    return
            steps += 1
            if steps % STEPS_BETWEEN_RESTS == 0:
                await asyncio.sleep(0)
    for passed in limits.apply(FinishPiece("stop")):
        yield passed


class _Limits:
    """What one choice may still say. After a FinishPiece it is not asked again."""

    def __init__(self, request: Request) -> None:
        self._stops = request.stops
        self._bytes_left = MAX_OUTPUT_BYTES // request.choices
        if request.max_tokens:
            self._bytes_left = min(self._bytes_left, request.max_tokens * BYTES_PER_TOKEN)
        self._calls_left = max(1, MAX_TOOL_CALLS // request.choices)
        self._called = False
        self._held = ""

    def apply(self, piece: Piece) -> Iterator[Piece]:
        stopped = False
        if isinstance(piece, TextPiece):
            # Further on no stop sequence matters: what stands before it would be too long anyway.
            text = (self._held + _encodable(piece.text))[: self._bytes_left + MAX_STOP_CHARACTERS]
            text, self._held, stopped = _before_stop(text, self._stops)
        else:
            text, self._held = self._held, ""
        kept = self._within(text)
        if kept:
            yield TextPiece(kept)
        if kept != text:
            yield FinishPiece("length")
        elif stopped or isinstance(piece, FinishPiece):
            reason = piece.reason if isinstance(piece, FinishPiece) else "stop"
            yield FinishPiece("tool_calls" if self._called and reason == "stop" else reason)
        elif isinstance(piece, ToolCallPiece):
            yield from self._call(_encodable(piece.name), _encodable(piece.arguments))

    def _call(self, name: str, arguments: str) -> Iterator[Piece]:
        if self._calls_left == 0 or self._within(name) != name:
            yield FinishPiece("length")
            return
        self._calls_left -= 1
        self._called = True
        kept = self._within(arguments)
        yield ToolCallPiece(name, kept)
        if kept != arguments:
            yield FinishPiece("length")

    def _within(self, text: str) -> str:
        """As much of `text` as the bytes left allow, in whole characters."""
        data = text.encode()
        if len(data) > self._bytes_left:
            data = data[: self._bytes_left]
            text = data.decode("utf-8", "ignore")
        self._bytes_left -= len(data)
        return text


def _before_stop(text: str, stops: Sequence[str]) -> tuple[str, str, bool]:
    """`text` before the stop sequence that is complete first, what must wait because one may begin there, and if one came."""
    found = [(start + len(stop), start) for stop in stops if (start := text.find(stop)) >= 0]
    if found:
        return text[: min(found)[1]], "", True
    longest = max(map(len, stops), default=1) - 1
    for start in range(max(0, len(text) - longest), len(text)):
        if any(stop.startswith(text[start:]) for stop in stops):
            return text[:start], text[start:], False
    return text, "", False


def _encodable(text: str) -> str:
    """`text` with surrogate pairs joined and lone ones replaced: a script may write them as escapes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _size_bytes(piece: Piece) -> int:
    return 0 if isinstance(piece, FinishPiece) else sum(map(text_bytes, piece))


def _usage(request: Request, completion_tokens: int) -> dict[str, int]:
    return {
        "prompt_tokens": request.prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": request.prompt_tokens + completion_tokens,
    }


def _chunk(index: int, delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    choice = {"index": index, "delta": delta, "finish_reason": finish_reason}
    return {"object": "chat.completion.chunk", "choices": [choice]}


def _deltas(piece: Piece, call_index: int) -> Iterator[dict[str, Any]]:
    if isinstance(piece, TextPiece):
        for word in _WORD.finditer(piece.text):
            yield {"content": word[0]}
    elif isinstance(piece, ToolCallPiece):
        yield {"tool_calls": [{"index": call_index, **_call(piece.name, "")}]}
        for start in range(0, len(piece.arguments), _ARGUMENT_CHARACTERS):
            part = piece.arguments[start : start + _ARGUMENT_CHARACTERS]
            yield {"tool_calls": [{"index": call_index, "function": {"arguments": part}}]}


def _call(name: str, arguments: str) -> dict[str, Any]:
    return {"id": new_id("call"), "type": "function", "function": {"name": name, "arguments": arguments}}
