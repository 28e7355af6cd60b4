"""`svc restore` into the folders that deployments have, as root for another user, and killed at any moment."""

import contextlib
import io
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from svc import audit, cli
from svc.auth import accounts
from svc.billing import wallet
from svc.errors import StartError
from svc.schema import command_connection, connect
from svc.secrets import open_folder
from tests.support import forked
from tests.support.server import ROOT

SERVICE = 61_234  # the user of a service, as systemd's DynamicUser= chooses one
SVC = [sys.executable, "-m", "svc"]
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts file systems and changes owners")


def svc(folder: Path, *arguments: str, before: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Run a command on the data folder `folder`: in this process, or with words `before` it in another one."""
    if before:
        env = {**os.environ, "SVC_DATA_DIR": str(folder)}
        return subprocess.run(
            [*before, *SVC, *arguments], cwd=ROOT, env=env, capture_output=True, text=True, timeout=60
        )
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        patch.setenv("SVC_DATA_DIR", str(folder))
        status = cli.main(arguments)
    return subprocess.CompletedProcess(arguments, status, out.getvalue(), err.getvalue())


def restored(archive: Path, folder: Path, *before: str) -> str:
    """Restore the archive; return the output of `svc check`."""
    made = svc(folder, "restore", str(archive), before=before)
    assert made.returncode == 0, made.stderr
    checked = svc(folder, "check", before=before)
    assert checked.returncode == 0, checked
    return checked.stdout


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup with an account, its money, an open agent run and an open hold."""
    folder = tmp_path_factory.mktemp("backup")
    open_folder(folder / "data").close()
    (folder / "data" / "tls").mkdir()
    (folder / "data" / "tls" / "ca.pem").write_text("a certificate")
    with command_connection(folder / "data" / "service.db") as tx:
        account = accounts.add_account(tx, "ada@example.com", None, None, 1.0)
        wallet.book(tx, account.id, 5_000_000, description="", now_seconds=1.0)
        wallet.hold(tx, account.id, "hold_1", 100, 1.0)
        tx.execute(
            "INSERT INTO runs (id, account_id, goal, model, max_steps, created_at) VALUES ('run_1', ?, 'g', 'm', 6, 1)",
            (account.id,),
        )
        tx.execute("CREATE TABLE filler (bytes)")  # so that a restore takes long enough to be killed
        tx.execute("INSERT INTO filler SELECT randomblob(20000000)")
        tx.execute("DROP TABLE filler")
    made = svc(folder / "data", "backup", str(folder / "backup.tar"))
    assert made.returncode == 0, made.stderr
    return folder / "backup.tar"


def new(folder: Path) -> None:
    pass


def empty(folder: Path) -> None:
    folder.mkdir()


def with_lost_and_found(folder: Path) -> None:
    (folder / "lost+found").mkdir(parents=True)


def link_to_an_empty_folder(folder: Path) -> None:
    folder.with_name("private").mkdir()
    folder.symlink_to("private")


def link_to_nothing(folder: Path) -> None:
    folder.symlink_to("private")


def after_a_start_that_was_refused(folder: Path) -> None:
    folder.mkdir()
    (folder / "lock").touch()


FOLDERS = [new, empty, with_lost_and_found, link_to_an_empty_folder, link_to_nothing, after_a_start_that_was_refused]


@pytest.mark.parametrize("made", FOLDERS)
def test_a_backup_is_restored_into_a_folder_without_content(
    tmp_path: Path, archive: Path, made: Callable[[Path], None]
) -> None:
    folder = tmp_path / "data"
    made(folder)
    linked = folder.is_symlink()
    told = restored(archive, folder)
    assert told.splitlines()[-1] == "ok: 1 wallets and 1 ledger rows add up"
    assert told.startswith("note: 1 agent runs were open"), "what was open at the backup is no fault"
    assert folder.is_symlink() == linked
    assert {path.name for path in folder.iterdir()} - {"lost+found"} == {"lock", "master.key", "service.db", "tls"}
    assert (folder / "tls" / "ca.pem").read_text() == "a certificate"
    assert "is not empty" in svc(folder, "restore", str(archive)).stderr
    with contextlib.closing(connect(folder / "service.db")) as conn:
        assert [row["action"] for row in audit.TABLE.page(conn, None, 1, None).items] == ["restore"]


@pytest.mark.parametrize("name", ["service.db", "notes", "tls", ".hidden", "master.key"])
def test_a_folder_with_content_is_left_as_it_is(tmp_path: Path, archive: Path, name: str) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / name).write_text("mine")
    refused = svc(tmp_path / "data", "restore", str(archive))
    assert refused.returncode == 1 and "is not empty" in refused.stderr
    assert {path.name for path in (tmp_path / "data").iterdir()} == {name, "lock"}
    assert (tmp_path / "data" / name).read_text() == "mine"


