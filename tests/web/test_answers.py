"""No question and no answer is lost: answers continue without the page, show how they ended, and keep
their versions.
"""

import asyncio
from typing import Any

import httpx
from playwright.async_api import Browser, Locator, Page, Route, expect

from tests.support.browser import WIDTHS, WITH_BROWSER, Visitor, findings, new_visitor, opened, signed_in
from tests.support.browser_chat import HELD, answered, held_model, refuse_once, say
from tests.support.model_server import ModelServer
from tests.support.server import RunningServer

pytestmark = WITH_BROWSER
WHOLE = "one two"
REFUSING = "no-ids+refusal+silent-after-2-chunks"


def answer(page: Page) -> Locator:
    return page.locator(".said-assistant:not(.live)").last


async def send(page: Page, text: str) -> None:
    await page.get_by_label("Message", exact=True).fill(text)
    await page.get_by_role("button", name="Send").click()


async def in_progress(page: Page, text: str = "one") -> None:
    await expect(page.locator(".live .md")).to_have_text(text)


def stored(server: RunningServer, visitor: Visitor) -> list[Any]:
    """Return the conversations of an account."""
    with httpx.Client(
        base_url=server.base_url, verify=server.tls or False, headers=visitor.headers, trust_env=False
    ) as client:
        data: list[Any] = client.get("/conversations").raise_for_status().json()["data"]
        return data


@WIDTHS
async def test_answer_continues_after_a_reload_and_in_another_tab_and_the_list_marks_it(
    server: RunningServer, browser: Browser, width: int
) -> None:
    visitor = await asyncio.to_thread(new_visitor, server, model=f"held/{HELD}")
    async with held_model(server, visitor) as models, signed_in(browser, server, visitor=visitor, width=width) as page:
        await send(page, WHOLE)
        await in_progress(page)
        other = await opened(page.context, page.url)
        await in_progress(other)
        await page.reload()
        await in_progress(page)
        assert await findings(page) == []
        await page.goto("/#/chat")
        if width < 800:
            await page.get_by_role("button", name="Open navigation").click()
        mark = page.get_by_role("img", name="Generating an answer")
        await expect(mark).to_be_visible()
        assert await findings(page) == []
        models.release.set()
        await expect(mark).to_have_count(0)
        await page.locator(".conversation a").click()
        for tab in (page, other):
            await expect(answer(tab).locator(".md")).to_have_text(WHOLE)
            await expect(tab.locator(".said-user")).to_have_count(1)
            await expect(tab.locator(".ending")).to_have_count(0)


async def test_tabs_show_the_same_chat_at_once(server: RunningServer, browser: Browser) -> None:
    async with signed_in(browser, server, model="script") as page:
        await say(page, "say first")
        await answered(page)
        other = await opened(page.context, page.url)
        await answered(other)
        await say(other, "say second")
        await answered(other, 2)
        await expect(answer(page).locator(".md")).to_have_text("second")
        await say(page, "say one\nwait 30000\nsay  two")
        await in_progress(other)
        await other.get_by_role("button", name="Stop").click()
        for tab in (page, other):
            await expect(answer(tab).locator(".ending")).to_contain_text("This answer was stopped.")
            await expect(tab.locator(".said-assistant")).to_have_count(3)


async def test_answer_continues_while_the_connection_is_lost(server: RunningServer, browser: Browser) -> None:
    visitor = await asyncio.to_thread(new_visitor, server, model=f"held/{HELD}")
    offline = signed_in(browser, server, visitor=visitor, allow=["ERR_"])
    async with held_model(server, visitor) as models, offline as page:
        await send(page, WHOLE)
        await in_progress(page)
        address = page.url
        await page.goto("about:blank")
        await page.route("**/stream", lambda lost: lost.abort(), times=3)
        await page.goto(address)
        await expect(page.locator(".live")).to_contain_text("Reconnecting…")
        await in_progress(page)
        await expect(page.locator(".live")).not_to_contain_text("Reconnecting…")
        models.release.set()
        await expect(answer(page).locator(".md")).to_have_text(WHOLE)


