"""Coming in and leaving: sign-up, sign-in, an expired session, sign-out in every tab."""

import pytest
from playwright.async_api import Browser, expect

from tests.support.browser import LOOKS, PASSWORD, findings, new_context, signed_up
from tests.support.server import RunningServer

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.asyncio(loop_scope="module")]


@pytest.mark.parametrize(("width", "theme"), LOOKS)
async def test_axe_finds_nothing_on_the_first_visit(server: RunningServer, browser: Browser, width: int, theme: str) -> None:
    async with new_context(browser, server, width=width, color_scheme=theme) as context:
        page = await context.new_page()
        await page.goto("/")
        await page.get_by_role("button", name="Create account").wait_for()
        assert await findings(page) == []


async def test_a_session_outlives_a_reload_and_ends_in_every_tab_at_once(server: RunningServer, browser: Browser) -> None:
    async with new_context(browser, server) as context:
        page = await signed_up(context, "tabs@example.com")
        other = await context.new_page()
        await other.goto("/")
        await other.locator(".shell").wait_for()
        await page.reload()
        await page.get_by_role("button", name="tabs@example.com").click()
        await page.get_by_role("menuitem", name="Sign out").click()
        for tab in (page, other):
            await expect(tab.get_by_role("heading", name="Sign in")).to_be_visible()
        assert await page.evaluate("Object.keys(localStorage)") == ["svc-known"]


async def test_an_expired_session_asks_for_the_password_in_place(server: RunningServer, browser: Browser) -> None:
    async with new_context(browser, server, allow=["401"]) as context:
        page = await signed_up(context, "expiry@example.com")
        refused = {"error": {"message": "The session is over.", "type": "authentication_error", "code": "session_expired"}}
        await page.route("**/billing/account", lambda route: route.fulfill(status=401, json=refused), times=1)
        await page.reload()
        dialog = page.get_by_role("dialog", name="Your session has ended")
        await dialog.get_by_label("Password").fill(PASSWORD)
        await dialog.get_by_role("button", name="Go on").click()
        await expect(dialog).to_be_hidden()
