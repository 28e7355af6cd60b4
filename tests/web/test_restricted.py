"""What a person may not use is not offered: own servers under `own_providers = false`, the administration."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.support.browser import PASSWORD, WITH_BROWSER, empty_page, findings, new_visitor, signed_in
from tests.support.people import command
from tests.support.server import RunningServer, running_server

pytestmark = WITH_BROWSER


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def restricted(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    folder = tmp_path_factory.mktemp("restricted")
    (folder / "catalog.toml").write_text("[access]\nown_providers = false\n")
    async with running_server(folder, {"SVC_CATALOG": str(folder / "catalog.toml")}) as server:
        yield server


@pytest.mark.parametrize("width", [390, 1440])
async def test_own_servers_are_not_offered_where_they_are_not_allowed(
    restricted: RunningServer, browser: Browser, width: int
) -> None:
    async with signed_in(browser, restricted, width=width) as page:
        await page.locator(".greeting").wait_for()
        await expect(
            page.get_by_role("button", name="Model: builtin/assistant")
        ).to_be_visible()  # the settings are there
        await expect(page.get_by_text("Connect a language model")).to_have_count(0)
        for view, none in (("providers", "No providers yet"), ("tool-servers", "No tool servers yet")):
            await page.goto(f"/#/{view}")
            await expect(page.get_by_text("does not allow own model servers and tool servers")).to_be_visible()
            await expect(page.get_by_text(none)).to_be_visible()
            await expect(page.get_by_role("button", name="Add")).to_have_count(0)
            assert await findings(page) == []


async def test_own_servers_are_offered_where_they_are_allowed(server: RunningServer, browser: Browser) -> None:
    async with signed_in(browser, server) as page:
        await expect(page.get_by_text("Connect a language model")).to_be_visible()
        for view in ("providers", "tool-servers"):
            await page.goto(f"/#/{view}")
            await expect(page.get_by_role("button", name="Add")).to_have_count(2)


async def test_administration_opens_directly_after_the_sign_in(server: RunningServer, browser: Browser) -> None:
    visitor = await asyncio.to_thread(new_visitor, server)
    command(server, "user", "admin", visitor.email, "on")
    async with empty_page(browser, server) as page:
        await page.goto("/#/admin")
        await page.get_by_role("button", name="Sign in").first.click()
        await page.get_by_label("Email").fill(visitor.email)
        await page.get_by_label("Password", exact=True).fill(PASSWORD)
        await page.keyboard.press("Enter")
        for _ in range(2):  # after a reload, too
            await expect(page.get_by_role("heading", name="Administration")).to_be_visible()
            await expect(page.locator(".part-tabs [aria-current=page]")).to_have_text("Users")
            await expect(page.get_by_role("link", name="Administration")).to_have_attribute("aria-current", "page")
            await expect(page.locator(".list li, tbody tr").first).to_be_visible()
            assert await page.title() == "Administration · svc"
            await page.reload()
