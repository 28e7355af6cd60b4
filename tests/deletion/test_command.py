"""`svc user delete` and `svc user suspend` beside a running server end the open streams of the account."""

import asyncio
import time
from pathlib import Path

import httpx
import pytest

from tests.support.agent_runs import RUN, Stream, add_accounts
from tests.support.people import command
from tests.support.server import running_server

SCRIPT = {"goal": "say begun\ntool current_time {}\n---\nwait 60000", "model": "builtin/script"}
CHAT = {"messages": [{"role": "user", "content": "say begun\nwait 60000"}], "model": "builtin/script", "stream": True}


@pytest.mark.parametrize(
    ("words", "reason"), [(("delete",), "account_deleted"), (("suspend", "on"), "account_suspended")]
)
async def test_command_ends_the_streams_of_that_account_within_2_seconds(
    tmp_path: Path, words: tuple[str, ...], reason: str
) -> None:
    async with running_server(tmp_path) as server:
        gone, stays = add_accounts(server, 2)
        streams = [
            await Stream.send(server, RUN, gone.key, SCRIPT),
            await Stream.send(server, "/v1/chat/completions", gone.key, CHAT),
            await Stream.send(server, "/v1/responses", gone.key, {**CHAT, "input": CHAT["messages"]}),
            await Stream.send(server, "/v1/messages", gone.key, {**CHAT, "max_tokens": 100}),
            await Stream.send(server, RUN, stays.key, SCRIPT),
        ]
        for stream in streams:
            await stream.head()
        reading = [asyncio.create_task(stream.rest()) for stream in streams]
        while not all(stream.blocks for stream in streams):
            await asyncio.sleep(0.05)
        answer = await asyncio.to_thread(command, server, "user", words[0], gone.email, *words[1:])
        assert answer.returncode == 0, answer.stderr
        began = time.monotonic()
        async with asyncio.timeout(5):
            await asyncio.gather(*reading[:4])
        assert time.monotonic() - began < 2
        last = streams[0].events[-1]
        assert (last["type"], last["reason"]) == ("stopped", reason)
        assert streams[1].blocks[-1].strip() == b"data: [DONE]"
        await asyncio.sleep(1.5)
        assert not reading[4].done()
        reading[4].cancel()


async def test_printed_link_has_the_port_of_the_running_server(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        (account,) = add_accounts(server, 1)
        answer = command(server, "user", "reset-link", account.email, SVC_BASE_URL="https://127.0.0.1:1")
        assert answer.stdout.startswith(f"{server.base_url}/password-reset#"), answer


async def test_suspension_ends_downloads_by_key_and_by_link_within_2_seconds(tmp_path: Path) -> None:
    content = bytes(24 << 20)
    async with running_server(tmp_path) as server, server.client(timeout=60) as client:
        [account] = add_accounts(server, 1)
        made = await client.post("/artifacts", json={"name": "a", "content": "a"}, headers=account.headers)
        path = f"/artifacts/{made.json()['id']}/content"
        await client.put(path, content=content, headers=account.headers)
        link = (await client.get(path.removesuffix("/content"), headers=account.headers)).json()["content_url"]
        async with (
            client.stream("GET", path, headers=account.headers) as by_key,
            client.stream("GET", link.removeprefix(server.base_url)) as by_link,
        ):
            assert (by_key.status_code, by_link.status_code) == (200, 200)
            assert (await asyncio.to_thread(command, server, "user", "suspend", account.email, "on")).returncode == 0
            await asyncio.sleep(2)
            for answer in (by_key, by_link):
                with pytest.raises(httpx.RemoteProtocolError):
                    await answer.aread()
        assert (await client.get(path, headers=account.headers)).status_code == 403
