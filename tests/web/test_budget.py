"""The page stays small and quick: what the first view weighs, what a long conversation shows, what a fast stream leaves idle.

The bounds on time are loose, so that a busy machine does not fail them; the measured values stand in the messages.
"""

import time
from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from tests.support.browser import new_context, opened
from tests.support.browser_chat import answered, choose_model
from tests.support.server import RunningServer

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.asyncio(loop_scope="module")]

FIRST_VIEW_BYTES = 120_000
WORDS = 2_500
MESSAGES = 400


async def weight(context: Any, address: str, ready: str) -> int:
    """The bytes over the wire, heads included, until `ready` can be seen."""
    page = await context.new_page()
    session = await context.new_cdp_session(page)
    received: list[int] = []
    session.on("Network.loadingFinished", lambda event: received.append(event["encodedDataLength"]))
    await session.send("Network.enable")
    await session.send("Network.setCacheDisabled", {"cacheDisabled": True})
    await page.goto(address)
    await page.locator(ready).wait_for()
    await page.wait_for_load_state("networkidle")
    await page.close()
    return int(sum(received))


async def test_the_first_view_is_small_signed_in_or_not(server: RunningServer, browser: Browser, ada: Any) -> None:
    async with new_context(browser, server) as context:
        assert await weight(context, "/", ".welcome-form") < FIRST_VIEW_BYTES
    async with new_context(browser, server, storage_state=ada) as context:
        assert await weight(context, "/", "#composer") < FIRST_VIEW_BYTES


async def test_a_second_visit_takes_the_files_from_the_browser(server: RunningServer, browser: Browser) -> None:
    async with new_context(browser, server) as context:
        page = await context.new_page()
        await page.goto("/")
        await page.locator(".welcome-form").wait_for()
        await page.reload()
        await page.locator(".welcome-form").wait_for()
        sizes = await page.evaluate(
            "performance.getEntriesByType('resource').filter(one => one.name.includes('/static/')).map(one => one.transferSize)"
        )
        assert len(sizes) > 10 and sum(sizes) < 1_000  # a browser may look at the icon anew


async def busy_seconds(page: Page) -> float:
    """The main thread's own CPU time so far."""
    session = await page.context.new_cdp_session(page)
    await session.send("Performance.setTimeDomain", {"timeDomain": "threadTicks"})
    await session.send("Performance.enable")
    metrics = (await session.send("Performance.getMetrics"))["metrics"]
    return float(next(metric["value"] for metric in metrics if metric["name"] == "ScriptDuration"))


async def test_a_fast_stream_leaves_the_page_idle_half_of_the_time(server: RunningServer, browser: Browser, ada: Any) -> None:
    async with new_context(browser, server, storage_state=ada) as context:
        page = await opened(context)
        await choose_model(page, "script")
        script = "\n".join(f"say word{number} \nwait 2" for number in range(WORDS))
        await page.get_by_label("Message", exact=True).focus()
        await page.evaluate("text => document.execCommand('insertText', false, text.slice(0, 1))", script)
        await page.evaluate(
            """text => {
                const area = document.getElementById("composer");
                Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set.call(area, text);
                area.dispatchEvent(new Event("input", { bubbles: true }));
            }""",
            script,
        )
        before, began = await busy_seconds(page), time.monotonic()
        await page.keyboard.press("Enter")
        await answered(page)
        share = (await busy_seconds(page) - before) / (time.monotonic() - began)
        assert share < 0.5
        await expect(page.locator(".said-assistant .md")).to_contain_text(f"word{WORDS - 1}")


async def test_a_long_conversation_opens_with_its_end_and_goes_back_as_one_reads(
    server: RunningServer, browser: Browser, ada: Any
) -> None:
    async with new_context(browser, server, storage_state=ada) as context:
        page = await opened(context)
        conversation = await page.evaluate(
            """async count => {
                const headers = {
                    authorization: `Bearer ${JSON.parse(localStorage["svc.session"]).token}`, "content-type": "application/json",
                };
                const post = async (path, body) =>
                    (await fetch(path, { method: "POST", headers, body: JSON.stringify(body) })).json();
                const { id } = await post("/conversations", { title: "A long one" });
                for (let number = 0; number < count; number++) {
                    const role = number % 2 ? "assistant" : "user";
                    await post(`/conversations/${id}/messages`, { role, content: `Message **${number}**` });
                }
                return id;
            }""",
            MESSAGES,
        )
        await page.goto("about:blank")
        await page.goto(f"/#/chat/{conversation}")
        await expect(page.get_by_text(f"Message {MESSAGES - 1}")).to_be_in_viewport()
        shown = page.locator("article.message")
        assert await shown.count() < 50
        box = page.locator(".chat-scroll")
        await box.hover()
        for _ in range(60):
            await page.mouse.wheel(0, -1500)
            if await page.get_by_text("Message **0**").count():
                break
            await page.wait_for_timeout(100)
        await expect(shown).to_have_count(MESSAGES)
        numbers = await shown.evaluate_all(r"messages => messages.map(message => Number(/\d+/.exec(message.textContent)[0]))")
        assert numbers == list(range(MESSAGES))
