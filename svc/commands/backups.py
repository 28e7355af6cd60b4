"""`svc backup`: the data folder in one tar archive with digests, also while a server uses it; `svc restore`.

backup: the secrets -> SQLite's online backup of one snapshot, in steps -> verify -> digests -> rename the archive
restore: the manifest -> check each member's digest -> verify the database -> .svc-restored -> the data folder's names;
or a plain database file, as a replica or an upgrade leaves it, with the secrets that are beside it
"""

import argparse
import contextlib
import fcntl
import hashlib
import io
import os
import re
import shutil
import sqlite3
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, BinaryIO

import orjson

from svc import audit, secrets
from svc.commands.check import findings, sizes
from svc.commands.database import argument, command
from svc.config import Config
from svc.errors import StartError, or_start_error
from svc.ids import timestamp
from svc.inference import sealed_keys
from svc.schema import APPLICATION_ID, FIRST_VERSION, as_newest, connect, newest_schema, newest_version, read_only
from svc.secrets import DATABASE, MASTER
from svc.version import VERSION

_MANIFEST = "manifest.json"
_FORMAT = 1
# Clients and rows need them: the master secret (sessions, encrypted provider keys) and the certificates.
_SECRETS = (MASTER, "tls/ca.pem", "tls/ca-key.pem", "tls/cert.pem", "tls/key.pem")
_PREFIX = ".svc-backup-"  # of the folder in which a backup is made
# A step copies 1 MiB and reports progress. It reads one snapshot of the WAL, so neither it nor the writer waits.
_STEP_PAGES = 256
_SLACK_BYTES = 1024 * 1024  # for the secrets and the file system
_SQLITE = b"SQLite format 3\0"
_NO_CONTENT = {"lock", "lost+found", secrets.RESTORING}
_CHUNK_BYTES = 1024 * 1024
_MANIFEST_BYTES = 64 * 1024


@command(
    "backup",
    "write a backup, also while a server uses the data folder",
    argument("target", metavar="FILE", help="a new file, a folder to put one in, or - for standard output"),
    argument("--progress", action="store_true", help="print the progress, also if standard error is no terminal"),
    argument("--keep", type=int, metavar="N", help="in a folder: remove all but the newest N backups"),
)
def _backup(config: Config, options: argparse.Namespace) -> None:
    began_at = time.time()
    folder, now = config.data_dir, timestamp(began_at)
    to_stdout, target = options.target == "-", Path(options.target)
    shown = options.progress or sys.stderr.isatty()
    if options.keep is not None and (options.keep < 1 or to_stdout or not target.is_dir()):
        raise StartError("--keep needs an integer from 1, and a folder")
    if not to_stdout and not target.is_dir() and target.exists():
        raise StartError(f"{target} exists; name a new file")
    with read_only(folder / DATABASE, any_version=True) as conn:
        series = f"svc-{secrets.installation_id(conn)}-"  # several services may share a folder of backups
    if to_stdout:
        with or_start_error("back up to -"), tempfile.TemporaryDirectory(prefix=_PREFIX[1:]) as work:  # in TMPDIR
            _write_archive(folder, Path(work), sys.stdout.buffer, now, copies=1, shown=shown)
            sys.stdout.buffer.flush()
    else:
        target = target / f"{series}{re.sub('[^0-9TZ]', '', now)}.tar" if target.is_dir() else target
        with or_start_error(f"back up to {target}"), workplace(target.parent) as place:
            with secrets.private_file(place / "archive") as file:
                _write_archive(folder, place, file, now, copies=2, shown=shown)
                size_bytes = file.tell()
            (place / "archive").rename(target)
            secrets.sync_folder(target.parent)
        print(f"{target}: {size_bytes} bytes, version {VERSION}, verified")
    with contextlib.suppress(OSError):  # the backup is complete; /metrics shows the time of an older one
        secrets.note_backup(folder, began_at)
        secrets.give_to_owner(folder)
    for path in sorted(target.parent.glob(f"{series}*.tar"))[: -options.keep] if options.keep else ():
        with contextlib.suppress(FileNotFoundError):  # another backup that ends now has removed it
            path.unlink()
            print(f"{path}: removed")


def room_bytes(database_bytes: int, copies: int = 2) -> int:
    """Return how much must be free in the folder of a backup: it holds a copy of the database beside the archive."""
    return copies * database_bytes + _SLACK_BYTES


