"""The chapter "If the machine is lost" of svc/GROWING.md, with a copy of the database in place of Litestream's replica."""

import contextlib
import shlex
import shutil
import sqlite3
import subprocess
from pathlib import Path

from svc.config import Config
from tests.conftest import Clocks, serving
from tests.support.money import assert_exact
from tests.support.pages import EXAMPLES
from tests.support.people import command_on


def paths(folder: Path, data_dir: Path, svc: str, litestream: str) -> dict[str, str]:
    """The paths of the chapter, and what a test has in their place."""
    return {
        "/var/lib/svc": str(data_dir),
        "/mnt/replica": str(folder / "replica"),
        "/root/svc-restored": str(folder / "restored"),
        "/etc/litestream.yml": str(folder / "litestream.yml"),
        "/opt/svc/bin/svc": svc,
        "/opt/litestream/bin/litestream": litestream,
    }


def example(name: str, replaced: dict[str, str]) -> str:
    text = EXAMPLES[name]
    for old, new in replaced.items():
        text = text.replace(old, new)
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("systemctl"))


async def test_service_goes_on_from_its_replica_and_copied_secrets(
    config: Config, clocks: Clocks, tmp_path: Path
) -> None:
    own = paths(tmp_path, config.data_dir, svc="svc", litestream="litestream")
    assert f"path: {config.data_dir / 'service.db'}\n" in example("litestream", own)
    async with serving(config, clocks) as service:
        headers = await service.bearer()
        made = await service.client.post("/projects", json={"name": "the last one"}, headers=headers)
        assert made.status_code == 201
        (config.data_dir / "tls").mkdir()
        subprocess.run(["sh", "-ec", example("replica-secrets", own)], check=True)
        with contextlib.closing(sqlite3.connect(config.data_dir / "service.db")) as conn:
            conn.execute("VACUUM INTO ?", (str(tmp_path / "replica.db"),))
    shutil.rmtree(config.data_dir)
    outputs = []
    for line in example("lost-machine", own).splitlines():
        assignment, *words = shlex.split(line) if line.startswith("SVC_") else ("", *shlex.split(line))
        if words[0] == "litestream":
            shutil.copy(tmp_path / "replica.db", words[words.index("-o") + 1])
        elif words[0] == "svc":
            assert assignment == f"SVC_DATA_DIR={config.data_dir}"
            done = command_on(config.data_dir, *words[1:])
            assert done.returncode == 0, done.stderr
            outputs.append(done.stdout)
        else:
            subprocess.run(words, check=True)
    assert "add up" in outputs[-1]
    assert_exact(config.data_dir / "service.db")
    async with serving(config, clocks) as service:
        found = (await service.client.get("/projects", headers=headers)).json()["data"]
        assert [project["name"] for project in found] == ["the last one"]
