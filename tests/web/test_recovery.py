"""The web application stays usable: files dropped anywhere, lost connections, focus, undo."""

import asyncio

from playwright.async_api import Browser, Page, expect

from tests.support.browser import WITH_BROWSER, new_context, new_visitor, opened, signed_in
from tests.support.browser_chat import answered, keep_conversation, say
from tests.support.server import RunningServer

pytestmark = WITH_BROWSER
# Whether the page, and not the browser, takes the file.
DROP = """async (target) => {
    const canvas = new OffscreenCanvas(8, 8);
    canvas.getContext("2d").fillRect(0, 0, 8, 8);
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File([await canvas.convertToBlob({type: "image/png"})], "dot.png", {type: "image/png"}));
    return ["dragover", "drop"].map(name =>
        !target.dispatchEvent(new DragEvent(name, {dataTransfer, bubbles: true, cancelable: true})));
}"""

# Somebody who is in the search before the page is complete.
FAST = """new MutationObserver((_, observer) => {
    const search = document.getElementById("conversation-search");
    if (search) observer.disconnect();
    search?.focus();
}).observe(document, {childList: true, subtree: true})"""


async def test_dropped_file_is_attached_in_a_chat_and_never_replaces_the_page(
    server: RunningServer, browser: Browser
) -> None:
    async with signed_in(browser, server) as page:
        await page.locator("#composer").wait_for()
        assert await page.locator(".sidebar").evaluate(DROP) == [True, True]
        await expect(page.get_by_role("img", name="dot.png")).to_be_visible()
        await page.goto("/#/wallet")
        await page.locator(".page").wait_for()
        assert await page.locator(".page").evaluate(DROP) == [True, True]


async def test_view_that_failed_offline_loads_when_online_again(server: RunningServer, browser: Browser) -> None:
    visitor = await asyncio.to_thread(new_visitor, server)
    # A context of its own has no view in its cache.
    async with new_context(browser, server, visitor, allow=["ERR_", "dynamically imported"]) as context:
        page = await opened(context, "/#/wallet")
        await page.get_by_role("heading", name="Wallet").wait_for()
        for view, heading in (("projects", "Projects"), ("keys", "API keys")):
            await page.context.set_offline(True)
            await page.goto(f"/#/{view}")
            await expect(page.get_by_role("main").get_by_role("alert").first).to_be_visible()
            await page.context.set_offline(False)
            await expect(page.get_by_role("heading", name=heading, exact=True)).to_be_visible()
            await expect(page.get_by_role("main").get_by_role("alert")).to_have_count(0)


async def test_data_that_failed_offline_loads_when_online_again(server: RunningServer, browser: Browser) -> None:
    visitor = await asyncio.to_thread(new_visitor, server)
    kept = await asyncio.to_thread(keep_conversation, server, visitor, ["A kind of bread", "It is called rye"])
    async with signed_in(browser, server, visitor=visitor, allow=["ERR_"]) as page:
        await page.locator(".conversation").wait_for()
        await page.locator("#composer").wait_for()
        await page.wait_for_load_state("networkidle")  # the scripts of a chat are there
        await page.context.set_offline(True)
        await page.goto(f"/#/chat/{kept}")
        await expect(page.get_by_role("main").get_by_role("alert")).to_contain_text("offline")
        await page.context.set_offline(False)
        await expect(page.locator(".said-assistant")).to_contain_text("rye")


async def test_title_follows_a_rename_and_undo_reopens_a_deleted_chat(server: RunningServer, browser: Browser) -> None:
    async with signed_in(browser, server, model="echo") as page:
        await say(page, "a chat about rye")
        await answered(page)
        await expect(page).to_have_title("a chat about rye · svc")
        address = page.url
        await page.get_by_role("button", name="Actions for a chat about rye").click()
        await page.get_by_role("menuitem", name="Rename").click()
        await page.get_by_label("New title").fill("Rye")
        await page.keyboard.press("Enter")
        await expect(page).to_have_title("Rye · svc")
        await expect(page.get_by_role("heading", name="Rye")).to_be_attached()
        await page.get_by_role("button", name="Actions for Rye").click()
        await page.get_by_role("menuitem", name="Delete").click()
        await expect(page.locator(".greeting")).to_be_visible()
        await expect(page).to_have_title("Chat · svc")
        await page.get_by_role("button", name="Undo").click()
        await expect(page).to_have_url(address)
        await expect(page.locator(".said-assistant")).to_contain_text("rye")
        await expect(page).to_have_title("Rye · svc")


async def test_focus_returns_after_a_dialog_closes(server: RunningServer, browser: Browser) -> None:
    async with signed_in(browser, server, "/#/keys") as page:
        new_key = page.get_by_role("button", name="New key").first
        await new_key.focus()
        await page.keyboard.press("Enter")
        await page.get_by_label("Name").fill("mine")
        await page.keyboard.press("Enter")
        await page.get_by_role("button", name="Done").press("Enter")
        await expect(new_key).to_be_focused()
        await page.get_by_role("button", name="Delete key mine").press("Enter")
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("button", name="Delete key mine")).to_be_focused()
        await page.keyboard.press("Enter")
        await page.get_by_role("dialog").get_by_role("button", name="Delete").press("Enter")
        await expect(page.get_by_text("No keys yet")).to_be_visible()
        await expect(page.get_by_role("main")).to_be_focused()
        await page.locator("body").press("?")
        await expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
        await page.keyboard.press("Escape")
        assert await has_focus(page)


async def has_focus(page: Page) -> bool:
    return bool(await page.evaluate("document.activeElement !== document.body"))


async def test_composer_of_the_first_view_takes_no_focus_from_the_search(
    server: RunningServer, browser: Browser
) -> None:
    visitor = await asyncio.to_thread(new_visitor, server)
    async with new_context(browser, server, visitor) as context:
        await context.add_init_script(FAST)
        page = await opened(context)
        await page.locator("#composer").wait_for()
        await page.evaluate(
            "new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))"
        )  # after the effects
        await expect(page.get_by_label("Search", exact=True)).to_be_focused()


async def test_arrow_keys_move_through_search_results(server: RunningServer, browser: Browser) -> None:
    visitor = await asyncio.to_thread(new_visitor, server)
    for name in ("rye", "wheat"):
        await asyncio.to_thread(keep_conversation, server, visitor, ["A kind of bread", f"It is called {name}"])
    async with signed_in(browser, server, visitor=visitor) as page:
        search, found = page.get_by_label("Search", exact=True), page.locator(".conversation > a")
        await expect(page.locator("#composer")).to_be_focused()  # later it would take the focus from the search
        await search.fill("bread")
        await expect(found.locator("mark")).to_have_count(2)
        await search.press("ArrowDown")
        await expect(found.first).to_be_focused()
        await page.keyboard.press("ArrowDown")
        await expect(found.last).to_be_focused()
        await page.keyboard.press("ArrowDown")
        await expect(found.last).to_be_focused()
        await page.keyboard.press("ArrowUp")
        await page.keyboard.press("ArrowUp")
        await expect(search).to_be_focused()
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Enter")
        await expect(page.locator(".said-assistant")).to_be_visible()