@WIDTHS
async def test_answer_that_ended_early_says_so_and_can_be_continued(
    server: RunningServer, browser: Browser, width: int
) -> None:
    async with signed_in(browser, server, model="script", width=width, allow=["400"]) as page:
        await send(page, "say one\nlength")
        await expect(answer(page).locator(".ending")).to_contain_text("length limit")
        await answer(page).get_by_role("button", name="Continue").click()
        await expect(page.locator(".said-user .said").last).to_have_text("Continue where you stopped.")
        await answered(page, 2)
        await page.goto("/#/chat")
        await page.locator(".greeting").wait_for()
        await send(page, "say one\nwait 30000\nsay never")
        await in_progress(page)
        await page.get_by_role("button", name="Stop").click()
        await expect(answer(page).locator(".ending")).to_contain_text("This answer was stopped.")
        await page.evaluate("localStorage['svc.model'] = '\"builtin/echo\"'")
        await page.reload()
        await expect(answer(page).locator(".md")).to_have_text("one")
        assert await findings(page) == []
        await answer(page).get_by_role("button", name="Continue").click()
        await expect(page.locator(".said-user .said").last).to_have_text("Continue where you stopped.")
        await answered(page, 2)
        await expect(page.locator(".ending")).to_contain_text("This answer was stopped.")
        await expect(page.locator(".ending button")).to_have_count(0)


async def test_empty_answer_says_so(server: RunningServer, browser: Browser) -> None:
    async with signed_in(browser, server, model="script") as page:
        await send(page, "wait 1")
        await expect(answer(page).locator(".ending")).to_have_text("This answer is empty.")
        await page.reload()
        await expect(answer(page).locator(".ending")).to_have_text("This answer is empty.")
        await send(page, "say something")
        await expect(answer(page).last.locator(".md")).to_have_text("something")
        await expect(page.locator(".ending")).to_have_count(1)


async def test_stop_before_the_first_token_leaves_a_usable_question(server: RunningServer, browser: Browser) -> None:
    async with signed_in(browser, server, model="script") as page:
        await say(page, "wait 30000\nsay never")
        await page.wait_for_url("**/#/chat/conv_*")
        await page.get_by_role("button", name="Stop").click()
        await expect(answer(page).locator(".ending")).to_contain_text("This answer was stopped.")
        await expect(answer(page).get_by_role("button", name="Continue")).to_have_count(0)
        await page.reload()
        await page.get_by_role("button", name="Edit message").click()
        await page.get_by_label("Edit your message").fill("say second")
        await page.keyboard.press("Enter")
        await expect(answer(page).locator(".md")).to_have_text("second")


async def test_stop_before_the_question_is_sent_returns_it_and_later_waits_until_it_is_stored(
    server: RunningServer, browser: Browser
) -> None:
    async with signed_in(browser, server, model="script", allow=["409"]) as page:
        clicked = asyncio.Event()

        async def create_later(route: Route) -> None:
            await clicked.wait()
            await route.continue_()

        await page.route("**/conversations", create_later, times=1)
        await say(page, "say second")
        await page.get_by_role("button", name="Stop").click()
        clicked.set()
        await expect(page.get_by_label("Message", exact=True)).to_have_value("say second")
        await expect(page.locator(".said, .conversation")).to_have_count(0)
        await page.get_by_role("button", name="Send").click()
        await expect(answer(page).locator(".md")).to_have_text("second")

        async def send_later(route: Route) -> None:
            await asyncio.sleep(2)
            await route.continue_()

        await page.goto("/#/chat")
        await page.locator(".greeting").wait_for()
        await page.route("**/v1/chat/completions", send_later, times=1)
        await say(page, "wait 30000\nsay never")
        await page.wait_for_url("**/#/chat/conv_*")
        await page.get_by_role("button", name="Stop").click()
        await expect(answer(page).locator(".ending")).to_contain_text("This answer was stopped.")


@WIDTHS
async def test_failed_answer_keeps_its_question_and_reason(server: RunningServer, browser: Browser, width: int) -> None:
    async with signed_in(browser, server, model="script", width=width, allow=["503"]) as page:
        await send(page, "fail 503 Resting")
        for _ in range(2):
            await expect(answer(page).get_by_role("alert")).to_contain_text("Resting")
            await expect(answer(page).get_by_role("alert")).to_contain_text("Request ID: req_")
            await expect(page.locator(".said-user .said")).to_have_text("fail 503 Resting")
            await page.reload()
        assert await findings(page) == []
        await answer(page).get_by_role("button", name="Try again").click()
        await expect(page.get_by_role("group", name="Versions of this answer")).to_contain_text("2 / 2")


