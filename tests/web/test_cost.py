"""What a message costs is shown before it is sent, and a wallet without funds leads to a payment and back."""

import asyncio
import re

from playwright.async_api import Browser, Locator, Page, expect

from svc.content import answers
from svc.content.answers import AnswerDetails
from tests.support.browser import WIDTHS, WITH_BROWSER, Visitor, database, findings, new_visitor, signed_in
from tests.support.browser_chat import answered, choose_model, keep_conversation
from tests.support.server import RunningServer

pytestmark = WITH_BROWSER
PRICED = "assistant-paid"


async def dollars(estimate: Locator) -> tuple[float, float]:
    """Return the amounts of an estimate: about, and at most."""
    about, most = re.findall(r"\$([\d.]+)", await estimate.inner_text())
    return float(about), float(most)


def estimate_of(page: Page) -> Locator:
    return page.locator(".estimate")


@WIDTHS
async def test_estimate_grows_with_the_draft_and_covers_the_cost(
    server: RunningServer, browser: Browser, width: int
) -> None:
    async with signed_in(browser, server, model=PRICED, dollars=5, width=width) as page:
        composer = page.get_by_label("Message", exact=True)
        await composer.fill("What is 2 + 2?")
        await expect(estimate_of(page)).to_contain_text("Estimated cost: about $")
        short = await dollars(estimate_of(page))
        assert short[0] <= short[1]
        await composer.fill("word " * 20_000)
        await expect(estimate_of(page)).not_to_contain_text(f"${short[1]:g}")
        long = await dollars(estimate_of(page))
        assert long[0] > short[0] and long[1] > short[1]
        assert await findings(page) == []
        await composer.fill("What is 2 + 2?")
        await page.get_by_role("button", name="Send").click()
        await answered(page)
        cost = float((await page.locator(".facts .money").inner_text()).removeprefix("$"))
        assert 0 < cost <= short[1]


async def test_estimate_includes_earlier_messages_and_is_for_paid_models_and_speech(
    server: RunningServer, browser: Browser
) -> None:
    visitor = await asyncio.to_thread(new_visitor, server, model=f"builtin/{PRICED}", dollars=5)
    kept = await asyncio.to_thread(keep_conversation, server, visitor, ["word " * 10_000, "word " * 10_000])
    async with signed_in(browser, server, visitor=visitor) as page:
        estimates = []
        for address, shown in (("/#/chat", ".greeting"), (f"/#/chat/{kept}", ".said-assistant")):
            await page.goto(address)
            await page.locator(shown).first.wait_for()
            await page.get_by_label("Message", exact=True).fill("What is 2 + 2?")
            estimates.append(await dollars(estimate_of(page)))
        assert estimates[1][0] > estimates[0][0] and estimates[1][1] > estimates[0][1]
        await choose_model(page, "echo")
        await expect(page.get_by_role("button", name="Send")).to_be_enabled()
        await expect(estimate_of(page)).to_have_count(0)
        await page.goto("/#/media")
        await page.get_by_role("button", name="Speech", exact=True).click()
        await page.get_by_label("Text to speak").fill("Good evening. " * 20)
        about, most = await dollars(page.locator("form .actions p"))
        assert 0 < about < most


def keep_cached_answer(server: RunningServer, visitor: Visitor) -> str:
    """A conversation whose answer had 1,200 of 1,250 input tokens cached; its id."""
    kept = keep_conversation(server, visitor, ["Once more?", "Once more."])
    details = AnswerDetails(1250, 10, 660, 400, "stop", None, 1200, 3240)
    with database(server) as tx:
        for row in tx.execute("SELECT id FROM messages WHERE role = 'assistant' AND conversation_id = ?", (kept,)):
            answers.add(tx, visitor.id, row["id"], [])
            answers.update(tx, visitor.id, row["id"], details)
    return kept


@WIDTHS
async def test_answer_shows_its_cached_input_and_what_it_saved(
    server: RunningServer, browser: Browser, width: int
) -> None:
    visitor = await asyncio.to_thread(new_visitor, server)
    kept = await asyncio.to_thread(keep_cached_answer, server, visitor)
    async with signed_in(browser, server, f"/#/chat/{kept}", visitor=visitor, width=width) as page:
        await expect(page.locator(".facts")).to_contain_text("96% of the input cached, saved $0.0032")
        await expect(page.get_by_title("1,250 in (1,200 cached), 10 out")).to_be_visible()
        assert await findings(page) == []


@WIDTHS
async def test_payment_returns_to_the_chat_with_its_draft(server: RunningServer, browser: Browser, width: int) -> None:
    async with signed_in(browser, server, model="echo", allow=["402"], width=width) as page:
        composer, send = page.get_by_label("Message", exact=True), page.get_by_role("button", name="Send")
        await composer.fill("A first question")
        await send.click()
        await answered(page)
        await choose_model(page, PRICED)
        await composer.fill("What is 2 + 2?")
        await expect(estimate_of(page)).to_contain_text("Your balance of $0.00 is too low")
        await send.click()
        alert = page.get_by_role("alert")
        await expect(alert).to_contain_text("Your balance of $0.00 is too low")
        assert await findings(page) == []
        address = page.url
        await alert.get_by_role("link", name="Add funds").click()
        await page.get_by_role("button", name="$5", exact=True).click()
        await page.get_by_role("button", name="Pay").click()
        await page.get_by_role("link", name="Back to the application").click()
        await expect(page).to_have_url(address)
        await expect(composer).to_have_value("What is 2 + 2?")
        await expect(page.locator(".said-user")).to_have_count(1)
        await send.click()
        await expect(page.locator(".said-assistant .md").last).to_contain_text("4")
