"""Saved prompts on the page: the list that / opens, variables, the view, files, and prompts of groups."""

import asyncio
import json
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Page, expect

from tests.support.browser import WIDTHS, WITH_BROWSER, Visitor, database, findings, new_visitor, signed_in
from tests.support.server import RunningServer

pytestmark = WITH_BROWSER
TRANSLATE = {"name": "Translate", "text": "Translate into {{language}}: {{ text }} ({{language}})"}
SHORTEN = {"name": "Shorten", "text": "Make this shorter:\n"}


async def with_prompts(server: RunningServer, *prompts: dict[str, str]) -> Visitor:
    visitor = await asyncio.to_thread(new_visitor, server, model="builtin/echo")
    async with server.client(headers=visitor.headers) as client:
        if prompts:
            answer = await client.post("/prompts/import", json={"prompts": prompts})
            assert answer.status_code == 200, answer.text
    return visitor


async def prompts_of(server: RunningServer, visitor: Visitor) -> list[dict[str, Any]]:
    async with server.client(headers=visitor.headers) as client:
        listed = (await client.get("/prompts?limit=100")).json()["data"]
    return [{"name": one["name"], "text": one["text"]} for one in listed]


def composer(page: Page) -> Any:
    return page.get_by_label("Message", exact=True)


@WIDTHS
async def test_slash_opens_prompts_and_variables_are_asked_for(
    server: RunningServer, browser: Browser, width: int
) -> None:
    visitor = await with_prompts(server, TRANSLATE, SHORTEN)
    theme: Any = "dark" if width == 390 else "light"
    async with signed_in(browser, server, visitor=visitor, width=width, theme=theme) as page:
        await composer(page).press_sequentially("/")
        search = page.get_by_role("combobox", name="Search prompts")
        await expect(search).to_be_focused()
        await expect(page.get_by_role("option")).to_have_count(2)
        assert await findings(page) == []
        await page.keyboard.press("ArrowDown")
        await expect(page.get_by_role("option", selected=True)).to_contain_text("Translate")
        active = await search.get_attribute("aria-activedescendant")
        assert active == await page.get_by_role("option", selected=True).get_attribute("id")
        await page.keyboard.type("tr")
        await expect(page.get_by_role("option")).to_have_count(1)
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("dialog").get_by_role("textbox")).to_have_count(2)
        await expect(page.get_by_role("textbox", name="language")).to_be_focused()
        assert await findings(page) == []
        await page.keyboard.type("French {{text}} $&")
        await page.keyboard.press("Tab")
        await page.keyboard.type("Good morning")
        await page.keyboard.press("Enter")
        said = "Translate into French {{text}} $&: Good morning (French {{text}} $&)"
        await expect(composer(page)).to_have_value(said)
        await expect(composer(page)).to_be_focused()
        await expect(page.locator(".message")).to_have_count(0)
        await composer(page).press("ControlOrMeta+z")
        await expect(composer(page)).to_have_value("/")
        await page.reload()
        await expect(composer(page)).to_have_value("/")


async def test_prompt_is_chosen_by_touch_and_sent(server: RunningServer, browser: Browser) -> None:
    visitor = await with_prompts(server, SHORTEN)
    async with signed_in(browser, server, visitor=visitor, width=390, has_touch=True) as page:
        await composer(page).press_sequentially("/")
        await page.get_by_role("option", name="Shorten").tap()
        await expect(composer(page)).to_have_value(SHORTEN["text"])
        await composer(page).press_sequentially("a long text")
        await page.get_by_role("button", name="Send").tap()
        await expect(page.locator(".said-user")).to_contain_text("Make this shorter:")


async def test_slash_that_begins_no_prompt_stays_in_the_text(server: RunningServer, browser: Browser) -> None:
    visitor = await with_prompts(server, SHORTEN)
    async with signed_in(browser, server, visitor=visitor) as page:
        await composer(page).press_sequentially("/")
        await expect(page.get_by_role("option")).to_have_count(1)
        await page.keyboard.type("sx and /etc/hosts")  # the list closes at the x
        await expect(composer(page)).to_have_value("/sx and /etc/hosts")
        await expect(composer(page)).to_be_focused()
        for key in ("Escape", "Backspace"):
            await composer(page).fill("")
            await composer(page).press_sequentially("/")
            await expect(page.get_by_role("combobox", name="Search prompts")).to_be_focused()
            await page.keyboard.press(key)
            await expect(composer(page)).to_be_focused()
            await expect(composer(page)).to_have_value("/")
        await composer(page).fill("either")
        await composer(page).press_sequentially("/or")
        await expect(page.get_by_role("combobox", name="Search prompts")).to_have_count(0)
        await composer(page).fill("First line")
        await composer(page).press("Shift+Enter")
        await composer(page).press_sequentially("/")
        await page.get_by_role("option", name="Shorten").click()
        await expect(composer(page)).to_have_value(f"First line\n{SHORTEN['text']}")


