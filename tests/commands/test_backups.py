"""`svc backup` and `svc restore` on the command line: there and back, and nothing is overwritten."""

import os
import stat
from pathlib import Path

import pytest

from svc import cli
from svc.auth import accounts
from svc.schema import command_connection
from svc.secrets import open_folder


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


def test_neither_a_file_nor_a_data_folder_is_overwritten(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = tmp_path / "backup.tar"
    assert cli.main(["backup", str(archive)]) == 0
    assert cli.main(["backup", str(archive)]) == 1 and "exists" in capsys.readouterr().err
    assert cli.main(["restore", str(archive)]) == 1
    assert cli.main(["backup", str(tmp_path / "other.tar"), "--keep", "2"]) == 1


def test_in_a_folder_the_newest_are_kept(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    for second in range(4):
        monkeypatch.setattr("time.time", lambda second=second: 1_790_000_000.0 + second)
        assert cli.main(["backup", str(folder), "--keep", "2"]) == 0
    assert len(list(folder.glob("svc-*.tar"))) == 2
