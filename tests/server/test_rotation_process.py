"""A rotation of secrets is killed at every step, in the command and in the server: the next start completes or undoes
it.
"""

import asyncio
import dataclasses
import os
import signal
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from svc.config import Config
from svc.schema import connect
from svc.secrets import fitting_master
from tests.conftest import Clocks, serving
from tests.server.test_rotation import KEY, files, fill, stored_keys
from tests.support import forked
from tests.support.oauth_browser import rows
from tests.support.people import command_on
from tests.support.server import STOP_SECONDS, running_server_sync

KILLED = "tests.support.killed"


def killed_command(folder: Path, step: int) -> int:
    env = {**os.environ, "SVC_DATA_DIR": str(folder)}
    return forked.start(KILLED, folder.parent, env, [str(step), "rotate-secrets"]).wait(60)


def killed_server(folder: Path, step: int) -> int:
    env = {"SVC_DATA_DIR": str(folder)}
    with running_server_sync(folder.parent, env, ["-m", KILLED, str(step), "serve"]) as server:
        status = command_on(folder, "rotate-secrets").returncode
        return status and server.process.wait(STOP_SECONDS)


@pytest.mark.parametrize(
    ("killed", "stride"),
    [
        (killed_command, 3),
        (killed_server, 5),
        pytest.param(killed_command, 1, marks=pytest.mark.soak),
        pytest.param(killed_server, 1, marks=pytest.mark.soak),
    ],
)
async def test_rotation_killed_at_every_step_is_completed_or_undone_by_the_next_start(
    config: Config, clocks: Clocks, tmp_path: Path, killed: Callable[[Path, int], int], stride: int
) -> None:
    outcomes = []
    for step in range(0, 40, stride):
        folder = tmp_path / f"data{step}"
        fill(folder)
        old = (folder / "master.key").read_bytes()
        status = await asyncio.to_thread(killed, folder, step)
        if status == 0:
            break
        assert status == -signal.SIGKILL
        with closing(connect(folder / "service.db", query_only=True)) as conn:
            assert fitting_master(conn, folder) is not None, "a backup finds the key of the database at every step"
        async with serving(dataclasses.replace(config, data_dir=folder), clocks) as service:
            assert len(await rows(service, "SELECT * FROM audit")) == len(files(folder)) - 1
        assert stored_keys(folder) == [KEY] * 3
        rotated = (folder / "master.key").read_bytes() != old
        assert files(folder) == ({"master.key", "master.key.old"} if rotated else {"master.key"})
        assert not rotated or (folder / "master.key.old").read_bytes() == old
        outcomes.append(rotated)
    assert len(outcomes) * stride > 8 and set(outcomes) == {True, False}, outcomes
