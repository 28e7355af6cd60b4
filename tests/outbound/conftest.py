"""The authority that these tests trust, and the second event loop, which ends with their module."""

import asyncio
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import uvloop
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.support.outgoing import quiet_loop


@pytest.fixture(scope="module", autouse=True)
def _loops() -> Iterator[None]:
    uvloop.run(asyncio.sleep(0))  # uvloop opens two descriptors for good with its first loop
    yield
    quiet_loop().close()
    quiet_loop.cache_clear()


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A throw-away CA: a server's context for `model.test`, and a client's that trusts the CA."""
    folder: Path = tmp_path_factory.mktemp("tls")
    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]
    names = [x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]) for name in ("CA", "model.test")]
    now = datetime.now(UTC)
    pem = b""
    for index, (key, name) in reversed(list(enumerate(zip(keys, names, strict=True)))):
        usage = x509.KeyUsage(True, False, False, False, False, index == 0, index == 0, False, False)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(names[0])
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(hours=1))
            .add_extension(x509.BasicConstraints(ca=index == 0, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName("model.test")]), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(keys[0].public_key()), critical=False)
            .add_extension(usage, critical=True)
            .sign(keys[0], hashes.SHA256())
        )
        pem = certificate.public_bytes(serialization.Encoding.PEM)
        (folder / f"{index}.pem").write_bytes(pem)
    private = keys[1].private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "key.pem").write_bytes(private)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "1.pem", folder / "key.pem")
    return server, ssl.create_default_context(cafile=str(folder / "0.pem"))
