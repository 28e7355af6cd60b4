"""The local CA: what it makes, for how long, and when there has to be another."""

from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509

from svc.certificates import TlsFiles, tls_files
from tests.support.certificates import DAY, NAMES, NOW, cert_of, mode, names_of


@pytest.fixture
def files(tmp_path: Path) -> TlsFiles:
    return tls_files(tmp_path, NAMES, NOW)


def test_keys_are_private_and_the_ca_signs_only_servers(files: TlsFiles) -> None:
    assert [mode(files.key), mode(files.ca.with_name("ca-key.pem")), mode(files.ca.parent)] == [0o600, 0o600, 0o700]
    ca, server = cert_of(files.ca), cert_of(files.cert)
    limits = ca.extensions.get_extension_for_class(x509.BasicConstraints)
    assert (limits.critical, limits.value.ca, limits.value.path_length) == (True, True, 0)
    assert not server.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert ca.not_valid_after_utc - ca.not_valid_before_utc == timedelta(days=3650)
    assert server.not_valid_after_utc - server.not_valid_before_utc == timedelta(days=397)
    assert x509.load_pem_x509_certificates(files.cert.read_bytes()) == [server, ca]


def test_certificate_expires_before_its_ca(files: TlsFiles, tmp_path: Path) -> None:
    tls_files(tmp_path, NAMES, NOW + 3500 * DAY)
    assert cert_of(files.cert).not_valid_after_utc <= cert_of(files.ca).not_valid_after_utc


def test_ca_without_its_key_is_replaced_before_signing(files: TlsFiles, tmp_path: Path) -> None:
    ca = files.ca.read_bytes()
    files.ca.with_name("ca-key.pem").unlink()
    tls_files(tmp_path, [*NAMES, "new.example"], NOW)
    assert files.ca.read_bytes() != ca
    assert "new.example" in names_of(files.cert)