@WIDTHS
async def test_prompts_are_added_changed_deleted_exported_and_imported(
    server: RunningServer, browser: Browser, width: int, tmp_path: Path
) -> None:
    visitor = await with_prompts(server)
    async with signed_in(browser, server, "/#/prompts", visitor=visitor, width=width, allow=["409"]) as page:
        await expect(page.get_by_text("No prompts yet")).to_be_visible()
        await page.get_by_role("button", name="New prompt").click()
        await page.get_by_label("Name").fill("Tone")
        await page.get_by_label("Text").fill("As {{who}} says: {{what}}")
        await expect(page.get_by_text("Asks for: who, what")).to_be_visible()
        assert await findings(page) == []
        await page.get_by_role("button", name="Save").click()
        await expect(page.locator(".item-title")).to_have_text("Tone")
        assert await findings(page) == []
        await page.get_by_role("button", name="New prompt").click()
        await page.get_by_label("Name").fill("Tone")
        await page.get_by_label("Text").fill("x")
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_text("There is a prompt with this name.")).to_be_visible()
        await page.get_by_label("Name").fill("Second")
        await page.get_by_role("button", name="Save").click()
        await page.get_by_role("button", name="Actions for Tone").click()
        await page.get_by_role("menuitem", name="Edit").click()
        await page.get_by_label("Text").fill("new text")
        await page.get_by_role("button", name="Save").click()
        await expect(page.locator("li", has_text="new text")).to_be_visible()
        kept = [{"name": "Second", "text": "x"}, {"name": "Tone", "text": "new text"}]
        assert await prompts_of(server, visitor) == kept
        async with page.expect_download() as saving:
            # A message covers the button for seconds.
            await page.get_by_role("button", name="Import and export").press("Enter")
            await page.get_by_role("menuitem", name="Export to a file").click()
        exported = tmp_path / "prompts.json"
        await (await saving.value).save_as(exported)
        assert json.loads(exported.read_text()) == {"prompts": kept}
        await page.get_by_role("button", name="Actions for Second").click()
        await page.get_by_role("menuitem", name="Delete").click()
        await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        await expect(page.locator(".item-title", has_text="Second")).to_have_count(0)
        await page.locator("input[type=file]").set_input_files(exported)
        await expect(page.locator(".toast", has_text="1 prompt imported. 1 prompt skipped")).to_be_visible()
        assert await prompts_of(server, visitor) == kept


WRONG_FILES = {
    "not json": "The file is not JSON.",
    "{}": "The file has no prompts.",
    '{"prompts": []}': "The file has no prompts.",
    '[{"name": "a", "text": "x"}, {"name": "b"}]': "Prompt 2: the text must be a text of 1 to 8000 characters.",
    json.dumps([{"name": "n" * 101, "text": "x"}]): "Prompt 1: the name must be a text of 1 to 100 characters.",
    " " * 10_000_001: "The file is over 10 MB.",
}


async def test_wrong_file_says_what_is_wrong_and_stores_nothing(
    server: RunningServer, browser: Browser, tmp_path: Path
) -> None:
    visitor = await with_prompts(server)
    async with signed_in(browser, server, "/#/prompts", visitor=visitor) as page:
        await expect(page.get_by_text("No prompts yet")).to_be_visible()
        for number, (content, message) in enumerate(WRONG_FILES.items()):
            file = tmp_path / f"{number}.json"
            file.write_text(content)
            await page.locator("input[type=file]").set_input_files(file)
            await expect(page.get_by_role("alert").filter(has_text=message)).to_be_visible()
    assert await prompts_of(server, visitor) == []


async def test_file_that_is_larger_than_a_request_is_imported_in_parts(
    server: RunningServer, browser: Browser, tmp_path: Path
) -> None:
    visitor = await with_prompts(server)
    listed = [{"title": f"p{number}", "content": "\u4e2d" * 7_000} for number in range(60)]  # 1.3 MB, of Open WebUI
    file = tmp_path / "large.json"
    file.write_text(json.dumps(listed, ensure_ascii=False))
    async with signed_in(browser, server, "/#/prompts", visitor=visitor) as page:
        await page.locator("input[type=file]").set_input_files(file)
        await expect(page.locator(".toast", has_text="60 prompts imported.")).to_be_visible()
        await expect(page.locator(".item-title")).to_have_count(50)
        await page.get_by_role("button", name="Show more").click()
        await expect(page.locator(".item-title")).to_have_count(60)


@WIDTHS
async def test_administrator_shares_prompts_that_others_see(
    server: RunningServer, browser: Browser, width: int
) -> None:
    admin, other = await with_prompts(server), await with_prompts(server, SHORTEN)
    with database(server) as tx:
        tx.execute("UPDATE accounts SET admin = 1 WHERE id = ?", (admin.id,))
    async with signed_in(browser, server, "/#/admin/prompts", visitor=admin, width=width) as page:
        await page.get_by_role("button", name="New prompt").click()
        await page.get_by_label("Name").fill("House style")
        await page.get_by_label("Text").fill("As our handbook says:")
        await page.get_by_role("button", name="Save").click()
        row = page.locator("li", has_text="House style")
        await expect(row).to_contain_text("Everyone")
        assert await findings(page) == []
        await page.get_by_role("button", name="Actions for House style").click()
        await page.get_by_role("menuitem", name="Edit").click()
        await page.get_by_label("Name").fill("Style")
        await page.get_by_role("button", name="Save").click()
        await expect(page.locator(".item-title", has_text="Style")).to_have_text("Style")
    async with signed_in(browser, server, visitor=other, width=width) as page:
        await composer(page).press_sequentially("/")
        await expect(page.get_by_role("option")).to_have_count(2)
        await expect(page.get_by_role("option", name="Style")).to_contain_text("Shared with everyone")
        await page.get_by_role("link", name="Manage prompts").click()
        assert await page.evaluate("Object.keys(localStorage).filter((name) => name.includes('draft'))") == []
        await expect(page.get_by_role("heading", name="Shared with you")).to_be_visible()
        await expect(page.get_by_role("button", name="Actions for Style")).to_have_count(0)
        assert await findings(page) == []
    async with signed_in(browser, server, "/#/admin/prompts", visitor=admin, width=width) as page:
        await page.get_by_role("button", name="Actions for Style").click()
        await page.get_by_role("menuitem", name="Delete").click()
        await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        await expect(page.get_by_text("No shared prompts yet")).to_be_visible()
