"""Every flow by the keyboard alone, on a wide and on a narrow page; and a page that is zoomed to 200 %."""

import asyncio
import re

import pytest
from playwright.async_api import Browser, Page, expect

from tests.support.browser import (
    PASSWORD,
    WIDTHS,
    WITH_BROWSER,
    database,
    empty_page,
    new_email,
    new_visitor,
    signed_in,
)
from tests.support.browser_chat import answered, keep_conversation
from tests.support.server import RunningServer

pytestmark = WITH_BROWSER
MOST_PRESSES = 80
FOCUSED = """() => {
    const one = document.activeElement;
    const text = one.labels?.[0]?.textContent ?? one.getAttribute("aria-label") ?? one.textContent;
    return one === document.body ? "" : text.trim();
}"""

# What has the focus right after the address has changed, and some frames after it was moved to the search at once.
MOVED_BEFORE_A_FRAME = """async (address) => {
    const changed = new Promise(resolve => addEventListener("hashchange", resolve, {once: true}));
    document.activeElement.blur();
    location.hash = address;
    await changed;
    const first = document.activeElement.id;
    document.getElementById("conversation-search").focus();
    for (let frame = 0; frame < 3; frame++)
        await new Promise(drawn => requestAnimationFrame(() => setTimeout(drawn)));
    return [first, document.activeElement.id];
}"""


async def press(page: Page, *keys: str) -> None:
    for key in keys:
        await page.keyboard.press(key)


async def move_to(page: Page, name: str, key: str) -> None:
    """Press `key` until an element whose label begins with `name` has the focus."""
    seen = []
    for _ in range(MOST_PRESSES):
        seen.append(await page.evaluate(FOCUSED))
        if seen[-1].startswith(name):
            return
        await press(page, key)
    raise AssertionError(f"{name} cannot be reached by {key}: {seen}")


async def tab_to(page: Page, name: str, *, back: bool = False) -> None:
    """Press Tab until an element whose label begins with `name` has the focus, and can be seen."""
    await move_to(page, name, "Shift+Tab" if back else "Tab")
    assert await page.evaluate(
        "document.activeElement.checkVisibility({visibilityProperty: true, opacityProperty: true})"
    )


async def tab_into_navigation(page: Page, name: str) -> None:
    if (page.viewport_size or {})["width"] < 800:
        await tab_to(page, "Open navigation", back=True)
        await press(page, "Enter")
    await tab_to(page, name, back=(page.viewport_size or {})["width"] >= 800)


@WIDTHS
async def test_account_chat_run_and_key_are_made_by_keyboard(
    server: RunningServer, browser: Browser, width: int
) -> None:
    async with empty_page(browser, server, width=width) as page:
        await page.goto("/")
        await page.locator("form").wait_for()
        await tab_to(page, "Email")
        await page.keyboard.type(new_email())
        await tab_to(page, "Password")
        await page.keyboard.type(PASSWORD)
        await press(page, "Enter")
        await expect(page.get_by_label("Message", exact=True)).to_be_focused()
        await page.keyboard.type("What is 12 * (3 + 4)?")
        await press(page, "Enter")
        await answered(page)
        await tab_to(page, "Regenerate", back=True)
        await press(page, "Enter")
        await expect(page.locator(".live")).to_have_count(0)
        await answered(page)
        await press(page, "Shift+Escape")
        await tab_into_navigation(page, "Agents")
        await press(page, "Enter")
        await page.get_by_label("Goal").wait_for()
        await tab_to(page, "Goal")
        await page.keyboard.type("What is 6 * 7?")
        await tab_to(page, "Run")
        await press(page, "Enter")
        await expect(page.locator(".run-end-final")).to_contain_text("42")
        await page.goto("/#/keys")
        await page.get_by_role("button", name="New key").first.wait_for()
        await tab_to(page, "New key")
        await press(page, "Enter")
        await tab_to(page, "Name")
        await page.keyboard.type("by keyboard")
        await press(page, "Enter")
        await expect(page.get_by_role("dialog", name="Your new key")).to_be_visible()
        await tab_to(page, "Done")
        await press(page, "Enter")
        await expect(page.locator(".item-title", has_text="by keyboard")).to_be_visible()


