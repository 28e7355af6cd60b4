"""The path of one person from the first visit to the last, and sign-in with an independent provider."""

import re
from pathlib import Path

import httpx
from playwright.async_api import Browser, expect

from tests.routes.test_oauth_process import issuer as issuer  # a fixture
from tests.routes.test_oauth_process import serving
from tests.support.browser import PASSWORD, WITH_BROWSER, empty_page, sign_up
from tests.support.browser_chat import answered, choose_model, say
from tests.support.server import RunningServer

pytestmark = WITH_BROWSER


async def test_from_sign_up_through_chat_agent_key_and_funds_to_deletion(
    server: RunningServer, browser: Browser
) -> None:
    async with empty_page(browser, server, allow=["401", "403"]) as page:
        email = await sign_up(page)
        await page.get_by_role("button", name="What is 12 * (3 + 4)?").click()
        await expect(page.locator(".said-assistant .md")).to_contain_text("84")
        await expect(page.get_by_role("link", name="What is 12 * (3 + 4)?")).to_be_visible()
        await page.reload()
        await expect(page.locator(".said-assistant .md")).to_contain_text("84")
        await expect(page.locator(".facts")).to_contain_text("tokens")

        await page.get_by_role("link", name="Agents").click()
        await page.get_by_label("Goal").fill("What is 6 * 7?")
        await page.get_by_role("button", name="Run", exact=True).click()
        await expect(page.locator(".run-end-final")).to_contain_text("42")

        await page.get_by_role("button", name=email).click()
        await page.get_by_role("menuitem", name="API keys").click()
        await page.get_by_role("button", name="New key").first.click()
        await page.get_by_label("Name").fill("curl")
        await page.get_by_role("button", name="Create key").click()
        await page.get_by_role("button", name="Done").click()

        await page.locator(".wallet-chip").click()
        await page.get_by_role("link", name="Add funds").click()
        await page.wait_for_url("**/checkout")
        await page.get_by_role("button").first.click()
        await page.get_by_role("button", name=re.compile("Pay")).first.click()
        await page.wait_for_url("**/checkout/return**")
        await page.goto("/#/wallet")
        await expect(page.locator(".figure-value").nth(2)).to_have_text("Pro")
        await page.goto("/#/chat")
        await choose_model(page, "paid")
        await say(page, "What is 5 + 6?")
        await answered(page)
        await expect(page.locator(".facts .money")).to_contain_text("$0.0")

        await page.goto("/#/settings")
        await page.get_by_role("button", name="Delete account").click()
        dialog = page.get_by_role("dialog")
        await dialog.get_by_label("to confirm").fill("other@example.com")
        await dialog.get_by_label("Password").fill(PASSWORD)
        await dialog.get_by_role("button", name="Delete account").click()
        await expect(dialog).to_contain_text("not the email address of this account")
        await dialog.get_by_label("to confirm").fill(email)
        await dialog.get_by_role("button", name="Delete account").click()
        await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        assert await page.evaluate("Object.keys(localStorage)") == ["svc-known"]
        async with server.client() as client:
            answer = await client.post("/auth/login", json={"email": email, "password": PASSWORD})
        assert answer.status_code == 401


async def test_sign_in_elsewhere_returns_to_the_same_page_and_can_be_unlinked_and_linked_again(
    tmp_path: Path, browser: Browser, issuer: str
) -> None:
    httpx.put(
        f"{issuer}/users/ada", json={"email": "ada@example.com", "email_verified": True, "name": "Ada"}
    ).raise_for_status()
    async with serving(tmp_path, issuer) as server:
        context = await browser.new_context(base_url=server.base_url, ignore_https_errors=True)
        page = await context.new_page()

        async def sign_in_there() -> None:
            await page.wait_for_url(f"{issuer}/**")
            await page.locator("input[name=sub]").fill("ada")
            await page.locator("button[type=submit], input[type=submit]").first.click()
            await page.wait_for_url(f"{server.base_url}/**")

        await page.goto("/#/projects")
        await page.get_by_role("link", name="Continue with mock").click()
        await sign_in_there()
        await page.locator(".shell").wait_for()
        assert "code" not in page.url and page.url.endswith("#/projects")
        await expect(page.locator(".account-name")).to_contain_text(re.compile("ada", re.IGNORECASE))
        await page.goto("/#/settings")
        await expect(page.get_by_text("Not set. You sign in with an identity provider.")).to_be_visible()
        await page.get_by_role("button", name="Set password").click()
        dialog = page.get_by_role("dialog", name="Set password")
        await dialog.get_by_label("New password").fill(PASSWORD)
        await dialog.get_by_role("button", name="Set password").click()
        await expect(page.get_by_role("button", name="Change password")).to_be_visible()
        await page.get_by_role("button", name="Unlink").click()
        await page.get_by_role("dialog").get_by_role("button", name="Unlink").click()
        await expect(page.get_by_text("None linked.")).to_be_visible()
        await page.get_by_role("button", name="Link mock").click()
        await sign_in_there()
        await expect(page.locator(".toast")).to_contain_text("Linked.")
        await expect(page.locator(".item-title", has_text="mock")).to_be_visible()
        await context.close()


async def test_provider_error_is_shown_in_plain_words(server: RunningServer, browser: Browser) -> None:
    async with empty_page(browser, server) as page:
        await page.goto("/#error=access_denied")
        await expect(page.get_by_role("alert")).to_contain_text("rejected by the provider")
        await page.goto("about:blank")
        await page.goto("/#error=%3Cscript%3Ewindow.hit=1%3C/script%3E")
        await expect(page.get_by_role("alert")).to_contain_text("could not be reached")
        assert await page.evaluate("[window.hit, location.hash]") == [None, "#/chat"]
