"""What a person owns, on the page: keys, providers, the wallet, settings, support."""

import asyncio
import io
import re
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.support.browser import LOOKS, PASSWORD, findings, new_context, signed_up
from tests.support.people import command
from tests.support.server import RunningServer

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.asyncio(loop_scope="module")]
EVIL = '<img src=x onerror="document.title=1"><script>document.title=2</script>'
PROVIDER = {"name": "mine", "base_url": "http://127.0.0.1:9/v1", "api_key": "sk-0123456789"}
VIEWS = ("keys", "providers", "wallet", "settings", "support")


async def call(page: Page, method: str, path: str, body: object = None) -> None:
    """A request with the page's own session, as another program would send it."""
    status = await page.evaluate(
        """async ([method, path, body]) => {
            const authorization = `Bearer ${JSON.parse(localStorage["svc.session"]).token}`;
            const headers = { authorization, "content-type": "application/json" };
            return (await fetch(path, { method, body: body && JSON.stringify(body), headers })).status;
        }""",
        [method, path, body],
    )
    assert status < 300, (path, status)


async def spend(page: Page) -> None:
    await call(page, "POST", "/v1/images/generations", {"prompt": "the sea"})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def used(server: RunningServer, browser: Browser) -> AsyncIterator[object]:
    """What the browser remembers of an account that has something in every view."""
    async with new_context(browser, server) as context:
        page = await signed_up(context, "owner@example.com")
        await asyncio.to_thread(command, server, "credit", "owner@example.com", "25")
        await spend(page)
        await call(page, "POST", "/user/api-keys", {"name": EVIL})
        await call(
            page, "POST", "/user/providers", {"name": "mine", "base_url": "http://127.0.0.1:9/v1", "api_key": "sk-0123456789"}
        )
        await call(page, "POST", "/support/conversations", {"subject": EVIL, "message": EVIL})
        yield await context.storage_state()


@pytest.mark.parametrize(("width", "theme"), LOOKS)
async def test_axe_finds_nothing_and_markup_stays_text(
    server: RunningServer, browser: Browser, used: object, width: int, theme: str
) -> None:
    async with new_context(browser, server, width=width, color_scheme=theme, storage_state=used) as context:
        page = await context.new_page()
        for view in VIEWS:
            await page.goto(f"/#/{view}")
            await page.locator(".page").wait_for()
            await expect(page.locator(".state")).to_have_count(0)
            assert await findings(page) == [], view
            assert await page.title() not in ("1", "2")
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{view} is wider than the screen"


async def test_a_key_is_shown_once_works_and_is_deleted(server: RunningServer, browser: Browser) -> None:
    async with new_context(browser, server) as context:
        page = await signed_up(context, "keys@example.com", "/#/keys")
        await page.get_by_role("button", name="New key").first.click()
        await page.get_by_label("Name").fill("my laptop")
        await page.get_by_role("button", name="Create key").click()
        key = await page.locator(".secret code").inner_text()
        assert re.fullmatch(r"svc-v1-\w{42}", key)
        await page.keyboard.press("Escape")  # it closes by its button alone
        await page.get_by_role("tab", name="Python").click()
        await expect(page.get_by_role("tabpanel")).to_contain_text(f'api_key="{key}"')
        async with server.client(headers={"authorization": f"Bearer {key}"}) as client:
            body = {"model": "builtin/echo", "messages": [{"role": "user", "content": "hi"}]}
            assert (await client.post("/v1/chat/completions", json=body)).status_code == 200
            await page.get_by_role("button", name="I have kept it").click()
            await expect(page.locator("body")).not_to_contain_text(key)
            await page.get_by_role("button", name="Delete the key my laptop").click()
            await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
            await expect(page.get_by_text("No keys yet")).to_be_visible()
            assert (await client.get("/user/me")).status_code == 401


async def test_a_provider_is_tested_and_edited_without_its_key_being_shown(server: RunningServer, browser: Browser) -> None:
    async with new_context(browser, server, allow=["status of 502"]) as context:
        page = await signed_up(context, "byok@example.com", "/#/providers")
        await page.get_by_role("button", name="Add a provider").first.click()
        await page.get_by_label("Name").fill("mine")
        await page.get_by_label("Base address").fill("http://127.0.0.1:9/v1")
        await page.get_by_label("API key").fill("sk-secret-0123456789")
        await page.get_by_label("Models").fill("big\npainter image")
        await page.get_by_role("button", name="Add", exact=True).click()
        await expect(page.locator(".list")).to_contain_text("2 models")
        await page.get_by_role("button", name="Test").click()
        await expect(page.get_by_role("alert")).to_contain_text("did not answer")
        await page.get_by_role("button", name="Actions for mine").click()
        await page.get_by_role("menuitem", name="Edit").click()
        await expect(page.get_by_label("API key")).to_have_value("")
        await expect(page.get_by_label("Models")).to_have_value("big\npainter image")
        await page.get_by_label("Base address").fill("http://127.0.0.1:10/v1")
        await expect(page.get_by_text("the stored one is dropped")).to_be_visible()
        await page.get_by_role("button", name="Save").click()
        await expect(page.locator(".list")).to_contain_text("no key")