@WIDTHS
async def test_conversation_is_found_changed_and_deleted_by_keyboard(
    server: RunningServer, browser: Browser, width: int
) -> None:
    visitor = await asyncio.to_thread(new_visitor, server, model="builtin/assistant")
    kept = await asyncio.to_thread(keep_conversation, server, visitor, ["A question", "An answer"])
    async with signed_in(browser, server, visitor=visitor, width=width) as page:
        await page.locator(".conversation").wait_for(state="attached")
        await press(page, "Control+k")
        await expect(page.get_by_role("searchbox")).to_be_focused()
        await page.keyboard.type("kept")
        await expect(page.locator("mark")).to_have_text("kept")
        await press(page, "ArrowDown", "Enter")
        await page.wait_for_url(f"**/#/chat/{kept}")
        await expect(page.get_by_label("Message", exact=True)).to_be_focused()
        for name, field, value in (("Chat settings", "Temperature", "0.5"), ("Rename", "", "Renamed")):
            await press(page, "Control+k")
            await tab_to(page, "Actions for A kept one")
            await press(page, "Enter")
            await move_to(page, name, "ArrowDown")
            await press(page, "Enter")
            if field:
                await tab_to(page, field)
            await page.keyboard.type(value)
            await press(page, "Enter")
            await expect(page.get_by_role("dialog")).to_have_count(0)
            await page.wait_for_function("() => document.activeElement !== document.body")
        await expect(page.locator(".conversation > a")).to_have_text("Renamed")
        await press(page, "Control+k", "Control+a", "Delete")
        await tab_to(page, "Actions for Renamed")
        await press(page, "Enter", "End", "Enter")
        await expect(page.locator(".toast")).to_contain_text("Deleted “Renamed”")
        await tab_to(page, "Undo")
        await press(page, "Enter")
        await expect(page.locator(".conversation > a")).to_have_text("Renamed")


async def test_chat_takes_the_focus_with_its_view_and_not_later(server: RunningServer, browser: Browser) -> None:
    visitor = await asyncio.to_thread(new_visitor, server)
    kept = await asyncio.to_thread(keep_conversation, server, visitor, ["A question", "An answer"])
    async with signed_in(browser, server, visitor=visitor) as page:
        await page.locator(".conversation").wait_for()
        assert await page.evaluate(MOVED_BEFORE_A_FRAME, f"#/chat/{kept}") == ["composer", "conversation-search"]


@pytest.mark.parametrize("width", [1440, pytest.param(390, marks=pytest.mark.soak)])
async def test_model_and_menus_are_chosen_by_keyboard(server: RunningServer, browser: Browser, width: int) -> None:
    visitor = await asyncio.to_thread(new_visitor, server)
    async with signed_in(browser, server, visitor=visitor, width=width) as page:
        await page.get_by_role("button", name="Model:").wait_for()
        await tab_to(page, "Model:", back=True)
        await press(page, "Enter")
        await page.keyboard.type("echo")
        await expect(page.get_by_role("option", selected=True)).to_contain_text("echo")
        await press(page, "Enter")
        await expect(page.get_by_role("button", name="Model:")).to_have_accessible_name(re.compile("echo"))
        await tab_into_navigation(page, visitor.email[:1].upper() + visitor.email)  # the avatar and the address
        await press(page, "Enter")
        await move_to(page, "Settings", "ArrowDown")
        await press(page, "Enter")
        await page.get_by_role("button", name="Change password").wait_for()
        await tab_to(page, "Change password")
        await press(page, "Enter")
        await expect(page.get_by_role("dialog", name="Change password")).to_be_visible()
        await press(page, "Escape")
        assert await page.evaluate(FOCUSED) == "Change password"


@WIDTHS
async def test_user_is_found_suspended_and_deleted_by_keyboard(
    server: RunningServer, browser: Browser, width: int
) -> None:
    visitor, other = await asyncio.to_thread(new_visitor, server), await asyncio.to_thread(new_visitor, server)
    with database(server) as tx:
        tx.execute("UPDATE accounts SET admin = 1 WHERE id = ?", (visitor.id,))
    async with signed_in(browser, server, visitor=visitor, width=width) as page:
        await page.locator("a[href='#/admin']").wait_for(state="attached")
        await tab_into_navigation(page, "Administration")
        await press(page, "Enter")
        await page.get_by_role("table").wait_for()
        await tab_to(page, "Search")
        await page.keyboard.type(other.email)
        await expect(page.locator("tbody tr")).to_have_count(1)
        await tab_to(page, other.email)
        await press(page, "Enter")
        await page.get_by_role("button", name="Suspend").wait_for()
        await expect(page.locator("#content")).to_be_focused()
        await tab_to(page, "Suspend")
        await press(page, "Enter")
        await tab_to(page, "Suspend")
        await press(page, "Enter")
        await expect(page.get_by_text("This account is suspended")).to_be_visible()
        await tab_to(page, "Delete user")
        await press(page, "Enter")
        await expect(page.get_by_label("to confirm")).to_be_focused()
        await page.keyboard.type(other.email)
        await press(page, "Enter")
        await expect(page.get_by_text(f"Deleted {other.email}")).to_be_visible()


async def test_half_of_a_zoomed_page_is_the_chat(server: RunningServer, browser: Browser) -> None:
    visitor = await asyncio.to_thread(new_visitor, server, dollars=5, model="builtin/assistant-paid")
    kept = await asyncio.to_thread(keep_conversation, server, visitor, ["A question", "An answer " * 400])
    async with signed_in(browser, server, f"/#/chat/{kept}", visitor=visitor) as page:
        await page.locator(".md").wait_for()
        for width, height in ((720, 450), (683, 384), (195, 422)):
            await page.set_viewport_size({"width": width, "height": height})
            await page.evaluate("new Promise(drawn => requestAnimationFrame(() => setTimeout(drawn)))")
            shown = await page.locator(".chat-scroll").evaluate("box => box.clientHeight")
            assert shown >= height / 2
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
