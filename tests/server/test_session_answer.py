"""Answers of session chats on the real server process: stored while they are generated, and ended once."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from tests.support.money import assert_exact
from tests.support.people import Person, another_person
from tests.support.server import RunningServer, running_server, running_server_sync

CHAT, HEADER = "/v1/chat/completions", "x-service-conversation"
LONG = "say Hello zebra\nwait 60000\nsay never"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running_server_sync(tmp_path_factory.mktemp("answers")) as server:
        yield server


@dataclass
class Chat:
    """A person who chats. `id` is the conversation of the last answer."""

    client: httpx.AsyncClient
    person: Person
    id: str = ""
    chunks: list[Any] = field(default_factory=list)  # of the stream that is being read

    async def ask(self, text: str, conversation: str | None = None, **fields: Any) -> httpx.Response:
        headers = {HEADER: conversation} if conversation else {}
        body = {"model": "builtin/script", "messages": [{"role": "user", "content": text}], **fields}
        return await self.client.post(CHAT, json=body, headers=headers)

    @contextlib.asynccontextmanager
    async def streamed(self, text: str, conversation: str | None = None, **headers: str) -> AsyncIterator[AsyncIterator[Any]]:
        """The chunks of a stream, after the first one with a text. The end of the block hangs up."""
        named = {HEADER: conversation} if conversation else {}
        body = {"model": "builtin/script", "stream": True, "messages": [{"role": "user", "content": text}]}
        async with self.client.stream("POST", CHAT, json=body, headers={**headers, **named}) as answer:
            assert answer.status_code == 200, await answer.aread()
            self.id = answer.headers[HEADER]
            chunks = payloads(answer)
            async for chunk in chunks:
                if text_of([chunk]):
                    break
            yield chunks

    async def get(self, path: str) -> Any:
        answer = await self.client.get(path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def answering(self) -> bool:
        (listed,) = [one for one in (await self.get("/conversations"))["data"] if one["id"] == self.id]
        assert listed == await self.get(f"/conversations/{self.id}")
        return bool(listed["answering"])

    async def answer(self) -> dict[str, Any]:
        """The newest message."""
        message: dict[str, Any] = (await self.get(f"/conversations/{self.id}/messages"))["data"][0]
        return message

    async def ended(self) -> dict[str, Any]:
        """The newest message once it is not in progress."""
        async with asyncio.timeout(10):
            while (message := await self.answer())["status"] == "in_progress":
                await asyncio.sleep(0.02)
        assert not await self.answering()
        return message


async def payloads(answer: httpx.Response) -> AsyncIterator[Any]:
    """The payloads of a stream, `[DONE]` as itself."""
    async for line in answer.aiter_lines():
        if line.startswith("data: "):
            yield line[6:] if line == "data: [DONE]" else orjson.loads(line[6:])


def text_of(chunks: list[Any]) -> str:
    return "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk.get("choices", ()))


@contextlib.asynccontextmanager
async def chatting(server: RunningServer, person: Person | None = None) -> AsyncIterator[Chat]:
    person = person or await another_person(server)
    async with server.client(headers=person.session_headers, timeout=30) as client:
        yield Chat(client, person)


@pytest.fixture
async def chat(server: RunningServer) -> AsyncIterator[Chat]:
    async with chatting(server) as chat:
        yield chat


async def test_question_and_text_so_far_are_stored_during_the_answer(chat: Chat) -> None:
    async with chat.streamed(LONG):
        said, question = (await chat.get(f"/conversations/{chat.id}/messages"))["data"]
        assert (question["content"], question["status"], question["finish_reason"]) == (LONG, "complete", None)
        assert (said["role"], said["status"], said["model"]) == ("assistant", "in_progress", "builtin/script")
        assert await chat.answering() and (await chat.get("/conversations"))["data"][0]["title"].startswith("say Hello")
        async with asyncio.timeout(2):
            while (await chat.answer())["content"] != "Hello zebra":
                await asyncio.sleep(0.05)
    said = await chat.ended()
    assert (said["content"], said["status"], said["finish_reason"], said["error"]) == ("Hello zebra", "stopped", None, None)


@pytest.mark.parametrize("stream", [False, True])
async def test_of_two_questions_at_once_one_is_refused(chat: Chat, stream: bool) -> None:
    conversation = (await chat.ask("say one")).headers[HEADER]
    answers = await asyncio.gather(*(chat.ask("wait 500\nsay two", conversation, stream=stream) for _ in range(5)))
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409, 409]
    refused = next(answer for answer in answers if answer.status_code == 409)
    assert refused.json()["error"]["code"] == "already_active" and refused.headers["x-should-retry"] == "false"
    said = (await chat.get(f"/conversations/{conversation}/messages"))["data"]
    assert [one["content"] for one in said] == ["two", "wait 500\nsay two", "one", "say one"]
    assert (await chat.ask("say three", conversation, stream=stream)).status_code == 200


@pytest.mark.parametrize("stream", [False, True])
async def test_complete_answer_has_its_status_and_finish_reason(chat: Chat, stream: bool) -> None:
    chat.id = (await chat.ask("say cut\nlength", stream=stream)).headers[HEADER]
    said = await chat.ended()
    assert (said["content"], said["status"], said["finish_reason"], said["error"]) == ("cut", "complete", "length", None)
    export = (await chat.client.get(f"/conversations/{chat.id}/export")).text
    assert "Z\n\ncut\n" in export and "complete" not in export


async def test_service_refusal_stores_nothing(chat: Chat) -> None:
    wrong = [{"messages": []}, {"model": "no/such"}, {"model": "builtin/assistant-paid"}]
    assert [(await chat.ask("x", **fields)).status_code for fields in wrong] == [400, 404, 402]
    assert (await chat.get("/conversations"))["data"] == []


async def test_after_kill_9_answers_are_interrupted_with_their_text_and_found_by_their_words(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        async with chatting(server) as chat:
            person = chat.person
            with contextlib.suppress(httpx.TransportError):
                async with chat.streamed(LONG):
                    await asyncio.sleep(1.8)
                    server.kill()
        conversation = chat.id
    async with running_server(tmp_path) as server, chatting(server, person) as chat:
        chat.id = conversation
        said = await chat.ended()
        assert (said["content"], said["status"], said["answer"]["cost_micros"]) == ("Hello zebra", "interrupted", 0)
        assert "interrupted" in (await chat.client.get(f"/conversations/{chat.id}/export")).text
        (found,) = (await chat.get("/conversations?q=zebra"))["data"]
        assert said["id"] in [match["message_id"] for match in found["matches"]]
        assert (await chat.ask("say more", chat.id)).status_code == 200
    assert_exact(tmp_path / "data" / "service.db")
