"""The HTTP/1.1 client for all outgoing traffic, on asyncio and httptools.

send: URL and headers -> request_head: origin and checked head
ask: head and body -> an idle connection of that origin, newest first
      or else: resolve once -> check every address -> connect to one of these addresses
      -> write -> await the head -> Reply: chunks as they arrive
      -> after the body the connection goes back to the pool; in any other case it is aborted
"""

import asyncio
import contextlib
import functools
import re
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable
from ipaddress import ip_address
from typing import NamedTuple

from svc.allocator import release_tls_buffer
from svc.outbound.addresses import Address, Origin, checked_url
from svc.outbound.connection import Connection, Reply
from svc.outbound.errors import AddressNotAllowed, ConnectError, ConnectTimeout, Cut, InvalidRequest, NoAnswer

_NOT_IN_A_LINE = re.compile(rb"[\r\n\0]")
# Set by the client itself: framing, the connection, the host, the user agent, and no compression.
_OUR_HEADERS = frozenset(
    b"host accept-encoding content-length transfer-encoding te trailer connection keep-alive proxy-connection upgrade "
    b"expect user-agent"
    .split()
)  # fmt: skip


Headers = tuple[tuple[bytes, bytes], ...]
# Takes the host, the port, and the account that named it, "" for the operator.
Resolve = Callable[[str, int, str], Awaitable[Iterable[str]]]


class RequestHead(NamedTuple):
    """A checked head up to its framing, for any number of requests. `takes_body`: a body is expected."""

    origin: Origin
    text: bytes
    takes_body: bool


def request_head(method: str, text: str, headers: Headers = ()) -> RequestHead:
    """Return the head of requests to the URL `text`. Raises `InvalidRequest`.

    The caller's `host`, `user-agent`, `accept-encoding` and framing headers are dropped.
    """
    url = checked_url(text)
    lines = [f"{method} {url.target} HTTP/1.1".encode(), f"host: {url.netloc}".encode()]
    lines += [b"accept-encoding: identity", b"user-agent: svc"]  # without a user agent GitHub answers 403
    lines += [name + b": " + value for name, value in headers if name.lower() not in _OUR_HEADERS]
    if any(map(_NOT_IN_A_LINE.search, lines)):
        raise InvalidRequest("A header has characters that are not allowed.")
    return RequestHead(url.origin, b"".join(line + b"\r\n" for line in lines), method in ("POST", "PUT", "PATCH"))