def test_a_damaged_archive_leaves_an_empty_folder_empty(tmp_path: Path, archive: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "a.tar").write_bytes(archive.read_bytes()[:1_000_000])
    assert "damaged" in svc(tmp_path / "data", "restore", str(tmp_path / "a.tar")).stderr
    assert {path.name for path in (tmp_path / "data").iterdir()} == {"lock"}
    restored(archive, tmp_path / "data")


def test_the_folder_of_a_server_is_refused(tmp_path: Path, archive: Path) -> None:
    folder = open_folder(tmp_path / "data")
    (tmp_path / "data" / "master.key").unlink()
    assert "another server" in svc(tmp_path / "data", "restore", str(archive)).stderr
    folder.close()


def test_start_refuses_an_interrupted_restore_and_completes_a_verified_one(tmp_path: Path) -> None:
    (tmp_path / ".svc-restoring").mkdir()
    with pytest.raises(StartError, match="was interrupted: run 'svc restore' again"):
        open_folder(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"lock", ".svc-restoring"}
    (tmp_path / ".svc-restoring").rename(tmp_path / ".svc-restored")
    (tmp_path / ".svc-restored" / "master.key").write_bytes(b"k" * 32)
    folder = open_folder(tmp_path)
    assert folder.master == b"k" * 32 and not (tmp_path / ".svc-restored").exists()
    folder.close()
    (tmp_path / ".svc-restored").mkdir()
    (tmp_path / ".svc-restored" / "master.key").write_bytes(b"l" * 32)
    with pytest.raises(StartError, match="was made during a restore"):
        open_folder(tmp_path)


STAGES = (
    "lock",
    ".svc-restoring",
    ".svc-restoring/master.key",
    ".svc-restoring/service.db",
    ".svc-restored",
    "master.key",
)


def kill_when(folder: Path, appears: str, archive: Path, after_seconds: float) -> None:
    """Start a restore and kill it some time after a file has appeared."""
    env = {**os.environ, "SVC_DATA_DIR": str(folder)}
    process = forked.start("svc.cli", folder.parent, env, ["restore", str(archive)])
    while not (folder / appears).exists() and process.poll() is None:
        time.sleep(0.0005)
    time.sleep(after_seconds)
    process.kill()
    process.wait()


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("rounds", [5, pytest.param(100, marks=pytest.mark.soak)])
def test_killed_restore_is_completed_or_repeated(tmp_path: Path, archive: Path, rounds: int) -> None:
    seed = random.randrange(10_000)
    print(f"seed {seed}")
    chance, folder = random.Random(seed), tmp_path / "data"
    found = {"nothing": 0, "interrupted": 0, "complete": 0}
    for _ in range(rounds):
        folder.mkdir()
        kill_when(folder, chance.choice(STAGES), archive, chance.uniform(0, 0.03))
        if (folder / ".svc-restoring").exists():
            found["interrupted"] += 1
            with pytest.raises(StartError, match="interrupted"):
                open_folder(folder)
            restored(archive, folder)
        elif (folder / ".svc-restored").exists() or (folder / "service.db").exists():
            found["complete"] += 1
            open_folder(folder).close()
            assert svc(folder, "check").returncode == 0
        else:
            found["nothing"] += 1
            restored(archive, folder)
        assert {path.name for path in folder.iterdir()} == {"lock", "master.key", "service.db", "tls"}
        shutil.rmtree(folder)
    print(found)
    assert rounds < 100 or (found["interrupted"] and found["complete"])


