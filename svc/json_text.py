"""JSON from outside, parsed in bounded time without blocking other threads for long; integers have any size.

A parser in C blocks all threads: 80 ms for a string of 16 MiB, 150 ms for 250,000 keys. So the values are counted
first, and long strings are taken out, parsed in slices, and put back.
"""

import json
import math
import os
import re
from collections.abc import Iterator
from typing import Any

import orjson

from svc.errors import ApiError

# In one body. Objects take up to 35 times their bytes, and parsing this many values takes 30 ms.
MOST_JSON_VALUES = 100_000
_JSON_DEPTH = 100
# Of JSON, or characters of a text. More would block the event loop: it is split, or read and written in a thread.
AT_ONCE_BYTES = 64 * 1024
_SLICE_BYTES = _LONG_BYTES = AT_ONCE_BYTES
_BIG_BYTES = 4 * 1024 * 1024
_BIG_BODYS_LONG_BYTES = 64  # parsing many short strings is slow as well
_INTEGER_DIGITS = 1_000
_LONG_DIGITS = 19  # of an integer that may need over 64 bits
_LONG_ZEROS = b"0" * _LONG_DIGITS
_DIGITS = bytes(b"0"[0] if byte in b"0123456789" else 0 for byte in range(256))
_LONG_NUMBER = re.compile(rb"([0-9]{%d})[0-9]+" % (_LONG_DIGITS - 1))
_NUMBER = re.compile(rb"[0-9]*")
# The content of a string up to an incomplete escape; possessive, so that it never backtracks.
_TEXT = re.compile(rb'[^"\\]*+(?:\\(?:u[0-9a-fA-F]{4}|[^u])[^"\\]*+)*+')
_SECOND_HALF = re.compile(rb"\\u[dD][c-fC-F]")  # of a character in two escapes


def parse_json(body: bytes) -> Any:
    """Parse `body`. Raises ApiError `PAYLOAD_TOO_LARGE` or `invalid_json`, for NaN and over 100 levels, too."""
    if has_more_values(body):
        raise ApiError("PAYLOAD_TOO_LARGE", f"The JSON body holds more than {MOST_JSON_VALUES} values. Send less.")
    texts: dict[str, str] = {}
    try:
        if len(body) > _LONG_BYTES:
            body = _without_long_texts(body, texts)
        value = _loads(body)
    except ValueError as error:
        fault = f"{error}"
        if isinstance(error, orjson.JSONDecodeError):
            fault = error.msg if texts else f"{error.msg} at character {error.pos}"
        raise ApiError("invalid_json", f"The request body is not valid JSON: {fault}.") from None
    if body.count(b"[") + body.count(b"{") > _JSON_DEPTH and _too_deep(value):
        raise ApiError("invalid_json", f"The JSON body is nested more than {_JSON_DEPTH} levels deep.")
    return _put_back(value, texts) if texts else value


def loads(body: bytes) -> Any:
    """Parse `body` like orjson.loads, without blocking other threads for long. Raises orjson.JSONDecodeError."""
    texts: dict[str, str] = {}
    if len(body) > _LONG_BYTES:
        body = _without_long_texts(body, texts)
    value = orjson.loads(body)
    return _put_back(value, texts) if texts else value


def dumps(value: Any) -> bytes:
    """Return the JSON of what `parse_json` returns, without blocking other threads for long."""
    parts: list[bytes] = []
    _write(value, parts)
    return b"".join(parts)


def _write(value: Any, parts: list[bytes]) -> None:
    if isinstance(value, str):
        slices = (value[start : start + _SLICE_BYTES] for start in range(0, len(value), _SLICE_BYTES))
        parts += [b'"', *(orjson.dumps(text)[1:-1] for text in slices), b'"']
    elif isinstance(value, dict | list):
        is_dict = isinstance(value, dict)
        parts.append(b"{" if is_dict else b"[")
        for place, item in enumerate(value):
            parts.append(b"," if place else b"")
            _write(item, parts)
            if is_dict:
                parts.append(b":")
                _write(value[item], parts)
        parts.append(b"}" if is_dict else b"]")
    else:
        parts.append(json.dumps(value).encode())


