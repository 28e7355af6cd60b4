"""svc/commands/backups.py: archives are complete, and only complete ones are restored."""

import asyncio
import io
import stat
import subprocess
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import orjson
import pytest

from svc import cli
from svc.billing import wallet
from svc.certificates import tls_files
from svc.config import Config
from tests.conftest import Clocks, bearer, serving
from tests.support.cases import each
from tests.support.money import assert_exact, rows
from tests.support.people import command_on

CHAT = {"model": "builtin/assistant-paid", "messages": [{"role": "user", "content": "What is 12 * (3 + 4)?"}]}
MICROS = 50_000_000


class Stopped(NamedTuple):
    """The folder of a stopped service, the headers of its account, and a backup."""

    data_dir: Path
    headers: dict[str, str]
    archive: bytes


def config_of(data_dir: Path, log: int) -> Config:
    return Config(data_dir=data_dir, log_fd=log, discover=False, argon2_memory_kib=8, argon2_time_cost=1)


async def filled(data_dir: Path, log: int) -> dict[str, str]:
    async with serving(config_of(data_dir, log), Clocks()) as service:
        session = await service.sign_up()
        headers = bearer((await service.make_key(bearer(session["access_token"])))["key"])
        account_id = session["user"]["id"]
        await service.state["db"].write(wallet.book, account_id, MICROS, description="", now_seconds=time.time())
        assert (await service.client.post("/v1/chat/completions", json=CHAT, headers=headers)).status_code == 200
    tls_files(data_dir, ["localhost"], time.time())
    return headers


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stopped]:
    folder = tmp_path_factory.mktemp("stopped")
    with (folder / "log").open("wb", buffering=0) as log:
        headers = asyncio.run(filled(folder / "data", log.fileno()))
    made = command_on(folder / "data", "backup", str(folder / "whole.tar"))
    assert made.returncode == 0, made.stderr
    assert stat.S_IMODE((folder / "whole.tar").stat().st_mode) == 0o600
    yield Stopped(folder / "data", headers, (folder / "whole.tar").read_bytes())


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


async def test_restored_folder_has_keys_certificates_and_balances(
    tmp_path: Path, stopped: Stopped, config: Config
) -> None:
    (tmp_path / "a.tar").write_bytes(stopped.archive)
    folder = tmp_path / "restored"
    answer = restored(tmp_path / "a.tar", folder)
    assert answer.returncode == 0 and "1 wallet" in answer.stdout, answer
    assert (folder / "tls" / "ca.pem").read_bytes() == (stopped.data_dir / "tls" / "ca.pem").read_bytes()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*") if path.is_file()} == {0o600}
    assert_exact(folder / "service.db")
    async with serving(config_of(folder, config.log_fd), Clocks()) as service:
        me = (await service.client.get("/billing/account", headers=stopped.headers)).json()
        assert (
            await service.client.post("/v1/chat/completions", json=CHAT, headers=stopped.headers)
        ).status_code == 200
    assert (
        me["wallet_balance_micros"] == rows(stopped.data_dir / "service.db", "SELECT balance_micros FROM wallets")[0][0]
    )


def test_restore_never_overwrites_a_used_folder(tmp_path: Path, stopped: Stopped) -> None:
    data_dir, _, archive = stopped
    (tmp_path / "a.tar").write_bytes(archive)
    before = (data_dir / "service.db").read_bytes()
    assert "not empty" in restored(tmp_path / "a.tar", data_dir).stderr
    assert (data_dir / "service.db").read_bytes() == before


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


def test_a_folder_of_backups_keeps_the_newest(
    tmp_path: Path, stopped: Stopped, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data_dir, _, _ = stopped
    monkeypatch.setenv("SVC_DATA_DIR", str(data_dir))
    for _ in range(4):
        assert cli.main(["backup", str(tmp_path), "--keep", "2"]) == 0
    names = sorted(path.name for path in tmp_path.iterdir())
    assert len(names) == 2 and all(name.startswith("svc-") and name.endswith(".tar") for name in names)
    assert names[-1] in capsys.readouterr().out
