"""The one HTTP/1.1 client for all outgoing traffic, on asyncio and httptools.

send: URL and headers -> origin and checked head -> an idle connection of that origin, newest first
      or else: resolve once -> judge every address -> connect to those very addresses in turn
      -> write -> await the head -> Reply: chunks as they come
      -> body complete: the connection goes back to the pool; anything else: it is aborted
"""

import asyncio
import functools
import re
import ssl
from collections.abc import Callable, Iterable, Mapping

from svc.outbound.addresses import Address, Origin, Resolve, checked_url, connect, getaddrinfo
from svc.outbound.connection import Connection, Reply
from svc.outbound.errors import ConnectError, InvalidRequest, NoAnswer, ReadError

Headers = Mapping[str, str] | Iterable[tuple[bytes, bytes]]

_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_NOT_IN_A_VALUE = re.compile(rb"[\r\n\0]")
# What the transport itself decides: framing, the connection, the host, and that nothing comes compressed.
_OUR_HEADERS = frozenset(
    b"host accept-encoding content-length transfer-encoding te trailer connection keep-alive proxy-connection upgrade expect"
    .split()
)  # fmt: skip


def _beginning(method: str, text: str) -> tuple[Origin, bytes]:
    """Where a request goes, and the beginning of its head; all of it checked."""
    url = checked_url(text)
    if _TOKEN.fullmatch(method.encode("ascii", "replace")) is None:
        raise InvalidRequest("The method has characters that are not allowed.")
    head = f"{method} {url.target} HTTP/1.1\r\nhost: {url.netloc}\r\naccept-encoding: identity\r\n"
    return url.origin, head.encode("ascii")


def _lines(headers: tuple[tuple[bytes, bytes], ...]) -> bytes:
    """The header lines, checked. They are not cached: they hold users' keys."""
    parts: list[bytes] = []
    for header, value in headers:
        if _TOKEN.fullmatch(header) is None or _NOT_IN_A_VALUE.search(value) is not None:
            raise InvalidRequest("A header has characters that are not allowed.")
        if header.lower() not in _OUR_HEADERS:
            parts += (header, b": ", value, b"\r\n")
    return b"".join(parts)


def _pairs(headers: Headers) -> tuple[tuple[bytes, bytes], ...]:
    if not isinstance(headers, Mapping):
        return tuple(headers)
    try:
        return tuple((name.encode("ascii"), value.encode("ascii")) for name, value in headers.items())
    except UnicodeEncodeError:  # it would quote the value
        raise InvalidRequest("A header is not ASCII.") from None


class Outbound:
    """A pool of connections with one rule about addresses. Kinds of traffic that must not mix have an instance each.

    `allow` judges every address that a host name resolves to, at each new connection; None allows all (what the operator
    configures may be anywhere). `resolve(host, port, account_id)` gives the addresses of a host. At most `max_idle` connections
    are kept, each for `idle_seconds`. Proxy variables, `.netrc`, cookies and redirects are never heeded.
    """

    def __init__(
        self,
        *,
        allow: Callable[[Address], bool] | None = None,
        resolve: Resolve = getaddrinfo,
        connect_timeout_seconds: float = 5.0,
        max_idle: int = 256,
        idle_seconds: float = 30.0,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self._dial = functools.partial(connect, allow=allow, resolve=resolve, timeout_seconds=connect_timeout_seconds)
        self._max_idle = max_idle
        self._idle_seconds = idle_seconds
        self._ssl_context = ssl_context
        # The operator's URLs repeat. A user's URL may hold a token, so it is not cached.
        self._beginning = functools.lru_cache(256)(_beginning) if allow is None else _beginning
        self._idle: dict[Origin, list[Connection]] = {}
        self._connections: set[Connection] = set()
        self._closed = False

    async def send(
        self,
        method: str,
        url: str,
        headers: Headers = (),
        body: bytes = b"",
        *,
        timeout_seconds: float,
        on_sent: Callable[[], None] = lambda: None,
        account_id: str = "",
    ) -> Reply:
        """Sends one request and returns when the head of its answer is there, whatever its status (3xx too).

        `timeout_seconds` bounds the wait for the whole head and later for each next byte of the body. Headers of ours (`host`,
        `accept-encoding`, framing) replace the caller's. A request is sent a second time only where a reused connection ended
        before the first byte of an answer. `account_id` is who has named the host, "" for the operator.

        Raises OutboundError: `InvalidRequest` (nothing was sent), `AddressNotAllowed`, `ConnectError`, `ReadTimeout`, `Cut`,
        `ProtocolError`.
        """
        origin, beginning = self._beginning(method, url)
        start = beginning + _lines(headers if type(headers) is tuple else _pairs(headers))
        framing = b"content-length: %d\r\n\r\n" % len(body) if body or method in ("POST", "PUT", "PATCH") else b"\r\n"
        head = start + framing
        if (connection := self._take_idle(origin)) is not None:
            on_sent()
            try:
                return await connection.exchange(head, body, method, timeout_seconds)
            except NoAnswer:
                pass  # the server had just closed it: once more, on a fresh one
        connection = await self._connect(origin, account_id)
        on_sent()
        return await connection.exchange(head, body, method, timeout_seconds)

    async def aclose(self) -> None:
        """Ends every connection, those in use too, and refuses further requests."""
        self._closed = True
        for connection in list(self._connections):
            connection.fail(ReadError("The client was closed."))
        await asyncio.sleep(0)  # lets the loop close the sockets

    async def _connect(self, origin: Origin, account_id: str) -> Connection:
        tls = None
        if origin.scheme == "https":
            # In a thread, because it reads all the system's certificates.
            tls = self._ssl_context = self._ssl_context or await asyncio.to_thread(ssl.create_default_context)
        connection = await self._dial(origin, lambda: Connection(origin, self._keep, self._lost), tls, account_id=account_id)
        if self._closed or connection.transport.is_closing():
            connection.transport.abort()
            raise ConnectError("The connection was closed before it was used.")
        self._connections.add(connection)
        return connection

    def _keep(self, connection: Connection) -> bool:
        if self._closed or sum(map(len, self._idle.values())) >= self._max_idle:
            return False
        self._idle.setdefault(connection.origin, []).append(connection)
        connection.arm(self._idle_seconds)
        return True

    def _lost(self, connection: Connection) -> None:
        self._connections.discard(connection)
        if connection in (idle := self._idle.get(connection.origin, [])):
            idle.remove(connection)
        if not idle:
            self._idle.pop(connection.origin, None)

    def _take_idle(self, origin: Origin) -> Connection | None:
        idle = self._idle.get(origin, [])
        while idle:
            if not (connection := idle.pop()).transport.is_closing():
                return connection
        return None
