"""Unfinished sign-ins at identity providers: bound to a browser by a cookie, each step taken once.

begin -> the state goes to the provider -> end: the flow is over, whatever the answer -> add_code -> the page ->
use_code
"""

import re
import sqlite3
from typing import NamedTuple

from starlette.datastructures import Headers
from starlette.responses import Response

from svc.auth.tokens import token_hash
from svc.cookies import cookie
from svc.errors import ApiError
from svc.ids import random_base62
from svc.tables import refusals

COOKIE = "__Host-svc_oauth"  # browsers accept this prefix only from this host, over HTTPS
FLOW_SECONDS = 600
CODE_SECONDS = 60
_TOKEN_LENGTH = 43
_TOKEN = re.compile(rf"[0-9A-Za-z]{{{_TOKEN_LENGTH}}}")
_DELETED_AT_ONCE = 20


class BegunFlow(NamedTuple):
    """A sign-in at `provider`, or for an `account_id` the linking of an identity to that account."""

    provider: str
    account_id: str | None


def browser_of(headers: Headers) -> str | None:
    """Return the browser's cookie value, or None if it has begun no sign-in."""
    value = cookie(headers.getlist("cookie"), COOKIE)
    return value if value and _TOKEN.fullmatch(value) else None


def set_cookie(response: Response, browser: str) -> None:
    """Bind a sign-in to its browser, for as long as the sign-in may take."""
    seconds = FLOW_SECONDS + CODE_SECONDS
    response.set_cookie(COOKIE, browser, max_age=seconds, path="/", secure=True, httponly=True, samesite="lax")


def new_token() -> str:
    """Return a random cookie value, state or code."""
    return random_base62(_TOKEN_LENGTH)


def begin(
    tx: sqlite3.Connection, state: str, browser: str, provider: str, account_id: str | None, now_seconds: float
) -> None:
    """Store a flow for 10 minutes; `account_id` is the account to link to, or None for a sign-in."""
    _delete_old(tx, "oauth_flows", now_seconds)
    with refusals():
        statement = """
            INSERT INTO oauth_flows (state_hash, browser_hash, provider, account_id, expires_at) VALUES (?, ?, ?, ?, ?)
        """
        flow = (token_hash(state), token_hash(browser), provider, account_id, now_seconds + FLOW_SECONDS)
        tx.execute(statement, flow)


def end(tx: sqlite3.Connection, state: str, browser: str, now_seconds: float) -> BegunFlow | None:
    """Delete the flow of `state` and return it; None if it is used, expired, unknown or another browser's."""
    row = tx.execute(
        "DELETE FROM oauth_flows WHERE state_hash = ? AND browser_hash = ? RETURNING provider, account_id, expires_at",
        (token_hash(state), token_hash(browser)),
    ).fetchone()
    return BegunFlow(row["provider"], row["account_id"]) if row and now_seconds < row["expires_at"] else None


def add_code(tx: sqlite3.Connection, code: str, browser: str, account_id: str, now_seconds: float) -> None:
    """Store the code that signs `browser` in as `account_id`, once, within a minute."""
    _delete_old(tx, "oauth_codes", now_seconds)
    statement = "INSERT INTO oauth_codes (code_hash, browser_hash, account_id, expires_at) VALUES (?, ?, ?, ?)"
    tx.execute(statement, (token_hash(code), token_hash(browser), account_id, now_seconds + CODE_SECONDS))


def use_code(tx: sqlite3.Connection, code: str, browser: str, now_seconds: float) -> str:
    """Return the account id of a code. Raises ApiError `invalid_token`."""
    statement = "DELETE FROM oauth_codes WHERE code_hash = ? AND browser_hash = ? RETURNING account_id, expires_at"
    row = tx.execute(statement, (token_hash(code), token_hash(browser))).fetchone()
    if row is None or row["expires_at"] <= now_seconds:
        raise ApiError("invalid_token", "This sign-in is not valid. Start it again in this browser.", param="code")
    return str(row["account_id"])


def delete_flows(tx: sqlite3.Connection, account_id: str) -> None:
    """Delete the flows that would link an identity to an account, and the codes that would sign in to it."""
    tx.execute("DELETE FROM oauth_flows WHERE account_id = ?", (account_id,))
    tx.execute("DELETE FROM oauth_codes WHERE account_id = ?", (account_id,))


def delete_all(tx: sqlite3.Connection) -> None:
    tx.execute("DELETE FROM oauth_flows")
    tx.execute("DELETE FROM oauth_codes")


def _delete_old(tx: sqlite3.Connection, table: str, now_seconds: float) -> None:
    # A few at a time: after a flood, one long transaction would delay all writes.
    old = f"SELECT rowid FROM {table} WHERE expires_at <= ? LIMIT ?"  # noqa: S608 - our names
    tx.execute(f"DELETE FROM {table} WHERE rowid IN ({old})", (now_seconds, _DELETED_AT_ONCE))  # noqa: S608 - our names
