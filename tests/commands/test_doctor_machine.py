"""What `svc doctor` finds on this machine, with one fault at a time."""

import asyncio
import contextlib
import os
import shutil
import socket
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from svc import secrets
from svc.admin.health import Finding
from svc.auth import accounts
from svc.builtin import sandbox
from svc.certificates import tls_files
from svc.commands.doctor import examine
from svc.config import Config
from svc.schema import FIRST_VERSION, command_connection, connect, newest_schema, newest_version
from tests.conftest import Service
from tests.support.databases import prepare


@pytest.fixture
def folder(tmp_path: Path, without_python: None) -> Path:
    """A data folder of a stopped server, without faults."""
    path = tmp_path / "data"
    secrets.open_folder(path).close()
    prepare(path / "service.db", *newest_schema())
    tls_files(path, ["127.0.0.1", "localhost"], time.time())
    secrets.note_backup(path, 0.0)
    (path / "service.db").chmod(0o600)
    return path


def found(folder: Path, **settings: object) -> dict[str, list[Finding]]:
    by_subject: dict[str, list[Finding]] = {}
    config = Config(data_dir=folder, **{"port": 0, "discover": False, **settings})  # type: ignore[arg-type]
    for finding in asyncio.run(examine(config)):
        by_subject.setdefault(finding.about, []).append(finding)
    return by_subject


def grades(findings: list[Finding]) -> list[str]:
    return [finding.grade for finding in findings]


