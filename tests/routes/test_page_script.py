"""The script with the first view's modules: whole, in the right order, and shared with the modules that are loaded
later.
"""

import re
from typing import Any

import orjson

from svc.routes.pages import STATIC, files, release
from tests.conftest import Service

ADDRESS = f"/static/{release()}/first.js"
TEXTS = f"/static/{release()}/texts.en.js"
IMPORTS = re.compile(r'^import (?:\{([^}]*)\} from )?"(\.[^"]+)"', re.MULTILINE)


async def import_map(service: Service) -> dict[str, Any]:
    page = (await service.client.get("/")).text
    (found,) = re.findall(r'<script type="importmap">(.*?)</script>', page)
    imports: dict[str, Any] = orjson.loads(found)["imports"]
    return imports


async def test_first_script_needs_only_that_of_the_texts(service: Service) -> None:
    page, imports = (await service.client.get("/")).text, await import_map(service)
    for address, least, others in ((ADDRESS, 30, {TEXTS}), (TEXTS, 3, set())):
        script = (await service.client.get(address)).text
        needed = re.findall(r'^import \* as module\d+ from "\./([^"]+)";$', script, re.MULTILINE)
        assert {imports[f"/static/{release()}/{path}"] for path in needed} == others
        assert not re.search(r"^import (?!\* as)|;import\{|from\"", script, re.MULTILINE)
        assert len(re.findall(r"^const module\d+ =", script, re.MULTILINE)) >= least
    assert f'src="{ADDRESS}"' in page and f'rel="modulepreload" href="{TEXTS}"' in page


async def test_modules_of_the_first_script_are_loaded_from_nowhere_else(service: Service) -> None:
    imports = await import_map(service)
    joined = {name for name, address in imports.items() if address in (ADDRESS, TEXTS)}
    assert {"preact", "marked", f"/static/{release()}/app/api.js", f"/static/{release()}/app/views/chat.js"} <= joined
    for name in imports.keys() - joined - {f"/static/{release()}/app/texts/en/"}:
        assert imports[name].startswith(f"/static/{release()}/vendor/"), name
    for name in joined:
        if name.startswith("/"):
            for _, imported in IMPORTS.findall((await service.client.get(name)).text):
                assert str(service.client.base_url.join(f"{name}/../{imported}").path) in joined


async def test_first_script_exports_what_later_modules_import_from_it(service: Service) -> None:
    imports = await import_map(service)
    joined = {name: address for name, address in imports.items() if address in (ADDRESS, TEXTS)}
    exported: dict[str, list[str]] = {}
    for address in (ADDRESS, TEXTS):
        script = (await service.client.get(address)).text
        exports = re.findall(r"^export const \{(.*)\} =", script, re.MULTILINE)
        exported[address] = [name for names in exports for name in names.split(", ")]
        assert len(exported[address]) == len(set(exported[address])) > 1
    for path, file in files().items():
        if path.startswith(("app/views/", "app/texts/")) and f"/static/{release()}/{path}" not in joined:
            for names, imported in IMPORTS.findall(file.content.decode()):
                source = joined.get(str(service.client.base_url.join(f"/static/{release()}/{path}/../{imported}").path))
                needed = {name.split()[0] for name in names.split(",") if name.strip()}
                assert source is None or needed <= set(exported[source]), (path, imported)


# What a script consists of, as far as comments matter. A regular expression follows an operator or an opening bracket.
TOKENS = re.compile(
    r"""(?P<comment>//[^\n]*|/\*[\s\S]*?\*/)|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'"""
    r"""|(?:(?<=[=(,:\[!&|?{};\n])|(?<=return))\s*/(?![*/])(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/|(?P<mark>[`{}]|\$\{)|\\."""
)


def texts_of(script: str) -> list[tuple[str, str]]:
    """Return the texts of the script's template literals with their tags, without what is inserted."""
    found, holders, at = [], [""], 0
    while at < len(script):
        if holders[-1].endswith("`"):
            end = re.compile(r"(?:[^`\\$]|\\[\s\S]|\$(?!\{))*").match(script, at).end()  # type: ignore[union-attr]
            found.append((holders[-1][:-1], script[at:end]))
            holders[-1:] = [] if script[end] == "`" else [holders[-1], "${"]
            at = end + (1 if script[end] == "`" else 2)
            continue
        token = TOKENS.search(script, at)
        if token is None:
            break
        at, mark = token.end(), token["mark"]
        if mark in ("`", "{"):
            tag = "html" if mark == "`" and script.endswith("html", 0, at - 1) else ""
            holders.append(tag + mark)
        elif mark == "}":
            holders.pop()
    assert holders == [""], holders
    return found


def test_no_text_of_the_application_has_what_the_first_script_leaves_out_comments_and_indentation() -> None:
    example = "a = html`x${b(`y // z`, {c: 1})}\n// text`; // `comment`"
    assert texts_of(example) == [("html", "x"), ("", "y // z"), ("html", "\n// text")]
    for path in sorted((STATIC / "app").rglob("*.js")):
        for tag, text in texts_of(path.read_text()):
            assert not re.search(r"^[ \t]*(?://|/\*)", text.partition("\n")[2], re.MULTILINE), (path.name, text)
            assert tag == "html" or not re.search(r"\n[ \t]", text), (path.name, text)
    script = files()["first.js"].content.decode()
    assert "\n// " not in script.partition("const module0")[0] and "@preact/signals" not in script
