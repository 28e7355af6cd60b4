"""The archive of conversations, several conversations at once, and the list of keyboard shortcuts."""

import asyncio
from typing import Any

from playwright.async_api import Browser, Page, expect

from tests.support.browser import WIDTHS, WITH_BROWSER, Visitor, findings, new_visitor, signed_in
from tests.support.server import RunningServer

pytestmark = WITH_BROWSER


async def with_conversations(server: RunningServer, count: int) -> tuple[Visitor, list[str]]:
    visitor = await asyncio.to_thread(new_visitor, server, model="builtin/echo")
    ids = []
    async with server.client(headers=visitor.headers) as client:
        for number in range(count):
            ids.append((await client.post("/conversations", json={"title": f"Chat {number}"})).json()["id"])
    return visitor, ids


async def titles(server: RunningServer, visitor: Visitor, archived: str) -> list[str]:
    async with server.client(headers=visitor.headers) as client:
        listed = (await client.get("/conversations", params={"archived": archived, "limit": 100})).json()["data"]
    return [one["title"] for one in listed]


async def open_list(page: Page, width: int) -> None:
    if width < 800 and not await page.locator(".sidebar-open").count():
        await page.get_by_role("button", name="Open navigation").click()


async def choose(page: Page, menu: str, item: str) -> None:
    await page.get_by_role("button", name=menu, exact=True).click()
    await page.get_by_role("menu").get_by_text(item, exact=True).click()


@WIDTHS
async def test_conversation_is_archived_found_and_taken_out(
    server: RunningServer, browser: Browser, width: int
) -> None:
    visitor, ids = await with_conversations(server, 3)
    entries = ".conversation > a"
    async with signed_in(browser, server, f"/#/chat/{ids[1]}", visitor=visitor, width=width) as page:
        await open_list(page, width)
        await expect(page.locator(entries)).to_have_count(3)
        await choose(page, "Actions for Chat 1", "Archive")
        await expect(page.locator(entries)).to_have_count(2)
        await expect(page.locator(".greeting")).to_be_attached()  # it was open
        await page.get_by_role("button", name="Undo").click()
        await expect(page.locator(entries)).to_have_count(3)
        await page.wait_for_url(f"**/#/chat/{ids[1]}")
        await open_list(page, width)
        await choose(page, "Actions for Chat 1", "Archive")
        await expect(page.locator(entries)).to_have_count(2)
        assert await titles(server, visitor, "true") == ["Chat 1"]
        await page.get_by_role("searchbox").fill("Chat")
        await expect(page.locator(entries)).to_have_count(3)
        await expect(page.locator(entries, has_text="Chat 1")).to_contain_text("Archived")
        assert await findings(page) == []
        await page.get_by_role("searchbox").fill("")
        await expect(page.locator(entries)).to_have_count(2)
        await choose(page, "Filter and select", "Archived")
        await expect(page.locator(entries)).to_have_text(["Chat 1"])
        assert await findings(page) == []
        await choose(page, "Actions for Chat 1", "Take out of the archive")
        await expect(page.locator(entries)).to_have_count(0)
        await choose(page, "Filter and select", "All conversations")
        await expect(page.locator(entries)).to_have_count(3)
        assert await titles(server, visitor, "true") == []


async def test_question_takes_the_open_conversation_out_of_the_archive(server: RunningServer, browser: Browser) -> None:
    visitor, ids = await with_conversations(server, 1)
    async with server.client(headers=visitor.headers) as client:
        assert (await client.patch(f"/conversations/{ids[0]}", json={"archived": True})).status_code == 200
    async with signed_in(browser, server, f"/#/chat/{ids[0]}", visitor=visitor) as page:
        await expect(page.locator(".conversation > a")).to_have_count(0)
        await page.get_by_label("Message", exact=True).fill("Hello")
        await page.keyboard.press("Enter")
        await expect(page.locator(".conversation > a")).to_have_text(["Chat 0"])
        await expect(page.locator(".said-assistant .md")).to_contain_text("Hello")
    assert await titles(server, visitor, "true") == []


