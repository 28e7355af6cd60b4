"""The cookie that signs in to the checkout pages. No API path accepts it, and these pages accept no session token."""

import hmac
import re

from starlette.datastructures import Headers
from starlette.responses import Response

from svc.cookies import cookie
from svc.ids import signature

COOKIE = "__Host-svc_checkout"  # browsers accept this prefix only from this host, over HTTPS
COOKIE_SECONDS = 8 * 3600
_FORM = re.compile(r"([0-9a-z_]{1,64})\.([0-9]{1,15})\.([0-9A-Za-z_-]{43})", re.ASCII)


def set_cookie(response: Response, secret: bytes, account_id: str, now_seconds: float) -> None:
    payload = f"{account_id}.{int(now_seconds * 1000)}"
    value = f"{payload}.{signature(secret, payload)}"
    response.set_cookie(COOKIE, value, max_age=COOKIE_SECONDS, path="/", secure=True, httponly=True, samesite="lax")


def delete_cookie(response: Response) -> None:
    response.delete_cookie(COOKIE, path="/", secure=True, httponly=True, samesite="lax")


def read_cookie(headers: Headers, secret: bytes, now_seconds: float) -> tuple[str, int] | None:
    """Return the account's id and when the cookie was set (Unix milliseconds), or None without a valid cookie."""
    match = _FORM.fullmatch(cookie(headers.getlist("cookie"), COOKIE) or "")
    if match is None:
        return None
    account_id, set_at_ms, signed = match.groups()
    genuine = hmac.compare_digest(signed, signature(secret, f"{account_id}.{set_at_ms}"))
    if not genuine or now_seconds * 1000 >= int(set_at_ms) + COOKIE_SECONDS * 1000:
        return None
    return account_id, int(set_at_ms)