# --- as root: mounted file systems, and folders of another user


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[tuple[str, ...]]:
    """The words before a command that sees a file system of 64 MiB at `data` and one of 1 MiB at `small`."""
    for name in ("data", "small"):
        (tmp_path / name).mkdir()
    script = f"mount -t tmpfs -o size=64m none {tmp_path}/data && mount -t tmpfs -o size=1m none {tmp_path}/small && echo there && cat"
    with subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdin and holder.stdout
        if holder.stdout.readline() != b"there\n":
            pytest.skip("no file system can be mounted here")
        yield ("nsenter", f"--mount=/proc/{holder.pid}/ns/mnt")
        holder.stdin.close()


@as_root
@pytest.mark.slow
@pytest.mark.needs("unshare", "nsenter")
def test_a_backup_is_restored_into_a_mount_point(tmp_path: Path, archive: Path, mounted: tuple[str, ...]) -> None:
    subprocess.run([*mounted, "mkdir", f"{tmp_path}/data/lost+found"], check=True)
    assert "ok: 1 wallets" in restored(archive, tmp_path / "data", *mounted)
    assert list((tmp_path / "data").iterdir()) == [], "it is in the mounted file system alone"


@as_root
@pytest.mark.slow
@pytest.mark.needs("unshare", "nsenter")
def test_backup_without_space_names_the_needed_bytes(tmp_path: Path, archive: Path, mounted: tuple[str, ...]) -> None:
    folder = tmp_path / "restored"
    restored(archive, folder)
    for target, variables in ((f"{tmp_path}/small/a.tar", ()), ("-", (f"TMPDIR={tmp_path}/small",))):
        refused = svc(folder, "backup", target, before=(*mounted, "env", *variables))
        assert refused.returncode == 1 and refused.stdout == "" and refused.stderr.count("\n") == 1
        assert (
            f"in {tmp_path}/small, where 1 MiB are free" in refused.stderr or "where 0 MiB are free" in refused.stderr
        )
    left = subprocess.run([*mounted, "ls", "-A", f"{tmp_path}/small"], capture_output=True, text=True)
    assert left.stdout == ""


@as_root
@pytest.mark.slow
@pytest.mark.needs("unshare", "setpriv")
def test_restore_by_root_gives_the_files_to_the_folders_owner(tmp_path: Path, archive: Path) -> None:
    """As under systemd: /var/lib/svc is a link into a folder that only root may enter, and has another owner."""
    private = tmp_path / "private"
    (private / "svc").mkdir(parents=True, mode=0o700)
    private.chmod(0o700)
    os.chown(private / "svc", SERVICE, SERVICE)
    (tmp_path / "svc").symlink_to("private/svc")
    restored(archive, tmp_path / "svc")
    assert svc(tmp_path / "svc", "backup", str(tmp_path / "again.tar")).returncode == 0
    assert svc(tmp_path / "svc", "credit", "ada@example.com", "5").returncode == 0
    # The unit sees the folder elsewhere, and only the folder.
    bound = f'mount --bind {private}/svc /mnt; exec setpriv --reuid={SERVICE} --regid={SERVICE} --clear-groups "$@"'
    unit = ("unshare", "--mount", "sh", "-euc", bound, "-")
    if subprocess.run([*unit, sys.executable, "-c", "import svc.cli"], cwd=ROOT, capture_output=True).returncode == 0:
        credited = svc(Path("/mnt"), "credit", "ada@example.com", "5", before=unit)
        assert credited.returncode == 0 and credited.stdout.startswith("balance $15"), credited
    made = [*(private / "svc").rglob("*")]
    assert {path.name for path in made} >= {"service.db", "master.key", "tls", "ca.pem", "lock", "last-backup"}
    assert {path.stat().st_uid for path in made} == {SERVICE}
    assert all(path.stat().st_mode & 0o077 == 0 for path in made)
