"""Answers again in the page: any answer, by any model, by several models side by side, and in a new chat from there."""

import asyncio
from typing import Any

import pytest
from playwright.async_api import Browser, Page, Route, expect

from tests.support.browser import LOOKS, WITH_BROWSER, Theme, findings, new_visitor, signed_in
from tests.support.browser_chat import answered, keep_conversation, say
from tests.support.server import RunningServer
from tests.web.test_cost import dollars

pytestmark = WITH_BROWSER
SAID = ["say one", "first answer", "say two", "second answer"]


async def kept(server: RunningServer, model: str = "builtin/script", **options: Any) -> dict[str, Any]:
    """The options of `signed_in` for a kept conversation of two questions and answers, and its address."""
    visitor = await asyncio.to_thread(new_visitor, server, model=model, **options)
    conversation_id = await asyncio.to_thread(keep_conversation, server, visitor, SAID)
    return {"address": f"/#/chat/{conversation_id}", "visitor": visitor}


async def more_of(page: Page, answer: int, action: str) -> None:
    await page.get_by_role("button", name="More for this answer").nth(answer).click()
    await page.get_by_role("menuitem", name=action).click()


async def choose(page: Page, *names: str) -> None:
    dialog = page.get_by_role("dialog")
    for name in names:
        await dialog.get_by_role("checkbox", name=name).check()


async def test_any_answer_is_regenerated_and_what_follows_stays_as_its_branch(
    server: RunningServer, browser: Browser
) -> None:
    async with signed_in(browser, server, **await kept(server)) as page:
        first = page.locator(".said-assistant").first
        await first.get_by_role("button", name="Regenerate").click()
        await expect(page.locator(".said-assistant:not(.live)")).to_have_count(1)
        await expect(first).to_contain_text("one")
        await expect(first).not_to_contain_text("first answer")
        await first.get_by_role("button", name="Previous version").click()
        await expect(page.locator(".said-assistant")).to_have_count(2)
        await expect(page.locator(".said-assistant").last).to_contain_text("second answer")


async def test_an_earlier_answer_is_given_by_another_model(server: RunningServer, browser: Browser) -> None:
    async with signed_in(browser, server, **await kept(server)) as page:
        await more_of(page, 0, "Other models")
        await page.get_by_role("dialog").get_by_role("button", name="Regenerate").click()
        await expect(page.get_by_text("Choose a model first.")).to_be_visible()
        await choose(page, "builtin/echo")
        await page.get_by_role("dialog").get_by_role("button", name="Regenerate").click()
        await expect(page.get_by_role("dialog")).to_have_count(0)
        await expect(page.locator(".said-assistant:not(.live)")).to_have_count(1)
        await expect(page.locator(".fact-model")).to_have_text("builtin/echo")
        await expect(page.locator(".said-assistant")).to_contain_text("say one")


@pytest.mark.parametrize(("width", "theme"), LOOKS)
async def test_models_answer_one_question_side_by_side_and_one_answer_is_taken(
    server: RunningServer, browser: Browser, width: int, theme: Theme
) -> None:
    async with signed_in(browser, server, model="assistant-paid", dollars=5, width=width, theme=theme) as page:
        composer = page.get_by_label("Message", exact=True)
        await composer.fill("What is 2 + 2?")
        one = await dollars(page.locator(".estimate"))
        await page.get_by_role("button", name="Model:").click()
        await page.get_by_role("button", name="Compare models").click()
        assert await findings(page) == []
        await choose(page, "builtin/assistant-paid", "builtin/echo", "builtin/assistant Free")
        await expect(page.get_by_role("dialog").get_by_role("checkbox", checked=False).first).to_be_disabled()
        await page.get_by_role("button", name="Compare 3 models").click()
        await expect(page.get_by_role("button", name="Model: 3 models")).to_be_visible()
        assert await dollars(page.locator(".estimate")) == one, "the other models are free"
        await page.get_by_role("button", name="Send").click()
        dialog = page.get_by_role("dialog", name="Compare answers")
        await expect(dialog.get_by_role("button", name="Use this answer")).to_have_count(3)
        names = await dialog.locator("h3").all_inner_texts()
        assert names == ["builtin/assistant-paid", "builtin/echo", "builtin/assistant"]
        assert await findings(page) == []
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        first = dialog.locator(".compared").first
        await expect(first).to_contain_text("4")
        await expect(first.locator(".money")).to_be_visible()
        await first.get_by_role("button", name="Use this answer").click()
        await expect(dialog).to_have_count(0)
        await expect(page.locator(".said-assistant .fact-model")).to_have_text("builtin/assistant-paid")
        await expect(page.locator(".versions")).to_contain_text("1 / 3")
        await say(page, "What is 3 + 3?")  # by the chosen model alone
        await answered(page, 2)
        await expect(page.get_by_role("dialog")).to_have_count(0)


