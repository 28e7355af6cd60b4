"""The data folder, its lock, the master secret and the local certificates: whatever must be made once and kept.

Everything here is written by `write_private`, so a kill at any moment leaves either the old file or the new one, and each
step of a first start can be found half done and done again.
"""

import contextlib
import fcntl
import ipaddress
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from svc.config import Config
from svc.errors import StartError

MASTER_BYTES = 32
_ADDRESS = "address"
_OURS = ("lock", "master.key", "address", "status", "last-backup", "service.db*", "tls", "tls/*")
_CA_DAYS = 3650
_SERVER_DAYS = 397  # what browsers accept
_RENEW_BEFORE_DAYS = 30
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


@dataclass
class DataFolder:
    """The locked data folder; `master` is the secret of this installation, from which `derive` makes one key per purpose."""

    path: Path
    master: bytes = field(repr=False)
    _lock: int = field(repr=False)

    def derive(self, purpose: str) -> bytes:
        """The 32-byte key for `purpose`."""
        return derive(self.master, purpose)

    def close(self) -> None:
        """Lets another server have the folder."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def open_folder(path: Path) -> DataFolder:
    """Makes (0700) and locks the data folder, and reads or makes its master secret.

    The lock is the kernel's, so it ends with the process. Raises StartError when another server holds the folder, when it
    cannot be written, or when the master secret is damaged; then nothing in the folder was changed.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        _close_to_others(path)
        lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return DataFolder(path, _master(path / "master.key"), lock)
        except BaseException:
            os.close(lock)
            raise
    except BlockingIOError:
        raise StartError(f"another server is using the data folder {path}") from None
    except OSError as error:
        raise StartError(f"cannot use the data folder {path}: {error.strerror}") from None


