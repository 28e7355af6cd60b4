"""Chats of a session: questions, their answers as streams that others follow, and what is stored of them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import orjson

CHAT, HEADER = "/v1/chat/completions", "x-service-conversation"
CONTINUE = "x-service-continue"
GOES_ON = {CONTINUE: "true"}
LONG = "say Hello zebra\nwait 60000\nsay never"


@dataclass
class Chat:
    """A person who chats. `id` is the conversation of the last answer."""

    client: httpx.AsyncClient
    id: str = ""
    chunks: list[Any] = field(default_factory=list)  # of the stream that is being read

    async def ask(
        self, text: str, conversation: str | None = None, headers: dict[str, str] | None = None, **fields: Any
    ) -> httpx.Response:
        headers = {**(headers or {}), **({HEADER: conversation} if conversation else {})}
        body = {"model": "builtin/script", "messages": [{"role": "user", "content": text}], **fields}
        return await self.client.post(CHAT, json=body, headers=headers)

    @contextlib.asynccontextmanager
    async def streamed(
        self, text: str, conversation: str | None = None, model: str = "builtin/script", **headers: str
    ) -> AsyncIterator[AsyncIterator[Any]]:
        """The chunks of a stream, after the first one with a text. The end of the block hangs up."""
        named = {HEADER: conversation} if conversation else {}
        body = {"model": model, "stream": True, "messages": [{"role": "user", "content": text}]}
        async with self.client.stream("POST", CHAT, json=body, headers={**headers, **named}) as answer:
            assert answer.status_code == 200, await answer.aread()
            self.id = answer.headers[HEADER]
            chunks = payloads(answer)
            async for chunk in chunks:
                if text_of([chunk]):
                    break
            yield chunks

    @contextlib.asynccontextmanager
    async def followed(self) -> AsyncIterator[AsyncIterator[Any]]:
        async with self.client.stream("GET", f"/conversations/{self.id}/stream") as answer:
            assert answer.status_code == 200, await answer.aread()
            yield payloads(answer)

    async def until_answering(self) -> None:
        async with asyncio.timeout(5):
            while not await self.answering():
                await asyncio.sleep(0.01)

    async def get(self, path: str) -> Any:
        answer = await self.client.get(path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def answering(self) -> bool:
        return bool((await self.get(f"/conversations/{self.id}"))["answering"])

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
    deltas = [choice["delta"] for chunk in chunks for choice in chunk.get("choices", ())]
    return "".join(delta.get(name) or "" for delta in deltas for name in ("content", "refusal"))
