"""The script with the first view's modules: whole, in the right order, and shared with the modules that are loaded
later.
"""

import re
from typing import Any

import orjson

from svc.routes.pages import STATIC, files, release
from tests.conftest import Service

ADDRESS = f"/static/{release()}/first.js"
IMPORTS = re.compile(r'^import (?:\{([^}]*)\} from )?"(\.[^"]+)"', re.MULTILINE)


async def import_map(service: Service) -> dict[str, Any]:
    page = (await service.client.get("/")).text
    (found,) = re.findall(r'<script type="importmap">(.*?)</script>', page)
    imports: dict[str, Any] = orjson.loads(found)["imports"]
    return imports


async def test_first_script_needs_no_other_module(service: Service) -> None:
    script = (await service.client.get(ADDRESS)).text
    assert not re.search(r"^import\b|;import\{|from\"", script, re.MULTILINE)
    assert len(re.findall(r"^const module\d+ =", script, re.MULTILINE)) > 30
    assert f'src="{ADDRESS}"' in (await service.client.get("/")).text


async def test_modules_of_the_first_script_are_loaded_from_nowhere_else(service: Service) -> None:
    imports = await import_map(service)
    joined = {name for name, address in imports.items() if address == ADDRESS}
    assert {"preact", "marked", f"/static/{release()}/app/api.js", f"/static/{release()}/app/views/chat.js"} <= joined
    for name in imports.keys() - joined:
        assert imports[name].startswith(f"/static/{release()}/vendor/"), name
    for name in joined:
        if name.startswith("/"):
            for _, imported in IMPORTS.findall((await service.client.get(name)).text):
                assert str(service.client.base_url.join(f"{name}/../{imported}").path) in joined


async def test_first_script_exports_what_later_modules_import_from_it(service: Service) -> None:
    joined = {name for name, address in (await import_map(service)).items() if address == ADDRESS}
    script = (await service.client.get(ADDRESS)).text
    exported = [
        name for names in re.findall(r"^export const \{(.*)\} =", script, re.MULTILINE) for name in names.split(", ")
    ]
    assert len(exported) == len(set(exported)) > 40
    for path, file in files().items():
        if path.startswith("app/views/") and f"/static/{release()}/{path}" not in joined:
            for names, imported in IMPORTS.findall(file.content.decode()):
                if str(service.client.base_url.join(f"/static/{release()}/{path}/../{imported}").path) in joined:
                    assert {name.split()[0] for name in names.split(",") if name.strip()} <= set(exported), (
                        path,
                        imported,
                    )


# What a script consists of, as far as comments matter. A regular expression follows an operator or an opening bracket.
TOKENS = re.compile(
    r"""(?P<comment>//[^\n]*|/\*[\s\S]*?\*/)|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'"""
    r"""|(?:(?<=[=(,:\[!&|?{};\n])|(?<=return))\s*/(?![*/])(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/|(?P<mark>[`{}]|\$\{)|\\."""
)


def texts_of(script: str) -> list[str]:
    """Return the texts of the script's template literals, without what is inserted."""
    found, holders, at = [], [""], 0
    while at < len(script):
        if holders[-1] == "`":
            end = re.compile(r"(?:[^`\\$]|\\[\s\S]|\$(?!\{))*").match(script, at).end()  # type: ignore[union-attr]
            found.append(script[at:end])
            holders[-1:] = [] if script[end] == "`" else ["`", "${"]
            at = end + (1 if script[end] == "`" else 2)
            continue
        token = TOKENS.search(script, at)
        if token is None:
            break
        at, mark = token.end(), token["mark"]
        if mark in ("`", "{"):
            holders.append(mark)
        elif mark == "}":
            holders.pop()
    assert holders == [""], holders
    return found


def test_no_text_of_the_application_has_a_line_like_a_comment_which_the_first_script_leaves_out() -> None:
    assert texts_of("a = `x${b(`y // z`, {c: 1})}\n// text`; // `comment`") == ["x", "y // z", "\n// text"]
    for path in sorted((STATIC / "app").rglob("*.js")):
        for text in texts_of(path.read_text()):
            assert not re.search(r"^[ \t]*(?://|/\*)", text.partition("\n")[2], re.MULTILINE), (path.name, text)
    script = files()["first.js"].content.decode()
    assert "\n// " not in script.partition("const module0")[0] and "@preact/signals" not in script
