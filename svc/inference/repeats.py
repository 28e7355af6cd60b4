"""Events of a stream that say what one before them said, but for their text: most do, and are read together.

what a read of the network brought -> Repeats.find() -> a Repeat: the texts of the events that it begins with, and what is left
                                   -> None: they are parsed one by one, and the last of them is perhaps learned
"""

import re
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import orjson

_MARK = b'"content":'
_TEXT = re.compile(rb'\s*("(?:[^"\\]|\\.)*+")')
# A stream in which each event differs elsewhere, too (OpenAI pads them at random), is not worth the look.
_MISSES = 16


@dataclass(slots=True)
class Repeat:
    """Raw chunks that came together, each `like` the same one, with the next of `texts` as the content of its only choice, which
    is never empty. `text` is all of them in one, `tokens` what each is in JSON."""

    like: dict[str, Any]
    texts: list[str]
    text: str
    tokens: list[bytes]

    def raws(self) -> list[dict[str, Any]]:
        """The raw chunks as they came."""
        (choice,) = self.like["choices"]
        return [{**self.like, "choices": [{**choice, "delta": {**choice["delta"], "content": text}}]} for text in self.texts]


class Repeats:
    """Knows the last chunk of one stream that held a text, and finds those that differ from it in nothing but that.

    `secret` is what is taken out of answers: texts that hold it are left to the parser.
    """

    def __init__(self, secret: str | None) -> None:
        self._secret = secret
        self._like: dict[str, Any] | None = None
        self._before = self._after = b""  # what stands before a text, and after it
        self._mark = self._between = b""  # the end of what stands before one, and all else between two
        self._misses = 0

    def learn(self, data: bytes, raw: dict[str, Any]) -> None:
        """Note a chunk and the data of its event if the one `"content":` in the data is that of its delta."""
        self._like = None
        if self._misses > _MISSES or data.count(_MARK) != 1 or (text := _text_of(raw)) is None:
            return
        self._misses += 1
        start = data.index(_MARK) + len(_MARK)
        found = _TEXT.match(data, start)
        if found is not None and _ends_text(found.end(1), data, text):
            self._like = raw
            self._before, self._after = b"data: " + data[: found.start(1)], data[found.end(1) :] + b"\n\n"
            self._mark = _MARK + data[start : found.start(1)]
            self._between = self._after + self._before.removesuffix(self._mark)

    def find(self, data: bytes) -> tuple[Repeat, bytes] | None:
        """The events at the beginning of `data`, which begins an event, that are repeats, and what comes after them.

        What stands where the text stood is one text again, and all else is the same.
        """
        if self._like is None or not data.startswith(self._before):
            return None
        parts = data[len(self._before) :].split(self._mark)
        tokens, last = self._parted(parts) if len(parts) > 1 else ([], parts[0])
        last, whole, rest = last.partition(self._after)
        if whole:
            tokens.append(last)
        else:
            rest = self._before + last
        # A tab, as a line's end, cannot stand in a text of JSON: so no token can hide that it is less than one, or more.
        joined = b",\t".join(tokens)
        if joined.find(b"\n") >= 0 or joined.find(b"\r") >= 0:  # `in` takes bytes for a number first, and makes an error of it
            return None
        try:
            texts = orjson.loads(b"[" + joined + b"]")
            text = "".join(texts)
        except (orjson.JSONDecodeError, TypeError):  # no JSON, or a value that is no text
            return None
        if not texts or not all(texts) or len(texts) != len(tokens) or (self._secret is not None and self._secret in text):
            return None
        self._misses = 0
        return Repeat(self._like, texts, text, tokens), rest

    def _parted(self, parts: list[bytes]) -> tuple[list[bytes], bytes]:
        """What stands where the text stood, in all of `parts` that are followed by another repeat, and all that comes then.

        They were parted at the mark: a search for all that stands between two texts takes twice as long as to compare it.
        """
        between, followed = self._between, parts[:-1]
        tokens = [part[: -len(between)] for part in followed]
        if between.join(tokens) + between != b"".join(followed):  # something else comes in between
            tokens = tokens[: sum(1 for _ in takewhile(lambda part: part.endswith(between), followed))]
        return tokens, self._mark.join(parts[len(tokens) :])


def _ends_text(end: int, data: bytes, text: str) -> bool:
    """Return whether the JSON string that ends at `end` in `data` is the content of the only choice, which is `text`.

    The same text may stand elsewhere, or the name `content` be written in another way. So the string gets one more character,
    which the content must then have.
    """
    try:
        return _text_of(orjson.loads(data[: end - 1] + b"." + data[end - 1 :])) == text + "."
    except orjson.JSONDecodeError:
        return False


def _text_of(raw: dict[str, Any]) -> str | None:
    """Return the content of the only choice, or None if there is more than that to read."""
    choices = raw.get("choices")
    first = choices[0] if isinstance(choices, list) and len(choices) == 1 else None
    delta = first.get("delta") if isinstance(first, dict) else None
    if not isinstance(delta, dict) or not isinstance(text := delta.get("content"), str):
        return None
    # What else a delta says, a piece of a call, perhaps, is kept each time that it is said.
    return None if any(value for name, value in delta.items() if name not in ("role", "content")) else text
