"""Parsers of the settings' texts. They raise ValueError with the rule: "must be ..."."""

import ipaddress
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

_ADDRESS = re.compile(r"[!#$%&'*+/=?^_`{|}~.0-9A-Za-z-]{1,64}@[0-9A-Za-z.-]{1,190}")
_HOST_NAME = re.compile(r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?")
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True)
class MailServer:
    """The setting `SVC_SMTP_URL`. `tls`: `implicit`, `starttls`, `offered` (STARTTLS if the server has it) or `off`."""

    host: str
    port: int
    tls: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    sender: str | None = None


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@contextmanager
def _raises(rule: str) -> Iterator[None]:
    """Raise ValueError with this rule for every text that the parser, or the block, cannot parse."""
    try:
        yield
    except (ValueError, KeyError, OSError, RuntimeError):
        raise ValueError(rule) from None


def matching(pattern: str, rule: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(rule)
        return text

    return parse


def one_of(*allowed: str) -> Callable[[str], str]:
    return matching("|".join(allowed), "must be " + " or ".join(allowed))


def integer(least: int, most: int, rule: str = "") -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not re.fullmatch("[0-9]{1,15}", text) or not least <= int(text) <= most:
            raise ValueError(rule or f"must be an integer from {least} to {most}")
        return int(text)

    return parse


@_raises("must be an IP address or a name of this machine")
def host(text: str) -> str:
    host = text.strip("[]")
    socket.getaddrinfo(host, None)
    return host


def _origin(text: str, default_ports: Mapping[str, int]) -> str:
    """Return `text` as a browser writes an origin: scheme://host[:port] in lower case, without a default port."""
    parts = urlsplit(text)
    host, port = parts.hostname or "", parts.port
    if parts.scheme not in default_ports or port == 0 or parts.path.strip("/") or any(mark in text for mark in "@?#"):
        raise ValueError
    if ":" in host:
        host = f"[{ipaddress.IPv6Address(host)}]"
    elif not _HOST_NAME.fullmatch(host):
        raise ValueError
    return f"{parts.scheme}://{host}" + (f":{port}" if port and port != default_ports[parts.scheme] else "")


@_raises("must have the form https://HOST or https://HOST:PORT")
def base_url(text: str) -> str:
    return _origin(text, {"https": 443})


@_raises("must not use the home folder of an unknown user")
def path(text: str) -> Path:
    return Path(text).expanduser()


@_raises("must be 0 or 1")
def switch(text: str) -> bool:
    return {"0": False, "1": True}[text]


@_raises("must be a comma-separated list of IP addresses or networks")
def networks(text: str) -> tuple[Network, ...]:
    return tuple(ipaddress.ip_network(part.strip(), strict=False) for part in text.split(","))


@_raises("must be * or a comma-separated list of origins such as https://app.example")
def origins(text: str) -> tuple[str, ...]:
    ports = {"http": 80, "https": 443}
    return tuple("*" if part.strip() == "*" else _origin(part.strip(), ports) for part in text.split(","))


@_raises("must be a comma-separated list of domains such as corp.example")
def domains(text: str) -> tuple[str, ...]:
    found = tuple(part.strip().lower() for part in text.split(","))
    if not all(map(_HOST_NAME.fullmatch, found)):
        raise ValueError
    return found


@_raises("must have the form https://HOST")
def api(text: str) -> str:
    parts = urlsplit(text)
    secure = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))
    parts.port  # noqa: B018 - raises ValueError out of range
    if not secure or not parts.hostname or "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError
    return text.rstrip("/")


@_raises("must have the form https://HOST/PATH")
def issuer(text: str) -> str:
    if not text.isascii() or any(mark in text for mark in " ?#\\"):
        raise ValueError
    api(text)
    return text  # unchanged: a slash at the end is part of an issuer's name


def mail_server(text: str) -> MailServer:
    form = "smtp://USER:PASSWORD@HOST:PORT or smtps://..., with ?from=ADDRESS or ?starttls=off"
    with _raises(f"must have the form {form}"):
        parts = urlsplit(text)
        host, options = parts.hostname or "", dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
        named = parts.port != 0 and (_HOST_NAME.fullmatch(host) or ":" in host)
        known = options.keys() <= {"from", "starttls"} and options.get("starttls", "off") == "off"
        if parts.scheme not in ("smtp", "smtps") or not named or not known or parts.path.strip("/") or parts.fragment:
            raise ValueError
    user, password = unquote(parts.username or "") or None, unquote(parts.password or "") or None
    if (user is None) != (password is None) or not f"{user}{password}".isascii():
        raise ValueError("must have both a user and a password, in ASCII, or neither")
    if parts.scheme == "smtps":
        tls = "implicit"
    elif "starttls" in options:
        tls = "off"
    else:
        tls = "offered" if is_loopback(host) else "starttls"
    if tls == "off" and user:
        raise ValueError("must not have a user with starttls=off, which would send the password unprotected")
    sender = options.get("from") or (user if user and "@" in user else None)
    if sender and not _ADDRESS.fullmatch(sender):
        raise ValueError("must have a sender such as svc@example.com")
    return MailServer(host, parts.port or (465 if tls == "implicit" else 587), tls, user, password, sender)
