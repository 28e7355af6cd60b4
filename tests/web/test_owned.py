"""What a person owns, on the page: keys, providers, the wallet, settings, support."""

import asyncio
import io
import re
import time
import zipfile
from pathlib import Path

from playwright.async_api import Browser, expect

from svc.billing import wallet
from svc.ids import new_id
from tests.support.browser import (
    WIDTHS,
    WITH_BROWSER,
    credit,
    database,
    findings,
    new_context,
    new_visitor,
    opened,
    signed_in,
)
from tests.support.browser_chat import choose_model
from tests.support.format_server import FormatServer
from tests.support.people import command
from tests.support.server import RunningServer

pytestmark = WITH_BROWSER


async def test_key_is_shown_once_and_can_be_deleted(server: RunningServer, browser: Browser) -> None:
    async with signed_in(browser, server, "/#/keys") as page:
        await page.get_by_role("button", name="New key").first.click()
        await page.get_by_label("Name").fill("my laptop")
        await page.get_by_role("button", name="Create key").click()
        key = await page.locator(".secret code").inner_text()
        assert re.fullmatch(r"svc-v1-\w{42}", key)
        await page.keyboard.press("Escape")  # it closes by its button alone
        await expect(page.get_by_role("dialog").get_by_role("tabpanel")).to_contain_text(f'SERVICE_API_KEY="{key}"')
        async with server.client(headers={"authorization": f"Bearer {key}"}) as client:
            body = {"model": "builtin/echo", "messages": [{"role": "user", "content": "hi"}]}
            assert (await client.post("/v1/chat/completions", json=body)).status_code == 200
            await page.get_by_role("button", name="Done").click()
            await expect(page.locator("body")).not_to_contain_text(key)
            await page.get_by_role("button", name="Delete key my laptop").click()
            await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
            await expect(page.get_by_text("No keys yet")).to_be_visible()
            assert (await client.get("/user/me")).status_code == 401


def spend(server: RunningServer, account_id: str, micros: int, key_id: str | None = None) -> None:
    """A settled call of this month."""
    hold_id, now = new_id("hold"), time.time()
    with database(server) as tx:
        wallet.hold(tx, account_id, hold_id, micros, now, key_id)
        call = {"model": "m", "input_tokens": 1, "output_tokens": 1, "request_id": "r", "key_id": key_id}
        assert wallet.settle(tx, account_id, hold_id, micros, **call, now_seconds=now) == micros


@WIDTHS
async def test_key_has_a_limit_that_can_be_changed(server: RunningServer, browser: Browser, width: int) -> None:
    visitor = await asyncio.to_thread(new_visitor, server, dollars=9)
    async with signed_in(browser, server, "/#/keys", visitor=visitor, width=width) as page:
        await page.get_by_role("button", name="New key").first.click()
        await page.get_by_label("Name").fill("nightly")
        await page.get_by_label("Monthly limit").fill("2.5")
        await page.get_by_role("button", name="Create key").click()
        await page.get_by_role("button", name="Done").click()
        bar = page.get_by_role("progressbar")
        await expect(page.locator(".spending")).to_have_text("$0.00 of $2.50 spent this month")
        async with server.client(headers=visitor.headers) as client:
            (key,) = (await client.get("/user/api-keys")).json()
        await asyncio.to_thread(spend, server, visitor.id, 2_000_000, key["id"])
        await page.reload()
        await expect(page.locator(".spending.warn")).to_have_text("$2.00 of $2.50 spent this month")
        assert await bar.evaluate("bar => bar.value / bar.max") == 0.8
        warning = page.locator(".main > .notice")
        limit = "The monthly limit of the API key “nightly”"
        await expect(warning).to_contain_text(f"{limit} is nearly reached: $2.00 of $2.50 spent.")
        await asyncio.to_thread(spend, server, visitor.id, 500_000, key["id"])
        await page.goto("/#/settings")  # every view has the notice
        await page.reload()
        await expect(warning).to_contain_text(f"{limit} is reached: $2.50 of $2.50 spent.")
        await warning.get_by_role("link", name="API keys").click()
        await expect(page.locator(".spending.warn")).to_have_text("$2.50 of $2.50 spent this month")
        await page.reload()
        await expect(page.locator(".spending.warn")).to_be_visible()
        await expect(warning).to_have_count(0)  # once a day
        assert await findings(page) == []
        await page.get_by_role("button", name="Edit key nightly").click()
        await expect(page.get_by_label("Name")).to_have_value("nightly")
        await expect(page.get_by_label("Monthly limit")).to_have_value("2.5")
        await page.get_by_label("Name").fill("weekly")
        await page.get_by_label("Monthly limit").fill("")
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_role("dialog")).to_have_count(0)
        await expect(page.get_by_text("weekly", exact=True)).to_be_visible()
        await expect(bar).to_have_count(0)
        async with server.client(headers=visitor.headers) as client:
            (key,) = (await client.get("/user/api-keys")).json()
            assert (key["name"], key["monthly_limit_micros"]) == ("weekly", None)


