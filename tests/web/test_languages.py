"""The page in every language: as the browser or a setting asks, within its bytes, and no text wider than its place."""

import asyncio
import gzip
import re

import pytest
from playwright.async_api import Browser, Page, expect

from svc.languages import COOKIE, LANGUAGES
from tests.support.browser import WITH_BROWSER, findings, new_context, new_visitor, signed_in
from tests.support.browser_chat import keep_conversation
from tests.support.server import ROOT, RunningServer
from tests.web.test_budget import FIRST_VIEW_BYTES, FIRST_VIEW_REQUESTS, weight

pytestmark = WITH_BROWSER

OTHERS = [language for language in LANGUAGES if language != "en"]
APP = ROOT / "svc" / "static" / "app"
VIEWS = [
    "chat",
    "agents",
    "media",
    "artifacts",
    "projects",
    "prompts",
    "keys",
    "providers",
    "wallet",
    "settings",
    "imports",
    "memory",
    "support",
    "shares",
]
VIEWS.append("tool-servers")
# A button, heading, label or link of one line that is cut off, and what is wider than the page.
CUT_OFF = """() => {
    const cut = [...document.querySelectorAll("button, h1, h2, label, .nav-item, th, dt")]
        .filter(one => one.checkVisibility() && !one.closest(".hidden-text") && !one.matches(".hidden-text"))
        .filter(one => one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0)
        .filter(one => getComputedStyle(one).overflowX !== "auto" && getComputedStyle(one).display !== "inline")
        .map(one => `${one.className} ${one.textContent}`);
    const {scrollWidth, clientWidth} = document.scrollingElement;
    return scrollWidth > clientWidth ? [...cut, `page ${scrollWidth}`] : cut;
}"""


def text_bytes(language: str) -> int:
    """Return the compressed size of the texts that are loaded with the first view and the settings."""
    folder = APP / "texts" / language
    return sum(len(gzip.compress((folder / f"{name}.js").read_bytes())) for name in ("first", "settings"))


# The normal run plays the language with the most bytes, and of the layout those with long words, without blanks, and
# from right to left. The soak run plays all.
LARGEST = max(LANGUAGES, key=text_bytes)
WIDEST = ("de", "fr", "ja", "ar")


async def direction_and_language(page: Page) -> list[str]:
    found: list[str] = await page.evaluate("[document.documentElement.lang, document.documentElement.dir]")
    return found


@pytest.mark.parametrize(
    "language", [pytest.param(one, marks=() if one == LARGEST else pytest.mark.soak) for one in LANGUAGES]
)
async def test_first_view_of_each_language_is_small(server: RunningServer, browser: Browser, language: str) -> None:
    visitor = await asyncio.to_thread(new_visitor, server)
    async with new_context(browser, server, visitor, locale=language) as context:
        for address, ready in (("/", "#composer"), ("/#/settings", ".switch")):
            requests, size = await weight(context, address, ready)
            assert (requests <= FIRST_VIEW_REQUESTS, size <= FIRST_VIEW_BYTES) == (True, True), (requests, size)


@pytest.mark.parametrize(
    "language", [pytest.param(one, marks=() if one in WIDEST else pytest.mark.soak) for one in OTHERS]
)
async def test_no_text_is_wider_than_its_place(server: RunningServer, browser: Browser, language: str) -> None:
    visitor = await asyncio.to_thread(new_visitor, server, dollars=5)
    async with signed_in(browser, server, "/#/chat", visitor=visitor, width=390, locale=language) as page:
        assert await direction_and_language(page) == [language, "rtl" if language == "ar" else "ltr"]
        for view in VIEWS:
            await page.goto(f"/#/{view}")
            await page.locator("#content h1, .greeting").first.wait_for()
            assert await page.evaluate(CUT_OFF) == [], view
        await page.goto("/#/chat")
        await page.locator(".chat-head .picker-button").first.click()
        names = page.locator(".picker-name")
        await names.first.wait_for()
        assert await names.evaluate_all("names => Math.min(...names.map(one => one.clientWidth))") >= 80


async def test_arabic_page_is_accessible(server: RunningServer, browser: Browser) -> None:
    async with signed_in(browser, server, "/#/chat", locale="ar") as page:
        for view in ("chat", "wallet", "settings"):
            await page.goto(f"/#/{view}")
            await page.locator("#content h1, .greeting").first.wait_for()
            assert await findings(page) == [], view
        await expect(page.locator(".wallet-chip .money")).to_have_text("\u2068$0.00\u2069")  # read from the left
        sidebar = await page.locator(".sidebar").bounding_box()
        assert sidebar is not None and sidebar["x"] > 300  # at the right


ARABIC = """- [x] مهمة with code

> اقتباس

| الاسم | Model |
|---|---|
| Banana | gpt-4 |

`pip` و

```python
x = "مرحبا"
```
"""
ENGLISH = "- [ ] a task\n\n| a | b |\n|---|---|\n| مرحبا | 2 |"
TITLES = ["An English title that is longer than the list can show", "عنوان عربي أطول مما تستطيع القائمة أن تعرضه كاملا"]
# Whether the first letter of each title can be seen: the end is what is cut off.
FIRST_LETTERS = """links => links.map(link => {
    const text = [...link.childNodes].find(one => one.nodeType === Node.TEXT_NODE && one.data.trim()), range = new Range();
    range.setStart(text, 0);
    range.setEnd(text, 1);
    const letter = range.getBoundingClientRect(), box = link.getBoundingClientRect();
    return link.scrollWidth > link.clientWidth && letter.left >= box.left && letter.right <= box.right;
})"""
CENTRES = "all => all.map(one => { const {left, right} = one.getBoundingClientRect(); return (left + right) / 2; })"


