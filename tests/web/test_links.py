"""The pages that the links in e-mails open: a new password, and the proof of an address."""

import sqlite3
import time
from contextlib import closing

import pytest
from playwright.async_api import Browser, expect

from svc.auth import accounts, links
from tests.support.browser import LOOKS, PASSWORD, findings, new_context, signed_up
from tests.support.server import RunningServer

# A link tells the page no name: that is nobody's business but the person's.
HINTS = ["Password forms should have"]
pytestmark = [pytest.mark.needs("chromium"), pytest.mark.asyncio(loop_scope="module")]


def make_link(server: RunningServer, email: str, purpose: str) -> str:
    """A mailed link of this account: its token."""
    with closing(sqlite3.connect(server.data_dir / "service.db", isolation_level=None, timeout=10)) as tx:
        tx.row_factory = sqlite3.Row
        account = accounts.account_by_email(tx, email)
        assert account is not None
        token = links.new_link_token(proved=account.email_verified)
        assert links.add_link(tx, account.id, purpose, token, by_mail=True, now_seconds=time.time())
    return token


@pytest.mark.parametrize(("width", "theme"), LOOKS)
@pytest.mark.parametrize("path", ["/password-reset#tokenu", "/verify-email#tokenu"])
async def test_axe_finds_nothing_on_the_pages_of_links(
    server: RunningServer, browser: Browser, path: str, width: int, theme: str
) -> None:
    async with new_context(browser, server, width=width, color_scheme=theme, allow=HINTS) as context:
        page = await context.new_page()
        await page.goto(path)
        await page.get_by_role("button").wait_for()
        assert await findings(page) == []


async def test_the_box_is_ticked_where_the_address_was_never_proved_and_deletes_the_keys(
    server: RunningServer, browser: Browser
) -> None:
    async with new_context(browser, server, allow=HINTS) as context:
        await signed_up(context, "links@example.com")
        page = await context.new_page()
        for ticked in (True, False):
            await page.goto("/docs")  # else only the fragment changes
            await page.goto(f"/password-reset#{make_link(server, 'links@example.com', 'reset')}")
            box = page.get_by_label("Delete the API keys and providers of this account")
            await expect(box).to_be_checked(checked=ticked)
            await expect(page.get_by_text("Sessions that are open now end by themselves within 8 hours")).to_be_visible()
            await page.get_by_label("New password").fill(PASSWORD)
            await page.get_by_label("The same again").fill(PASSWORD)
            await page.get_by_role("button", name="Set the password").click()
            await expect(page.get_by_role("status")).to_contain_text("Your password is set")
            assert page.url.endswith("/password-reset"), "the token has left the address bar"


async def test_the_address_is_proved_by_a_click_and_once(server: RunningServer, browser: Browser) -> None:
    async with new_context(browser, server, allow=["400"]) as context:
        await signed_up(context, "proof@example.com")
        page = await context.new_page()
        token = make_link(server, "proof@example.com", "verify")
        for told in ("Your e-mail is confirmed", "not valid any more"):
            await page.goto("/docs")
            await page.goto(f"/verify-email#{token}")
            await page.get_by_role("button", name="Confirm that this address is mine").click()
            await expect(page.locator("[role=status], [role=alert]").filter(has_text=told)).to_be_visible()
