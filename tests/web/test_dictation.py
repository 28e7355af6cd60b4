"""Dictation in the composer, with a microphone that plays a file spoken by the built-in voice."""

import re
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from svc.builtin.processes import ProcessPool
from svc.builtin.voice import Voice
from tests.support.browser import WIDTHS, WITH_BROWSER, chromium, findings, signed_in
from tests.support.server import RunningServer
from tests.support.sounds import wav

pytestmark = [*WITH_BROWSER, pytest.mark.slow]
SENTENCES = ("Please open the window before you start the engine.", "The letter arrived a month after it was sent.")
SURE_WORDS = dict(zip(SENTENCES, (("window", "start", "engine"), ("month", "after", "sent")), strict=True))
PAUSE_SECONDS, RATE = 0.75, 24_000


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def speech(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sentences as a file, with a pause before and after each."""
    pool, path = ProcessPool("svc.builtin.speak"), tmp_path_factory.mktemp("speech") / "speech.wav"
    samples, pause = b"", bytes(int(PAUSE_SECONDS * RATE) * 2)
    for sentence in SENTENCES:
        with tempfile.TemporaryFile(buffering=0) as spoken:
            await Voice(pool).speak(
                sentence, spoken, voice="alloy", speed=1.0, format="pcm", most_seconds=60.0, account_id="a"
            )
            spoken.seek(0)
            samples += pause + spoken.read() + pause
    await pool.close()
    path.write_bytes(wav(samples + pause * 8, RATE))
    return path


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def speaking(speech: Path) -> AsyncIterator[Browser]:
    fake = f"--use-file-for-fake-audio-capture={speech}%noloop"
    async with chromium("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream", fake) as running:
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def refusing() -> AsyncIterator[Browser]:
    """A browser whose person refuses the microphone."""
    async with chromium("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream=deny") as running:
        yield running


async def begin(page: Page) -> None:
    await page.get_by_role("button", name="Dictate").click()
    await expect(page.get_by_role("button", name="Stop dictating")).to_have_attribute("aria-pressed", "true")


async def said(page: Page, *sentences: str) -> None:
    """Wait until the message has a word of each: a busy machine loses some of the sound."""
    some = "".join(f"(?=.*\\b(?:{'|'.join(SURE_WORDS[sentence])})\\b)" for sentence in sentences)
    await expect(page.locator("#composer")).to_have_value(re.compile(some, re.IGNORECASE | re.DOTALL), timeout=60_000)


async def hears_at_once(page: Page) -> None:
    """Answer for the model, which takes seconds of CPU: the first test plays it."""
    await page.route("**/v1/audio/transcriptions", lambda route: route.fulfill(json={"text": SENTENCES[0]}))


@WIDTHS
async def test_words_appear_at_the_cursor_while_one_speaks(
    server: RunningServer, speaking: Browser, width: int
) -> None:
    async with signed_in(speaking, server, width=width) as page:
        field = page.locator("#composer")
        await field.fill("Note:  Thanks.")
        await field.evaluate("field => field.setSelectionRange(6, 6)")
        await begin(page)
        await said(page, SENTENCES[0])
        await expect(page.get_by_role("button", name="Stop dictating")).to_be_visible()
        await expect(page.locator(".dictation-level")).to_contain_text(re.compile(r"0:\d\d"))
        assert await findings(page) == []
        await said(page, *SENTENCES)
        await page.get_by_role("button", name="Stop dictating").click()
        await expect(page.get_by_role("button", name="Dictate")).to_be_visible()
        value = await field.input_value()
        assert value.startswith("Note: ") and value.endswith(" Thanks.")
        await page.get_by_role("button", name="Undo").click()
        await expect(field).to_have_value("Note:  Thanks.")


async def test_browsers_own_undo_removes_the_words(server: RunningServer, speaking: Browser) -> None:
    async with signed_in(speaking, server) as page:
        await hears_at_once(page)
        await begin(page)
        await said(page, SENTENCES[0])
        await page.get_by_role("button", name="Stop dictating").click()
        await expect(page.get_by_role("button", name="Dictate")).to_be_visible()
        await page.locator("#composer").focus()
        for _ in range(8):
            await page.keyboard.press("Control+z")
        await expect(page.locator("#composer")).to_have_value("")


async def test_escape_discards_the_words_and_ends_the_recording(server: RunningServer, speaking: Browser) -> None:
    async with signed_in(speaking, server) as page:
        await hears_at_once(page)
        await page.locator("#composer").fill("Before.")
        await begin(page)
        await said(page, SENTENCES[0])
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("button", name="Dictate")).to_be_visible()
        await expect(page.locator("#composer")).to_have_value("Before.")


async def test_question_is_sent_with_the_last_words(server: RunningServer, speaking: Browser) -> None:
    async with signed_in(speaking, server, model="echo") as page:
        await hears_at_once(page)
        await page.locator("#composer").fill("Dear Ada,")
        await begin(page)
        await said(page, SENTENCES[0])
        async with page.expect_request("**/v1/chat/completions") as asked:
            await page.get_by_role("button", name="Send").click()
        (question,) = (await asked.value).post_data_json["messages"]
        assert question["content"].startswith("Dear Ada, ")


async def test_refused_permission_says_what_to_do(server: RunningServer, refusing: Browser) -> None:
    async with signed_in(refusing, server) as page:
        await page.get_by_role("button", name="Dictate").click()
        await expect(page.locator(".toast")).to_contain_text("Allow it in the settings of this site")
        await expect(page.get_by_role("button", name="Dictate")).to_be_visible()


async def test_machine_without_a_microphone_says_what_to_do(server: RunningServer, browser: Browser) -> None:
    async with signed_in(browser, server) as page:
        await page.get_by_role("button", name="Dictate").click()
        await expect(page.locator(".toast")).to_contain_text("Connect one, and try again")


async def test_insecure_page_says_what_to_do(server: RunningServer, browser: Browser) -> None:
    async with signed_in(browser, server) as page:
        await page.evaluate("Object.defineProperty(navigator, 'mediaDevices', {value: undefined})")
        await page.get_by_role("button", name="Dictate").click()
        await expect(page.locator(".toast")).to_contain_text("Open this page at its https:// address")


async def test_without_a_model_there_is_no_microphone(server: RunningServer, browser: Browser) -> None:
    async with signed_in(browser, server) as page:

        async def without(route: Any) -> None:
            answer = await route.fetch()
            listed = await answer.json()
            listed["data"] = [model for model in listed["data"] if model["kind"] != "transcription"]
            await route.fulfill(response=answer, json=listed)

        await page.route("**/v1/models", without)
        await page.reload()
        await expect(page.get_by_role("button", name="Send")).to_be_visible()
        await page.wait_for_load_state("networkidle")
        await expect(page.get_by_role("button", name="Dictate")).to_have_count(0)
