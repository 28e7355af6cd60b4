"""Images and speech over connections: what ends early ends its helper process and releases its hold."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.agent_runs import Account, Stream, add_accounts
from tests.support.cases import each
from tests.support.local_server import LocalServer, local_server
from tests.support.money import assert_exact, rows, watch
from tests.support.waiting import until

FUNDS = 100_000_000
IMAGES, GENERATE = "/v1/images/generations", "/v1/audio/generate"
PICTURES = {"prompt": "seven castles in the city at night, fireworks", "model": "builtin/paint", "n": 10}
SPEECH = {"input": "Hello there, this is a long story. " * 2_800, "model": "builtin/voice", "tts_max_tokens": 32_768}
LONG_WORK = [(IMAGES, PICTURES), (GENERATE, {**SPEECH, "speed": 0.25})]
SPENT = "SELECT -ifnull(sum(amount_micros), 0) FROM ledger WHERE kind = 'debit'"


def helpers() -> list[int]:
    """Return the helper processes of this process."""
    found = []
    for task in Path(f"/proc/{os.getpid()}/task").iterdir():
        with contextlib.suppress(OSError):  # ended meanwhile
            for pid in map(int, (task / "children").read_text().split()):
                if b"svc.builtin.helper" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.append(pid)
    return found


@dataclass
class Lab:
    """A server, and a user with money."""

    server: LocalServer
    person: Account
    client: httpx.AsyncClient

    async def post(self, path: str, **body: Any) -> httpx.Response:
        return await self.client.post(path, json=body, headers=self.person.headers)

    async def begin(self, path: str, body: dict[str, Any]) -> Stream:
        return await Stream.send(self.server, path, self.person.key, body)

    async def released(self) -> int:
        """Wait until no process works and nothing is held. Return the micros that were spent."""
        await until(lambda: not helpers() and not self.server.rows("SELECT 1 FROM holds"))
        assert_exact(self.server.data_dir / "service.db")
        return int(self.server.rows(SPENT)[0][0])


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncIterator[Lab]:
    async with local_server(tmp_path) as server, server.client(timeout=60) as client:
        (person,) = add_accounts(server, 1, micros=FUNDS)
        watch(server.data_dir / "service.db")
        yield Lab(server, person, client)


@each(("path", "body"), LONG_WORK)
async def test_disconnect_ends_the_work_and_releases_the_hold(lab: Lab, path: str, body: dict[str, Any]) -> None:
    connections = [await lab.begin(path, body) for _ in range(3)]
    await until(lambda: len(lab.server.rows("SELECT 1 FROM holds")) == 3 and helpers())
    for pid in helpers():
        os.kill(pid, signal.SIGSTOP)  # it would work until it is killed
    for connection in connections:
        connection.leave("rst")
        await connection.close()
    spent = await lab.released()
    assert spent % 20_000 == 0 and spent < 200_000  # whole pictures that were made until then


async def test_killed_helper_is_one_error_and_the_next_request_works(lab: Lab) -> None:
    for path, body in LONG_WORK:
        asked = asyncio.create_task(lab.post(path, **body))
        await until(helpers)
        for pid in helpers():
            os.kill(pid, signal.SIGKILL)
        answer = await asked
        assert (answer.status_code, answer.json()["error"]["code"]) == (502, "upstream_error")
    assert await lab.released() == 0
    assert (await lab.post(IMAGES, **{**PICTURES, "n": 1, "size": "64x64"})).status_code == 200
    assert await lab.released() == 20_000


async def test_shutdown_ends_the_work_and_charges_nothing(lab: Lab) -> None:
    asked = [asyncio.create_task(lab.post(path, **body)) for path, body in LONG_WORK]
    await until(lambda: len(lab.server.rows("SELECT 1 FROM holds")) == 2 and helpers())
    await lab.server.stop(with_grace=False)
    for answer in await asyncio.gather(*asked):
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "shutting_down")
    assert not helpers()
    database = lab.server.data_dir / "service.db"
    assert_exact(database)
    assert rows(database, SPENT) == [(0,)]


async def test_next_start_after_a_crash_releases_the_holds(lab: Lab, tmp_path: Path) -> None:
    connection = await lab.begin(IMAGES, PICTURES)
    await until(helpers)
    database = lab.server.copy_after_crash(tmp_path / "again")
    connection.leave("rst")
    await connection.close()
    assert rows(database, "SELECT count(*) FROM holds") == [(1,)]
    async with local_server(tmp_path / "again") as server:
        assert server.rows("SELECT count(*) FROM holds") == [(0,)] and server.rows(SPENT) == [(0,)]
    assert_exact(database)
