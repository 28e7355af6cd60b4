"""Backups as processes: beside a server under paid load, through a pipe, killed, and at the same moment."""

import asyncio
import os
import stat
import subprocess
import sys
import tarfile
import time
from pathlib import Path

from tests.support import forked
from tests.support.agent_runs import Account, add_accounts
from tests.support.money import assert_exact, rows
from tests.support.people import command, command_on
from tests.support.server import ROOT, RunningServer, running_server
from tests.test_backup import CHAT, MICROS, Stopped, restored, stopped

__all__ = ["stopped"]  # a fixture


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


def test_backup_works_through_a_pipe(tmp_path: Path, stopped: Stopped) -> None:
    data_dir, _, _ = stopped
    env = {**os.environ, "SVC_DATA_DIR": str(data_dir)}
    svc = [sys.executable, "-m", "svc"]
    made = subprocess.run([*svc, "backup", "-"], cwd=ROOT, env=env, capture_output=True, timeout=60)
    assert made.returncode == 0, made.stderr
    env["SVC_DATA_DIR"] = str(tmp_path / "data")
    subprocess.run([*svc, "restore", "-"], cwd=ROOT, env=env, input=made.stdout, check=True, timeout=60)
    assert_exact(tmp_path / "data" / "service.db")


def test_killed_backup_or_full_disk_leaves_no_archive(tmp_path: Path, stopped: Stopped) -> None:
    data_dir, _, _ = stopped
    target = tmp_path / "target.tar"
    env = {**os.environ, "SVC_DATA_DIR": str(data_dir)}
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
    assert_exact(data_dir / "service.db")


def test_backup_skips_an_old_one_that_another_backup_has_removed(tmp_path: Path, stopped: Stopped) -> None:
    data_dir, _, _ = stopped
    assert command_on(data_dir, "backup", str(tmp_path)).returncode == 0
    (made,) = tmp_path.iterdir()
    series = made.name.rpartition("-")[0]
    old = [tmp_path / f"{series}-0{number:04}.tar" for number in range(5_000)]
    for path in old:
        path.touch()
    arguments = (sys.executable, "-m", "svc", "backup", str(tmp_path), "--keep", "1")
    env = {**os.environ, "SVC_DATA_DIR": str(data_dir)}
    with subprocess.Popen(arguments, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as backup:
        while old[0].exists() and backup.poll() is None:
            time.sleep(0.01)
        old[-1].unlink()  # nobody reads its output, so that it waits after some hundred lines
        out, err = backup.communicate(timeout=30)
    assert (backup.returncode, err) == (0, b"") and b"verified" in out
    assert len(list(tmp_path.iterdir())) == 1
