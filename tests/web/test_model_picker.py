"""The model picker with an operator's catalog."""

import asyncio

from playwright.async_api import Browser, expect

from tests.support.browser import WITH_BROWSER, new_visitor, signed_in
from tests.support.mail_server import MailBox
from tests.support.server import RunningServer

pytestmark = WITH_BROWSER


async def test_model_picker_and_settings_list_a_model_once_without_its_aliases(
    browser: Browser, equipped: tuple[RunningServer, MailBox]
) -> None:
    async with signed_in(browser, equipped[0]) as page:
        await page.get_by_role("button", name="Model:").click()
        await page.get_by_role("combobox", name="Search models").fill("gpt")
        await expect(page.get_by_role("option")).to_have_count(1)
        await expect(page.get_by_role("option")).to_contain_text("gpt-large")
        await page.goto("/#/settings")
        await expect(page.locator("option", has_text="lab/gpt-large").first).to_be_attached()
        await expect(page.locator("option", has_text="gpt-5")).to_have_count(0)


async def test_model_that_is_the_path_of_a_file_is_shown_as_the_file(server: RunningServer, browser: Browser) -> None:
    visitor = await asyncio.to_thread(new_visitor, server, model="mine//srv/models/foo.gguf")
    async with server.client(headers=visitor.headers) as client:
        provider = {"name": "mine", "base_url": "http://127.0.0.1:9/v1", "models": ["/srv/models/foo.gguf"]}
        assert (await client.post("/user/providers", json=provider)).status_code == 201
    async with signed_in(browser, server, visitor=visitor) as page:
        await expect(page.get_by_role("button", name="Model:")).to_have_text("foo.gguf")
        await page.get_by_role("button", name="Model:").click()
        await page.get_by_role("combobox", name="Search models").fill("foo")
        await expect(page.get_by_role("option")).to_have_count(1)
        await expect(page.get_by_role("option")).not_to_contain_text("srv")
        await page.goto("/#/settings")
        await expect(page.locator("option", has_text="mine/foo.gguf").first).to_be_attached()