def _write_archive(folder: Path, work: Path, file: BinaryIO, created_at: str, *, copies: int, shown: bool) -> None:
    """Copy the database into `work`, which needs room for `copies`, and write the archive to `file`."""
    copy = work / DATABASE
    with read_only(folder / DATABASE, any_version=True) as source:
        # While this transaction is open, every step reads the same snapshot.
        pages, page_bytes, schema_version = (
            int(source.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("page_count", "page_size", "user_version")
        )
        # After the snapshot has begun: its master secret is in the folder even if a server rotates the secrets now.
        kept = _secrets_of(source, folder)
        if MASTER not in kept or not secrets.fits(source, kept[MASTER]):
            wrong = "is not the key of the database" if MASTER in kept else "is missing"
            advice = "without it no backup can be restored. The next start says what to do"
            raise StartError(f"{folder / MASTER} {wrong}; {advice}")
        copies += schema_version < newest_version(newest_schema()[1])  # one is migrated, to be verified
        needed, free = room_bytes(pages * page_bytes, copies), shutil.disk_usage(work).free
        if free < needed:
            raise StartError(f"a backup needs {needed >> 20} MiB in {work.parent}, where {free >> 20} MiB are free")
        copy.touch(mode=0o600)
        with contextlib.closing(sqlite3.connect(copy)) as target:
            progress = partial(_show_progress, page_bytes) if shown else None
            source.backup(target, pages=_STEP_PAGES, sleep=0, progress=progress)
            # Without a WAL, the copy is a single file.
            target.execute("PRAGMA journal_mode = DELETE")
        installation = secrets.installation_id(source)
    _verify(copy)
    manifest = {
        "format": _FORMAT,
        "version": VERSION,
        "schema_version": schema_version,
        "installation": installation,
        "created_at": created_at,
        "sha256": {DATABASE: _digest(copy), **{name: hashlib.sha256(data).hexdigest() for name, data in kept.items()}},
    }
    texts = {_MANIFEST: orjson.dumps(manifest, option=orjson.OPT_INDENT_2), **kept}
    with tarfile.open(fileobj=file, mode="w|", format=tarfile.PAX_FORMAT) as archive, copy.open("rb") as database:
        members: dict[str, BinaryIO] = {name: io.BytesIO(data) for name, data in texts.items()}
        for name, content in {**members, DATABASE: database}.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = content.seek(0, io.SEEK_END), 0o600
            content.seek(0)
            archive.addfile(member, content)


def _secrets_of(conn: sqlite3.Connection, folder: Path) -> dict[str, bytes]:
    """Return the secrets in `folder` by name: as MASTER that of the database, perhaps from before a rotation."""
    found = {name: (folder / name).read_bytes() for name in _SECRETS if (folder / name).exists()}
    master = secrets.fitting_master(conn, folder)
    return found if master is None else {**found, MASTER: master}


def _show_progress(page_bytes: int, _: int, remaining_pages: int, all_pages: int) -> None:
    percent, end = (all_pages - remaining_pages) * 100 // max(all_pages, 1), "" if remaining_pages else "\n"
    print(f"\r{percent} % of {all_pages * page_bytes} bytes", end=end, file=sys.stderr, flush=True)


def _verify(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as conn:
        conn.row_factory = sqlite3.Row
        with as_newest(conn, path.parent) as newest:
            found = findings(newest)
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise StartError(f"the database is not sound: {found[0]}{more}; 'svc check' shows all")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def workplace(folder: Path) -> Iterator[Path]:
    """Make a locked folder in `folder` for the block, and remove those that a killed process has left."""
    with secrets.locked(folder):  # so that no other backup removes the new folder before it is locked
        for left in folder.glob(f"{_PREFIX}*"):
            # A backup that ends now removes its own.
            gone = contextlib.suppress(BlockingIOError, FileNotFoundError)
            with gone, secrets.locked(left, fcntl.LOCK_EX | fcntl.LOCK_NB):
                shutil.rmtree(left)
        stack = contextlib.ExitStack()
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=_PREFIX, dir=folder)))
        stack.enter_context(secrets.locked(work))
    with stack:
        yield work


# --- restore


@command(
    "restore",
    "restore a backup into the data folder, which must be new or empty",
    argument("archive", metavar="FILE", help="a backup, a database file, or - for standard input"),
)
def _restore(config: Config, options: argparse.Namespace) -> None:
    with or_start_error(f"read {options.archive}"), _opened(options.archive) as file:
        manifest = _restore_from(
            file, config.data_dir, None if options.archive == "-" else Path(options.archive).parent
        )
    with read_only(config.data_dir / DATABASE, any_version=True) as conn:
        sized, sealed, installation = sizes(conn), sealed_keys.count(conn), secrets.installation_id(conn)
    origin = f"out of a database of schema {manifest['schema_version']}"
    if "created_at" in manifest:
        origin = f"as of {manifest['created_at']} (version {manifest['version']})"
    print(f"{config.data_dir}: {sized} {origin}, verified")
    newest = newest_version(newest_schema()[1])
    if manifest["schema_version"] != newest:
        print(f"the next start will migrate the database from schema {manifest['schema_version']} to {newest}")
    if not manifest.get("with_secrets", True):
        deletion = f", or set SVC_NEW_SECRETS={installation} to delete {sealed} provider keys that it encrypts"
        todo = f"copy the old one into the folder{deletion if sealed else ''}"
        print(f"there was no master.key beside it: {todo}. A new one ends all sessions")


def _opened(archive: str) -> BufferedReader:
    if archive == "-":
        return os.fdopen(sys.stdin.fileno(), "rb", closefd=False)
    path = Path(archive)
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size:
        raise StartError(f"{log} holds a part of this database, which is in use or was not closed; use 'svc backup'")
    return path.open("rb")


