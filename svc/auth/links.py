"""One-time links that set a new password or verify an email address. Only a hash of the secret part is stored."""

import sqlite3
from typing import NamedTuple

from svc.auth.tokens import token_hash
from svc.errors import ApiError
from svc.ids import random_base62

_SECONDS = {"reset": 3600, "verify": 24 * 3600}
_LENGTH = 43
_VERIFIED, _UNVERIFIED = "p", "u"


class Link(NamedTuple):
    """`by_mail`: the link was mailed to the account's address, so its use verifies that address."""

    account_id: str
    by_mail: bool


def new_link_token(*, verified: bool) -> str:
    """Return the secret part of a link. Its last character says whether the account's address was verified before.

    If not, another person may have made the account's keys, and the page suggests deleting them.
    """
    return random_base62(_LENGTH - 1) + (_VERIFIED if verified else _UNVERIFIED)


def add_link(tx: sqlite3.Connection, account_id: str, purpose: str, token: str, *, by_mail: bool, now_seconds: float) -> bool:
    """Store a link to `reset` (valid for an hour) or `verify` (a day); earlier links stay valid.

    Return False if the account has too many links.
    """
    tx.execute("DELETE FROM links WHERE account_id = ? AND expires_at <= ?", (account_id, now_seconds))
    try:
        tx.execute(
            "INSERT INTO links (token_hash, account_id, purpose, by_mail, expires_at) VALUES (?, ?, ?, ?, ?)",
            (token_hash(token), account_id, purpose, by_mail, now_seconds + _SECONDS[purpose]),
        )
    except sqlite3.IntegrityError as error:
        if str(error) != "links_count":
            raise
        return False
    return True


def find_link(conn: sqlite3.Connection, purpose: str, token: str, now_seconds: float) -> Link:
    """Return the link with this secret part. Raises ApiError `invalid_token` if it is used, expired or unknown."""
    row = conn.execute(
        "SELECT account_id, by_mail FROM links WHERE token_hash = ? AND purpose = ? AND expires_at > ?",
        (token_hash(token), purpose, now_seconds),
    ).fetchone()
    if row is None:
        raise ApiError("invalid_token", param="token")
    return Link(row["account_id"], bool(row["by_mail"]))


def use_link(tx: sqlite3.Connection, purpose: str, token: str, now_seconds: float) -> Link:
    """Return the link as `find_link`, and delete all links of the account for that purpose."""
    link = find_link(tx, purpose, token, now_seconds)
    tx.execute("DELETE FROM links WHERE account_id = ? AND purpose = ?", (link.account_id, purpose))
    return link


def delete_links(tx: sqlite3.Connection, account_id: str) -> None:
    tx.execute("DELETE FROM links WHERE account_id = ?", (account_id,))
