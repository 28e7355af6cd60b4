"""A real browser on the real server, for the tests of the page: Debian's Chromium, driven by Playwright over TLS."""

import os
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect

from tests.support.server import RunningServer
from tests.support.vendor import TESTS

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
# Nothing that the browser itself would like to fetch, and no sandbox, which needs more rights than a container has.
FLAGS = """
--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync
"""
# A machine that others use may stall: a test waits longer for what it expects, and ends at once when it is there.
expect.set_options(timeout=15_000)
WIDTHS = (390, 1440)
THEMES = ("light", "dark")
LOOKS = [(width, theme) for width in WIDTHS for theme in THEMES]
PASSWORD = "correct horse battery"
_AXE = TESTS / "axe-core" / "axe.min.js"


@dataclass
class Watch:
    """What must not happen on any page: console lines, errors, requests that leave the origin."""

    origin: str
    allowed: list[str] = field(default_factory=list)  # pieces of console lines that a test provokes on purpose
    seen: list[str] = field(default_factory=list)

    def follow(self, context: BrowserContext) -> None:
        context.on("console", lambda message: self._say(f"console {message.type}: {message.text}"))
        context.on("weberror", lambda error: self._say(f"error: {error.error}"))
        context.on("request", lambda request: self._request(request.url))

    def _say(self, text: str) -> None:
        if not any(piece in text for piece in self.allowed):
            self.seen.append(text)

    def _request(self, url: str) -> None:
        if not url.startswith((self.origin, "data:", "blob:")):
            self.seen.append(f"request: {url}")

    def check(self) -> None:
        assert self.seen == [], self.seen


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS.split())
        yield browser
        await browser.close()


@asynccontextmanager
async def new_context(
    browser: Browser, server: RunningServer, *, width: int = 1440, allow: Sequence[str] = (), **options: Any
) -> AsyncIterator[BrowserContext]:
    """A browser of one person, watched: at its end there was no console line, no error and no request to elsewhere.

    `allow`: pieces of the console lines that a test provokes on purpose. `options` go to Playwright's new_context.
    """
    height = 844 if width < 800 else 900
    context = await browser.new_context(
        base_url=server.base_url, ignore_https_errors=True, viewport={"width": width, "height": height}, **options
    )
    watch = Watch(server.base_url, list(allow))
    watch.follow(context)
    try:
        yield context
    finally:
        await context.close()
    watch.check()


async def signed_up(context: BrowserContext, email: str = "ada@example.com", address: str = "/") -> Page:
    """A page of a new account, signed up by its form."""
    page = await context.new_page()
    await page.goto(address)
    await page.get_by_label("E-mail").fill(email)
    await page.get_by_label("Password", exact=True).fill(PASSWORD)
    await page.get_by_role("button", name="Create account").click()
    await page.locator(".shell").wait_for(timeout=20_000)
    return page


async def opened(context: BrowserContext, address: str = "/") -> Page:
    """A page of whoever is signed in in `context`."""
    page = await context.new_page()
    await page.goto(address)
    await page.locator(".shell").wait_for()
    return page


async def findings(page: Page) -> list[str]:
    """What axe-core has against the page as it is now, a line each."""
    await page.evaluate(_AXE.read_text())
    result = await page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{violation['id']}: {node['html'][:160]} {node['any'][:1] and node['any'][0]['message']}"
        for violation in result["violations"]
        for node in violation["nodes"]
    ]
