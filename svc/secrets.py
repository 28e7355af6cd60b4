"""The data folder, its lock and the master secret.

start: open_folder() -> check_master() (svc/server/rotation.py) in the first transaction -> keep_master()
rotation: master.key.new -> set_master() in the transaction that encrypts again -> master.key.old, master.key
"""

import contextlib
import fcntl
import hmac
import os
import sqlite3
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, cast

from svc.errors import StartError, or_start_error

MASTER_BYTES = 32
DATABASE = "service.db"
MASTER, NEW_MASTER, OLD_MASTER = "master.key", "master.key.new", "master.key.old"
RESTORING, RESTORED = ".svc-restoring", ".svc-restored"  # its subfolders while a restore runs, and when it is verified
_BACKUP_NOTE = "last-backup"  # its modification time is that of the last backup
_MADE_BY_COMMANDS = ("lock", _BACKUP_NOTE, "master.key*", "service.db*")
_OURS = ("lock", "master.key*", "status", _BACKUP_NOTE, "service.db*", "tls", "tls/*")


@dataclass
class DataFolder:
    """The locked data folder. `derive` makes a key for each purpose from its secret `master`.

    MASTER lacks it if it is new beside an existing database, or if a rotation has left it in NEW_MASTER.
    """

    path: Path
    master: bytes = field(repr=False)
    lock: contextlib.ExitStack = field(default_factory=contextlib.ExitStack, repr=False)

    def keep_master(self) -> None:
        """Write the master secret to its file, and the one that was there to OLD_MASTER. Raises StartError."""
        with or_start_error(f"use the data folder {self.path}"):
            kept = _read(self.path / MASTER)
            if kept and kept != self.master:
                write_private(self.path / OLD_MASTER, kept)
            if kept != self.master and _read(self.path / NEW_MASTER) == self.master:
                (self.path / NEW_MASTER).rename(self.path / MASTER)
                sync_folder(self.path)
            elif kept != self.master:
                write_private(self.path / MASTER, self.master)
            for left in self.path.glob(f"{NEW_MASTER}*"):  # by a rotation that has not reached the database
                left.unlink()

    def close(self) -> None:
        self.lock.close()


def open_folder(path: Path) -> DataFolder:
    """Make (0700) and lock the data folder, and read or make its secret. A StartError has changed nothing."""
    with or_start_error(f"use the data folder {path}"):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        _close_to_others(path)
        with take_lock(path) as lock:
            complete_restore(path)
            if (path / RESTORING).exists():
                raise StartError(
                    f"a restore into {path} was interrupted: run 'svc restore' again, or delete {path / RESTORING}"
                )
            master = _read(path / MASTER)
            if master is not None and len(master) != MASTER_BYTES:
                damage = f"it has {len(master)} bytes, not {MASTER_BYTES}"
                raise StartError(f"{path / MASTER} is damaged: {damage}. Restore it from a backup")
            folder = DataFolder(path, master or os.urandom(MASTER_BYTES))
            if not (path / DATABASE).exists():
                folder.keep_master()  # a first start: nothing is encrypted yet
            folder.lock = lock.pop_all()
            return folder


def take_lock(folder: Path) -> contextlib.ExitStack:
    """Lock the data folder until the returned stack is closed. Raises StartError if it is locked, OSError."""
    lock = contextlib.ExitStack()
    try:
        lock.enter_context(locked(folder / "lock", fcntl.LOCK_EX | fcntl.LOCK_NB, os.O_RDWR | os.O_CREAT))
    except BlockingIOError:
        raise StartError(f"another server, or a restore, is using the data folder {folder}") from None
    return lock


def complete_restore(folder: Path) -> bool:
    """Move the files of a verified restore to their place; return False if there are none.

    A killed restore is completed by the next restore or start. Raises StartError, OSError.
    """
    restored = folder / RESTORED
    if not restored.exists():
        return False
    for name in ("tls", MASTER, DATABASE):  # the database last: with it, everything is there
        if (restored / name).exists():
            if (folder / name).exists():
                raise StartError(f"{folder / name} was made during a restore: delete it, or {restored}")
            (restored / name).rename(folder / name)
    sync_folder(folder)
    restored.rmdir()
    return True


