"""Sign-in with GitHub, against a fake of github.com's site and API."""

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from svc.auth.oauth import GitHub, new_flow
from svc.config import GITHUB, Config, IdentityProvider
from tests.conftest import Clocks, Service
from tests.support.cases import each
from tests.support.identity_provider import CLIENT_ID, CLIENT_SECRET, StandIn, person, stand_in
from tests.support.oauth_browser import Browser, rows, with_providers
from tests.support.outgoing_answers import Answers


@pytest.fixture
async def provider(clocks: Clocks) -> AsyncIterator[StandIn]:
    async with stand_in(lambda: clocks.now) as provider:
        yield provider


@pytest.fixture
def config(config: Config, provider: StandIn) -> Config:
    return with_providers(config, github=f"{provider.url}/")


@pytest.fixture
def browser(service: Service) -> Browser:
    return Browser(service)


async def arrive(browser: Browser, provider: StandIn, *arguments: Any, **claims: Any) -> dict[str, str]:
    return await browser.arrive(provider, person(*arguments, **claims), "github")


async def test_verified_primary_email_of_github_makes_an_account(browser: Browser, provider: StandIn) -> None:
    session = await browser.sign_in(provider, person(name="Ada Lovelace"), "github")
    assert (session["user"]["email"], session["user"]["name"]) == ("ada@example.com", "Ada Lovelace")
    assert await rows(browser.service, "SELECT issuer, subject, email FROM identities") == [
        (provider.url, "248289761001", "ada@example.com")
    ]
    assert await rows(browser.service, "SELECT email_verified_at IS NULL FROM accounts") == [(0,)]


async def test_github_request_has_pkce_and_only_the_needed_scopes(browser: Browser) -> None:
    asked = {name: values[0] for name, values in parse_qs(urlsplit(await browser.begin("github")).query).items()}
    pkce = {"code_challenge", "code_challenge_method"}
    assert set(asked) == {"response_type", "client_id", "redirect_uri", "scope", "state", *pkce}
    assert asked["scope"] == "read:user user:email" and asked["code_challenge_method"] == "S256"


async def test_unverified_email_of_github_joins_no_account(browser: Browser, provider: StandIn) -> None:
    await browser.sign_in(provider, person(), "github")
    assert (await arrive(browser, provider, verified=False, subject="2"))["error"] == "email_not_verified"
    assert "code" in await arrive(browser, provider, subject="3")
    assert "code" in await arrive(browser, provider, "eve@example.com", False, "4")
    assert await rows(browser.service, "SELECT email_verified_at FROM accounts WHERE email = 'eve@example.com'") == [
        (None,)
    ]


async def test_without_a_primary_email_there_is_no_account(browser: Browser, provider: StandIn) -> None:
    unusable: list[Any] = [
        [],
        None,
        {},
        "x",
        ["x"],
        [{"email": "a@x.example", "verified": True}],
        [{"email": 5, "primary": True}],
    ]
    unusable.append([{"email": "a@x.example", "verified": True, "primary": "yes"}])
    for emails in unusable:
        provider.emails = emails if emails is not None else {"message": "null"}
        assert (await arrive(browser, provider))["error"] == "email_missing"
    provider.emails = None
    for status in (403, 404):
        provider.faults = {"/api/v3/user/emails": status}
        assert (await arrive(browser, provider))["error"] == "email_missing"
    assert await rows(browser.service, "SELECT * FROM accounts") == []


async def test_failing_github_gives_one_clear_error(browser: Browser, provider: StandIn) -> None:
    faults: list[dict[str, Any]] = [
        {path: fault} for path in ("/api/v3/user", "/api/v3/user/emails") for fault in (500, 401, 302)
    ]
    faults += [
        {"/login/oauth/access_token": fault} for fault in (500, b"access_token=x", b"{}", b'{"access_token": 5}', b"[]")
    ]
    for fault in faults:
        provider.faults = fault
        assert (await arrive(browser, provider))["error"] == "upstream_error", fault
    for body in (b"{}", b"[]", b'{"id": "5"}', b'{"id": true}', b'{"id": 0}', b'{"id": 1.5}', b"null"):
        provider.faults = {"/api/v3/user": body}
        assert (await arrive(browser, provider))["error"] == "upstream_invalid_response", body
    provider.faults = {}
    assert "code" in await arrive(browser, provider)


async def test_code_refused_by_github_does_not_sign_in(browser: Browser, provider: StandIn) -> None:
    address = provider.authorize(await browser.begin("github"), person(), code="used")
    assert await browser.come_back(address) == {"error": "upstream_error", "provider": "github"}


@each(("issuer", "taken"), [("", True), ("/login/oauth", True), ("/evil", False), (".evil", False)])
async def test_an_issuer_in_the_answer_must_be_github(
    browser: Browser, provider: StandIn, issuer: str, taken: bool
) -> None:
    address = provider.authorize(await browser.begin("github"), person(), iss=f"{provider.url}{issuer}")
    assert ("code" in await browser.come_back(address)) is taken


async def test_without_an_issuer_it_is_github_com_and_its_api() -> None:
    seen: list[str] = []

    def answer(url: str) -> dict[str, Any]:
        seen.append(url)
        return {"access_token": "x", "id": 7}

    flow = new_flow(bytes(32), "https://svc.example/auth/oauth/github/callback", "s")
    github = GitHub(IdentityProvider("github", GITHUB, CLIENT_ID, CLIENT_SECRET), Answers(answer))
    assert (await github.authorization_url(flow)).startswith("https://github.com/login/oauth/authorize?")
    assert (await github.identity(flow, "code")).subject == "7"
    assert seen == [
        "https://github.com/login/oauth/access_token",
        "https://api.github.com/user",
        "https://api.github.com/user/emails",
    ]
