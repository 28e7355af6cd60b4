"""Backup of the data folder while a server uses it, and restore: one tar archive with digests.

make(): the secrets -> SQLite's online backup of one snapshot, in steps -> verify -> digests -> rename the archive
restore(): the manifest -> check each member's digest -> verify the database -> .svc-restored -> the data folder's names
           or a plain database file, as a replica or an upgrade leaves it, with the secrets that are beside it
"""

import contextlib
import fcntl
import hashlib
import io
import os
import shutil
import sqlite3
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, BinaryIO

import orjson

from svc import audit
from svc.errors import StartError
from svc.schema import APPLICATION_ID, FIRST_VERSION, connect, newest_schema, newest_version, read_only
from svc.secrets import (
    DATABASE,
    MASTER,
    OLD_MASTER,
    RESTORED,
    RESTORING,
    complete_restore,
    fitting_master,
    give_to_owner,
    installation_id,
    sync_folder,
    take_lock,
    write_private,
)

_SQLITE = b"SQLite format 3\0"
MANIFEST = "manifest.json"
_NOTE = "last-backup"  # its modification time is that of the last backup
# Clients and rows need them: the master secret (sessions, encrypted provider keys) and the certificates.
_SECRETS = (MASTER, "tls/ca.pem", "tls/ca-key.pem", "tls/cert.pem", "tls/key.pem")
_REQUIRED = (DATABASE, MASTER)
_NO_CONTENT = {"lock", "lost+found", RESTORING}
_FORMAT = 1
# A step copies 1 MiB and reports progress. It reads one snapshot of the WAL, so neither it nor the writer waits.
_STEP_PAGES = 256
_CHUNK_BYTES = 1024 * 1024
_MANIFEST_BYTES = 64 * 1024
_SLACK_BYTES = 1024 * 1024  # for the secrets and the file system

Verify = Callable[[sqlite3.Connection], list[str]]  # returns what is wrong in a database, a line each
Progress = Callable[[int, int], None]  # gets the bytes done and the bytes in all


def make(folder: Path, target: Path, verify: Verify, version: str, created_at: str, progress: Progress) -> dict[str, Any]:
    """Write a backup of the data folder to the new file `target` (0600), atomically; return its manifest.

    A running server is not delayed. Until the end, it needs twice the database's size in the folder of `target`. Raises
    StartError with one line.
    """
    with _one_line("back up to", target), _workplace(target.parent, ".svc-backup-") as work:
        manifest, secrets = _copied(folder, work, 2, verify, version, created_at, progress)
        whole = work / "archive"
        with _private(whole) as file:
            _write_archive(file, manifest, secrets, work / DATABASE)
            file.flush()
            os.fsync(file.fileno())
        whole.rename(target)
        sync_folder(target.parent)
    return manifest


def stream(folder: Path, file: BinaryIO, verify: Verify, version: str, created_at: str, progress: Progress) -> None:
    """As `make`, to an open file such as standard output. It needs the database's size in the temporary folder (TMPDIR)."""
    with _one_line("back up to", Path("-")), tempfile.TemporaryDirectory(prefix="svc-backup-") as work:
        manifest, secrets = _copied(folder, Path(work), 1, verify, version, created_at, progress)
        _write_archive(file, manifest, secrets, Path(work) / DATABASE)
        file.flush()


def restore(archive: BufferedReader, folder: Path, verify: Verify, beside: Path | None = None) -> dict[str, Any]:
    """Restore an archive of `make`, or a database file with the secrets in the folder `beside`; return the manifest.

    `folder` must be new or empty; it may be a mount point with `lost+found`, or a link to a folder. All files are verified in a
    subfolder first. After a kill, the next restore or start completes or removes it. Raises StartError with one line.
    """
    folder = folder.resolve()
    with _one_line("restore into", folder), _to_fill(folder) as work:
        plain = archive.peek(len(_SQLITE)).startswith(_SQLITE)
        manifest = _take_database(archive, work, beside) if plain else _extract(archive, work)
        newest = newest_version(newest_schema()[1])
        version = manifest.get("version") or f"schema {manifest['schema_version']}"
        if manifest["schema_version"] > newest:
            raise StartError(f"the backup is of a newer version ({version}); install that version first")
        if manifest["schema_version"] < FIRST_VERSION:
            raise StartError(f"the backup was made by a version before 1.0.0 ({version}), whose databases cannot be migrated")
        _verify(work / DATABASE, verify)
        if manifest["schema_version"] == newest:  # an older one has perhaps no audit log
            with contextlib.closing(connect(work / DATABASE)) as tx:
                audit.add(tx, time.time(), audit.OPERATOR, "restore", None, {"created_at": manifest.get("created_at")})
    return manifest


