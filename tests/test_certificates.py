"""Certificates that every client accepts, made once and kept."""

import os
import random
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from svc.certificates import TlsFiles, check_certificate, tls_files
from svc.config import Config
from svc.errors import StartError
from svc.secrets import open_folder
from tests.support.cases import each
from tests.support.certificates import DAY, NAMES, NOW, cert_of, mode, names_of


def tree(folder: Path) -> dict[str, tuple[int, int]]:
    """Return the content of the folder, to see whether any file was written."""
    return {str(path): (path.stat().st_ino, path.stat().st_mtime_ns) for path in sorted(folder.rglob("*"))}


@pytest.fixture
def files(tmp_path: Path) -> TlsFiles:
    return tls_files(tmp_path, NAMES, NOW)


@contextmanager
def serving(files: TlsFiles) -> Iterator[int]:
    """A bare TLS server that answers every connection; its port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.cert, files.key)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    plain, _ = listener.accept()
                except OSError:
                    return
                try:
                    with context.wrap_socket(plain, server_side=True) as connection:
                        connection.recv(65536)
                        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
                except OSError:
                    plain.close()

        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


@each("name", ["127.0.0.1", "localhost", "svc.example"])
def test_python_accepts_the_certificate_in_strict_mode(files: TlsFiles, name: str) -> None:
    context = ssl.create_default_context(cafile=files.ca)
    context.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
    with (
        serving(files) as port,
        socket.create_connection(("127.0.0.1", port)) as plain,
        context.wrap_socket(plain, server_hostname=name) as connection,
    ):
        assert connection.version() == "TLSv1.3"


def test_client_without_the_ca_rejects_the_certificate(files: TlsFiles) -> None:
    with (
        serving(files) as port,
        socket.create_connection(("127.0.0.1", port)) as plain,
        pytest.raises(ssl.SSLCertVerificationError),
    ):
        ssl.create_default_context().wrap_socket(plain, server_hostname="localhost")


@pytest.mark.needs("curl")
def test_curl_accepts_the_certificate(files: TlsFiles) -> None:
    with serving(files) as port:
        done = subprocess.run(
            ["curl", "-sS", "--noproxy", "*", "--cacert", files.ca, f"https://localhost:{port}/"],
            capture_output=True,
            timeout=20,
        )
    assert (done.stdout, done.stderr) == (b"ok", b"")


@pytest.mark.needs("node")
def test_node_accepts_the_certificate(files: TlsFiles) -> None:
    code = "fetch(process.argv[1]).then(r => r.text()).then(console.log, e => console.log(e.cause))"
    with serving(files) as port:
        done = subprocess.run(
            ["node", "-e", code, f"https://127.0.0.1:{port}/"],
            capture_output=True,
            timeout=20,
            env={**os.environ, "NODE_EXTRA_CA_CERTS": str(files.ca)},
        )
    assert done.stdout == b"ok\n"


@pytest.mark.needs("openssl")
def test_openssl_verifies_the_chain_strictly(files: TlsFiles) -> None:
    command = ["openssl", "verify", "-x509_strict", "-purpose", "sslserver", "-CAfile", files.ca, files.cert]
    assert subprocess.run(command, capture_output=True, timeout=20).returncode == 0


def test_certificate_names_are_hosts_and_addresses(tmp_path: Path) -> None:
    odd = ["fe80::1%eth0", "bücher.example", "UPPER.example", "", "(none)", "two words", "x" * 64, "a..b", "10.1.2.3"]
    assert names_of(tls_files(tmp_path, odd, NOW).cert) == {
        "fe80::1",
        "xn--bcher-kva.example",
        "upper.example",
        "10.1.2.3",
    }


def test_valid_files_are_not_rewritten(files: TlsFiles, tmp_path: Path) -> None:
    before = tree(tmp_path)
    assert tls_files(tmp_path, NAMES, NOW) == files
    assert tls_files(tmp_path, NAMES[:2], NOW + 366 * DAY) == files
    assert tls_files(tmp_path, NAMES, 0) == files  # a machine without a clock starts in 1970
    assert tree(tmp_path) == before


def test_a_new_name_gets_a_new_certificate_of_the_same_ca(files: TlsFiles, tmp_path: Path) -> None:
    ca = files.ca.read_bytes()
    tls_files(tmp_path, [*NAMES, "new.example"], NOW)
    assert "new.example" in names_of(files.cert)
    assert files.ca.read_bytes() == ca


def test_certificate_that_expires_within_30_days_is_renewed_by_the_same_ca(files: TlsFiles, tmp_path: Path) -> None:
    ca = files.ca.read_bytes()
    tls_files(tmp_path, NAMES, NOW + 368 * DAY)
    assert cert_of(files.cert).not_valid_after_utc.timestamp() > NOW + 700 * DAY
    assert files.ca.read_bytes() == ca


def test_ca_that_expires_within_30_days_is_replaced(files: TlsFiles, tmp_path: Path) -> None:
    ca = files.ca.read_bytes()
    tls_files(tmp_path, NAMES, NOW + 3621 * DAY)
    assert files.ca.read_bytes() != ca
    cert_of(files.cert).verify_directly_issued_by(cert_of(files.ca))


def rsa_key() -> bytes:
    key = rsa.generate_private_key(65537, 2048)
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda pem: b"",
    "noise": lambda pem: os.urandom(500),
    "cut": lambda pem: pem[:-80],
    "of another kind": lambda pem: rsa_key(),
}


@pytest.mark.parametrize("damage", ["gone", "another's", *DAMAGE])
@pytest.mark.parametrize("name", ["cert.pem", "key.pem", "ca.pem", "ca-key.pem"])
def test_damaged_files_are_replaced_and_the_ca_only_if_needed(tmp_path: Path, name: str, damage: str) -> None:
    files = tls_files(tmp_path, NAMES, NOW)
    ca, path = files.ca.read_bytes(), files.ca.with_name(name)
    if damage == "gone":
        path.unlink()
    elif damage == "another's":
        (tmp_path / "other").mkdir()
        path.write_bytes(tls_files(tmp_path / "other", NAMES, NOW).ca.with_name(name).read_bytes())
    else:
        path.write_bytes(DAMAGE[damage](path.read_bytes()))
    tls_files(tmp_path, NAMES, NOW)
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(files.cert, files.key)
    assert mode(files.key) == 0o600
    chain = x509.load_pem_x509_certificates(files.cert.read_bytes())
    assert chain[1:] == x509.load_pem_x509_certificates(files.ca.read_bytes())
    chain[0].verify_directly_issued_by(chain[1])
    # The CA's key is needed only to sign: as long as the certificate is fine, no client has to trust a new CA.
    assert (files.ca.read_bytes() == ca) == (name != "ca.pem")


def test_ca_file_with_added_certificates_is_unchanged(files: TlsFiles, tmp_path: Path) -> None:
    files.ca.write_bytes(files.ca.read_bytes() * 2)
    before = tree(tmp_path)
    tls_files(tmp_path, NAMES, NOW)
    assert tree(tmp_path) == before


def test_key_with_a_passphrase_is_replaced_without_a_prompt(files: TlsFiles, tmp_path: Path) -> None:
    key = serialization.load_pem_private_key(files.key.read_bytes(), None)
    lock = serialization.BestAvailableEncryption(b"x")
    files.key.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, lock))
    tls_files(tmp_path, NAMES, NOW)
    serialization.load_pem_private_key(files.key.read_bytes(), None)


def test_unwritable_certificates_stop_the_start(tmp_path: Path) -> None:
    (tmp_path / "tls").touch()
    with pytest.raises(StartError, match="certificates"):
        tls_files(tmp_path, NAMES, NOW)


def test_certificate_of_another_ca_is_replaced(files: TlsFiles, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = tls_files(tmp_path / "other", NAMES, NOW)
    files.cert.write_bytes(other.cert.read_bytes())
    files.key.write_bytes(other.key.read_bytes())
    ca = files.ca.read_bytes()
    tls_files(tmp_path, NAMES, NOW)
    cert_of(files.cert).verify_directly_issued_by(cert_of(files.ca))
    assert files.ca.read_bytes() == ca


@pytest.mark.parametrize("tls", ["auto", "files"])
def test_expiry_of_the_served_certificate_is_reported(files: TlsFiles, tmp_path: Path, tls: str) -> None:
    config = Config(data_dir=tmp_path, tls=tls, tls_cert=files.cert, tls_key=files.key)  # type: ignore[arg-type]
    assert check_certificate(config) == cert_of(files.cert).not_valid_after_utc.timestamp()
    files.cert.write_bytes(
        files.cert.read_bytes().partition(b"-----END CERTIFICATE-----\n")[0] + b"-----END CERTIFICATE-----\n"
    )
    assert check_certificate(config) == cert_of(files.cert).not_valid_after_utc.timestamp(), "also without its CA"
    files.key.write_bytes(rsa_key())
    with pytest.raises(StartError):
        check_certificate(config)
    files.cert.unlink()
    with pytest.raises(FileNotFoundError):
        check_certificate(config)


def test_expiry_of_an_expired_certificate_is_reported(tmp_path: Path) -> None:
    tls_files(tmp_path, NAMES, NOW - 1000 * DAY)
    end = check_certificate(Config(data_dir=tmp_path, tls="auto"))
    assert end == pytest.approx(NOW - (1000 - 397) * DAY, abs=2 * 3600)


def test_start_with_a_certificate_does_not_import_cryptography(files: TlsFiles, tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
from svc.certificates import tls_files
tls_files(Path(sys.argv[1]), ["localhost"], float(sys.argv[2]))
print([name for name in sys.modules if name.startswith("cryptography")])
"""
    found = subprocess.run([sys.executable, "-c", code, tmp_path, str(NOW)], capture_output=True, text=True, timeout=20)
    assert found.stdout == "[]\n", found.stderr


