"""A backup in a separate process: its environment, its end, and its faults. tests/routes/test_operations.py has the rest."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from svc.config import Config
from svc.errors import ApiError
from svc.server.backup import Backups
from tests.support.full_disk import no_free_descriptors
from tests.support.waiting import until


def backups(folder: Path | None, data_dir: Path, logged: list[dict[str, Any]]) -> Backups:
    config = Config(backup_dir=folder, data_dir=data_dir)
    return Backups(config, lambda event, **fields: logged.append({"event": event, **fields}))


async def finished(one: Backups) -> dict[str, Any]:
    async with asyncio.timeout(60):
        while (last := one.as_json()["last"])["running"]:
            await asyncio.sleep(0.02)
    found: dict[str, Any] = last
    return found


def environments(folder: Path) -> list[bytes]:
    """The variables of each process that makes a backup in `folder`."""
    children = " ".join(path.read_text() for path in Path("/proc/self/task").glob("*/children")).split()
    processes = [Path("/proc", child) for child in children]
    wanted = b"\0backup\0--progress\0%b\0" % bytes(folder)
    return [one.joinpath("environ").read_bytes() for one in processes if wanted in one.joinpath("cmdline").read_bytes()]


async def test_failed_backup_is_logged_with_its_cause(tmp_path: Path) -> None:
    logged: list[dict[str, Any]] = []
    one = backups(tmp_path, tmp_path / "nothing", logged)
    await one.start()
    last = await finished(one)
    assert "there is no database" in last["error"] and last["file"] is None and last["finished_at"]
    assert [(line["event"], line["level"], line["error"]) for line in logged] == [("backup", "warning", last["error"])]


async def test_process_that_cannot_start_is_an_error(tmp_path: Path) -> None:
    one = backups(tmp_path, tmp_path, [])
    with no_free_descriptors():
        await one.start()
        assert (await finished(one))["error"] == "no process can be started: Too many open files"


@pytest.mark.slow
async def test_second_backup_is_refused_while_one_is_made(tmp_path: Path) -> None:
    one = backups(tmp_path, tmp_path, [])
    await one.start()
    with pytest.raises(ApiError, match="Wait until it has ended"):
        await one.start()
    await one.close()
    assert not one.as_json()["last"]["running"]


async def test_secrets_of_the_environment_are_not_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_KEY", "hunter2")
    monkeypatch.setenv("SVC_STRIPE_SECRET_KEY", "hunter2")
    one = backups(tmp_path, tmp_path / "data", [])
    await one.start()
    await until(lambda: environments(tmp_path))
    (environment,) = environments(tmp_path)
    await one.close()
    assert b"hunter2" not in environment and b"SVC_DATA_DIR=%b/data" % bytes(tmp_path) in environment.split(b"\0")
    assert one.as_json()["last"]["error"] == "the backup was ended", "it has printed no result"