@contextlib.contextmanager
def _to_fill(folder: Path) -> Iterator[Path]:
    """Make and lock the data folder, and give a subfolder whose files become its content after the block.

    If the block fails, nothing is changed.
    """
    is_new = not folder.exists()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = take_lock(folder)
    work = folder / RESTORING
    try:
        if complete_restore(folder):
            raise StartError(f"an interrupted restore into {folder} has been completed; nothing is left to do")
        if {path.name for path in folder.iterdir()} - _NO_CONTENT:
            raise StartError(f"{folder} is not empty; a backup is restored into a new or empty folder (set SVC_DATA_DIR)")
        shutil.rmtree(work, ignore_errors=True)  # a restore that was killed left it
        work.mkdir(mode=0o700)
        yield work
        owner = folder.stat()
        for path in (work, *work.rglob("*")) if os.geteuid() == 0 else ():
            os.chown(path, owner.st_uid, owner.st_gid)
        sync_folder(work)
        work.rename(folder / RESTORED)
        sync_folder(folder)
        complete_restore(folder)
        is_new = False
    finally:
        shutil.rmtree(work, ignore_errors=True)
        if is_new:
            shutil.rmtree(folder)
        give_to_owner(folder)
        os.close(lock)


def drop_older(folder: Path, pattern: str, keep: int) -> list[Path]:
    """Delete and return all but the newest `keep` of the files that match `pattern`, whose names sort by time."""
    older = sorted(folder.glob(pattern))[:-keep]
    for path in older:
        path.unlink()
    return older


def note_made(folder: Path, began_at: float) -> None:
    """Store that a backup has been made now, which needs no master secret from before. Raises OSError."""
    (folder / _NOTE).touch(mode=0o600)
    old = folder / OLD_MASTER
    if old.exists() and old.stat().st_mtime < began_at:
        old.unlink()


def made_at(folder: Path) -> float:
    """Return when `note_made` was last called, in Unix seconds; 0 for never."""
    try:
        return (folder / _NOTE).stat().st_mtime
    except FileNotFoundError:
        return 0.0


# --- the database


