"""What is older than the operator keeps it is deleted, and nothing else."""

import asyncio
import dataclasses
import sqlite3
from typing import Any

import pytest

from svc.agents import run_records
from svc.billing import wallet
from svc.config import Config
from svc.content import conversations, history
from svc.deletion import slices
from tests.conftest import Clocks, Service, bearer, serving
from tests.support.conversations import found, get, make, say
from tests.support.loop_clock import advance_loop
from tests.support.oauth_browser import rows

DAY = 24 * 3600
KEPT = {"keep_conversations_days": 30, "keep_runs_days": 20, "keep_files_days": 10}


@pytest.fixture
def config(config: Config) -> Config:
    return dataclasses.replace(config, **KEPT)  # type: ignore[arg-type]


async def delete_old(service: Service) -> None:
    await slices.delete_old(service.state["db"], service.config)


async def run_agent(service: Service, headers: dict[str, str], goal: str) -> str:
    body = {"goal": goal, "model": "builtin/script"}
    answer = await service.client.post("/v1/agents/run", json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.headers["x-service-run"]


async def with_key(service: Service) -> dict[str, str]:
    """The headers of a new account's key, which outlives the session."""
    return bearer((await service.make_key(await service.bearer()))["key"])


async def ids(service: Service, headers: dict[str, str], path: str) -> list[str]:
    return [item["id"] for item in (await get(service, headers, path))["data"]]


async def test_old_conversations_runs_and_files_are_deleted_and_the_ledger_stays(service: Service) -> None:
    session = await service.sign_up()
    headers = bearer(session["access_token"])
    await service.state["db"].write(wallet.book, session["user"]["id"], 5_000_000, description="x", now_seconds=1.0)
    artifact = 'tool write_artifact {"name": "a.txt", "content": "quagga"}\n---\nsay zebra'
    old_run = await run_agent(service, headers, artifact)
    headers = bearer((await service.make_key(headers))["key"])
    (of_run,) = await ids(service, headers, "/artifacts")
    old = await make(service, headers, title="okapi", pinned=True)
    await say(service, headers, old["id"], "an aardvark")
    service.clocks.advance(10 * DAY)
    await delete_old(service)
    assert await ids(service, headers, "/artifacts") == [of_run], "it is not older than 10 days"
    service.clocks.advance(1)
    await delete_old(service)
    assert await ids(service, headers, "/artifacts") == []
    assert (await ids(service, headers, "/v1/agents/runs"), await found(service, headers, "okapi")) == (
        [old_run],
        [old["id"]],
    )
    service.clocks.advance(20 * DAY)
    await delete_old(service)
    for query in ("okapi", "aardvark", "zebra"):
        assert await found(service, headers, query) == []
    for table in ("conversations", "messages", "answers", "runs", "artifacts", "artifact_chunks", "fresh_words"):
        assert await rows(service, f"SELECT * FROM {table}") == [], table
    assert await rows(service, "SELECT count(*) FROM ledger") == [(1,)]
    assert await rows(service, "SELECT bytes FROM stored") == [(256 + len("a key"),)], "the key"


async def test_use_keeps_a_conversation_and_reading_does_not(service: Service) -> None:
    headers = await with_key(service)
    used, read = [await make(service, headers, title=title) for title in ("used", "read")]
    service.clocks.advance(29 * DAY)
    await say(service, headers, used["id"], "again")
    for path in ("", "/messages", "/export"):
        assert (await service.client.get(f"/conversations/{read['id']}{path}", headers=headers)).status_code == 200
    service.clocks.advance(2 * DAY)
    await delete_old(service)
    assert await rows(service, "SELECT id FROM conversations") == [(used["id"],)]


async def test_what_is_in_progress_stays(service: Service) -> None:
    session = await service.sign_up()
    account_id, now = session["user"]["id"], service.clocks.now

    def begin(tx: sqlite3.Connection) -> None:
        conversations.add_conversation(tx, account_id, now, title="t", conversation_id="conv_1")
        history.add_message(
            tx,
            account_id,
            conversation_id="conv_1",
            role="assistant",
            content="",
            now_seconds=now,
            status="in_progress",
        )
        run: dict[str, Any] = {"id": "run_1", "goal": "g", "model": "m", "max_steps": 6, "project_id": None}
        run_records.add_run(tx, account_id, run, now)

    await service.state["db"].write(begin)
    service.clocks.advance(100 * DAY)
    await delete_old(service)
    assert await rows(service, "SELECT (SELECT count(*) FROM conversations), (SELECT count(*) FROM runs)") == [(1, 1)]


async def test_file_of_a_deleted_run_stays_without_it(config: Config, clocks: Clocks) -> None:
    async with serving(dataclasses.replace(config, keep_files_days=None), clocks) as service:
        headers = await service.bearer()
        await run_agent(service, headers, 'tool write_artifact {"name": "a.txt", "content": "x"}\n---\nsay done')
        clocks.advance(21 * DAY)
        await delete_old(service)
        assert await rows(service, "SELECT name, run_id FROM artifacts") == [("a.txt", None)]
        assert await rows(service, "SELECT * FROM runs") == await rows(service, "SELECT * FROM messages") == []


async def test_old_data_is_deleted_at_start_and_every_hour(config: Config, clocks: Clocks) -> None:
    async with serving(dataclasses.replace(config, keep_conversations_days=None), clocks) as service:
        headers = await with_key(service)
        await make(service, headers, title="first")
        clocks.advance(20 * DAY)
        await make(service, headers, title="second")
        clocks.advance(20 * DAY)
        await delete_old(service)
        assert await rows(service, "SELECT count(*) FROM conversations") == [(2,)], "they are kept without a limit"
    async with serving(config, clocks) as service:
        while await rows(service, "SELECT title FROM conversations") != [("second",)]:
            await asyncio.sleep(0.01)
        clocks.advance(20 * DAY)
        while await rows(service, "SELECT title FROM conversations"):
            await asyncio.sleep(0.01)
            advance_loop(3600)


async def test_a_long_conversation_is_deleted_in_short_transactions(service: Service) -> None:
    session = await service.sign_up()
    account_id, now = session["user"]["id"], service.clocks.now

    def fill(tx: sqlite3.Connection) -> None:
        conversations.add_conversation(tx, account_id, now, title="t", conversation_id="conv_1")
        for number in range(2_000):
            text = f"{number} " * 200
            history.add_message(tx, account_id, conversation_id="conv_1", role="user", content=text, now_seconds=now)

    await service.state["db"].write(fill)
    slices = 0
    while await service.state["db"].write_as("alone", conversations.delete_old, now + 1):
        slices += 1
    assert slices >= 4 and await rows(service, "SELECT count(*) FROM messages") == [(0,)]


async def test_settings_show_how_long_data_is_kept(service: Service) -> None:
    settings = await get(service, await service.bearer(), "/user/settings")
    assert settings["retention"] == {"conversations_days": 30, "runs_days": 20, "files_days": 10}
