"""`svc restore`: a new data folder from a backup.

the manifest -> check each member's digest -> verify the database -> .svc-restored -> the data folder's names
or a plain database file, as a replica or an upgrade leaves it, with the secrets that are beside it
"""

import argparse
import contextlib
import os
import shutil
import sqlite3
import sys
import tarfile
import time
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, BinaryIO

import orjson

from svc import audit, secrets
from svc.commands.backups import FORMAT, MANIFEST, SECRETS, digest, one_line, verify
from svc.commands.check import sizes
from svc.config import Config
from svc.errors import StartError
from svc.inference.providers import count_sealed
from svc.schema import APPLICATION_ID, FIRST_VERSION, connect, newest_schema, newest_version, read_only
from svc.secrets import DATABASE, MASTER

_SQLITE = b"SQLite format 3\0"
_NO_CONTENT = {"lock", "lost+found", secrets.RESTORING}
_CHUNK_BYTES = 1024 * 1024
_MANIFEST_BYTES = 64 * 1024


def add_parsers(commands: Any) -> None:
    back = commands.add_parser("restore", help="restore a backup into the data folder, which must be new or empty")
    back.add_argument("archive", metavar="FILE", help="a backup, a database file, or - for standard input")
    back.set_defaults(run=_restore)


def _restore(config: Config, options: argparse.Namespace) -> None:
    try:
        with _opened(options.archive) as file:
            beside = None if options.archive == "-" else Path(options.archive).parent
            manifest = restore(file, config.data_dir, beside)
    except OSError as error:
        raise StartError(f"cannot read {options.archive}: {error.strerror}") from None
    with read_only(config.data_dir / DATABASE) as conn:
        sized, sealed, installation = sizes(conn), count_sealed(conn), secrets.installation_id(conn)
    if "created_at" in manifest:
        print(f"{config.data_dir}: {sized} as of {manifest['created_at']} (version {manifest['version']}), verified")
        return
    print(f"{config.data_dir}: {sized} out of a database of schema {manifest['schema_version']}, verified")
    if not manifest["with_secrets"]:
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


def restore(archive: BufferedReader, folder: Path, beside: Path | None) -> dict[str, Any]:
    """Restore a backup, or a database file with the secrets in the folder `beside`; return the manifest.

    `folder` must be new or empty; it may be a mount point with `lost+found`, or a link to a folder. All files are
    verified in a subfolder first. After a kill, the next restore or start completes or removes it. Raises StartError
    with one line.
    """
    folder = folder.resolve()
    with one_line(f"restore into {folder}"), _to_fill(folder) as work:
        plain = archive.peek(len(_SQLITE)).startswith(_SQLITE)
        manifest = _take_database(archive, work, beside) if plain else _extract(archive, work)
        newest = newest_version(newest_schema()[1])
        version = manifest.get("version") or f"schema {manifest['schema_version']}"
        if manifest["schema_version"] > newest:
            raise StartError(f"the backup is of a newer version ({version}); install that version first")
        if manifest["schema_version"] < FIRST_VERSION:
            text = f"the backup was made by a version before 1.0.0 ({version}), whose databases cannot be migrated"
            raise StartError(text)
        verify(work / DATABASE)
        if manifest["schema_version"] == newest:  # an older one has perhaps no audit log
            with contextlib.closing(connect(work / DATABASE)) as tx:
                audit.add(tx, time.time(), audit.OPERATOR, "restore", None, {"created_at": manifest.get("created_at")})
    return manifest


@contextlib.contextmanager
def _to_fill(folder: Path) -> Iterator[Path]:
    """Make and lock the data folder, and give a subfolder whose files become its content if the block succeeds."""
    is_new = not folder.exists()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = secrets.take_lock(folder)
    work = folder / secrets.RESTORING
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
        os.close(lock)


def _take_database(file: BufferedReader, folder: Path, beside: Path | None) -> dict[str, Any]:
    """Write a database file into `folder`, and the secrets that are in `beside`."""
    path = folder / DATABASE
    _write(path, file)
    with contextlib.closing(sqlite3.connect(path)) as conn:
        if conn.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
            raise StartError("the file is not a database of this service")
        version = conn.execute("PRAGMA user_version").fetchone()[0]
        conn.execute("PRAGMA journal_mode = DELETE")
        master = None
        if beside and version >= FIRST_VERSION:
            master = secrets.fitting_master(conn, beside)  # perhaps from before a rotation
    for name in SECRETS:
        if beside is not None and (beside / name).exists():
            (folder / name).parent.mkdir(mode=0o700, exist_ok=True)
            secrets.write_private(folder / name, (beside / name).read_bytes())
    if master is not None:
        secrets.write_private(folder / MASTER, master)
    return {"schema_version": version, "with_secrets": (folder / MASTER).exists()}


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
    for name, expected in manifest["sha256"].items():
        if not (folder / name).exists() or digest(folder / name) != expected:
            raise StartError(f"the archive is damaged: {name} is missing or was changed")
    return manifest


def _manifest(tar: tarfile.TarFile, member: tarfile.TarInfo | None) -> dict[str, Any]:
    is_manifest = member is not None and member.name == MANIFEST and member.size <= _MANIFEST_BYTES
    source = tar.extractfile(member) if member and is_manifest else None
    try:
        manifest = orjson.loads(source.read()) if source else {}
        digests, version = manifest["sha256"], manifest["schema_version"]
        known = {DATABASE, MASTER} <= {*digests} <= {DATABASE, *SECRETS} and type(digests) is dict
        if known and manifest["format"] == FORMAT and type(version) is int:
            return dict(manifest)
    except (orjson.JSONDecodeError, KeyError, TypeError):
        pass  # it is not one of ours
    raise StartError("the archive is not a backup of this service")


def _write(path: Path, source: IO[bytes]) -> None:
    with secrets.private_file(path) as file:
        shutil.copyfileobj(source, file, _CHUNK_BYTES)
