"""The views of the contact sheets: each function opens some and yields their names."""

import functools
from collections.abc import AsyncIterator, Callable

from playwright.async_api import Page, expect

from tests.support.model_media import PNG
from tests.support.sheet_account import Account
from tests.web.test_texts import texts as all_texts

Views = AsyncIterator[str]
READY = "#content h1, .greeting, .said-assistant"
# The answer that is being written: words until it is stopped.
_SLOW = 6


@functools.cache
def words(language: str) -> dict[str, str]:
    """The texts of the page without parameters, by their paths."""
    found = {}
    for file, listed in all_texts()[language].items():
        for path, text in listed.items():
            if isinstance(text, str):
                found[f"{file.removesuffix('.js')}.{path.replace(chr(10), '.')}"] = text
    return found


def word(of: Account, path: str) -> str:
    return words(of.language)[path]


async def at(page: Page, address: str, ready: str = READY) -> None:
    await page.goto(f"/#/{address}")
    await page.locator(ready).first.wait_for()
    await expect(page.locator(".state .spinner")).to_have_count(0)


async def drawer(page: Page) -> None:
    """Open the navigation on a narrow page."""
    if await page.locator(".top-bar").is_visible() and not await page.locator(".sidebar-open").count():
        await page.locator(".top-bar button").first.click()
        await page.locator(".sidebar-open").wait_for()


async def forget(page: Page) -> None:
    """Delete the chat that is shown."""
    await page.evaluate("""async () => {
        const {token} = JSON.parse(localStorage["svc.session"]), [id] = location.hash.split("/").slice(-1);
        await fetch(`/conversations/${id}`, {method: "DELETE", headers: {authorization: `Bearer ${token}`}});
    }""")


async def closed(page: Page) -> None:
    await page.keyboard.press("Escape")
    await expect(page.locator("dialog[open], .menu-list, .picker-panel")).to_have_count(0)


async def menu_item(page: Page, name: str) -> None:
    await page.get_by_role("menuitem", name=name, exact=True).click()


async def chat_views(page: Page, of: Account) -> Views:
    ids, texts = of.ids, of.texts
    await at(page, "chat", ".greeting")
    yield "chat"
    await page.locator(".main > .notice button").click()
    await page.locator(".chat-head .picker-button").first.click()
    await page.get_by_role("option").first.wait_for()
    yield "models"
    await closed(page)
    await page.locator(".tools-button").click()
    await page.locator(".tool-choice").nth(3).wait_for()
    await page.get_by_role("switch").first.check()
    yield "tools"
    await page.get_by_role("switch").first.uncheck()
    await page.keyboard.press("Escape")
    await page.locator("#composer").press_sequentially("/")
    await page.get_by_role("option").first.wait_for()
    yield "prompt menu"
    await page.get_by_role("option").filter(has_text=texts["prompt"]).click()
    await page.locator("dialog[open]").wait_for()
    yield "prompt variables"
    await closed(page)
    await expect(page.locator("#composer")).to_have_value("/")  # the dialog gives it back
    await page.locator("#composer").fill(texts["question"])
    picture = {"name": "boat.svg.png", "mimeType": "image/png", "buffer": PNG}
    note = {"name": texts["note"], "mimeType": "text/markdown", "buffer": texts["result"].encode()}
    await page.locator(".composer input[type=file]").set_input_files([picture, note])
    await expect(page.locator(".attached > li")).to_have_count(2)
    await page.locator(".estimate").wait_for()
    yield "files"
    await page.locator(".attached").evaluate("list => list.querySelectorAll('li button').forEach(one => one.click())")
    await expect(page.locator(".attached > li")).to_have_count(0)
    await page.locator("#composer").fill("")
    await at(page, "chat/temporary", ".chat-temporary")
    yield "temporary"
    await at(page, f"chat/{ids['chat 0']}", ".sources")
    yield "answer, end"
    await page.locator(".message-foot, .message-actions").last.locator("[aria-haspopup=menu]").click()
    yield "answer menu"
    await page.keyboard.press("Escape")
    await page.locator(".tool-steps > summary").click()
    await page.locator(".chat-scroll").evaluate("box => box.scrollTo(0, 0)")
    yield "answer, start"


async def more_chat_views(page: Page, of: Account) -> Views:
    ids, texts = of.ids, of.texts
    await at(page, f"chat/{ids['chat 0']}", ".sources")
    await page.locator(".sources button, .sources a.citation, .sources .source button").last.click()
    await page.locator("dialog[open] mark").first.wait_for()
    yield "passage"
    await closed(page)
    await page.locator(".said-user .message-actions button").last.click()
    await page.locator(".editor-foot").wait_for()
    yield "edit"
    await at(page, f"chat/{ids['chat 1']}", ".approval")
    yield "approval"
    await at(page, f"chat/{ids['long']}", ".said-assistant")
    await _to_line(page)
    yield "summary"
    await at(page, f"chat/{ids['chat 0']}", ".sources")
    await page.get_by_role("button", name=word(of, "first.texts.common.preview")).click()
    await page.locator("iframe").wait_for()
    await page.frame_locator("iframe").locator("h1").wait_for()
    yield "preview"
    await page.locator(".preview-head button").last.click()
    await at(page, "chat", ".greeting")
    await page.locator(".chat-head .picker-button").first.click()
    await page.get_by_role("button", name=word(of, "first.texts.models.compare")).click()
    for name in ("aurora", "boreal", "cirrus"):
        await page.locator("dialog[open]").get_by_role("checkbox", name=name).check()
    yield "choose models"
    await page.locator("dialog[open] .button-primary").click()
    await page.locator("#composer").fill(texts["question"])
    await page.locator(".composer .send").click()
    take = page.get_by_role("button", name=word(of, "compare.texts.compare.take"))
    await expect(take).to_have_count(3)
    yield "compare"
    await take.first.click()
    await expect(page.locator("dialog[open]")).to_have_count(0)
    await forget(page)