def _copied(
    folder: Path, work: Path, copies: int, verify: Verify, version: str, created_at: str, progress: Progress
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Copy the database into `work`, which must have room for `copies`, and verify it; return the manifest and the secrets."""
    with read_only(folder / DATABASE) as source:
        # While this transaction is open, every step reads the same snapshot.
        pages, page_bytes, schema_version = (
            int(source.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("page_count", "page_size", "user_version")
        )
        # After the snapshot has begun: its master secret is in the folder even if a server rotates the secrets now.
        secrets = {name: (folder / name).read_bytes() for name in _SECRETS if (folder / name).exists()}
        master = fitting_master(source, folder)
        if master is None:
            wrong = "is not the key of the database" if MASTER in secrets else "is missing"
            raise StartError(f"{folder / MASTER} {wrong}; without it no backup can be restored. The next start says what to do")
        secrets[MASTER] = master
        needed, free = copies * pages * page_bytes + _SLACK_BYTES, shutil.disk_usage(work).free
        if free < needed:
            raise StartError(f"a backup needs {needed >> 20} MiB in {work.parent}, where {free >> 20} MiB are free")
        copy = work / DATABASE
        copy.touch(mode=0o600)
        with contextlib.closing(sqlite3.connect(copy)) as target:
            source.backup(
                target,
                pages=_STEP_PAGES,
                sleep=0,
                progress=lambda _, remaining, total: progress((total - remaining) * page_bytes, total * page_bytes),
            )
            # Without a WAL, the copy is a single file.
            target.execute("PRAGMA journal_mode = DELETE")
        installation = installation_id(source)
    _verify(copy, verify)
    digests = {DATABASE: _file_digest(copy), **{name: hashlib.sha256(data).hexdigest() for name, data in secrets.items()}}
    manifest = {
        "format": _FORMAT,
        "version": version,
        "schema_version": schema_version,
        "installation": installation,
        "created_at": created_at,
        "sha256": digests,
    }
    return manifest, secrets


def _verify(path: Path, verify: Verify) -> None:
    with contextlib.closing(sqlite3.connect(path)) as conn:
        conn.row_factory = sqlite3.Row
        findings = verify(conn)
    if findings:
        more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
        raise StartError(f"the database is not sound: {findings[0]}{more}; 'svc check' shows all")


def _take_database(file: BufferedReader, folder: Path, beside: Path | None) -> dict[str, Any]:
    """Write a database file into `folder`, and the secrets that are in `beside`."""
    path = folder / DATABASE
    _write(path, file)
    with contextlib.closing(sqlite3.connect(path)) as conn:
        application_id, version = (conn.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
        if application_id != APPLICATION_ID:
            raise StartError("the file is not a database of this service")
        conn.execute("PRAGMA journal_mode = DELETE")
        master = fitting_master(conn, beside) if beside and version >= FIRST_VERSION else None  # perhaps from before a rotation
    for name in _SECRETS:
        if beside is not None and (beside / name).exists():
            (folder / name).parent.mkdir(mode=0o700, exist_ok=True)
            write_private(folder / name, (beside / name).read_bytes())
    if master is not None:
        write_private(folder / MASTER, master)
    return {"schema_version": version, "with_secrets": (folder / MASTER).exists()}


# --- the archive


def _write_archive(file: BinaryIO, manifest: dict[str, Any], secrets: dict[str, bytes], copy: Path) -> None:
    with tarfile.open(fileobj=file, mode="w|", format=tarfile.PAX_FORMAT) as archive:
        for name, data in {MANIFEST: orjson.dumps(manifest, option=orjson.OPT_INDENT_2), **secrets}.items():
            _add(archive, name, len(data), io.BytesIO(data))
        with copy.open("rb") as source:
            _add(archive, DATABASE, copy.stat().st_size, source)


def _add(archive: tarfile.TarFile, name: str, size_bytes: int, source: BinaryIO) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size_bytes, 0o600
    archive.addfile(member, source)


def _extract(archive: BinaryIO, folder: Path) -> dict[str, Any]:
    """Write the members, which must have known names, into `folder`, and check their digests; return the manifest."""
    with tarfile.open(fileobj=archive, mode="r|") as tar:
        members = iter(tar)
        manifest = _manifest(tar, next(members, None))
        for member in members:
            source = tar.extractfile(member) if member.isreg() and member.name in manifest["sha256"] else None
            if source is None:
                raise StartError("the archive is not a backup of this service, or was changed")
            path = folder / member.name
            path.parent.mkdir(mode=0o700, exist_ok=True)
            _write(path, source)
    for name, digest in manifest["sha256"].items():
        if not (folder / name).exists() or _file_digest(folder / name) != digest:
            raise StartError(f"the archive is damaged: {name} is missing or was changed")
    return manifest


def _manifest(tar: tarfile.TarFile, member: tarfile.TarInfo | None) -> dict[str, Any]:
    is_manifest = member is not None and member.name == MANIFEST and member.size <= _MANIFEST_BYTES
    source = tar.extractfile(member) if member and is_manifest else None
    try:
        manifest = orjson.loads(source.read()) if source else {}
        digests, version = manifest["sha256"], manifest["schema_version"]
        known = {*_REQUIRED} <= {*digests} <= {DATABASE, *_SECRETS} and type(digests) is dict
        if known and manifest["format"] == _FORMAT and type(version) is int:
            return dict(manifest)
    except (orjson.JSONDecodeError, KeyError, TypeError):
        pass  # it is not one of ours
    raise StartError("the archive is not a backup of this service")


@contextlib.contextmanager
def _workplace(folder: Path, prefix: str) -> Iterator[Path]:
    """Make a locked folder in `folder` for the block, and remove those that a killed process has left."""
    with _locked(folder):  # so that no other backup removes the new folder before it is locked
        for left in folder.glob(f"{prefix}*"):
            with contextlib.suppress(BlockingIOError), _locked(left, fcntl.LOCK_NB):
                shutil.rmtree(left)
        stack = contextlib.ExitStack()
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=prefix, dir=folder)))
        stack.enter_context(_locked(work))
    with stack:
        yield work


@contextlib.contextmanager
def _locked(folder: Path, how: int = 0) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | how)
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _one_line(what: str, path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else " ".join(str(error).split())
        raise StartError(f"cannot {what} {path}: {reason}") from error
    except tarfile.TarError as error:
        raise StartError(f"the archive is damaged: {' '.join(str(error).split())}") from error


def _write(path: Path, source: IO[bytes]) -> None:
    with _private(path) as file:
        shutil.copyfileobj(source, file, _CHUNK_BYTES)
        file.flush()
        os.fsync(file.fileno())


def _private(path: Path) -> BinaryIO:
    """Open a new file that only its owner can read."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
