"""Formulas, footnotes, folded sections, coloured diffs and text from right to left in answers."""

import asyncio

from playwright.async_api import Browser, expect

from tests.support.browser import WIDTHS, WITH_BROWSER, findings, new_context, new_visitor, opened, signed_in
from tests.support.browser_chat import answered, keep_conversation, say
from tests.support.browser_cpu import Spent, holds, measured
from tests.support.server import RunningServer

pytestmark = WITH_BROWSER
FORMULAS = r"""Inline \(a^2\) and $b_1$ and $x = \$5$, not $5 to $10, US$3 or `$c$`, and \$d\$.

$$
\begin{aligned}
x &= \frac{1}{2} \\
- y &= 3
\end{aligned}
$$

- \[E = mc^2\]

Wrong: $\frac{$ and \href{javascript:window.hit=1}{x} and $\href{javascript:window.hit=1}{y}$ and $\boxed{z}$"""
DETAILS = """Before

<details>
<summary>The **reasons**</summary>

- first

<details><summary>Inner</summary>deep</details>

</details>

After[^1] and again[^note].

[^1]: The source.
[^note]: Another <script>window.hit = 2</script> one.
"""
HEBREW = "# שלום עולם\n\nזה טקסט\n\n- [x] פריט\n\n> ציטוט\n\n| א | b |\n|---|---|\n| ג | d |\n\nLatin text\n"
HTML = """Press <kbd>Ctrl</kbd> for H<sub>2</sub>O and H~2~O, <MARK>not *this*</MARK><br>but ~~that~~.

<u>Under</u> a paragraph of <sup onclick="window.hit=1">its own</sup> and <b>bold</b>

| cell |
|---|
| one<br/>two<sup>3</sup> |

$5 and $10 together, `x$` or \\(y `\\)`, and a note[^1].

[^1]: Noted."""
DIFF = "```diff\n@@ -1 +1 @@\n-old line\n+new line\n same\n```\n"
TEX = "[...document.querySelectorAll('.said-assistant math annotation')].map(one => one.textContent)"


@WIDTHS
async def test_formulas_are_drawn_as_mathml(server: RunningServer, browser: Browser, width: int) -> None:
    async with signed_in(browser, server, model="echo", width=width) as page:
        assert await page.evaluate("'katex' in globalThis") is False
        await say(page, FORMULAS)
        await answered(page)
        answer = page.locator(".said-assistant .md")
        await expect(answer.locator("math")).to_have_count(7)
        tex = await page.evaluate(TEX)
        assert tex[:3] == ["a^2", "b_1", r"x = \$5"]
        assert tex[3].startswith(r"\begin{aligned}") and tex[4] == "E = mc^2"
        await expect(answer.locator("math[display=block]")).to_have_count(2)
        await expect(answer.locator("mfrac")).to_have_count(1)
        await expect(answer).to_contain_text("not $5 to $10, US$3 or $c$, and $d$.")
        await expect(answer).to_contain_text(r"Wrong: $\frac{$ and")
        assert await answer.locator("math [href], math a").count() == 0
        assert await findings(page) == []
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        await page.reload()
        await expect(answer.locator("math")).to_have_count(7)
        assert await page.evaluate("window.hit") is None


async def test_parentheses_roots_and_integrals_grow_with_a_font_of_the_page(
    server: RunningServer, browser: Browser
) -> None:
    heights = """one => {
        const of = name => [...one.querySelectorAll(name)].map(part => part.getBoundingClientRect().height);
        const glyph = sign => [...one.querySelectorAll("mo")].find(part => part.textContent === sign)
            .getBoundingClientRect().height;
        return {fraction: Math.max(...of("mfrac")), letter: Math.min(...of("mi")), left: glyph("("), sum: glyph("\u222b")};
    }"""
    formula = r"$$\left( \frac{\frac{a}{b}}{\frac{c}{\frac{d}{e}}} \right) \int x \, dx$$"
    async with signed_in(browser, server, model="echo") as page:
        assert await page.evaluate("[...document.fonts].length") == 0  # loaded with the first formula
        await say(page, formula)
        await answered(page)
        math = page.locator(".said-assistant math")
        await expect(math).to_have_count(1)
        assert await page.evaluate("document.fonts.check('16px \"Noto Sans Math\"')")
        found = await math.evaluate(heights)
        assert found["left"] >= 0.9 * found["fraction"], found
        assert found["sum"] >= 1.8 * found["letter"], found


async def test_formula_stays_with_a_font_of_the_device_if_the_font_cannot_be_loaded(
    server: RunningServer, browser: Browser
) -> None:
    async with signed_in(browser, server, model="echo", allow=["ERR_FAILED"]) as page:
        await page.route("**/*.woff2", lambda route: route.abort())
        await say(page, "$x^2$")
        await answered(page)
        await expect(page.locator(".said-assistant math")).to_have_count(1)


async def test_formula_stays_whole_while_it_streams(server: RunningServer, browser: Browser) -> None:
    async with signed_in(browser, server, model="script") as page:
        lines = [
            "$$\\n",
            "a\\n",
            "- b\\n",
            "= c\\n",
            "$$\\n\\n",
            "<details><summary>More</summary>\\n\\n",
            "- x\\n\\n",
            "y\\n\\n</details>\\n",
        ]
        await say(page, "".join(f'say "{line}"\nwait 120\n' for line in lines))
        await answered(page)
        assert await page.evaluate(TEX) == ["a\n- b\n= c"]
        await expect(page.locator(".md-details")).to_have_count(1)
        await expect(page.locator(".said-assistant .md")).not_to_contain_text("details>")