@WIDTHS
async def test_wallet_shows_the_limit_and_a_notice_from_80_percent(
    server: RunningServer, browser: Browser, width: int
) -> None:
    visitor = await asyncio.to_thread(new_visitor, server, dollars=9)
    async with signed_in(browser, server, "/#/wallet", visitor=visitor, width=width, allow=["status of 402"]) as page:
        await page.get_by_role("button", name="Set a limit").click()
        await page.get_by_label("Monthly limit").fill("5")
        await page.get_by_role("button", name="Save").click()
        await expect(page.locator(".spending")).to_have_text("$0.00 of $5.00 spent this month")
        await asyncio.to_thread(spend, server, visitor.id, 3_999_999)
        await page.reload()
        await expect(page.locator(".spending")).to_have_text("$3.999999 of $5.00 spent this month")
        warning = page.locator(".main > .notice")
        await expect(warning).to_have_count(0)
        await asyncio.to_thread(spend, server, visitor.id, 1)
        await page.reload()
        await expect(warning).to_contain_text("Your monthly limit is nearly reached: $4.00 of $5.00 spent.")
        assert await findings(page) == []
        await page.get_by_role("button", name="Change limit").click()
        await page.get_by_label("Monthly limit").fill("4")
        await page.get_by_role("button", name="Save").click()
        await expect(warning.last).to_contain_text("Your monthly limit is reached: $4.00 of $4.00 spent.")
        await warning.first.get_by_role("button", name="Dismiss").click()
        await page.goto("/#/chat")  # the other one is above the chat and covers nothing
        await expect(warning).to_be_visible()
        await choose_model(page, "assistant-paid")
        await page.get_by_label("Message", exact=True).fill("What is 2 + 2?")
        await page.get_by_role("button", name="Send").click()
        refused = page.get_by_role("alert")
        await expect(refused).to_contain_text("The monthly limit of this account is $4.00")
        await refused.get_by_role("link", name="Go to wallet").click()
        await expect(page.locator(".spending")).to_have_text("$4.00 of $4.00 spent this month")


async def test_provider_can_be_tested_and_edited_without_showing_its_key(
    server: RunningServer, browser: Browser
) -> None:
    async with signed_in(browser, server, "/#/providers", allow=["status of 502"]) as page:
        await page.get_by_role("button", name="Add provider").first.click()
        await page.get_by_label("Name").fill("mine")
        await page.get_by_label("Base URL").fill("http://127.0.0.1:9/v1")
        await page.get_by_label("API key").fill("sk-secret-0123456789")
        await page.get_by_label("Format").select_option("Messages")
        await page.get_by_label("Models").fill("big\npainter image")
        await page.get_by_role("button", name="Add", exact=True).click()
        await expect(page.locator(".list")).to_contain_text("2 models")
        await page.get_by_role("button", name="Test").click()
        await expect(page.get_by_role("alert")).to_contain_text("did not answer")
        await page.get_by_role("button", name="Actions for mine").click()
        await page.get_by_role("menuitem", name="Edit").click()
        await expect(page.get_by_label("API key")).to_have_value("")
        await expect(page.get_by_label("Models")).to_have_value("big\npainter image")
        await expect(page.get_by_label("Format")).to_have_value("messages")
        await page.get_by_label("Base URL").fill("http://127.0.0.1:10/v1")
        await expect(page.get_by_text("the stored key is deleted")).to_be_visible()
        await page.get_by_role("button", name="Save").click()
        await expect(page.locator(".list")).to_contain_text("no key")
        async with FormatServer() as upstream:
            await page.get_by_role("button", name="Actions for mine").click()
            await page.get_by_role("menuitem", name="Edit").click()
            await page.get_by_label("Base URL").fill(upstream.base_url)
            await page.get_by_role("button", name="Save").click()
            await page.get_by_role("button", name="Test").click()
            await expect(page.locator(".list")).to_contain_text("It answers Chat completions, Responses, Messages.")


