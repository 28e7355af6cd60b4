"""The server's certificate. If it is not valid for clients, the local CA issues another one."""

import ipaddress
import re
import ssl
from collections.abc import Sequence
from contextlib import suppress
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, NamedTuple

from svc.config import Config
from svc.errors import StartError, or_start_error

Name = str | ipaddress.IPv4Address | ipaddress.IPv6Address

_RENEW_BEFORE_SECONDS = 30 * 86400
_NO_CHECK_TIME = ssl.VerifyFlags(0x200000)  # X509_V_FLAG_NO_CHECK_TIME, for which Python has no name


class TlsFiles(NamedTuple):
    """The server's certificate with its chain, its key, and the certificate of the local CA."""

    cert: Path
    key: Path
    ca: Path


def files_in(folder: Path) -> TlsFiles:
    """Return where the certificate in the data folder is, or will be."""
    tls = folder / "tls"
    return TlsFiles(tls / "cert.pem", tls / "key.pem", tls / "ca.pem")


def tls_files(folder: Path, names: Sequence[str], now: float) -> TlsFiles:
    """Return the certificate files in `folder`/tls of a server with these `names` at Unix time `now`.

    A certificate is issued if there is none, or if it is damaged, expires soon or lacks a name. Clients trust the CA,
    so it is replaced only if it is damaged or expires soon itself. Raises StartError.
    """
    files, wanted = files_in(folder), _certificate_names(names)
    tls = files.cert.parent
    with or_start_error(f"use the certificates in {tls}"):
        tls.mkdir(mode=0o700, exist_ok=True)
        if not _is_valid(files, wanted, now + _RENEW_BEFORE_SECONDS):
            from svc.authority import make_certificate  # late: most starts find a valid certificate

            make_certificate(tls, wanted, now, now + _RENEW_BEFORE_SECONDS)
    return files


def check_certificate(config: Config, host: str | None = None) -> float:
    """Return when the certificate in use expires, in Unix seconds. There is none behind a proxy.

    Raises StartError if it cannot be used, or if clients of `host` would not accept it.
    """
    cert, key = files_in(config.data_dir)[:2] if config.tls == "auto" else (config.tls_cert, config.tls_key)
    assert cert and key
    try:
        return _end(_shown(cert, key, cert, host)[0])
    except (ssl.SSLError, ValueError) as error:
        reason = getattr(error, "verify_message", None) or getattr(error, "reason", None) or error
        raise StartError(f"clients of {host} would not accept the certificate: {reason}") from None


def _certificate_names(names: Sequence[str]) -> set[Name]:
    """Return `names` as a certificate holds them, without what is neither an address nor a DNS name."""
    found: set[Name] = set()
    for name in names:
        with suppress(ValueError):
            found.add(ipaddress.ip_address(name.partition("%")[0]))
            continue
        with suppress(UnicodeError):
            dns = (name if name.isascii() else name.encode("idna").decode("ascii")).lower()
            if re.fullmatch(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*", dns):
                found.add(dns)
    return found


def _is_valid(files: TlsFiles, wanted: set[Name], until: float) -> bool:
    """Whether clients that trust only the CA accept the certificate under every `wanted` name `until` that time.

    A certificate from the future is valid: after a wrong clock, clients need not trust a new CA.
    """
    try:
        shown, issuers = _shown(files.cert, files.key, files.ca)
        names = {
            ipaddress.ip_address(name.strip()) if kind == "IP Address" else name
            for kind, name in shown["subjectAltName"]
        }
    except (FileNotFoundError, ssl.SSLError, ValueError, KeyError):
        return False
    return wanted <= names and all(_end(certificate) > until for certificate in (shown, *issuers))


def _shown(cert: Path, key: Path, trusted: Path, host: str | None = None) -> tuple[dict[str, Any], list[Any]]:
    """Return the certificate that a server with `cert` and `key` shows, and the CAs in `trusted`.

    Raises OSError, and ssl.SSLError and ValueError if a client that trusts only `trusted` would not accept it as `host`
    now. Without a `host`, any name and any time is accepted.
    """
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    server.load_cert_chain(cert, key, password="")  # without one OpenSSL asks the terminal
    client.load_verify_locations(trusted)
    client.check_hostname = host is not None
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN | (0 if host else _NO_CHECK_TIME)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = client.wrap_bio(to_client, to_server, server_hostname=host)
    answering = server.wrap_bio(to_server, to_client, server_side=True)
    for side in (asking, answering) * 3:
        with suppress(ssl.SSLWantReadError):
            side.do_handshake()
    return asking.getpeercert() or {}, client.get_ca_certs()


def _end(certificate: dict[str, Any]) -> float:
    # ssl.cert_time_to_seconds does the same, but strptime's patterns take 4 ms at the start.
    return parsedate_to_datetime(certificate["notAfter"]).timestamp()