@WIDTHS
async def test_several_conversations_are_deleted_with_undo_and_archived(
    server: RunningServer, browser: Browser, width: int
) -> None:
    visitor, _ = await with_conversations(server, 5)
    theme: Any = "dark" if width == 390 else "light"
    async with signed_in(browser, server, visitor=visitor, width=width, theme=theme) as page:
        await open_list(page, width)
        await choose(page, "Filter and select", "Select conversations")
        await expect(page.get_by_label("Select all")).to_be_focused()
        for number in (1, 3):
            await page.get_by_label(f"Chat {number}").check()
        await expect(page.get_by_text("2 conversations selected")).to_be_visible()
        assert await findings(page) == []
        await page.get_by_role("button", name="Delete", exact=True).click()
        await expect(page.locator(".conversation > a")).to_have_count(3)
        await page.get_by_role("button", name="Undo").click()
        await expect(page.locator(".conversation > a")).to_have_count(5)
        await choose(page, "Filter and select", "Select conversations")
        await page.get_by_label("Select all").focus()
        await page.keyboard.press("Space")
        await expect(page.get_by_text("5 conversations selected")).to_be_visible()
        await page.get_by_label("Chat 0").uncheck()
        await page.get_by_role("button", name="Archive", exact=True).click()
        await expect(page.locator(".toast")).to_contain_text("Archived 4 conversations")
        assert sorted(await titles(server, visitor, "true")) == [f"Chat {number}" for number in (1, 2, 3, 4)]
        await choose(page, "Filter and select", "Archived")
        await expect(page.locator(".conversation > a")).to_have_count(4)
        await choose(page, "Filter and select", "Select conversations")
        await page.get_by_label("Select all").check()
        await page.get_by_role("button", name="Delete", exact=True).click()
        await expect(page.locator(".conversation > a")).to_have_count(0)
        await page.locator(".toast", has_text="Deleted 4 conversations").get_by_role("button", name="Dismiss").click()
        async with asyncio.timeout(15):
            while await titles(server, visitor, "true"):
                await asyncio.sleep(0.05)
        assert await titles(server, visitor, "false") == ["Chat 0"]


async def test_at_most_100_conversations_are_selected(server: RunningServer, browser: Browser) -> None:
    visitor, _ = await with_conversations(server, 104)
    async with signed_in(browser, server, visitor=visitor) as page:
        await choose(page, "Filter and select", "Select conversations")
        rows = page.locator(".selection li")
        for number in (80, 104):
            await page.locator(".selection ul").evaluate("list => { list.scrollTop = list.scrollHeight; }")
            await expect(rows).to_have_count(number)
        await page.get_by_label("Select all").check()
        await expect(page.get_by_text("You can select 100 at once.")).to_be_visible()
        await expect(rows.nth(103).get_by_role("checkbox")).to_be_disabled()
        await page.keyboard.press("Escape")
        await expect(page.locator(".selection")).to_have_count(0)


SHORTCUTS = {
    "N": "() => location.hash === '#/chat'",
    "Ctrl+Shift+O": "() => location.hash === '#/chat'",
    "/": "() => document.activeElement.id === 'conversation-search'",
    "Ctrl+K": "() => document.activeElement.id === 'conversation-search'",
    "M": "() => document.querySelector('.picker-panel') !== null",
    "Shift+Esc": "() => document.activeElement.id === 'composer'",
    "Ctrl+Shift+C": None,
    "Enter": None,
    "Shift+Enter": None,
    "Esc": None,
    "↑": None,
    "?": "() => document.querySelector('dialog[open]') !== null",
}


async def test_help_lists_the_shortcuts_that_exist(server: RunningServer, browser: Browser) -> None:
    visitor, ids = await with_conversations(server, 1)
    async with signed_in(browser, server, visitor=visitor) as page:
        await page.locator(".conversation").wait_for()
        await page.locator("h1").first.focus()
        await page.keyboard.press("?")
        await page.locator("dialog kbd").first.wait_for()
        listed = await page.locator("dialog kbd").all_inner_texts()
        assert set(listed) == set(SHORTCUTS), "the others have their own tests"
        await page.keyboard.press("Escape")
        for keys, does in SHORTCUTS.items():
            if does:
                await page.goto(f"/#/chat/{ids[0]}")
                await expect(page.locator("h1").first).to_have_text("Chat 0")  # the chat is loaded
                await page.locator("h1").first.focus()
                await page.keyboard.press(
                    keys.lower() if len(keys) == 1 else keys.replace("Ctrl", "Control").replace("Esc", "Escape")
                )
                await page.wait_for_function(does)
                await page.keyboard.press("Escape")
