"""The files of a project on the page: adding, states, removal, what a chat uses, and cited passages in their files."""

import asyncio
import re
from typing import Any

import pytest
from playwright.async_api import Browser, FilePayload, Locator, Page, expect

from svc.builtin.archive import TextPage
from svc.builtin.passages import passages_of
from tests.support.browser import LOOKS, WITH_BROWSER, Theme, findings, new_visitor, signed_in
from tests.support.browser_chat import answered, refuse_once, say
from tests.support.cited import CITING, FIND, RIGHT, TIMETABLE, WRONG, are_read, project_with
from tests.support.pdfs import needs_pypdf, with_texts
from tests.support.server import RunningServer

pytestmark = WITH_BROWSER

BOTH_LOOKS = pytest.mark.parametrize(("width", "theme"), LOOKS)
DROP = """([zone, name, text]) => {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File([text], name));
    for (const kind of ["dragover", "drop"])
        zone.dispatchEvent(new DragEvent(kind, { bubbles: true, cancelable: true, dataTransfer }));
}"""


def payload(name: str, content: bytes, kind: str = "text/markdown") -> FilePayload:
    return {"name": name, "mimeType": kind, "buffer": content}


def files(page: Page) -> Locator:
    return page.get_by_role("region", name="Files", exact=True)


def rows(page: Page) -> Locator:
    return files(page).get_by_role("listitem")


async def add(page: Page, *chosen: FilePayload) -> None:
    await files(page).get_by_label("Add files").first.set_input_files(list(chosen))


@BOTH_LOOKS
async def test_files_are_added_read_and_removed(
    server: RunningServer, browser: Browser, width: int, theme: Theme
) -> None:
    visitor = await asyncio.to_thread(new_visitor, server)
    project, _ = await project_with(server, visitor)
    address = f"/#/projects/{project}"
    async with signed_in(browser, server, address, visitor=visitor, width=width, theme=theme) as page:
        await expect(files(page)).to_contain_text("No files yet")
        assert await findings(page) == []
        await add(page, payload("trains.md", TIMETABLE.encode()), payload("scan.bin", bytes(range(256)) * 9, "x/y"))
        await expect(rows(page)).to_have_count(2)
        await expect(rows(page).first).to_contain_text("trains.md")
        await expect(rows(page).first).to_contain_text("Ready")
        await expect(rows(page).last).to_contain_text("Not usable. The format of this file (x/y) is none of")
        await expect(files(page)).to_contain_text("2 files, 33 KB of text")
        assert await findings(page) == []
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        await page.reload()
        await expect(rows(page)).to_have_count(2)
        remove = rows(page).last.get_by_role("button", name="Remove scan.bin")
        await remove.focus()
        await page.keyboard.press("Enter")
        await expect(rows(page)).to_have_count(1)
        await page.get_by_role("button", name="Undo").click()
        await expect(rows(page)).to_have_count(2)
        await files(page).get_by_role("link", name="trains.md").click()
        await expect(page.get_by_role("heading", name="trains.md")).to_be_visible()


async def test_file_that_is_being_read_shows_progress_until_it_is_ready(
    server: RunningServer, browser: Browser
) -> None:
    visitor = await asyncio.to_thread(new_visitor, server)
    project, _ = await project_with(server, visitor, ("a.md", b"one"), ("b.md", b"two"))
    async with signed_in(browser, server, visitor=visitor) as page:

        async def unread(route: Any) -> None:
            answer = await route.fetch()
            found = await answer.json()
            found["data"][1].update(status="reading", text_bytes=0)
            await route.fulfill(json=found)

        await page.route(f"**/projects/{project}/files", unread)
        await page.goto(f"/#/projects/{project}")
        await expect(rows(page).last).to_contain_text("Reading…")
        bar = files(page).get_by_role("progressbar", name="Reading: 1 of 2 files done")
        await expect(bar).to_have_attribute("value", "1")
        assert await findings(page) == []
        await page.unroute(f"**/projects/{project}/files")
        await expect(rows(page).last).to_contain_text("Ready")
        await expect(bar).to_have_count(0)


async def test_files_are_dropped_anywhere_on_the_project(server: RunningServer, browser: Browser) -> None:
    visitor = await asyncio.to_thread(new_visitor, server)
    project, _ = await project_with(server, visitor)
    async with signed_in(browser, server, f"/#/projects/{project}", visitor=visitor) as page:
        await expect(files(page)).to_contain_text("No files yet")
        heading = await page.get_by_role("heading", level=1).element_handle()
        await page.evaluate(DROP, [heading, "dropped.txt", "Some text"])
        await expect(rows(page)).to_contain_text("dropped.txt")
        await expect(rows(page)).to_contain_text("Ready")
        await expect(page.locator(".dropping")).to_have_count(0)