@WIDTHS
async def test_refused_question_stays_as_a_draft_without_a_chat(
    server: RunningServer, browser: Browser, width: int
) -> None:
    visitor = await asyncio.to_thread(new_visitor, server, model="builtin/echo")
    async with signed_in(browser, server, visitor=visitor, allow=["402", "429", "500"], width=width) as page:
        alert, composer = page.get_by_role("alert"), page.get_by_label("Message", exact=True)
        for status in (402, 429, 500):
            code = "insufficient_funds" if status == 402 else "internal_error"
            error = {"message": f"Not now: {status}.", "type": "api_error", "code": code, "param": None}
            await refuse_once(page, "**/v1/chat/completions", status, error)
            await send(page, "An important question")
            await expect(alert).to_contain_text("Your balance" if status == 402 else f"Not now: {status}.")
            await expect(composer).to_have_value("An important question")
            await expect(page.locator(".conversation")).to_have_count(0)
            assert await asyncio.to_thread(stored, server, visitor) == []
        await page.reload()
        await expect(composer).to_have_value("An important question")
        await page.get_by_role("button", name="Send").click()
        await expect(answer(page).locator(".md")).to_have_text("An important question")
        await expect(composer).to_have_value("")
        assert [one["title"] for one in await asyncio.to_thread(stored, server, visitor)] == ["An important question"]


@WIDTHS
async def test_versions_of_answers_and_questions_are_kept(server: RunningServer, browser: Browser, width: int) -> None:
    async with signed_in(browser, server, model="script", width=width) as page:
        await send(page, "say old")
        await answered(page)
        await send(page, "say follows")
        await answered(page, 2)
        await page.get_by_role("button", name="Edit message").first.click()
        await page.get_by_label("Edit your message").fill("say new")
        await page.get_by_label("Edit your message").press("Enter")
        await expect(answer(page).locator(".md")).to_have_text("new")
        await expect(page.locator(".said-user")).to_have_count(1)
        await page.get_by_role("button", name="Regenerate", exact=True).click()
        answers = page.get_by_role("group", name="Versions of this answer")
        await expect(answers).to_contain_text("/ 2")
        assert await findings(page) == []
        questions = page.get_by_role("group", name="Versions of this question")
        await questions.get_by_role("button", name="Previous version of this question").press("Enter")
        await expect(page.locator(".said-user .said")).to_have_text(["say old", "say follows"])
        await expect(questions).to_contain_text("1 / 2")
        await page.reload()
        await expect(page.locator(".said-user .said")).to_have_text(["say old", "say follows"])
        await questions.get_by_role("button", name="Next version of this question").press("Enter")
        await expect(answers).to_contain_text("2 / 2")
        await expect(page.locator(".said-user .said")).to_have_text(["say new"])
        await answers.get_by_role("button", name="Previous version of this answer").press("Enter")
        await expect(answers).to_contain_text("1 / 2")


@WIDTHS
async def test_refusal_is_shown_from_its_beginning_here_and_after_a_reload(
    server: RunningServer, browser: Browser, width: int
) -> None:
    """Its beginning is in the first chunk that the server reads, and in the first one that a later reader gets."""
    visitor = await asyncio.to_thread(new_visitor, server, model=f"refusing/{REFUSING}")
    async with ModelServer() as models, server.client(headers=visitor.headers) as client:
        provider = {"name": "refusing", "base_url": models.base_url, "api_key": "any", "models": [REFUSING]}
        assert (await client.post("/user/providers", json=provider)).status_code == 201
        async with signed_in(browser, server, visitor=visitor, width=width) as page:
            await send(page, "May I?")
            await in_progress(page, "Hello,")
            await page.reload()
            await in_progress(page, "Hello,")
            await page.get_by_role("button", name="Stop").click()
            await expect(answer(page).locator(".md")).to_have_text("Hello,")
            await page.reload()
            await expect(answer(page).locator(".md")).to_have_text("Hello,")
