"""What `svc doctor` can tell of this machine alone: the data folder and its database, port, certificate, disk, backup, clock."""

import contextlib
import os
import pwd
import shutil
import sqlite3
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from cryptography import x509

from svc import backup
from svc.commands.finding import Finding, fine, look, wrong
from svc.config import Config
from svc.errors import StartError
from svc.inference.providers import count_sealed
from svc.schema import FIRST_VERSION, newest_schema, newest_version, read_only
from svc.secrets import DATABASE, MASTER, fits
from svc.server import status
from svc.server.serve import bind, tls_context

_DAY_SECONDS = 86_400
_LEAST_FREE_BYTES = 1024**3
_FEW_FREE_BYTES = 5 * 1024**3
_EXPIRES_SOON_DAYS = 14
_OLD_BACKUP_DAYS = 7
_SKEW_SECONDS = 60


def examined(config: Config) -> Iterator[Finding]:
    """Everything that is looked at, one after the other: it takes milliseconds, and waits for nobody."""
    yield from _folder(config.data_dir)
    if os.access(config.data_dir, os.R_OK | os.X_OK):
        yield from _database(config.data_dir / DATABASE)
        yield from _backup(config.data_dir)
        yield from _clock(config.data_dir)
    yield _port(config)
    yield from _certificate(config)
    yield room(shutil.disk_usage(_there(config.data_dir)).free)
    if config.smtp_url is None:
        yield fine("mail", "there is no mail server; 'svc user reset-link' prints the links that it would send")
    if not config.local_posture and config.metrics_token is None:
        yield look("metrics", "they are switched off", "Set SVC_METRICS_TOKEN, and give it to Prometheus")


def _folder(folder: Path) -> Iterator[Finding]:
    about, shown = "data folder", folder.absolute()
    if not folder.exists():
        parent = _there(folder)
        if os.access(parent, os.W_OK | os.X_OK):
            yield fine(about, f"{shown} is not there yet; the first start makes it")
        else:
            yield wrong(about, f"{shown} is not there, and may not be made in {parent}", "Make it, for the user of the service")
        return
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        yield wrong(about, f"{shown} may not be written by this user", "Run as the user of the service, or give it the folder")
        return
    owner = folder.stat().st_uid
    mine = [path for path in (folder, *folder.rglob("*")) if not path.is_symlink() and path.name != "lost+found"]
    strange = [path for path in mine if path.stat().st_uid != owner]
    if strange:
        yield wrong(about, f"{strange[0]} belongs to {_user(strange[0].stat().st_uid)}", f"chown -R {_user(owner)} {shown}")
    open_to_others = [path for path in mine if stat.S_IMODE(path.stat().st_mode) & 0o077]
    if open_to_others:
        yield look(about, f"others may read {open_to_others[0]}", "The next start closes it; until then: chmod -R go= it")
    if not strange and not open_to_others:
        yield fine(about, f"{shown} is {_user(owner)}'s alone")


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _there(folder: Path) -> Path:
    """`folder`, or as much of its path as is there."""
    return next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())


def _database(path: Path) -> Iterator[Finding]:
    about = "database"
    if not path.exists():
        return
    newest = newest_version(newest_schema()[1])
    try:
        with read_only(path) as conn:
            version: int = conn.execute("PRAGMA user_version").fetchone()[0]
            key = _master_key(conn, path.parent) if version == newest else None
    except (StartError, sqlite3.Error, OSError) as error:
        yield wrong(about, f"it cannot be read: {error}", "Restore a backup into a new folder")
        return
    if version > newest:
        yield wrong(about, f"its schema is version {version}, known here up to {newest}", "Install the newer service again")
    elif version < FIRST_VERSION:
        yield wrong(about, f"its schema is version {version}, from before release 1.0.0", "Set SVC_DATA_DIR to a new folder")
    elif version < newest:
        yield look(about, f"its schema is version {version}", f"The next start keeps it beside and takes it to {newest}")
    else:
        yield fine(about, f"schema {version}, {path.stat().st_size:,} bytes; 'svc check' verifies all of it")
    if key is not None:
        yield key


def _master_key(conn: sqlite3.Connection, folder: Path) -> Finding | None:
    """What is wrong with the secret that encrypts what is stored."""
    try:
        if fits(conn, (folder / MASTER).read_bytes()):
            return None
        text = "it is not the one of this database"
    except FileNotFoundError:
        if fits(conn, b""):
            return None  # there was no start yet
        text = "it is missing"
    lost = f"and {count_sealed(conn)} provider keys are encrypted with the old one"
    return wrong(MASTER, f"{text}, {lost}", "Restore it from a backup; a start without it is refused, or ends every session")


