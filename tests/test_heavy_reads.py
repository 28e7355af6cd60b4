"""One account's searches, recalled chats and agents' memory: each takes a bounded CPU time, and other accounts do not
wait.
"""

import asyncio
import itertools
import sqlite3
import time
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from svc.config import Config
from svc.content import conversations, fulltext, search
from svc.db import Database
from tests.conftest import Clocks, Service, bearer, serving
from tests.support.answers import assert_error

# Long words that differ in their ends: to compare two of them takes a millisecond.
ENDS = [f"{a}{b}{c}" for a in "abcdefghijklmno" for b in "abcdefghij" for c in "abcdefghij"]
LOOK_ALIKES = " ".join("yya" + "y" * 50 + end + "zzzz" for end in ENDS)
FIRST = itertools.cycle("bcdefghijklmnopqrstuvwx")
COMMON = [f"common{number}" for number in range(40)]
QUERY = " ".join(COMMON[:32])
IN_FLIGHT = 6
# What one request may take of the worker's CPU time: its budgets, and a share for a machine that is slower or measured
# coarsely.
LEAST_CPU_SECONDS, MOST_CPU_SECONDS = 0.002, 0.7
PATIENCE_SECONDS = 30.0


async def fill(service: Service, account_id: str) -> None:
    """A history of 1,500 look-alike words and of 0.5 MB of common words."""
    db: Database = service.state["db"]

    def add(tx: sqlite3.Connection, contents: list[str]) -> None:
        made = conversations.add_conversation(tx, account_id, service.clocks.now)
        for content in contents:
            conversations.add_message(
                tx, account_id, made.id, role="user", content=content, now_seconds=service.clocks.now
            )

    await db.write_as("alone", add, [LOOK_ALIKES])
    for _ in range(15):
        await db.write_as("alone", add, [" ".join(COMMON * 10)] * 10)
    while await db.write_as("alone", fulltext.index_some):
        pass


@pytest.fixture
async def attacker(service: Service) -> dict[str, str]:
    session = await service.sign_up()
    await fill(service, session["user"]["id"])
    return bearer(session["access_token"])


def misspelt() -> str:
    """Eight unused words: with a chat they become known."""
    first = next(FIRST)
    return " ".join("yy" + first + "y" * 50 + end + "xzzz" for end in ENDS[:8])


async def chat(service: Service, headers: dict[str, str]) -> httpx.Response:
    body = {"model": "builtin/echo", "messages": [{"role": "user", "content": misspelt()}]}
    return await service.client.post("/v1/chat/completions", json=body, headers=headers)


async def find(service: Service, headers: dict[str, str]) -> httpx.Response:
    return await service.client.get("/conversations", params={"q": QUERY}, headers=headers)


async def remember(service: Service, headers: dict[str, str]) -> httpx.Response:
    goal = f'tool search_memory {{"query": "{misspelt()}"}}\n---\nsay ok'
    return await service.client.post("/v1/agents/run", json={"goal": goal, "model": "builtin/script"}, headers=headers)


HEAVY = pytest.mark.parametrize("heavy", [chat, find, remember], ids=lambda heavy: heavy.__name__)
Heavy = Callable[[Service, dict[str, str]], Awaitable[httpx.Response]]


@HEAVY
async def test_heavy_read_has_a_cpu_limit(service: Service, attacker: dict[str, str], heavy: Heavy) -> None:
    db: Database = service.state["db"]

    def cpu_seconds(conn: sqlite3.Connection) -> float:
        return time.thread_time()

    before = await db.heavy_read(cpu_seconds)
    assert (await heavy(service, attacker)).status_code == 200
    assert LEAST_CPU_SECONDS < await db.heavy_read(cpu_seconds) - before < MOST_CPU_SECONDS


@HEAVY
async def test_other_accounts_do_not_wait_for_heavy_reads(
    service: Service, attacker: dict[str, str], heavy: Heavy
) -> None:
    other, client = await service.bearer(), service.client
    under_way = [asyncio.create_task(heavy(service, attacker)) for _ in range(IN_FLIGHT)]
    await asyncio.sleep(0.05)
    async with asyncio.timeout(PATIENCE_SECONDS):
        for path in ("/user/me", "/conversations", "/billing/account", "/artifacts"):
            assert (await client.get(path, headers=other)).status_code == 200
        assert not all(task.done() for task in under_way), "they were heavy"
        assert (await find(service, other)).status_code == 200
        assert (await chat(service, other)).status_code == 200
    assert [answer.status_code for answer in await asyncio.gather(*under_way)] == [200] * IN_FLIGHT


async def test_list_over_its_cpu_limit_is_503_with_retry_after(
    config: Config, clocks: Clocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("svc.db.READ_SECONDS", 0.0)  # as if it had been used up: SQLite looks after 1,000 steps
    async with serving(config, clocks) as service:
        headers, client = await service.bearer(), service.client
        for _ in range(100):
            assert (await client.post("/conversations", json={"title": "x"}, headers=headers)).status_code == 201
        answer = await client.get("/conversations", params={"limit": 100}, headers=headers)
        assert_error(answer, 503, "overloaded")
        assert answer.headers["retry-after"] == "1"
        assert (await client.get("/user/me", headers=headers)).status_code == 200


async def test_search_over_its_cpu_limit_is_marked_incomplete(
    service: Service, attacker: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole: dict[str, Any] = (await find(service, attacker)).json()
    assert len(whole["data"]) == 15 and whole["incomplete"] is False
    for cpu_seconds, shown in ((0.002, None), (0.0, 0)):
        monkeypatch.setattr(search, "STEP_SECONDS", cpu_seconds)
        answer = await find(service, attacker)
        assert answer.status_code == 200 and answer.json()["incomplete"] is True
        assert shown is None or len(answer.json()["data"]) == shown
