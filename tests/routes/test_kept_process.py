"""svc/routes/kept.py after kill -9 at any moment."""

import asyncio
import contextlib
import itertools
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.routes.test_kept import CHAT, KEY, MESSAGES, RESPONSES, Lab, catalog, person
from tests.support.agent_runs import Account, add_accounts
from tests.support.model_server import ModelServer
from tests.support.money import assert_exact, rows
from tests.support.server import running_server

_numbers = itertools.count(1)


@contextlib.asynccontextmanager
async def laboratory(folder: Path, upstream: ModelServer) -> AsyncIterator[Lab]:
    (folder / "catalog.toml").write_text(catalog(upstream))
    settings = {"SVC_CATALOG": str(folder / "catalog.toml")}
    async with running_server(folder, settings) as server, server.client(timeout=30) as client:
        yield Lab(server, upstream, person(server), client)


@pytest.mark.timeout(0)
async def test_kill_at_any_moment_never_charges_twice(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    rnd = random.Random(pytestconfig.getoption("--seed"))
    people: list[Account] = []
    told: dict[str, tuple[int, bytes]] = {}  # by request: the answers that were received whole
    pending: dict[str, tuple[str, dict[str, Any], Account]] = {}

    async def ask(lab: Lab, name: str) -> bool:
        path, body, who = pending[name]
        headers = {**who.headers, KEY: name, "x-request-id": name}
        try:
            answer = await lab.client.post(path, json=body, headers=headers)
        except httpx.HTTPError:
            return False
        assert answer.status_code == 200, answer.text
        assert told.setdefault(name, (200, answer.content)) == (200, answer.content)
        return True

    async def work(lab: Lab) -> None:
        for _ in range(100):
            name, path = f"req-{next(_numbers)}", rnd.choice((CHAT, RESPONSES, MESSAGES))
            body = lab.body(path, rnd.choice(("ok", "ok", "drip-100ms")), stream=rnd.random() < 0.5)
            pending[name] = (path, body, rnd.choice(people))
            for _ in range(rnd.randint(1, 3)):
                if not await ask(lab, name):
                    return

    async with ModelServer() as upstream:
        for _ in range(pytestconfig.getoption("--kills")):
            async with laboratory(tmp_path, upstream) as lab:
                people = people or add_accounts(lab.server, 6, micros=50_000_000, name="killed")
                assert rows(lab.database, "SELECT id FROM idempotency_keys WHERE status IS NULL") == []
                unfinished = [name for name in pending if name not in told]
                await asyncio.gather(*(ask(lab, name) for name in unfinished))
                working = [asyncio.create_task(work(lab)) for _ in range(8)]
                await asyncio.sleep(rnd.uniform(0.1, 0.8))
                lab.server.kill()
                await asyncio.gather(*working)
        async with laboratory(tmp_path, upstream) as lab:
            for name in pending:
                assert await ask(lab, name)
            query = "SELECT request_id, count(*) FROM ledger WHERE request_id LIKE 'req-%' GROUP BY request_id"
            assert dict(rows(lab.database, query)) == dict.fromkeys(pending, 1)  # each once, however often it was sent
            assert_exact(lab.database)
    assert len(told) > 5