async def test_artifact_that_is_there_is_added_with_the_keyboard(server: RunningServer, browser: Browser) -> None:
    visitor = await asyncio.to_thread(new_visitor, server)
    project, _ = await project_with(server, visitor)
    async with server.client(headers=visitor.headers) as client:
        for name, kind in (("notes.md", "text/markdown"), ("photo.png", "image/png")):
            body = {"name": name, "content": "Some notes", "content_type": kind}
            assert (await client.post("/artifacts", json=body)).status_code == 201
    async with signed_in(browser, server, f"/#/projects/{project}", visitor=visitor) as page:
        await files(page).get_by_role("button", name="Add an artifact").focus()
        await page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog", name="Add an artifact")
        await expect(dialog.get_by_role("listitem")).to_have_count(1)  # an image has no text
        assert await findings(page) == []
        await dialog.get_by_role("button", name="Add notes.md").press("Enter")
        await expect(dialog.get_by_role("listitem")).to_contain_text("Added")
        await page.keyboard.press("Escape")
        await expect(dialog).to_have_count(0)
        await expect(rows(page)).to_contain_text("notes.md")


async def test_refused_file_says_why(server: RunningServer, browser: Browser) -> None:
    visitor = await asyncio.to_thread(new_visitor, server)
    project, _ = await project_with(server, visitor, ("a.md", b"one"))
    async with signed_in(browser, server, f"/#/projects/{project}", visitor=visitor, allow=["413"]) as page:
        await expect(rows(page)).to_have_count(1)
        full = {"message": "This project has 200 files, the maximum. Remove some first.", "code": "PAYLOAD_TOO_LARGE"}
        await refuse_once(page, f"**/projects/{project}/files", 413, {**full, "type": "invalid_request_error"})
        await add(page, payload("b.md", b"two"))
        await expect(files(page).get_by_role("alert")).to_contain_text(full["message"])
        await expect(files(page).get_by_role("alert")).to_contain_text("b.md")
        assert await findings(page) == []
        await files(page).get_by_role("button", name="Dismiss").click()
        await expect(files(page).get_by_role("alert")).to_have_count(0)
        await expect(rows(page)).to_have_count(1)


def last(page: Page) -> Locator:
    return page.locator(".said-assistant:not(.live)").last


@BOTH_LOOKS
async def test_cited_passage_opens_marked_in_its_file_and_an_unverified_quotation_has_a_warning(
    server: RunningServer, browser: Browser, width: int, theme: Theme
) -> None:
    visitor = await asyncio.to_thread(new_visitor, server, model="builtin/script")
    project, _ = await project_with(server, visitor, ("trains.md", TIMETABLE.encode()))
    address = f"/#/chat?project_id={project}"
    async with signed_in(browser, server, address, visitor=visitor, width=width, theme=theme) as page:
        await page.get_by_role("button", name="1 file of the project").click()
        await expect(page.get_by_role("menuitem")).to_have_text(["trains.md", "Files of the project"])
        assert await findings(page) == []
        await page.keyboard.press("Escape")
        await say(page, CITING)
        await answered(page)
        for _ in range(2):  # after a reload, too
            text = last(page).locator(".md")
            await expect(text).to_have_text(
                f'It says "{RIGHT}" [26]. Or "{WRONG}" [26]not in the file. Every day [26], [26].'
            )
            warning = last(page).locator(".sources .notice")
            await expect(warning).to_contain_text("A quotation is not in the cited passage word for word.")
            await expect(warning.get_by_role("listitem")).to_have_text(f"“{WRONG}” [26]")
            listed = last(page).get_by_role("region", name="Sources").locator("ol").first
            await expect(listed).to_have_text(re.compile(r"^\[26\]trains\.md lines 101.105"))
            await expect(page.get_by_role("button", name="1 file of the project")).to_be_visible()
            assert await findings(page) == []
            await page.reload()
        citation = text.get_by_role("button", name="[26] trains.md").first
        await citation.focus()
        await page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog", name="trains.md")
        mark = dialog.locator("mark")
        await expect(mark).to_contain_text(RIGHT)
        await expect(mark).to_be_in_viewport()
        assert (await mark.inner_text()).startswith("## Trains")
        assert (await mark.inner_text()).strip().endswith("Bring a ticket.")
        await expect(dialog.get_by_role("region", name="trains.md")).to_be_focused()
        assert await findings(page) == []
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert "part 0." not in await dialog.inner_text()
        await dialog.get_by_role("button", name="Show earlier text").click()
        await expect(dialog).to_contain_text("part 0.")
        await dialog.get_by_role("button", name="Show later text").click()
        await expect(dialog).to_contain_text("part 59.")
        assert await dialog.locator(".passages .plain-text").inner_text() == TIMETABLE
        await page.keyboard.press("Escape")
        await expect(dialog).to_have_count(0)
        await expect(citation).to_be_focused()


