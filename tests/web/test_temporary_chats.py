"""Temporary chats in the page: nothing is stored, and a reload warns before it forgets."""

import asyncio
from pathlib import Path

from playwright.async_api import Browser, Page, Request, expect

from tests.support.browser import WIDTHS, WITH_BROWSER, findings, signed_in
from tests.support.browser_chat import answered, choose_model, say
from tests.support.server import RunningServer

pytestmark = [*WITH_BROWSER, WIDTHS]


async def begin(page: Page) -> None:
    await choose_model(page, "echo")
    await page.get_by_role("button", name="Temporary chat").click()
    await expect(page.locator(".chat-temporary")).to_be_visible()


async def test_temporary_chat_goes_on_and_stores_nothing(server: RunningServer, browser: Browser, width: int) -> None:
    async with signed_in(browser, server, "/#/chat", width=width) as page:
        await begin(page)
        asked: list[Request] = []
        page.on("request", lambda request: asked.append(request) if request.method != "GET" else None)
        await say(page, "Where is my pangolin?")
        await answered(page)
        assert await findings(page) == []
        await say(page, "And my okapi?")
        await answered(page, 2)
        assert [request.url.rpartition("/v1/")[2] for request in asked] == ["chat/completions"] * 2
        for request in asked:
            assert request.headers["x-service-temporary"] == "true"
            assert not {"idempotency-key", "x-service-conversation"} & {*request.headers}
        body = asked[1].post_data_json
        assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
        kept = await page.evaluate("JSON.stringify({ ...localStorage, ...sessionStorage })")
        assert "pangolin" not in kept and "okapi" not in kept
        await page.get_by_role("button", name="Edit").last.click()
        await page.get_by_label("Edit your message").fill("And my lemur?")
        await page.keyboard.press("Enter")
        await expect(page.locator(".said-user", has_text="lemur")).to_be_visible()
        await answered(page, 2)
        await expect(page.locator(".said-user")).to_have_count(2)
        await page.evaluate("location.hash = '#/settings'")
        await expect(page.locator(".said-user")).to_have_count(0)
        await page.evaluate("history.back()")
        await expect(page.locator(".said-user")).to_have_count(2)
        await page.get_by_role("button", name="Temporary chat").click()
        await expect(page.locator(".chat-temporary")).to_have_count(0)
        await page.get_by_role("button", name="Temporary chat").click()
        await expect(page.locator(".chat-temporary")).to_be_visible()
        await expect(page.locator(".said-user")).to_have_count(0)


async def test_reload_warns_before_it_forgets_a_temporary_chat(
    server: RunningServer, browser: Browser, width: int
) -> None:
    async with signed_in(browser, server, "/#/chat", width=width) as page:
        await begin(page)
        await say(page, "Hello")
        await answered(page)
        async with page.expect_event("dialog") as warned:
            reloading = asyncio.create_task(page.reload())
        warning = await warned.value
        assert warning.type == "beforeunload"
        await warning.accept()
        await reloading
        await expect(page.locator(".chat-temporary")).to_be_visible()
        await expect(page.locator(".said-user")).to_have_count(0)
        await page.reload()  # there is nothing to forget, and an open dialog would block this
        await expect(page.locator(".chat-temporary")).to_be_visible()


async def test_temporary_chat_refuses_files_that_would_be_stored(
    server: RunningServer, browser: Browser, width: int, tmp_path: Path
) -> None:
    picture, notes = tmp_path / "a.png", tmp_path / "notes.txt"
    picture.write_bytes(b"\x89PNG")
    notes.write_text("some notes")
    async with signed_in(browser, server, "/#/chat", width=width) as page:
        await begin(page)
        await page.locator("form.composer input[type=file]").set_input_files([picture, notes])
        await expect(page.get_by_text("takes text files only")).to_be_visible()
        await expect(page.locator(".attached li")).to_have_count(1)
        await expect(page.locator(".attached li")).to_contain_text("notes.txt")