async def test_estimate_adds_the_costs_of_all_models(server: RunningServer, browser: Browser) -> None:
    async def with_second_price(route: Route) -> None:
        answer = await route.fetch()
        listed = await answer.json()
        prices = {model["id"]: model.get("pricing") for model in listed["data"]}
        for model in listed["data"]:
            if model["id"] == "builtin/echo":
                model["pricing"] = prices["builtin/assistant-paid"]
        await route.fulfill(response=answer, json=listed)

    options = await kept(server, "builtin/assistant-paid", dollars=5)
    async with signed_in(browser, server, "/#/settings", visitor=options["visitor"]) as page:
        await page.route("**/v1/models", with_second_price)
        await page.goto(options["address"])
        await page.reload()
        await more_of(page, 1, "Other models")
        await choose(page, "builtin/assistant-paid")
        estimate = page.get_by_role("dialog").locator(".estimate")
        one = await dollars(estimate)
        await choose(page, "builtin/echo")
        await expect(estimate).not_to_contain_text(f"${one[0]:g},")
        both = await dollars(estimate)
        assert both == pytest.approx((2 * one[0], 2 * one[1]), rel=0.05)


async def test_versions_are_compared_later_and_by_keyboard(server: RunningServer, browser: Browser) -> None:
    async with signed_in(browser, server, **await kept(server)) as page:
        await page.get_by_role("button", name="Regenerate").last.click()
        await expect(page.locator(".versions")).to_contain_text("2 / 2")
        await page.reload()
        await page.get_by_role("button", name="More for this answer").last.focus()
        await page.keyboard.press("Enter")
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog", name="Compare answers")
        await expect(dialog.locator(".compared")).to_have_count(2)
        await dialog.get_by_role("button", name="Use this answer").first.focus()
        await page.keyboard.press("Enter")
        await expect(dialog).to_have_count(0)
        await expect(page.locator(".said-assistant").last).to_contain_text("second answer")


async def test_stop_ends_the_comparison_and_the_models_that_have_not_answered_are_not_asked(
    server: RunningServer, browser: Browser
) -> None:
    async with signed_in(browser, server, model="script") as page:
        await page.get_by_label("Message", exact=True).fill("say begun\nwait 60000")
        await page.get_by_role("button", name="Model:").click()
        await page.get_by_role("button", name="Compare models").click()
        await choose(page, "builtin/script", "builtin/echo")
        await page.get_by_role("button", name="Compare 2 models").click()
        await page.get_by_role("button", name="Send").click()
        dialog = page.get_by_role("dialog", name="Compare answers")
        await expect(dialog.locator(".compared").first).to_contain_text("begun")
        await expect(dialog.locator(".compared").last).to_contain_text("Answers after the ones before")
        await page.keyboard.press("Escape")
        await page.get_by_role("button", name="Stop", exact=True).click()
        await expect(page.locator(".ending")).to_contain_text("This answer was stopped.")
        await expect(page.locator(".versions")).to_have_count(0)


async def test_queued_question_waits_for_all_models(server: RunningServer, browser: Browser) -> None:
    async with signed_in(browser, server, model="script") as page:
        composer = page.get_by_label("Message", exact=True)
        await composer.fill("say begun\nwait 3000")
        await page.get_by_role("button", name="Model:").click()
        await page.get_by_role("button", name="Compare models").click()
        await choose(page, "builtin/script", "builtin/echo")
        await page.get_by_role("button", name="Compare 2 models").click()
        await page.get_by_role("button", name="Send").click()
        await expect(page.locator(".compared").first).to_contain_text("begun")
        await page.keyboard.press("Escape")
        await say(page, "say next")
        await expect(page.locator(".queue li")).to_have_count(1)
        await answered(page, 2)
        await expect(page.locator(".said-assistant").last).to_contain_text("next")
        await expect(page.locator(".versions").first).to_contain_text("2 / 2")


async def test_new_chat_from_an_answer_has_the_messages_before(server: RunningServer, browser: Browser) -> None:
    options = await kept(server)
    async with signed_in(browser, server, **options) as page:
        await more_of(page, 0, "New chat from here")
        await expect(page.locator(".said-assistant")).to_have_count(1)
        await expect(page.locator(".said-assistant")).to_contain_text("first answer")
        assert not page.url.endswith(options["address"][2:])
        await expect(page.locator(".conversation")).to_have_count(2)


async def test_temporary_chat_has_no_versions_to_compare(server: RunningServer, browser: Browser) -> None:
    async with signed_in(browser, server, "/#/chat/temporary", model="script") as page:
        for number in range(2):
            await say(page, f"say number {number}")
            await answered(page, number + 1)
        await expect(page.get_by_role("button", name="More for this answer")).to_have_count(0)
        await expect(page.get_by_role("button", name="Regenerate")).to_have_count(1)