async def _to_line(page: Page) -> None:
    line = page.locator(".view-line")
    await page.locator(".chat-scroll").hover()
    while not await line.count():
        await page.mouse.wheel(0, -500)
        await page.wait_for_timeout(100)
    await line.locator("summary").click()
    await line.scroll_into_view_if_needed()


async def live_views(page: Page, of: Account) -> Views:
    """An answer that is being written, with questions that wait."""
    await page.evaluate("""localStorage['svc.model'] = '"builtin/script"'""")
    await at(page, "chat", ".greeting")
    await page.reload()
    await page.locator("#composer").fill(f"say {of.texts['intro']}\nwait 9000\nsay 84")
    await page.keyboard.press("Enter")
    await page.locator(".live .md").wait_for()
    await page.locator("#composer").fill(of.texts["later"])
    await page.locator(".composer .send").click()
    await page.locator(".queue li").wait_for()
    yield "queue"
    await page.locator(".stop").click()
    await page.locator(".notice-bad").wait_for()  # the question that waited is no script
    yield "stopped, failed"
    await forget(page)
    await page.evaluate("""localStorage['svc.model'] = '"lab/aurora"'""")
    await page.reload()


async def side_views(page: Page, of: Account) -> Views:
    await at(page, f"chat/{of.ids['chat 0']}", ".sources")
    await drawer(page)
    yield "sidebar"
    await page.locator(".conversation.here .menu button").click()
    yield "conversation menu"
    await menu_item(page, word(of, "first.texts.conversations.settings"))
    await page.locator("dialog[open]").wait_for()
    yield "chat settings"
    await closed(page)
    await drawer(page)
    await page.locator(".conversation.here .menu button").click()
    await menu_item(page, word(of, "first.texts.conversations.share"))
    await page.locator("dialog[open]").wait_for()
    yield "share"
    await page.locator("dialog[open] .button-primary").click()
    await page.locator("dialog[open] input[readonly]").wait_for()
    yield "link"
    await closed(page)
    await drawer(page)
    await page.locator(".conversation-search .menu button").click()
    yield "filter"
    await menu_item(page, word(of, "first.texts.conversations.select"))
    await page.locator(".selection-row input").nth(2).check()
    await page.locator(".selection-row input").nth(3).check()
    yield "selection"
    await page.locator(".selection .button").last.click()
    await page.locator(".account-button").click()
    yield "account menu"
    await menu_item(page, word(of, "first.texts.shell.shortcuts"))
    await page.locator("dialog[open]").wait_for()
    yield "shortcuts"
    await closed(page)
    if await page.locator(".sidebar-open").count():
        await page.keyboard.press("Escape")


async def file_views(page: Page, of: Account) -> Views:
    ids = of.ids
    await at(page, "projects")
    yield "projects"
    await at(page, f"projects/{ids['project']}", "#content li")
    yield "project"
    await page.locator(".section-head > .actions .button").nth(2).click()
    await page.locator("dialog[open]").wait_for()
    yield "delete project"
    await closed(page)
    await at(page, "artifacts", "#content li")
    yield "artifacts"
    await at(page, f"artifacts/{ids[of.texts['file']]}")
    yield "artifact"
    await at(page, "media", "#content h1")
    yield "media"
    await at(page, "agents", "#content li")
    yield "agents"
    await at(page, f"agents/{ids['run']}")
    yield "run"


async def account_views(page: Page, of: Account) -> Views:
    for name in (
        "prompts",
        "keys",
        "providers",
        "tool-servers",
        "wallet",
        "settings",
        "imports",
        "memory",
        "shares",
        "support",
    ):
        await at(page, name)
        yield name
    await at(page, f"support/{of.ids['support']}")
    yield "support, one"
    await page.goto(f"/#{of.ids['shared']}")
    await page.locator(".shared .said-assistant").wait_for()
    yield "shared"


async def dialog_views(page: Page, of: Account) -> Views:
    for name in ("prompts", "keys", "providers", "tool-servers", "projects"):
        await at(page, name)
        await page.locator(".page-head .button-primary").click()
        await page.locator("dialog[open]").wait_for()
        yield f"new: {name}"
        await closed(page)
    await at(page, "wallet")
    await page.locator("section.card .actions .button").first.click()
    await page.locator("dialog[open]").wait_for()
    yield "limit"
    await closed(page)
    await at(page, "settings")
    await page.locator(".button-danger").last.click()
    await page.locator("dialog[open]").wait_for()
    yield "delete account"
    await closed(page)
    await page.evaluate("delete localStorage['svc.near-limit-shown']")


PARTS: dict[str, Callable[[Page, Account], Views]] = {
    "chat": chat_views,
    "more": more_chat_views,
    "side": side_views,
    "files": file_views,
    "account": account_views,
    "dialogs": dialog_views,
    "live": live_views,
}
