"""Nothing that is shown moves while a view loads on a phone: the sum of the layout shifts is below 0.05."""

import asyncio

from playwright.async_api import Browser, Page, expect

from tests.support.browser import WITH_BROWSER, new_context, new_visitor
from tests.support.browser_chat import answered, keep_conversation
from tests.support.people import command
from tests.support.server import RunningServer

pytestmark = WITH_BROWSER

PHONE = 390
MOST = 0.05  # Google's "good" is 0.1
OBSERVE = """window.shifts = [];
new PerformanceObserver(list => {
    for (const {value, hadRecentInput, sources} of list.getEntries())
        if (!hadRecentInput) shifts.push([value, ...sources.map(({node}) => node?.className ?? "")]);
}).observe({type: "layout-shift", buffered: true});"""
VIEWS = [
    "wallet",
    "settings",
    "keys",
    "artifacts",
    "projects",
    "media",
    "agents",
    "support",
    "providers",
    "memory",
    "admin",
]
TEXT = "Answer **{n}**\n\n```python\nprint({n})\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nAnd $x^{n}$."


async def is_still(page: Page) -> None:
    """Wait until nothing is loaded and nothing has changed its height for a while."""
    await page.wait_for_load_state("networkidle")
    await expect(page.locator(".state")).to_have_count(0)
    await page.wait_for_function("""() => new Promise(resolve => {
        let left = 12, height = 0;
        const look = () => {
            const now = document.querySelector(".chat-scroll, main").scrollHeight;
            left = now === height ? left - 1 : 12;
            height = now;
            if (left) requestAnimationFrame(look);
            else resolve(true);
        };
        look();
    })""")


async def moved(page: Page) -> tuple[float, list[object]]:
    shifts = await page.evaluate("shifts")
    return sum(value for value, *_ in shifts), shifts


async def test_loading_view_does_not_move(server: RunningServer, browser: Browser) -> None:
    visitor, admin = [await asyncio.to_thread(new_visitor, server, dollars=3) for _ in range(2)]
    await asyncio.to_thread(command, server, "user", "admin", admin.email, "on")
    at_once = asyncio.Semaphore(4)  # much of it is a wait until nothing moves

    async def load(view: str) -> None:
        """Load a view in a new context, which has nothing in its cache."""
        who = admin if view == "admin" else visitor
        async with at_once, new_context(browser, server, who, width=PHONE) as context:
            page = await context.new_page()
            await page.add_init_script(OBSERVE)
            await page.goto(f"/#/{view}")
            await page.locator(".shell").wait_for()
            await is_still(page)
            total, shifts = await moved(page)
            assert total < MOST, (view, shifts)

    await asyncio.gather(*map(load, ["", *VIEWS]))


async def test_opened_conversation_and_its_next_answer_do_not_move(server: RunningServer, browser: Browser) -> None:
    visitor = await asyncio.to_thread(new_visitor, server, model="builtin/script")
    texts = [text for n in range(30) for text in (f"Question {n}", TEXT.replace("{n}", str(n)))]
    chat = await asyncio.to_thread(keep_conversation, server, visitor, texts)
    async with new_context(browser, server, visitor, width=PHONE) as context:
        page = await context.new_page()
        await page.add_init_script(OBSERVE)
        await page.goto(f"/#/chat/{chat}")
        await expect(page.locator(".said-assistant math").last).to_be_in_viewport()
        await is_still(page)
        total, shifts = await moved(page)
        assert total < MOST, shifts
        await page.evaluate("shifts.length = 0")
        await page.get_by_label("Message", exact=True).fill("say one\nwait 800\nsay two")
        await page.keyboard.press("Enter")
        await expect(page.locator(".live")).to_have_count(1)
        await answered(page)
        await expect(page.locator(".live")).to_have_count(0)
        await is_still(page)
        total, shifts = await moved(page)
        assert total < MOST, shifts