async def getaddrinfo(host: str, port: int, account_id: str = "") -> list[str]:
    """Return the addresses of a host that the operator configured, resolved in a thread."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


class Outbound:
    """A pool of connections with one rule for addresses. Kinds of traffic that must not mix have an instance each.

    `allow` checks every address of a host at each new connection; None allows all, for hosts that the operator
    configured. `resolve(host, port, account_id)` returns the addresses of a host. At most `max_idle` connections are
    kept, each for `idle_seconds`. Proxy variables, `.netrc`, cookies and redirects are ignored.
    """

    connect_timeout_seconds = 5.0
    max_idle = 256
    idle_seconds = 30.0
    ssl_context: ssl.SSLContext | None = None

    def __init__(self, *, allow: Callable[[Address], bool] | None = None, resolve: Resolve = getaddrinfo) -> None:
        self._allow = allow
        self._resolve = resolve
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
        account_id: str = "",
    ) -> Reply:
        """Send a request with the head that `request_head` makes, as `ask` does."""
        return await self.ask(request_head(method, url, headers), body, timeout_seconds, account_id=account_id)

    async def ask(
        self,
        head: RequestHead,
        body: bytes,
        timeout_seconds: float,
        on_sent: Callable[[], None] = lambda: None,
        account_id: str = "",
    ) -> Reply:
        """Send a request and return when the head of its answer is there, whatever its status.

        `timeout_seconds` is the limit for the head, and then for each next byte of the body. A request is sent again
        only if a reused connection ended before the first byte of an answer. `account_id` is the account that named the
        host, "" for the operator.

        Raises OutboundError.
        """
        origin, text, takes_body = head
        text += b"content-length: %d\r\n\r\n" % len(body) if body or takes_body else b"\r\n"
        if (connection := self._take_idle(origin)) is not None:
            on_sent()
            try:
                return await connection.exchange(text, body, timeout_seconds)
            except NoAnswer:
                pass  # the server has just closed it
        connection = await self._connect(origin, account_id)
        on_sent()
        return await connection.exchange(text, body, timeout_seconds)

    async def aclose(self) -> None:
        """Abort every connection, those in use as well, and refuse further requests."""
        self._closed = True
        for connection in list(self._connections):
            connection.fail(Cut("The client was closed."))
        await asyncio.sleep(0)  # the loop closes the sockets

    async def check_address(self, url: str, account_id: str) -> None:
        """Check the addresses of a URL's host as for a connection; a name that cannot be resolved now is accepted.

        Raises `AddressNotAllowed`, `InvalidURL`.
        """
        origin = checked_url(url).origin
        with contextlib.suppress(OSError, ValueError):  # TimeoutError is an OSError
            async with asyncio.timeout(self.connect_timeout_seconds):
                await self._addresses(origin, account_id)

    async def _addresses(self, origin: Origin, account_id: str) -> list[Address]:
        found = await self._resolve(origin.host, origin.port, account_id)
        addresses = [ip_address(text) for text in dict.fromkeys(found)]
        # One refused address is enough: the others may be bait (rebinding, mixed records).
        if self._allow is not None and not all(map(self._allow, addresses)):
            raise AddressNotAllowed("The host's address may not be reached from here.")
        return addresses

    async def _connect(self, origin: Origin, account_id: str) -> Connection:
        """Connect to the first address of the host that answers. All are checked before one is connected to.

        Raises `AddressNotAllowed`, `ConnectError`, and `ConnectTimeout` if resolving, connecting and TLS together took
        `connect_timeout_seconds`.
        """
        tls = None
        if origin.scheme == "https":
            # In a thread, because it reads all certificates of the system.
            tls = self.ssl_context = self.ssl_context or await asyncio.to_thread(ssl.create_default_context)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.connect_timeout_seconds
        try:
            async with asyncio.timeout_at(deadline):
                addresses = await self._addresses(origin, account_id)
        except TimeoutError:
            raise ConnectTimeout("The host name was not resolved in time.") from None
        except (OSError, ValueError):  # a name that cannot be encoded is a ValueError
            raise ConnectError("The host name could not be resolved.") from None
        error = ConnectError("The host has no address.")
        for index, address in enumerate(addresses):
            try:
                # Each address has its share of the time.
                async with asyncio.timeout((deadline - loop.time()) / (len(addresses) - index)):
                    return await self._connected(origin, str(address), tls)
            except TimeoutError:
                error = ConnectTimeout("The host did not take the connection in time.")
            except ssl.SSLCertVerificationError as refusal:
                error = ConnectError(f"The host's certificate was refused: {refusal.verify_message}")
            except OSError:
                error = ConnectError("The host refused the connection.")
        raise error

    async def _connected(self, origin: Origin, address: str, tls: ssl.SSLContext | None) -> Connection:
        # The address is numeric, so nothing is resolved again after the check.
        transport, connection = await asyncio.get_running_loop().create_connection(
            functools.partial(Connection, origin, self._keep, self._lost),
            address,
            origin.port,
            ssl=tls,
            server_hostname=origin.host.rstrip(".") if tls else None,
            ssl_shutdown_timeout=1.0 if tls else None,
        )
        release_tls_buffer(transport)
        if self._closed or transport.is_closing():
            transport.abort()
            raise ConnectError("The connection was closed before it was used.")
        self._connections.add(connection)
        return connection

    def _keep(self, connection: Connection) -> bool:
        if self._closed or sum(map(len, self._idle.values())) >= self.max_idle:
            return False
        self._idle.setdefault(connection.origin, []).append(connection)
        connection.arm(self.idle_seconds)
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
