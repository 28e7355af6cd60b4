"""Sharing in the page: the dialog, the list of links, and the copy as everyone reads it."""

import asyncio

import httpx
import orjson
import pytest
from playwright.async_api import Browser, Page, expect

from svc.content import answers
from svc.content.answers import AnswerDetails
from tests.support.browser import (
    LOOKS,
    PASSWORD,
    WITH_BROWSER,
    Theme,
    Visitor,
    database,
    empty_page,
    findings,
    new_visitor,
    signed_in,
)
from tests.support.browser_chat import keep_conversation
from tests.support.server import RunningServer

pytestmark = WITH_BROWSER
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="
SAID = ["Which trains *leave*?", "**Two**: `one` [1] and <script>top.alert(1)</script> <img src=x onerror=alert(1)>"]


def client(server: RunningServer, visitor: Visitor) -> httpx.Client:
    return httpx.Client(base_url=server.base_url, verify=server.tls or False, headers=visitor.headers, trust_env=False)


def kept(server: RunningServer, visitor: Visitor) -> str:
    """A conversation whose answer has a picture and a source; its id."""
    conversation_id = keep_conversation(server, visitor, SAID)
    with client(server, visitor) as http:
        body = {"name": "a drawing", "content_base64": PNG, "content_type": "image/png"}
        artifact = http.post("/artifacts", json=body).json()
    with database(server) as tx:
        result = {"id": "c", "name": "create_image", "ok": True, "result": {"id": artifact["id"]}}
        source = {"number": 1, "kind": "web", "url": "https://example.com/", "title": "Example"}
        texts = {"steps": [{"tool_result": result}], "sources": [source]}
        details = AnswerDetails(**{name: orjson.dumps(value).decode() for name, value in texts.items()})
        [answer] = tx.execute(
            "SELECT id FROM messages WHERE account_id = ? AND role = 'assistant'", (visitor.id,)
        ).fetchone()
        answers.add(tx, visitor.id, answer, [])
        answers.update(tx, visitor.id, answer, details)
    return conversation_id


async def actions_of(page: Page, title: str) -> None:
    """Open the menu of a conversation, in the drawer on a narrow page."""
    if await page.get_by_role("button", name="Open navigation").is_visible():
        await page.get_by_role("button", name="Open navigation").click()
    await page.get_by_role("button", name=f"Actions for {title}").click()


@pytest.mark.parametrize(("width", "theme"), LOOKS)
async def test_link_is_made_read_without_sign_in_and_ended(
    server: RunningServer, browser: Browser, width: int, theme: Theme
) -> None:
    visitor = await asyncio.to_thread(new_visitor, server)
    conversation_id = await asyncio.to_thread(kept, server, visitor)
    address = f"/#/chat/{conversation_id}"
    async with signed_in(browser, server, address, visitor=visitor, width=width, theme=theme) as page:
        await actions_of(page, "A kept one")
        await page.get_by_role("menuitem", name="Share").click()
        dialog = page.get_by_role("dialog", name="Share conversation")
        await expect(dialog.get_by_label("The link works for")).to_have_value("7")
        assert await findings(page) == []
        await dialog.get_by_label("The link works for").select_option("30 days")
        await dialog.get_by_role("button", name="Create link").click()
        link = await dialog.get_by_label("Link", exact=True).input_value()
        assert link.startswith(f"{server.base_url}/#/shared/")
        assert await findings(page) == []
    async with empty_page(browser, server, width=width, theme=theme) as reader:
        await reader.goto(link)
        await expect(reader.get_by_role("heading", name="A kept one")).to_be_visible()
        await expect(reader.locator(".said-user")).to_contain_text(SAID[0])
        answer = reader.locator(".said-assistant")
        await expect(answer.locator("strong")).to_have_text("Two")
        await expect(answer.get_by_role("link", name="Example").first).to_have_attribute("href", "https://example.com/")
        await expect(answer.get_by_alt_text("Picture of the answer")).to_have_js_property("naturalWidth", 1)
        assert await reader.locator(".shared script, .shared img[onerror]").count() == 0
        assert await reader.locator("meta[name=robots]").get_attribute("content") == "noindex"
        assert await reader.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert await reader.locator("textarea").count() == 0
        assert await findings(reader) == []
    async with signed_in(browser, server, "/#/settings", visitor=visitor, width=width, theme=theme) as page:
        await page.get_by_role("link", name="Shared links").click()
        item = page.locator("#content li")
        await expect(item).to_contain_text("A kept one")
        assert await findings(page) == []
        await item.get_by_role("button", name="End link").click()
        await page.get_by_role("dialog").get_by_role("button", name="End link").click()
        await expect(page.get_by_text("You have not shared a conversation.")).to_be_visible()
    async with empty_page(browser, server, width=width, theme=theme, allow=["404"]) as reader:
        await reader.goto(link)
        await expect(reader.get_by_text("This conversation is not shared.")).to_be_visible()
        assert await findings(reader) == []


def shared(server: RunningServer, visitor: Visitor, conversation_id: str) -> str:
    with client(server, visitor) as http:
        made = http.post(f"/conversations/{conversation_id}/shares", json={}).json()
    return f"/#/shared/{made['token']}"


async def test_reader_signs_in_and_continues_in_a_new_conversation(server: RunningServer, browser: Browser) -> None:
    owner, reader = [await asyncio.to_thread(new_visitor, server) for _ in range(2)]
    conversation_id = await asyncio.to_thread(kept, server, owner)
    address = await asyncio.to_thread(shared, server, owner, conversation_id)
    async with empty_page(browser, server) as page:
        await page.goto(address)
        await page.get_by_role("link", name="Sign in to continue").click()
        await page.get_by_label("Email").fill(reader.email)
        if await page.get_by_role("button", name="Create account").is_visible():
            await page.get_by_role("button", name="Sign in").first.click()
            await page.get_by_label("Email").fill(reader.email)
        await page.get_by_label("Password", exact=True).fill(PASSWORD)
        await page.get_by_role("button", name="Sign in", exact=True).last.click()
        await page.get_by_role("button", name="Continue in my account").click()
        await page.locator(".shell").wait_for()
        await expect(page.locator(".said-assistant strong")).to_have_text("Two")
        assert "#/chat/conv_" in page.url and conversation_id not in page.url


async def test_sharing_works_by_keyboard_alone(server: RunningServer, browser: Browser) -> None:
    visitor = await asyncio.to_thread(new_visitor, server)
    conversation_id = await asyncio.to_thread(kept, server, visitor)
    async with signed_in(browser, server, f"/#/chat/{conversation_id}", visitor=visitor) as page:
        await page.get_by_role("button", name="Actions for A kept one").focus()
        await page.keyboard.press("Enter")
        for _ in range(12):
            if await page.evaluate("document.activeElement.textContent.trim()") == "Share":
                break
            await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Enter")
        await page.get_by_role("dialog").wait_for()
        await page.get_by_role("button", name="Create link").focus()
        await page.keyboard.press("Enter")
        await page.get_by_label("Link", exact=True).wait_for()
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("dialog")).to_have_count(0)
