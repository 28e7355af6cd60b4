"""Events of a stream that differ from one before them in their text alone: most do, and are parsed together.

To read and write an event takes 19,000 instructions with this and 88,000 without it, at 8 events a read.
"""

import re
from dataclasses import dataclass
from typing import Any

import orjson

from svc.outbound.event_stream import parse_event

_CONTENT = b'"content":'
_STRING = re.compile(rb'\s*("(?:[^"\\]|\\.)*+")')
# A stream in which every event differs elsewhere, too (OpenAI pads them at random), is not worth the comparison.
_MOST_MISSES = 16


@dataclass(slots=True)
class Repeat:
    """Raw chunks that came together, each `like` the same one but with the next of `texts` as the content of its only choice.

    No text is empty. `text` is all of them joined, `tokens` has each of them in JSON.
    """

    like: dict[str, Any]
    texts: list[str]
    text: str
    tokens: list[bytes]

    def raws(self) -> list[dict[str, Any]]:
        """Return the raw chunks one by one."""
        (choice,) = self.like["choices"]
        return [{**self.like, "choices": [{**choice, "delta": {**choice["delta"], "content": text}}]} for text in self.texts]


class Repeats:
    """Keeps the last event of one stream that held a text, and finds those that repeat it.

    `secret` is removed from answers, so texts with it are left to the parser.
    """

    def __init__(self, secret: str | None) -> None:
        self._secret = secret
        self._like: dict[str, Any] | None = None
        self._before = self._after = b""  # the text of the event
        self._misses = 0

    def learn(self, lines: bytes, raw: dict[str, Any]) -> None:
        """Keep an event and the raw chunk in it if the one `"content":` in it is that of the chunk's delta."""
        self._like = None
        if self._misses > _MOST_MISSES or lines.count(_CONTENT) != 1 or (text := _text_of(raw)) is None:
            return
        self._misses += 1
        found = _STRING.match(lines, lines.index(_CONTENT) + len(_CONTENT))
        if found is not None and _is_text(lines, found.end(1), text):
            self._like = raw
            self._before, self._after = lines[: found.start(1)], lines[found.end(1) :]

    def find(self, events: list[bytes], start: int) -> Repeat | None:
        """Return the repeats among `events` that follow one another from `start` on, or None."""
        if self._like is None:
            return None
        before, after = self._before, self._after
        begin, end = len(before), -len(after)
        tokens = []
        for event in events[start:]:
            if not (event.startswith(before) and event.endswith(after)):
                break
            tokens.append(event[begin:end])
        # JSON allows no raw tab in a string, and an event has lines: so no token can be less than one string, or more.
        joined = b",\t".join(tokens)
        if joined.find(b"\n") >= 0:
            return None
        try:
            texts = orjson.loads(b"[" + joined + b"]")
            text = "".join(texts)
        except (orjson.JSONDecodeError, TypeError):  # no JSON, or a value that is no string
            return None
        if not texts or not all(texts) or len(texts) != len(tokens) or (self._secret is not None and self._secret in text):
            return None
        self._misses = 0
        return Repeat(self._like, texts, text, tokens)


def _is_text(lines: bytes, end: int, text: str) -> bool:
    """Return whether the string that ends at `end` in an event is the content of the chunk's only choice, which is `text`.

    The same text may be elsewhere, or the name `content` be escaped. So the string gets one more character, which the content
    must then have.
    """
    event = parse_event(lines[: end - 1] + b"." + lines[end - 1 :])
    try:
        return event is not None and _text_of(orjson.loads(event[1])) == text + "."
    except orjson.JSONDecodeError:
        return False


def _text_of(raw: dict[str, Any]) -> str | None:
    """Return the content of the only choice, or None if the chunk says more than that."""
    choices = raw.get("choices")
    first = choices[0] if isinstance(choices, list) and len(choices) == 1 else None
    delta = first.get("delta") if isinstance(first, dict) else None
    if not isinstance(delta, dict) or not isinstance(text := delta.get("content"), str):
        return None
    # Anything else in a delta, such as a part of a tool call, is kept each time.
    return None if any(value for name, value in delta.items() if name not in ("role", "content")) else text