def give_to_owner(folder: Path) -> None:
    """Give the files that a command of root has made to the folder's owner, the user of the service."""
    if os.geteuid() != 0 or not folder.is_dir():
        return
    owner = folder.stat()
    for path in (path for pattern in _MADE_BY_COMMANDS for path in folder.glob(pattern)):
        found = path.lstat()
        if found.st_uid == 0 != owner.st_uid and found.st_nlink == 1:
            os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


def installation_id(conn: sqlite3.Connection) -> str:
    """Return the id of the installation whose database this is: 8 hexadecimal digits."""
    return str(conn.execute("SELECT id FROM installation").fetchone()[0])


def key_check(conn: sqlite3.Connection) -> bytes | None:
    """Return what was derived from the master secret for "check", or None before the first start."""
    return cast(bytes | None, conn.execute("SELECT key_check FROM installation").fetchone()[0])


def set_master(tx: sqlite3.Connection, master: bytes, new_id: str | None = None) -> None:
    """Store that the database is used with this master secret from now on, perhaps under a new id."""
    tx.execute("UPDATE installation SET key_check = ?, id = ifnull(?, id)", (derive(master, "check"), new_id))


def fitting_master(conn: sqlite3.Connection, folder: Path) -> bytes | None:
    """Return the master secret in `folder` with which the database of `conn` was used, or None.

    It reads the files in the order in which a rotation renames them, so a rotation may be running.
    """
    for name in (NEW_MASTER, MASTER, OLD_MASTER):
        master = _read(folder / name)
        if master and fits(conn, master) and (name == MASTER or key_check(conn) is not None):
            return master
    return None


def fits(conn: sqlite3.Connection, master: bytes) -> bool:
    """Return whether the database was used with this master secret, or with none yet."""
    known = key_check(conn)
    return known is None or hmac.compare_digest(known, derive(master, "check"))


def is_locked(folder: Path) -> bool:
    try:
        with locked(folder / "lock", fcntl.LOCK_SH | fcntl.LOCK_NB):
            return False
    except (FileNotFoundError, BlockingIOError) as error:
        return isinstance(error, BlockingIOError)


@contextlib.contextmanager
def locked(path: Path, how: int = fcntl.LOCK_EX, flags: int = 0) -> Iterator[None]:
    """Lock a folder or a file for the block. Raises OSError, BlockingIOError for a lock that does not wait."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags, 0o600)
    try:
        fcntl.flock(descriptor, how)
        yield
    finally:
        os.close(descriptor)


def note_backup(folder: Path, began_at: float) -> None:
    """Store that a backup was made now, and delete a master secret from before it. Raises OSError."""
    (folder / _BACKUP_NOTE).touch(mode=0o600)
    old = folder / OLD_MASTER
    if old.exists() and old.stat().st_mtime < began_at:
        old.unlink()


def backup_made_at(folder: Path) -> float:
    """Return when `note_backup` was last called, in Unix seconds; 0 for never."""
    note = folder / _BACKUP_NOTE
    return note.stat().st_mtime if note.exists() else 0.0


def derive(master: bytes, purpose: str) -> bytes:
    """Return the 32-byte key for `purpose`: HKDF-SHA256 (RFC 5869) without a salt, one block long."""
    extracted = hmac.digest(bytes(32), master, "sha256")
    return hmac.digest(extracted, b"svc " + purpose.encode() + b"\x01", "sha256")


def write_private(path: Path, data: bytes) -> None:
    """Replace the file at `path` (0600) atomically, and sync it. Raises OSError."""
    with private_file(path) as file:
        file.write(data)


@contextlib.contextmanager
def private_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file for the block, which then replaces the one at `path` as `write_private` does."""
    fresh = path.with_name(path.name + ".new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, 0o600)
        yield file
        file.flush()
        os.fsync(descriptor)
    fresh.rename(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Sync the names in the folder to disk. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def _close_to_others(folder: Path) -> None:
    """Remove the permissions of other users from our files. The folder may have been made by hand."""
    ours = [path for pattern in _OURS for path in folder.glob(pattern) if not path.is_symlink()]
    for path in [*ours, folder]:
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & 0o077 and path.stat().st_uid == os.geteuid():
            path.chmod(mode & 0o700)
