"""The data folder's lock and master secret."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from svc.errors import StartError
from svc.secrets import (
    derive,
    open_folder,
    write_private,
)
from tests.support.cases import each


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def tree(folder: Path) -> dict[str, tuple[int, int]]:
    """What is in the folder, so that one can see whether any file was written."""
    return {str(path): (path.stat().st_ino, path.stat().st_mtime_ns) for path in sorted(folder.rglob("*"))}


# --- the folder


def test_first_start_creates_a_private_folder_and_secret(tmp_path: Path) -> None:
    folder = open_folder(tmp_path / "a" / "data")
    assert (mode(folder.path), mode(folder.path / "master.key"), mode(folder.path / "lock")) == (0o700, 0o600, 0o600)
    assert len(folder.master) == 32
    assert (folder.path / "master.key").read_bytes() == folder.master
    folder.close()


def test_secret_is_stable_and_differs_between_installations(tmp_path: Path) -> None:
    secrets = []
    for name in ("one", "one", "two"):
        folder = open_folder(tmp_path / name)
        secrets.append(folder.master)
        folder.close()
    assert secrets[0] == secrets[1] != secrets[2]


def test_repr_hides_the_secret(tmp_path: Path) -> None:
    folder = open_folder(tmp_path)
    assert repr(folder.master) not in repr(folder)
    assert folder.master.hex() not in repr(folder)
    folder.close()


def test_second_server_is_refused_until_the_first_ends(tmp_path: Path) -> None:
    first = open_folder(tmp_path)
    with pytest.raises(StartError, match="another server"):
        open_folder(tmp_path)
    first.close()
    first.close()
    open_folder(tmp_path).close()


def test_lock_ends_with_the_process(tmp_path: Path) -> None:
    code = "import sys, time; from svc.secrets import *; f = open_folder(Path(sys.argv[1])); print(1, flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code, tmp_path], stdout=subprocess.PIPE) as holder:
        assert holder.stdout and holder.stdout.readline()
        with pytest.raises(StartError):
            open_folder(tmp_path)
        holder.kill()
        holder.wait()
        open_folder(tmp_path).close()


def test_child_process_does_not_inherit_the_lock(tmp_path: Path) -> None:
    folder = open_folder(tmp_path)
    with subprocess.Popen(["sleep", "60"], close_fds=False) as child:
        folder.close()
        open_folder(tmp_path).close()
        child.kill()


@pytest.mark.parametrize("length", [0, 31, 33, 1000])
def test_damaged_secret_stops_the_start_and_changes_nothing(tmp_path: Path, length: int) -> None:
    open_folder(tmp_path).close()
    (tmp_path / "master.key").write_bytes(b"x" * length)
    before = tree(tmp_path)
    with pytest.raises(StartError, match="damaged"):
        open_folder(tmp_path)
    assert tree(tmp_path) == before


def test_secret_readable_by_others_becomes_private(tmp_path: Path) -> None:
    open_folder(tmp_path).close()
    (tmp_path / "master.key").chmod(0o644)
    open_folder(tmp_path).close()
    assert mode(tmp_path / "master.key") == 0o600


@each("folder", ["/proc/self/data", "/proc/self", "/dev/null", "/dev/null/data"])
def test_unusable_folder_stops_the_start(folder: str) -> None:
    with pytest.raises(StartError, match="cannot use the data folder"):
        open_folder(Path(folder))


def test_failed_start_releases_the_lock(tmp_path: Path) -> None:
    (tmp_path / "master.key").mkdir()
    with pytest.raises(StartError):
        open_folder(tmp_path)
    (tmp_path / "master.key").rmdir()
    open_folder(tmp_path).close()


def test_write_private_replaces_the_file_atomically(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_bytes(b"something longer")
    path.chmod(0o666)
    (tmp_path / "secret.new").write_bytes(b"left over from a crash, and longer than what is written now")
    (tmp_path / "secret.new").chmod(0o666)
    write_private(path, b"new")
    assert (path.read_bytes(), mode(path), sorted(tmp_path.iterdir())) == (b"new", 0o600, [path])


def test_write_private_syncs_file_and_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


# --- what others may read


def test_folder_readable_by_others_is_closed(tmp_path: Path) -> None:
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
