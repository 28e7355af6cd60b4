"""What a person makes, on the page: agent runs, pictures, sound, artifacts, projects."""

from playwright.async_api import Browser, Page, expect

from tests.support.browser import WITH_BROWSER, credit, findings, signed_in
from tests.support.server import RunningServer

pytestmark = WITH_BROWSER
EVIL = '<img src=x onerror="document.title=1"><script>document.title=2</script>'
SCRIPT = f"""say {EVIL}
tool write_artifact {{"name": "note.md", "content": "# Hi <script>document.title=3</script>"}}
---
say Done: **{EVIL}**"""


async def run(page: Page, goal: str, model: str = "script") -> None:
    """Starts a run in the form, with a built-in model."""
    await page.goto("/#/agents")
    await page.get_by_label("Goal").fill(goal)
    await page.locator("#agent-model").click()
    await page.get_by_role("option", name=model).first.click()
    await page.get_by_role("button", name="Run", exact=True).click()
    await page.wait_for_url("**/#/agents/run_*")


async def test_run_is_shown_step_by_step_and_stored(server: RunningServer, browser: Browser) -> None:
    async with signed_in(browser, server) as page:
        await run(page, SCRIPT)
        await expect(page.locator(".timeline-step")).to_have_text(["Step 1", "Step 2"])
        tool = page.locator(".tool")
        await tool.locator("summary").click()
        await expect(tool.locator("pre").first).to_contain_text('"name": "note.md"')
        await expect(page.locator(".artifact-card")).to_contain_text("Hi <script>")
        await expect(page.locator(".run-end")).to_contain_text("Done: <img")
        assert await findings(page) == []
        await page.reload()
        await expect(page.locator(".run-end-final")).to_contain_text("Done: <img")
        await expect(page.locator(".timeline-step")).to_have_text(["Step 1", "Step 2"])
        await tool.locator("summary").click()
        await expect(tool.locator("pre").first).to_contain_text('"name": "note.md"')
        await expect(page.locator(".timeline .artifact-card")).to_contain_text("Hi <script>")
        await expect(page.locator(".run-facts")).to_contain_text("2 steps")
        await expect(page.get_by_role("link", name="note.md")).to_be_visible()
        await page.get_by_role("button", name="Run again").click()
        await expect(page.get_by_label("Goal")).to_have_value(SCRIPT)


async def test_stopped_run_is_shown_and_filtered(server: RunningServer, browser: Browser) -> None:
    async with signed_in(browser, server) as page:
        await run(page, "say begun\nwait 20000\nsay never")
        await expect(page.locator(".timeline")).to_contain_text("begun")
        await page.get_by_role("button", name="Stop", exact=True).click()
        await expect(page.locator(".run-end-stopped")).to_contain_text("You stopped this run")
        await run(page, "fail 500 the model is tired")
        await expect(page.locator(".run-end-error")).to_contain_text("tired")
        await page.goto("/#/agents")
        await page.get_by_label("Show").select_option("error")
        await expect(page.locator(".list .status")).to_have_text(["Failed"])
        await page.get_by_label("Show").select_option("")
        await expect(page.locator(".list .status")).to_have_text(["Failed", "Stopped"])


async def test_images_and_speech_are_generated_shown_and_stored(server: RunningServer, browser: Browser) -> None:
    async with signed_in(browser, server, "/#/media", allow=["status of 402"]) as page:
        await page.get_by_label("Describe the image").fill("A lighthouse")
        await page.get_by_label("Size").select_option("256x256")
        await page.get_by_role("button", name="Generate").click()
        await expect(page.get_by_role("link", name="Add funds")).to_be_visible()
        await credit(server, page, 5)
        await page.get_by_role("button", name="Generate").click()
        await page.locator(".gallery-item").wait_for()
        await page.evaluate("localStorage.removeItem('svc.media-picture')")
        await page.reload()  # as on another device
        await page.get_by_role("button", name="View A lighthouse").click()
        dialog = page.get_by_role("dialog", name="A lighthouse")
        await expect(dialog.locator("img")).to_have_js_property("naturalWidth", 256)
        async with page.expect_download() as waiting:
            await dialog.get_by_role("button", name="Download").click()
        assert (await waiting.value).suggested_filename == "A-lighthouse.png"
        await page.keyboard.press("Escape")
        await page.get_by_role("button", name="Speech", exact=True).click()
        await page.get_by_label("Text to speak").fill("Good evening.")
        await page.get_by_role("button", name="Speak").click()
        await expect(page.locator("audio")).to_have_count(1)
        await page.get_by_role("button", name="Save as artifact").click()
        await expect(page.get_by_role("link", name="Good-evening.wav")).to_be_visible()


async def test_files_are_uploaded_renamed_replaced_and_deleted(server: RunningServer, browser: Browser) -> None:
    async with signed_in(browser, server, "/#/artifacts") as page:
        await expect(page.get_by_text("No artifacts yet")).to_be_visible()
        await page.get_by_label("Upload").set_input_files(
            [
                {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"first"},
                {"name": "b.bin", "mimeType": "", "buffer": b"\0" * 9},
            ]
        )
        await expect(page.locator(".list > li")).to_have_count(2)
        await page.get_by_role("link", name="notes.txt").click()
        await expect(page.locator(".artifact-text")).to_have_text("first")
        await page.get_by_label("Replace").set_input_files(
            [{"name": "x.txt", "mimeType": "text/plain", "buffer": b"second"}]
        )
        await expect(page.locator(".artifact-text")).to_have_text("second")
        await page.get_by_role("button", name="Rename").click()
        await page.get_by_role("textbox", name="Name").fill("übung.txt")
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_role("heading", name="übung.txt")).to_be_visible()
        await page.get_by_role("button", name="Delete").click()
        await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        await expect(page.locator(".list > li")).to_have_count(1)


async def test_project_contains_its_new_content(server: RunningServer, browser: Browser) -> None:
    async with signed_in(browser, server, "/#/projects") as page:
        await page.get_by_role("button", name="New project").first.click()
        await page.get_by_label("Name").fill("Thesis")
        await page.get_by_label("Maximum steps of an agent run").select_option("2")
        await page.get_by_role("button", name="Create project").click()
        await page.get_by_role("link", name="New run").click()
        await page.get_by_label("Goal").fill("Compute 6 * 7")
        await page.get_by_role("button", name="Run", exact=True).click()
        await expect(page.locator(".run-end")).to_contain_text("42")
        await page.goto("/#/projects")
        await page.get_by_role("link", name="Thesis").click()
        await expect(page.get_by_label("Maximum steps")).to_have_value("2")
        await expect(page.get_by_role("link", name="Compute 6 * 7")).to_be_visible()
        await page.get_by_role("button", name="Delete").click()
        await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        await expect(page.get_by_text("No projects yet")).to_be_visible()
