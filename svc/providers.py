"""A user's own model-provider endpoints (BYOK): their records, and their keys encrypted at rest (contract 4)."""

import os
import re
import sqlite3
from collections.abc import Mapping
from typing import Any

import httpx
import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from svc.addresses import checked_url
from svc.errors import ApiError
from svc.ids import new_id, timestamp

_SLUG = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_NONCE_BYTES = 12
_MOST_MODELS = 1_000
_KEY_LENGTH = 4_096


class KeyBox:
    """Encrypts providers' keys with an AEAD bound to account and provider: a row copied elsewhere opens nowhere."""

    def __init__(self, secret: bytes) -> None:
        self._aead = AESGCM(secret)

    def seal(self, account_id: str, provider_id: str, api_key: str) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._aead.encrypt(nonce, api_key.encode(), _bound_to(account_id, provider_id))

    def open(self, account_id: str, provider_id: str, sealed: bytes) -> str:
        """The key. Raises ApiError `invalid_value` when this installation's secret is not the one that sealed it."""
        try:
            nonce, data = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
            return self._aead.decrypt(nonce, data, _bound_to(account_id, provider_id)).decode()
        except InvalidTag:
            raise ApiError("invalid_value", "The provider's stored key cannot be read any more. Set it again.") from None


def _bound_to(account_id: str, provider_id: str) -> bytes:
    return f"{account_id}/{provider_id}".encode()


def check_fields(body: Mapping[str, Any], *, creating: bool) -> dict[str, Any]:
    """The fields of a request that are there, checked: `name`, `base_url`, `api_key` (None takes it away), `models`.

    Raises ApiError `missing_field` or `invalid_value`.
    """
    fields = {name: check(body[name]) for name, check in _CHECKS.items() if name in body}
    if creating:
        for name in ("name", "base_url"):
            if body.get(name) is None:
                raise ApiError("missing_field", f"{name} is required.", param=name)
    return fields


def _check_name(value: Any) -> str:
    if not isinstance(value, str) or not _SLUG.fullmatch(value):
        raise ApiError("invalid_value", "name must be a slug: a-z, 0-9, - and _, at most 63 characters.", param="name")
    return value


def _check_base_url(value: Any) -> str:
    try:
        if not isinstance(value, str) or len(value) > 2_000:
            raise httpx.InvalidURL("")
        checked_url(value)
    except (httpx.InvalidURL, httpx.UnsupportedProtocol):
        raise ApiError(
            "invalid_value", "base_url must be an address such as https://api.example.com/v1.", param="base_url"
        ) from None
    if "?" in value:
        raise ApiError("invalid_value", "base_url must have no query.", param="base_url")
    return value.rstrip("/")