@needs_pypdf
async def test_passage_of_a_pdf_says_its_page(server: RunningServer, browser: Browser) -> None:
    visitor = await asyncio.to_thread(new_visitor, server, model="builtin/script")
    pages = [f"Page {number} is about something else, as are most pages of this report." for number in range(1, 200)]
    pages[119] = f"Every day {RIGHT}."
    pdf = with_texts(*[text.encode() for text in pages])
    project, _ = await project_with(server, visitor, ("trains.pdf", pdf))
    async with signed_in(browser, server, f"/#/chat?project_id={project}", visitor=visitor) as page:
        await say(page, f'{FIND}say It says "{RIGHT}" [120].')
        await answered(page)
        await expect(last(page).locator(".sources ol").first).to_have_text("[120]trains.pdf page 120")
        await last(page).locator(".tool-steps > summary").click()
        await last(page).locator(".tool > summary").click()
        await expect(last(page).locator(".found > li").first).to_contain_text(f"trains.pdf [120] page 120{pages[119]}")
        assert await findings(page) == []
        await last(page).locator(".sources ol").get_by_role("button", name="[120]").first.click()
        dialog = page.get_by_role("dialog", name="trains.pdf")
        await expect(dialog.locator("mark")).to_have_text(pages[119])
        await expect(dialog.locator(".label", has_text="Page 120")).to_be_in_viewport()
        assert await findings(page) == []


async def test_run_opens_a_passage_that_it_cites_in_the_middle_of_a_long_line(
    server: RunningServer, browser: Browser
) -> None:
    agent = {"model": "builtin/script", "steps": 6, "tools": None}
    visitor = await asyncio.to_thread(new_visitor, server, agent=agent)
    words = " ".join(f"word {number}" for number in range(12_000))
    text = "First.\n" + words.replace("word 7000", f"word. Here {RIGHT}. More")
    places = [passage.text for passage in passages_of([TextPage(None, text)])]
    number = 1 + next(place for place, passage in enumerate(places) if RIGHT in passage)
    project, _ = await project_with(server, visitor, ("line.txt", text.encode()))
    async with signed_in(browser, server, f"/#/agents?project_id={project}", visitor=visitor) as page:
        cited = f'It says "{RIGHT}" [{number}]. Or "{WRONG}" [{number}]'
        await page.get_by_label("Goal").fill(f"say {cited}.")
        await page.get_by_role("button", name="Run", exact=True).click()
        for _ in range(2):  # after a reload, too
            end = page.locator(".run-end")
            await expect(end.locator(".md")).to_have_text(f"{cited}not in the file.")
            await expect(end.locator(".sources .notice")).to_contain_text("A quotation is not in the cited passage")
            await expect(end.locator(".sources ol").first).to_have_text(f"[{number}]line.txt line 2")
            assert await findings(page) == []
            await page.reload()
        await end.get_by_role("button", name=f"[{number}] line.txt").first.click()
        dialog = page.get_by_role("dialog", name="line.txt")
        await expect(dialog.locator("mark")).to_contain_text(RIGHT)
        await expect(dialog.locator("mark")).to_be_in_viewport()
        assert len(await dialog.locator("mark").inner_text()) <= 1_000
        assert await findings(page) == []


@pytest.mark.parametrize("change", ["replaced", "removed"])
async def test_passage_of_a_file_that_changed_shows_as_it_was_cited(
    server: RunningServer, browser: Browser, change: str
) -> None:
    visitor = await asyncio.to_thread(new_visitor, server, model="builtin/script")
    project, (artifact,) = await project_with(server, visitor, ("trains.md", TIMETABLE.encode()))
    address = f"/#/chat?project_id={project}"
    async with signed_in(browser, server, address, visitor=visitor, allow=["404"]) as page:
        await say(page, CITING)
        await answered(page)
        async with server.client(headers=visitor.headers) as client:
            if change == "removed":
                await client.delete(f"/projects/{project}/files/{artifact}")
            else:
                other = "\n\n".join(f"Another text {number}." for number in range(400))
                await client.put(f"/artifacts/{artifact}/content", content=other.encode())
                await are_read(client, project)
        await last(page).locator("button.citation").first.click()
        dialog = page.get_by_role("dialog", name="trains.md")
        await expect(dialog).to_contain_text("This file has changed or is no longer in a project.")
        await expect(dialog.locator("mark")).to_contain_text(RIGHT)
        assert await findings(page) == []
