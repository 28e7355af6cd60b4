"""The model picker with an operator's catalog."""

import asyncio

from playwright.async_api import Browser, Route, expect

from tests.support.browser import WITH_BROWSER, findings, new_visitor, signed_in
from tests.support.browser_chat import answered, say
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


async def test_model_that_is_gone_when_it_is_asked_is_replaced_by_the_default(
    server: RunningServer, browser: Browser
) -> None:
    visitor = await asyncio.to_thread(new_visitor, server, model="mine/one")
    async with server.client(headers=visitor.headers) as client:
        provider = {"name": "mine", "base_url": "http://127.0.0.1:9/v1", "models": ["one"]}
        made = await client.post("/user/providers", json=provider)
    async with (
        server.client(headers=visitor.headers) as client,
        signed_in(browser, server, visitor=visitor, allow=["404"]) as page,
    ):
        picker = page.get_by_role("button", name="Model:")
        await expect(picker).to_have_accessible_name("Model: mine/one")
        await client.delete(f"/user/providers/{made.json()['id']}")
        await say(page, "Hello")
        await expect(page.get_by_role("main").get_by_role("alert")).to_contain_text("There is no model 'mine/one'")
        await expect(page.get_by_text("mine/one is no longer available. The default model is used")).to_be_visible()
        await expect(picker).to_have_accessible_name("Model: builtin/assistant")
        assert await findings(page) == []
        await page.get_by_role("main").get_by_role("button", name="Try again").click()
        await answered(page)
        await expect(page.locator(".said-user .said")).to_have_text(["Hello"])


async def test_picker_says_which_gguf_files_load_or_failed(server: RunningServer, browser: Browser) -> None:
    states = {"builtin/echo": "loading", "builtin/script": "failed"}

    async def with_states(route: Route) -> None:
        found = await (await route.fetch()).json()
        found["data"] = [{**one, "state": states.get(one["id"], "ready")} for one in found["data"]]
        await route.fulfill(json=found)

    async with signed_in(browser, server) as page:
        await page.route("**/v1/models", with_states)
        await page.reload()
        await page.get_by_role("button", name="Model:").click()
        await expect(page.get_by_role("option", name="echo")).to_contain_text("builtin · loading")
        await expect(page.get_by_role("option", name="script")).to_contain_text("builtin · could not be loaded")
        assert await findings(page) == []
        await page.keyboard.press("Escape")
        states.clear()  # it is asked again when the picker opens
        await page.get_by_role("button", name="Model:").click()
        await expect(page.get_by_role("option", name="echo")).not_to_contain_text("loading")
