"""Identifiers and times as the API shows them."""

import base64
import functools
import hmac
import os
import random
import re
import string
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
_CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"
_CROCKFORD_PAIRS = [first + second for first in _CROCKFORD for second in _CROCKFORD]
_ID = re.compile(f"([a-z]+)_([{_CROCKFORD}]{{12}})[{_CROCKFORD}]{{14}}")
_TO_BASE32 = str.maketrans(_CROCKFORD, string.digits + string.ascii_lowercase[:22])
# 256 is a multiple of 32, so each character is equally likely.
_CROCKFORD_OF_BYTE = (_CROCKFORD * 8).encode()
# 248 of the 256 byte values map to a character, four to each. The other 8 are dropped to keep all characters equally
# likely.
_BASE62_OF_BYTE = (BASE62 * 4).encode() + bytes(8)
_DROPPED = bytes(range(248, 256))


class _Newest:
    """The time of the newest id: 48 bits of milliseconds, then a counter of 12 bits."""

    time = 0
    lock = threading.Lock()


def new_id(prefix: str, now_seconds: float | None = None, random_bytes: Callable[[int], bytes] = os.urandom) -> str:
    """Return `<prefix>_` and 26 characters: 60 bits of time, then 70 random bits.

    Ids sort by time. Those of one process sort in the order in which they were made, even if the clock goes back.
    The random bits come from the system: the page after a payment identifies its checkout by the id alone. Ids of holds
    and of the ledger grant nothing and use the faster `random.randbytes`.
    """
    with _Newest.lock:
        _Newest.time = newest = max(
            _millis(time.time() if now_seconds is None else now_seconds) << 12, _Newest.time + 1
        )
    end = _CROCKFORD_PAIRS[newest >> 10 & 1023] + _CROCKFORD_PAIRS[newest & 1023]
    return f"{prefix}_{_quarter_second(newest >> 20)}{end}{random_bytes(14).translate(_CROCKFORD_OF_BYTE).decode()}"


@functools.lru_cache(4)
def _quarter_second(bits: int) -> str:
    return "".join([_CROCKFORD_PAIRS[bits >> shift & 1023] for shift in (30, 20, 10, 0)])


def made_at(row_id: str, prefix: str) -> float | None:
    """Return when an id of `new_id(prefix)` was made, in Unix seconds rounded up, or None if it is not one."""
    form = _ID.fullmatch(row_id)
    if form is None or form[1] != prefix:
        return None
    return ((int(form[2].translate(_TO_BASE32), 32) >> 12) + 1) / 1000


def random_base62(length: int) -> str:
    """Return `length` characters of 0-9A-Za-z from the system's random bytes, for tokens."""
    # Twice as many as needed: one byte in 32 is dropped.
    made = os.urandom(2 * length).translate(_BASE62_OF_BYTE, _DROPPED)
    return made[:length].decode() if len(made) >= length else random_base62(length)


def public_id(prefix: str) -> str:
    """Return `prefix` and 22 digits: an id that grants nothing, so that it may be predictable, which is faster."""
    return prefix + random.getrandbits(88).to_bytes(11).hex()


def base64url(data: bytes) -> str:
    """Return `data` in base64 for addresses and cookies, without padding (RFC 4648, 5)."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def signature(key: bytes, text: str) -> str:
    return base64url(hmac.digest(key, text.encode(), "sha256"))


def timestamp(seconds: float) -> str:
    """Return Unix seconds as ISO 8601 in UTC with milliseconds and `Z`."""
    whole_seconds, millis = divmod(_millis(seconds), 1000)
    return f"{_second(whole_seconds)}.{millis:03}Z"


def day_of(now_seconds: float) -> str:
    """Return the UTC day of a time, such as 2026-09-21."""
    return _day(int(now_seconds // 86_400))


@functools.lru_cache(maxsize=4)
def _day(number: int) -> str:
    return timestamp(number * 86_400)[:10]


def fields_as_json(record: Mapping[str, Any], names: str) -> dict[str, Any]:
    """Return the named fields of a record in the form of the API, with a time for each name that ends with `_at`."""
    values = {name: record[name] for name in names.split()}
    return {
        name: timestamp(value) if name.endswith("_at") and value is not None else value
        for name, value in values.items()
    }


@functools.lru_cache(64)
def _second(whole_seconds: int) -> str:
    return datetime.fromtimestamp(whole_seconds, UTC).isoformat()[: len("2026-09-21T00:00:00")]


def _millis(seconds: float) -> int:
    # Round to microseconds first: the float of 1.001 is a little less and would give 1000.
    return round(seconds * 1_000_000) // 1000