async def test_wallet_shows_balance_spend_ledger_and_csv(
    server: RunningServer, browser: Browser, tmp_path: Path
) -> None:
    async with signed_in(browser, server, dollars=25) as page:
        await page.evaluate(
            """async () => {
                const authorization = `Bearer ${JSON.parse(localStorage["svc.session"]).token}`;
                const headers = { authorization, "content-type": "application/json" };
                await fetch("/v1/images/generations", { method: "POST", headers, body: '{"prompt": "the sea"}' });
            }"""
        )
        await page.goto("/#/wallet")
        await expect(page.locator(".figure-value").first).to_have_text("$24.98")
        await expect(page.locator(".page .notice-warn")).to_contain_text("Test mode")
        await page.get_by_role("img", name="Spend per day").focus()
        await page.keyboard.press("End")
        await expect(page.locator(".chart-said")).to_contain_text("builtin/paint $0.02")
        await page.get_by_text("View as table").click()
        await expect(page.locator(".table tbody tr")).to_have_count(1)
        await page.get_by_label("Show").select_option("credit")
        await expect(page.locator(".list > li")).to_have_count(1)
        async with page.expect_download() as waiting:
            await page.get_by_role("button", name="Download as CSV").click()
        await (await waiting.value).save_as(tmp_path / "ledger.csv")
        lines = (tmp_path / "ledger.csv").read_text().splitlines()
        assert len(lines) == 3 and ",25000000," in lines[2] and ",-20000," in lines[1]
        await credit(server, page, 1, times=110)
        await page.reload()
        await page.get_by_label("Show").select_option("debit")  # on the second page of the ledger
        await expect(page.locator(".list > li .amount")).to_have_text([re.compile(r"\$0\.02")])


async def test_low_balance_is_shown_once_a_day(server: RunningServer, browser: Browser) -> None:
    async with signed_in(browser, server) as page:
        await expect(page.locator(".wallet-chip")).to_contain_text("Test money")
        await credit(server, page, 0.75)
        await page.reload()
        warning = page.locator(".main > .notice")
        await expect(warning).to_contain_text("$0.75 left")
        await warning.get_by_role("link", name="Go to wallet").click()
        await expect(page.get_by_role("heading", name="Wallet")).to_be_visible()
        await page.reload()
        await page.locator(".figure-value").first.wait_for()
        await expect(warning).to_have_count(0)


async def test_settings_are_stored_and_data_can_be_exported(
    server: RunningServer, browser: Browser, tmp_path: Path
) -> None:
    async with signed_in(browser, server, "/#/settings") as page:
        await page.get_by_label("Name").fill("Ada Lovelace")
        await page.get_by_role("button", name="Save", exact=True).click()
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
            await page.get_by_role("button", name="Export data").click()
        await (await waiting.value).save_as(tmp_path / "export.zip")
        assert zipfile.ZipFile(io.BytesIO((tmp_path / "export.zip").read_bytes())).namelist()


async def test_operator_answer_appears_without_reload(server: RunningServer, browser: Browser) -> None:
    visitor = await asyncio.to_thread(new_visitor, server)
    async with new_context(browser, server, visitor) as context:  # its clock cannot be set back
        page = await opened(context, "/#/support")
        await expect(page.get_by_text("Support is part of Pro")).to_be_visible()
        await credit(server, page, 5)
        await page.clock.install()
        await page.reload()
        await page.get_by_label("Message").fill("The pictures are too small")
        await page.get_by_role("button", name="Send").click()
        await page.wait_for_url("**/#/support/sup_*")
        support_id = page.url.rpartition("/")[2]
        await asyncio.to_thread(command, server, "support", "reply", support_id, "Ask for 1024x1024")
        await page.clock.fast_forward("05")  # when the page looks again
        await expect(page.locator(".desk-messages")).to_contain_text("Ask for 1024x1024")
        await page.get_by_role("button", name="Close conversation").click()
        await page.get_by_role("dialog").get_by_role("button", name="Close conversation").click()
        await expect(page.get_by_text("This conversation is closed")).to_be_visible()