def _check_key(value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not 0 < len(value) <= _KEY_LENGTH or not value.isascii() or not value.isprintable():
        raise ApiError("invalid_value", "api_key must be printable ASCII.", param="api_key")
    return value


def _check_models(value: Any) -> list[str] | None:
    if value is None:
        return None
    named = isinstance(value, list) and all(
        isinstance(name, str) and 0 < len(name) <= 300 and name.isprintable() for name in value
    )
    if not named or len(value) > _MOST_MODELS:
        raise ApiError("invalid_value", "models must be a list of the provider's own model names, or null.", param="models")
    return list(dict.fromkeys(value))


_CHECKS = {"name": _check_name, "base_url": _check_base_url, "api_key": _check_key, "models": _check_models}


def shown(row: sqlite3.Row) -> dict[str, Any]:
    """A provider as the API shows it: never its key."""
    return {
        "id": row["id"],
        "name": row["name"],
        "base_url": row["base_url"],
        "api_key_hint": row["api_key_hint"],
        "models": None if row["models"] is None else orjson.loads(row["models"]),
        "created_at": timestamp(row["created_at"]),
    }


def add_provider(
    tx: sqlite3.Connection, account_id: str, fields: Mapping[str, Any], box: KeyBox, now_seconds: float
) -> sqlite3.Row:
    """Stores a new provider and returns its row. Raises ApiError `name_taken`."""
    provider_id = new_id("prov", now_seconds)
    try:
        tx.execute(
            "INSERT INTO providers (id, account_id, name, base_url, models, created_at) VALUES (?, ?, ?, ?, ?, ?)",
            (provider_id, account_id, fields["name"], fields["base_url"], _listed(fields.get("models")), now_seconds),
        )
    except sqlite3.IntegrityError:
        raise ApiError("name_taken", param="name") from None
    _set_key(tx, account_id, provider_id, fields.get("api_key"), box)
    return provider_by_id(tx, account_id, provider_id)


def change_provider(
    tx: sqlite3.Connection, account_id: str, provider_id: str, fields: Mapping[str, Any], box: KeyBox
) -> sqlite3.Row:
    """Changes the fields that are given and returns the row. A new scheme, host or port drops the key unless a new one comes
    along, so that a key never travels to where its owner did not send it. Raises ApiError `not_found`, `name_taken`."""
    row = provider_by_id(tx, account_id, provider_id)
    moved = "base_url" in fields and checked_url(fields["base_url"])[0] != checked_url(row["base_url"])[0]
    try:
        tx.execute(
            "UPDATE providers SET name = ?, base_url = ?, models = ? WHERE account_id = ? AND id = ?",
            (
                fields.get("name", row["name"]),
                fields.get("base_url", row["base_url"]),
                _listed(fields["models"]) if "models" in fields else row["models"],
                account_id,
                provider_id,
            ),
        )
    except sqlite3.IntegrityError:
        raise ApiError("name_taken", param="name") from None
    if moved or "api_key" in fields:
        _set_key(tx, account_id, provider_id, fields.get("api_key"), box)
    return provider_by_id(tx, account_id, provider_id)


def _set_key(tx: sqlite3.Connection, account_id: str, provider_id: str, api_key: str | None, box: KeyBox) -> None:
    sealed = None if api_key is None else box.seal(account_id, provider_id, api_key)
    # Enough to tell one key from another, and nothing of a short one.
    hint = None if api_key is None else f"…{api_key[-4:]}" if len(api_key) >= 16 else "…"
    tx.execute(
        "UPDATE providers SET sealed_key = ?, api_key_hint = ? WHERE account_id = ? AND id = ?",
        (sealed, hint, account_id, provider_id),
    )


def _listed(models: list[str] | None) -> str | None:
    return None if models is None else orjson.dumps(models).decode()


def provider_by_id(conn: sqlite3.Connection, account_id: str, provider_id: str) -> sqlite3.Row:
    """One provider of the account. Raises ApiError `not_found`."""
    row: sqlite3.Row | None = conn.execute(
        "SELECT * FROM providers WHERE account_id = ? AND id = ?", (account_id, provider_id)
    ).fetchone()
    if row is None:
        raise ApiError("not_found", "There is no such provider.")
    return row


def provider_by_name(conn: sqlite3.Connection, account_id: str, name: str) -> sqlite3.Row | None:
    row: sqlite3.Row | None = conn.execute(
        "SELECT * FROM providers WHERE account_id = ? AND name = ?", (account_id, name)
    ).fetchone()
    return row


def providers_page(conn: sqlite3.Connection, account_id: str, limit: int, after: str | None) -> list[sqlite3.Row]:
    """Up to `limit + 1` providers of the account, newest first, those older than `after`. Raises ApiError `invalid_value` for
    an `after` that is none of them."""
    if (
        after is not None
        and not conn.execute("SELECT 1 FROM providers WHERE account_id = ? AND id = ?", (account_id, after)).fetchone()
    ):
        raise ApiError("invalid_value", "after must be the id of a provider in this list.", param="after")
    return conn.execute(
        """
        SELECT * FROM providers WHERE account_id = ? AND (? IS NULL OR id < ?)
        ORDER BY id DESC LIMIT ?
        """,
        (account_id, after, after, limit + 1),
    ).fetchall()


def all_providers(conn: sqlite3.Connection, account_id: str) -> list[sqlite3.Row]:
    """Every provider of the account, the oldest first."""
    return conn.execute("SELECT * FROM providers WHERE account_id = ? ORDER BY id", (account_id,)).fetchall()


def delete_provider(tx: sqlite3.Connection, account_id: str, provider_id: str) -> None:
    """Raises ApiError `not_found`."""
    if not tx.execute("DELETE FROM providers WHERE account_id = ? AND id = ?", (account_id, provider_id)).rowcount:
        raise ApiError("not_found", "There is no such provider.")
