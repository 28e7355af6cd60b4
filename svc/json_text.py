"""JSON of others, parsed so that it is bounded and keeps no other thread waiting for long; integers have any size.

A parser written in C lets no other thread run until it is done: 80 ms for a text of 16 MiB, 150 ms for 250,000 keys. So values
are counted before, and long texts are taken out, read piece by piece, and put back.
"""

import json
import math
import os
import re
from collections.abc import Iterator
from typing import Any

import orjson

from svc.errors import ApiError

# How many JSON values one body may hold: an object takes up to 35 times its bytes, and so many are parsed in 30 ms.
MOST_JSON_VALUES = 100_000
_JSON_DEPTH = 100
_SLICE_BYTES = _LONG_BYTES = 64 * 1024
_BIG_BYTES = 4 * 1024 * 1024
_BIG_BODYS_LONG_BYTES = 64
_INTEGER_DIGITS = 1_000
_LONG_DIGITS = 19  # more than 64 bits may have
_LONG_ZEROS = b"0" * _LONG_DIGITS
_DIGITS = bytes(b"0"[0] if byte in b"0123456789" else 0 for byte in range(256))
_LONG_NUMBER = re.compile(rb"([0-9]{%d})[0-9]+" % (_LONG_DIGITS - 1))
_NUMBER = re.compile(rb"[0-9]*")
# What stands in a text, up to where an escape is cut off; possessive, so that it never goes back.
_TEXT = re.compile(rb'[^"\\]*+(?:\\(?:u[0-9a-fA-F]{4}|[^u])[^"\\]*+)*+')
_SECOND_HALF = re.compile(rb"\\u[dD][c-fC-F]")  # of a character that is written as two escapes


def parse_json(body: bytes) -> Any:
    """`body` as JSON. Raises ApiError `invalid_json`, also for NaN, lone surrogates and too many levels, or
    `PAYLOAD_TOO_LARGE` for too many values."""
    if len(body) > MOST_JSON_VALUES and has_more_values(body):
        raise ApiError("PAYLOAD_TOO_LARGE", f"The JSON body holds more than {MOST_JSON_VALUES} values. Send less.")
    texts: dict[str, str] = {}
    try:
        if len(body) > _LONG_BYTES:
            body = _without_long_texts(body, texts)
        value = _loads(body)
    except orjson.JSONDecodeError as error:
        place = "" if texts else f" at character {error.pos}"
        raise ApiError("invalid_json", f"The request body is not valid JSON: {error.msg}{place}.") from None
    except ValueError as error:
        raise ApiError("invalid_json", f"The request body is not valid JSON: {error}.") from None
    if body.count(b"[") + body.count(b"{") > _JSON_DEPTH and _too_deep(value):
        raise ApiError("invalid_json", f"The JSON body is nested more than {_JSON_DEPTH} levels deep.")
    return _put_back(value, texts) if texts else value


def loads(body: bytes) -> Any:
    """`body` as orjson reads it, but long texts piece by piece, so that it does not keep other threads waiting. Raises
    orjson.JSONDecodeError."""
    texts: dict[str, str] = {}
    if len(body) > _LONG_BYTES:
        body = _without_long_texts(body, texts)
    value = orjson.loads(body)
    return _put_back(value, texts) if texts else value


def dumps(value: Any) -> bytes:
    """JSON of what `parse_json` gives, written piece by piece, so that it does not keep other threads waiting."""
    pieces: list[bytes] = []
    _write(value, pieces)
    return b"".join(pieces)


def _write(value: Any, pieces: list[bytes]) -> None:
    if isinstance(value, str):
        slices = (value[start : start + _SLICE_BYTES] for start in range(0, len(value), _SLICE_BYTES))
        pieces += [b'"', *(orjson.dumps(text)[1:-1] for text in slices), b'"']
    elif isinstance(value, list):
        pieces.append(b"[")
        for place, item in enumerate(value):
            pieces.append(b"," if place else b"")
            _write(item, pieces)
        pieces.append(b"]")
    elif isinstance(value, dict):
        pieces.append(b"{")
        for place, (name, item) in enumerate(value.items()):
            pieces.append(b"," if place else b"")
            _write(name, pieces)
            pieces.append(b":")
            _write(item, pieces)
        pieces.append(b"}")
    else:  # an integer of over 64 bits goes on digit by digit
        pieces.append(json.dumps(value).encode())


# --- long integers


def _loads(body: bytes) -> Any:
    """`body` as orjson reads it, but an integer beyond 64 bits, which orjson makes a float of, stays what it is. Raises
    ValueError."""
    if len(body) <= _SLICE_BYTES:
        long = body.translate(_DIGITS).find(_LONG_ZEROS) >= 0  # `in` takes bytes for a number first, and makes an error of it
    else:
        long = any(_LONG_ZEROS in piece.translate(_DIGITS) for piece in _between_numbers(body))
    if not long:
        return orjson.loads(body)
    # The other parser takes much that JSON is not: so the same text is judged first, with shorter numbers.
    orjson.loads(b"".join(_LONG_NUMBER.sub(rb"\1", piece) for piece in _between_numbers(body)))
    try:
        return json.loads(body, parse_int=_integer, parse_float=_float)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def _between_numbers(body: bytes) -> Iterator[bytes]:
    """`body` a slice at a time, none of which ends inside a number."""
    position = 0
    while position < len(body):
        following = _NUMBER.match(body, position + _SLICE_BYTES)
        end = following.end() if following else len(body)
        yield body[position:end]
        position = end


