"""The data folder's lock and master secret, and certificates that every client accepts."""

import os
import random
import signal
import socket
import ssl
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from svc.errors import StartError
from svc.secrets import (
    TlsFiles,
    derive,
    forget_address,
    open_folder,
    served_address,
    tls_files,
    write_address,
    write_private,
)

NAMES = ["localhost", "127.0.0.1", "::1", "svc.example"]
NOW = time.time()
DAY = 86400


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def tree(folder: Path) -> dict[str, tuple[int, int]]:
    """What is in the folder, so that one can see whether any file was written."""
    return {str(path): (path.stat().st_ino, path.stat().st_mtime_ns) for path in sorted(folder.rglob("*"))}


# --- the folder


def test_the_first_start_makes_a_private_folder_with_a_private_secret(tmp_path: Path) -> None:
    folder = open_folder(tmp_path / "a" / "data")
    assert (mode(folder.path), mode(folder.path / "master.key"), mode(folder.path / "lock")) == (0o700, 0o600, 0o600)
    assert len(folder.master) == 32
    assert (folder.path / "master.key").read_bytes() == folder.master
    folder.close()


def test_the_secret_stays_the_same_and_installations_differ(tmp_path: Path) -> None:
    secrets = []
    for name in ("one", "one", "two"):
        folder = open_folder(tmp_path / name)
        secrets.append(folder.master)
        folder.close()
    assert secrets[0] == secrets[1] != secrets[2]


def test_the_secret_does_not_show(tmp_path: Path) -> None:
    folder = open_folder(tmp_path)
    assert repr(folder.master) not in repr(folder)
    assert folder.master.hex() not in repr(folder)
    folder.close()


def test_a_second_server_is_refused_until_the_first_lets_go(tmp_path: Path) -> None:
    first = open_folder(tmp_path)
    with pytest.raises(StartError, match="another server"):
        open_folder(tmp_path)
    first.close()
    first.close()
    open_folder(tmp_path).close()


def test_the_lock_dies_with_the_process(tmp_path: Path) -> None:
    code = "import sys, time; from svc.secrets import *; f = open_folder(Path(sys.argv[1])); print(1, flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code, tmp_path], stdout=subprocess.PIPE) as holder:
        assert holder.stdout and holder.stdout.readline()
        with pytest.raises(StartError):
            open_folder(tmp_path)
        holder.kill()
        holder.wait()
        open_folder(tmp_path).close()


def test_a_program_started_by_the_server_does_not_inherit_the_lock(tmp_path: Path) -> None:
    folder = open_folder(tmp_path)
    with subprocess.Popen(["sleep", "60"], close_fds=False) as child:
        folder.close()
        open_folder(tmp_path).close()
        child.kill()


@pytest.mark.parametrize("length", [0, 31, 33, 1000])
def test_a_damaged_secret_stops_the_start_and_nothing_is_touched(tmp_path: Path, length: int) -> None:
    open_folder(tmp_path).close()
    (tmp_path / "master.key").write_bytes(b"x" * length)
    before = tree(tmp_path)
    with pytest.raises(StartError, match="damaged"):
        open_folder(tmp_path)
    assert tree(tmp_path) == before


def test_a_secret_that_others_can_read_is_made_private(tmp_path: Path) -> None:
    open_folder(tmp_path).close()
    (tmp_path / "master.key").chmod(0o644)
    open_folder(tmp_path).close()
    assert mode(tmp_path / "master.key") == 0o600


@pytest.mark.parametrize("folder", ["/proc/self/data", "/proc/self", "/dev/null", "/dev/null/data"])
def test_a_folder_that_cannot_be_used_stops_the_start(folder: str) -> None:
    with pytest.raises(StartError, match="cannot use the data folder"):
        open_folder(Path(folder))


def test_a_failed_start_leaves_no_lock_behind(tmp_path: Path) -> None:
    (tmp_path / "master.key").mkdir()
    with pytest.raises(StartError):
        open_folder(tmp_path)
    (tmp_path / "master.key").rmdir()
    open_folder(tmp_path).close()


FIRST_START = """
import sys, time
from pathlib import Path
from svc.secrets import open_folder, tls_files
print(1, flush=True)
folder = open_folder(Path(sys.argv[1]))
tls_files(folder.path, ["localhost"], time.time())
print(2, flush=True)
time.sleep(60)
"""


