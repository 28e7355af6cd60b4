"""Writes what a built-in model says as chunks, within the limits of the request. chunk_writer.py completes them.

    parts (text, tool call, finish) -> _Choice: stop, max_tokens, caps -> chunks -> usage

A token is 4 bytes of UTF-8, rounded up for each choice: its text, and the names and arguments of its calls.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from svc.builtin.request import BYTES_PER_TOKEN, MAX_STOP_CHARACTERS, BuiltinRequest, text_bytes, token_count
from svc.errors import UpstreamFault
from svc.ids import new_id

# The caps of one answer, shared evenly by its choices. An answer beyond them ends with `length`.
MAX_OUTPUT_BYTES = 1 << 20
MAX_TOOL_CALLS = 1_000

_WORD = re.compile(r"\S{1,24}\s?|\s{1,24}")
_FRAGMENT = re.compile(r"(?s).{1,32}")


class ToolCallPart(NamedTuple):
    name: str
    arguments: str


class FinishPart(NamedTuple):
    reason: Literal["stop", "length"]


Said = str | ToolCallPart | FinishPart
Part = Said | float | UpstreamFault  # a number is a pause in seconds, and a fault ends the answer


def answer(request: BuiltinRequest, parts: Sequence[Part]) -> Iterator[dict[str, Any] | float]:
    """Yield chunks, the last one with the usage, and pauses in seconds, one for each part. Raises UpstreamFault.

    Each of `request.choices` has the same parts.
    """
    completion_tokens = 0
    for index in range(request.choices):
        choice = _Choice(request, index)
        for part in (*parts, FinishPart("stop")):
            if isinstance(part, UpstreamFault):
                raise part
            if isinstance(part, float):
                yield part
                continue
            yield from choice.chunks(part)
            yield 0.0
            if choice.finished:
                break
        completion_tokens += token_count(choice.size_bytes)
    usage = {"prompt_tokens": request.prompt_tokens, "completion_tokens": completion_tokens}
    yield {"choices": [], "usage": usage}


class _Choice:
    """Writes one choice without stop sequences and within the limits of the request."""

    def __init__(self, request: BuiltinRequest, index: int) -> None:
        self._request = request
        self._index = index
        most_bytes = MAX_OUTPUT_BYTES // request.choices
        self._bytes_left = min(most_bytes, (request.max_tokens or most_bytes) * BYTES_PER_TOKEN)
        self._most_calls = MAX_TOOL_CALLS // request.choices
        self._calls = self.size_bytes = 0
        self._held = ""  # the end of the text, in which a stop sequence may begin
        self._begun = not request.stream  # only a stream has an opening chunk
        self.finished = False

    def chunks(self, part: Said) -> Iterator[dict[str, Any]]:
        """Yield the chunks of a part, and `finished` is set with the last chunk of the choice."""
        if not self._begun:
            self._begun = True
            yield self._chunk({"role": "assistant", "content": ""})
        stop = ""
        if isinstance(part, str):
            # A stop sequence after these characters changes nothing: the text before it is too long.
            text = (self._held + _encodable(part))[: self._bytes_left + MAX_STOP_CHARACTERS]
            text, self._held, stop = _before_stop(text, self._request.stops)
        else:
            text, self._held = self._held, ""
        kept = self._within(text)
        for word in self._pieces(_WORD, kept):
            yield self._chunk({"content": word})
        if kept != text:
            yield self._last("length")
        elif stop:
            # The answer names the sequence that ended it, as vLLM does.
            yield self._last("stop", stop_reason=stop)
        elif isinstance(part, FinishPart):
            yield self._last(part.reason)
        elif isinstance(part, ToolCallPart):
            yield from self._call(_encodable(part.name), _encodable(part.arguments))

    def _call(self, name: str, arguments: str) -> Iterator[dict[str, Any]]:
        if self._calls == self._most_calls or text_bytes(name) > self._bytes_left:
            yield self._last("length")
            return
        index, function = self._calls, {"name": self._within(name), "arguments": ""}
        self._calls += 1
        yield self._chunk({"tool_calls": [{"index": index, "id": new_id("call"), "function": function}]})
        kept = self._within(arguments)
        for fragment in self._pieces(_FRAGMENT, kept):
            yield self._chunk({"tool_calls": [{"index": index, "function": {"arguments": fragment}}]})
        if kept != arguments:
            yield self._last("length")

    def _within(self, text: str) -> str:
        data = text.encode()[: self._bytes_left]
        self._bytes_left -= len(data)
        self.size_bytes += len(data)
        return data.decode("utf-8", "ignore")

    def _pieces(self, pattern: re.Pattern[str], text: str) -> Iterable[str]:
        return (match[0] for match in pattern.finditer(text)) if self._request.stream else filter(None, [text])

    def _last(self, reason: str, **fields: str) -> dict[str, Any]:
        self.finished = True
        return self._chunk({}, finish_reason=reason, **fields)

    def _chunk(self, delta: dict[str, Any], **fields: str) -> dict[str, Any]:
        return {"choices": [{"index": self._index, "delta": delta, **fields}]}


def _before_stop(text: str, stops: Sequence[str]) -> tuple[str, str, str]:
    """Return the text before the first stop sequence, its end where one may begin, and the sequence."""
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
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
