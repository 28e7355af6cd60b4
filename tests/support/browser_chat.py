"""What the tests of the page do in a chat."""

from collections.abc import Iterable
from typing import Any

from playwright.async_api import Page
from playwright.async_api import Route as Routed

from svc.content import conversations, history
from tests.support.browser import Visitor, database
from tests.support.server import RunningServer

OVER = {"message": "The session is over.", "type": "authentication_error", "code": "session_expired", "param": None}


async def say(page: Page, text: str) -> None:
    """Sends a message."""
    await page.get_by_label("Message", exact=True).fill(text)
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
            history.add_message(tx, visitor.id, conversation_id=kept.id, role=role, content=content, now_seconds=2.0 + number)
    return kept.id