def test_good_folder_has_no_faults_and_is_not_changed(folder: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    all_of_it = found(folder)
    found_without_voice = {
        "data folder",
        "database",
        "port",
        "run_python",
        "certificate",
        "disk",
        "backup",
        "mail",
        "payments",
        "clock",
    }
    assert set(all_of_it) - {"speech"} == found_without_voice
    assert {grade for findings in all_of_it.values() for grade in grades(findings)} <= {"ok", "look"}
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_missing_folder_is_fine_and_is_not_made(tmp_path: Path) -> None:
    all_of_it = found(tmp_path / "a" / "b")
    assert grades(all_of_it["data folder"]) == grades(all_of_it["certificate"]) == ["ok"]
    assert list(tmp_path.iterdir()) == []


def test_file_readable_by_others_is_reported(folder: Path) -> None:
    (folder / "master.key").chmod(0o644)
    [finding] = found(folder)["data folder"]
    assert finding.grade == "look" and str(folder / "master.key") in finding.text


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_a_folder_or_a_file_of_another_user_is_wrong(folder: Path) -> None:
    os.chown(folder / "service.db", 12345, -1)
    [finding] = found(folder)["data folder"]
    assert finding.grade == "wrong" and str(folder / "service.db") in finding.text and "12345" in finding.text
    os.chown(folder, 12345, -1)
    [finding] = found(folder)["data folder"]
    assert finding.grade == "wrong" and "chown -R 12345" in finding.text
    for path in (folder, *folder.rglob("*")):
        os.chown(path, 12345, -1)
    (folder / "lost+found").mkdir()
    [finding] = found(folder)["data folder"]
    assert finding.grade == "ok" and "only user 12345" in finding.text, "root looks at the folder of a service"


def test_folder_of_backups_must_exist_outside_the_data_folder(folder: Path, tmp_path: Path) -> None:
    assert "backup folder" not in found(folder)
    place = tmp_path / "backups"
    [missing] = found(folder, backup_dir=place)["backup folder"]
    assert not place.exists()
    place.touch()
    [file] = found(folder, backup_dir=place)["backup folder"]
    for finding in (missing, file):
        assert finding.grade == "wrong" and f"{place} (SVC_BACKUP_DIR) is no folder" in finding.text
    place.unlink()
    place.mkdir()
    assert grades(found(folder, backup_dir=place)["backup folder"]) == ["ok"]
    assert list(place.iterdir()) == []
    (tmp_path / "link").symlink_to(folder)
    (folder / "backups").mkdir()
    for inside in (folder, folder / "backups", tmp_path / "link" / "backups"):
        [finding] = found(folder, backup_dir=inside)["backup folder"]
        assert finding.grade == "look" and "data folder" in finding.text


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_folder_of_backups_must_be_writable(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "backups").mkdir(mode=0o500)
    [finding] = found(folder, backup_dir=tmp_path / "backups")["backup folder"]
    assert finding.grade == "wrong" and "cannot write" in finding.text


def test_folder_of_backups_needs_room_for_one(folder: Path, tmp_path: Path) -> None:
    os.truncate(folder / "service.db", shutil.disk_usage(tmp_path).free)  # without blocks on the disk
    (tmp_path / "backups").mkdir()
    [finding] = found(folder, backup_dir=tmp_path / "backups")["backup folder"]
    assert finding.grade == "wrong" and "a backup needs" in finding.text


@pytest.mark.parametrize("change", ["missing", "another"])
def test_lost_master_key_is_reported(folder: Path, change: str) -> None:
    assert grades(found(folder)["database"]) == ["ok"]
    (folder / "master.key").unlink()
    assert grades(found(folder)["database"]) == ["ok"]
    with contextlib.closing(connect(folder / "service.db")) as conn:
        conn.execute("UPDATE installation SET key_check = ?", (secrets.derive(b"k" * 32, "check"),))
    if change == "another":
        (folder / "master.key").write_bytes(b"l" * 32)
    [finding] = found(folder)["database"]
    assert finding.grade == "look" and "master.key is" in finding.text and "no provider key needs it" in finding.text
    with command_connection(folder / "service.db") as tx:
        account_id = accounts.add_account(tx, "ada@example.com", None, None, 1.0).id
        columns = "id, account_id, name, base_url, sealed_key, api_key_hint, models, created_at"
        row = ("prov_1", account_id, "lab", "https://lab.example/v1", b"sealed" * 8, "sk-…1234", "[]", 1.0)
        tx.execute(f"INSERT INTO providers ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
    [finding] = found(folder)["database"]
    assert finding.grade == "wrong" and "1 provider keys need it" in finding.text
    (folder / "master.key").write_bytes(b"k" * 32)
    assert grades(found(folder)["database"]) == ["ok"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may read the folder of another user")
def test_root_creates_no_file_in_the_folder_of_a_service(folder: Path, tmp_path: Path) -> None:
    with contextlib.closing(connect(folder / "service.db")) as conn:
        conn.execute("UPDATE storage_limit SET bytes = 2000000")
        shutil.copytree(folder, tmp_path / "killed")  # with a log without a checkpoint
    (tmp_path / "killed" / "service.db-shm").unlink()
    for path in (tmp_path / "killed", *(tmp_path / "killed").rglob("*")):
        os.chown(path, 12345, 12345)
    assert (tmp_path / "killed" / "service.db-wal").stat().st_size
    for _ in range(2):
        assert grades(found(tmp_path / "killed")["data folder"]) == ["ok"]
    assert {path.stat().st_uid for path in (tmp_path / "killed").rglob("*")} == {12345}


def test_newer_older_or_damaged_database_is_reported(folder: Path) -> None:
    newest = newest_version(newest_schema()[1])
    path = folder / "service.db"
    content = bytearray(path.read_bytes())
    for version, grade in ((newest + 1, "wrong"), (FIRST_VERSION - 1, "wrong"), (newest, "ok")):
        content[60:64] = version.to_bytes(4, "big")  # the header's user_version
        path.write_bytes(content)
        assert grades(found(folder)["database"]) == [grade]
    path.write_bytes(b"no database" * 100)
    assert grades(found(folder)["database"]) == ["wrong"]


def test_dropped_trigger_and_damaged_page_are_found(folder: Path) -> None:
    path = folder / "service.db"
    whole = path.read_bytes()
    with contextlib.closing(connect(path)) as conn:
        (page,) = conn.execute("SELECT rootpage FROM sqlite_master WHERE name = 'accounts_deleting'").fetchone()
        conn.execute("DROP TRIGGER accounts_stay_pro")
        conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    [finding] = found(folder)["database"]
    assert finding.grade == "wrong" and "the trigger accounts_stay_pro is missing" in finding.text
    path.write_bytes(whole[: (page - 1) * 4096] + b"\xff" * 4096 + whole[page * 4096 :])
    assert grades(found(folder)["database"]) == ["wrong"]


def test_port_of_another_process_is_wrong(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        [finding] = found(folder, port=taken.getsockname()[1])["port"]
    assert finding.grade == "wrong" and "in use" in finding.text


async def test_port_of_the_folders_server_is_fine(service: Service) -> None:
    findings = await asyncio.to_thread(found, service.config.data_dir)
    assert f"process {os.getpid()} " in findings["port"][0].text


def test_python_of_agents_is_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    available = sandbox.binary() is not None
    [finding] = found(tmp_path)["run_python"]
    assert (finding.grade, "computes" in finding.text) == ("ok", available)
    monkeypatch.setattr(sandbox, "binary", lambda: "/bin/false")
    [finding] = found(tmp_path)["run_python"]
    assert finding.grade == "wrong"


def test_absent_python_of_agents_is_no_fault(folder: Path) -> None:
    [finding] = found(folder)["run_python"]
    assert finding.grade == "ok" and "'python' installs it" in finding.text


def test_certificate_for_another_name_or_expiring_is_reported(folder: Path) -> None:
    [finding] = found(folder, base_url="https://ai.example")["certificate"]
    assert finding.grade == "wrong" and "ai.example" in finding.text
    for days_ago, grade in ((397 - 10, "look"), (400, "wrong"), (-2, "wrong")):
        for name in ("cert.pem", "key.pem", "ca.pem", "ca-key.pem"):
            (folder / "tls" / name).unlink(missing_ok=True)
        tls_files(folder, ["127.0.0.1"], time.time() - days_ago * 86400)
        assert grades(found(folder)["certificate"]) == [grade], days_ago


def test_certificate_files_that_do_not_belong_together_are_wrong(folder: Path, tmp_path: Path) -> None:
    other = tls_files(tmp_path, ["127.0.0.1"], time.time())
    mine = {"tls": "files", "tls_cert": folder / "tls" / "cert.pem"}
    assert grades(found(folder, **mine, tls_key=other.key)["certificate"]) == ["wrong"]
    assert grades(found(folder, **mine, tls_key=folder / "tls" / "key.pem")["certificate"]) == ["ok"]
    (folder / "tls" / "key.pem").chmod(0o644)
    assert grades(found(folder, **mine, tls_key=folder / "tls" / "key.pem")["certificate"]) == ["ok", "look"]


def test_missing_or_old_backup_is_reported(folder: Path) -> None:
    assert grades(found(folder)["backup"]) == ["ok"]
    os.utime(folder / "last-backup", (time.time() - 10 * 86400,) * 2)
    assert grades(found(folder)["backup"]) == ["look"]
    (folder / "last-backup").unlink()
    assert grades(found(folder)["backup"]) == ["look"]


def test_clock_that_was_set_back_is_found_by_file_times(folder: Path) -> None:
    assert grades(found(folder)["clock"]) == ["ok"]
    os.utime(folder / "service.db", (time.time() + 600,) * 2)
    assert grades(found(folder)["clock"]) == ["wrong", "ok"]


def test_disabled_metrics_are_reported(folder: Path) -> None:
    assert grades(found(folder, host="0.0.0.0")["metrics"]) == ["look"]
    assert "metrics" not in found(folder, host="0.0.0.0", metrics_token="t" * 16)


def test_nearly_full_disk_is_reported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for free, grade in ((10**8, "wrong"), (2 * 10**9, "look"), (10**11, "ok")):
        monkeypatch.setattr(shutil, "disk_usage", lambda path, free=free: SimpleNamespace(free=free))
        assert grades(found(folder)["disk"]) == [grade]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_file_of_another_user_is_reported_before_one_that_others_can_read(folder: Path) -> None:
    (folder / "master.key").chmod(0o644)
    os.chown(folder / "tls" / "key.pem", 12345, -1)
    assert grades(found(folder)["data folder"]) == ["wrong"]
