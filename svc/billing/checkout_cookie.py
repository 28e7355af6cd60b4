"""The cookie that tells the checkout pages who is there. No API path takes it, nor these pages a session token."""

import base64
import hashlib
import hmac
import re
from typing import NamedTuple

from starlette.datastructures import Headers
from starlette.responses import Response

from svc.cookies import cookie

COOKIE = "__Host-svc_checkout"  # the prefix: browsers take it from this very host over HTTPS alone
COOKIE_SECONDS = 8 * 3600
_FORM = re.compile(r"([0-9a-z_]{1,64})\.([0-9]{1,15})\.([0-9A-Za-z_-]{43})", re.ASCII)


def remember(response: Response, secret: bytes, account_id: str, now_seconds: float) -> None:
    """Sets the cookie for `account_id` on the answer to a sign-in, for 8 hours."""
    payload = f"{account_id}.{int(now_seconds * 1000)}"
    value = f"{payload}.{_signature(secret, payload)}"
    response.set_cookie(COOKIE, value, max_age=COOKIE_SECONDS, path="/", secure=True, httponly=True, samesite="lax")


def delete(response: Response) -> None:
    """Clears the cookie."""
    response.delete_cookie(COOKIE, path="/", secure=True, httponly=True, samesite="lax")


class Remembered(NamedTuple):
    """Whom a cookie names, and when it was set (Unix milliseconds)."""

    account_id: str
    set_at_ms: int

    def outlives(self, proof_seconds: float | None) -> bool:
        """Whether it was set after the proof of the account's e-mail, if there is one. Before it anybody could be."""
        return proof_seconds is None or self.set_at_ms >= int(proof_seconds * 1000)


def remembered(headers: Headers, secret: bytes, now_seconds: float) -> Remembered | None:
    """Whom the cookie of a request with these headers names; None without a valid one."""
    match = _FORM.fullmatch(cookie(headers.getlist("cookie"), COOKIE) or "")
    if match is None:
        return None
    account_id, set_at_ms, signature = match.groups()
    genuine = hmac.compare_digest(signature, _signature(secret, f"{account_id}.{set_at_ms}"))
    if not genuine or now_seconds * 1000 >= int(set_at_ms) + COOKIE_SECONDS * 1000:
        return None
    return Remembered(account_id, int(set_at_ms))


def _signature(secret: bytes, payload: str) -> str:
    digest = hmac.new(secret, payload.encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
