"""The Memory view: the switch, what a question recalls, forget and undo."""

import asyncio

from playwright.async_api import Browser, expect

from tests.support.browser import WIDTHS, WITH_BROWSER, findings, new_visitor, signed_in
from tests.support.browser_chat import keep_conversation
from tests.support.server import RunningServer

pytestmark = [*WITH_BROWSER, WIDTHS]


async def test_memory_is_searched_forgotten_and_remembered(server: RunningServer, browser: Browser, width: int) -> None:
    visitor = await asyncio.to_thread(new_visitor, server, model="builtin/echo")
    await asyncio.to_thread(keep_conversation, server, visitor, ["My zebra is called Zora.", "It rains."])
    async with signed_in(browser, server, "/#/settings", visitor=visitor, width=width) as page:
        await page.get_by_role("link", name="Memory").click()
        items = page.locator("#content li")
        await expect(items).to_have_count(2)
        await page.get_by_label("Show what a question recalls").fill("What is my zebra called?")
        await page.get_by_role("button", name="Search", exact=True).click()
        await expect(items).to_have_count(1)
        await expect(items).to_contain_text("Zora")
        assert await findings(page) == []
        await items.get_by_role("button", name="Forget").click()
        await expect(page.get_by_text("Nothing is recalled.")).to_be_visible()
        await page.get_by_role("button", name="Undo").click()
        await expect(items).to_have_count(1)
        await items.get_by_role("button", name="Forget").click()
        await page.get_by_label("Show forgotten messages").check()
        await expect(items).to_contain_text("Zora")
        await items.get_by_role("button", name="Remember").click()
        await expect(page.get_by_text("No message is forgotten.")).to_be_visible()
        await page.get_by_label("Show forgotten messages").uncheck()
        await items.get_by_role("link").click()
        await expect(page.locator(".message", has_text="Zora")).to_be_visible()


async def test_memory_is_switched_off(server: RunningServer, browser: Browser, width: int) -> None:
    async with signed_in(browser, server, "/#/memory", width=width) as page:
        switch = page.get_by_role("switch", name="Memory")
        async with page.expect_response(lambda answer: answer.request.method == "PATCH") as changed:
            await switch.uncheck()
        assert (await (await changed.value).json())["memory_enabled"] is False
