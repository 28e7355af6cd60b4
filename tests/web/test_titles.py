"""The title of a new conversation arrives in the page after its first answer, and the settings say who makes it."""

import asyncio

from playwright.async_api import Browser, expect

from tests.support.browser import WIDTHS, WITH_BROWSER, new_visitor, signed_in
from tests.support.browser_chat import answered, say
from tests.support.model_server import ModelServer
from tests.support.server import RunningServer

pytestmark = [*WITH_BROWSER, WIDTHS]


async def test_title_arrives_after_the_first_answer(server: RunningServer, browser: Browser, width: int) -> None:
    visitor = await asyncio.to_thread(new_visitor, server, model="mine/ok")
    async with ModelServer() as models, server.client(headers=visitor.headers) as client:
        provider = {"name": "mine", "base_url": models.base_url, "models": ["ok"]}
        assert (await client.post("/user/providers", json=provider)).status_code == 201
        async with signed_in(browser, server, "/#/chat", visitor=visitor, width=width) as page:
            await say(page, "Where do walruses live?")
            await answered(page)
            await expect(page.locator("h1")).not_to_have_text("Where do walruses live?")
            (conversation,) = (await client.get("/conversations")).json()["data"]
            await expect(page.locator("h1")).to_have_text(conversation["title"])


async def test_setting_of_titles_is_changed(server: RunningServer, browser: Browser, width: int) -> None:
    async with signed_in(browser, server, "/#/settings", width=width) as page:
        async with page.expect_response(lambda answer: answer.request.method == "PATCH") as changed:
            await page.get_by_label("Titles of new chats").select_option("never")
        assert (await (await changed.value).json())["generate_titles"] == "never"
