"""Every view at both widths and in both themes: axe-core finds nothing, markup in names stays text,
nothing overflows.
"""

import asyncio
import re
from typing import Any

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.support.browser import (
    LOOKS,
    WITH_BROWSER,
    Theme,
    Visitor,
    database,
    findings,
    new_context,
    new_visitor,
    signed_in,
)
from tests.support.browser_chat import keep_conversation
from tests.support.server import RunningServer

pytestmark = WITH_BROWSER

EVIL = '<img src=x onerror="document.title=1"><script>document.title=2</script>'
MARKDOWN = """# Results

Some **bold**, *emphasis*, `code` and a [link](https://example.com/page).

- one
- [x] two

| Name | Price |
|:-----|------:|
| alpha | 12.50 |

> said before

```python
def greet(name):
    return f"Hello, {name}!"
```
"""
GOAL = f"""say {EVIL}
tool write_artifact {{"name": "note.md", "content": "# Hi <script>document.title=3</script>"}}
---
say Done: **{EVIL}**"""
# Where it is, and what opens it when it is not shown by the address alone.
VIEWS = {
    "/#/chat": None,
    "/#/agents": "Tools: All tools",
    "/#/agents/{run}": None,
    "/#/media": None,
    "/#/artifacts": None,
    "/#/artifacts/{artifact}": None,
    "/#/projects": None,
    "/#/projects/{project}": None,
    "/#/keys": "New key",
    "/#/providers": "Add provider",
    "/#/wallet": "View as table",
    "/#/settings": "Delete account",
    "/#/support": None,
    "/#/support/{support}": None,
    "/#/admin": None,
    "/#/admin/users/{user}": None,
    "/#/admin/spend": None,
    "/#/admin/support": None,
    "/#/admin/support/{support}": None,
    "/#/admin/status": None,
    "/#/admin/audit": None,
}
# Where a dialog is, and what opens it.
DIALOGS = [
    ("/#/chat", ["Actions for A kept one", "Chat settings"]),
    ("/#/settings", ["Change password"]),
    ("/#/media", ["View the sea"]),
    ("/#/providers", ["Actions for mine", "Edit"]),
    ("/#/providers", ["Actions for mine", "Delete"]),
    ("/#/providers?connect=ollama", []),
    ("/#/artifacts/{artifact}", ["Delete"]),
    ("/#/projects/{project}", ["Delete"]),
    ("/#/support/{support}", ["Close conversation"]),
    ("/#/admin", ["Invite user"]),
    ("/#/admin/users/{user}", ["Suspend"]),
    ("/#/admin/users/{user}", ["Delete user"]),
]
SIGNED_OUT = ("/password-reset#token", "/verify-email#token", "/password-reset", "/checkout", "/nowhere", "/")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def somebody(server: RunningServer) -> tuple[Visitor, dict[str, str]]:
    return await asyncio.to_thread(somebody_with_everything, server)


def somebody_with_everything(server: RunningServer) -> tuple[Visitor, dict[str, str]]:
    """An account with something in every view, most of it with markup in its names, and the ids of that."""
    visitor, other = new_visitor(server, dollars=25), new_visitor(server)
    with database(server) as tx:
        tx.execute("UPDATE accounts SET admin = 1 WHERE id = ?", (visitor.id,))
    with httpx.Client(
        base_url=server.base_url, verify=server.tls or False, headers=visitor.headers, trust_env=False
    ) as client:

        def post(path: str, **body: Any) -> Any:
            answer = client.post(path, json=body)
            assert answer.is_success, answer.text
            return answer

        project = post("/projects", name=EVIL, instructions=EVIL).json()["id"]
        run = post("/v1/agents/run", goal=GOAL, model="builtin/script", project_id=project).headers["x-service-run"]
        artifact = client.get("/artifacts").json()["data"][0]["id"]
        post("/v1/images/generations", prompt="the sea", size="256x256", response_format="url")
        post("/user/api-keys", name=EVIL)
        post("/user/providers", name="mine", base_url="http://127.0.0.1:9/v1", api_key="sk-0123456789")
        support = post("/support/conversations", subject=EVIL, message=EVIL).json()["id"]
        client.patch(f"/admin/users/{other.id}", json={"name": EVIL}).raise_for_status()
    conversation = keep_conversation(server, visitor, [EVIL, MARKDOWN])
    return visitor, {
        "user": other.id,
        "project": project,
        "run": run,
        "artifact": artifact,
        "support": support,
        "conversation": conversation,
    }


