"""Reading on the real server process: what a kill interrupts is read again, and nothing is left of it."""

import asyncio
import base64
import sqlite3
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from tests.support.people import another_person, command
from tests.support.server import RunningServer, running_server

LINES = [f"Line {number} of the book is about trains to Vienna." for number in range(40_000)]


def count(server: RunningServer, table: str) -> int:
    with closing(sqlite3.connect(server.data_dir / "service.db")) as conn:
        found: int = conn.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        return found


async def statuses(client: httpx.AsyncClient, path: str) -> list[str]:
    return [file["status"] for file in (await client.get(path)).json()["data"]]


@pytest.mark.parametrize("passages", [1, *(pytest.param(some, marks=pytest.mark.soak) for some in (100, 800))])
async def test_after_kill_9_while_a_file_is_read_it_is_read_again_and_once(tmp_path: Path, passages: int) -> None:
    async with running_server(tmp_path) as server:
        person = await another_person(server)
        async with server.client(headers=person.session_headers, timeout=30) as client:
            project_id = (await client.post("/projects", json={"name": "p"})).json()["id"]
            path = f"/projects/{project_id}/files"
            content = base64.b64encode("\n".join(LINES).encode()).decode()
            for name in ("a.txt", "b.txt"):  # of which one waits
                made = await client.post("/artifacts", json={"name": name, "content_base64": content})
                added = await client.post(path, json={"artifact_id": made.json()["id"]})
                assert added.json()["status"] == "reading"
            async with asyncio.timeout(60):
                while count(server, "file_passages") < passages:
                    await asyncio.sleep(0.002)
            server.kill()
        assert count(server, "project_files WHERE status = 'reading'") == 2
        assert count(server, "file_texts") == 1
    async with running_server(tmp_path) as server, server.client(headers=person.session_headers, timeout=30) as client:
        async with asyncio.timeout(120):
            while "reading" in await statuses(client, path):
                await asyncio.sleep(0.1)
        assert await statuses(client, path) == ["ready", "ready"]
        async with asyncio.timeout(60):
            while count(server, "file_texts") > 2:
                await asyncio.sleep(0.1)
        texts = [file["text_bytes"] for file in (await client.get(path)).json()["data"]]
        assert texts == [len("\n".join(LINES))] * 2
        goal = 'tool find_in_files {"query": "39999 Vienna"}\n---\nsay done'
        run = await client.post(
            "/v1/agents/run", json={"goal": goal, "model": "builtin/script", "project_id": project_id}
        )
        assert LINES[-1] in run.text
        assert command(server, "check").returncode == 0
        assert count(server, "file_passages WHERE text LIKE '%Line 39999 of%'") == 2
