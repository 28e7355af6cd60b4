"""The identities at other providers that sign in to an account here."""

import sqlite3
from typing import Any, NamedTuple

from svc.db import Page, page
from svc.errors import ApiError
from svc.ids import new_id, timestamp


class LinkedIdentity(NamedTuple):
    """An identity at `issuer` that signs in to an account; `email` as the provider gave it when they were linked."""

    id: str
    issuer: str
    email: str | None
    created_at: float

    def as_json(self, provider: str | None) -> dict[str, Any]:
        """As the API shows it; `provider` is the configured one, None where its issuer is gone."""
        return {
            "id": self.id,
            "provider": provider,
            "issuer": self.issuer,
            "email": self.email,
            "created_at": timestamp(self.created_at),
        }


def account_of(conn: sqlite3.Connection, issuer: str, subject: str) -> str | None:
    """The id of the account that an identity signs in to, None for an unknown one."""
    row = conn.execute("SELECT account_id FROM identities WHERE issuer = ? AND subject = ?", (issuer, subject)).fetchone()
    account_id: str | None = row and row["account_id"]
    return account_id


def add_identity(
    tx: sqlite3.Connection, account_id: str, issuer: str, subject: str, email: str | None, now_seconds: float
) -> None:
    """Links an identity to an account. Raises ApiError `invalid_token` when it is linked already, or the account is gone."""
    try:
        tx.execute(
            "INSERT INTO identities (id, account_id, issuer, subject, email, created_at) VALUES (?, ?, ?, ?, ?, ?)",
            (new_id("idn", now_seconds), account_id, issuer, subject, email, now_seconds),
        )
    except sqlite3.IntegrityError:
        raise ApiError("invalid_token") from None


def identities_page(conn: sqlite3.Connection, account_id: str, limit: int, after: str | None) -> Page[LinkedIdentity]:
    """A page of the account's identities, as svc/db.py's `page`."""
    rows = page(conn, "identities", account_id, limit, after)
    return rows.of(lambda row: LinkedIdentity(row["id"], row["issuer"], row["email"], row["created_at"]))


def delete_identities(tx: sqlite3.Connection, account_id: str, *, but: tuple[str, str] | None) -> None:
    """Unlinks every identity of the account, except for the one of that issuer and subject."""
    tx.execute(
        "DELETE FROM identities WHERE account_id = ? AND (issuer, subject) IS NOT (?, ?)", (account_id, *(but or (None, None)))
    )


def delete_identity(tx: sqlite3.Connection, account_id: str, identity_id: str, *, has_password: bool) -> None:
    """Unlinks an identity. Raises ApiError `not_found`, and `last_identity` when it is the only way in to the account."""
    deleted = tx.execute("DELETE FROM identities WHERE account_id = ? AND id = ?", (account_id, identity_id)).rowcount
    if not deleted:
        raise ApiError("not_found", "There is no such identity.")
    left = tx.execute("SELECT EXISTS (SELECT 1 FROM identities WHERE account_id = ?)", (account_id,)).fetchone()[0]
    if not (has_password or left):
        raise ApiError("last_identity")
