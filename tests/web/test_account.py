"""What a person sets for chats and for the account, on a wide and on a narrow page."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import httpx
from playwright.async_api import Browser, Page, Request, expect

from tests.support.browser import PASSWORD as FIRST_PASSWORD
from tests.support.browser import WIDTHS, WITH_BROWSER, Visitor, credit, new_email, new_visitor, signed_in, user_of
from tests.support.browser_chat import answered, keep_conversation, say
from tests.support.mail_server import MailBox
from tests.support.people import command
from tests.support.server import RunningServer

pytestmark = [*WITH_BROWSER, WIDTHS]


def read(server: RunningServer, visitor: Visitor, path: str) -> Any:
    with httpx.Client(
        base_url=server.base_url, verify=server.tls or False, headers=visitor.headers, trust_env=False
    ) as client:
        return client.get(path).raise_for_status().json()


async def choose(page: Page, title: str, action: str) -> None:
    """Choose an action in the menu of a conversation."""
    navigation = page.get_by_role("button", name="Open navigation", expanded=False)
    if await navigation.is_visible():
        await navigation.click()
    await page.get_by_role("button", name=f"Actions for {title}").click()
    await page.get_by_role("menuitem", name=action).click()


async def test_pinned_chats_come_first(server: RunningServer, browser: Browser, width: int) -> None:
    visitor = await asyncio.to_thread(new_visitor, server, model="builtin/assistant")
    kept = await asyncio.to_thread(keep_conversation, server, visitor, ["A question", "An answer"])
    async with signed_in(browser, server, visitor=visitor, width=width) as page:
        await say(page, "What is 2 + 2?")
        await answered(page)
        entries = page.locator(".conversation > a")
        await expect(entries).to_have_text(["What is 2 + 2?", "A kept one"])
        await choose(page, "A kept one", "Pin")
        await expect(page.get_by_role("heading", name="Pinned")).to_have_count(1)
        await expect(entries).to_have_text(["A kept one", "What is 2 + 2?"])
        assert (await asyncio.to_thread(read, server, visitor, f"/conversations/{kept}"))["pinned"] is True
        await page.reload()
        await page.goto("/#/chat")
        await page.locator(".greeting").wait_for()
        await say(page, "What is 3 + 3?")  # a new chat comes below the pinned ones
        await answered(page)
        await expect(entries).to_have_text(["A kept one", "What is 3 + 3?", "What is 2 + 2?"])
        await choose(page, "A kept one", "Unpin")
        await expect(page.get_by_role("heading", name="Pinned")).to_have_count(0)
        await expect(entries).to_have_text(["What is 3 + 3?", "What is 2 + 2?", "A kept one"])


async def test_chat_has_its_own_settings_and_is_saved_as_markdown(
    server: RunningServer, browser: Browser, width: int
) -> None:
    visitor = await asyncio.to_thread(new_visitor, server)
    kept = await asyncio.to_thread(keep_conversation, server, visitor, ["A question", "An **answer**"])
    async with signed_in(browser, server, visitor=visitor, width=width) as page:
        for temperature, length in (("0.25", "200"), ("", "")):
            await choose(page, "A kept one", "Chat settings")
            dialog = page.get_by_role("dialog", name="Chat settings")
            await dialog.get_by_label("Temperature").fill(temperature)
            await dialog.get_by_label("Maximum output tokens").fill(length)
            await dialog.get_by_role("button", name="Save").click()
            await expect(dialog).to_have_count(0)
            now = await asyncio.to_thread(read, server, visitor, f"/conversations/{kept}")
            assert now["temperature"] == (float(temperature) if temperature else None)
            assert now["max_output_tokens"] == (int(length) if length else None)
            await choose(page, "A kept one", "Chat settings")
            await expect(dialog.get_by_label("Temperature")).to_have_value(temperature)
            await page.keyboard.press("Escape")
        async with page.expect_download() as waiting:
            await choose(page, "A kept one", "Export as Markdown")
        download = await waiting.value
        assert download.suggested_filename == "A-kept-one.md"
        text = Path(await download.path()).read_text()
        assert "A kept one" in text and "An **answer**" in text


async def test_answer_is_read_aloud_and_stopped(server: RunningServer, browser: Browser, width: int) -> None:
    visitor = await asyncio.to_thread(new_visitor, server)
    answer = "## Trains\n\nThe first train leaves at **six**.\n\n```python\nprint(1)\n```\n\n" + "It is on time. " * 60
    kept = await asyncio.to_thread(keep_conversation, server, visitor, ["When?", answer])
    spoken: list[str] = []

    def listen(request: Request) -> None:
        if "/audio/" in request.url:
            spoken.append(request.post_data_json["input"])

    async with signed_in(
        browser, server, f"/#/chat/{kept}", visitor=visitor, width=width, allow=["status of 402"]
    ) as page:
        await page.get_by_role("button", name="Read aloud (about $0.0").click()
        await expect(page.locator(".toast").get_by_role("button", name="Go to wallet")).to_be_visible()
        await credit(server, page, 5)
        await page.reload()
        page.on("request", listen)
        await page.get_by_role("button", name="Read aloud").click()
        await page.get_by_role("button", name="Stop reading").wait_for()
        while len(spoken) < 2:  # the second piece is asked for while the first one is played
            await page.wait_for_timeout(50)
        page.remove_listener("request", listen)
        assert spoken[0].startswith("Trains\n\nThe first train leaves at six.")
        assert "print" not in " ".join(spoken) and max(map(len, spoken)) <= 600
        await page.get_by_role("button", name="Stop reading").click()
        await expect(page.get_by_role("button", name="Read aloud")).to_be_visible()
        assert (await asyncio.to_thread(read, server, visitor, "/billing/account"))["wallet_balance_micros"] < 5_000_000


async def test_wallet_shows_what_is_left_of_the_allowance(
    browser: Browser, equipped: tuple[RunningServer, MailBox], width: int
) -> None:
    server, _ = equipped
    visitor = await asyncio.to_thread(new_visitor, server)
    async with signed_in(browser, server, "/#/wallet", visitor=visitor, width=width) as page:
        line = page.get_by_text(re.compile("^\\$4.00 of \\$4.00 left, renews on 1 [A-Z][a-z]+$"))
        await expect(line).to_be_visible()
        async with server.client(headers=visitor.headers) as client:
            asked = {"prompt": "a circle", "model": "builtin/paint", "size": "64x64"}
            assert (await client.post("/v1/images/generations", json=asked)).status_code == 200
        await page.reload()
        await expect(page.get_by_text("$3.98 of $4.00 left, renews on 1")).to_be_visible()
        await expect(page.get_by_text("Allowance 20")).to_be_visible()
        await expect(page.locator(".main > .notice .notice-text")).to_have_count(0)
        # A page that is still loading would learn of the debit, and the reload would close its one warning of the day.
        address = page.url
        await page.goto("about:blank")
        assert command(server, "debit", visitor.email, "3.18").returncode == 0
        await page.goto(address)
        await expect(page.get_by_text("$0.80 of $4.00 left")).to_be_visible()
        told = re.compile("^Low balance: \\$0.80 left. Your allowance renews on 1 [A-Z][a-z]+\\.")
        await expect(page.locator(".main > .notice .notice-text")).to_have_text(told)
        await expect(page.locator(".spending.warn")).to_be_visible()


async def test_instructions_and_password_are_changed_in_the_settings(
    server: RunningServer, browser: Browser, width: int
) -> None:
    visitor = await asyncio.to_thread(new_visitor, server)
    async with signed_in(browser, server, "/#/settings", visitor=visitor, width=width, allow=["401", "400"]) as page:
        text = page.get_by_label("Custom instructions")
        for typed, stored in (("  Answer in one word.  ", "Answer in one word."), ("", "")):
            await text.fill(typed)
            await page.get_by_role("button", name="Save instructions").click()
            await expect(page.locator(".toast")).to_contain_text("Saved")
            await page.reload()
            await expect(text).to_have_value(stored)
        await expect(page.get_by_text("cannot send email. Ask the operator to change")).to_be_visible()
        await expect(page.get_by_role("button", name="Change email")).to_be_disabled()
        await page.get_by_role("button", name="Change password").click()
        dialog = page.get_by_role("dialog", name="Change password")
        await dialog.get_by_label("New password").fill("an even better one")
        for current in ("a wrong one", FIRST_PASSWORD):
            await dialog.get_by_label("Current password").fill(current)
            await dialog.get_by_role("button", name="Change password").click()
            if current != FIRST_PASSWORD:
                await expect(dialog.get_by_text("The password is wrong.")).to_be_visible()
        await expect(page.locator(".toast")).to_contain_text("Your password was changed.")
        for password, status in ((FIRST_PASSWORD, 401), ("an even better one", 200)):
            async with server.client() as client:
                answer = await client.post("/auth/login", json={"email": visitor.email, "password": password})
                assert answer.status_code == status


async def test_email_is_changed_by_a_mailed_link_and_retention_is_shown(
    browser: Browser, equipped: tuple[RunningServer, MailBox], width: int
) -> None:
    server, box = equipped
    email = new_email()
    async with signed_in(browser, server, "/#/settings", width=width) as page:
        await expect(page.get_by_text("Agent runs are deleted 30 days after their end.")).to_be_visible()
        await expect(page.get_by_text("Chats are deleted")).to_have_count(0)
        await page.get_by_role("button", name="Change email").click()
        dialog = page.get_by_role("dialog", name="Change email")
        await dialog.get_by_label("Current password").fill(FIRST_PASSWORD)
        await dialog.get_by_label("New email").fill(email)
        await dialog.get_by_role("button", name="Change email").click()
        await expect(page.locator(".toast")).to_contain_text(f"We sent a link to {email}.")
        text = (await box.mailed_to(email)).get_content()
        await page.goto("about:blank")
        await page.goto(re.findall(r"https://\S+", text)[-1])
        await page.get_by_role("button", name="Verify email").click()
        await expect(page.get_by_role("status")).to_contain_text("verified")
        await page.goto("/#/settings")
        await expect(page.locator(".list").get_by_text(email)).to_be_visible()
        assert (await user_of(page))["email"] == email


async def test_page_can_be_installed(server: RunningServer, browser: Browser, width: int) -> None:
    async with signed_in(browser, server, width=width) as page:
        session = await page.context.new_cdp_session(page)
        found = await session.send("Page.getAppManifest")
        assert found["errors"] == [] and found["url"].endswith("/app/manifest.webmanifest")
        manifest = json.loads(found["data"])
        assert (manifest["display"], manifest["start_url"], manifest["scope"]) == ("standalone", "/", "/")
        for icon in manifest["icons"]:
            answer = await page.request.get(urljoin(found["url"], icon["src"]))
            assert (answer.status, answer.headers["content-type"]) == (200, "image/png")
            size = int.from_bytes((await answer.body())[16:20]), int.from_bytes((await answer.body())[20:24])
            assert icon["sizes"] == f"{size[0]}x{size[1]}"
        assert (await session.send("Page.getInstallabilityErrors"))["installabilityErrors"] == []
