"""svc/commands/backups.py as a process: archives made under load are complete, and only complete ones are restored."""

import asyncio
import io
import os
import stat
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import orjson
import pytest

from svc import cli
from tests.support import forked
from tests.support.agent_runs import Account, add_accounts
from tests.support.cases import each
from tests.support.money import assert_exact, rows
from tests.support.people import command, command_on
from tests.support.server import ROOT, RunningServer, running_server, running_server_sync

CHAT = {"model": "builtin/assistant-paid", "messages": [{"role": "user", "content": "What is 12 * (3 + 4)?"}]}
MICROS = 50_000_000
Stopped = tuple[RunningServer, Account, bytes]


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stopped]:
    """A stopped server, an account of it, and its backup."""
    folder = tmp_path_factory.mktemp("stopped")
    with running_server_sync(folder) as server:
        (account,) = add_accounts(server, 1, micros=MICROS)
        with httpx.Client(base_url=server.base_url, verify=server.tls or False, headers=account.headers) as client:
            assert client.post("/v1/chat/completions", json=CHAT).status_code == 200
    made = command(server, "backup", str(folder / "whole.tar"))
    assert made.returncode == 0, made.stderr
    yield server, account, (folder / "whole.tar").read_bytes()


def restored(archive: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return command_on(folder, "restore", str(archive))


Refused = Callable[[Path], str]


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refused:
    """Try to restore an archive; return the line with which it is refused. No file is left."""
    monkeypatch.setenv("SVC_DATA_DIR", str(tmp_path / "data"))

    def refused(archive: Path) -> str:
        before = sorted(path.name for path in tmp_path.iterdir())
        assert cli.main(["restore", str(archive)]) == 1
        out, line = capsys.readouterr()
        assert out == "" and line.startswith("svc: ") and line.count("\n") == 1, line
        assert sorted(path.name for path in tmp_path.iterdir()) == before
        return line

    return refused


async def keep_paying(server: RunningServer, account: Account, until: asyncio.Event) -> int:
    served = 0
    async with server.client(headers=account.headers) as client:
        while not until.is_set():
            answer = await client.post("/v1/chat/completions", json=CHAT)
            assert answer.status_code in (200, 429), answer.text  # 120 a minute and account
            served += answer.status_code == 200
            await asyncio.sleep(0.05 if answer.status_code == 429 else 0)
    return served


async def test_backup_under_paid_load_is_complete_and_its_money_exact(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        accounts = add_accounts(server, 4, micros=MICROS)
        over = asyncio.Event()
        paying = [asyncio.create_task(keep_paying(server, account, over)) for account in accounts]
        archive = tmp_path / "a.tar"
        made = await asyncio.to_thread(command, server, "backup", str(archive))
        assert made.returncode == 0, made.stderr
        assert stat.S_IMODE(archive.stat().st_mode) == 0o600
        over.set()
        assert all(await asyncio.gather(*paying))
    folder = tmp_path / "restored"
    assert (await asyncio.to_thread(restored, archive, folder)).returncode == 0
    env = {"SVC_DATA_DIR": str(folder)}
    async with running_server(tmp_path, env) as server, server.client(headers=accounts[0].headers) as client:
        assert (await client.get("/billing/account")).json()["held_micros"] == 0
        assert (await client.post("/v1/chat/completions", json=CHAT)).status_code in (200, 429)
    assert_exact(folder / "service.db")
    (spent,) = rows(folder / "service.db", "SELECT count(*) FROM ledger WHERE model IS NOT NULL")[0]
    assert spent > 0


def test_restored_folder_has_keys_certificates_and_balances(tmp_path: Path, stopped: Stopped) -> None:
    server, account, archive = stopped
    (tmp_path / "a.tar").write_bytes(archive)
    answer = restored(tmp_path / "a.tar", tmp_path / "data")
    assert answer.returncode == 0 and "1 wallet" in answer.stdout, answer
    assert (tmp_path / "data" / "tls" / "ca.pem").read_bytes() == server.ca.read_bytes()
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "data").rglob("*") if path.is_file()} == {0o600}
    with (
        running_server_sync(tmp_path) as again,
        httpx.Client(base_url=again.base_url, verify=again.tls or False) as client,
    ):
        me = client.get("/billing/account", headers=account.headers).json()
    assert (
        me["wallet_balance_micros"] == rows(server.data_dir / "service.db", "SELECT balance_micros FROM wallets")[0][0]
    )


def test_backup_works_through_a_pipe(tmp_path: Path, stopped: Stopped) -> None:
    server, _, _ = stopped
    env = {**os.environ, "SVC_DATA_DIR": str(server.data_dir)}
    svc = [sys.executable, "-m", "svc"]
    made = subprocess.run([*svc, "backup", "-"], cwd=ROOT, env=env, capture_output=True, timeout=60)
    assert made.returncode == 0, made.stderr
    env["SVC_DATA_DIR"] = str(tmp_path / "data")
    subprocess.run([*svc, "restore", "-"], cwd=ROOT, env=env, input=made.stdout, check=True, timeout=60)
    assert_exact(tmp_path / "data" / "service.db")