def _port(config: Config) -> Finding:
    about = "port"
    with contextlib.suppress(OSError, ValueError):  # a server that does not answer holds the port all the same
        told = status.ask(config.data_dir)
        if told is not None:
            return fine(about, f"process {told['pid']} (svc {told['version']}) serves {told['base_url']} out of this folder")
    try:
        bind(config.host, config.port).close()
    except StartError as error:
        return wrong(about, str(error), "Set SVC_HOST and SVC_PORT to what is free here, or end what has it")
    return fine(about, f"{config.host} port {config.port} is free")


def _certificate(config: Config) -> Iterator[Finding]:
    about = "certificate"
    if config.tls == "proxy":
        yield fine(about, "the proxy has it; it must send X-Forwarded-Proto: https")
        return
    if config.tls == "files":
        try:
            tls_context(config)
        except StartError as error:
            yield wrong(about, str(error), "SVC_TLS_CERT needs the certificate with its chain, SVC_TLS_KEY its key")
            return
        if config.tls_key and stat.S_IMODE(config.tls_key.stat().st_mode) & 0o007:
            yield look(about, "anybody on this machine may read the key", f"chmod o= {config.tls_key}")
    try:
        certificate = _certificate_in_use(config)
    except FileNotFoundError:
        yield fine(about, "there is none yet; the first start makes a local CA and a certificate")
        return
    except OSError as error:
        yield wrong(about, f"it cannot be read: {error.strerror}")
        return
    if certificate is None:
        yield wrong(about, "its file holds none", "Delete it: the next start makes a new one")
        return
    yield _names(config, certificate)
    yield _days(config, certificate)


def _certificate_in_use(config: Config) -> x509.Certificate | None:
    """The certificate that the service shows its clients; None where its file holds none. Raises OSError."""
    path = config.data_dir / "tls" / "cert.pem" if config.tls == "auto" else config.tls_cert
    try:
        return x509.load_pem_x509_certificates(path.read_bytes())[0] if path else None
    except ValueError:
        return None


def _names(config: Config, certificate: x509.Certificate) -> Finding:
    host = urlsplit(config.base_url).hostname or ""
    try:
        alternatives = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return wrong("certificate", "it has no names (subjectAltName); no client takes it", "Get one with names")
    names = [str(entry.value).lower() for entry in alternatives]
    wildcard = f"*.{host.partition('.')[2]}"
    if host in names or wildcard in names:
        return fine("certificate", f"it is for {host}")
    todo = "The next start makes one with it" if config.tls == "auto" else "Get one for it, or set SVC_BASE_URL"
    return wrong("certificate", f"it is for {', '.join(names[:5])}, not for {host}, the host of SVC_BASE_URL", todo)


def _days(config: Config, certificate: x509.Certificate) -> Finding:
    days = (certificate.not_valid_after_utc.timestamp() - time.time()) / _DAY_SECONDS
    todo = "A running or starting server renews it" if config.tls == "auto" else "Put a new one in its place and send SIGHUP"
    if certificate.not_valid_before_utc.timestamp() > time.time():
        return wrong(
            "certificate", f"it is valid from {certificate.not_valid_before_utc:%Y-%m-%d %H:%M} UTC only", "See the clock"
        )
    if days <= 0:
        return wrong("certificate", f"it has expired {-days:.0f} days ago", todo)
    if days < _EXPIRES_SOON_DAYS:
        return look("certificate", f"it expires in {days:.0f} days", todo)
    return fine("certificate", f"it is good for {days:.0f} days")


def room(free_bytes: int) -> Finding:
    """What so many free bytes on the disk of the data folder mean."""
    text = f"{free_bytes / 1024**3:.1f} GiB are free for the data folder"
    if free_bytes < _LEAST_FREE_BYTES:
        return wrong("disk", text, "Make room: on a full disk nothing that costs is done")
    return look("disk", text) if free_bytes < _FEW_FREE_BYTES else fine("disk", text)


def _backup(folder: Path) -> Iterator[Finding]:
    if not (folder / DATABASE).exists():
        return
    made_at = backup.made_at(folder)
    days = (time.time() - made_at) / _DAY_SECONDS
    todo = "svc backup FOLDER --keep 14, every night"
    if not made_at:
        yield look("backup", "none has been made of this folder", todo)
    elif days > _OLD_BACKUP_DAYS:
        yield look("backup", f"the last one was made {days:.0f} days ago", todo)
    else:
        yield fine("backup", f"the last one was made {days:.1f} days ago")


def _clock(folder: Path) -> Iterator[Finding]:
    """A clock that is behind shows in the files: they were written in its future."""
    written = [path.stat().st_mtime for path in folder.glob("service.db*")]
    ahead_seconds = max(written, default=0.0) - time.time()
    if ahead_seconds > _SKEW_SECONDS:
        text = f"the database was written {ahead_seconds:.0f} seconds in its future: it was set back"
        yield wrong("clock", text, "Keep it right with NTP: sessions, certificates and payments rely on it")
