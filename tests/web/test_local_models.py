"""GGUF files in the page: administrators add one by its address and remove it, and a chat says that its model loads."""

import asyncio
import re
from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Browser, Route, expect

from tests.support.browser import WIDTHS, WITH_BROWSER, Visitor, new_visitor, signed_in
from tests.support.file_server import FileServer
from tests.support.people import command
from tests.support.server import RunningServer

pytestmark = [*WITH_BROWSER, WIDTHS]


@pytest_asyncio.fixture(loop_scope="session")
async def admin(server: RunningServer) -> Visitor:
    """An administrator of the shared server."""
    visitor = await asyncio.to_thread(new_visitor, server)
    command(server, "user", "admin", visitor.email, "on")
    return visitor


@pytest_asyncio.fixture(loop_scope="session")
async def files() -> AsyncIterator[FileServer]:
    async with FileServer(b"GGUF" + bytes(1024 * 1024)) as server:
        yield server


async def test_model_is_added_by_address_and_removed(
    browser: Browser, server: RunningServer, admin: Visitor, files: FileServer, width: int
) -> None:
    async with signed_in(browser, server, "/#/admin/models", visitor=admin, width=width, allow=["409"]) as page:
        await page.get_by_label("Address of a GGUF file").fill(f"{files.address}/redirect?/whole.gguf")
        await page.get_by_role("button", name="Download").click()
        row = page.get_by_role("row", name="local/redirect")
        await expect(row).to_contain_text("Not loaded")
        await expect(page.get_by_text("Added redirect.")).to_be_visible()
        await page.get_by_label("Address of a GGUF file").fill(f"{files.address}/redirect")
        await page.get_by_role("button", name="Download").click()
        await expect(page.get_by_text("there is a model 'redirect' already")).to_be_visible()
        await row.get_by_role("button", name="Remove").click()
        await page.get_by_role("dialog").get_by_role("button", name="Remove").click()
        await expect(row).to_have_count(0)
        await page.goto("/#/admin/audit")
        await expect(page.locator(".item-title", has_text="Removed a model").first).to_be_visible()


async def test_stopped_download_says_how_to_continue(
    browser: Browser, server: RunningServer, admin: Visitor, files: FileServer, width: int
) -> None:
    async with signed_in(browser, server, "/#/admin/models", visitor=admin, width=width) as page:
        await page.get_by_label("Address of a GGUF file").fill(f"{files.address}/chunks-without-end")
        await page.get_by_role("button", name="Download").click()
        await expect(page.get_by_role("progressbar")).to_be_visible()
        await page.get_by_role("button", name="Stop").click()
        await expect(page.get_by_text("Add it again to continue")).to_be_visible()


async def test_chat_says_that_its_model_loads(browser: Browser, server: RunningServer, width: int) -> None:
    states = iter(["unloaded", "loading", "loading", "loading"])
    go = asyncio.Event()

    async def state(route: Route) -> None:
        await route.fulfill(json={"id": "local/x", "state": next(states, "ready")})

    async def answer(route: Route) -> None:
        await go.wait()
        await route.continue_()

    async def settings(route: Route) -> None:
        found = await (await route.fetch()).json()
        await route.fulfill(json={**found, "chat_model": "local/x"})

    async with signed_in(browser, server, width=width) as page:
        await page.route(re.compile("/v1/models/local"), state)
        await page.route("**/v1/chat/completions", answer)
        await page.route("**/user/settings", settings)
        await page.reload()
        await page.get_by_label("Message", exact=True).fill("say hello")
        await page.get_by_role("button", name="Send").click()
        notice = page.get_by_role("status").filter(has_text="Loading the model:")
        await expect(notice).to_have_text("Loading the model: 1 s")
        await expect(notice).to_have_text(re.compile(r"Loading the model: [2-9] s"))  # each is shown for a second
        await expect(notice).to_have_count(0, timeout=10_000)
        go.set()
        await expect(page.locator(".said-assistant")).to_be_visible()
