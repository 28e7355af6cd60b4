"""The preview of HTML, SVG and Mermaid: it is shown when asked for, and nothing leaves its frame."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from playwright.async_api import Browser, BrowserContext, Page, expect

from tests.support.browser import (
    WIDTHS,
    WITH_BROWSER,
    empty_page,
    findings,
    new_context,
    new_visitor,
    opened,
    signed_in,
)
from tests.support.browser_chat import keep_conversation
from tests.support.hostile_previews import OWN, SHOW, noticing, noticing_each
from tests.support.server import RunningServer

pytestmark = WITH_BROWSER
HTML = "<!doctype html><title>t</title><h1>Hello</h1><button id=b onclick='this.textContent = 42'>press</button>"
SVG = "<svg xmlns='http://www.w3.org/2000/svg' width='50' height='50'><circle cx='25' cy='25' r='20'/></svg>"
MERMAID = "graph TD\n  A[First] --> B[Second]"
SETTLE_MS = 400  # in which a request would have begun


def fenced(language: str, text: str) -> str:
    return f"```{language}\n{text}\n```"


async def with_answer(server: RunningServer, *blocks: str) -> tuple[Any, str]:
    visitor = await asyncio.to_thread(new_visitor, server, model="builtin/echo")
    answer = "\n\n".join(blocks)
    return visitor, await asyncio.to_thread(keep_conversation, server, visitor, ["Show it", answer])


@WIDTHS
async def test_page_is_shown_beside_the_chat_when_asked_for(
    server: RunningServer, browser: Browser, width: int
) -> None:
    visitor, kept = await with_answer(server, fenced("html", HTML), fenced("python", "print(1)"))
    theme: Any = "dark" if width == 390 else "light"
    look: Any = {"width": width, "theme": theme, "allow": ["postMessage"]}  # axe asks frames
    async with signed_in(browser, server, f"/#/chat/{kept}", visitor=visitor, **look) as page:
        button = page.get_by_role("button", name="Preview")
        await expect(button).to_have_count(1)
        assert await page.locator("iframe").count() == 0, "nothing runs before"
        await button.press("Enter")
        frame = page.frame_locator("iframe")
        await frame.get_by_role("button", name="press").click()
        await expect(frame.get_by_role("button", name="42")).to_be_visible()
        panel = page.get_by_role("dialog" if width == 390 else "complementary", name="Preview")
        await expect(panel).to_be_visible()
        assert await findings(page) == []
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        box = await panel.bounding_box()
        assert box is not None and ((box["x"], box["width"]) == (0, 390) if width == 390 else box["x"] > 600)
        await panel.get_by_role("button", name="Save as artifact").click()
        await expect(page.locator(".toast")).to_contain_text("Saved “page.html”")
        async with page.expect_download() as saving:
            await panel.get_by_role("button", name="Download").click()
        assert (await saving.value).suggested_filename == "page.html"
        await panel.get_by_role("heading").focus()
        await page.keyboard.press("Escape")
        await expect(page.locator("iframe")).to_have_count(0)
        await expect(button).to_be_focused()
        await page.locator(".toast").get_by_role("button", name="Show").click()
        await page.get_by_role("heading", name="page.html").wait_for()
        await button.press("Enter")
        await expect(frame.get_by_role("button", name="press")).to_be_visible()
        await expect(panel.get_by_role("button", name="Save as artifact")).to_have_count(0)
        assert await findings(page) == []
        await panel.get_by_role("heading").press("Escape")
        await expect(button).to_be_focused()
        await button.press("Enter")
        await expect(frame.get_by_role("button", name="press")).to_be_visible()
        await page.goto("/#/artifacts")
        await expect(page.locator("iframe")).to_have_count(0)
    async with server.client(headers=visitor.headers) as client:
        (artifact,) = (await client.get("/artifacts")).json()["data"]
        assert (artifact["name"], artifact["content_type"]) == ("page.html", "text/html")
        content = await client.get(f"/artifacts/{artifact['id']}/content")
        assert content.text.strip() == HTML
        token = (await client.post(f"/conversations/{kept}/shares", json={})).json()["token"]
    async with empty_page(browser, server, width=width) as page:
        await page.goto(f"/#/shared/{token}")
        await page.get_by_role("button", name="Preview").click()
        await expect(page.frame_locator("iframe").get_by_role("button", name="press")).to_be_visible()
        await expect(page.get_by_role("button", name="Save as artifact")).to_have_count(0)


async def test_svg_and_diagrams_are_drawn(server: RunningServer, browser: Browser) -> None:
    broken = "graph TD\n  A[["
    visitor, kept = await with_answer(
        server,
        fenced("svg", SVG),
        fenced("SVG", SVG),
        fenced("xml", "<a/>"),
        fenced("mermaid", MERMAID),
        fenced("mermaid", broken),
    )
    async with new_context(browser, server, visitor) as context:
        requests: list[str] = []
        context.on("request", lambda request: requests.append(request.url))
        page = await opened(context, f"/#/chat/{kept}")
        buttons = page.get_by_role("button", name="Preview")
        await expect(buttons).to_have_count(4)
        for number in (0, 1):
            await buttons.nth(number).click()
            await expect(page.frame_locator("iframe").locator("circle")).to_be_visible()
        assert not any("mermaid" in url for url in requests), "the library is loaded with the first diagram"
        await buttons.nth(2).click()
        await expect(page.frame_locator("iframe").locator("svg")).to_contain_text("Second")
        assert await page.frames[-1].evaluate("self.origin") == "null"
        await buttons.nth(3).click()
        await expect(page.get_by_text("The diagram has an error:")).to_be_visible()
        assert len([url for url in requests if "mermaid" in url]) == 1


@contextlib.asynccontextmanager
async def _closing(context: BrowserContext) -> AsyncIterator[None]:
    try:
        yield
    finally:
        await context.close()


async def shown(page: Page, content: str) -> None:
    """Show `content` in the panel, as the button of a code block does, and wait until it has run."""
    folder = await page.evaluate("document.querySelector('script[src$=\"first.js\"]').src.replace('first.js', '')")
    await page.evaluate(
        """async ([folder, text]) => {
            const { preview } = await import(`${folder}app/state.js`);
            const { open } = await import(`${folder}app/preview-panel.js`);
            preview.value = null;
            await new Promise(drawn => requestAnimationFrame(() => setTimeout(drawn)));
            await open("html", text);
        }""",
        [folder, content],
    )
    await page.locator("iframe.preview-frame, .preview .notice").first.wait_for()
    await page.wait_for_timeout(SETTLE_MS)


async def test_nothing_leaves_a_hostile_page(server: RunningServer, browser: Browser) -> None:
    visitor = await asyncio.to_thread(new_visitor, server)
    # The browser reports in the console what it blocks, so that this context is not watched.
    context = await browser.new_context(
        base_url=server.base_url, ignore_https_errors=True, storage_state=visitor.storage
    )
    async with noticing() as unlocked, noticing_each() as noticed, _closing(context):
        requests: list[str] = []
        context.on("requestfinished", lambda request: requests.append(request.url))
        page = await opened(context, "/")
        # Else the test would prove nothing: without the lock, WebRTC is noticed.
        await page.evaluate(f"() => {{ {unlocked.filled(OWN)} }}")
        await unlocked.notices()
        assert await page.evaluate(SHOW, json.dumps([one.page(name) for name, one in noticed.items()])) == 0
        assert {name: one.seen for name, one in noticed.items() if one.seen} == {}
        assert len(context.pages) == 1 and page.url == f"{server.base_url}/"
        own_requests = [url for url in requests if not url.startswith((server.base_url, "data:", "blob:"))]
        assert own_requests == []


async def test_frame_has_no_access_to_the_page_and_its_storage(server: RunningServer, browser: Browser) -> None:
    visitor, kept = await with_answer(server, fenced("html", HTML))
    tries = """<p id=p></p><script>
        const tries = [() => parent.document.title, () => top.location.href, () => localStorage.length,
            () => document.cookie, () => sessionStorage.length, () => frames.parent.api, () => indexedDB.open("a").error];
        p.textContent = tries.map(one => { try { return String(one()) } catch { return "refused" } }).join();
        parent.postMessage({kind: "drawn"}, "*");
    </script>"""
    async with new_context(browser, server, visitor, allow=["console"]) as context:
        page = await opened(context, f"/#/chat/{kept}")
        await page.get_by_role("button", name="Preview").wait_for()
        await shown(page, tries)
        said = await page.frame_locator("iframe").locator("#p").inner_text()
        assert said == ",".join(["refused"] * 7)


async def test_page_that_loads_itself_again_is_closed(server: RunningServer, browser: Browser) -> None:
    visitor, kept = await with_answer(server, fenced("html", HTML))
    async with signed_in(browser, server, f"/#/chat/{kept}", visitor=visitor) as page:
        await page.get_by_role("button", name="Preview").wait_for()
        await shown(page, "<script>setTimeout(() => location.reload(), 50)</script>")
        await expect(page.get_by_text("The content tried to load another page.")).to_be_visible()
        await expect(page.locator("iframe")).to_have_count(0)


@pytest.mark.parametrize("path", ["/preview"])
async def test_only_the_application_may_show_the_frame(server: RunningServer, path: str) -> None:
    async with server.client() as client:
        policy = (await client.get(path)).headers["content-security-policy"]
        assert policy.startswith("sandbox allow-scripts; default-src 'none'; ")
        assert "frame-ancestors 'self'" in policy and "allow-same-origin" not in policy
        for other in ("/docs", "/verify-email", "/password-reset"):
            assert "frame-src" not in (await client.get(other)).headers["content-security-policy"]
