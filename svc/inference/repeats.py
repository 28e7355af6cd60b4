"""Chunks of a stream that say what one before them said, but for their text: most do, and need neither parsing nor judging anew.

an event -> Repeats.find() -> a Repeat of the chunk that was learned last | None: it is parsed, and perhaps learned
"""

import re
from typing import Any, NamedTuple

import orjson

_MARK = b'"content":'
_TEXT = re.compile(rb'\s*("(?:[^"\\]|\\.)*+")')
# A stream in which each event differs elsewhere, too (OpenAI pads them at random), is not worth the look.
_MISSES = 16


class Repeat(NamedTuple):
    """A raw chunk that is `like` another one, with `text` as the content of its only choice."""

    like: dict[str, Any]
    text: str

    def whole(self) -> dict[str, Any]:
        """The raw chunk as it came."""
        (choice,) = self.like["choices"]
        return {**self.like, "choices": [{**choice, "delta": {**choice["delta"], "content": self.text}}]}


class Repeats:
    """Knows the last chunk of one stream that held a text, and finds those that differ from it in nothing but that.

    `secret` is what is taken out of answers: a text that may hold it is left to the parser.
    """

    def __init__(self, secret: bytes | None) -> None:
        self._secret = secret
        self._like: dict[str, Any] | None = None
        self._before = self._after = b""
        self._misses = 0

    def learn(self, data: bytes, raw: dict[str, Any]) -> None:
        """Notes a chunk and the event that it was read from, where its text stands in one place."""
        self._like = None
        if self._misses > _MISSES or data.count(_MARK) != 1 or not _has_text(raw):
            return
        self._misses += 1
        start = data.index(_MARK) + len(_MARK)
        if (found := _TEXT.match(data, start)) is not None:
            self._like, self._before, self._after = raw, data[: found.start(1)], data[found.end(1) :]

    def find(self, data: bytes) -> Repeat | None:
        """The event as a repeat: what stands where the text stood is one text again, and all else is the same."""
        if self._like is None or not (data.startswith(self._before) and data.endswith(self._after)):
            return None
        middle = data[len(self._before) : len(data) - len(self._after)]
        if self._secret is not None and (b"\\" in middle or self._secret in middle):  # JSON can spell it in other ways
            return None
        try:
            text = orjson.loads(middle)
        except orjson.JSONDecodeError:
            return None
        if type(text) is not str:
            return None
        self._misses = 0
        return Repeat(self._like, text)


def _has_text(raw: dict[str, Any]) -> bool:
    choices = raw.get("choices")
    first = choices[0] if isinstance(choices, list) and len(choices) == 1 else None
    delta = first.get("delta") if isinstance(first, dict) else None
    return isinstance(delta, dict) and isinstance(delta.get("content"), str)
