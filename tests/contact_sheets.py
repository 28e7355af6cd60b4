"""Contact sheets of the page: its views in every language, narrow and wide.

python -m tests.contact_sheets [--shots FOLDER] [--part PART ...] [LANGUAGE ...]

Writes the sheets to .github/pictures/sheets. With --shots, it writes each picture to that folder, in dark too. Then it
prints texts that are cut off. If the first language is English, it also prints English texts of the others.
"""

import argparse
import asyncio
import base64
import re
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from playwright.async_api import Browser, Page

from svc.languages import LANGUAGES
from tests.support.browser import Theme, chromium, new_context, opened
from tests.support.server import RunningServer, running_server
from tests.support.sheet_account import Account, fill, model
from tests.support.sheet_admin_views import administration_views, fill_administration, other_pages
from tests.support.sheet_views import PARTS as OF_ACCOUNTS
from tests.support.tool_server import scripted, stateless, tool
from tests.web.test_languages import CUT_OFF

PARTS = {**OF_ACCOUNTS, "admin": administration_views, "other": other_pages}
WIDTHS = (390, 1280)
HEIGHTS = {390: 844, 1280: 800}
TALLEST = 2_400
IN_DARK = ("en", "ar")
SHEETS = Path(__file__).parent.parent / ".github" / "pictures" / "sheets"
# What a sheet has of each width: 30 and 12 pictures, small enough to keep nine sheets.
SHOWN = {
    390: """
        chat|models|tools|files|answer, start|answer, end|passage|edit|approval|summary|preview|choose models|compare|
        sidebar|conversation menu|share|selection|account menu|project|agents|keys|wallet|settings|memory|
        users|user|admin, status|admin, audit|checkout|sign-up
    """,
    1280: "chat|answer, start|compare|preview|project|run|wallet|settings|shared|users|admin, status|admin, audit",
}
SHOWN_WIDTHS = {390: 200, 1280: 540}
SHEET_WIDTH, QUALITY = 1_672, 27
_TEXTS = """() => {
    const all = new Set(), add = text => /[a-z]{3}/i.test(text ?? "") && all.add(text.trim());
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) if (walker.currentNode.parentElement.checkVisibility()
        && !walker.currentNode.parentElement.closest("code, pre, kbd, iframe, math")) add(walker.currentNode.data);
    for (const one of document.querySelectorAll("[aria-label], [title], [placeholder], [alt]"))
        for (const name of ["aria-label", "title", "placeholder", "alt"]) add(one.getAttribute(name));
    return [...all];
}"""
_HEIGHT = """() => Math.max(...[...document.querySelectorAll(".main, .shared, .welcome, .framed main, dialog[open] .dialog-inner")]
    .map(one => one.scrollHeight))"""


class Shot(NamedTuple):
    name: str
    picture: bytes
    texts: list[str]
    cut_off: list[str]


async def _shot(page: Page, name: str, width: int) -> Shot:
    is_chat = await page.locator(".in-chat").count() > 0
    height = HEIGHTS[width] if is_chat else min(TALLEST, max(HEIGHTS[width], await page.evaluate(_HEIGHT)))
    await page.set_viewport_size({"width": width, "height": height})
    await page.evaluate("Promise.all([...document.images].map(one => one.decode().catch(() => {})))")
    picture = await page.screenshot(type="png")
    shot = Shot(name, picture, await page.evaluate(_TEXTS), await page.evaluate(CUT_OFF))
    await page.set_viewport_size({"width": width, "height": HEIGHTS[width]})
    return shot


async def _shots(
    browser: Browser, server: RunningServer, of: Account, width: int, theme: Theme, parts: list[str]
) -> list[Shot]:
    made = []
    options = {"locale": of.language, "reduced_motion": "reduce", "allow": [""]}  # any line of the console
    async with new_context(browser, server, of.visitor, **options) as context:
        page = await opened(context)
        await page.set_viewport_size({"width": width, "height": HEIGHTS[width]})
        await page.emulate_media(color_scheme=theme)
        for part in parts:
            async for name in PARTS[part](page, of):
                made.append(await _shot(page, name, width))
    return made


# --- the sheet


def _figures(shots: list[Shot], width: int) -> str:
    shown = SHOWN_WIDTHS[width]
    names = [name.strip() for name in SHOWN[width].split("|")]
    return "".join(
        f"<img width={shown} alt='' src='data:image/png;base64,{base64.b64encode(shot.picture).decode()}'>"
        for shot in shots
        if shot.name in names
    )


