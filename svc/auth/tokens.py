"""Session tokens (JWT) and personal API keys: how they are made, verified and looked up."""

import asyncio
import base64
import hashlib
import hmac
import re
import sqlite3
import sys
import zlib
from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

import orjson

from svc import quota
from svc.auth import accounts
from svc.errors import ApiError
from svc.ids import BASE62, fields_as_json, new_id, random_base62
from svc.months import spent_this_month
from svc.shapes import Shape, refusal, text
from svc.tables import Table, refusals

SESSION_SECONDS = 8 * 3600
_BY_IDENTITY = "sso"
KEY_PREFIX = "svc-v1-"
KEY_LENGTH = 49
_KEY_NAME = text(1_000, blank=False)


def _check_key_name(value: Any, param: str) -> str:
    if "\0" in _KEY_NAME.check(value, param):
        raise refusal(value, param, "a string without U+0000")
    return str(value)


KEY_NAME = Shape(
    _check_key_name,
    "a string of 1 to 1000 characters that is not blank",
    {
        **_KEY_NAME.schema,
        "description": "A label.",
        "pattern": "^[^\\u0000]*[^\\s\\u0000\\u001c-\\u001f\\u0085][^\\u0000]*$",
    },
)
_CHECKSUM_LENGTH = 6
_PAIRS = [first + second for first in BASE62 for second in BASE62]
_CLOCK_STEP_SECONDS = 60  # a correction of the clock by less does not end a new session
_KEY = re.compile(f"{KEY_PREFIX}[0-9A-Za-z]{{{KEY_LENGTH - len(KEY_PREFIX)}}}")
_COMPARED_KEYS = 1_000  # with a limit; it takes some milliseconds
_LAST_ID = "key_~"  # greater than every id


TABLE = Table[sqlite3.Row]("api_keys", lambda row: row, "key", "key")


class Session(NamedTuple):
    """A session's account; `identity_at` is when an identity provider began it (Unix seconds), 0 for other sessions."""

    account_id: str
    identity_at: int


async def load_jwt() -> None:
    """Import PyJWT in a thread, before a session is issued or read: with cryptography, the import is slow."""
    if "jwt" not in sys.modules:
        await asyncio.to_thread(import_module, "jwt")


def issue_session(secret: bytes, account_id: str, now_seconds: float, *, by_identity: bool = False) -> str:
    """Return a JWT that is valid for 8 hours. The prefix of its id says whether an identity signed in."""
    return _session(secret, account_id, int(now_seconds), new_id(_BY_IDENTITY if by_identity else "ses", now_seconds))


def _session(secret: bytes, account_id: str, issued_at: int, session_id: str) -> str:
    import jwt

    claims = {"iss": "svc", "sub": account_id, "iat": issued_at, "exp": issued_at + SESSION_SECONDS, "jti": session_id}
    return jwt.encode(claims, secret, algorithm="HS256")


def read_session(secret: bytes, token: str, now_seconds: float) -> Session:
    """Return the session of a token. Raises ApiError `invalid_api_key` if the token is not valid.

    A valid token is what is issued for its claims. That verifies signature, algorithm, header, claims, lifetime and
    base64. Raises ApiError `session_expired` after 8 hours.
    """
    try:
        claims = orjson.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
        account_id, issued_at, session_id = claims["sub"], claims["iat"], claims["jti"]
        issued = (type(account_id), type(issued_at), type(session_id)) == (str, int, str) and hmac.compare_digest(
            _session(secret, account_id, issued_at, session_id).encode(), token.encode()
        )
    except (ValueError, TypeError, LookupError):
        issued = False
    if not issued or issued_at > now_seconds + _CLOCK_STEP_SECONDS:
        raise ApiError("invalid_api_key")
    if now_seconds >= issued_at + SESSION_SECONDS:
        raise ApiError("session_expired")
    return Session(account_id, issued_at if session_id.startswith(f"{_BY_IDENTITY}_") else 0)


def new_key_token() -> str:
    """Return a new API key. By its checksum, a leak scanner knows it from similar strings."""
    body = KEY_PREFIX + random_base62(KEY_LENGTH - len(KEY_PREFIX) - _CHECKSUM_LENGTH)
    return body + _checksum(body)


def key_hash(token: str) -> bytes | None:
    """Return the hash of a key, or None if its form or checksum is wrong, so that it costs no query."""
    if _KEY.fullmatch(token) is None or token[-_CHECKSUM_LENGTH:] != _checksum(token[:-_CHECKSUM_LENGTH]):
        return None
    return token_hash(token)


