"""`svc backup` and `svc restore` on the command line: a round trip, and no file is overwritten."""

import asyncio
import os
import stat
from pathlib import Path

import pytest

from svc import cli
from svc.auth import accounts
from svc.commands.backups import workplace
from svc.schema import command_connection
from svc.secrets import derive, open_folder


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    data = tmp_path / "data"
    open_folder(data).close()
    monkeypatch.setenv("SVC_DATA_DIR", str(data))
    with command_connection(data / "service.db") as tx:
        accounts.add_account(tx, "ada@example.com", None, None, 1.0)
    return data


def test_a_backup_makes_a_new_data_folder(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cli.main(["credit", "ada@example.com", "12.5"])
    archive = tmp_path / "backup.tar"
    assert cli.main(["backup", str(archive)]) == 0
    assert stat.S_IMODE(os.stat(archive).st_mode) == 0o600
    monkeypatch.setenv("SVC_DATA_DIR", str(tmp_path / "again"))
    assert cli.main(["restore", str(archive)]) == 0
    assert cli.main(["check"]) == 0
    assert "ok: 1 wallets and 1 ledger rows add up" in capsys.readouterr().out
    assert (tmp_path / "again" / "master.key").read_bytes() == (data / "master.key").read_bytes()


def test_backup_overwrites_no_file_or_data_folder(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = tmp_path / "backup.tar"
    assert cli.main(["backup", str(archive)]) == 0
    assert cli.main(["backup", str(archive)]) == 1 and "exists" in capsys.readouterr().err
    assert cli.main(["restore", str(archive)]) == 1
    assert cli.main(["backup", str(tmp_path / "other.tar"), "--keep", "2"]) == 1


@pytest.mark.parametrize("change", ["missing", "another"])
def test_no_backup_is_made_without_the_key_that_a_restore_needs(
    data: Path, tmp_path: Path, change: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with command_connection(data / "service.db") as tx:
        tx.execute("UPDATE installation SET key_check = ?", (derive((data / "master.key").read_bytes(), "check"),))
    assert cli.main(["backup", str(tmp_path / "fine.tar")]) == 0
    if change == "missing":
        (data / "master.key").unlink()
    else:
        (data / "master.key").write_bytes(b"x" * 32)
    capsys.readouterr()
    for target in (str(tmp_path / "backup.tar"), "-"):
        assert cli.main(["backup", target]) == 1
        out, line = capsys.readouterr()
        assert out == "" and line.count("\n") == 1 and "master.key is" in line
    assert not (tmp_path / "backup.tar").exists()


def test_two_services_share_a_folder_of_backups(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    newest: list[set[Path]] = []
    folder, other = tmp_path / "backups", tmp_path / "other"
    folder.mkdir()
    open_folder(other).close()
    with command_connection(other / "service.db"):
        pass
    for number in range(6):
        before = set(folder.iterdir())
        monkeypatch.setenv("SVC_DATA_DIR", str((data, other)[number % 2]))
        assert cli.main(["backup", str(folder), "--keep", "1"]) == 0
        newest.append(set(folder.iterdir()) - before)
    assert set(folder.iterdir()) == newest[4] | newest[5]
    first, second = (path.name.split("-")[1] for path in folder.iterdir())
    assert first != second


def test_keep_deletes_the_oldest_backups(data: Path, tmp_path: Path) -> None:
    folder, made = tmp_path / "backups", list[set[Path]]()
    folder.mkdir()
    for _ in range(4):
        before = set(folder.iterdir())
        assert cli.main(["backup", str(folder), "--keep", "2"]) == 0
        made.append(set(folder.iterdir()) - before)
    assert set(folder.glob("svc-*.tar")) == made[2] | made[3]


async def test_backups_that_end_at_the_same_time_do_not_disturb_each_other(tmp_path: Path) -> None:
    def work() -> None:
        for _ in range(100):
            with workplace(tmp_path) as place:
                (place / "archive").write_bytes(b"x")

    await asyncio.gather(*(asyncio.to_thread(work) for _ in range(4)))
    assert [*tmp_path.iterdir()] == []
