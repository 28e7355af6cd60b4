"""`svc user delete` and `svc user suspend` beside a running service end the open streams of the account."""

import asyncio
from pathlib import Path

import httpx
import pytest

from tests.support.agent_runs import RUN, Stream, add_accounts
from tests.support.local_server import LocalServer, local_server
from tests.support.people import command
from tests.support.waiting import until

SCRIPT = {"goal": "say begun\ntool current_time {}\n---\nwait 60000", "model": "builtin/script"}
CHAT = {"messages": [{"role": "user", "content": "say begun\nwait 60000"}], "model": "builtin/script", "stream": True}


async def run(server: LocalServer, *arguments: str) -> None:
    answer = await asyncio.to_thread(command, server, *arguments)
    assert answer.returncode == 0, answer.stderr


async def test_command_ends_the_streams_of_that_account(tmp_path: Path) -> None:
    async with local_server(tmp_path) as server:
        deleted, suspended, stays = add_accounts(server, 3)
        streams = [
            await Stream.send(server, path, account.key, body)
            for account in (deleted, suspended)
            for path, body in (
                (RUN, SCRIPT),
                ("/v1/chat/completions", CHAT),
                ("/v1/responses", {**CHAT, "input": CHAT["messages"]}),
                ("/v1/messages", {**CHAT, "max_tokens": 100}),
            )
        ]
        streams.append(await Stream.send(server, RUN, stays.key, SCRIPT))
        for stream in streams:
            await stream.head()
        *ended, other = [asyncio.create_task(stream.rest()) for stream in streams]
        await until(lambda: all(stream.blocks for stream in streams))
        await run(server, "user", "delete", deleted.email)
        await run(server, "user", "suspend", suspended.email, "on")
        await asyncio.gather(*ended)
        for run_stream, reason in ((streams[0], "account_deleted"), (streams[4], "account_suspended")):
            last = run_stream.events[-1]
            assert (last["type"], last["reason"]) == ("stopped", reason)
        assert streams[1].blocks[-1].strip() == streams[5].blocks[-1].strip() == b"data: [DONE]"
        assert not other.done()
        run_id = streams[8].events[0]["run_id"]
        async with server.client(headers=stays.headers) as client:
            assert (await client.post(f"/v1/agents/runs/{run_id}/stop")).status_code == 202
        await other
        assert streams[8].events[-1]["reason"] == "requested", "it ran until its own account stopped it"


async def test_printed_link_has_the_address_of_the_running_server(tmp_path: Path) -> None:
    async with local_server(tmp_path, base_url="https://127.0.0.1:4711") as server:
        (account,) = add_accounts(server, 1)
        settings = {"SVC_BASE_URL": "https://127.0.0.1:1"}
        answer = await asyncio.to_thread(command, server, "user", "reset-link", account.email, **settings)
        assert answer.stdout.startswith("https://127.0.0.1:4711/password-reset#"), answer


async def test_suspension_ends_downloads_by_key_and_by_link(tmp_path: Path) -> None:
    async with local_server(tmp_path) as server, server.client(timeout=60) as client:
        [account] = add_accounts(server, 1)
        made = await client.post("/artifacts", json={"name": "a", "content": "a"}, headers=account.headers)
        path = f"/artifacts/{made.json()['id']}/content"
        await client.put(path, content=bytes(8 << 20), headers=account.headers)  # more than the kernel buffers
        link = httpx.URL(
            (await client.get(path.removesuffix("/content"), headers=account.headers)).json()["content_url"]
        )
        async with (
            client.stream("GET", path, headers=account.headers) as by_key,
            client.stream("GET", link.raw_path.decode()) as by_link,
        ):
            assert (by_key.status_code, by_link.status_code) == (200, 200)
            await run(server, "user", "suspend", account.email, "on")
            await until(lambda: not len(server.service.state["drain"]))
            for answer in (by_key, by_link):
                with pytest.raises(httpx.RemoteProtocolError):
                    await answer.aread()
        assert (await client.get(path, headers=account.headers)).status_code == 403
