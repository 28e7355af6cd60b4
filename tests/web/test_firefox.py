"""Firefox takes one path of each feature of the web application, in one browser for all tests."""

import asyncio
import json

import pytest

from tests.support.browser import PASSWORD, new_email, new_visitor
from tests.support.cited import CITING, RIGHT, TIMETABLE, project_with
from tests.support.firefox import FIND, FIREFOX, Firefox
from tests.support.hostile_previews import OWN, SHOW, noticing, noticing_each
from tests.support.server import RunningServer

pytestmark = [pytest.mark.needs(FIREFOX), pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]
NARROW = 500  # a window of Firefox has at least 450 pixels
WIDE = 1200
LAST = "document.querySelector('.said-assistant:not(.live) .md')"


async def ask(page: Firefox, text: str) -> None:
    await page.type("Message", text)
    await page.click("button", "Send")


async def test_firefox_signs_up_chats_stops_and_keeps_settings(server: RunningServer, fox: Firefox) -> None:
    await fox.resize(NARROW, 900)
    await fox.open(server.base_url)
    await fox.type("Email", new_email())
    await fox.type("Password", PASSWORD)
    await fox.click("button", "Create account")
    await fox.sees("What can I help with?")
    await ask(fox, "What is 12 * (3 + 4)?")
    await fox.until(f"() => {LAST}?.textContent.includes('84') === true")
    await fox.run("() => { localStorage['svc.model'] = JSON.stringify('builtin/script'); location.hash = '#/chat'; }")
    await fox.reload()
    await fox.sees("What can I help with?")
    await ask(fox, "say begun\nwait 20000")
    await fox.until("() => document.querySelector('.said-assistant.live')?.textContent.includes('begun') === true")
    await fox.click("button", "Stop")
    await fox.until(
        "() => document.querySelector('.live') === null && document.querySelector('.said-assistant') !== null"
    )
    await fox.open(f"{server.base_url}/#/settings")
    await fox.type("Custom instructions", "Be brief.")
    await fox.click("button", "Save instructions")
    await fox.sees("Saved")
    await fox.reload()
    await fox.until("() => [...document.querySelectorAll('textarea')].some(one => one.value === 'Be brief.')")
    for width in (NARROW, 1440):
        await fox.resize(width, 900)
        assert await fox.run("() => document.documentElement.scrollWidth <= innerWidth") is True


async def test_firefox_shares_a_conversation_and_reads_it(server: RunningServer, fox: Firefox) -> None:
    await fox.sign_in(server, 1440)
    await ask(fox, "What is 12 * (3 + 4)?")
    await fox.until("() => document.querySelector('.said-assistant:not(.live) .facts') !== null")
    await fox.click("button", "Actions for")
    await fox.click("button", "Share")
    await fox.click("button", "Create link")
    await fox.until("() => document.querySelector('dialog input[readonly]')?.value.includes('/#/shared/') === true")
    link = await fox.run("() => document.querySelector('dialog input[readonly]').value")
    await fox.run("() => { localStorage.clear(); }")
    await fox.open(link)
    await fox.reload()
    await fox.until("() => document.querySelector('.shared .said-assistant')?.textContent.includes('84') === true")
    await fox.sees("Sign in to continue")


async def test_firefox_without_sound_says_so(server: RunningServer, fox: Firefox) -> None:
    """Firefox records nothing on a machine without a device that plays sound, as those of tests are."""
    await fox.sign_in(server, NARROW)
    await fox.press("Dictate")
    await fox.sees("Listening. Escape discards the words.")
    await fox.sees("No sound arrives.")
    await fox.until(f"name => !!({FIND})('button', name)", "Dictate")


async def test_firefox_inserts_a_prompt_archives_and_previews(server: RunningServer, fox: Firefox) -> None:
    await fox.sign_in(server, WIDE, model="builtin/echo")
    await fox.run("() => { location.hash = '#/prompts'; }")
    await fox.click("button", "New prompt")
    await fox.type("Name", "Page")
    await fox.type("Text", "```html\n<p>{{word}} in a frame</p>\n```")
    await fox.click("button", "Save")
    await fox.run("() => { location.hash = '#/chat'; }")
    await fox.sees("What can I help with?")
    await fox.type("Message", "/")
    await fox.until("() => document.querySelector('[role=option]') !== null")
    await fox.run("() => { document.querySelector('[role=option]').click(); }")
    await fox.type("word", "Hello")
    await fox.click("button", "Insert")
    await fox.until("() => document.getElementById('composer').value.includes('Hello in a frame')")
    await fox.click("button", "Send")
    await fox.click("button", "Preview")
    await fox.until("() => document.querySelector('.preview iframe') !== null")
    await fox.until("() => document.querySelector('.preview .state') === null")
    await fox.click("button", "Close")
    await fox.until("() => document.querySelector('iframe') === null")
    await fox.click("button", "Actions for")
    await fox.click("button", "Archive")
    await fox.until("() => document.querySelectorAll('.conversation > a').length === 0")


