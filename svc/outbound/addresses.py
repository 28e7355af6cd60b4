"""URLs in their normal form, and which addresses belong to the public internet.

`ipaddress.is_global` does not suit: it allows multicast and 6to4, and differs between versions of Python. For IPv4 a
list has the refused networks. For IPv6 it has the allowed ones, global unicast, so that every form with an IPv4 address
inside (mapped, compatible, NAT64, 6to4, Teredo) is refused.
"""

import re
import socket
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import NamedTuple
from urllib.parse import quote

from svc.outbound.errors import InvalidURL

Address = IPv4Address | IPv6Address

_URL = re.compile(
    r"(?i)(?P<scheme>https?)://(?P<host>\[[0-9a-f.:]+\]|[^]\[/?#@\\:]+)(?::(?P<port>[0-9]{0,5}))?"
    r"(?P<path>/[^?#\x00-\x1f\x7f]*)?(?P<query>\?[^#\x00-\x1f\x7f]*)?"
)
_URL_LENGTH = 64 * 1024
_HOST = re.compile(r"[a-z0-9._-]+")
_NUMBER = r"(?:0x[0-9a-f]*|[0-9]+)"
_NUMERIC_HOST = re.compile(rf"({_NUMBER}(?:\.{_NUMBER}){{0,3}})\.?")
# Not escaped in a path or a query, beside letters and digits.
_NOT_ESCAPED = "!$%&'()*+,/:;=?@[\\]^|"


def _networks(*networks: str) -> tuple[IPv4Network | IPv6Network, ...]:
    return tuple(map(ip_network, networks))


_GLOBAL_UNICAST = ip_network("2000::/3")

_PRIVATE = _networks("10.0.0.0/8", "127.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "::1/128", "fc00::/7")
# RFC 6890 and the IANA registries of special-purpose addresses.
_NOT_PUBLIC = (
    *_PRIVATE,
    *_networks(
        "0.0.0.0/8",  # this network, unspecified
        "100.64.0.0/10",  # carrier-grade NAT
        "169.254.0.0/16",  # link-local, cloud metadata
        "192.0.0.0/24",  # IETF protocols
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # class E, broadcast
        "2001::/23",  # IETF protocols: Teredo, benchmarks, ORCHID
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4
        "3fff::/20",  # documentation
    ),
)

# Cloud metadata outside of the link-local range: Azure, then AWS, Google, Oracle and Scaleway over IPv6.
_METADATA: frozenset[Address] = frozenset(
    map(ip_address, ("168.63.129.16", "fd00:ec2::254", "fd20:ce::254", "fd00:c1::a9fe:a9fe", "fd00:42::42"))
)


class Origin(NamedTuple):
    scheme: str
    host: str
    port: int


class URL(NamedTuple):
    """A URL in its normal form, which `str` returns."""

    origin: Origin
    netloc: str  # the host, and the port unless it is the default
    target: str  # path and query

    def __str__(self) -> str:
        return f"{self.origin.scheme}://{self.netloc}{self.target}"


def public_address(address: Address) -> bool:
    """Return whether `address` belongs to the public internet."""
    if address in _METADATA or any(address in network for network in _NOT_PUBLIC):
        return False
    return address.version == 4 or address in _GLOBAL_UNICAST


def public_or_private_address(address: Address) -> bool:
    """Return whether `SVC_BYOK_PRIVATE=1` allows `address`: public, private or loopback, but no cloud metadata."""
    if address not in _METADATA and any(address in network for network in _PRIVATE):
        return True
    return public_address(address)


def checked_url(text: str) -> URL:
    """Return the URL in its normal form. Raises `InvalidURL`.

    It needs http or https, a host and a port from 1 to 65535, without user information and fragment, not even empty
    ones. IPv4 in any spelling (`127.1`, `0x7f000001`, `0177.0.0.1`) becomes the address that it means, as in browsers.
    """
    try:
        if len(text) > _URL_LENGTH or (parts := _URL.fullmatch(text)) is None:
            raise ValueError
        scheme = parts["scheme"].lower()
        ordinary = 443 if scheme == "https" else 80
        port = int(parts["port"] or ordinary)
        host = _normal_host(parts["host"].lower())
        target = quote((_without_dots(parts["path"] or "") or "/") + (parts["query"] or ""), safe=_NOT_ESCAPED)
        if not 1 <= port <= 65535:
            raise ValueError
    except (ValueError, OSError):
        raise InvalidURL("The URL is not valid. It needs http or https, a host, and no user or fragment.") from None
    name = f"[{host}]" if ":" in host else host
    return URL(Origin(scheme, host, port), name if port == ordinary else f"{name}:{port}", target)


def same_origin(url: str, other: str) -> bool:
    """Return whether both are valid URLs with the same scheme, host and port."""
    try:
        return checked_url(url).origin == checked_url(other).origin
    except InvalidURL:
        return False


def _normal_host(host: str) -> str:
    """Return a DNS name, or an address without brackets. Raises ValueError, OSError."""
    if host.startswith("["):
        IPv6Address(host[1:-1])
        return host[1:-1]
    if not host.isascii():
        import httpx  # late: few hosts have such a name (IDNA 2008)

        try:
            host = httpx.URL(f"http://{host}").raw_host.decode("ascii")
        except httpx.InvalidURL:
            raise ValueError from None
    if (number := _NUMERIC_HOST.fullmatch(host)) is not None:
        return socket.inet_ntoa(socket.inet_aton(number[1]))
    if _HOST.fullmatch(host) is None:
        raise ValueError
    return host


def _without_dots(path: str) -> str:
    """Return `path` without `.` and `..` (RFC 3986, 5.2.4)."""
    if "/." not in path:
        return path
    kept: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            kept[1:] = kept[1:-1]
        elif segment != ".":
            kept.append(segment)
    return "/".join(kept)