def test_a_first_start_killed_at_any_moment_is_finished_by_the_next(tmp_path: Path) -> None:
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


def test_a_first_start_that_stops_at_any_write_is_finished_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_what_is_written_is_private_and_replaces_the_old_whole(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_bytes(b"something longer")
    path.chmod(0o666)
    (tmp_path / "secret.new").write_bytes(b"left over from a crash, and longer than what is written now")
    (tmp_path / "secret.new").chmod(0o666)
    write_private(path, b"new")
    assert (path.read_bytes(), mode(path), sorted(tmp_path.iterdir())) == (b"new", 0o600, [path])


def test_what_is_written_is_on_disk_before_it_has_its_name_and_the_name_before_the_return(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    fsync, rename = os.fsync, Path.rename

    def noted_fsync(descriptor: int) -> None:
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        steps.append("sync folder" if is_folder else f"sync {os.fstat(descriptor).st_size} bytes")
        fsync(descriptor)

    def noted_rename(path: Path, target: Path) -> Path:
        steps.append("rename")
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(Path, "rename", noted_rename)
    write_private(tmp_path / "secret", b"12345")
    assert steps == ["sync 5 bytes", "rename", "sync folder"]


def test_each_purpose_has_its_own_key() -> None:
    master = bytes(range(32))
    keys = [derive(master, "session"), derive(master, "byok"), derive(bytes(32), "session")]
    assert len(set(keys)) == 3
    assert {len(key) for key in keys} == {32}
    assert derive(master, "session") == keys[0]


def test_a_derived_key_never_changes() -> None:
    # Were it to change, every session and every stored provider key would be lost at an upgrade.
    key = derive(bytes(range(32)), "session")
    assert key.hex() == "dbf4d1e939292a5365d7579facde4f3c6bf17efb12dfecec5c0e5aefaa0a48cb"


# --- certificates


def cert_of(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def names_of(path: Path) -> set[str]:
    extension = cert_of(path).extensions.get_extension_for_class(x509.SubjectAlternativeName)
    return {str(name.value) for name in extension.value}


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


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "svc.example"])
def test_python_in_its_strictest_mode_accepts_the_certificate(files: TlsFiles, name: str) -> None:
    context = ssl.create_default_context(cafile=files.ca)
    context.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
    with (
        serving(files) as port,
        socket.create_connection(("127.0.0.1", port)) as plain,
        context.wrap_socket(plain, server_hostname=name) as connection,
    ):
        assert connection.version() == "TLSv1.3"


def test_a_client_without_the_ca_refuses_it(files: TlsFiles) -> None:
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
            ["curl", "-sS", "--noproxy", "*", "--cacert", files.ca, f"https://localhost:{port}/"], capture_output=True, timeout=20
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


def test_the_keys_are_private_and_the_ca_can_sign_only_servers(files: TlsFiles) -> None:
    assert [mode(files.key), mode(files.ca.with_name("ca-key.pem")), mode(files.ca.parent)] == [0o600, 0o600, 0o700]
    ca, server = cert_of(files.ca), cert_of(files.cert)
    limits = ca.extensions.get_extension_for_class(x509.BasicConstraints)
    assert (limits.critical, limits.value.ca, limits.value.path_length) == (True, True, 0)
    assert not server.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert ca.not_valid_after_utc - ca.not_valid_before_utc == timedelta(days=3650)
    assert server.not_valid_after_utc - server.not_valid_before_utc == timedelta(days=397)
    assert x509.load_pem_x509_certificates(files.cert.read_bytes()) == [server, ca]


def test_the_names_are_hosts_and_addresses_and_nothing_else(tmp_path: Path) -> None:
    odd = ["fe80::1%eth0", "bücher.example", "UPPER.example", "", "(none)", "two words", "x" * 64, "a..b", "10.1.2.3"]
    assert names_of(tls_files(tmp_path, odd, NOW).cert) == {
        "fe80::1",
        "xn--bcher-kva.example",
        "upper.example",
        "10.1.2.3",
    }


def test_what_is_fine_is_never_written_again(files: TlsFiles, tmp_path: Path) -> None:
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


def test_a_certificate_that_expires_within_30_days_is_made_anew_by_the_same_ca(files: TlsFiles, tmp_path: Path) -> None:
    ca = files.ca.read_bytes()
    tls_files(tmp_path, NAMES, NOW + 368 * DAY)
    assert cert_of(files.cert).not_valid_after_utc.timestamp() > NOW + 700 * DAY
    assert files.ca.read_bytes() == ca


def test_a_ca_that_expires_within_30_days_is_made_anew(files: TlsFiles, tmp_path: Path) -> None:
    ca = files.ca.read_bytes()
    tls_files(tmp_path, NAMES, NOW + 3621 * DAY)
    assert files.ca.read_bytes() != ca
    cert_of(files.cert).verify_directly_issued_by(cert_of(files.ca))


def test_a_certificate_never_outlives_its_ca(files: TlsFiles, tmp_path: Path) -> None:
    tls_files(tmp_path, NAMES, NOW + 3500 * DAY)
    assert cert_of(files.cert).not_valid_after_utc <= cert_of(files.ca).not_valid_after_utc


def rsa_key() -> bytes:
    key = rsa.generate_private_key(65537, 2048)
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda pem: b"",
    "noise": lambda pem: os.urandom(500),
    "cut": lambda pem: pem[:-80],
    "of another kind": lambda pem: rsa_key(),
}


