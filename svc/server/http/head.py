"""The head of a request: checks that the parser does not make, and the context of its request."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from svc.errors import ApiError
from svc.inference.claim import Claim

HEAD_BYTES = 64 * 1024
HEAD_LINES = 100
METHODS = "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT"
_KNOWN = METHODS.encode().split(b", ")
# Decoding a target and splitting its query are slow: 64 KiB of "a&" or "%" would block the event loop for 50 ms.
_TARGET_BYTES = 16 * 1024
_QUERY_FIELDS = 100
_SHORT_TARGET = 256  # bytes; a longer one is not cached, to bound the memory, nor is a query: it may hold a signature

_ABSOLUTE = re.compile(rb"(?i)(?P<scheme>https?)://(?P<host>[^/?#]*)(?P<rest>.*)", re.DOTALL)

# On every answer, also before the end of a connection.
COMMON_HEADERS = {"strict-transport-security": "max-age=31536000", "x-content-type-options": "nosniff"}

Headers = list[tuple[bytes, bytes]]
# The method and the path as text, the query, and the host of a target that is a URL.
Target = tuple[str, str, bytes, bytes | None]


@dataclass(slots=True, eq=False)
class Context:
    """What the layers around a handler know of a request, at `scope["svc"]`."""

    headers: Mapping[bytes, bytes]  # joined by name in lower case
    answer_headers: list[tuple[bytes, bytes]] = field(init=False)  # added to the answer, an error too
    log_fields: dict[str, Any] = field(init=False)  # of the request's line in the log, beside those of every request
    request_id: str = field(init=False)
    status: int = 0  # of the answer, when it has begun
    client_ip: str = ""  # set when the host is accepted
    account_id: str | None = None  # set when the caller is authenticated
    counted_body: tuple[int, list[bytes]] | None = None  # its bytes, and the shares that they count in
    disconnected: bool = False
    interrupt: Callable[[str], None] | None = None  # ends the open answer
    claim: Claim | None = None  # of a request with an Idempotency-Key: it runs on without its client
    body: bytes = b""  # of a request that may be passed on as it is, until its handler takes it

    def taken_body(self) -> bytes:
        """Return the body, and keep it no longer: it may have 16 MiB."""
        body, self.body = self.body, b""
        return body

    def drop_body(self) -> None:
        """Keep the body no longer: it is not passed on."""
        self.body = b""

    def disconnect(self) -> None:
        """Note that the client has disconnected, and end the open answer."""
        self.disconnected = True
        if self.interrupt is not None and (self.claim is None or self.claim.too_large):
            self.interrupt("client_disconnected")


def joined(headers: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Return the headers by name. The values of a repeated name are joined by commas (RFC 9110, 5.3)."""
    sent: dict[bytes, bytes] = {}
    for name, value in headers:
        sent[name] = sent[name] + b", " + value if name in sent else value
    return sent


def check_head(version: str, url: bytes, headers: Headers, *, received_bytes: int, upgrades: bool) -> None:
    """Check an uncommon head. Raises ApiError if it is not valid.

    `received_bytes` counts the input since the last request, which may be more than the head. `upgrades`: the client
    asks for another protocol.
    """
    if len(headers) > HEAD_LINES or (
        received_bytes > HEAD_BYTES
        and len(url) + sum(len(name) + len(value) + 4 for name, value in headers) > HEAD_BYTES
    ):
        raise ApiError("headers_too_large")
    if version not in ("1.1", "1.0"):
        raise ApiError("invalid_request", "Speak HTTP/1.1.")
    names = [name for name, _ in headers]
    hosts = names.count(b"host")
    if hosts != 1 and (hosts or version == "1.1"):
        raise ApiError("invalid_request", "Send exactly one Host header.")
    codings = [value.lower() for name, value in headers if name == b"transfer-encoding"]
    if codings and (version == "1.0" or codings != [b"chunked"]):
        raise ApiError("invalid_request", "The only Transfer-Encoding here is 'chunked', in HTTP/1.1.")
    # httptools skips the body of such a request, which would then be read as the next request.
    if upgrades and (b"content-length" in names or codings):
        raise ApiError("invalid_request", "A request with a body cannot ask for an upgrade.")


def expects_100(headers: Headers) -> bool:
    """Whether the client waits for `100 Continue` before it sends its body."""
    return any(name == b"expect" and value.lower() == b"100-continue" for name, value in headers)


def target_of(method: bytes, url: bytes) -> Target:
    """Parse a request target: a path, or a URL (RFC 9112, 3.2.2). Raises ApiError for anything else."""
    return (_remembered if len(url) <= _SHORT_TARGET and b"?" not in url else _target_of)(method, url)


def _target_of(method: bytes, url: bytes) -> Target:
    if len(url) > _TARGET_BYTES:
        raise ApiError("headers_too_large", f"The request target is over {_TARGET_BYTES} bytes. Send a shorter one.")
    if (absolute := _ABSOLUTE.match(url)) is None:
        host = None
    elif absolute["scheme"].lower() == b"https":
        host, url = absolute["host"], absolute["rest"]
        if not url.startswith(b"/"):
            url = b"*" if method == b"OPTIONS" and not url else b"/" + url
    else:
        raise ApiError("misdirected_request", "This server answers only for https URLs.")
    path, _, query = url.partition(b"?")
    if b"#" in url or not (path.startswith(b"/") or (path == b"*" and method == b"OPTIONS")):
        raise ApiError("invalid_request", "The request target must be a path, such as /v1/models.")
    if method not in _KNOWN:  # on every path, so that it does not tell which paths there are
        raise ApiError("method_not_allowed", headers={"allow": METHODS})
    if query.count(b"&") >= _QUERY_FIELDS:
        raise ApiError("invalid_request", f"The query must have at most {_QUERY_FIELDS} parameters.")
    return method.decode("ascii"), unquote(path.decode("ascii")), query, host


_remembered = lru_cache(1024)(_target_of)