async def sheet(browser: Browser, path: Path, shots: dict[int, list[Shot]]) -> None:
    """Write the pictures of both widths on one sheet."""
    rows = "".join(f"<p>{_figures(found, width)}</p>" for width, found in shots.items())
    style = (
        "body { margin: 8px; background: #999 } p { display: flex; flex-wrap: wrap; gap: 8px; margin: 0 0 8px }"
        "img { height: 20rem; object-fit: cover; object-position: top } img[width='200'] { height: 27rem }"
    )
    page = await browser.new_page(viewport={"width": SHEET_WIDTH, "height": 1000})
    await page.set_content(f"<style>{style}</style>{rows}")
    path.parent.mkdir(exist_ok=True)
    await page.screenshot(path=path, type="jpeg", quality=QUALITY, full_page=True)
    await page.close()


def _catalog(origin: str, tools: str) -> str:
    priced = "input_micros_per_million_tokens = 2_500_000, output_micros_per_million_tokens = 10_000_000"
    return f"""
default_model = "lab/aurora"

[access]
allowance_micros = 4_000_000
sharing = true

[[providers]]
name = "lab"
base_url = "{origin}/v1"
models = [
    {{ id = "aurora", {priced}, capabilities = ["tools", "vision"], context_length = 128_000 }},
    {{ id = "boreal", capabilities = ["tools"], context_length = 32_000 }},
    {{ id = "cirrus", {priced}, context_length = 32_000 }},
    {{ id = "pocket", {priced}, context_length = 2_048 }},
]

[[tool_servers]]
name = "wiki"
url = "{tools}"
micros_per_call = 2_500
"""


async def main(languages: list[str], shots: Path | None, parts: list[str]) -> None:
    english: dict[str, set[str]] = {}
    wiki = stateless([tool("look", annotations={"readOnlyHint": True}), tool("delete_page")])
    with tempfile.TemporaryDirectory() as name:
        async with scripted(model) as models, scripted(wiki) as tools, chromium() as browser:
            folder = Path(name)
            (folder / "catalog.toml").write_text(_catalog(models.url.removesuffix("/mcp"), tools.url))
            async with running_server(folder, {"SVC_CATALOG": str(folder / "catalog.toml")}) as server:
                administrator = await asyncio.to_thread(fill_administration, server)
                for language in languages:
                    account = await asyncio.to_thread(fill, server, administrator, language)
                    if shots is None:
                        light = {
                            width: await _shots(browser, server, account, width, "light", parts) for width in WIDTHS
                        }
                        await sheet(browser, SHEETS / f"{language}.jpg", light)
                    else:
                        await _all(browser, server, account, shots, parts, english)


async def _all(
    browser: Browser,
    server: RunningServer,
    of: Account,
    folder: Path,
    parts: list[str],
    english: dict[str, set[str]],
) -> None:
    """Write the pictures of an account, and print the texts that a person should check."""
    themes: list[Theme] = ["light", "dark"] if of.language in IN_DARK else ["light"]
    for theme in themes:
        for width in WIDTHS:
            shots = await _shots(browser, server, of, width, theme, parts)
            _keep(shots, folder / f"{of.language}-{width}-{theme}")
            _tell(shots, of, width, english)


def _keep(shots: list[Shot], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number, shot in enumerate(shots):
        (folder / f"{number:02} {re.sub(r'[^a-z]+', '-', shot.name)}.png").write_bytes(shot.picture)


def _tell(shots: list[Shot], of: Account, width: int, english: dict[str, set[str]]) -> None:
    own = str(of.texts)
    for shot in shots:
        if cut_off := [text for text in shot.cut_off if not text.startswith("citation")]:
            print(of.language, width, shot.name, "cut off:", cut_off)
        if of.language == "en":
            english.setdefault(shot.name, set()).update(shot.texts)
        elif same := [text for text in shot.texts if text in english.get(shot.name, ()) and text not in own]:
            print(of.language, width, shot.name, "as in English:", same)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shots", type=Path, metavar="FOLDER")
    parser.add_argument("--part", dest="parts", choices=PARTS, nargs="+", default=list(PARTS))
    parser.add_argument("languages", nargs="*", metavar="LANGUAGE", default=list(LANGUAGES))
    given = parser.parse_args()
    sys.exit(asyncio.run(main(given.languages, given.shots, given.parts)))