@pytest.mark.parametrize("damage", ["gone", "another's", *DAMAGE])
@pytest.mark.parametrize("name", ["cert.pem", "key.pem", "ca.pem", "ca-key.pem"])
def test_damaged_files_are_made_anew_and_the_ca_only_when_it_must(tmp_path: Path, name: str, damage: str) -> None:
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
    # The CA's key is needed only to sign: as long as the certificate is fine, nobody has to trust a new CA.
    assert (files.ca.read_bytes() == ca) == (name != "ca.pem")


def test_a_ca_file_to_which_others_were_added_is_left_alone(files: TlsFiles, tmp_path: Path) -> None:
    files.ca.write_bytes(files.ca.read_bytes() * 2)
    before = tree(tmp_path)
    tls_files(tmp_path, NAMES, NOW)
    assert tree(tmp_path) == before


def test_a_ca_without_its_key_is_replaced_when_it_has_to_sign(files: TlsFiles, tmp_path: Path) -> None:
    ca = files.ca.read_bytes()
    files.ca.with_name("ca-key.pem").unlink()
    tls_files(tmp_path, [*NAMES, "new.example"], NOW)
    assert files.ca.read_bytes() != ca
    assert "new.example" in names_of(files.cert)


def test_a_key_with_a_passphrase_is_made_anew_without_asking(files: TlsFiles, tmp_path: Path) -> None:
    key = serialization.load_pem_private_key(files.key.read_bytes(), None)
    lock = serialization.BestAvailableEncryption(b"x")
    files.key.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, lock))
    tls_files(tmp_path, NAMES, NOW)
    serialization.load_pem_private_key(files.key.read_bytes(), None)


def test_certificates_that_cannot_be_written_stop_the_start(tmp_path: Path) -> None:
    (tmp_path / "tls").touch()
    with pytest.raises(StartError, match="certificates"):
        tls_files(tmp_path, NAMES, NOW)


# --- what others may read


def test_a_folder_that_others_could_read_is_closed_to_them_and_what_is_not_ours_stays(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    (folder / "tls").mkdir(parents=True, mode=0o755)
    (folder / "notes").write_text("not ours")
    for name in ("master.key", "service.db", "service.db-wal", "tls/key.pem"):
        (folder / name).write_bytes(b"x" * 32)
        (folder / name).chmod(0o644)
    for path in (folder, folder / "tls"):
        path.chmod(0o755)
    (folder / "notes").chmod(0o644)
    open_folder(folder).close()
    for name in (".", "tls"):
        assert mode(folder / name) == 0o700
    for name in ("lock", "master.key", "service.db", "service.db-wal", "tls/key.pem"):
        assert mode(folder / name) == 0o600
    assert mode(folder / "notes") == 0o644


def test_the_address_is_there_while_a_server_is(tmp_path: Path) -> None:
    assert served_address(tmp_path) is None
    write_address(tmp_path, "https://127.0.0.1:8443")
    assert served_address(tmp_path) == "https://127.0.0.1:8443" and mode(tmp_path / "address") == 0o600
    forget_address(tmp_path)
    forget_address(tmp_path)
    assert served_address(tmp_path) is None
