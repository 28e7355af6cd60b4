"""The pages of links in emails: a new password, and the verification of an address."""

import asyncio
import time

from playwright.async_api import Browser, expect

from svc.auth import accounts, links
from tests.support.browser import PASSWORD, WITH_BROWSER, Visitor, database, new_visitor, signed_in
from tests.support.server import RunningServer

# A link gives the page no name, for privacy.
HINTS = ["Password forms should have"]
pytestmark = WITH_BROWSER


def make_link(server: RunningServer, visitor: Visitor, purpose: str) -> str:
    """A mailed link of this account: its token."""
    with database(server) as tx:
        account = accounts.account_by_id(tx, visitor.id)
        assert account is not None
        link = links.add_link(tx, account, purpose, time.time())
        assert link is not None
    return link[1]


async def test_delete_keys_is_ticked_for_an_unverified_address(server: RunningServer, browser: Browser) -> None:
    visitor = await asyncio.to_thread(new_visitor, server)
    async with signed_in(browser, server, visitor=visitor, allow=HINTS) as page:
        for ticked in (True, False):
            await page.goto("about:blank")  # else only the fragment changes
            await page.goto(f"/password-reset#{make_link(server, visitor, 'reset')}")
            box = page.get_by_label("Delete all API keys and model providers")
            await expect(box).to_be_checked(checked=ticked)
            await expect(page.get_by_text("Open sessions end within 8 hours")).to_be_visible()
            await page.get_by_label("New password", exact=True).fill(PASSWORD)
            await page.get_by_label("Confirm new password").fill(PASSWORD)
            await page.get_by_role("button", name="Set new password").click()
            await expect(page.get_by_role("status")).to_contain_text("Your password was changed")
            assert page.url.endswith("/password-reset"), "the token has left the address bar"


async def test_verification_link_works_once(server: RunningServer, browser: Browser) -> None:
    visitor = await asyncio.to_thread(new_visitor, server)
    async with signed_in(browser, server, visitor=visitor, allow=["400"]) as page:
        token = make_link(server, visitor, "verify")
        for told in ("Your email is verified", "no longer valid"):
            await page.goto("about:blank")
            await page.goto(f"/verify-email#{token}")
            await page.get_by_role("button", name="Verify email").click()
            await expect(page.locator("[role=status], [role=alert]").filter(has_text=told)).to_be_visible()
