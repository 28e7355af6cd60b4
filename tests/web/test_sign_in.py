"""Coming in and leaving: sign-up, sign-in, an expired session, sign-out in every tab."""

from playwright.async_api import Browser, expect

from tests.support.browser import PASSWORD, WITH_BROWSER, signed_in, user_of
from tests.support.browser_chat import OVER, refuse_once
from tests.support.server import RunningServer

pytestmark = WITH_BROWSER


async def test_session_survives_a_reload_and_ends_in_all_tabs(server: RunningServer, browser: Browser) -> None:
    async with signed_in(browser, server) as page:
        other = await page.context.new_page()
        await other.goto("/")
        await other.locator(".shell").wait_for()
        await page.reload()
        await page.get_by_role("button", name=(await user_of(page))["email"]).click()
        await page.get_by_role("menuitem", name="Sign out").click()
        for tab in (page, other):
            await expect(tab.get_by_role("heading", name="Sign in")).to_be_visible()
        assert await page.evaluate("Object.keys(localStorage)") == ["svc-known"]


async def test_expired_session_shows_the_password_form(server: RunningServer, browser: Browser) -> None:
    async with signed_in(browser, server, allow=["401"]) as page:
        await refuse_once(page, "**/billing/account", 401, OVER)
        await page.reload()
        dialog = page.get_by_role("dialog", name="Your session has expired")
        await dialog.get_by_label("Password").fill(PASSWORD)
        await dialog.get_by_role("button", name="Continue").click()
        await expect(dialog).to_be_hidden()
