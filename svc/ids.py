"""Identifiers and times as the API shows them."""

import functools
import secrets
import string
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import AnyStr

BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
_CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"
_CROCKFORD_PAIRS = [first + second for first in _CROCKFORD for second in _CROCKFORD]
_CROCKFORD_OF_BYTE = (_CROCKFORD * 8).encode()
# 248 of the 256 byte values stand for a character, four for each; the other eight are dropped, or some would be likelier.
_CHARACTER_OF_BYTE = (BASE62 * 4).encode() + bytes(8)
_DROPPED = bytes(range(248, 256))
_RANDOM_BYTES = 4096


# The system gives 4 KiB of random bytes at a time, cut to pieces: to ask it for each id would take longer than all else.
# Taking one is a single operation, so that no two threads are ever given the same.
_texts: defaultdict[int, list[str]] = defaultdict(list)  # by their length
_tails: list[bytes] = []  # of ids
_TAIL_BYTES = 14


@dataclass
class _Newest:
    """The time of the newest id: 48 bits of milliseconds, then 12 that count within one."""

    time: int = 0
    one_at_a_time: threading.Lock = field(default_factory=threading.Lock)


_newest = _Newest()


def new_id(prefix: str, now_seconds: float | None = None) -> str:
    """An id `<prefix>_` + 26 characters: 60 bits of time, then 68 random ones, so that ids sort by time, and those of one process
    in the order in which they were made, whatever the clock says.

    Nobody can guess one from others: the page that a payment returns to knows its checkout by the id alone.
    """
    with _newest.one_at_a_time:
        _newest.time = max(_millis(time.time() if now_seconds is None else now_seconds) << 12, _newest.time + 1)
        newest = _newest.time
    try:
        random = _tails.pop()
    except IndexError:
        random, *others = _cut(secrets.token_bytes(_RANDOM_BYTES), _TAIL_BYTES)
        _tails.extend(others)
    # 13 characters, to which the time and 3 bits go; the first 8 are the same for a second.
    last = (newest & 0x3FFFFF) << 3 | random[0] & 7
    pairs = _CROCKFORD_PAIRS[last >> 15] + _CROCKFORD_PAIRS[last >> 5 & 1023] + _CROCKFORD[last & 31]
    return f"{prefix}_{_eight_characters(newest >> 22)}{pairs}{random[1:].translate(_CROCKFORD_OF_BYTE).decode()}"


@functools.lru_cache(16)
def _eight_characters(number: int) -> str:
    return "".join(_CROCKFORD_PAIRS[number >> shift & 1023] for shift in (30, 20, 10, 0))


def random_base62(length: int) -> str:
    """`length` random characters out of 0-9A-Za-z that nobody can guess, for tokens."""
    try:
        return _texts[length].pop()
    except IndexError:
        made = ""
        while len(made) < length:
            made += secrets.token_bytes(_RANDOM_BYTES).translate(_CHARACTER_OF_BYTE, _DROPPED).decode()
        text, *others = _cut(made, length)
        _texts[length].extend(others)
        return text


def _cut(made: AnyStr, length: int) -> list[AnyStr]:
    return [made[start : start + length] for start in range(0, len(made) - length + 1, length or 1)]


def timestamp(seconds: float) -> str:
    """Unix seconds as ISO 8601 in UTC with milliseconds and `Z`."""
    whole_seconds, millis = divmod(_millis(seconds), 1000)
    return f"{_second(whole_seconds)}.{millis:03}Z"


@functools.lru_cache(64)
def _second(whole_seconds: int) -> str:
    return datetime.fromtimestamp(whole_seconds, UTC).isoformat()[: len("2026-09-21T00:00:00")]


def _millis(seconds: float) -> int:
    # By way of whole microseconds, or 1.001 would be 1000 (and many times of 2038 too): the float is a little less.
    return round(seconds * 1_000_000) // 1000
