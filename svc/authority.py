"""The local CA, and the certificate that it makes for the server: what clients that were told to trust the CA accept.

It is imported when one has to be made.
"""

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

_CA_DAYS = 3650
_SERVER_DAYS = 397  # what browsers accept
_CLOCK_SKEW = timedelta(hours=1)
_KEY_USAGES = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
    "encipher_only",
    "decipher_only",
)


class _Pair(NamedTuple):
    cert: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def make_certificate(tls: Path, names: set[str | IPv4Address | IPv6Address], now: float, until: float) -> None:
    """Writes cert.pem and key.pem for `names` into the folder `tls`, and where its CA does not last `until`, another CA.

    The times are Unix seconds. Raises OSError.
    """
    today = datetime.fromtimestamp(now, UTC)
    ca = _ca(tls / "ca.pem", tls / "ca-key.pem", datetime.fromtimestamp(until, UTC))
    if ca is None:
        ca = _make_ca(today)
        write_private(tls / "ca-key.pem", _key_pem(ca.key))
        write_private(tls / "ca.pem", _cert_pem(ca.cert))
    wanted: list[x509.GeneralName] = [x509.DNSName(name) if isinstance(name, str) else x509.IPAddress(name) for name in names]
    server = _make_server(ca, sorted(wanted, key=str), today)
    write_private(tls / "key.pem", _key_pem(server.key))
    write_private(tls / "cert.pem", _cert_pem(server.cert) + _cert_pem(ca.cert))


def _ca(path: Path, key_path: Path, until: datetime) -> _Pair | None:
    """The CA; None when it is missing or damaged, when its key is not there, or when it expires before `until`."""
    try:
        certs, key = x509.load_pem_x509_certificates(path.read_bytes()), _key(key_path)
    except (FileNotFoundError, ValueError):
        return None
    if key is None or _public_bytes(certs[0]) != _public_bytes(key) or any(cert.not_valid_after_utc <= until for cert in certs):
        return None
    return _Pair(certs[0], key)


def _key(path: Path) -> ec.EllipticCurvePrivateKey | None:
    """The key in `path`; None when it is missing, damaged or not of our kind."""
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except (FileNotFoundError, ValueError, TypeError, UnsupportedAlgorithm):
        return None
    return key if isinstance(key, ec.EllipticCurvePrivateKey) else None


def _public_bytes(holder: x509.Certificate | ec.EllipticCurvePrivateKey) -> bytes:
    try:
        public = holder.public_key()
    except (ValueError, UnsupportedAlgorithm):
        return b""
    return public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def _make_ca(today: datetime) -> _Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    # A name of its own: two installations on one machine must not be mistaken for each other in a trust store.
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"svc local CA {os.urandom(4).hex()}")])
    usage = _key_usage("key_cert_sign", "crl_sign")
    builder = (
        _builder(key, name, name, today, today + timedelta(days=_CA_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
    )
    return _Pair(builder.sign(key, hashes.SHA256()), key)


def _make_server(ca: _Pair, names: list[x509.GeneralName], today: datetime) -> _Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "svc server")])
    end = min(today + timedelta(days=_SERVER_DAYS), ca.cert.not_valid_after_utc)
    builder = (
        _builder(key, subject, ca.cert.subject, today, end)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage("digital_signature"), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca.key.public_key()), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
    )
    return _Pair(builder.sign(ca.key, hashes.SHA256()), key)


def _builder(
    key: ec.EllipticCurvePrivateKey, subject: x509.Name, issuer: x509.Name, today: datetime, end: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - _CLOCK_SKEW)
        .not_valid_after(end - _CLOCK_SKEW)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _key_usage(*granted: str) -> x509.KeyUsage:
    return x509.KeyUsage(**{usage: usage in granted for usage in _KEY_USAGES})


def _cert_pem(cert: x509.Certificate) -> bytes:
    return cert.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
