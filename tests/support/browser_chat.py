"""What the tests of the page do in a chat."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from playwright.async_api import Page, expect
from playwright.async_api import Route as Routed

from svc.content import conversations, history
from tests.support.browser import Visitor, database
from tests.support.model_server import ModelServer
from tests.support.server import RunningServer

HELD = "echo+waits-after-2-chunks"  # repeats the question, and waits after its first word
OVER = {"message": "The session is over.", "type": "authentication_error", "code": "session_expired", "param": None}


async def say(page: Page, text: str) -> None:
    await page.get_by_label("Message", exact=True).fill(text)
    await page.keyboard.press("Enter")


async def choose_model(page: Page, name: str) -> None:
    """Choose the first model whose id contains `name`."""
    await page.get_by_role("button", name="Model:").click()
    await page.get_by_role("combobox", name="Search models").fill(name)
    await expect(page.get_by_role("option", selected=True)).to_contain_text(
        name
    )  # Enter chooses nothing before the list is loaded
    await page.keyboard.press("Enter")


async def answered(page: Page, times: int = 1) -> None:
    """Waits until so many answers stand there, the last one whole."""
    await page.locator(".said-assistant:not(.live)").nth(times - 1).wait_for()


async def refuse_once(page: Page, address: str, status: int, error: dict[str, Any]) -> None:
    """Has the next request to `address` answered with an error."""

    async def answer(route: Routed) -> None:
        await route.fulfill(status=status, json={"error": error})

    await page.route(address, answer, times=1)


def keep_conversation(server: RunningServer, visitor: Visitor, messages: Iterable[str]) -> str:
    """A conversation in which question and answer take turns; its id."""
    with database(server) as tx:
        kept = conversations.add_conversation(tx, visitor.id, 1.0, title="A kept one")
        for number, content in enumerate(messages):
            role = "assistant" if number % 2 else "user"
            history.add_message(
                tx, visitor.id, conversation_id=kept.id, role=role, content=content, now_seconds=2.0 + number
            )
    return kept.id


@asynccontextmanager
async def held_model(server: RunningServer, visitor: Visitor) -> AsyncIterator[ModelServer]:
    """A model server of `visitor` with the model `held/` HELD, whose answers continue when the test sets `release`."""
    async with ModelServer() as models, server.client(headers=visitor.headers) as client:
        provider = {"name": "held", "base_url": models.base_url, "api_key": "any", "models": [HELD]}
        assert (await client.post("/user/providers", json=provider)).status_code == 201
        yield models


@asynccontextmanager
async def steady_model(tokens: Sequence[str], a_second: int) -> AsyncIterator[str]:
    """The address of a model server that says `tokens`, so many a second: several at once where it comes late."""

    def chunk(delta: dict[str, str], reason: str | None = None) -> bytes:
        return (
            b"data: "
            + json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}).encode()
            + b"\n\n"
        )

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        began, said = time.monotonic(), 0
        while said < len(tokens):
            due = int((time.monotonic() - began) * a_second)
            writer.writelines(chunk({"content": token}) for token in tokens[said:due])
            said = max(said, due)
            await asyncio.sleep(1 / a_second)
        writer.writelines([chunk({}, "stop"), b"data: [DONE]\n\n"])
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    finally:
        server.close()