async def test_nothing_leaves_a_hostile_page_in_firefox(server: RunningServer, fox: Firefox) -> None:
    await fox.sign_in(server, WIDE)
    async with noticing() as unlocked, noticing_each() as noticed:
        await fox.run(f"() => {{ {unlocked.filled(OWN)} }}")  # else the test would prove nothing
        await unlocked.notices()
        assert await fox.run(SHOW, json.dumps([one.page(name) for name, one in noticed.items()])) == 0
        assert {name: one.seen for name, one in noticed.items() if one.seen} == {}
        assert await fox.run("() => location.pathname + location.hash") == "/"
    assert await fox.tabs() == 1
    fox.errors.clear()  # what it has blocked


async def test_firefox_compares_two_models_and_takes_one(server: RunningServer, fox: Firefox) -> None:
    await fox.sign_in(server, WIDE)
    await fox.type("Message", "What is 2 + 2?")
    await fox.click("button", "Model:")
    await fox.click("button", "Compare models")
    for name in ("builtin/assistant", "builtin/echo"):
        await fox.click("field", name)
    await fox.click("button", "Compare 2 models")
    await fox.click("button", "Send")
    await fox.until("() => document.querySelectorAll('.compared .button').length === 2")
    await fox.run("() => { document.querySelector('.compared .button').click(); }")
    await fox.until("() => document.querySelector('dialog') === null")
    await fox.until(f"() => {LAST}?.textContent.includes('4') === true")
    await fox.sees("1 / 2")


@pytest.mark.parametrize(
    ("language", "direction", "name", "day"),
    [("de", "ltr", "Darstellung", r"\d+\.\d+\.20\d\d"), ("ar", "rtl", "المظهر", r"\d+\W+\d+\W+20\d\d")],
)
async def test_firefox_shows_the_page_in_a_language(
    server: RunningServer, fox: Firefox, language: str, direction: str, name: str, day: str
) -> None:
    await fox.sign_in(server, NARROW)
    await fox.run("() => { location.hash = '#/settings'; }")
    await fox.until(f"() => !!({FIND})('field', 'Language')")
    await fox.run(
        f"language => {{ const one = ({FIND})('field', 'Language'); one.value = language;"
        " one.dispatchEvent(new Event('change', {bubbles: true})); }",
        language,
    )
    await fox.sees(name)
    assert await fox.run("() => `${document.documentElement.lang} ${document.dir}`") == f"{language} {direction}"
    await fox.until(
        "day => [...document.querySelectorAll('.account-facts dd')]"
        ".some(one => new RegExp(`^${day}$`, 'u').test(one.textContent.trim()))",
        day,
    )
    assert await fox.run("() => document.documentElement.scrollWidth <= innerWidth") is True
    await fox.run("() => { location.hash = '#/chat'; }")
    await fox.until("() => document.querySelector('.greeting') !== null")
    send_is_left = await fox.run("() => document.querySelector('.send').getBoundingClientRect().x < innerWidth / 2")
    assert send_is_left is (direction == "rtl")


async def test_firefox_opens_a_cited_passage_in_its_file(server: RunningServer, fox: Firefox) -> None:
    visitor = await asyncio.to_thread(new_visitor, server, model="builtin/script")
    project, _ = await project_with(server, visitor, ("trains.md", TIMETABLE.encode()))
    async with server.client(headers=visitor.headers) as client:
        chat: str = (await client.post("/conversations", json={"project_id": project})).json()["id"]
        asked = {"model": "builtin/script", "messages": [{"role": "user", "content": CITING}]}
        done = await client.post("/v1/chat/completions", json=asked, headers={"x-service-conversation": chat})
        assert done.status_code == 200, done.text
    await fox.show(server, visitor, 500, f"/#/projects/{project}")
    await fox.sees("Ready")
    await fox.open(f"{server.base_url}/#/chat/{chat}")
    await fox.sees("not in the file")
    await fox.click("button", "[26] trains.md")
    await fox.until("text => document.querySelector('dialog mark')?.textContent.includes(text) === true", RIGHT)
