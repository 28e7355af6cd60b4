"""Commands that read change nothing in the data folder, and only `svc user add` makes a database."""

import contextlib
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from svc import cli, schema
from svc.auth import accounts
from svc.commands import check
from svc.schema import command_connection, connect, newest_schema, newest_version
from svc.secrets import open_folder
from tests.support.people import command_on

EMAIL = "ada@example.com"
READING = [
    ["check"],
    ["user", "list"],
    ["report"],
    ["ledger", EMAIL],
    ["payments"],
    ["support", "list"],
    ["status"],
    ["doctor"],
    ["backup", "BACKUPS"],
]
WRITING = [
    ["credit", EMAIL, "5"],
    ["debit", EMAIL, "5"],
    ["user", "delete", EMAIL],
    ["user", "reset-link", EMAIL],
    ["support", "reply", "sup_1", "text"],
    ["support", "close", "sup_1"],
]
Tree = dict[str, tuple[int, int, bytes]]


def tree(folder: Path) -> Tree:
    """Return the identity of each file in `folder`, except SQLite's -shm file, which readers change."""
    files = [path for path in folder.rglob("*") if not path.name.endswith("-shm") and path.name != "last-backup"]
    return {
        path.name: (path.stat().st_ino, path.stat().st_mtime_ns, path.read_bytes()) for path in files if path.is_file()
    }


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in {"SVC_DATA_DIR": str(tmp_path / "data"), "SVC_DISCOVER": "0", "SVC_PORT": "0"}.items():
        monkeypatch.setenv(name, value)
    return tmp_path / "data"


def stopped(folder: Path) -> None:
    """A data folder as a server leaves it."""
    open_folder(folder).close()
    with command_connection(folder / "service.db") as tx:
        accounts.add_account(tx, EMAIL, None, None, 1.0)


def killed(folder: Path) -> None:
    """A data folder of a killed server: the account is only in the log, and the -shm file is missing."""
    stopped(folder.with_name("other"))
    with contextlib.closing(connect(folder.with_name("other") / "service.db")) as conn:
        conn.execute("UPDATE accounts SET name = 'Ada'")
        shutil.copytree(folder.with_name("other"), folder)
    (folder / "service.db-shm").unlink()
    assert (folder / "service.db-wal").stat().st_size
    shutil.rmtree(folder.with_name("other"))


def of_another_program(folder: Path) -> None:
    folder.mkdir()
    with contextlib.closing(sqlite3.connect(folder / "service.db")) as conn:
        conn.execute("CREATE TABLE mine (a)")


def empty(folder: Path) -> None:
    folder.mkdir()


def nothing(folder: Path) -> None:
    pass


def run(command: list[str], folder: Path) -> int:
    """Run a command; a backup gets a new folder."""
    backups = folder.parent / "backups"
    backups.mkdir(exist_ok=True)
    status = cli.main([str(backups) if word == "BACKUPS" else word for word in command])
    shutil.rmtree(backups)
    return status


@pytest.mark.parametrize("command", READING, ids=" ".join)
@pytest.mark.parametrize("made", [stopped, killed])
def test_a_reading_command_changes_nothing(folder: Path, made: Callable[[Path], None], command: list[str]) -> None:
    made(folder)
    before = tree(folder)
    assert run(command, folder) == (1 if command == ["status"] else 0)
    assert tree(folder) == before
    assert {path.name for path in folder.iterdir()} - {*before, "last-backup"} <= {"service.db-shm"}


@pytest.mark.parametrize("command", [*READING, *WRITING], ids=" ".join)
@pytest.mark.parametrize("made", [nothing, empty, of_another_program])
def test_command_creates_no_database(
    folder: Path, made: Callable[[Path], None], command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    made(folder)
    before = {path.name: path.read_bytes() for path in folder.parent.rglob("*") if path.is_file()}
    status = run(command, folder)
    assert {path.name: path.read_bytes() for path in folder.parent.rglob("*") if path.is_file()} == before
    assert folder.exists() == (made is not nothing)
    if command not in (["doctor"], ["status"]):
        line = capsys.readouterr().err
        assert status == 1 and line.count("\n") == 1
        assert ("another program" if made is of_another_program else "there is no database in") in line


def test_first_account_may_be_created_before_the_first_start(folder: Path) -> None:
    assert command_on(folder, "user", "add", EMAIL, stdin="correct horse battery\n").returncode == 0
    assert cli.main(["user", "list"]) == 0


@pytest.mark.parametrize(
    "command", [command for command in READING if command[0] not in ("status", "doctor", "backup")], ids=" ".join
)
def test_a_reading_command_migrates_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    stopped(folder)
    before = tree(folder)
    script, migrations = newest_schema()
    for module in (schema, check):
        monkeypatch.setattr(module, "newest_schema", lambda: (script, [*migrations, "SELECT 1;"]))
    status, said = run(command, folder), capsys.readouterr()
    if command == ["check"]:  # it verifies a migrated copy
        assert (status, "as the next start will migrate it" in said.out) == (0, True), said
    else:
        assert status == 1
        versions = f"has version {newest_version(migrations)}, not {newest_version(migrations) + 1}"
        assert f"{versions}: start the service" in said.err
    assert tree(folder) == before
