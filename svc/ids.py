"""Identifiers and times as the API shows them (contract 2)."""

import secrets
import string
import time
from datetime import UTC, datetime

BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
_CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"


def new_id(prefix: str, now_seconds: float | None = None) -> str:
    """An id `<prefix>_` + 26 characters: 48 bits of milliseconds, then 80 random bits, so that ids sort by time."""
    millis = int((time.time() if now_seconds is None else now_seconds) * 1000)
    number = (millis << 80) | secrets.randbits(80)
    return f"{prefix}_" + "".join(_CROCKFORD[(number >> shift) & 31] for shift in range(125, -1, -5))


def random_base62(length: int) -> str:
    """`length` random characters out of 0-9A-Za-z, for tokens."""
    return "".join(secrets.choice(BASE62) for _ in range(length))


def timestamp(seconds: float) -> str:
    """Unix seconds as ISO 8601 in UTC with milliseconds and `Z`."""
    return datetime.fromtimestamp(int(seconds * 1000) / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
