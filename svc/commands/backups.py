"""`svc backup` and `svc restore`."""

import argparse
import contextlib
import os
import re
import sys
import time
from io import BufferedReader
from pathlib import Path
from typing import Any

from svc import backup
from svc.commands.check import findings, sizes
from svc.config import Config
from svc.errors import StartError
from svc.ids import timestamp
from svc.inference.providers import count_sealed
from svc.schema import read_only
from svc.secrets import DATABASE, give_to_owner, installation_id
from svc.version import VERSION


def add_parsers(commands: Any) -> None:
    copy = commands.add_parser("backup", help="write a backup, also while a server uses the data folder")
    copy.add_argument("target", metavar="FILE", help="a new file, a folder to put one in, or - for standard output")
    copy.add_argument("--keep", type=int, metavar="N", help="in a folder: remove all but the newest N backups")
    copy.set_defaults(run=_backup)
    back = commands.add_parser("restore", help="restore a backup into the data folder, which must be new or empty")
    back.add_argument("archive", metavar="FILE", help="a backup, a database file, or - for standard input")
    back.set_defaults(run=_restore)


def _backup(config: Config, options: argparse.Namespace) -> int:
    began_at = time.time()
    now = timestamp(began_at)
    to_stdout, target = options.target == "-", Path(options.target)
    if options.keep is not None and (options.keep < 1 or to_stdout or not target.is_dir()):
        raise StartError("--keep needs an integer from 1, and a folder")
    if not to_stdout and not target.is_dir() and target.exists():
        raise StartError(f"{target} exists; name a new file")
    with read_only(config.data_dir / DATABASE) as conn:
        series = f"svc-{installation_id(conn)}-"  # several services may share a folder of backups
    if to_stdout:
        backup.stream(config.data_dir, sys.stdout.buffer, findings, VERSION, now, _show_progress)
    else:
        target = target / f"{series}{re.sub('[^0-9TZ]', '', now)}.tar" if target.is_dir() else target
        manifest = backup.make(config.data_dir, target, findings, VERSION, now, _show_progress)
        print(f"{target}: {target.stat().st_size} bytes, version {manifest['version']}, verified")
    with contextlib.suppress(OSError):  # the backup is complete; /metrics shows the time of an older one
        backup.note_made(config.data_dir, began_at)
        give_to_owner(config.data_dir)
    for path in backup.drop_older(target.parent, f"{series}*.tar", options.keep) if options.keep else ():
        print(f"{path}: removed")
    return 0


def _show_progress(done_bytes: int, all_bytes: int) -> None:
    if sys.stderr.isatty():
        end = "\n" if done_bytes == all_bytes else ""
        print(f"\r{done_bytes * 100 // max(all_bytes, 1)} % of {all_bytes} bytes", end=end, file=sys.stderr, flush=True)


def _restore(config: Config, options: argparse.Namespace) -> int:
    try:
        with _opened(options.archive) as file:
            beside = None if options.archive == "-" else Path(options.archive).parent
            manifest = backup.restore(file, config.data_dir, findings, beside)
    except OSError as error:
        raise StartError(f"cannot read {options.archive}: {error.strerror}") from None
    with read_only(config.data_dir / DATABASE) as conn:
        sized, sealed, installation = sizes(conn), count_sealed(conn), installation_id(conn)
    if "created_at" in manifest:
        print(f"{config.data_dir}: {sized} as of {manifest['created_at']} (version {manifest['version']}), verified")
        return 0
    print(f"{config.data_dir}: {sized} out of a database of schema {manifest['schema_version']}, verified")
    if not manifest["with_secrets"]:
        todo = f", or set SVC_NEW_SECRETS={installation} to delete {sealed} provider keys that it encrypts" if sealed else ""
        print(f"there was no master.key beside it: copy the old one into the folder{todo}. A new one ends all sessions")
    return 0


def _opened(archive: str) -> BufferedReader:
    if archive == "-":
        return os.fdopen(sys.stdin.fileno(), "rb", closefd=False)
    path = Path(archive)
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size:
        raise StartError(f"{log} holds a part of this database, which is in use or was not closed; use 'svc backup'")
    return path.open("rb")
