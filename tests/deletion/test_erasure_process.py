"""What was deleted is in no file of the data folder and in no later backup of a server process: idle, under load and killed."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from svc.schema import connect
from tests.deletion.test_erasure import check_erased, delete_account, filled, id_of
from tests.support.people import another_person, command
from tests.support.remains import Texts, content_of, found_in, indexed, texts
from tests.support.server import RunningServer, running_server

# A server that does in parts of a second what takes it 10 or 20 seconds otherwise.
FAST = """
import sys, app
from svc import checkpoint
from svc.content import fulltext, word_runs
checkpoint._EMPTY_SECONDS, fulltext._PURGE_SECONDS, word_runs._PURGE_SECONDS = 0.3, 0.2, 0.2
sys.exit(app.main())
"""
CHAT = {"model": "builtin/assistant", "messages": [{"role": "user", "content": "What is 12 * (3 + 4)?"}]}


async def wait_until_gone(server: RunningServer, sought: Texts) -> None:
    ends = time.monotonic() + 30
    while sought and time.monotonic() < ends:
        sought = found_in(await asyncio.to_thread(content_of, server.data_dir), sought)
        await asyncio.sleep(0.1)
    assert sought == {}


@contextlib.asynccontextmanager
async def load(server: RunningServer, headers: dict[str, str]) -> AsyncIterator[None]:
    async def chat() -> None:
        async with server.client(headers=headers, timeout=60) as client:
            for number in range(10_000):
                assert (await client.post("/v1/chat/completions", json=CHAT)).status_code in (200, 429)
                assert (await client.patch("/user/me", json={"name": f"Bob {number}"})).status_code == 200

    tasks = [asyncio.create_task(chat()) for _ in range(4)]
    yield
    assert not any(task.done() for task in tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize("when", ["idle", "load", "killed"])
async def test_deleted_account_leaves_no_bytes(when: str, tmp_path: Path) -> None:
    async with running_server(tmp_path, command=("-c", FAST)) as server:
        ada, gone, stays = await filled(server)
        bob = await another_person(server)
        async with load(server, bob.session_headers) if when == "load" else contextlib.nullcontext():
            await delete_account(server, ada)
            if when in ("idle", "load"):
                await wait_until_gone(server, gone)
        if when == "killed":
            server.kill()
        else:
            assert await server.stop() == 0
    if when == "killed":
        async with running_server(tmp_path, command=("-c", FAST)) as server:
            await wait_until_gone(server, gone)
    check_erased(server, tmp_path, gone, stays)


PLACES = {
    *("artifacts.name", "artifacts.prompt", "artifact_chunks.content", "conversations.title", "messages.content"),
    *("messages.error", "answers.reasoning", "answers.memory", "projects.name", "projects.instructions"),
    *("api_keys.name", "providers.name", "providers.base_url", "providers.sealed_key", "providers.api_key_hint"),
    *("providers.models", "accounts.name", "accounts.instructions"),
}


async def change_and_delete(client: httpx.AsyncClient, ids: dict[str, list[str]]) -> None:
    """Delete every second object of each kind, and change the others."""
    changes = {
        "artifacts": {"name": "a"},
        "projects": {"name": "a", "instructions": ""},
        "conversations": {"title": "a"},
    }
    paths = {"api_keys": "/user/api-keys", "providers": "/user/providers"}
    for table, those in ids.items():
        path = paths.get(table, f"/{table}")
        for row_id in those[::2]:
            assert (await client.delete(f"{path}/{row_id}")).status_code == 204
        for row_id in those[1::2] if table in changes else ():
            assert (await client.patch(f"{path}/{row_id}", json=changes[table])).status_code == 200
    for row_id in ids["artifacts"][1::2]:
        assert (await client.put(f"/artifacts/{row_id}/content", content=b"b")).status_code == 200
    for path, change in (("/user/me", {"name": "Ada"}), ("/user/settings", {"instructions": "Be brief."})):
        assert (await client.patch(path, json=change)).status_code == 200


async def test_deleted_and_changed_objects_leave_no_bytes(tmp_path: Path) -> None:
    async with running_server(tmp_path, command=("-c", FAST)) as server, contextlib.AsyncExitStack() as stack:
        ada, before, _ = await filled(server)
        conn = stack.enter_context(contextlib.closing(connect(server.data_dir / "service.db", query_only=True)))
        client = await stack.enter_async_context(server.client(headers=ada.session_headers, timeout=60))
        account_id = await id_of(client, ada)
        ids = {
            table: [row[0] for row in conn.execute(f"SELECT id FROM {table} WHERE account_id = ?", (account_id,))]
            for table in ("artifacts", "conversations", "projects", "api_keys", "providers")
        }
        said = dict(conn.execute("SELECT id, content FROM messages WHERE account_id = ?", (account_id,)).fetchall())
        await change_and_delete(client, ids)
        after = texts(conn, account_id)
        sought = {place: [text for text in those if text not in after[place]] for place, those in before.items()}
        assert {place for place in PLACES if sought[place]} == PLACES
        kept = {row[0] for row in conn.execute("SELECT id FROM messages")}
        gone = {word for message_id, text in said.items() if message_id not in kept for word in text.split()}
        assert len(gone) > 1_000
        # A block of words is compressed: its words are sought below.
        await wait_until_gone(server, {place: sought[place] for place in sought if place != "word_blocks.lines"})
        async with asyncio.timeout(30):
            while not gone.isdisjoint(indexed(conn).split()):
                await asyncio.sleep(0.1)
        made = await asyncio.to_thread(command, server, "backup", str(tmp_path / "a.tar"))
        assert made.returncode == 0, made.stderr
        assert found_in((tmp_path / "a.tar").read_bytes(), {place: sought[place] for place in PLACES}) == {}
        assert found_in((tmp_path / "a.tar").read_bytes(), {"conversations": [b"Be brief."]})
    assert command(server, "check").stdout.startswith("ok")
