"""A repeated click or a lost connection never costs twice: the page sends an Idempotency-Key with what it pays."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Browser, Page, Request, expect
from playwright.async_api import Route as Routed

from tests.support.browser import WITH_BROWSER, credit, database, signed_in
from tests.support.browser_chat import answered, choose_model, say
from tests.support.server import RunningServer

pytestmark = WITH_BROWSER
CHAT, IMAGES, SPEECH = "**/v1/chat/completions", "**/v1/images/generations", "**/v1/audio/generate"
FAILED = ["ERR_FAILED"]


def debits(server: RunningServer) -> int:
    with database(server) as conn:
        return int(conn.execute("SELECT count(*) FROM ledger WHERE kind = 'debit' AND model IS NOT NULL").fetchone()[0])


@asynccontextmanager
async def lost_once(page: Page, address: str) -> AsyncIterator[list[str | None]]:
    """Let the server answer the first request to `address`, and lose the answer. Yield the keys of all of them."""
    keys: list[str | None] = []

    async def lose(route: Routed) -> None:
        await route.fetch()
        await route.abort()

    def note(request: Request) -> None:
        if request.method == "POST" and address.removeprefix("**") in request.url:
            keys.append(request.headers.get("idempotency-key"))

    page.on("request", note)
    await page.route(address, lose, times=1)
    yield keys


async def test_picture_and_speech_that_are_asked_for_again_are_paid_once(
    server: RunningServer, browser: Browser
) -> None:
    async with signed_in(browser, server, "/#/media", allow=FAILED) as page:
        await credit(server, page, 5)
        before = await asyncio.to_thread(debits, server)
        await page.get_by_label("Describe the image").fill("A lighthouse")
        await page.get_by_label("Size").select_option("256x256")
        async with lost_once(page, IMAGES) as keys:
            await page.get_by_role("button", name="Generate").click()
            await page.get_by_role("alert").wait_for()
            await page.get_by_role("button", name="Generate").click()
            await page.locator(".gallery-item").wait_for()
            await expect(page.get_by_role("alert")).to_have_count(0)
        assert len(keys) == 2 and keys[0] == keys[1] is not None
        assert await asyncio.to_thread(debits, server) == before + 1
        await page.get_by_role("button", name="Generate").click()
        await expect(page.locator(".gallery-item")).to_have_count(2)  # another picture has another key
        assert len(set(keys)) == 2 and await asyncio.to_thread(debits, server) == before + 2
        await page.get_by_role("button", name="Speech", exact=True).click()
        await page.get_by_label("Text to speak").fill("Good evening.")
        async with lost_once(page, SPEECH) as keys:
            await page.get_by_role("button", name="Speak").click()
            await page.get_by_role("alert").wait_for()
            await page.get_by_role("button", name="Speak").click()
            await expect(page.locator("audio")).to_have_count(1)
        assert len(keys) == 2 and keys[0] == keys[1] is not None
        assert await asyncio.to_thread(debits, server) == before + 3


async def test_question_whose_answer_was_lost_is_stored_and_paid_once(server: RunningServer, browser: Browser) -> None:
    async with signed_in(browser, server, allow=[*FAILED, "ERR_INTERNET_DISCONNECTED"]) as page:
        await credit(server, page, 5)
        await page.reload()
        await choose_model(page, "assistant-paid")
        before = await asyncio.to_thread(debits, server)

        async def refuse(route: Routed) -> None:  # the page cannot find out whether the question is stored
            await (route.abort() if route.request.method == "GET" else route.continue_())

        await page.route("**/conversations/*/messages*", refuse)
        async with lost_once(page, CHAT) as keys:
            await say(page, "What is 2 + 2?")
            await page.get_by_role("alert").wait_for()
            await page.unroute("**/conversations/*/messages*")
            await expect(page.get_by_label("Message", exact=True)).to_have_value("What is 2 + 2?")
            await page.get_by_label("Message", exact=True).press("Enter")
            await answered(page)
        assert len(keys) == 2 and keys[0] == keys[1] is not None
        await expect(page.locator(".said-user")).to_have_count(1)
        assert await asyncio.to_thread(debits, server) == before + 1
        await page.reload()
        await answered(page)
        await expect(page.locator(".said-user")).to_have_count(1)
