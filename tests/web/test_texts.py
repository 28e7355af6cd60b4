"""The texts of the web application: every language has each of them, with the same parameters, and none is unused."""

import functools
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from svc.errors import ERRORS
from svc.languages import LANGUAGES
from svc.routes.pages import STATIC, page_limits

pytestmark = pytest.mark.needs("node")
APP = STATIC / "app"
SVC = STATIC.parent
OTHERS = [language for language in LANGUAGES if language != "en"]
# Texts that are named by data of the service, by the end of their path.
NAMED_BY_DATA = re.compile(
    r"\n(views|keys|programs|kinds|doing|toolNames|toolHints|reasons|statuses|states|trouble|problems|tiers|tierHints|roles|endings|purposes|"
    r"retention|checks|connectSteps|suggestions|formats|themes|orders|sources|grades|subjects|special|by|ends|codes|ways|actions|"
    r"titleChoices|series|decided|finishReasons|versions|titles|booked|prices|units)\n"
)


@functools.cache
def texts() -> dict[str, dict[str, dict[str, Any]]]:
    limits = page_limits() | {"passwords": True, "sign_up_open": True, "sends_mail": True}
    command = ["node", str(Path(__file__).parent / "texts.mjs"), str(APP / "texts"), json.dumps(limits), *LANGUAGES]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    found: dict[str, dict[str, dict[str, Any]]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("language", OTHERS)
def test_every_text_is_translated_with_the_same_parameters(language: str) -> None:
    english, translated = texts()["en"], texts()[language]
    assert translated.keys() == english.keys()
    for file in translated.keys() - {"errors.js"}:
        assert translated[file].keys() == english[file].keys(), file
        for path, text in english[file].items():
            other = translated[file][path]
            assert type(other) is type(text), (file, path)
            if isinstance(text, dict):
                same = ("parameters", "inserted")
                assert [other[name] for name in same] == [text[name] for name in same], (file, path, other["texts"][0])
            assert bool(text) == bool(other), (file, path)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_form_of_a_plural_is_there(language: str) -> None:
    for file, found in texts()[language].items():
        for path, text in found.items():
            for told in text["texts"] if isinstance(text, dict) else ():
                assert not re.search(r"undefined|NaN|#|\[object", told), (file, path, told)


@pytest.mark.parametrize(("language", "signs"), [("fr", ":;!?»%"), ("de", "…%"), ("es", "%")])
def test_no_line_begins_with_a_sign_that_a_space_precedes(language: str, signs: str) -> None:
    split = re.compile(f" [{signs}]|« ")
    told = [
        one
        for found in texts()[language].values()
        for text in found.values()
        for one in (text["texts"] if isinstance(text, dict) else [text])
    ]
    assert [one for one in told if isinstance(one, str) and split.search(one)] == []


@pytest.mark.parametrize("language", OTHERS)
def test_every_error_has_a_sentence(language: str) -> None:
    assert {path.partition("\n")[2] for path in texts()[language]["errors.js"]} == ERRORS.keys()


def test_every_action_of_the_audit_log_has_a_text() -> None:
    modules = [path.read_text() for path in SVC.rglob("*.py")]
    literals = {one for text in modules if "audit.add(" in text for one in re.findall(r'"([a-z_]+\.[a-z_]+)"', text)}
    known = {path.split("\n")[-1] for path in texts()["en"]["admin.js"] if "\naudit\nactions\n" in path}
    assert {one for one in literals if one.partition(".")[0] in {name.partition(".")[0] for name in known}} <= known


def test_english_shows_the_messages_of_the_service() -> None:
    assert texts()["en"]["errors.js"] == {}


@pytest.mark.parametrize("language", OTHERS)
def test_the_first_view_needs_the_same_modules_in_every_language(language: str) -> None:
    """The server joins the modules of English texts, and those of the chosen language take their places."""
    imports = [
        re.findall(r'from "([^"]+)"', (APP / "texts" / name / "first.js").read_text()) for name in ("en", language)
    ]
    assert imports[0] == imports[1]


def test_no_text_is_unused() -> None:
    code = "\n".join(path.read_text() for path in APP.rglob("*.js") if "texts" not in path.parts)
    words = set(re.findall(r"[\w-]+", code))
    paths = {path for found in texts()["en"].values() for path in found}
    unused = {path for path in paths if not NAMED_BY_DATA.search(path) and not path.split("\n")[-1].isdigit()}
    unused = {path for path in unused if path.rpartition("\n")[2] not in words}
    assert unused == set()
