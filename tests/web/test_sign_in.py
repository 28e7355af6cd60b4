"""Coming in and leaving: sign-up, sign-in, an expired session, sign-out in every tab."""

import time
from pathlib import Path

from playwright.async_api import Browser, expect

from svc.auth import accounts, links
from svc.schema import command_connection
from tests.support.browser import WITH_BROWSER, new_context, signed_in, user_of
from tests.support.server import RunningServer, running_server

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


async def test_page_offers_neither_a_closed_sign_up_nor_a_mail_that_is_not_sent(
    tmp_path: Path, browser: Browser
) -> None:
    async with (
        running_server(tmp_path, {"SVC_SIGNUP": "closed"}) as server,
        new_context(browser, server, allow=["Password forms should have"]) as context,
    ):
        page = await context.new_page()
        await page.goto("/")
        await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        await expect(page.get_by_text("Sign-up is closed.")).to_be_visible()
        await expect(page.get_by_role("button", name="Create an account")).to_have_count(0)
        await page.get_by_role("button", name="Forgot your password?").click()
        await expect(page.get_by_text("This service sends no email.")).to_be_visible()
        assert await page.locator("input").count() == 0
        await page.get_by_role("button", name="Back to sign-in").click()
        await expect(page.get_by_label("Email")).to_be_visible()


async def test_without_passwords_the_page_has_the_providers_only(tmp_path: Path, browser: Browser) -> None:
    settings = {"ISSUER": "https://id.example", "CLIENT_ID": "svc", "CLIENT_SECRET": "secret"}
    env = {"SVC_PASSWORDS": "0", **{f"SVC_OAUTH_LAB_{name}": value for name, value in settings.items()}}
    async with running_server(tmp_path, env) as server:
        with command_connection(server.data_dir / "service.db") as tx:
            account = accounts.add_account(tx, "ada@example.com", None, None, time.time())
            accounts.verify_email(tx, account.id, time.time())
            link = links.add_link(tx, accounts.existing_account(tx, account.id), "reset", time.time(), by_mail=False)
            assert link is not None
        async with new_context(browser, server, allow=["Password forms should have"]) as context:
            page = await context.new_page()
            await page.goto("/")
            await expect(page.get_by_role("link", name="lab")).to_have_attribute(
                "href", f"{server.base_url}/auth/oauth/lab"
            )
            assert await page.locator("input").count() == 0
            await page.goto(f"/password-reset#{link[1]}")
            await expect(page.get_by_label("New password", exact=True)).to_be_hidden()
            await page.get_by_role("button", name="Sign in").click()
            await page.locator(".shell").wait_for()
            assert (await user_of(page))["email"] == "ada@example.com"
