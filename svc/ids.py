"""Identifiers and times as the API shows them."""

import secrets
import string
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime

BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
_CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"
_CROCKFORD_PAIRS = [first + second for first in _CROCKFORD for second in _CROCKFORD]
# 248 of the 256 byte values stand for a character, four for each; the other eight are dropped, or some would be likelier.
_CHARACTER_OF_BYTE = (BASE62 * 4).encode() + bytes(8)
_DROPPED = bytes(range(248, 256))


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
        number = (_newest.time << 68) | secrets.randbits(68)
    return f"{prefix}_" + "".join([_CROCKFORD_PAIRS[(number >> shift) & 1023] for shift in range(120, -1, -10)])


def random_base62(length: int) -> str:
    """`length` random characters out of 0-9A-Za-z that nobody can guess, for tokens."""
    characters = b""
    while len(characters) < length:
        characters += secrets.token_bytes(length + 8).translate(_CHARACTER_OF_BYTE, _DROPPED)
    return characters[:length].decode()


def timestamp(seconds: float) -> str:
    """Unix seconds as ISO 8601 in UTC with milliseconds and `Z`."""
    return datetime.fromtimestamp(_millis(seconds) / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _millis(seconds: float) -> int:
    # By way of whole microseconds, or 1.001 would be 1000 (and many times of 2038 too): the float is a little less.
    return round(seconds * 1_000_000) // 1000
