"""The chapter "If the machine is lost" of svc/GROWING.md, played with the real Litestream."""

import asyncio
import contextlib
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.test_lost_machine import example, paths
from tests.support.clients import needed, python_with_packages
from tests.support.money import assert_exact
from tests.support.people import command, new_person
from tests.support.server import ROOT, RunningServer, running_server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]
CHAT = {"model": "builtin/assistant-paid", "messages": [{"role": "user", "content": "What is 12 * 3?"}]}


class Machine:
    """The examples of the chapter, with the folders of the test."""

    def __init__(self, folder: Path, data_dir: Path) -> None:
        # The package of the clients' lock file has the program.
        self.litestream = needed(python_with_packages).with_name("litestream")
        self._paths = paths(folder, data_dir, svc=f"{sys.executable} -m svc", litestream=str(self.litestream))
        self.config = folder / "litestream.yml"
        self.config.write_text(self._example("litestream"))

    def _example(self, name: str) -> str:
        return example(name, self._paths)

    def unit(self) -> str:
        return self._example("litestream-unit")

    def run(self, name: str) -> str:
        done = subprocess.run(
            ["sh", "-e", "-c", self._example(name)], cwd=ROOT, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @contextlib.contextmanager
    def replicating(self) -> Iterator[None]:
        (arguments,) = [line[10:].split() for line in self.unit().splitlines() if line.startswith("ExecStart=")]
        with (
            self.config.with_name("log").open("wb") as log,
            subprocess.Popen(arguments, stdout=log, stderr=log) as process,
        ):
            try:
                yield
            finally:
                process.kill()

    async def until_replicated(self, database: Path, statement: str) -> None:
        """Wait until a copy of the replica has a row for `statement`."""
        copy = self.config.with_name("copy.db")
        restore = [
            str(self.litestream),
            "restore",
            "-config",
            str(self.config),
            "-force",
            "-o",
            str(copy),
            str(database),
        ]
        async with asyncio.timeout(60):
            while True:
                done = await asyncio.to_thread(subprocess.run, restore, capture_output=True)
                if done.returncode == 0:
                    with contextlib.closing(sqlite3.connect(copy)) as conn:
                        if conn.execute(statement).fetchone():
                            return
                await asyncio.sleep(0.2)


@pytest.mark.needs("systemd-analyze")
def test_systemd_verifies_the_unit_of_litestream(tmp_path: Path) -> None:
    copy = tmp_path / "litestream.service"
    copy.write_text(Machine(tmp_path, tmp_path / "data").unit())
    done = subprocess.run(["systemd-analyze", "--no-pager", "verify", copy], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


async def balance(server: RunningServer, headers: dict[str, str]) -> int:
    async with server.client(headers=headers) as client:
        return int((await client.get("/billing/account")).raise_for_status().json()["wallet_balance_micros"])


async def test_service_goes_on_from_its_replica_after_the_loss_of_its_machine(tmp_path: Path) -> None:
    machine = Machine(tmp_path, tmp_path / "data")
    async with running_server(tmp_path) as server:
        with machine.replicating():
            person = await new_person(server)
            await asyncio.to_thread(command, server, "credit", person.email, "5")
            machine.run("replica-secrets")
            async with server.client(headers=person.headers) as client:
                for _ in range(20):
                    assert (await client.post("/v1/chat/completions", json=CHAT)).status_code == 200
            paid = await balance(server, person.headers)
            async with server.client(headers=person.session_headers) as client:
                assert (await client.post("/projects", json={"name": "the last one"})).status_code == 201
            await machine.until_replicated(tmp_path / "data" / "service.db", "SELECT 1 FROM projects")
            server.kill()
        shutil.rmtree(tmp_path / "data")
    assert "add up" in machine.run("lost-machine")
    assert_exact(tmp_path / "data" / "service.db")
    async with running_server(tmp_path) as server:
        assert await balance(server, person.session_headers) == paid < 5_000_000
        async with server.client(headers=person.session_headers) as client:
            assert [project["name"] for project in (await client.get("/projects")).json()["data"]] == ["the last one"]
        async with server.client(headers=person.headers) as client:
            assert (await client.post("/v1/chat/completions", json=CHAT)).status_code == 200
