"""The blocks of event streams: chunks of a chat, and whatever else a stream tells, as server-sent events in JSON."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

DONE = b"data: [DONE]\n\n"
_PART_BYTES = 64 * 1024
_ascii_json = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode

Chunk = dict[str, Any]


@dataclass(slots=True)
class Texts:
    """Chunks that differ in their text alone: what each holds, the same in JSON, and the block of one before and after it."""

    texts: list[str]
    tokens: list[bytes]
    before: bytes
    after: bytes


def blocks(chunks: Sequence[Chunk | Texts]) -> list[bytes]:
    """The blocks of chunks that came together, so many in one piece that others have the event loop in between."""
    if len(chunks) == 1:
        return [_written(chunks[0])]
    parts, part = [], b""
    for chunk in chunks:
        part += _written(chunk)
        if len(part) >= _PART_BYTES:
            parts.append(part)
            part = b""
    return [*parts, part] if part else parts


def _written(chunk: Chunk | Texts) -> bytes:
    if not isinstance(chunk, Texts):
        return event(chunk)
    between = chunk.after + chunk.before
    data = between.join(chunk.tokens)
    if not data.isascii():
        data = between.join([_ascii_json(text).encode() for text in chunk.texts])
    return chunk.before + data + chunk.after


def event(chunk: Chunk) -> bytes:
    """One block of a chat stream, in ASCII: some readers end a line at U+2028."""
    try:
        data = orjson.dumps(chunk)
    except TypeError:  # some 250 levels deep, or a lone surrogate: the slower way takes it
        data = _ascii_json(chunk).encode()
    if not data.isascii():
        data = _ascii_json(chunk).encode()
    return b"data: " + data + b"\n\n"


def error_event(error: dict[str, Any]) -> bytes:
    """The block that ends a stream in the middle: `error` is the inner object, `DONE` follows."""
    return event({"error": error})