async def test_texts_of_both_directions_are_laid_out_by_their_own(server: RunningServer, browser: Browser) -> None:
    visitor = await asyncio.to_thread(new_visitor, server)
    kept = await asyncio.to_thread(keep_conversation, server, visitor, ["?", ARABIC, "?", ENGLISH])
    async with server.client(headers=visitor.headers) as client:
        for title in TITLES:
            await client.post("/conversations", json={"title": title})
    async with signed_in(browser, server, f"/#/chat/{kept}", visitor=visitor, locale="ar", width=1440) as page:
        arabic, english = page.locator(".said-assistant").first, page.locator(".said-assistant").last
        await page.locator(".conversation a", has_text="English").wait_for()
        titles = page.locator(".conversation a").filter(has_text=re.compile("English|عنوان"))
        assert await titles.evaluate_all(FIRST_LETTERS) == [True, True]
        middle = (await arabic.locator(".md").evaluate_all(CENTRES))[0]
        for answer, is_right in ((arabic, True), (english, False)):
            shown = answer.locator(".task input, table")
            places = await shown.evaluate_all(CENTRES)
            assert [place > middle for place in places] == [is_right, is_right]
            sides = await answer.locator("th, td").evaluate_all(
                "all => all.map(one => getComputedStyle(one).textAlign)"
            )
            assert set(sides) == {"right" if is_right else "left"}
        code = arabic.locator("code, pre")
        assert set(await code.evaluate_all("all => all.map(one => getComputedStyle(one).direction)")) == {"ltr"}
        assert await arabic.locator("blockquote").evaluate("one => getComputedStyle(one).borderRightWidth") == "3px"
        composer = page.locator("#composer")
        assert await composer.evaluate("one => getComputedStyle(one).unicodeBidi") == "plaintext"
        await page.goto("/#/keys")
        tabs = page.get_by_role("tab")
        await tabs.first.press("ArrowLeft")  # forward
        await expect(tabs.nth(1)).to_be_focused()
        await expect(tabs.nth(1)).to_have_attribute("aria-selected", "true")
        await tabs.nth(1).press("ArrowRight")
        await expect(tabs.first).to_be_focused()


async def test_setting_comes_before_the_browser(server: RunningServer, browser: Browser) -> None:
    visitor = await asyncio.to_thread(new_visitor, server)
    async with signed_in(browser, server, "/#/settings", visitor=visitor, locale="de") as page:
        await expect(page.get_by_role("heading", name="Darstellung")).to_be_visible()
        await page.get_by_label("Sprache").select_option("fr")
        await expect(page.get_by_role("heading", name="Apparence")).to_be_visible()
        await page.reload()
        await expect(page.get_by_role("heading", name="Apparence")).to_be_visible()
        await page.get_by_label("Langue", exact=True).select_option("")
        await expect(page.get_by_role("heading", name="Darstellung")).to_be_visible()
        async with server.client(headers=visitor.headers) as client:
            assert (await client.get("/user/settings")).json()["language"] is None
            await client.patch("/user/settings", json={"language": "ja"})
        await page.reload()  # another device has changed it
        await expect(page.get_by_role("heading", name="外観")).to_be_visible()


async def test_choice_before_the_sign_in_becomes_the_setting(server: RunningServer, browser: Browser) -> None:
    async with new_context(browser, server, locale="en") as context:
        page = await context.new_page()
        await page.goto("/")
        await page.get_by_label("Language").select_option("es")
        await expect(page.get_by_label("Idioma")).to_have_value("es")
        visitor = await asyncio.to_thread(new_visitor, server)
        toggle = page.get_by_role("button", name="¿Ya tienes una cuenta?")
        await toggle.click()
        await page.get_by_label("Correo electrónico").fill(visitor.email)
        await page.get_by_label("Contraseña", exact=True).fill("correct horse battery")
        async with page.expect_response(lambda answer: answer.request.method == "PATCH"):
            await page.get_by_role("button", name="Iniciar sesión").click()
        await page.locator(".shell").wait_for()
        await expect(page.locator("#composer")).to_have_attribute("placeholder", "Pregunta lo que quieras")
        async with server.client(headers=visitor.headers) as client:
            assert (await client.get("/user/settings")).json()["language"] == "es"
        assert COOKIE in {cookie.get("name") for cookie in await context.cookies()}


async def test_error_is_told_in_the_language_of_the_page(server: RunningServer, browser: Browser) -> None:
    async with new_context(browser, server, locale="de", allow=["401"]) as context:
        page = await context.new_page()
        await page.goto("/")
        await page.get_by_role("button", name="Du hast schon ein Konto?").click()
        await page.get_by_label("E-Mail-Adresse").fill("nobody@example.com")
        await page.get_by_label("Passwort", exact=True).fill("wrong password")
        await page.get_by_role("button", name="Anmelden").click()
        alert = page.get_by_role("alert")
        await expect(alert).to_contain_text("Die E-Mail-Adresse oder das Passwort ist falsch.")
