"""The identities at other providers that sign in to an account."""

import sqlite3

from svc.auth import given
from svc.errors import ApiError
from svc.ids import new_id
from svc.tables import Table, json_of, refusals

TABLE = Table("identities", json_of("id issuer email created_at"), "identity", "idn")


def account_of(conn: sqlite3.Connection, issuer: str, subject: str) -> str | None:
    query = "SELECT account_id FROM identities WHERE issuer = ? AND subject = ?"
    row = conn.execute(query, (issuer, subject)).fetchone()
    return None if row is None else str(row["account_id"])


def add_identity(
    tx: sqlite3.Connection, account_id: str, issuer: str, subject: str, email: str | None, now_seconds: float
) -> None:
    """Link an identity. Raises ApiError `invalid_token` if it is linked already or the account is deleted."""
    columns = {"id": new_id("idn", now_seconds), "account_id": account_id, "issuer": issuer, "subject": subject}
    invalid = ApiError("invalid_token")
    with refusals(UNIQUE=invalid, FOREIGN=invalid):
        TABLE.insert(tx, {**columns, "email": email, "created_at": now_seconds})


def delete_identities(tx: sqlite3.Connection, account_id: str, *, but: tuple[str, str] | None) -> None:
    """Unlink every identity of the account, except that of the issuer and subject `but`."""
    given.remember(tx, account_id)
    statement = "DELETE FROM identities WHERE account_id = ? AND (issuer, subject) IS NOT (?, ?)"
    tx.execute(statement, (account_id, *(but or (None, None))))


def delete_identity(tx: sqlite3.Connection, account_id: str, identity_id: str, *, has_password: bool) -> None:
    """Unlink an identity. Raises ApiError `not_found`, or `last_identity` if there is no other way to sign in."""
    given.remember(tx, account_id)
    TABLE.delete(tx, account_id, identity_id)
    if not has_password and not TABLE.page(tx, account_id, 1, None).items:
        raise ApiError("last_identity")
