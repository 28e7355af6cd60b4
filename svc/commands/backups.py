"""`svc backup`: the data folder in one tar archive with digests, also while a server uses it.

the secrets -> SQLite's online backup of one snapshot, in steps -> verify -> digests -> rename the archive
"""

import argparse
import contextlib
import fcntl
import hashlib
import io
import re
import shutil
import sqlite3
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from svc import secrets
from svc.commands.check import findings
from svc.config import Config
from svc.errors import StartError
from svc.ids import timestamp
from svc.schema import read_only
from svc.secrets import DATABASE, MASTER
from svc.version import VERSION

MANIFEST = "manifest.json"
FORMAT = 1
# Clients and rows need them: the master secret (sessions, encrypted provider keys) and the certificates.
SECRETS = (MASTER, "tls/ca.pem", "tls/ca-key.pem", "tls/cert.pem", "tls/key.pem")
_PREFIX = ".svc-backup-"  # of the folder in which a backup is made
# A step copies 1 MiB and reports progress. It reads one snapshot of the WAL, so neither it nor the writer waits.
_STEP_PAGES = 256
_SLACK_BYTES = 1024 * 1024  # for the secrets and the file system


def add_parsers(commands: Any) -> None:
    copy = commands.add_parser("backup", help="write a backup, also while a server uses the data folder")
    copy.add_argument("target", metavar="FILE", help="a new file, a folder to put one in, or - for standard output")
    copy.add_argument("--keep", type=int, metavar="N", help="in a folder: remove all but the newest N backups")
    copy.set_defaults(run=_backup)


def _backup(config: Config, options: argparse.Namespace) -> None:
    began_at = time.time()
    folder, now = config.data_dir, timestamp(began_at)
    to_stdout, target = options.target == "-", Path(options.target)
    if options.keep is not None and (options.keep < 1 or to_stdout or not target.is_dir()):
        raise StartError("--keep needs an integer from 1, and a folder")
    if not to_stdout and not target.is_dir() and target.exists():
        raise StartError(f"{target} exists; name a new file")
    with read_only(folder / DATABASE) as conn:
        series = f"svc-{secrets.installation_id(conn)}-"  # several services may share a folder of backups
    if to_stdout:
        # It needs the database's size in the temporary folder (TMPDIR).
        with one_line("back up to -"), tempfile.TemporaryDirectory(prefix=_PREFIX[1:]) as work:
            _write_archive(folder, Path(work), sys.stdout.buffer, now, copies=1)
            sys.stdout.buffer.flush()
    else:
        target = target / f"{series}{re.sub('[^0-9TZ]', '', now)}.tar" if target.is_dir() else target
        _make(folder, target, now)
        print(f"{target}: {target.stat().st_size} bytes, version {VERSION}, verified")
    with contextlib.suppress(OSError):  # the backup is complete; /metrics shows the time of an older one
        secrets.note_backup(folder, began_at)
        secrets.give_to_owner(folder)
    for path in sorted(target.parent.glob(f"{series}*.tar"))[: -options.keep] if options.keep else ():
        path.unlink()
        print(f"{path}: removed")


def _make(folder: Path, target: Path, created_at: str) -> None:
    """Write a backup to the new file `target` (0600), atomically. Its folder needs twice the database's size."""
    with one_line(f"back up to {target}"), _workplace(target.parent) as work:
        with secrets.private_file(work / "archive") as file:
            _write_archive(folder, work, file, created_at, copies=2)
        (work / "archive").rename(target)
        secrets.sync_folder(target.parent)


def _write_archive(folder: Path, work: Path, file: BinaryIO, created_at: str, copies: int) -> None:
    """Copy the database into `work`, with room for `copies`, and verify it; write it to `file` with the secrets."""
    copy = work / DATABASE
    with read_only(folder / DATABASE) as source:
        # While this transaction is open, every step reads the same snapshot.
        pages, page_bytes, schema_version = (
            int(source.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("page_count", "page_size", "user_version")
        )
        # After the snapshot has begun: its master secret is in the folder even if a server rotates the secrets now.
        kept = {name: (folder / name).read_bytes() for name in SECRETS if (folder / name).exists()}
        master = secrets.fitting_master(source, folder)
        if master is None:
            wrong = "is not the key of the database" if MASTER in kept else "is missing"
            advice = "without it no backup can be restored. The next start says what to do"
            raise StartError(f"{folder / MASTER} {wrong}; {advice}")
        kept[MASTER] = master
        needed, free = copies * pages * page_bytes + _SLACK_BYTES, shutil.disk_usage(work).free
        if free < needed:
            raise StartError(f"a backup needs {needed >> 20} MiB in {work.parent}, where {free >> 20} MiB are free")
        copy.touch(mode=0o600)
        with contextlib.closing(sqlite3.connect(copy)) as target:
            source.backup(target, pages=_STEP_PAGES, sleep=0, progress=partial(_show_progress, page_bytes))
            # Without a WAL, the copy is a single file.
            target.execute("PRAGMA journal_mode = DELETE")
        installation = secrets.installation_id(source)
    verify(copy)
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "schema_version": schema_version,
        "installation": installation,
        "created_at": created_at,
        "sha256": {DATABASE: digest(copy), **{name: hashlib.sha256(data).hexdigest() for name, data in kept.items()}},
    }
    texts = {MANIFEST: orjson.dumps(manifest, option=orjson.OPT_INDENT_2), **kept}
    with tarfile.open(fileobj=file, mode="w|", format=tarfile.PAX_FORMAT) as archive, copy.open("rb") as database:
        members: dict[str, BinaryIO] = {name: io.BytesIO(data) for name, data in texts.items()}
        for name, content in {**members, DATABASE: database}.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = content.seek(0, io.SEEK_END), 0o600
            content.seek(0)
            archive.addfile(member, content)


def _show_progress(page_bytes: int, _: int, remaining_pages: int, all_pages: int) -> None:
    if sys.stderr.isatty():
        percent, end = (all_pages - remaining_pages) * 100 // max(all_pages, 1), "" if remaining_pages else "\n"
        print(f"\r{percent} % of {all_pages * page_bytes} bytes", end=end, file=sys.stderr, flush=True)


def verify(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as conn:
        conn.row_factory = sqlite3.Row
        found = findings(conn)
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise StartError(f"the database is not sound: {found[0]}{more}; 'svc check' shows all")


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def _workplace(folder: Path) -> Iterator[Path]:
    """Make a locked folder in `folder` for the block, and remove those that a killed process has left."""
    with secrets.locked(folder):  # so that no other backup removes the new folder before it is locked
        for left in folder.glob(f"{_PREFIX}*"):
            with contextlib.suppress(BlockingIOError), secrets.locked(left, fcntl.LOCK_EX | fcntl.LOCK_NB):
                shutil.rmtree(left)
        stack = contextlib.ExitStack()
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=_PREFIX, dir=folder)))
        stack.enter_context(secrets.locked(work))
    with stack:
        yield work


@contextlib.contextmanager
def one_line(what: str) -> Iterator[None]:
    """Raise a fault of the file system, the database or the archive as StartError: "cannot" do `what`, and why."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else " ".join(str(error).split())
        raise StartError(f"cannot {what}: {reason}") from error
    except tarfile.TarError as error:
        raise StartError(f"the archive is damaged: {' '.join(str(error).split())}") from error
