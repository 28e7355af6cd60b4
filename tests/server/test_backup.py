"""A backup in a separate process: its environment, its end, and its faults. tests/routes/test_operations.py has the rest."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from svc.config import Config
from svc.errors import ApiError
from svc.server.backup import Backups


def backups(folder: Path | None, data_dir: Path, logged: list[dict[str, Any]]) -> Backups:
    config = Config(backup_dir=folder, data_dir=data_dir)
    return Backups(config, lambda event, **fields: logged.append({"event": event, **fields}))


async def finished(one: Backups) -> dict[str, Any]:
    async with asyncio.timeout(60):
        while (last := one.as_json()["last"])["running"]:
            await asyncio.sleep(0.02)
    found: dict[str, Any] = last
    return found


async def test_failed_backup_is_logged_with_its_cause(tmp_path: Path) -> None:
    logged: list[dict[str, Any]] = []
    one = backups(tmp_path, tmp_path / "nothing", logged)
    await one.start()
    last = await finished(one)
    assert "there is no database" in last["error"] and last["file"] is None and last["finished_at"]
    assert [(line["event"], line["level"], line["error"]) for line in logged] == [("backup", "warning", last["error"])]


async def test_process_that_cannot_start_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "gone"))
    one = backups(tmp_path, tmp_path, [])
    await one.start()
    assert (await finished(one))["error"].startswith("no process can be started")


async def test_second_backup_is_refused_while_one_is_made(tmp_path: Path) -> None:
    one = backups(tmp_path, tmp_path, [])
    await one.start()
    with pytest.raises(ApiError, match="Wait until it has ended"):
        await one.start()
    await one.close()
    assert not one.as_json()["last"]["running"]


async def test_secrets_of_the_environment_are_not_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\nenv >{tmp_path}/environment\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setenv("LAB_KEY", "hunter2")
    monkeypatch.setenv("SVC_STRIPE_SECRET_KEY", "hunter2")
    one = backups(tmp_path, tmp_path / "data", [])
    await one.start()
    assert (await finished(one))["error"] == "the backup was ended", "it has printed no result"
    environment = (tmp_path / "environment").read_text()
    assert "hunter2" not in environment and f"SVC_DATA_DIR={tmp_path}/data" in environment
