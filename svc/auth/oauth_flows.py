"""A sign-in at an identity provider while it is under way: bound to its browser by a cookie, each of its steps taken once.

begin -> the state goes to the provider -> end: the flow is over whatever came -> add_code -> the page's fragment -> use_code
"""

import hashlib
import re
import sqlite3
from typing import NamedTuple

from starlette.datastructures import Headers
from starlette.responses import Response

from svc.cookies import cookie
from svc.errors import ApiError
from svc.ids import random_base62

COOKIE = "__Host-svc_oauth"  # the prefix: browsers take it from this very host over HTTPS alone
FLOW_SECONDS = 600
CODE_SECONDS = 60
_TOKEN_LENGTH = 43
_TOKEN = re.compile(rf"[0-9A-Za-z]{{{_TOKEN_LENGTH}}}")
_DELETED_AT_ONCE = 20


class BegunFlow(NamedTuple):
    """A sign-in that was sent to `provider`; `account_id` is the account to link the identity to, None for a sign-in."""

    provider: str
    account_id: str | None


def browser_of(headers: Headers) -> str | None:
    """What the browser of a request with these headers is known by; None for one that has begun no sign-in."""
    value = cookie(headers.getlist("cookie"), COOKIE)
    return value if value and _TOKEN.fullmatch(value) else None


def remember(response: Response, browser: str) -> None:
    """Sets the cookie that binds a sign-in to its browser, for as long as the sign-in may take."""
    seconds = FLOW_SECONDS + CODE_SECONDS
    response.set_cookie(COOKIE, browser, max_age=seconds, path="/", secure=True, httponly=True, samesite="lax")


def new_token() -> str:
    """A random browser, state or code."""
    return random_base62(_TOKEN_LENGTH)


def begin(tx: sqlite3.Connection, state: str, browser: str, provider: str, account_id: str | None, now_seconds: float) -> None:
    """Stores a flow that ends within 10 minutes; `account_id` is the account to link to, None for a sign-in.

    Raises ApiError `invalid_api_key` when that account is gone.
    """
    _delete_old(tx, "oauth_flows", now_seconds)
    try:
        tx.execute(
            "INSERT INTO oauth_flows (state_hash, browser_hash, provider, account_id, expires_at) VALUES (?, ?, ?, ?, ?)",
            (_hash(state), _hash(browser), provider, account_id, now_seconds + FLOW_SECONDS),
        )
    except sqlite3.IntegrityError:
        raise ApiError("invalid_api_key") from None


def end(tx: sqlite3.Connection, state: str, browser: str, now_seconds: float) -> BegunFlow | None:
    """Ends the flow of `state`, so that it never comes back.

    None for a used, old or unknown state, and for one of another browser.
    """
    row = tx.execute(
        "DELETE FROM oauth_flows WHERE state_hash = ? AND browser_hash = ? RETURNING provider, account_id, expires_at",
        (_hash(state), _hash(browser)),
    ).fetchone()
    return BegunFlow(row["provider"], row["account_id"]) if row and now_seconds < row["expires_at"] else None


def add_code(tx: sqlite3.Connection, code: str, browser: str, account_id: str, now_seconds: float) -> None:
    """Stores the code that signs `browser` in as `account_id`, once, within a minute."""
    _delete_old(tx, "oauth_codes", now_seconds)
    tx.execute(
        "INSERT INTO oauth_codes (code_hash, browser_hash, account_id, expires_at) VALUES (?, ?, ?, ?)",
        (_hash(code), _hash(browser), account_id, now_seconds + CODE_SECONDS),
    )


def use_code(tx: sqlite3.Connection, code: str, browser: str, now_seconds: float) -> str:
    """The account id behind a code. Raises ApiError `invalid_token` for a used, old or unknown one, or of another browser."""
    row = tx.execute(
        "DELETE FROM oauth_codes WHERE code_hash = ? AND browser_hash = ? RETURNING account_id, expires_at",
        (_hash(code), _hash(browser)),
    ).fetchone()
    if row is None or row["expires_at"] <= now_seconds:
        raise ApiError("invalid_token", "This sign-in is not valid any more. Begin it again, in this browser.", param="code")
    account_id: str = row["account_id"]
    return account_id


def delete_flows(tx: sqlite3.Connection, account_id: str) -> None:
    """Delete the flows that would link an identity to an account, and the codes that would sign in to it."""
    tx.execute("DELETE FROM oauth_flows WHERE account_id = ?", (account_id,))
    tx.execute("DELETE FROM oauth_codes WHERE account_id = ?", (account_id,))


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _delete_old(tx: sqlite3.Connection, table: str, now_seconds: float) -> None:
    # A few at a time: what a flood has left must not hold up everybody's writes at once.
    tx.execute(
        f"DELETE FROM {table} WHERE rowid IN (SELECT rowid FROM {table} WHERE expires_at <= ? LIMIT ?)",  # noqa: S608 - our names
        (now_seconds, _DELETED_AT_ONCE),
    )
