"""The cookie that tells the checkout pages who is there. No API path takes it, nor these pages a session token."""

import base64
import hashlib
import hmac
import re

from starlette.datastructures import Headers
from starlette.responses import Response

from svc.cookies import cookie

COOKIE = "__Host-svc_checkout"  # the prefix: browsers take it from this very host over HTTPS alone
COOKIE_SECONDS = 8 * 3600
_FORM = re.compile(r"([0-9a-z_]{1,64})\.([0-9]{1,12})\.([0-9A-Za-z_-]{43})", re.ASCII)


def remember(response: Response, secret: bytes, account_id: str, now_seconds: float) -> None:
    """Sets the cookie for `account_id` on the answer to a sign-in, for 8 hours."""
    payload = f"{account_id}.{int(now_seconds) + COOKIE_SECONDS}"
    value = f"{payload}.{_signature(secret, payload)}"
    response.set_cookie(COOKIE, value, max_age=COOKIE_SECONDS, path="/", secure=True, httponly=True, samesite="lax")


def forget(response: Response) -> None:
    """Clears the cookie."""
    response.delete_cookie(COOKIE, path="/", secure=True, httponly=True, samesite="lax")


def remembered(headers: Headers, secret: bytes, now_seconds: float) -> str | None:
    """The account id in the cookie of a request with these headers; None without a valid one."""
    match = _FORM.fullmatch(cookie(headers.getlist("cookie"), COOKIE) or "")
    if match is None:
        return None
    account_id, expires_at, signature = match.groups()
    if not hmac.compare_digest(signature, _signature(secret, f"{account_id}.{expires_at}")) or now_seconds >= int(expires_at):
        return None
    return account_id


def _signature(secret: bytes, payload: str) -> str:
    digest = hmac.new(secret, payload.encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
