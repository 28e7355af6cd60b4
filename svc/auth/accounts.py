"""Accounts: who exists, how they prove a password, and the links that reset it (contract 3)."""

import asyncio
import re
import sqlite3
import unicodedata
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import argon2

from svc.errors import ApiError
from svc.ids import new_id, timestamp

T = TypeVar("T")
RESET_SECONDS = 3600
PASSWORD_LENGTH = (8, 1024)
# Characters that mean something in a mail header or an address list never come from a person's e-mail here.
_EMAIL = re.compile(r"[^\s@<>()\[\]\\,;:\"\x00-\x20\x7f-\x9f]+@[^\s@<>()\\,;\"\x00-\x20\x7f-\x9f]+")


class Passwords:
    """argon2id in a bounded pool: two threads, so that the event loop keeps a core, and a bounded queue before them."""

    def __init__(self, memory_kib: int, time_cost: int, waiting: int = 100) -> None:
        self._hasher = argon2.PasswordHasher(time_cost=time_cost, memory_cost=memory_kib, parallelism=1)
        self._pool = ThreadPoolExecutor(2, thread_name_prefix="argon2")
        self._free = waiting
        self._nobody = self._hasher.hash("nobody has this password")

    async def hash(self, password: str) -> str:
        """The hash to store of a password. Raises ApiError `overloaded` when too many wait."""
        return await self._run(lambda: self._hasher.hash(password))

    async def matches(self, password: str, stored: str | None) -> bool:
        """Whether `password` is the one behind `stored`; takes as long when there is none (faults.md)."""
        return await self._run(lambda: self._verify(password, stored))

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)

    def _verify(self, password: str, stored: str | None) -> bool:
        try:
            self._hasher.verify(stored or self._nobody, password)
        except (argon2.exceptions.VerificationError, argon2.exceptions.InvalidHashError):
            return False
        return stored is not None

    async def _run(self, work: Callable[[], T]) -> T:
        if self._free == 0:
            raise ApiError("overloaded", "Too many people sign in at this moment. Try again in a few seconds.")
        self._free -= 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        finally:
            self._free += 1


def check_email(value: Any) -> str:
    """`value` as an e-mail address. Raises ApiError `missing_field` or `invalid_value`."""
    if value is None:
        raise ApiError("missing_field", "email is required.", param="email")
    if not isinstance(value, str) or not 3 <= len(value) <= 254 or not _EMAIL.fullmatch(value):
        raise ApiError("invalid_value", "email must be an address such as ada@example.com.", param="email")
    return value


def check_password(value: Any) -> str:
    """`value` as a new password. Raises ApiError `missing_field` or `invalid_value`."""
    shortest, longest = PASSWORD_LENGTH
    if value is None:
        raise ApiError("missing_field", "password is required.", param="password")
    if not isinstance(value, str) or not shortest <= len(value) <= longest:
        raise ApiError("invalid_value", f"password must have {shortest} to {longest} characters.", param="password")
    return value


def check_name(value: Any) -> str | None:
    """`value` as a person's name, None for none. Raises ApiError `invalid_value`."""
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > 200 or any(unicodedata.category(c) in ("Cc", "Cs") for c in value):
        raise ApiError(
            "invalid_value", "name must be a string of at most 200 characters, without control characters.", param="name"
        )
    return value.strip() or None


def email_key(email: str) -> str:
    """The one form of an e-mail under which it is unique, whatever its case."""
    return unicodedata.normalize("NFKC", email).casefold()


def shown(account: Any, auth: str) -> dict[str, Any]:
    """An account row as `GET /user/me` shows it; `auth` is `session` or `api_key`."""
    return {
        "id": account["id"],
        "email": account["email"],
        "name": account["name"],
        "tier": account["tier"],
        "created_at": timestamp(account["created_at"]),
        "auth": auth,
    }