async def test_the_wallet_shows_money_spend_and_ledger_and_gives_it_as_csv(
    server: RunningServer, browser: Browser, used: object, tmp_path: Path
) -> None:
    async with new_context(browser, server, storage_state=used) as context:
        page = await context.new_page()
        await page.goto("/#/wallet")
        await expect(page.locator(".figure-value").first).to_have_text("$24.98")
        await expect(page.locator(".page .notice-warn")).to_contain_text("Test money")
        await page.get_by_role("img", name="Spend per day").focus()
        await page.keyboard.press("End")
        await expect(page.locator(".chart-said")).to_contain_text("builtin/paint $0.02")
        await page.get_by_text("As a table").click()
        await expect(page.locator(".table tbody tr")).to_have_count(1)
        await page.get_by_label("Show").select_option("credit")
        await expect(page.locator(".list > li")).to_have_count(1)
        async with page.expect_download() as waiting:
            await page.get_by_role("button", name="Download as CSV").click()
        await (await waiting.value).save_as(tmp_path / "ledger.csv")
        lines = (tmp_path / "ledger.csv").read_text().splitlines()
        assert len(lines) == 3 and ",25000000," in lines[2] and ",-20000," in lines[1]


async def test_funds_are_added_in_the_hosted_checkout(server: RunningServer, browser: Browser) -> None:
    async with new_context(browser, server) as context:
        page = await signed_up(context, "funds@example.com", "/#/wallet")
        await page.get_by_role("link", name="Add funds").click()
        await page.wait_for_url("**/checkout")
        await page.get_by_role("button").first.click()
        await page.wait_for_url("**/checkout/sandbox/**")
        await page.get_by_role("button", name=re.compile("Pay")).first.click()
        await page.wait_for_url("**/checkout/return**")
        await page.goto("/#/wallet")
        await expect(page.locator(".figure-value").nth(2)).to_have_text("Pro")


async def test_the_low_balance_is_told_once_a_day(server: RunningServer, browser: Browser) -> None:
    async with new_context(browser, server) as context:
        page = await signed_up(context, "low@example.com")
        await expect(page.locator(".wallet-chip")).to_contain_text("Test money")
        await asyncio.to_thread(command, server, "credit", "low@example.com", "0.75")
        await page.reload()
        await expect(page.locator(".toast")).to_contain_text("down to $0.75")
        await page.get_by_role("button", name="Go to the wallet").click()
        await expect(page.get_by_role("heading", name="Wallet")).to_be_visible()
        await page.reload()
        await page.locator(".figure-value").first.wait_for()
        await expect(page.locator(".toast")).to_have_count(0)


async def test_settings_are_kept_and_everything_can_be_taken_along(
    server: RunningServer, browser: Browser, tmp_path: Path
) -> None:
    async with new_context(browser, server) as context:
        page = await signed_up(context, "settings@example.com", "/#/settings")
        await page.get_by_label("Name").fill("Ada Lovelace")
        await page.get_by_role("button", name="Save").click()
        await page.get_by_label("Default model").select_option("builtin/echo")
        await page.get_by_role("switch", name="Memory").uncheck()
        await page.get_by_label("Theme").select_option("dark")
        await page.reload()
        await expect(page.get_by_label("Name")).to_have_value("Ada Lovelace")
        await expect(page.locator(".account-name")).to_have_text("Ada Lovelace")
        await expect(page.get_by_label("Default model")).to_have_value("builtin/echo")
        await expect(page.get_by_role("switch", name="Memory")).not_to_be_checked()
        assert await page.evaluate("document.documentElement.dataset.theme") == "dark"
        async with page.expect_download() as waiting:
            await page.get_by_role("button", name="Export everything").click()
        await (await waiting.value).save_as(tmp_path / "export.zip")
        assert zipfile.ZipFile(io.BytesIO((tmp_path / "export.zip").read_bytes())).namelist()


async def test_an_account_is_deleted_after_its_email_is_typed(server: RunningServer, browser: Browser) -> None:
    async with new_context(browser, server, allow=["status of 401", "status of 403"]) as context:
        page = await signed_up(context, "leaver@example.com", "/#/settings")
        await page.get_by_role("button", name="Delete my account").click()
        dialog = page.get_by_role("dialog")
        await dialog.get_by_label("to confirm").fill("other@example.com")
        await dialog.get_by_label("Password").fill(PASSWORD)
        await dialog.get_by_role("button", name="Delete my account").click()
        await expect(dialog).to_contain_text("not the e-mail of this account")
        await dialog.get_by_label("to confirm").fill("leaver@example.com")
        await dialog.get_by_role("button", name="Delete my account").click()
        await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        with httpx.Client(base_url=server.base_url, verify=server.tls or False) as client:
            assert client.post("/auth/login", json={"email": "leaver@example.com", "password": PASSWORD}).status_code == 401


async def test_an_operators_answer_appears_by_itself(server: RunningServer, browser: Browser) -> None:
    async with new_context(browser, server) as context:
        page = await signed_up(context, "desk@example.com", "/#/support")
        await expect(page.get_by_text("Support comes with Pro")).to_be_visible()
        await asyncio.to_thread(command, server, "credit", "desk@example.com", "5")
        await page.reload()
        await page.get_by_label("Message").fill("The pictures are too small")
        await page.get_by_role("button", name="Send").click()
        await page.wait_for_url("**/#/support/sup_*")
        support_id = page.url.rpartition("/")[2]
        await asyncio.to_thread(command, server, "support", "reply", support_id, "Ask for 1024x1024")
        await expect(page.locator(".desk-messages")).to_contain_text("Ask for 1024x1024", timeout=9000)
        await page.get_by_role("button", name="Close the conversation").click()
        await page.get_by_role("dialog").get_by_role("button", name="Close the conversation").click()
        await expect(page.get_by_text("This conversation is closed")).to_be_visible()
