"""The look of common parts: tabs on the phone, rows of buttons, disabled buttons, code, dates."""

import asyncio
import re

import pytest
from playwright.async_api import Browser, expect

from tests.support.browser import LOOKS, WITH_BROWSER, Theme, findings, new_visitor, signed_in
from tests.support.browser_chat import keep_conversation
from tests.support.people import command
from tests.support.server import RunningServer

pytestmark = WITH_BROWSER

FITS = "document.querySelector('main').scrollWidth <= document.querySelector('main').clientWidth"
SIZES = "boxes => [...new Set(boxes.map(box => getComputedStyle(box).fontSize))]"


@pytest.mark.parametrize("width", [320, 390])
async def test_tabs_on_the_phone_are_one_row_that_scrolls(server: RunningServer, browser: Browser, width: int) -> None:
    visitor = await asyncio.to_thread(new_visitor, server)
    command(server, "user", "admin", visitor.email, "on")
    async with signed_in(browser, server, "/#/keys", visitor=visitor, width=width) as page:
        tabs = page.get_by_role("tab")
        await expect(tabs).to_have_count(7)
        assert len(set(await tabs.evaluate_all("tabs => tabs.map(tab => tab.getBoundingClientRect().top)"))) == 1
        assert await page.evaluate(FITS)
        await tabs.last.focus()
        await page.keyboard.press("Enter")
        await expect(tabs.last).to_be_in_viewport()
        await expect(tabs.last).to_have_attribute("aria-selected", "true")
        await page.goto("/#/admin/sign-ins")
        current = page.locator(".part-tabs [aria-current]")
        await expect(current).to_be_in_viewport(ratio=0.9)
        assert await page.evaluate(FITS)
        assert await findings(page) == []


async def test_row_of_buttons_on_the_phone_ends_where_the_page_ends(server: RunningServer, browser: Browser) -> None:
    visitor = await asyncio.to_thread(new_visitor, server)
    async with server.client(headers=visitor.headers) as client:
        project = (await client.post("/projects", json={"name": "Travel"})).json()["id"]
        artifact = (await client.post("/artifacts", json={"name": "a.md", "content": "x"})).json()["id"]
    async with signed_in(browser, server, visitor=visitor, width=390) as page:
        for address in (f"/#/projects/{project}", f"/#/artifacts/{artifact}"):
            await page.goto(address)
            buttons = page.locator(".section-head > .actions").first.locator(".button")
            await expect(buttons.first).to_be_visible()
            ends = await buttons.evaluate_all("""buttons => Object.values(Object.fromEntries(buttons.map(button => {
                const {top, right} = button.getBoundingClientRect();
                return [Math.round(top), Math.round(right)];
            })))""")
            assert set(ends) == {390 - 16}, address


@pytest.mark.parametrize(("width", "theme"), LOOKS)
async def test_disabled_primary_button_is_readable_and_not_black(
    server: RunningServer, browser: Browser, width: int, theme: Theme
) -> None:
    async with signed_in(browser, server, "/#/media", width=width, theme=theme) as page:
        button = page.get_by_role("button", name="Generate")
        await expect(button).to_be_disabled()
        disabled = await button.evaluate(
            "one => [getComputedStyle(one).backgroundColor, getComputedStyle(one).opacity]"
        )
        await page.get_by_label("Describe the image").fill("a boat")
        await expect(button).to_be_enabled()
        enabled = await button.evaluate("one => getComputedStyle(one).backgroundColor")
        assert disabled[0] != enabled and disabled[1] == "1"


async def test_code_has_14_px_everywhere(server: RunningServer, browser: Browser) -> None:
    visitor = await asyncio.to_thread(new_visitor, server)
    text = "`inline`\n\n```python\nprint(1)\n```\n\n- `item`\n\n| a | b |\n|---|---|\n| `cell` | 2 |"
    chat = await asyncio.to_thread(keep_conversation, server, visitor, ["Question", text])
    async with server.client(headers=visitor.headers) as client:
        made = await client.post("/artifacts", json={"name": "a.py", "content": "x", "content_type": "text/x-python"})
        await client.post("/user/api-keys", json={"name": "laptop"})
    async with signed_in(browser, server, visitor=visitor) as page:
        for address in (f"/#/chat/{chat}", f"/#/artifacts/{made.json()['id']}", "/#/keys"):
            await page.goto(address)
            await page.locator("main code").nth(1).wait_for()
            assert await page.locator("main code").evaluate_all(SIZES) == ["14px"], address


async def test_member_since_is_a_date(server: RunningServer, browser: Browser) -> None:
    async with signed_in(browser, server, "/#/settings") as page:
        since = page.locator(".account-facts div", has_text="Member since").locator("dd")
        await expect(since).to_have_text(re.compile(r"^[A-Z][a-z]+ \d+, 20\d\d$"))