def add_account(
    tx: sqlite3.Connection, email: str, name: str | None, password_hash: str | None, now_seconds: float, tier: str = "free"
) -> sqlite3.Row:
    """Stores a new account and returns its row. Raises ApiError `email_taken`."""
    try:
        row: sqlite3.Row = tx.execute(
            """
            INSERT INTO accounts (id, email, email_key, name, password_hash, tier, created_at)
            VALUES (?, ?, ?, ?, ?, ?, ?)
            RETURNING *
            """,
            (new_id("user", now_seconds), email, email_key(email), name, password_hash, tier, now_seconds),
        ).fetchone()
    except sqlite3.IntegrityError:
        raise ApiError("email_taken", param="email") from None
    return row


def account_by_id(conn: sqlite3.Connection, account_id: str) -> sqlite3.Row | None:
    row: sqlite3.Row | None = conn.execute("SELECT * FROM accounts WHERE id = ?", (account_id,)).fetchone()
    return row


def account_by_email(conn: sqlite3.Connection, email: str) -> sqlite3.Row | None:
    row: sqlite3.Row | None = conn.execute("SELECT * FROM accounts WHERE email_key = ?", (email_key(email),)).fetchone()
    return row


def all_accounts(conn: sqlite3.Connection) -> list[sqlite3.Row]:
    return conn.execute("SELECT * FROM accounts ORDER BY id").fetchall()


def update_account(tx: sqlite3.Connection, account_id: str, changes: dict[str, Any]) -> sqlite3.Row:
    """Sets the given columns (`name`, `default_model`, `memory_enabled`) and returns the row. Raises ApiError `invalid_api_key`
    when the account is gone."""
    for column, value in changes.items():
        tx.execute(f"UPDATE accounts SET {column} = ? WHERE id = ?", (value, account_id))  # noqa: S608 - our own names
    row = account_by_id(tx, account_id)
    if row is None:
        raise ApiError("invalid_api_key")
    return row


def delete_account(tx: sqlite3.Connection, account_id: str) -> bool:
    """Deletes an account with everything personal; False if there is none."""
    return tx.execute("DELETE FROM accounts WHERE id = ?", (account_id,)).rowcount == 1


def add_password_reset(tx: sqlite3.Connection, account_id: str, token_hash: bytes, by_mail: bool, now_seconds: float) -> None:
    """Stores a one-time link by its hash, valid for an hour, in the place of an older one."""
    tx.execute(
        """
        INSERT INTO password_resets (token_hash, account_id, by_mail, expires_at) VALUES (?, ?, ?, ?)
        ON CONFLICT (account_id) DO UPDATE SET
            token_hash = excluded.token_hash, by_mail = excluded.by_mail, expires_at = excluded.expires_at
        """,
        (token_hash, account_id, by_mail, now_seconds + RESET_SECONDS),
    )


def use_password_reset(tx: sqlite3.Connection, token_hash: bytes, password_hash: str, now_seconds: float) -> None:
    """Sets the password of the account behind a one-time link; one that came by mail proves the e-mail.

    Raises ApiError `invalid_token` for a used, old or unknown one.
    """
    row = tx.execute(
        "DELETE FROM password_resets WHERE token_hash = ? RETURNING account_id, by_mail, expires_at", (token_hash,)
    ).fetchone()
    if row is None or row["expires_at"] <= now_seconds:
        raise ApiError("invalid_token", param="token")
    tx.execute("UPDATE accounts SET password_hash = ? WHERE id = ?", (password_hash, row["account_id"]))
    if row["by_mail"]:
        prove_email(tx, row["account_id"], now_seconds)


def prove_email(tx: sqlite3.Connection, account_id: str, now_seconds: float) -> None:
    """Notes that the account's e-mail is its person's: identities with the same proved e-mail may join it (contract 3)."""
    tx.execute("UPDATE accounts SET email_proved_at = ? WHERE id = ? AND email_proved_at IS NULL", (now_seconds, account_id))
