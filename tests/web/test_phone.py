"""The application on a phone: 360 px wide, in the long run also 390, used by touch."""

import asyncio
import itertools
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser, Locator, Page, expect

from tests.support.browser import WITH_BROWSER, Visitor, database, new_visitor, signed_in
from tests.support.browser_chat import keep_conversation
from tests.support.server import RunningServer

pytestmark = [*WITH_BROWSER, pytest.mark.parametrize("width", [360, pytest.param(390, marks=pytest.mark.soak)])]
PROJECT = "Website redesign for the spring campaign"
VIEWS = ["chat", "agents", "media", "artifacts", "projects", "keys", "providers", "wallet", "settings", "support"]
VIEWS += [f"admin/{part}" for part in ("users", "spend", "support", "status", "audit")]
# Links within a text are exempt.
SMALL_TARGETS = """() => [...document.querySelectorAll("a, button, input, select, textarea")]
    .filter(one => !one.matches(".switch, .check input, .task input") && getComputedStyle(one).display !== "inline")
    .filter(one => one.checkVisibility({visibilityProperty: true, opacityProperty: true}))
    .map(one => [one, one.getBoundingClientRect()])
    .filter(([, {width, height}]) => width > 1 && (width < 43.5 || height < 43.5))
    .map(([one, {width, height}]) => `${one.getAttribute("aria-label") ?? one.textContent} ${width} x ${height}`)"""


def on_phone(
    server: RunningServer, browser: Browser, visitor: Visitor, address: str, width: int
) -> AbstractAsyncContextManager[Page]:
    return signed_in(browser, server, address, visitor=visitor, width=width, has_touch=True, is_mobile=True)


def post(server: RunningServer, visitor: Visitor, path: str, body: Mapping[str, Any]) -> Any:
    with httpx.Client(
        base_url=server.base_url, verify=server.tls or False, headers=visitor.headers, trust_env=False
    ) as client:
        return client.post(path, json=body).raise_for_status().json()


async def box(part: Locator) -> dict[str, float]:
    found = await part.bounding_box()
    assert found is not None
    return dict(found)


async def test_chat_header_fits_with_a_project(server: RunningServer, browser: Browser, width: int) -> None:
    visitor = await asyncio.to_thread(new_visitor, server, model="builtin/assistant-paid")
    project = await asyncio.to_thread(post, server, visitor, "/projects", {"name": PROJECT})
    async with on_phone(server, browser, visitor, f"/#/chat?project_id={project['id']}", width) as page:
        parts = [
            page.get_by_role("button", name="Open navigation"),
            page.get_by_role("button", name="Model:"),
            page.get_by_role("button", name=f"In {PROJECT}"),
            page.locator(".top-bar").get_by_role("link", name="New chat"),
        ]
        boxes = [await box(part) for part in parts]
        for left, right in itertools.pairwise(boxes):
            assert left["x"] + left["width"] <= right["x"] + 0.5, boxes
        assert all(one["height"] < 50 for one in boxes), boxes
        assert boxes[1]["width"] > 130, boxes
        await parts[0].tap()
        await expect(page.get_by_role("navigation", name="Navigation")).to_be_in_viewport()


async def test_new_key_dialog_shows_everything(server: RunningServer, browser: Browser, width: int) -> None:
    visitor = await asyncio.to_thread(new_visitor, server)
    async with on_phone(server, browser, visitor, "/#/keys", width) as page:
        await page.get_by_role("button", name="New key").first.tap()
        await page.get_by_label("Name").fill("The laptop at home")
        await page.get_by_role("button", name="Create key").tap()
        dialog = page.get_by_role("dialog", name="Your new key")
        await expect(dialog.get_by_role("tab", selected=True)).to_be_visible()
        assert await dialog.evaluate("box => [box.scrollLeft, box.scrollWidth - box.clientWidth]") == [0, 0]
        for part in (
            dialog.get_by_role("heading"),
            dialog.locator(".secret code"),
            dialog.get_by_role("button", name="Copy key"),
        ):
            await expect(part).to_be_in_viewport(ratio=1)
        await dialog.get_by_role("button", name="Done").tap()
        title = page.locator(".item-title", has_text="The laptop at home")
        await expect(title).to_be_visible()
        assert (await box(title))["height"] < 30


async def test_low_balance_warning_leaves_the_composer_free(
    server: RunningServer, browser: Browser, width: int
) -> None:
    visitor = await asyncio.to_thread(new_visitor, server, dollars=0.5)
    async with on_phone(server, browser, visitor, "/", width) as page:
        warning = page.locator(".main > .notice")
        await expect(warning).to_be_visible()
        place, composer = await box(warning), await box(page.locator(".composer"))
        assert place["y"] + place["height"] < composer["y"]
        header = await box(page.locator(".top-bar"))
        assert place["y"] >= header["y"] + header["height"]
        await page.get_by_label("Message", exact=True).fill("What is 2 + 2?")
        await page.get_by_role("button", name="Send").tap()
        await expect(page.locator(".said-assistant .md")).to_contain_text("4")


async def test_touch_targets_have_44_pixels(server: RunningServer, browser: Browser, width: int) -> None:
    visitor = await asyncio.to_thread(new_visitor, server)
    conversation = await asyncio.to_thread(
        keep_conversation, server, visitor, ["A question", "An answer\n\n```python\nprint(1)\n```"]
    )
    with database(server) as tx:
        tx.execute("UPDATE accounts SET admin = 1 WHERE id = ?", (visitor.id,))
    await asyncio.to_thread(post, server, visitor, "/user/api-keys", {"name": "mine"})
    await asyncio.to_thread(post, server, visitor, "/projects", {"name": PROJECT})
    async with on_phone(server, browser, visitor, "/", width) as page:
        for view in [*VIEWS, f"chat/{conversation}"]:
            await page.goto(f"/#/{view}")
            await page.locator(".page, .chat").wait_for()
            await expect(page.locator(".state")).to_have_count(0)
            assert await page.evaluate(SMALL_TARGETS) == [], view
        await page.get_by_role("button", name="Copy code").wait_for()
        assert await page.evaluate(SMALL_TARGETS) == []
        await page.get_by_role("button", name="Open navigation").tap()
        await page.get_by_role("button", name="Actions for A kept one").tap()
        await page.get_by_role("menuitem", name="Delete").tap()
        await page.get_by_role("button", name="Undo").wait_for()
        assert await page.evaluate(SMALL_TARGETS) == []
