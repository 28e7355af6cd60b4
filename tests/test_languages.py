"""The languages: which one a request gets, and the texts of the service's own pages and mails."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers

from svc import languages
from svc.config import Config, MailServer
from svc.errors import ERRORS
from svc.languages import COOKIE, LANGUAGES, accepted, filled, money, requested, texts
from svc.routes.pages import release
from tests.conftest import PASSWORD, Service, bearer
from tests.support.cases import each
from tests.support.mail_server import PASSWORD as MAIL_PASSWORD
from tests.support.mail_server import USER, MailBox
from tests.support.mail_server import box as box  # a fixture

OTHERS = [language for language in LANGUAGES if language != "en"]
release()  # the files of the page are read before the event loop runs
PLACEHOLDER = re.compile(r"\{(\w+)\}")


@pytest.fixture
def config(config: Config, box: MailBox) -> Config:
    return replace(
        config, smtp_url=MailServer("127.0.0.1", box.port, "starttls", USER, MAIL_PASSWORD, USER), payments="sandbox"
    )


# --- which language


@each(
    ("header", "expected"),
    [
        ("de", "de"),
        ("de-AT,de;q=0.9,en;q=0.8", "de"),
        ("DE_de, de-ch", "de"),
        ("nl, de;q=0.5, en;q=0.4", "de"),
        ("en;q=0.5, de;q=0.7", "de"),
        ("en-GB, de", "en"),
        ("de;q=0, en", "en"),
        ("de; q=0.0", "en"),
        ("nl", "en"),
        ("*", "en"),
        ("", "en"),
        ("de;q=2, en", "en"),
        ("d" * 50_000, "en"),
        ("nl," * 50 + "de", "en"),
    ],
)
def test_language_with_the_highest_weight_is_chosen(header: str, expected: str) -> None:
    assert accepted(header) == expected


@given(st.text() | st.from_regex(r"([a-z]{0,3}(-[A-Z]{2})?(;q=[0-9.]{0,5})?,? ?){0,9}", fullmatch=True))
def test_any_header_gives_a_language(header: str) -> None:
    assert accepted(header) in LANGUAGES


@each(("cookie", "expected"), [("de", "de"), ("en", "en"), ("xx", "de"), ("", "de"), ("../de", "de")])
def test_the_cookie_comes_before_the_header(cookie: str, expected: str) -> None:
    assert requested(Headers({"cookie": f"a=b; {COOKIE}={cookie}", "accept-language": "de"})) == expected


@each("language", LANGUAGES)
async def test_page_is_in_the_language_of_the_request(service: Service, language: str) -> None:
    for headers in ({"accept-language": f"{language};q=0.9, nl"}, {"cookie": f"{COOKIE}={language}"}):
        for path, title in (
            ("/", "svc"),
            ("/password-reset", texts(language)["password_reset"]["title"]),
            ("/verify-email", texts(language)["verify_email"]["title"]),
        ):
            answer = await service.client.get(path, headers=headers)
            direction = "rtl" if language == "ar" else "ltr"
            assert f'<html lang="{language}" dir="{direction}">' in answer.text and f"<title>{title}" in answer.text
            assert answer.headers["vary"] == "accept-encoding, accept-language, cookie"
            again = {**headers, "if-none-match": answer.headers["etag"]}
            assert (await service.client.get(path, headers=again)).status_code == 304
        start = (await service.client.get("/", headers=headers)).text
        assert f"/texts.{language}.js" in start
        (script,) = re.findall(r'href="([^"]+/texts\.\w+\.js)"', start)
        assert (await service.client.get(script)).status_code == 200


async def test_unknown_path_is_told_in_the_language_of_the_request(service: Service) -> None:
    answer = await service.client.get("/nowhere", headers={"accept": "text/html", "accept-language": "de"})
    assert answer.status_code == 404 and "Seite nicht gefunden" in answer.text and 'lang="de"' in answer.text


# --- the setting


async def test_language_is_a_setting_of_the_account(service: Service) -> None:
    headers = await service.bearer()

    async def changed(language: Any) -> tuple[int, Any]:
        answer = await service.client.patch("/user/settings", json={"language": language}, headers=headers)
        stored = (await service.client.get("/user/settings", headers=headers)).json()["language"]
        return answer.status_code, stored

    for language in LANGUAGES:
        assert await changed(language) == (200, language)
    for wrong in ("xx", "DE", "", 1, ["de"]):
        assert await changed(wrong) == (400, LANGUAGES[-1])
    assert await changed(None) == (200, None)


# --- mails


async def test_mail_is_in_the_language_of_the_request_until_the_account_has_one(service: Service, box: MailBox) -> None:
    german, english = texts("de")["letters"], texts("en")["letters"]
    body = {"email": "ada@example.com", "password": PASSWORD}
    session = (await service.client.post("/auth/signup", json=body, headers={"accept-language": "de"})).json()
    headers = bearer(session["access_token"])
    await box.wait_for(1)
    await service.client.patch("/user/settings", json={"language": "en"}, headers=headers)
    await service.client.post("/user/verify-email", headers={**headers, "accept-language": "de"})
    await box.wait_for(2)
    await service.client.patch("/user/settings", json={"language": "de"}, headers=headers)
    await service.client.post("/auth/password-reset", json={"email": "ada@example.com"})
    await box.wait_for(3)
    subjects = [str(message["Subject"]) for _, _, message in box.messages]
    expected = [german["verify"]["subject"], english["verify"]["subject"], german["reset"]["subject"]]
    assert subjects == expected
    assert "innerhalb einer Stunde" in box.messages[2][2].get_content()


@each("language", LANGUAGES)
def test_every_letter_can_be_written(language: str) -> None:
    letters = texts(language)["letters"]
    for name, letter in letters.items():
        values = {"base_url": "https://a.example", "host": "a.example", "token": "TOKEN", "inviter": "Ada"}
        for action in {"password", "sign_in"} & letter.keys() or {""}:
            values["action"] = letter.get(action, "")
            subject, text = (letter[part].format(**values) for part in ("subject", "text"))
            assert 0 < len(subject) < 78 and "\n" not in subject, (name, subject)
            assert "https://a.example" in text
            address = "verify-email" if name in ("verify", "change") else "password-reset"
            assert (f"\nhttps://a.example/{address}#TOKEN\n" in text) == (name != "changed"), name


# --- checkout


async def test_checkout_is_in_the_language_of_the_account_or_of_the_request(service: Service) -> None:
    session = await service.sign_up("ada@example.com")
    service.client.cookies.clear()
    origin = {"origin": service.config.base_url, "content-type": "application/x-www-form-urlencoded"}
    form = await service.client.get("/checkout", headers={"accept-language": "de"})
    assert form.status_code == 401 and "Melde dich an" in form.text and "E-Mail-Adresse" in form.text
    wrong = f"email=ada@example.com&password=wrong-{PASSWORD}"
    refused = await service.client.post("/checkout/sign-in", content=wrong, headers={**origin, "accept-language": "de"})
    assert "Die E-Mail-Adresse oder das Passwort ist falsch." in refused.text
    change = {"language": "de"}
    await service.client.patch("/user/settings", json=change, headers=bearer(session["access_token"]))
    right = f"email=ada@example.com&password={PASSWORD.replace(' ', '+')}"
    assert (await service.client.post("/checkout/sign-in", content=right, headers=origin)).status_code == 303
    page = (await service.client.get("/checkout", headers={"accept-language": "en"})).text
    assert 'lang="de"' in page and "Guthaben: 0,00 $." in page and ">100 $</button>" in page
    answer = await service.client.post("/checkout", content="amount=4", headers=origin)
    assert answer.status_code == 400 and "Der Betrag muss zwischen 5,00 und 10000,00 US-Dollar" in answer.text


@each(("language", "expected"), [("en", "$1,234.50"), ("de", "1.234,50 $")])
def test_money_is_written_as_in_the_language(language: str, expected: str) -> None:
    assert money(language, "$1,234.50") == expected


# --- the texts


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    for key, inner in value.items():
        if isinstance(inner, dict):
            yield from leaves(inner, f"{path}{key}.")
        else:
            yield path + key, inner


@pytest.mark.parametrize("language", OTHERS)
def test_translations_have_the_texts_of_english_with_the_same_values(language: str) -> None:
    english, translated = (dict(leaves(texts(one))) for one in ("en", language))
    errors = {path for path in translated if path.startswith("errors.")}
    assert translated.keys() - errors == english.keys()
    assert {path.removeprefix("errors.") for path in errors} <= ERRORS.keys() and errors
    assert errors == {path for path, _ in leaves(texts("de")) if path.startswith("errors.")}
    for path, text in english.items():
        assert set(PLACEHOLDER.findall(translated[path])) == set(PLACEHOLDER.findall(text)), path
        assert bool(text.strip()) and bool(translated[path].strip()), path


def test_every_file_is_of_a_language() -> None:
    assert {path.stem for path in languages.FOLDER.glob("*.toml")} == set(LANGUAGES)


def test_a_value_inserts_nothing() -> None:
    assert filled("{a} {b} {c}", {"a": "{b}", "b": "x"}) == "{b} x {c}"
