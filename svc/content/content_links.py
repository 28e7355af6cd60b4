"""Links to an artifact's content that work without a token for an hour, for <img> elements.

A link has the account, the artifact, the expiry time, and a signature (HMAC-SHA256) of all three.
"""

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping
from urllib.parse import urlencode

LINK_SECONDS = 3600
_SECONDS = re.compile("[0-9]{1,12}")


def content_url(key: bytes, base_url: str, account_id: str, artifact_id: str, now_seconds: float) -> str:
    """Return the address of an artifact's content, valid for an hour from `now_seconds` (Unix time)."""
    expires = str(int(now_seconds) + LINK_SECONDS)
    signature = _signature(key, account_id, artifact_id, expires)
    query = urlencode({"account": account_id, "expires": expires, "signature": signature})
    return f"{base_url}/artifacts/{artifact_id}/content?{query}"


def account_of_link(key: bytes, query: Mapping[str, str], artifact_id: str, now_seconds: float) -> str | None:
    """Return the id of the account whose artifact a request with this query may read, or None if the link is not valid."""
    account_id, expires = query.get("account", ""), query.get("expires", "")
    signature = _signature(key, account_id, artifact_id, expires)
    if not hmac.compare_digest(signature.encode(), query.get("signature", "").encode()):
        return None
    return account_id if _SECONDS.fullmatch(expires) and int(expires) > now_seconds else None


def _signature(key: bytes, account_id: str, artifact_id: str, expires: str) -> str:
    message = "\n".join((account_id, artifact_id, expires)).encode()
    return base64.urlsafe_b64encode(hmac.digest(key, message, hashlib.sha256)).decode().rstrip("=")
