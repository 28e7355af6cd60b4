"""A real browser on the real server, for the tests of the page: Debian's Chromium, driven by Playwright over TLS.

If the headless shell is installed, it is used: the same engine for three quarters of the work.
"""

import asyncio
import itertools
import json
import os
import secrets
import shutil
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import httpx
import pytest
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, ViewportSize, async_playwright, expect

from svc.billing import wallet
from svc.schema import command_connection
from tests.support.server import RunningServer
from tests.support.vendor import TESTS

CHROMIUM = (
    os.environ.get("CHROMIUM") or shutil.which("chromium-headless-shell") or shutil.which("chromium") or "chromium"
)
Theme = Literal["light", "dark"]
WITH_BROWSER = [pytest.mark.needs(CHROMIUM), pytest.mark.asyncio(loop_scope="session")]  # the marks of what shares one
# Nothing that the browser itself would like to fetch, no sandbox, which needs more rights than a container has, and no
# process for the graphics, which takes a tenth of the CPU.
FLAGS = """
--no-sandbox --disable-gpu --in-process-gpu --disable-quic --no-first-run --disable-background-networking
--disable-component-update --disable-sync
"""
# A machine that others use may stall: a test waits longer for what it expects, and ends at once when it is there.
expect.set_options(timeout=30_000)
# The smallest page with the wide layout: to draw 1440 x 900 pixels takes a tenth more of the CPU of a page that loads.
SMALLEST_WIDE = 800
HEIGHTS = {SMALLEST_WIDE: 600, 1440: 900}
# Both layouts and both themes; the other two pairs take as long again.
LOOKS: list[tuple[int, Theme]] = [(390, "light"), (SMALLEST_WIDE, "dark")]
OTHER_LOOKS: list[tuple[int, Theme]] = [(390, "dark"), (1440, "light")]
# Most tests have the wide page. Those of what a narrow one moves or hides have this one, and in the long run both.
WIDTHS = pytest.mark.parametrize("width", [390, pytest.param(1440, marks=pytest.mark.soak)])
PASSWORD = "correct horse battery"
REMEMBER = "items => { for (const {name, value} of items) localStorage[name] = value; }"
_AXE = TESTS / "axe-core" / "axe.min.js"
# In the page, because Playwright takes longer to read the whole result of axe than a line for each violation.
_FIND = """async (rules) => (await axe.run(document, {
    preload: false, resultTypes: ["violations"], ...(rules.length && {runOnly: {type: "rule", values: rules}})
})).violations.flatMap(({id, nodes}) =>
    nodes.map(({html, any}) => `${id}: ${html.slice(0, 160)} ${any[0]?.message ?? ""}`))"""


@dataclass
class Watch:
    """What must not happen on any page: console lines, errors, requests that leave the origin."""

    origin: str
    allowed: list[str] = field(default_factory=list)  # pieces of console lines that a test provokes on purpose
    seen: list[str] = field(default_factory=list)

    def follow(self, context: BrowserContext) -> None:
        context.on("console", lambda message: self._say(_console_line(message)))
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


def _console_line(message: ConsoleMessage) -> str:
    """Return the line with the address that it is about, and that of the page: "404" alone does not name the request."""
    page = message.page.url if message.page else ""
    return f"console {message.type}: {message.text} {message.location['url']} on {page}"


@dataclass(frozen=True)
class Visitor:
    """A new account: `token` of a session, and what a browser stores of it (Playwright's storage_state)."""

    email: str
    id: str
    token: str
    storage: dict[str, Any]

    @property
    def headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.token}"}


_unused: dict[tuple[Any, ...], tuple[Page, Watch]] = {}  # by browser, base URL of the server, and options
_addresses = (f"127.0.{1 + number // 250}.{2 + number % 250}" for number in itertools.count())


def new_email() -> str:
    """Return a separate address for every try of a test: data of an earlier try still exists."""
    return f"{secrets.token_hex(4)}@example.com"


@contextmanager
def database(server: RunningServer) -> Iterator[sqlite3.Connection]:
    """A transaction on the server's database, as the operator's commands have it."""
    with command_connection(server.data_dir / "service.db") as tx:
        yield tx


def new_visitor(server: RunningServer, email: str | None = None, *, dollars: float = 0, **remembered: Any) -> Visitor:
    """Signs up through the interface and puts `dollars` into the wallet. `remembered`: what else the page keeps in the
    browser, such as `model`.

    10 an hour can sign up from one address; so each comes from another one of this machine's.
    """
    transport = httpx.HTTPTransport(verify=server.tls or False, local_address=next(_addresses))
    email = email or new_email()
    with httpx.Client(base_url=server.base_url, transport=transport, trust_env=False) as client:
        answer = client.post("/auth/signup", json={"email": email, "password": PASSWORD})
        assert answer.status_code == 201, answer.text
        cookies = [
            {
                "name": cookie.name,
                "value": cookie.value,
                "domain": server.host,
                "path": "/",
                "secure": True,
                "sameSite": "Lax",
            }
            for cookie in client.cookies.jar
        ]
    session = answer.json()
    if dollars:
        _credit(server, session["user"]["id"], dollars)
    kept = {
        "session": {
            "token": session["access_token"],
            "expiresAt": (time.time() + 28_000) * 1000,
            "user": session["user"],
        }
    }
    local = [{"name": f"svc.{name}", "value": json.dumps(value)} for name, value in {**kept, **remembered}.items()]
    local.append({"name": "svc-known", "value": "1"})
    storage = {"cookies": cookies, "origins": [{"origin": server.base_url, "localStorage": local}]}
    return Visitor(email, session["user"]["id"], session["access_token"], storage)


