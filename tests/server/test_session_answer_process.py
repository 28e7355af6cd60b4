"""Answers of session chats on the real server process: they survive a kill, and readers that stop hold little memory."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from tests.support.connections import connected
from tests.support.model_server import ModelServer
from tests.support.money import assert_exact
from tests.support.people import Person, another_person, command
from tests.support.server import RunningServer, running_server
from tests.support.session_chats import GOES_ON, HEADER, Chat, text_of


@contextlib.asynccontextmanager
async def chatting(server: RunningServer, person: Person | None = None) -> AsyncIterator[Chat]:
    person = person or await another_person(server)
    async with server.client(headers=person.session_headers, timeout=30) as client:
        yield Chat(client)


async def test_readers_that_do_not_read_hold_little_of_a_long_answer(tmp_path: Path) -> None:
    model = "script+silent-after-32-chunks"
    async with ModelServer(models=(model,)) as upstream:
        (tmp_path / "catalog.toml").write_text(f'[[providers]]\nname = "lab"\nbase_url = "{upstream.base_url}"\n')
        async with (
            running_server(tmp_path, {"SVC_CATALOG": str(tmp_path / "catalog.toml")}) as server,
            chatting(server) as chat,
        ):
            text = "\n".join(["say " + "\U0001f600" * 30_000] * 32)
            async with chat.streamed(text, model=f"lab/{model}", **GOES_ON) as chunks:
                async with asyncio.timeout(10):
                    while len(text_of(chat.chunks)) < 30 * 30_000:
                        chat.chunks.append(await anext(chunks))
            async with chat.followed() as followed:
                lengths = [len(text_of([await anext(followed)])) for _ in range(9)]
            assert max(lengths) <= 30_000
            before, readers = server.counts().rss_bytes, []
            for _ in range(40):
                readers.append(await connected(server, receive_buffer_bytes=16_384))
                request = f"GET /conversations/{chat.id}/stream HTTP/1.1\r\nhost: {server.host}\r\n"
                readers[-1].sendall(f"{request}authorization: {chat.client.headers['authorization']}\r\n\r\n".encode())
            for reader in readers:
                assert await asyncio.to_thread(reader.recv, 9) == b"HTTP/1.1 "
            assert server.counts().rss_bytes - before < 120_000_000
            for reader in readers:
                reader.close()


@pytest.mark.parametrize("seconds", [0.1, *(pytest.param(other, marks=pytest.mark.soak) for other in (0.02, 0.3))])
async def test_after_kill_9_at_any_moment_every_answer_has_ended_and_no_hold_is_left(
    tmp_path: Path, seconds: float
) -> None:
    text = "say Hello\n" + "wait 20\nsay  again\n" * 5
    async with running_server(tmp_path) as server:
        person = await another_person(server)
        command(server, "credit", person.email, "5")
        async with chatting(server, person) as chat:
            asked = [
                asyncio.create_task(chat.ask(text, model=model, stream=number % 3 > 0, headers=headers))
                for number, model in enumerate(["builtin/script", "builtin/assistant-paid"] * 4)
                for headers in ({}, GOES_ON)
            ]
            await asyncio.sleep(seconds)
            server.kill()
            answers = await asyncio.gather(*asked, return_exceptions=True)
    async with running_server(tmp_path) as server, chatting(server, person) as chat:
        listed = (await chat.get("/conversations"))["data"]
        assert not any(conversation["answering"] for conversation in listed)
        whole = {
            answer.headers[HEADER]
            for answer in answers
            if isinstance(answer, httpx.Response) and answer.status_code == 200
        }
        assert whole <= {conversation["id"] for conversation in listed}
        for conversation in listed:
            said, question = (await chat.get(f"/conversations/{conversation['id']}/messages"))["data"]
            assert (question["role"], said["role"]) == ("user", "assistant") and said["status"] in (
                "complete",
                "interrupted",
            )
            assert said["status"] == "complete" or conversation["id"] not in whole
            assert (await chat.ask("say more", conversation["id"])).status_code in (200, 429)
    assert_exact(tmp_path / "data" / "service.db")