def _checksum(text: str) -> str:
    number = zlib.crc32(text.encode())
    return _PAIRS[number // 62**4] + _PAIRS[number // 62**2 % 62**2] + _PAIRS[number % 62**2]


def token_hash(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def as_json(row: sqlite3.Row, now_seconds: float) -> dict[str, Any]:
    """Return a key as the API shows it, without its hash."""
    stored = "id key_prefix name created_at last_used_at spent_micros monthly_limit_micros"
    return {**fields_as_json(dict(row), stored), "spent_this_month_micros": spent_this_month(row, now_seconds)}


def add_key(
    tx: sqlite3.Connection,
    account_id: str,
    name: str,
    token: str,
    now_seconds: float,
    monthly_limit_micros: int | None = None,
) -> dict[str, Any]:
    """Store a new key by its hash. Raises ApiError `quota_exceeded`, `invalid_api_key` if the account is deleted."""
    quota.check_row(tx, account_id, name)
    columns = {
        "id": new_id("key", now_seconds),
        "account_id": account_id,
        "token_hash": token_hash(token),
        "key_prefix": token[:10],
        "name": name,
        "created_at": now_seconds,
        "monthly_limit_micros": monthly_limit_micros,
    }
    with refusals():
        return as_json(TABLE.insert(tx, columns), now_seconds)


def change_key(
    tx: sqlite3.Connection, account_id: str, key_id: str, changes: Mapping[str, Any], now_seconds: float
) -> dict[str, Any]:
    """Set the checked fields of a key and return it. Raises ApiError `not_found`, `quota_exceeded`."""
    row = TABLE.by_id(tx, account_id, key_id)
    if "name" in changes:
        quota.check_room(tx, account_id, len(changes["name"].encode()) - len(row["name"].encode()))
    return as_json(TABLE.update(tx, account_id, key_id, changes) if changes else row, now_seconds)


def keys_after(
    conn: sqlite3.Connection, account_id: str, after: str | None, limit: int, now_seconds: float
) -> list[dict[str, Any]]:
    query = "SELECT * FROM api_keys WHERE account_id = ? AND id < ? ORDER BY id DESC LIMIT ?"
    return [as_json(row, now_seconds) for row in conn.execute(query, (account_id, after or _LAST_ID, limit))]


def with_least_left(conn: sqlite3.Connection, account_id: str, now_seconds: float) -> dict[str, Any] | None:
    """Return the key of whose monthly limit the least is left, among 1,000 keys, or None if no key has a limit."""
    query = "SELECT * FROM api_keys WHERE account_id = ? AND monthly_limit_micros IS NOT NULL LIMIT ?"
    keys = [as_json(row, now_seconds) for row in conn.execute(query, (account_id, _COMPARED_KEYS))]
    return min(keys, key=lambda key: key["monthly_limit_micros"] - key["spent_this_month_micros"], default=None)


# The account's id, tier (None: it is suspended) and default model, the key's id, its last use (Unix seconds of a
# minute; 0: never), and the group.
KeyHolder = tuple[str, str | None, str | None, str, float, str | None]


def holder_of(conn: sqlite3.Connection, hashed: bytes) -> KeyHolder | None:
    # Only what every request needs: each column takes a microsecond.
    row: KeyHolder | None = conn.execute(
        """
        SELECT accounts.id, iif(suspended_at IS NULL, tier, NULL), default_model, api_keys.id, ifnull(last_used_at, 0),
            group_name
        FROM api_keys JOIN accounts ON accounts.id = api_keys.account_id
        WHERE token_hash = ? AND deleting_at IS NULL
        """,
        (bytearray(hashed),),  # for bytes, sqlite3 would search for an adapter
    ).fetchone()
    return row


def mark_keys_used(tx: sqlite3.Connection, uses: list[tuple[tuple[str, str], float]]) -> None:
    """Store the last use of accounts and keys: by their ids (key '' for a session), a minute in Unix seconds."""
    query = "UPDATE api_keys SET last_used_at = ?3 WHERE account_id = ?1 AND id = ?2 AND ifnull(last_used_at, 0) < ?3"
    for (account_id, key_id), minute_seconds in uses:
        tx.execute(query, (account_id, key_id, minute_seconds))
        accounts.mark_seen(tx, account_id, minute_seconds)
