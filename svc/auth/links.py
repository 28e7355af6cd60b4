"""One-time links, known here by their hash alone."""

import sqlite3

from svc.auth import accounts
from svc.errors import ApiError

RESET_SECONDS = 3600


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
    accounts.set_password(tx, row["account_id"], password_hash)
    if row["by_mail"]:
        accounts.prove_email(tx, row["account_id"], now_seconds)