def is_locked(folder: Path) -> bool:
    """Whether a server holds the data folder now."""
    try:
        descriptor = os.open(folder / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def write_address(folder: Path, base_url: str) -> None:
    """Keeps where the server of this data folder can be reached, for the commands: with port 0 nobody else knows."""
    try:
        write_private(folder / _ADDRESS, base_url.encode())
    except OSError as error:
        raise StartError(f"cannot write to the data folder {folder}: {error.strerror}") from None


def served_address(folder: Path) -> str | None:
    """The base URL of the server that uses this data folder; None when none is running."""
    try:
        return (folder / _ADDRESS).read_text()
    except (OSError, ValueError):
        return None


def forget_address(folder: Path) -> None:
    """Says that no server uses this data folder any more."""
    with contextlib.suppress(OSError):
        (folder / _ADDRESS).unlink()


def derive(master: bytes, purpose: str) -> bytes:
    """The 32-byte key for `purpose` (HKDF-SHA256): a key of one purpose tells nothing about another's."""
    return HKDF(hashes.SHA256(), MASTER_BYTES, salt=None, info=b"svc " + purpose.encode()).derive(master)


def write_private(path: Path, data: bytes) -> None:
    """Writes `data` to `path` for the owner alone (0600), whole or not at all, and on disk when this returns. Raises OSError."""
    fresh = path.with_name(path.name + ".new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, 0o600)
        file.write(data)
        file.flush()
        os.fsync(descriptor)
    fresh.rename(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _master(path: Path) -> bytes:
    try:
        master = _read_private(path)
    except FileNotFoundError:
        master = os.urandom(MASTER_BYTES)
        write_private(path, master)
    if len(master) != MASTER_BYTES:
        raise StartError(f"{path} is damaged: it has {len(master)} bytes, not {MASTER_BYTES}. Restore it from a backup")
    return master


def _close_to_others(folder: Path) -> None:
    """Takes from everybody else what a folder that was made by hand, or by another version, lets them read of our files."""
    ours = [path for pattern in _OURS for path in folder.glob(pattern) if not path.is_symlink()]
    for path in [*ours, folder]:
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & 0o077 and path.stat().st_uid == os.geteuid():
            path.chmod(mode & 0o700)


def _read_private(path: Path) -> bytes:
    with path.open("rb") as file:
        if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
            os.fchmod(file.fileno(), 0o600)
        return file.read()


@dataclass(frozen=True)
class TlsFiles:
    """The server's certificate (with its chain), its key, and the local CA's certificate that clients are given."""

    cert: Path
    key: Path
    ca: Path


@dataclass(frozen=True)
class _Pair:
    cert: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def tls_files(folder: Path, names: Sequence[str], now: float) -> TlsFiles:
    """The certificate files under `folder`/tls for a server called `names` (hosts and IP addresses), at `now` (Unix seconds).

    They are made when there are none, and made anew when damaged, about to expire or lacking a name; the CA, which people
    have told their clients to trust, only when it is itself damaged or about to expire. Raises StartError when they cannot
    be read or written.
    """
    tls = folder / "tls"
    files = TlsFiles(tls / "cert.pem", tls / "key.pem", tls / "ca.pem")
    ca_key = tls / "ca-key.pem"
    today = datetime.fromtimestamp(now, UTC)
    wanted = _general_names(names)
    try:
        tls.mkdir(mode=0o700, exist_ok=True)
        ca_chain = _chain(files.ca, today)
        server_chain = _chain(files.cert, today)
        if server_chain[1:] == ca_chain[:1] and _fine(server_chain, _key(files.key), wanted):
            return files
        ca = _pair(ca_chain, _key(ca_key))
        if ca is None:
            ca = _make_ca(today)
            write_private(ca_key, _key_pem(ca.key))
            write_private(files.ca, _cert_pem(ca.cert))
        server = _make_server(ca, wanted, today)
        write_private(files.key, _key_pem(server.key))
        write_private(files.cert, _cert_pem(server.cert) + _cert_pem(ca.cert))
    except OSError as error:
        raise StartError(f"cannot use the certificates in {tls}: {error.strerror}") from None
    return files


def certificate_in_use(config: Config) -> x509.Certificate | None:
    """The certificate that the service shows its clients; None behind a proxy, or where its file holds none. Raises OSError."""
    path = {"auto": config.data_dir / "tls" / "cert.pem", "files": config.tls_cert}.get(config.tls)
    try:
        return x509.load_pem_x509_certificates(path.read_bytes())[0] if path else None
    except ValueError:
        return None


def _chain(path: Path, today: datetime) -> list[x509.Certificate]:
    """The certificates in `path`; none when it is missing or damaged, or when one of them expires within the month.

    A certificate from the future is good: a clock that is behind must not cost people the CA that they trust.
    """
    try:
        certs = x509.load_pem_x509_certificates(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return []
    last_good = today + timedelta(days=_RENEW_BEFORE_DAYS)
    return certs if all(cert.not_valid_after_utc > last_good for cert in certs) else []


def _key(path: Path) -> ec.EllipticCurvePrivateKey | None:
    """The key in `path`; None when it is missing, damaged or not of our kind."""
    try:
        key = serialization.load_pem_private_key(_read_private(path), password=None)
    except (FileNotFoundError, ValueError, TypeError, UnsupportedAlgorithm):
        return None
    return key if isinstance(key, ec.EllipticCurvePrivateKey) else None


def _pair(chain: list[x509.Certificate], key: ec.EllipticCurvePrivateKey | None) -> _Pair | None:
    """The first certificate of `chain` with its key; None unless both are there and belong together."""
    if not chain or key is None or _public_bytes(chain[0]) != _public_bytes(key):
        return None
    return _Pair(chain[0], key)


def _public_bytes(holder: x509.Certificate | ec.EllipticCurvePrivateKey) -> bytes:
    try:
        public = holder.public_key()
    except (ValueError, UnsupportedAlgorithm):
        return b""
    return public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def _fine(chain: list[x509.Certificate], key: ec.EllipticCurvePrivateKey | None, wanted: set[x509.GeneralName]) -> bool:
    """Whether `chain` is a server certificate for every `wanted` name with its key, and the CA that issued it."""
    if len(chain) != 2 or _pair(chain, key) is None:
        return False
    try:
        chain[0].verify_directly_issued_by(chain[1])
        names = chain[0].extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm, x509.ExtensionNotFound):
        return False
    return wanted <= set(names)


def _general_names(names: Sequence[str]) -> set[x509.GeneralName]:
    """`names` as a certificate holds them; what can be neither an address nor a DNS name is left out."""
    found: set[x509.GeneralName] = set()
    for name in names:
        try:
            found.add(x509.IPAddress(ipaddress.ip_address(name.partition("%")[0])))
            continue
        except ValueError:
            pass  # no address: it may be a name
        try:
            dns = name.encode("idna").decode("ascii").lower()
        except UnicodeError:
            continue
        if re.fullmatch(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*", dns):
            found.add(x509.DNSName(dns))
    return found


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


def _make_server(ca: _Pair, names: set[x509.GeneralName], today: datetime) -> _Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "svc server")])
    end = min(today + timedelta(days=_SERVER_DAYS), ca.cert.not_valid_after_utc)
    builder = (
        _builder(key, subject, ca.cert.subject, today, end)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage("digital_signature"), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca.key.public_key()), critical=False)
        .add_extension(x509.SubjectAlternativeName(sorted(names, key=str)), critical=False)
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