# --- long integers


def _loads(body: bytes) -> Any:
    """Parse like orjson.loads, which turns integers beyond 64 bits into floats, but keep them. Raises ValueError."""
    for part in _between_numbers(body):
        if part.translate(_DIGITS).find(_LONG_ZEROS) >= 0:
            break
    else:
        return orjson.loads(body)
    # json.loads accepts text that is not JSON. So orjson checks the same text first, with shorter numbers.
    orjson.loads(b"".join(_LONG_NUMBER.sub(rb"\1", part) for part in _between_numbers(body)))
    try:
        return json.loads(body, parse_int=_integer, parse_float=_float)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def _between_numbers(body: bytes) -> list[bytes]:
    """Return slices of `body`, none of which ends inside a number."""
    if len(body) <= _SLICE_BYTES:
        return [body]
    slices, position = [], 0
    while len(body) - position > _SLICE_BYTES and (following := _NUMBER.match(body, position + _SLICE_BYTES)):
        slices.append(body[position : following.end()])
        position = following.end()
    return [*slices, body[position:]]


def _integer(digits: str) -> int:
    if len(digits.lstrip("-")) > _INTEGER_DIGITS:
        raise ValueError(f"an integer has more than {_INTEGER_DIGITS} digits")
    return int(digits)


def _float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError("a number is infinite")
    return number


# --- long strings


def _without_long_texts(body: bytes, texts: dict[str, str]) -> bytes:
    """Return `body` with a short placeholder for each long string, and add the strings to `texts` by placeholder.

    Raises JSONDecodeError.
    """
    name, kept, position = os.urandom(12).hex(), [], 0
    for start, end in _long_texts(body, _LONG_BYTES if len(body) <= _BIG_BYTES else _BIG_BODYS_LONG_BYTES):
        stand_in = f"{name}-{len(texts)}"
        short = end - start <= _SLICE_BYTES
        texts[stand_in] = orjson.loads(body[start - 1 : end + 1]) if short else "".join(_text_slices(body, start, end))
        kept += [body[position:start], stand_in.encode()]
        position = end
    return b"".join([*kept, body[position:]]) if kept else body


def _long_texts(body: bytes, long_bytes: int) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each string in `body` of more than `long_bytes`, without its quotes."""
    start, inside = 0, False
    for place, parts in _split_at_quotes(body):
        for part in parts[:-1]:
            place += len(part)
            if inside and place - start > long_bytes:
                yield start, place
            inside = not inside
            start = place = place + 1
    if inside:
        raise orjson.JSONDecodeError("unexpected end of data", "", len(body))


def _split_at_quotes(body: bytes) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the position of each slice of `body`, and its parts between quotes. Escapes are overwritten."""
    position = 0
    while position < len(body):
        part = body[position : position + _SLICE_BYTES]
        if (len(part) - len(part.rstrip(b"\\"))) % 2:  # it would end inside an escape
            part = body[position : position + _SLICE_BYTES + 1]
        yield position, part.replace(rb"\\", b"__").replace(rb"\"", b"__").split(b'"')
        position += len(part)


def _text_slices(body: bytes, start: int, end: int) -> Iterator[str]:
    """Yield a string in slices, none of which ends inside a character."""
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


# --- limits


def has_more_values(body: bytes, most: int = MOST_JSON_VALUES) -> bool:
    """Return whether the JSON `body` may hold more than `most` values, by its commas and brackets."""
    if len(body) <= most or _marks(body) <= most:
        return False
    values, inside = 0, False
    for _, parts in _split_at_quotes(body):
        values += _marks(b"".join(parts[inside::2]))
        inside ^= len(parts) % 2 == 0
        if values > most:
            return True
    return False


def _marks(text: bytes) -> int:
    return text.count(b"[") + text.count(b"{") + text.count(b",")


def _too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_JSON_DEPTH):
        containers = [item for item in level if isinstance(item, dict | list)]
        level = [child for item in containers for child in (item.values() if isinstance(item, dict) else item)]
    return any(isinstance(item, dict | list) for item in level)
