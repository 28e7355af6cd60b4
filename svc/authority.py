"""The local CA and the certificates that it issues. Imported only to issue one, because the import is slow."""

import inspect
import os
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from svc.secrets import write_private

_CA_LIFE = timedelta(days=3650)
_SERVER_LIFE = timedelta(days=397)  # the most that browsers accept
_CLOCK_SKEW = timedelta(hours=1)
_KEY_USAGES = dict.fromkeys(inspect.signature(x509.KeyUsage).parameters, False)


class _Pair(NamedTuple):
    cert: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def make_certificate(tls: Path, names: set[str | IPv4Address | IPv6Address], now: float, until: float) -> None:
    """Write cert.pem and key.pem for `names` into `tls`. Another CA is made if this one expires before `until`."""
    today = datetime.fromtimestamp(now, UTC)
    ca = _read_ca(tls / "ca.pem", tls / "ca-key.pem", datetime.fromtimestamp(until, UTC))
    if ca is None:
        # A separate name: a trust store must not confuse two installations on one machine.
        name = f"svc local CA {os.urandom(4).hex()}"
        ca = _issue(None, name, today, today + _CA_LIFE, ("key_cert_sign", "crl_sign"))
        _write_key(tls / "ca-key.pem", ca.key)
        write_private(tls / "ca.pem", ca.cert.public_bytes(serialization.Encoding.PEM))
    general: list[x509.GeneralName] = [
        x509.DNSName(name) if isinstance(name, str) else x509.IPAddress(name) for name in names
    ]
    extensions = (
        x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]),
        x509.SubjectAlternativeName(sorted(general, key=str)),
    )
    end = min(today + _SERVER_LIFE, ca.cert.not_valid_after_utc)
    server = _issue(ca, "svc server", today, end, ("digital_signature",), *extensions)
    _write_key(tls / "key.pem", server.key)
    chain = (pair.cert.public_bytes(serialization.Encoding.PEM) for pair in (server, ca))
    write_private(tls / "cert.pem", b"".join(chain))


def _read_ca(path: Path, key_path: Path, until: datetime) -> _Pair | None:
    """Return the CA, or None if a file is missing, damaged or not ours, or if it expires before `until`."""
    try:
        certs = x509.load_pem_x509_certificates(path.read_bytes())
        key = serialization.load_pem_private_key(key_path.read_bytes(), password=None)
        is_own = isinstance(key, ec.EllipticCurvePrivateKey) and certs[0].public_key() == key.public_key()
    except (FileNotFoundError, ValueError, TypeError, UnsupportedAlgorithm):
        return None
    if not is_own or any(cert.not_valid_after_utc <= until for cert in certs):
        return None
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return _Pair(certs[0], key)


def _issue(
    ca: _Pair | None,
    common_name: str,
    today: datetime,
    end: datetime,
    usages: tuple[str, ...],
    *extensions: x509.ExtensionType,
) -> _Pair:
    """Make a key and its certificate, issued by `ca`, or a CA that issues its own."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    key = ec.generate_private_key(ec.SECP256R1())
    issuer_key = ca.key if ca else key
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(ca.cert.subject if ca else name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - _CLOCK_SKEW)
        .not_valid_after(end - _CLOCK_SKEW)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.BasicConstraints(ca=ca is None, path_length=None if ca else 0), critical=True)
        .add_extension(x509.KeyUsage(**_KEY_USAGES | dict.fromkeys(usages, True)), critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
    )
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    return _Pair(builder.sign(issuer_key, hashes.SHA256()), key)


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    pem = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    write_private(path, key.private_bytes(*pem))