async def check(page: Page, view: str) -> None:
    """Holds what is shown now against axe, and against what no page may do."""
    await expect(page.locator(".state")).to_have_count(0)
    assert await findings(page) == [], view
    assert not re.fullmatch("[123]", await page.title()), f"a script ran in {view}"
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{view} is wider than the screen"


@pytest.mark.parametrize(("width", "theme"), LOOKS)
async def test_views_are_accessible(
    server: RunningServer, browser: Browser, somebody: tuple[Visitor, dict[str, str]], width: int, theme: Theme
) -> None:
    visitor, ids = somebody
    async with signed_in(browser, server, visitor=visitor, width=width, theme=theme) as page:
        for view, opens in VIEWS.items():
            await page.goto(view.format(**ids))
            await page.locator(".page, .chat").wait_for()
            if opens:
                await page.get_by_text(opens).or_(page.get_by_role("button", name=opens)).first.click()
            await check(page, view)
            await page.keyboard.press("Escape")


@pytest.mark.parametrize(("width", "theme"), LOOKS)
async def test_chat_is_accessible(
    server: RunningServer, browser: Browser, somebody: tuple[Visitor, dict[str, str]], width: int, theme: Theme
) -> None:
    visitor, ids = somebody
    address = f"/#/chat/{ids['conversation']}"
    async with signed_in(browser, server, address, visitor=visitor, width=width, theme=theme) as page:
        await expect(page.locator(".token-keyword").first).to_be_visible()
        await page.get_by_role("button", name="Model:").click()
        await check(page, "the model picker")
        await page.keyboard.press("Escape")
        if width < 800:
            await page.get_by_role("button", name="Open navigation").click()
        await page.get_by_role("button", name="Actions for A kept one").click()
        await check(page, "the menu of a conversation")


@pytest.mark.parametrize(("width", "theme"), LOOKS)
async def test_dialogs_are_accessible(
    server: RunningServer, browser: Browser, somebody: tuple[Visitor, dict[str, str]], width: int, theme: Theme
) -> None:
    visitor, ids = somebody
    async with signed_in(browser, server, visitor=visitor, width=width, theme=theme) as page:
        for view, opens in DIALOGS:
            await page.goto(view.format(**ids))
            await page.locator(".page, .chat").wait_for()
            for name in opens:
                button = page.get_by_role("button", name=name).or_(page.get_by_role("menuitem", name=name)).first
                if name.startswith("Actions for A kept") and width < 800:
                    await page.get_by_role("button", name="Open navigation").click()
                await button.click()
            await page.locator("dialog[open]").wait_for()
            await check(page, f"{view} {opens}")
            await page.keyboard.press("Escape")
            await expect(page.locator("dialog[open]")).to_have_count(0)
        await page.keyboard.press("?")
        await page.locator("dialog[open]").wait_for()
        await check(page, "the shortcuts")


@pytest.mark.parametrize(("width", "theme"), LOOKS)
async def test_signed_out_pages_are_accessible(
    server: RunningServer, browser: Browser, width: int, theme: Theme
) -> None:
    # A link gives the page no name, which the browser expects beside a password.
    async with new_context(
        browser, server, width=width, color_scheme=theme, allow=["Password forms should", "401", "404"]
    ) as context:
        page = await context.new_page()
        for address in SIGNED_OUT:
            await page.goto(address)
            await page.locator("h1, h2").first.wait_for()
            await check(page, address)
        for button in ("Already have an account? Sign in", "Forgot your password?"):
            await page.get_by_role("button", name=button).click()
            await check(page, button)


@pytest.mark.soak
@pytest.mark.parametrize(("width", "theme"), LOOKS)
async def test_reference_is_accessible(server: RunningServer, browser: Browser, width: int, theme: Theme) -> None:
    async with new_context(browser, server, width=width, color_scheme=theme) as context:
        page = await context.new_page()
        await page.goto("/docs")
        await page.get_by_role("button").first.wait_for()
        await check(page, "/docs")