def test_restore_never_overwrites_a_used_folder(tmp_path: Path, stopped: Stopped) -> None:
    server, _, archive = stopped
    (tmp_path / "a.tar").write_bytes(archive)
    before = (server.data_dir / "service.db").read_bytes()
    assert "not empty" in restored(tmp_path / "a.tar", server.data_dir).stderr
    assert (server.data_dir / "service.db").read_bytes() == before


@each("part", [0, 100, 600, 5000, 0.5, 0.9, 0.999])
def test_a_truncated_archive_is_refused(part: float, tmp_path: Path, stopped: Stopped, refused: Refused) -> None:
    _, _, archive = stopped
    content = archive.rstrip(b"\0")
    (tmp_path / "a.tar").write_bytes(content[: int(part * len(content)) if isinstance(part, float) else part])
    refused(tmp_path / "a.tar")


@each("place", [0.2, 0.5, 0.8])
def test_a_changed_byte_is_refused(place: float, tmp_path: Path, stopped: Stopped, refused: Refused) -> None:
    _, _, archive = stopped
    changed = bytearray(archive)
    changed[int(place * len(archive.rstrip(b"\0")))] ^= 1
    (tmp_path / "a.tar").write_bytes(changed)
    assert "damaged" in refused(tmp_path / "a.tar")


@each("name", ["../evil", "/tmp/evil", "tls/../../evil", "service.db-wal", "evil"])
def test_archive_with_an_unknown_member_is_refused(
    name: str, tmp_path: Path, stopped: Stopped, refused: Refused
) -> None:
    _, _, archive = stopped
    with tarfile.open(fileobj=io.BytesIO(archive)) as source, tarfile.open(tmp_path / "a.tar", "w") as target:
        for member in source:
            target.addfile(member, source.extractfile(member))
        evil = tarfile.TarInfo(name)
        evil.size = 4
        target.addfile(evil, io.BytesIO(b"evil"))
    refused(tmp_path / "a.tar")


def test_an_archive_of_a_newer_version_is_refused(tmp_path: Path, stopped: Stopped, refused: Refused) -> None:
    _, _, archive = stopped
    with tarfile.open(fileobj=io.BytesIO(archive)) as source, tarfile.open(tmp_path / "a.tar", "w") as target:
        for member in source:
            content = source.extractfile(member)
            assert content is not None
            data = content.read()
            if member.name == "manifest.json":
                data = orjson.dumps({**orjson.loads(data), "schema_version": 99})
                member.size = len(data)
            target.addfile(member, io.BytesIO(data))
    assert "newer version" in refused(tmp_path / "a.tar")


def test_foreign_file_is_refused(tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "a.tar").write_bytes(b"<html>" * 10_000)
    assert "damaged" in refused(tmp_path / "a.tar")
    assert "No such file" in refused(tmp_path / "none.tar")


def test_killed_backup_or_full_disk_leaves_no_archive(tmp_path: Path, stopped: Stopped) -> None:
    server, _, _ = stopped
    target = tmp_path / "target.tar"
    env = {**os.environ, "SVC_DATA_DIR": str(server.data_dir)}
    for number in range(6):
        process = forked.start("svc.cli", tmp_path, env, ["backup", str(target)])
        time.sleep(number * 0.02)
        process.kill()
        process.wait()
        if target.exists():  # then it is whole
            with tarfile.open(target) as archive:
                assert "service.db" in archive.getnames()
            target.unlink()
    arguments = [sys.executable, "-m", "svc", "backup", str(target)]
    limited = ["bash", "-c", 'ulimit -f 100; exec "$@"', "-", *arguments]
    answer = subprocess.run(limited, cwd=ROOT, env=env, capture_output=True, timeout=60)
    assert answer.returncode == 1 and answer.stderr.startswith(b"svc: cannot back up to") and not target.exists(), (
        answer
    )
    assert_exact(server.data_dir / "service.db")


def test_a_folder_of_backups_keeps_the_newest(
    tmp_path: Path, stopped: Stopped, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server, _, _ = stopped
    monkeypatch.setenv("SVC_DATA_DIR", str(server.data_dir))
    for _ in range(4):
        assert cli.main(["backup", str(tmp_path), "--keep", "2"]) == 0
    names = sorted(path.name for path in tmp_path.iterdir())
    assert len(names) == 2 and all(name.startswith("svc-") and name.endswith(".tar") for name in names)
    assert names[-1] in capsys.readouterr().out


def test_backup_skips_an_old_one_that_another_backup_has_removed(tmp_path: Path, stopped: Stopped) -> None:
    server, _, _ = stopped
    assert command(server, "backup", str(tmp_path)).returncode == 0
    (made,) = tmp_path.iterdir()
    series = made.name.rpartition("-")[0]
    old = [tmp_path / f"{series}-0{number:04}.tar" for number in range(5_000)]
    for path in old:
        path.touch()
    arguments = (sys.executable, "-m", "svc", "backup", str(tmp_path), "--keep", "1")
    env = {**os.environ, "SVC_DATA_DIR": str(server.data_dir)}
    with subprocess.Popen(arguments, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as backup:
        while old[0].exists() and backup.poll() is None:
            time.sleep(0.01)
        old[-1].unlink()  # nobody reads its output, so that it waits after some hundred lines
        out, err = backup.communicate(timeout=30)
    assert (backup.returncode, err) == (0, b"") and b"verified" in out
    assert len(list(tmp_path.iterdir())) == 1
