"""Files in a chat: attached by dialog, drop and paste, kept as a draft, sent as text, shown as chips."""

import re
from typing import Any

from playwright.async_api import Browser, Page, expect

from tests.support import pdfs
from tests.support.browser import WIDTHS, WITH_BROWSER, findings, signed_in
from tests.support.browser_chat import answered
from tests.support.model_media import PNG
from tests.support.server import RunningServer

pytestmark = WITH_BROWSER
CSV = "name,price\nrye,2.50\n"
CODE = "def f():\n    return '```'\n"
FILES: list[Any] = [
    {"name": "prices.csv", "mimeType": "text/csv", "buffer": CSV.encode()},
    {"name": "f.py", "mimeType": "text/x-python", "buffer": CODE.encode()},
]
SENT = f"Compare them.\n\nFile: prices.csv\n```csv\n{CSV}\n```\n\nFile: f.py\n````py\n{CODE}\n````"
# Text as a spreadsheet or an editor copies it, or files, dispatched where a person would paste or drop them.
PASTE = """(target, [text, files]) => {
    const data = new DataTransfer();
    if (text) data.setData("text/plain", text);
    for (const [name, content] of files) data.items.add(new File([content], name));
    target.dispatchEvent(new ClipboardEvent("paste", {clipboardData: data, bubbles: true, cancelable: true}));
}"""


async def attach(page: Page, *files: Any) -> None:
    await page.locator(".composer input[type=file]").set_input_files([*files])


def chips(page: Page) -> Any:
    return page.locator(".attached .file-chip")


@WIDTHS
async def test_files_are_kept_with_the_draft_sent_as_text_and_shown(
    server: RunningServer, browser: Browser, width: int
) -> None:
    async with signed_in(browser, server, model="echo", width=width, allow=["400"]) as page:
        await attach(page, *FILES, {"name": "no.md", "mimeType": "text/markdown", "buffer": b"# No"})
        await expect(chips(page)).to_have_count(3)
        await page.get_by_role("button", name="Remove no.md").click()
        await page.get_by_label("Message", exact=True).fill("Compare them.")
        await page.reload()
        await expect(chips(page)).to_have_text(
            [re.compile("prices.csv.*20 bytes", re.DOTALL), re.compile("f.py", re.DOTALL)]
        )
        assert await findings(page) == []
        async with page.expect_request("**/v1/chat/completions") as asked:
            await page.get_by_role("button", name="Send").click()
        assert (await asked.value).post_data_json["messages"] == [{"role": "user", "content": SENT}]
        await expect(chips(page)).to_have_count(0)
        await answered(page)
        await expect(page.locator(".conversation a")).to_have_text("Compare them.")
        await page.reload()
        said = page.locator(".said-user")
        await expect(said.locator(".said")).to_have_text("Compare them.")
        await said.locator("summary", has_text="f.py").click()
        await expect(said.locator(".artifact-text")).to_have_text(CODE)
        assert await findings(page) == []
        await page.get_by_role("button", name="Edit message").click()
        await expect(page.get_by_label("Edit your message")).to_have_value("Compare them.")
        editor = page.locator("form.editor")
        await expect(editor.locator(".file-chip")).to_have_text(
            [re.compile("prices.csv.*20 bytes", re.DOTALL), re.compile("f.py")]
        )
        assert await findings(page) == []
        await editor.get_by_role("button", name="Remove prices.csv").click()
        more = {"name": "more.csv", "mimeType": "text/csv", "buffer": CSV.encode()}
        await editor.locator("input[type=file]").set_input_files(
            [more, {"name": "a.png", "mimeType": "image/png", "buffer": PNG}]
        )
        await expect(editor.locator(".attached li")).to_have_count(3)
        await page.get_by_label("Edit your message").fill("Which is cheap?")
        async with page.expect_request("**/v1/chat/completions") as asked:
            await page.keyboard.press("Enter")
        content = (await asked.value).post_data_json["messages"][-1]["content"]
        files = f"File: f.py\n````py\n{CODE}\n````\n\nFile: more.csv\n```csv\n{CSV}\n```"
        assert content[0]["text"].startswith(f"Which is cheap?\n\n{files}\n\n![a.png](/artifacts/art_")
        assert [part["type"] for part in content] == ["text", "image_url"]  # which this model refuses


