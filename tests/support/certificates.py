"""What tests of certificates share: names, times, and a reader of certificates."""

import stat
import time
from pathlib import Path

from cryptography import x509

NAMES = ["localhost", "127.0.0.1", "::1", "svc.example"]
NOW = time.time()
DAY = 86400


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def cert_of(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def names_of(path: Path) -> set[str]:
    extension = cert_of(path).extensions.get_extension_for_class(x509.SubjectAlternativeName)
    return {str(name.value) for name in extension.value}