def _restore_from(archive: BufferedReader, folder: Path, beside: Path | None) -> dict[str, Any]:
    """Restore a backup, or a database file with the secrets in the folder `beside`; return the manifest.

    `folder` must be new or empty; it may be a mount point with `lost+found`, or a link to a folder. All files are
    verified in a subfolder first. After a kill, the next restore or start completes or removes it.
    """
    folder = folder.resolve()
    with or_start_error(f"restore into {folder}"), _to_fill(folder) as work:
        plain = archive.peek(len(_SQLITE)).startswith(_SQLITE)
        try:
            manifest = _take_database(archive, work, beside) if plain else _extract(archive, work)
        except tarfile.TarError as error:
            raise StartError(f"the archive is damaged: {' '.join(str(error).split())}") from error
        newest = newest_version(newest_schema()[1])
        version = manifest.get("version") or f"schema {manifest['schema_version']}"
        if manifest["schema_version"] > newest:
            raise StartError(f"the backup is of a newer version ({version}); install that version first")
        if manifest["schema_version"] < FIRST_VERSION:
            text = f"the backup was made by a version before 1.0.0 ({version}), whose databases cannot be migrated"
            raise StartError(text)
        _verify(work / DATABASE)
        if manifest["schema_version"] == newest:  # an older one has perhaps no audit log
            with contextlib.closing(connect(work / DATABASE)) as tx:
                audit.add(tx, time.time(), audit.OPERATOR, "restore", None, {"created_at": manifest.get("created_at")})
    return manifest


@contextlib.contextmanager
def _to_fill(folder: Path) -> Iterator[Path]:
    """Make and lock the data folder. If the block succeeds, the files of the yielded subfolder become its content."""
    is_new = not folder.exists()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    work = folder / secrets.RESTORING
    lock = secrets.take_lock(folder)
    try:
        if secrets.complete_restore(folder):
            raise StartError(f"an interrupted restore into {folder} has been completed; nothing is left to do")
        if {path.name for path in folder.iterdir()} - _NO_CONTENT:
            text = "a backup is restored into a new or empty folder (set SVC_DATA_DIR)"
            raise StartError(f"{folder} is not empty; {text}")
        shutil.rmtree(work, ignore_errors=True)  # a restore that was killed left it
        work.mkdir(mode=0o700)
        yield work
        owner = folder.stat()
        for path in (work, *work.rglob("*")) if os.geteuid() == 0 else ():
            os.chown(path, owner.st_uid, owner.st_gid)
        secrets.sync_folder(work)
        work.rename(folder / secrets.RESTORED)
        secrets.sync_folder(folder)
        secrets.complete_restore(folder)
        is_new = False
    finally:
        shutil.rmtree(work, ignore_errors=True)
        if is_new:
            shutil.rmtree(folder)
        secrets.give_to_owner(folder)
        lock.close()


def _take_database(file: BufferedReader, folder: Path, beside: Path | None) -> dict[str, Any]:
    """Write a database file into `folder`, and the secrets that are in `beside`."""
    path = folder / DATABASE
    _write(path, file)
    with contextlib.closing(sqlite3.connect(path)) as conn:
        if conn.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
            raise StartError("the file is not a database of this service")
        version = conn.execute("PRAGMA user_version").fetchone()[0]
        conn.execute("PRAGMA journal_mode = DELETE")
        found = _secrets_of(conn, beside) if beside and version >= FIRST_VERSION else {}
    for name, data in found.items():
        (folder / name).parent.mkdir(mode=0o700, exist_ok=True)
        secrets.write_private(folder / name, data)
    return {"schema_version": version, "with_secrets": MASTER in found}


def _extract(archive: BinaryIO, folder: Path) -> dict[str, Any]:
    """Write the members into `folder`, and check their names and digests; return the manifest."""
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
    for name, expected in manifest["sha256"].items():
        if not (folder / name).exists() or _digest(folder / name) != expected:
            raise StartError(f"the archive is damaged: {name} is missing or was changed")
    return manifest


def _manifest(tar: tarfile.TarFile, member: tarfile.TarInfo | None) -> dict[str, Any]:
    is_manifest = member is not None and member.name == _MANIFEST and member.size <= _MANIFEST_BYTES
    source = tar.extractfile(member) if member and is_manifest else None
    try:
        manifest = orjson.loads(source.read()) if source else {}
        digests, version = manifest["sha256"], manifest["schema_version"]
        known = {DATABASE, MASTER} <= {*digests} <= {DATABASE, *_SECRETS} and type(digests) is dict
        if known and manifest["format"] == _FORMAT and type(version) is int:
            return dict(manifest)
    except (orjson.JSONDecodeError, KeyError, TypeError):
        pass  # it is not one of ours
    raise StartError("the archive is not a backup of this service")


def _write(path: Path, source: IO[bytes]) -> None:
    with secrets.private_file(path) as file:
        shutil.copyfileobj(source, file, _CHUNK_BYTES)