def _integer(digits: str) -> int:
    if len(digits.lstrip("-")) > _INTEGER_DIGITS:
        raise ValueError(f"an integer has more than {_INTEGER_DIGITS} digits")
    return int(digits)


def _float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError("a number is infinite")
    return number


# --- long texts


def _without_long_texts(body: bytes, texts: dict[str, str]) -> bytes:
    """`body` with a short stand-in for each long text; `texts` then tells what each stands for. Raises JSONDecodeError."""
    name, kept, position = os.urandom(12).hex(), [], 0
    # Of a big body short texts, too: as many as there may be of them would take the parser long.
    for start, end in _long_texts(body, _LONG_BYTES if len(body) <= _BIG_BYTES else _BIG_BODYS_LONG_BYTES):
        stand_in = f"{name}-{len(texts)}"
        short = end - start <= _SLICE_BYTES
        texts[stand_in] = orjson.loads(body[start - 1 : end + 1]) if short else "".join(_pieces(body, start, end))
        kept += [body[position:start], stand_in.encode()]
        position = end
    return b"".join([*kept, body[position:]]) if kept else body


def _long_texts(body: bytes, long_bytes: int) -> Iterator[tuple[int, int]]:
    """Where the texts in `body` of more than `long_bytes` begin and end, without their quotes."""
    position, start, inside = 0, 0, False
    while position < len(body):
        # Escapes are blotted out by as many bytes, so that the quotes which are left begin or end a text.
        piece = _whole_slice(body, position).replace(rb"\\", b"__").replace(rb"\"", b"__")
        place = position
        for part in piece.split(b'"')[:-1]:
            place += len(part)
            if inside and place - start > long_bytes:
                yield start, place
            inside = not inside
            start = place = place + 1
        position += len(piece)
    if inside:
        raise orjson.JSONDecodeError("unexpected end of data", "", len(body))


def _pieces(body: bytes, start: int, end: int) -> Iterator[str]:
    """A text a piece at a time, none of which ends inside a character."""
    while start < end:
        match = _TEXT.match(body, start, min(start + _SLICE_BYTES, end))
        stop = match.end() if match else start
        if stop < end:
            while body[stop] & 0xC0 == 0x80 and stop > start:  # inside a character of UTF-8
                stop -= 1
            if _SECOND_HALF.match(body, stop):
                stop += 6
        if stop == start:
            raise orjson.JSONDecodeError("invalid escaped sequence in string", "", start)
        yield orjson.loads(b'"%b"' % body[start:stop])
        start = stop


def _put_back(value: Any, texts: dict[str, str]) -> Any:
    if isinstance(value, str):
        return texts.get(value, value)
    holders = [value]
    while holders:
        holder = holders.pop()
        if isinstance(holder, dict) and any(name in texts for name in holder):
            items = [(texts.get(name, name), item) for name, item in holder.items()]
            holder.clear()
            holder.update(items)
        for place, item in list(holder.items() if isinstance(holder, dict) else enumerate(holder)):
            if isinstance(item, dict | list):
                holders.append(item)
            elif isinstance(item, str) and item in texts:
                holder[place] = texts[item]
    return value


# --- how much there is


def has_more_values(body: bytes, most: int = MOST_JSON_VALUES) -> bool:
    """Whether the JSON `body` may hold more than `most` values."""
    return len(body) > most and body.count(b"[") + body.count(b"{") + body.count(b",") > most and _values(body, most) > most


def _whole_slice(body: bytes, position: int) -> bytes:
    """Some of `body` from `position`, which never ends between a backslash and what it escapes."""
    piece = body[position : position + _SLICE_BYTES]
    backslashes = len(piece) - len(piece.rstrip(b"\\"))
    return body[position : position + _SLICE_BYTES + 1] if backslashes % 2 else piece


def _values(body: bytes, most: int) -> int:
    """How many values `body` holds at most: its commas and brackets, but for those that stand in texts. Ends beyond `most`."""
    values, position, inside = 0, 0, False
    while position < len(body) and values <= most:
        piece = _whole_slice(body, position)
        parts = piece.replace(rb"\\", b"").replace(rb"\"", b"").split(b'"')
        outside = b"".join(parts[1 if inside else 0 :: 2])
        values += outside.count(b"[") + outside.count(b"{") + outside.count(b",")
        inside ^= len(parts) % 2 == 0
        position += len(piece)
    return values


def _too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_JSON_DEPTH):
        containers = [item for item in level if isinstance(item, dict | list)]
        level = [child for item in containers for child in (item.values() if isinstance(item, dict) else item)]
    return any(isinstance(item, dict | list) for item in level)
