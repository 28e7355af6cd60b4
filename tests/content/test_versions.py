"""A replaced message is kept as a version. Lists, search and memory use the current branch, everything else all versions."""

from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.conftest import Service

CONVERSATION, REPLACES = "x-service-conversation", "x-service-replaces"


@dataclass
class Talk:
    """A conversation with the model that repeats the question."""

    service: Service
    headers: dict[str, str]
    id: str = ""

    async def ask(self, text: str, replaces: str | None = None) -> httpx.Response:
        headers = {**self.headers, **({CONVERSATION: self.id} if self.id else {}), **({REPLACES: replaces} if replaces else {})}
        body = {"model": "builtin/echo", "messages": [{"role": "user", "content": text}]}
        answer = await self.service.client.post("/v1/chat/completions", json=body, headers=headers)
        assert answer.status_code == 200, answer.text
        self.id = answer.headers[CONVERSATION]
        return answer

    async def get(self, path: str, **query: Any) -> Any:
        answer = await self.service.client.get(path, headers=self.headers, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def messages(self) -> list[dict[str, Any]]:
        """The current branch, oldest first."""
        listed: list[dict[str, Any]] = (await self.get(f"/conversations/{self.id}/messages", limit=100))["data"]
        return listed[::-1]

    async def texts(self) -> str:
        return " ".join(message["content"] for message in await self.messages())

    async def found(self, words: str) -> list[str]:
        return [one["id"] for one in (await self.get("/conversations", q=words))["data"]]


@pytest.fixture
async def talk(service: Service) -> Talk:
    talk = Talk(service, await service.bearer())
    for text in ("one", "two", "three"):
        await talk.ask(text)
    return talk


async def test_edited_question_is_a_new_version_of_it(talk: Talk) -> None:
    before = await talk.messages()
    await talk.ask("zwei", before[2]["id"])
    after = await talk.messages()
    assert [message["content"] for message in after] == ["one", "one", "zwei", "zwei"]
    assert after[2]["versions"] == [before[2]["id"], after[2]["id"]]
    assert [after[number]["versions"] for number in (0, 1, 3)] == [[], [], []]
    await talk.ask("drei")
    assert await talk.texts() == "one one zwei zwei drei drei"


async def test_regenerated_answer_is_a_new_version_and_its_question_is_not_stored_again(talk: Talk) -> None:
    before = await talk.messages()
    for _ in range(2):
        await talk.ask("again", (await talk.messages())[3]["id"])
    after = await talk.messages()
    assert [message["content"] for message in after] == ["one", "one", "two", "again"]
    assert [message["id"] for message in after[:3]] == [message["id"] for message in before[:3]]
    first, _, newest = after[3]["versions"]
    assert (first, newest) == (before[3]["id"], after[3]["id"])


async def test_first_question_can_be_replaced(talk: Talk) -> None:
    first = (await talk.messages())[0]["id"]
    await talk.ask("eins", first)
    assert await talk.texts() == "eins eins" and (await talk.messages())[0]["versions"][0] == first


async def test_search_and_memory_use_the_current_branch(talk: Talk) -> None:
    await talk.ask("My zebra is called Zora.")
    await talk.ask("My zebra is called Zelda.", (await talk.messages())[6]["id"])
    assert await talk.found("zora") == [] and await talk.found("zelda") == [talk.id]
    other = Talk(talk.service, talk.headers)
    await other.ask("What is the zebra called?")
    (_, answer) = await other.messages()
    assert {passage["text"] for passage in answer["answer"]["memory"]} == {"My zebra is called Zelda."}