def _credit(server: RunningServer, account_id: str, dollars: float, times: int = 1) -> None:
    with database(server) as tx:
        for _ in range(times):
            wallet.book(tx, account_id, round(dollars * 1_000_000), description="Credit", now_seconds=time.time())


async def credit(server: RunningServer, page: Page, dollars: float, *, times: int = 1) -> None:
    """Puts money into the wallet of who is signed in on `page`, so many times."""
    await asyncio.to_thread(_credit, server, (await user_of(page))["id"], dollars, times)


async def user_of(page: Page) -> dict[str, Any]:
    """Who is signed in on `page`."""
    user: dict[str, Any] = await page.evaluate("JSON.parse(localStorage['svc.session']).user")
    return user


@asynccontextmanager
async def chromium(*flags: str, **env: str) -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=CHROMIUM, args=[*FLAGS.split(), *flags], env={**os.environ, **env}
        )
        yield browser
        await browser.close()


def _viewport(width: int) -> ViewportSize:
    return {"width": width, "height": HEIGHTS.get(width, 844)}


@asynccontextmanager
async def new_context(
    browser: Browser,
    server: RunningServer,
    visitor: Visitor | None = None,
    *,
    width: int = 1440,
    allow: Sequence[str] = (),
    **options: Any,
) -> AsyncIterator[BrowserContext]:
    """A browser of one person, watched: at its end there was no console line, no error and no request to elsewhere.

    `allow`: pieces of the console lines that a test provokes on purpose. `options` go to Playwright's new_context.
    """
    storage: Any = visitor and visitor.storage
    context = await browser.new_context(
        base_url=server.base_url,
        ignore_https_errors=True,
        viewport=_viewport(width),
        storage_state=storage,
        **options,
    )
    watch = Watch(server.base_url, list(allow))
    watch.follow(context)
    try:
        yield context
    finally:
        await context.close()
    watch.check()


@asynccontextmanager
async def empty_page(
    browser: Browser,
    server: RunningServer,
    *,
    width: int = SMALLEST_WIDE,
    theme: Theme = "light",
    allow: Sequence[str] = (),
    **options: str | bool,
) -> AsyncIterator[Page]:
    """A watched page that is not signed in, on the server's origin. `options` go to Playwright's new_context.

    The page has seen earlier tests, and has forgotten them: a new one takes twice the CPU. It prefers reduced motion: to
    draw the frames of the animations takes a fifth of the CPU. The contexts of `new_context` have them.
    """
    kind = (browser, server.base_url, *sorted(options.items()))
    page, watch = _unused.pop(kind, None) or await _new_page(browser, server, options)
    watch.allowed, watch.seen = list(allow), []
    await look(page, width, theme)
    try:
        yield page
        await _forget(page)
    except BaseException:
        await page.context.close()
        raise
    watch.check()
    _unused[kind] = (page, watch)


@asynccontextmanager
async def signed_in(
    browser: Browser,
    server: RunningServer,
    address: str = "/",
    *,
    dollars: int = 0,
    model: str | None = None,
    visitor: Visitor | None = None,
    **options: Any,
) -> AsyncIterator[Page]:
    """A page of `visitor` or of a new account, at `address`. `model`: the built-in one that was chosen last. `options`
    are those of `empty_page`.
    """
    if visitor is None:
        remembered = {"model": f"builtin/{model}"} if model else {}
        visitor = await asyncio.to_thread(new_visitor, server, dollars=dollars, **remembered)
    async with empty_page(browser, server, **options) as page:
        await page.context.add_cookies(visitor.storage["cookies"])
        await page.evaluate(REMEMBER, visitor.storage["origins"][0]["localStorage"])
        yield await opened(page.context, address, page)


async def look(page: Page, width: int, theme: Theme) -> None:
    await page.set_viewport_size(_viewport(width))
    await page.emulate_media(color_scheme=theme)


async def _new_page(browser: Browser, server: RunningServer, options: dict[str, Any]) -> tuple[Page, Watch]:
    context = await browser.new_context(
        base_url=server.base_url, ignore_https_errors=True, reduced_motion="reduce", **options
    )
    watch = Watch(server.base_url)
    watch.follow(context)
    page = await context.new_page()
    await page.goto("/healthz")
    return page, watch


async def _forget(page: Page) -> None:
    """Remove what a test has left in the page and in its context."""
    for other in page.context.pages:
        if other is not page:
            await other.close()
    await page.unroute_all(behavior="ignoreErrors")
    await page.context.set_offline(False)
    await page.goto("/healthz")
    await page.evaluate("localStorage.clear(); sessionStorage.clear()")
    await page.context.clear_cookies()


async def opened(context: BrowserContext, address: str = "/", page: Page | None = None) -> Page:
    """A page of the account that is signed in in `context`."""
    page = page or await context.new_page()
    await page.goto(address)
    await page.locator(".shell").wait_for()
    return page


async def sign_up(page: Page, address: str = "/") -> str:
    """Sign up in the form at `address`. Return the email."""
    email = new_email()
    await page.goto(address)
    await page.get_by_label("Email").fill(email)
    await page.get_by_label("Password", exact=True).fill(PASSWORD)
    await page.get_by_role("button", name="Create account").click()
    await page.locator(".shell").wait_for()
    return email


async def findings(page: Page, rules: Sequence[str] = ()) -> list[str]:
    """What axe-core has against the page as it is now, a line each. `rules`: those to check, or else all."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(_AXE.read_text())
    found: list[str] = await page.evaluate(_FIND, rules)
    return found
