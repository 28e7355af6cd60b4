"""The import of chats from other applications: the file, its progress, the report and undo."""

from pathlib import Path

from playwright.async_api import Browser, expect

from tests.support import exports
from tests.support.browser import WIDTHS, WITH_BROWSER, findings, signed_in
from tests.support.server import RunningServer

pytestmark = [*WITH_BROWSER, WIDTHS]


async def test_chats_are_imported_reported_and_undone(
    server: RunningServer, browser: Browser, tmp_path: Path, width: int
) -> None:
    (tmp_path / "chatgpt.zip").write_bytes(exports.zipped(exports.chatgpt()))
    async with signed_in(browser, server, "/#/settings", width=width) as page:
        await page.get_by_role("link", name="Import chats").click()
        async with page.expect_file_chooser() as chooser:
            await page.get_by_role("button", name="Choose a file").click()
        await (await chooser.value).set_files(tmp_path / "chatgpt.zip")
        await expect(page.get_by_text("The import from ChatGPT is complete.")).to_be_visible()
        await expect(page.get_by_text("3 conversations imported, 2 skipped, 0 failed.")).to_be_visible()
        await page.get_by_text("Show each conversation").click()
        await expect(page.get_by_role("listitem").filter(has_text="Archived in the export.")).to_contain_text("Skipped")
        assert await findings(page) == []
        await page.reload()  # the report stays
        await expect(page.get_by_text("3 conversations imported, 2 skipped, 0 failed.")).to_be_visible()
        await page.get_by_role("button", name="Undo import").click()
        await page.get_by_role("dialog").get_by_role("button", name="Undo").click()
        await expect(page.get_by_text("The import was undone.")).to_be_visible()
        await page.goto("/#/chat")
        await expect(page.locator(".conversation")).to_have_count(0)


async def test_unreadable_file_has_a_reason(
    server: RunningServer, browser: Browser, tmp_path: Path, width: int
) -> None:
    (tmp_path / "notes.json").write_text("hello")
    async with signed_in(browser, server, "/#/imports", width=width) as page:
        async with page.expect_file_chooser() as chooser:
            await page.get_by_role("button", name="Choose a file").click()
        await (await chooser.value).set_files(tmp_path / "notes.json")
        await expect(page.get_by_text("This file is not valid JSON. Download the export again.")).to_be_visible()
