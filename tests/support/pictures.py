"""The pictures of the README, taken of the real page: `python -m tests.support.pictures` takes them again."""

import asyncio
import tempfile
from pathlib import Path

from playwright.async_api import Browser, BrowserContext, Page

from tests.support import cited, research
from tests.support.browser import chromium, new_context, new_visitor, opened
from tests.support.server import ROOT, running_server

FOLDER = ROOT / ".github" / "pictures"
QUESTION = "How do I find duplicates in a list, keeping the order?"
ANSWER = """Walk through the list once and remember what you have seen:

```python
def duplicates(items):
    seen, found = set(), []
    for item in items:
        if item in seen and item not in found:
            found.append(item)
        seen.add(item)
    return found
```

| Way | Time | Keeps the order |
|:----|:-----|:---------------:|
| `set` and a list, as above | linear | yes |
| `collections.Counter` | linear | yes |
| sorting first | n log n | no |

For most lists **`Counter`** reads best: `[item for item, n in Counter(items).items() if n > 1]`."""
OTHERS = (
    "Plan three days in Lisbon",
    "Why is the sky blue?",
    "Dinner without onions",
    "A name for a grey cat",
    "Rewrite this email",
)
GOAL = "What is 17 * 23? Draw a lighthouse at dusk, and write the answer into answer.md."


async def fill(page: Page) -> str:
    """Gives the account something to show: the id of a conversation."""
    conversation: str = await page.evaluate(
        """async ([others, question, answer]) => {
            const authorization = `Bearer ${JSON.parse(localStorage["svc.session"]).token}`;
            const headers = { authorization, "content-type": "application/json" };
            const post = async (path, body) =>
                (await fetch(path, { method: "POST", headers, body: JSON.stringify(body) })).json();
            for (const title of others) await post("/conversations", { title, pinned: title === others[0] });
            const { id } = await post("/conversations", {});
            await post(`/conversations/${id}/messages`, { role: "user", content: question });
            await post(`/conversations/${id}/messages`, { role: "assistant", content: answer });
            for (const prompt of ["a lighthouse at dusk", "a sailing boat", "a forest in the fog", "the moon over hills"])
                await post("/v1/images/generations", { prompt, response_format: "url" });
            const ask = content => post("/v1/chat/completions",
                { model: "builtin/assistant-paid", messages: [{ role: "user", content }] });
            for (const sum of ["1 + 1", "2 * 3", "7 * 9"]) await ask(`What is ${sum}?`);
            await post("/user/api-keys", { name: "laptop" });
            await post("/user/api-keys", { name: "website" });
            return id;
        }""",
        [OTHERS, QUESTION, ANSWER],
    )
    return conversation


async def take(context: BrowserContext, address: str, name: str, ready: str) -> None:
    page = await opened(context, address)
    await page.locator(ready).first.wait_for()
    await page.wait_for_timeout(1_500)
    await page.screenshot(path=FOLDER / f"{name}.jpg", type="jpeg", quality=72)
    await page.close()


async def take_research(folder: Path, browser: Browser) -> None:
    """An answer that searches, reads two pages, computes with Python and writes a report, with its steps."""
    folder.mkdir()
    async with research.research() as catalog:
        (folder / "catalog.toml").write_text(catalog)
        async with running_server(folder, {"SVC_CATALOG": str(folder / "catalog.toml")}) as server:
            remembered = {"model": "lab/analyst", "tools.new": research.TOOLS}
            visitor = new_visitor(server, "ada@example.com", dollars=25, **remembered)
            async with new_context(browser, server, visitor, width=1200) as context:
                page = await opened(context)
                await page.set_viewport_size({"width": 1200, "height": 1150})
                await page.get_by_label("Message", exact=True).fill(research.QUESTION)
                await page.keyboard.press("Enter")
                await page.locator(".sources").wait_for()
                await page.locator(".tool-steps > summary").click()
                await page.wait_for_timeout(1_500)
                await page.screenshot(path=FOLDER / "research.jpg", type="jpeg", quality=72)


async def take_cited(folder: Path, browser: Browser) -> None:
    """A quotation that is not in its file, with its warning, and the other one in its file."""
    folder.mkdir()
    async with cited.librarian() as catalog:
        (folder / "catalog.toml").write_text(catalog)
        async with running_server(folder, {"SVC_CATALOG": str(folder / "catalog.toml")}) as server:
            visitor = new_visitor(server, "ada@example.com", dollars=25, model="lab/librarian")
            project, _ = await cited.project_with(server, visitor, ("night-trains.md", cited.GUIDE.encode()))
            for name, width, theme in (("unverified", 390, "dark"), ("passage", 1200, "light")):
                async with new_context(browser, server, visitor, width=width, color_scheme=theme) as context:
                    page = await opened(context, f"/#/chat?project_id={project}")
                    await page.get_by_label("Message", exact=True).fill(cited.QUESTION)
                    await page.keyboard.press("Enter")
                    await page.locator(".sources .notice").wait_for()
                    if name == "passage":
                        await page.locator("button.citation").first.click()
                        await page.locator("dialog mark").wait_for()
                    await page.wait_for_timeout(1_500)
                    await page.screenshot(path=FOLDER / f"{name}.jpg", type="jpeg", quality=72)


async def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        async with running_server(Path(folder)) as server, chromium() as browser:
            await take_research(Path(folder) / "research", browser)
            await take_cited(Path(folder) / "cited", browser)
            visitor = new_visitor(server, "ada@example.com", dollars=25)
            async with new_context(browser, server, visitor) as context:
                page = await opened(context)
                conversation = await fill(page)
                await page.goto("/#/agents")
                await page.get_by_label("Goal").fill(GOAL)
                await page.get_by_role("button", name="Run", exact=True).click()
                await page.locator(".run-end").wait_for()
                run = page.url.rpartition("/")[2]
            for theme, width, name, address, ready in (
                ("light", 1200, "chat", f"/#/chat/{conversation}", ".token-keyword"),
                ("dark", 1200, "agents", f"/#/agents/{run}", ".run-end"),
                ("light", 1200, "media", "/#/media", ".page img"),
                ("light", 1200, "wallet", "/#/wallet", ".figure-value"),
                ("dark", 1200, "keys", "/#/keys", ".list"),
                ("dark", 390, "phone", f"/#/chat/{conversation}", ".token-keyword"),
            ):
                async with new_context(browser, server, visitor, color_scheme=theme, width=width) as context:
                    await take(context, address, name, ready)


if __name__ == "__main__":
    asyncio.run(main())