async def test_details_fold_and_footnotes_are_reached(server: RunningServer, browser: Browser) -> None:
    async with signed_in(browser, server, model="echo") as page:
        await say(page, DETAILS)
        await answered(page)
        answer = page.locator(".said-assistant .md").first
        outer = answer.locator("details").first
        await expect(outer.locator("li")).to_have_count(0)
        await outer.get_by_text("The reasons").click()
        await expect(outer.locator("li")).to_have_text("first")
        await outer.get_by_text("Inner").click()
        await expect(outer.get_by_text("deep")).to_be_visible()
        await expect(answer.get_by_text("After")).to_be_visible()
        await answer.get_by_role("button", name="Footnote 1").click()
        await expect(answer.locator("[data-footnote='1']")).to_be_focused()
        await expect(answer.locator("[data-footnote=note]")).to_contain_text("Another <script>")
        assert await page.evaluate("window.hit") is None
        assert await findings(page) == []


@WIDTHS
async def test_plain_html_elements_are_drawn_and_others_are_text(
    server: RunningServer, browser: Browser, width: int
) -> None:
    async with signed_in(browser, server, model="echo", width=width) as page:
        await say(page, HTML)
        await answered(page)
        answer = page.locator(".said-assistant .md")
        first = answer.locator("p").first
        assert (await first.inner_text()).split("\n") == ["Press Ctrl for H2O and H~2~O, not this", "but that."]
        await expect(first.locator("kbd, sub, mark em, del, br")).to_have_count(5)
        await expect(answer.locator("p > u")).to_have_text("Under")
        await expect(answer).to_contain_text('<sup onclick="window.hit=1">its own</sup> and <b>bold</b>')
        assert (await answer.locator("td").inner_text()).split("\n") == ["one", "two3"]
        await expect(answer).to_contain_text("$5 and $10 together, x$ or (y \\), and a note1.")
        await expect(answer.locator("math")).to_have_count(0)
        mark = "one => one.getBoundingClientRect().width / parseFloat(getComputedStyle(one).fontSize)"
        assert await answer.locator(".footnote-link").evaluate(mark) < 0.8  # as wide as its digit
        assert await findings(page) == []
        assert await page.evaluate("window.hit") is None


async def test_text_from_right_to_left_is_aligned_right(server: RunningServer, browser: Browser) -> None:
    async with signed_in(browser, server, model="echo") as page:
        await page.get_by_label("Message", exact=True).fill(HEBREW)
        direction = "one => getComputedStyle(one).direction"
        await expect(page.locator("#composer")).to_have_css("unicode-bidi", "plaintext")  # each line has its own
        await page.keyboard.press("Enter")
        await answered(page)
        answer = page.locator(".said-assistant .md")
        for part, expected in (
            ("h3", "rtl"),
            ("p >> nth=0", "rtl"),
            ("ul", "rtl"),
            ("blockquote", "rtl"),
            (".md-table", "rtl"),
            ("p >> nth=-1", "ltr"),
            ("th >> nth=0", "rtl"),
        ):
            assert await answer.locator(part).first.evaluate(direction) == expected, part
        assert await page.locator(".said-user .said").evaluate(direction) == "rtl"


async def test_diff_lines_are_coloured_and_lists_begin_at_their_number(server: RunningServer, browser: Browser) -> None:
    async with signed_in(browser, server, model="echo", theme="dark") as page:
        await say(page, DIFF + "0. counted from zero\n1. next\n")
        await answered(page)
        await expect(page.locator(".said-assistant ol[start='0'] li")).to_have_count(2)
        colour = "one => getComputedStyle(one).backgroundColor"
        inserted = await page.locator(".token-inserted-sign", has_text="new line").first.evaluate(colour)
        deleted = await page.locator(".token-deleted-sign", has_text="old line").first.evaluate(colour)
        assert "rgba(0, 0, 0, 0)" not in (inserted, deleted) and inserted != deleted
        assert await findings(page) == []


async def test_many_formulas_never_stall_the_page(server: RunningServer, browser: Browser) -> None:
    visitor = await asyncio.to_thread(new_visitor, server)
    text = "".join(
        f"Step {number}: $x_{{{number}}} = \\frac{{a}}{{b}}$ and\n\n$$\\sum_{{i=0}}^{{{number}}} i^2$$\n\n"
        for number in range(1_500)
    )
    kept = await asyncio.to_thread(keep_conversation, server, visitor, ["Continue", text])
    async with new_context(browser, server, visitor) as context:

        async def reading() -> Spent:
            page = await opened(context)
            async with measured(page) as spent:
                await page.goto(f"/#/chat/{kept}")
                await page.locator("math").first.wait_for()
                await page.locator(".chat-scroll").hover()
                for _ in range(5):
                    await page.mouse.wheel(0, -1_500)
                    await page.wait_for_timeout(150)
            await page.close()
            return spent

        await holds(lambda spent: spent.longest < 50, reading)
