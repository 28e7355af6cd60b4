"""One-time links: a new password, and the proof of an e-mail address. What is stored of one is the hash of its secret part."""

import sqlite3
from typing import NamedTuple

from svc.auth.tokens import token_hash
from svc.errors import ApiError
from svc.ids import random_base62

RESET_SECONDS = 3600
VERIFY_SECONDS = 24 * 3600
_SECONDS = {"reset": RESET_SECONDS, "verify": VERIFY_SECONDS}
_LENGTH = 43
_VERIFIED, _UNVERIFIED = "p", "u"


class Link(NamedTuple):
    """Whose link it is, and whether it went to the account's address: who uses it then reads the mail there."""

    account_id: str
    by_mail: bool


def new_link_token(*, verified: bool) -> str:
    """Return the secret part of a link. Its last character tells the page whether the account's address was verified before: if
    not, somebody else may have made the account's keys."""
    return random_base62(_LENGTH - 1) + (_VERIFIED if verified else _UNVERIFIED)


def add_link(tx: sqlite3.Connection, account_id: str, purpose: str, token: str, *, by_mail: bool, now_seconds: float) -> bool:
    """Stores a link for a `reset` (valid for an hour) or to `verify` (a day); the earlier ones stay good.

    False where the account has so many that no further one is made.
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
    """The link with that secret part. Raises ApiError `invalid_token` for a used, old or unknown one."""
    row = conn.execute(
        "SELECT account_id, by_mail FROM links WHERE token_hash = ? AND purpose = ? AND expires_at > ?",
        (token_hash(token), purpose, now_seconds),
    ).fetchone()
    if row is None:
        raise ApiError("invalid_token", param="token")
    return Link(row["account_id"], bool(row["by_mail"]))


def use_link(tx: sqlite3.Connection, purpose: str, token: str, now_seconds: float) -> Link:
    """`find_link`, once: all links of the account for that purpose are void from here on."""
    link = find_link(tx, purpose, token, now_seconds)
    tx.execute("DELETE FROM links WHERE account_id = ? AND purpose = ?", (link.account_id, purpose))
    return link


def delete_links(tx: sqlite3.Connection, account_id: str) -> None:
    tx.execute("DELETE FROM links WHERE account_id = ?", (account_id,))
