"""Backups that are killed at any moment under load: an archive with its final name is complete."""

import asyncio
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.agent_runs import Account, add_accounts
from tests.support.money import assert_exact, rows
from tests.support.people import command
from tests.support.server import ROOT, RunningServer, running_server
from tests.test_backup import CHAT, restored

LEDGER = "SELECT seq, id, account_id, amount_micros, balance_after_micros FROM ledger ORDER BY seq"
SPENDERS = 8
Rows = Sequence[tuple[object, ...]]


async def keep_paying(server: RunningServer, account: Account, over: asyncio.Event) -> list[float]:
    """Return the seconds of each paid answer."""
    took = []
    async with server.client(headers=account.headers, timeout=60) as client:
        while not over.is_set():
            began = time.monotonic()
            answer = await client.post("/v1/chat/completions", json=CHAT)
            assert answer.status_code in (200, 429), answer.text
            if answer.status_code == 200:
                took.append(time.monotonic() - began)
            await asyncio.sleep(0.5)  # 120 a minute are allowed
    return took


async def backed_up(server: RunningServer, folder: Path, killed_after_seconds: float) -> float | None:
    """Start a backup and kill it after some seconds; return its seconds if it ended before."""
    began = time.monotonic()
    env = {"SVC_DATA_DIR": str(server.data_dir), "PATH": "/usr/bin:/bin"}
    arguments = [sys.executable, "-m", "svc", "backup", str(folder)]
    process = subprocess.Popen(arguments, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        _, said = await asyncio.to_thread(process.communicate, timeout=killed_after_seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        await asyncio.to_thread(process.communicate)
        return None
    assert process.returncode == 0, said
    return time.monotonic() - began


def proved(archive: Path, folder: Path) -> Rows:
    """Restore an archive, which verifies it; return its ledger."""
    answer = restored(archive, folder)
    assert answer.returncode == 0, answer.stderr
    assert_exact(folder / "service.db", idle=False)  # holds of the calls that were under way
    return rows(folder / "service.db", LEDGER)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("rounds", [3, pytest.param(200, marks=pytest.mark.soak)])
async def test_killed_backup_under_paid_load_leaves_a_complete_archive_or_none(rounds: int, tmp_path: Path) -> None:
    chance = random.Random(rounds)
    folder = tmp_path / "backups"
    folder.mkdir()
    ledgers: list[Rows] = []
    kills = 0
    async with running_server(tmp_path) as server:
        accounts = add_accounts(server, SPENDERS, micros=50_000_000)
        over = asyncio.Event()
        paying = [asyncio.create_task(keep_paying(server, account, over)) for account in accounts]
        typical = await backed_up(server, folder, 120)
        assert typical is not None
        for _ in range(rounds):
            # Not in the first half: there Python starts. After each kill a little later, so that some are whole.
            took_seconds = await backed_up(server, folder, chance.uniform(0.5, 1.1) * typical)
            kills += took_seconds is None
            typical = took_seconds or typical * 1.05
            for archive in folder.glob("*.tar"):
                ledgers.append(await asyncio.to_thread(proved, archive, tmp_path / f"restored-{len(ledgers)}"))
                archive.unlink()
        made = await asyncio.to_thread(command, server, "backup", str(folder))
        assert made.returncode == 0, made.stderr
        assert len(list(folder.iterdir())) == 1, "what killed backups left is removed by the next one"
        over.set()
        took = sorted(second for seconds in await asyncio.gather(*paying) for second in seconds)
        assert await server.stop() == 0
    assert_exact(server.data_dir / "service.db")
    last = rows(server.data_dir / "service.db", LEDGER)
    assert all(list(ledger) == list(last[: len(ledger)]) for ledger in ledgers), "an older ledger, to the micro"
    assert kills and ledgers and len(last) > len(ledgers[0]), (
        "backups were killed, others whole, and money was spent meanwhile"
    )
    slow = took[len(took) * 99 // 100]
    print(
        f"{rounds} rounds, {kills} killed, {len(ledgers)} whole, {len(took)} paid calls, 99 % of them within "
        f"{slow:.3f} s"
    )
