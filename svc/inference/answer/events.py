"""Server-sent events with JSON: chunks of a chat, and other objects."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from svc.ids import random_base62
from svc.json_text import AT_ONCE_BYTES

DONE = b"data: [DONE]\n\n"
_PLACE = random_base62(32)  # occurs nowhere else
_ascii_json = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode

Chunk = dict[str, Any]


@dataclass(slots=True)
class TextChunks:
    """Chunks of one read that differ only in their text. Raw, they are `like` an earlier one except for its content.

    `texts` has no empty text, `tokens` has the texts as JSON strings, and `text` is all of them joined. `before` and
    `after` surround the text in the block of each chunk.
    """

    texts: list[str]
    tokens: list[bytes]
    text: str
    like: Chunk
    before: bytes = b""
    after: bytes = b""

    @property
    def ascii_tokens(self) -> list[bytes]:
        return self.tokens if self.text.isascii() else ascii_strings(self.texts)

    def raws(self) -> list[Chunk]:
        (choice,) = self.like["choices"]
        return [
            {**self.like, "choices": [{**choice, "delta": {**choice["delta"], "content": text}}]} for text in self.texts
        ]


def ascii_strings(texts: Sequence[str]) -> list[bytes]:
    """Return texts as JSON strings in ASCII."""
    return [_ascii_json(text).encode() for text in texts]


def blocks(chunks: Sequence[Chunk | TextChunks]) -> list[bytes]:
    """Return the events of chunks as bytes. Events are joined as `joined` does it."""
    if len(chunks) == 1:
        return [_written(chunks[0])]
    return joined([_written(chunk) for chunk in chunks])


def joined(blocks: Sequence[bytes]) -> list[bytes]:
    """Return `blocks` joined up to a size that lets the event loop run in between."""
    parts, part = [], b""
    for block in blocks:
        part += block
        if len(part) >= AT_ONCE_BYTES:
            parts.append(part)
            part = b""
    return [*parts, part] if part else parts


def _written(chunk: Chunk | TextChunks) -> bytes:
    if not isinstance(chunk, TextChunks):
        return event(chunk)
    return chunk.before + (chunk.after + chunk.before).join(chunk.ascii_tokens) + chunk.after


def around_text(chunk: Chunk) -> tuple[bytes, bytes]:
    """Return the parts of a chunk's block before and after its text. The chunk has one choice with a text."""
    (choice,) = chunk["choices"]
    block = event({**chunk, "choices": [{**choice, "delta": {"content": _PLACE}}]})
    before, _, after = block.partition(b'"%b"' % _PLACE.encode())
    return before, after


def event(chunk: Chunk) -> bytes:
    """Return one block of a chat stream."""
    return b"data: " + ascii_json(chunk) + b"\n\n"


def ascii_json(value: Any) -> bytes:
    """Return a value as JSON in ASCII: some readers end a line at U+2028."""
    try:
        data = orjson.dumps(value)
    except TypeError:  # over 250 levels deep, or half of a surrogate pair, which the slower encoder accepts
        data = b"\xff"
    return data if data.isascii() else _ascii_json(value).encode()
