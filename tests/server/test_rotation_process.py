"""A rotation of secrets is killed at every step, in the command and in the server: the next start completes or undoes
it.
"""

import asyncio
import dataclasses
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from svc.config import Config
from svc.schema import connect
from svc.secrets import fitting_master
from tests.conftest import Clocks, serving
from tests.server.test_rotation import KEY, files, fill, stored_keys
from tests.support.oauth_browser import rows
from tests.support.people import command_on
from tests.support.server import ROOT, running_server_sync

# Runs the command or the server, and kills itself just before the step of that number: a sync, a rename, a deletion, or
# a statement that changes or ends a transaction. Counted from the first file on.
KILLED = """
import os, runpy, signal, sqlite3, sys
from pathlib import Path
left, command = int(sys.argv[1]), sys.argv[2:]
first = Path(os.environ["SVC_DATA_DIR"]) / "master.key.new.new"
begun = False

def before(function):
    def counted(*arguments, **options):
        global left, begun
        begun = begun or first.exists()
        left -= begun
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **options)
    return counted

os.fsync, Path.rename, Path.unlink = before(os.fsync), before(Path.rename), before(Path.unlink)

class Connection(sqlite3.Connection):
    def execute(self, statement, *values):
        run = super().execute
        return (before(run) if statement.startswith(("COMMIT", "UPDATE")) else run)(statement, *values)

connect = sqlite3.connect
sqlite3.connect = lambda *arguments, **options: connect(*arguments, factory=Connection, **options)
from svc import cli
sys.exit(cli.main(command))
"""


def killed_command(folder: Path, step: int) -> int:
    command = [sys.executable, "-c", KILLED, str(step), "rotate-secrets"]
    env = {**os.environ, "SVC_DATA_DIR": str(folder)}
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, timeout=60).returncode


def killed_server(folder: Path, step: int) -> int:
    env = {"SVC_DATA_DIR": str(folder)}
    with running_server_sync(folder.parent, env, ["-c", KILLED, str(step), "serve"]) as server:
        status = command_on(folder, "rotate-secrets").returncode
        return status and server.process.wait(10)


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
