"""The web application in Firefox: sign-up, a chat, its stop, the settings, and dictation, on a narrow page."""

from pathlib import Path

import pytest

from tests.support.browser import PASSWORD, new_email
from tests.support.firefox import FIND, FIREFOX, WITH_MICROPHONE, firefox
from tests.support.server import RunningServer

pytestmark = [pytest.mark.needs(FIREFOX), pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]
NARROW = 500  # a window of Firefox has at least 450 pixels


async def test_firefox_signs_up_chats_stops_and_keeps_settings(server: RunningServer, tmp_path: Path) -> None:
    async with firefox(tmp_path) as page:
        await page.resize(NARROW, 900)
        await page.open(server.base_url)
        await page.type("Email", new_email())
        await page.type("Password", PASSWORD)
        await page.click("button", "Create account")
        await page.sees("What can I help with?")
        await page.type("Message", "What is 12 * (3 + 4)?")
        await page.click("button", "Send")
        await page.until(
            "() => document.querySelector('.said-assistant:not(.live) .md')?.textContent.includes('84') === true"
        )
        await page.run(
            "() => { localStorage['svc.model'] = JSON.stringify('builtin/script'); location.hash = '#/chat'; }"
        )
        await page.reload()
        await page.sees("What can I help with?")
        await page.type("Message", "say begun\nwait 20000")
        await page.click("button", "Send")
        await page.until("() => document.querySelector('.said-assistant.live')?.textContent.includes('begun') === true")
        await page.click("button", "Stop")
        await page.until(
            "() => document.querySelector('.live') === null && document.querySelector('.said-assistant') !== null"
        )
        await page.open(f"{server.base_url}/#/settings")
        await page.type("Custom instructions", "Be brief.")
        await page.click("button", "Save instructions")
        await page.sees("Saved")
        await page.reload()
        await page.until("() => [...document.querySelectorAll('textarea')].some(one => one.value === 'Be brief.')")
        for width in (NARROW, 1440):
            await page.resize(width, 900)
            assert await page.run("() => document.documentElement.scrollWidth <= innerWidth") is True
        assert page.errors == []


async def test_firefox_shares_a_conversation_and_reads_it(server: RunningServer, tmp_path: Path) -> None:
    async with firefox(tmp_path) as page:
        await page.resize(1440, 900)
        await page.open(server.base_url)
        await page.type("Email", new_email())
        await page.type("Password", PASSWORD)
        await page.click("button", "Create account")
        await page.sees("What can I help with?")
        await page.type("Message", "What is 12 * (3 + 4)?")
        await page.click("button", "Send")
        await page.until("() => document.querySelector('.said-assistant:not(.live) .facts') !== null")
        await page.run("() => document.querySelector('.conversation [aria-haspopup]').click()")
        await page.click("button", "Share")
        await page.click("button", "Create link")
        await page.until(
            "() => document.querySelector('dialog input[readonly]')?.value.includes('/#/shared/') === true"
        )
        link = await page.run("() => document.querySelector('dialog input[readonly]').value")
        await page.run("() => { localStorage.clear(); }")
        await page.open(link)
        await page.reload()
        await page.until("() => document.querySelector('.shared .said-assistant')?.textContent.includes('84') === true")
        await page.sees("Sign in to continue")
        assert page.errors == []


async def test_firefox_without_sound_says_so(server: RunningServer, tmp_path: Path) -> None:
    """Firefox records nothing on a machine without a device that plays sound, as those of tests are."""
    async with firefox(tmp_path, WITH_MICROPHONE) as page:
        await page.resize(NARROW, 900)
        await page.open(server.base_url)
        await page.type("Email", new_email())
        await page.type("Password", PASSWORD)
        await page.click("button", "Create account")
        await page.sees("What can I help with?")
        await page.press("Dictate")
        await page.sees("Listening. Escape discards the words.")
        await page.sees("No sound arrives.")
        await page.until(f"name => !!({FIND})('button', name)", "Dictate")
        assert page.errors == []


async def test_firefox_inserts_a_prompt_archives_and_previews(server: RunningServer, tmp_path: Path) -> None:
    async with firefox(tmp_path) as page:
        await page.resize(1200, 900)
        await page.open(server.base_url)
        await page.type("Email", new_email())
        await page.type("Password", PASSWORD)
        await page.click("button", "Create account")
        await page.sees("What can I help with?")
        await page.run(
            "() => { localStorage['svc.model'] = JSON.stringify('builtin/echo'); location.hash = '#/prompts'; }"
        )
        await page.reload()
        await page.click("button", "New prompt")
        await page.type("Name", "Page")
        await page.type("Text", "```html\n<p>{{word}} in a frame</p>\n```")
        await page.click("button", "Save")
        await page.run("() => { location.hash = '#/chat'; }")
        await page.sees("What can I help with?")
        await page.type("Message", "/")
        await page.until("() => document.querySelector('[role=option]') !== null")
        await page.run("() => { document.querySelector('[role=option]').click(); }")
        await page.type("word", "Hello")
        await page.click("button", "Insert")
        await page.until("() => document.getElementById('composer').value.includes('Hello in a frame')")
        await page.click("button", "Send")
        await page.click("button", "Preview")
        await page.until("() => document.querySelector('.preview iframe') !== null")
        await page.until("() => document.querySelector('.preview .state') === null")
        await page.click("button", "Close")
        await page.until("() => document.querySelector('iframe') === null")
        await page.click("button", "Actions for")
        await page.click("button", "Archive")
        await page.until("() => document.querySelectorAll('.conversation > a').length === 0")
        assert page.errors == []
