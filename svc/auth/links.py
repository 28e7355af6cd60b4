"""One-time links that set a new password, or verify, change or restore an email address, stored by a hash."""

import sqlite3
from collections.abc import Collection
from typing import NamedTuple

from svc.auth.accounts import Account
from svc.auth.emails import lookalike_key
from svc.auth.tokens import token_hash
from svc.errors import ApiError
from svc.ids import random_base62

_SECONDS = {"reset": 3600, "verify": 24 * 3600, "change": 24 * 3600, "undo": 72 * 3600}
# The links that become invalid when one of this purpose is used.
_ENDED = {
    "reset": "reset change",
    "verify": "verify",
    "change": "reset verify change",
    "undo": "reset verify change undo",
}
_LENGTH = 43
_VERIFIED, _UNVERIFIED = "p", "u"


class Recipient(NamedTuple):
    """The address that a link is for, its secret part, and the language of the account, if it has chosen one."""

    address: str
    token: str
    language: str | None


class Link(NamedTuple):
    """A link; `number` is its order. `by_mail`: it was mailed to the account's address, so its use verifies that.

    `email` is the address that the account gets, for `change` and `undo`.
    """

    account_id: str
    purpose: str
    by_mail: bool
    email: str | None
    number: int


def add_link(
    tx: sqlite3.Connection,
    account: Account,
    purpose: str,
    now_seconds: float,
    email: str | None = None,
    *,
    by_mail: bool = True,
    seconds: int | None = None,
) -> Recipient | None:
    """Store a link to `reset` (valid for an hour), `verify`, `change` (a day) or `undo` (72 hours), or for `seconds`.

    Earlier links stay valid. Return None if the account has too many links. The last character of the secret part says
    whether the account's address is verified. If not, another person may have made the account's keys, and the page
    suggests deleting them. After a change of the address, the same applies to an undo.
    """
    token = random_base62(_LENGTH - 1) + (_VERIFIED if account.email_verified and purpose != "undo" else _UNVERIFIED)
    ends = now_seconds + (_SECONDS[purpose] if seconds is None else seconds)
    key = None if email is None else lookalike_key(email)
    tx.execute("DELETE FROM links WHERE account_id = ? AND expires_at <= ?", (account.id, now_seconds))
    try:
        tx.execute(
            "INSERT INTO links (token_hash, account_id, purpose, by_mail, expires_at, email, email_key) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (token_hash(token), account.id, purpose, by_mail, ends, email, key),
        )
    except sqlite3.IntegrityError as error:
        if str(error) != "links_count":
            raise
        return None
    return Recipient(email or account.email, token, account.language)


def find_link(conn: sqlite3.Connection, purposes: Collection[str], token: str, now_seconds: float) -> Link:
    """Return the link with this secret part. Raises ApiError `invalid_token`, `account_suspended`."""
    query = """
        SELECT account_id, purpose, by_mail, links.email, links.rowid, suspended_at
        FROM links JOIN accounts ON accounts.id = account_id WHERE token_hash = ? AND links.expires_at > ?
    """
    row = conn.execute(query, (token_hash(token), now_seconds)).fetchone()
    if row is None or row["purpose"] not in purposes:
        raise ApiError("invalid_token", param="token")
    if row["suspended_at"] is not None:
        raise ApiError("account_suspended")
    return Link(row["account_id"], row["purpose"], bool(row["by_mail"]), row["email"], row["rowid"])


def use_link(tx: sqlite3.Connection, purposes: Collection[str], token: str, now_seconds: float) -> Link:
    """Return the link as `find_link`, and delete it with the links that its use makes invalid."""
    link = find_link(tx, purposes, token, now_seconds)
    end_links(tx, link.account_id, link.purpose, link.number)
    return link


def end_links(tx: sqlite3.Connection, account_id: str, purpose: str, number: int = 0) -> None:
    """Delete the account's links that are invalid after a link of `purpose` was used.

    After an undo, the changes before the link with that number can still be undone: their addresses are the older ones.
    """
    statement = "DELETE FROM links WHERE account_id = ? AND instr(?, purpose) AND (purpose <> 'undo' OR rowid >= ?)"
    tx.execute(statement, (account_id, _ENDED[purpose], number))


def delete_outstanding(tx: sqlite3.Connection) -> None:
    """Delete the links of all accounts, except those that let an owner undo a change of address."""
    tx.execute("DELETE FROM links WHERE purpose <> 'undo'")


def delete_links(tx: sqlite3.Connection, account_id: str) -> None:
    tx.execute("DELETE FROM links WHERE account_id = ?", (account_id,))