# --- kills


FIRST_START = """
import sys, time
from pathlib import Path
from svc import authority
from svc.certificates import tls_files
from svc.secrets import open_folder
print(1, flush=True)
folder = open_folder(Path(sys.argv[1]))
tls_files(folder.path, ["localhost"], time.time())
print(2, flush=True)
time.sleep(60)
"""


@pytest.mark.slow
def test_first_start_killed_at_any_moment_is_completed_by_the_next(tmp_path: Path) -> None:
    whole = 0
    for attempt in range(8):
        folder = tmp_path / str(attempt)
        with subprocess.Popen([sys.executable, "-c", FIRST_START, folder], stdout=subprocess.PIPE) as process:
            assert process.stdout and process.stdout.readline()
            time.sleep(random.uniform(0, 0.012))
            process.send_signal(signal.SIGKILL)
            whole += process.stdout.readline() == b"2\n"
        assert_starts(folder)
    assert whole < 8, "every start was faster than its kill"


def test_first_start_stopped_at_any_write_is_completed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class PowerCut(BaseException):
        pass

    steps = 0
    for step in range(1, 100):
        left = step

        def cut(real: object, *arguments: object, **options: object) -> object:
            nonlocal left
            left -= 1
            if left == 0:
                raise PowerCut
            return real(*arguments, **options)  # type: ignore[operator]

        folder = tmp_path / str(step)
        with monkeypatch.context() as patch:
            for owner, name in ((os, "fsync"), (os, "open"), (Path, "rename"), (Path, "mkdir"), (os, "fchmod")):
                real = getattr(owner, name)
                patch.setattr(owner, name, lambda *a, real=real, **o: cut(real, *a, **o))
            try:
                opened = open_folder(folder)
                try:
                    tls_files(folder, NAMES, NOW)
                finally:
                    opened.close()
            except PowerCut:
                steps += 1
            else:
                break
        assert_starts(folder)
    assert steps > 20


def assert_starts(folder: Path) -> None:
    opened = open_folder(folder)
    assert len(opened.master) == 32
    files = tls_files(folder, NAMES, NOW)
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(files.cert, files.key)
    opened.close()