REFUSED: list[tuple[Any, str]] = [
    ({"name": "a.zip", "mimeType": "", "buffer": b"PK\3\4\0"}, "“a.zip” cannot be read"),
    ({"name": "a.heic", "mimeType": "image/heic", "buffer": b"\xff\xd9"}, "“a.heic” cannot be read"),
    ({"name": "a.png", "mimeType": "image/png", "buffer": b"none"}, "“a.png” cannot be read"),
    ({"name": "none.txt", "mimeType": "text/plain", "buffer": b""}, "“none.txt” is empty"),
    ({"name": "none.pdf", "mimeType": "application/pdf", "buffer": b""}, "“none.pdf” is empty"),
    ({"name": "a.log", "mimeType": "", "buffer": b"line\n" * 70_000}, "up to 300,000 characters"),
]


async def test_refused_file_is_explained(server: RunningServer, browser: Browser) -> None:
    async with signed_in(browser, server) as page:
        for file, words in REFUSED:
            await attach(page, file)
            await expect(page.locator(".toast").filter(has_text=words)).to_be_visible()
            await expect(page.locator(".attached")).to_have_count(0)
        await expect(page.get_by_role("button", name="Send")).to_be_disabled()


@pdfs.needs_pypdf
async def test_text_of_a_pdf_is_attached_and_its_file_is_kept(server: RunningServer, browser: Browser) -> None:
    async with signed_in(browser, server, model="echo", allow=["422"]) as page:
        for name, content in {
            "scan.pdf": pdfs.with_texts(b""),
            "junk.pdf": b"%PDF-1.7 junk",
            "a.pdf": pdfs.with_texts(b"Rye bread", b"Wheat"),
        }.items():
            await attach(page, {"name": name, "mimeType": "application/pdf", "buffer": content})
        await expect(
            page.locator(".toast").filter(has_text="“scan.pdf”: No text was found in this PDF.")
        ).to_be_visible()
        await expect(page.locator(".toast").filter(has_text="“junk.pdf”: This PDF is damaged.")).to_be_visible()
        await expect(chips(page)).to_have_text(re.compile("a.pdf"))
        await expect(page.get_by_role("button", name="Send")).to_be_enabled()
        async with page.expect_request("**/v1/chat/completions") as asked:
            await page.get_by_role("button", name="Send").click()
        content = (await asked.value).post_data_json["messages"][0]["content"]
        assert "Rye bread" in content and "Wheat" in content
        await answered(page)
        await page.locator(".said-user summary", has_text="a.pdf").press("Enter")  # a message may cover it for seconds
        await page.get_by_role("link", name="View the original file").click()
        await expect(page.get_by_role("heading", name="a.pdf")).to_be_visible()


async def test_files_are_pasted_anywhere_read_in_usual_encodings_and_limited_in_number(
    server: RunningServer, browser: Browser
) -> None:
    async with signed_in(browser, server) as page:
        composer = page.get_by_label("Message", exact=True)
        await composer.wait_for()
        await page.locator(".sidebar").evaluate(PASTE, ["", [["notes.md", "# Notes"]]])
        await expect(chips(page)).to_contain_text("notes.md")
        await page.locator(".sidebar").evaluate(PASTE, ["from elsewhere", []])
        await expect(composer).to_have_value("from elsewhere")
        await expect(composer).to_be_focused()
        for name, encoding in (("ä.csv", "cp1252"), ("ä.txt", "utf-16"), ("ä", "utf-8-sig")):
            await attach(page, {"name": name, "mimeType": "", "buffer": f"süß\r\n{encoding}".encode(encoding)})
            await page.wait_for_function(
                "text => localStorage['svc.files.new']?.includes(text)", arg=f"süß\n{encoding}"
            )
        await expect(chips(page)).to_have_count(4)
        await attach(page, *({"name": f"{n}.txt", "mimeType": "", "buffer": b"text"} for n in range(7)))
        await expect(chips(page)).to_have_count(10)
        await expect(page.locator(".toast")).to_contain_text("up to 10 files")


async def test_long_paste_can_become_a_file(server: RunningServer, browser: Browser) -> None:
    async with signed_in(browser, server) as page:
        composer = page.get_by_label("Message", exact=True)
        await composer.fill("Read this: ")
        await page.locator(".sidebar").evaluate(PASTE, ["a long line " * 700, []])
        await page.get_by_role("button", name="Attach as a file").click()
        await expect(chips(page)).to_contain_text("Pasted text.txt")
        await expect(composer).to_have_value("Read this: ")
        await composer.fill("")
        lines = "a line of many\n" * 21_000  # they took Chromium a minute
        await composer.evaluate(PASTE, [lines, []])
        await expect(composer).to_have_value(lines, timeout=15_000)
        await page.get_by_role("button", name="Attach as a file").last.click()
        await expect(page.locator(".toast", has_text="is too long")).to_be_visible()
        await expect(composer).to_have_value(lines)
