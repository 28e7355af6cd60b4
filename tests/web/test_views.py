"""Every view at both widths and in both themes: axe-core finds nothing, markup in names stays text,
nothing overflows.
"""

import asyncio
import re
from collections.abc import Sequence
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser, Page, expect

from tests.support.browser import (
    LOOKS,
    OTHER_LOOKS,
    PASSWORD,
    WITH_BROWSER,
    Theme,
    Visitor,
    database,
    empty_page,
    findings,
    look,
    new_visitor,
    signed_in,
)
from tests.support.browser_chat import keep_conversation
from tests.support.server import RunningServer

pytestmark = WITH_BROWSER
Looks = list[tuple[int, Theme]]
IN_LOOKS = pytest.mark.parametrize("looks", [LOOKS, pytest.param(OTHER_LOOKS, marks=pytest.mark.soak)])

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
# Where it is, and what opens each further state of it.
VIEWS: list[tuple[str, list[list[str]]]] = [
    ("/#/chat", [["Model:"], ["Actions for A kept one", "Chat settings"]]),
    ("/#/chat/{conversation}", []),
    ("/#/agents", [["Tools: All tools"]]),
    ("/#/agents/{run}", []),
    ("/#/media", [["View the sea"]]),
    ("/#/artifacts", []),
    ("/#/artifacts/{artifact}", [["Delete"]]),
    ("/#/projects", []),
    ("/#/projects/{project}", [["Delete"]]),
    ("/#/prompts", [["New prompt"], [f"Actions for {EVIL}", "Edit"]]),
    ("/#/keys", [["New key"]]),
    ("/#/providers", [["Add provider"], ["Actions for mine", "Edit"], ["Actions for mine", "Delete"]]),
    ("/#/providers?connect=ollama", []),
    ("/#/wallet", [["View as table"]]),
    ("/#/settings", [["Delete account"], ["Change password"]]),
    ("/#/support", []),
    ("/#/support/{support}", [["Close conversation"]]),
    ("/#/admin", [["Invite user"]]),
    ("/#/admin/users/{user}", [["Suspend"], ["Delete user"]]),
    ("/#/admin/spend", []),
    ("/#/admin/support", []),
    ("/#/admin/support/{support}", []),
    ("/#/admin/status", []),
    ("/#/admin/prompts", [["New prompt"]]),
    ("/#/admin/audit", []),
]
# What a narrow page or the other theme can break. The wide page shows all parts, so it is checked against all rules.
LAYOUT = ["color-contrast", "scrollable-region-focusable"]
SIGNED_OUT = ("/password-reset#token", "/verify-email#token", "/password-reset", "/checkout", "/nowhere", "/")


def somebody_with_everything(server: RunningServer) -> tuple[Visitor, dict[str, str]]:
    """An account with something in every view, most of it with markup in its names, and the ids of that."""
    visitor, other, gone = new_visitor(server, dollars=25), new_visitor(server), new_visitor(server)
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
        post("/prompts", name=EVIL, text=EVIL)
        post("/user/providers", name="mine", base_url="http://127.0.0.1:9/v1", api_key="sk-0123456789")
        support = post("/support/conversations", subject=EVIL, message=EVIL).json()["id"]
        client.patch(f"/admin/users/{other.id}", json={"name": EVIL}).raise_for_status()
        # The audit log has its actor, whose address it must not ask for.
        client.request("DELETE", "/user/me", headers=gone.headers, json={"password": PASSWORD}).raise_for_status()
    conversation = keep_conversation(server, visitor, [EVIL, MARKDOWN])
    return visitor, {
        "user": other.id,
        "project": project,
        "run": run,
        "artifact": artifact,
        "support": support,
        "conversation": conversation,
    }


async def check(page: Page, name: str, looks: Looks, rules: Sequence[str] = LAYOUT) -> None:
    """Holds what is shown now against axe, and against what no page may do. Ends with the wide look.

    `rules`: those for a narrow page.
    """
    await expect(page.locator(".state")).to_have_count(0)
    for width, theme in looks:
        await look(page, width, theme)
        await page.evaluate("new Promise(drawn => requestAnimationFrame(() => setTimeout(drawn)))")
        assert await findings(page, rules if width < 800 else ()) == [], (name, width, theme)
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name} is too wide"
    assert not re.fullmatch("[123]", await page.title()), f"a script ran in {name}"


@IN_LOOKS
async def test_views_and_their_dialogs_are_accessible(server: RunningServer, browser: Browser, looks: Looks) -> None:
    visitor, ids = await asyncio.to_thread(somebody_with_everything, server)
    async with signed_in(browser, server, visitor=visitor) as page:
        for address, states in VIEWS:
            await page.goto(address.format(**ids))
            await page.locator(".page, .chat").wait_for()
            await check(page, address, looks)
            for opens in states:
                for name in opens:
                    button = page.get_by_role("button", name=name).or_(page.get_by_role("menuitem", name=name))
                    await button.or_(page.locator("summary", has_text=name)).first.click()
                await check(page, f"{address} {opens}", looks)
                await page.keyboard.press("Escape")
                await expect(page.locator("dialog[open]")).to_have_count(0)
        await page.keyboard.press("?")
        await page.locator("dialog[open]").wait_for()
        await check(page, "the shortcuts", looks)
        await page.keyboard.press("Escape")
        for width, theme in looks:  # a narrow page closes the menu with its navigation
            await look(page, width, theme)
            if width < 800:
                await page.get_by_role("button", name="Open navigation").click()
            await page.get_by_role("button", name="Actions for A kept one").click()
            await check(page, "the menu of a conversation", [(width, theme)], ())
            await page.keyboard.press("Escape")


@IN_LOOKS
async def test_signed_out_pages_are_accessible(server: RunningServer, browser: Browser, looks: Looks) -> None:
    # A link gives the page no name, which the browser expects beside a password.
    async with empty_page(browser, server, allow=["Password forms should", "401", "404"]) as page:
        for address in SIGNED_OUT:
            await page.goto(address)
            await page.locator("h1, h2").first.wait_for()
            await check(page, address, looks)
        for button in ("Already have an account? Sign in", "Forgot your password?"):
            await page.get_by_role("button", name=button).click()
            await check(page, button, looks)


@pytest.mark.soak
async def test_reference_is_accessible(server: RunningServer, browser: Browser) -> None:
    async with empty_page(browser, server) as page:
        await page.goto("/docs")
        await page.get_by_role("button").first.wait_for()
        await check(page, "/docs", [*LOOKS, *OTHER_LOOKS])
