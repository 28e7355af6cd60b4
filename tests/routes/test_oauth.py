"""Signing in with other providers: the browser's binding, whose account it is, linking and unlinking."""

import asyncio
import dataclasses
import json
from collections.abc import AsyncIterator
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from svc.auth import accounts, oauth_flows
from svc.auth.oauth import new_flow
from svc.billing.checkout_cookie import COOKIE as CHECKOUT_COOKIE
from svc.config import Config
from tests.conftest import PASSWORD, Clocks, Service, bearer, serving
from tests.routes.test_links import make_link
from tests.support.cases import each
from tests.support.identity_provider import CLIENT_SECRET, StandIn, User, person, stand_in
from tests.support.oauth_browser import Browser, rows, with_providers
from tests.support.people import command_on

INVALID = {"error": "invalid_token", "provider": "stub"}


@pytest.fixture
async def provider(clocks: Clocks) -> AsyncIterator[StandIn]:
    async with stand_in(lambda: clocks.now) as provider:
        yield provider


@pytest.fixture
async def other(clocks: Clocks) -> AsyncIterator[StandIn]:
    async with stand_in(lambda: clocks.now) as provider:
        yield provider


@pytest.fixture
def config(config: Config, provider: StandIn, other: StandIn) -> Config:
    return with_providers(config, stub=provider.url, other=other.url)


@pytest.fixture
def browser(service: Service) -> Browser:
    return Browser(service)


async def emails(service: Service) -> list[str]:
    return [account.email for account in await service.state["db"].read(accounts.all_accounts)]


# --- the whole way


async def test_sign_in_creates_an_account_and_a_session(browser: Browser, provider: StandIn) -> None:
    fragment = await browser.arrive(provider, person("Ada@Example.com", name=" Ada "))
    assert list(fragment) == ["code"]
    answer = await browser.change(fragment)
    session = answer.json()
    assert answer.status_code == 200 and set(session) == {"access_token", "token_type", "expires_in", "user"}
    assert session["token_type"] == "bearer" and session["expires_in"] == 28800
    assert session["user"] == {
        **session["user"],
        "email": "Ada@Example.com",
        "name": "Ada",
        "tier": "free",
        "auth": "session",
    }
    me = await browser.service.client.get("/user/me", headers=bearer(session["access_token"]))
    assert me.json() == session["user"]
    assert (await browser.request("GET", "/checkout")).status_code == 200  # the checkout knows this browser


async def test_providers_are_listed_without_secrets(service: Service, provider: StandIn) -> None:
    answer = await service.client.get("/auth/oauth")
    value = answer.json()
    assert value["object"] == "list" and value["has_more"] is False and "hunter2" not in answer.text
    assert value["data"][0] == {
        "provider": "stub",
        "issuer": provider.url,
        "url": f"{service.config.base_url}/auth/oauth/stub",
    }


async def test_without_providers_every_name_is_unknown(config: Config, clocks: Clocks) -> None:
    async with serving(dataclasses.replace(config, identity_providers=()), clocks) as service:
        assert (await service.client.get("/auth/oauth")).json() == {"object": "list", "data": [], "has_more": False}
        assert (await service.client.get("/auth/oauth/stub")).status_code == 404


async def test_unknown_provider_is_404(browser: Browser) -> None:
    headers = await browser.service.bearer()
    for name in ("nobody", "STUB", "session", "stub%00"):
        for method, path in (
            ("GET", f"/auth/oauth/{name}"),
            ("GET", f"/auth/oauth/{name}/callback"),
            ("POST", f"/user/identities/{name}"),
        ):
            assert (await browser.request(method, path, headers)).status_code == 404


async def test_redirects_bind_the_browser_and_are_not_cached(browser: Browser, provider: StandIn) -> None:
    begun = await browser.request("GET", "/auth/oauth/stub")
    [header] = begun.headers.get_list("set-cookie")
    morsel = SimpleCookie(header)[oauth_flows.COOKIE]
    assert (morsel["path"], morsel["domain"], morsel["max-age"]) == ("/", "", "660")
    assert (
        header.startswith("__Host-") and morsel["secure"] and morsel["httponly"] and morsel["samesite"].lower() == "lax"
    )
    back = await browser.request("GET", provider.authorize(begun.headers["location"], person()))
    for answer in (begun, back):
        assert answer.headers["cache-control"] == "no-store" and answer.headers["referrer-policy"] == "no-referrer"
        assert answer.content == b""


async def test_state_nonce_and_challenge_are_new_and_independent(browser: Browser) -> None:
    asked = [parse_qs(urlsplit(await browser.begin()).query) for _ in range(20)]
    secrets = [query[name][0] for query in asked for name in ("state", "nonce", "code_challenge")]
    assert len(set(secrets)) == 60 and all(len(secret) == 43 for secret in secrets)
    assert asked[0]["redirect_uri"] == [f"{browser.service.config.base_url}/auth/oauth/stub/callback"]


async def test_identity_keeps_its_account_when_its_email_changes(browser: Browser, provider: StandIn) -> None:
    first = await browser.sign_in(provider, person("ada@example.com"))
    second = await browser.sign_in(provider, person("ada@new.example", verified=False))
    third = await browser.sign_in(provider, person(None))
    assert first["user"] == second["user"] == third["user"]
    assert await emails(browser.service) == ["ada@example.com"]


async def test_account_of_an_identity_can_set_a_password(browser: Browser, provider: StandIn) -> None:
    service = browser.service
    await browser.sign_in(provider)
    login = {"email": "ada@example.com", "password": PASSWORD}
    assert (await service.client.post("/auth/login", json=login)).status_code == 401
    await reset(service, by_mail=True)
    assert (await service.client.post("/auth/login", json=login)).status_code == 200


async def test_account_without_password_is_deleted_by_its_email(browser: Browser, provider: StandIn) -> None:
    headers = bearer((await browser.sign_in(provider))["access_token"])
    await browser.begin_linking({"access_token": headers["authorization"][7:]}, "other")
    await browser.arrive(provider)  # a code that waits
    for body, status in (({"confirm": "bob@example.com"}, 400), ({}, 400), ({"confirm": "ada@example.com"}, 204)):
        assert (
            await browser.service.client.request("DELETE", "/user/me", json=body, headers=headers)
        ).status_code == status
    for table in ("accounts", "identities", "oauth_flows", "oauth_codes"):
        assert await rows(browser.service, f"SELECT * FROM {table}") == []
    assert (await browser.sign_in(provider))["user"]["email"] == "ada@example.com"  # as a new account


# --- bound to the browser, once, in time


async def test_callback_in_another_browser_is_rejected(browser: Browser, provider: StandIn) -> None:
    address = provider.authorize(await browser.begin(), person())
    stranger, visitor = Browser(browser.service), Browser(browser.service)
    await stranger.begin()
    assert await stranger.come_back(address) == INVALID
    assert await visitor.come_back(address) == INVALID
    for value in ("", "x", "A" * 42, "A" * 43, "A" * 44, browser.cookies[oauth_flows.COOKIE][:-1] + "\xe9"):
        assert await Browser(browser.service, {oauth_flows.COOKIE: value}).come_back(address) == INVALID
    assert await emails(browser.service) == [] and provider.requests["/token"] == 0
    assert "code" in await browser.come_back(address)


async def test_code_in_another_browser_is_rejected(browser: Browser, provider: StandIn) -> None:
    fragment = await browser.arrive(provider)
    stranger = Browser(browser.service)
    for _ in range(2):
        answer = await stranger.change(fragment)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_token")
        await stranger.begin()
    assert (await browser.change(fragment)).status_code == 200


async def test_state_works_once(browser: Browser, provider: StandIn) -> None:
    for changes, first in (
        ({}, "code"),
        ({"code": None, "error": "access_denied"}, "error"),
        ({"code": "wrong"}, "error"),
        ({"code": None}, "error"),
    ):
        asked = await browser.begin()
        assert first in await browser.come_back(provider.authorize(asked, person(), **changes))
        assert await browser.come_back(provider.authorize(asked, person())) == INVALID


async def test_sign_in_survives_a_restart_and_its_state_works_once(
    config: Config, clocks: Clocks, provider: StandIn
) -> None:
    async with serving(config, clocks) as service:
        browser = Browser(service)
        used, open_one = await browser.begin(), await browser.begin()
        assert "code" in await browser.come_back(provider.authorize(used, person()))
    async with serving(config, clocks) as service:
        browser.service = service
        assert await browser.come_back(provider.authorize(used, person())) == INVALID
        assert "code" in await browser.come_back(provider.authorize(open_one, person()))


async def test_50_concurrent_callbacks_sign_in_once(browser: Browser, provider: StandIn) -> None:
    asked = await browser.begin()
    addresses = [provider.authorize(asked, person()) for _ in range(50)]
    fragments = await asyncio.gather(*(browser.come_back(address) for address in addresses))
    assert sum("code" in fragment for fragment in fragments) == 1 and fragments.count(INVALID) == 49


@each(("seconds", "lets_in"), [(599, True), (600, False), (86400, False)])
async def test_sign_in_expires_after_10_minutes(
    browser: Browser, provider: StandIn, clocks: Clocks, seconds: float, lets_in: bool
) -> None:
    asked = await browser.begin()
    clocks.advance(seconds)
    assert ("code" in await browser.come_back(provider.authorize(asked, person()))) is lets_in


@each(("seconds", "status"), [(59, 200), (60, 400), (86400, 400)])
async def test_code_expires_after_a_minute(
    browser: Browser, provider: StandIn, clocks: Clocks, seconds: float, status: int
) -> None:
    fragment = await browser.arrive(provider)
    clocks.advance(seconds)
    assert (await browser.change(fragment)).status_code == status


async def test_50_concurrent_uses_of_a_code_give_one_session(browser: Browser, provider: StandIn) -> None:
    fragment = await browser.arrive(provider)
    answers = await asyncio.gather(*(browser.change(fragment) for _ in range(50)))
    assert sorted(answer.status_code for answer in answers) == [200] + [400] * 49


async def test_invalid_code_is_400(browser: Browser) -> None:
    await browser.begin()
    for value, code in (
        (None, "missing_field"),
        ("", "invalid_value"),
        (5, "invalid_value"),
        (["x"], "invalid_value"),
        ("x", "invalid_token"),
        ("x\0" * 1000, "invalid_token"),
    ):
        answer = await browser.request("POST", "/auth/oauth/session", json={"code": value})
        assert (answer.status_code, answer.json()["error"]["code"], answer.json()["error"]["param"]) == (
            400,
            code,
            "code",
        )


async def test_one_browser_can_have_two_sign_ins(browser: Browser, provider: StandIn, other: StandIn) -> None:
    first, second = await browser.begin(), await browser.begin("other")
    assert "code" in await browser.come_back(other.authorize(second, person("bob@example.com")))
    assert "code" in await browser.come_back(provider.authorize(first, person()))


async def test_form_of_another_site_cannot_use_a_code(browser: Browser, provider: StandIn) -> None:
    fragment = await browser.arrive(provider)
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        answer = await browser.request(
            "POST", "/auth/oauth/session", {"content-type": kind}, content=json.dumps(fragment)
        )
        assert answer.status_code == 415
    preflight = {"origin": "https://evil.example", "access-control-request-method": "POST"}
    assert (
        "access-control-allow-origin"
        not in (await browser.request("OPTIONS", "/auth/oauth/session", preflight)).headers
    )


async def test_sign_in_tokens_are_not_sessions_or_checkout_cookies(browser: Browser, provider: StandIn) -> None:
    asked = await browser.begin()
    state = parse_qs(urlsplit(asked).query)["state"][0]
    fragment = await browser.come_back(provider.authorize(asked, person()))
    id_token = provider.sign({"iss": provider.url, "sub": "x"})
    for token in (state, fragment["code"], browser.cookies[oauth_flows.COOKIE], id_token):
        assert (await browser.service.client.get("/user/me", headers=bearer(token))).status_code == 401
        visitor = Browser(browser.service, {CHECKOUT_COOKIE: token})
        assert (await visitor.request("GET", "/checkout")).status_code == 401


async def test_database_and_log_have_no_secrets_of_a_sign_in(
    browser: Browser, provider: StandIn, tmp_path: Path
) -> None:
    service = browser.service
    asked = await browser.begin()
    query = {name: values[0] for name, values in parse_qs(urlsplit(asked).query).items()}
    flow = new_flow(service.state["derived_keys"]["oauth"], query["redirect_uri"], query["state"])
    address = provider.authorize(asked, person())
    on_disk = b"".join(path.read_bytes() for path in service.config.data_dir.glob("service.db*"))
    fragment = await browser.come_back(address)
    on_disk += b"".join(path.read_bytes() for path in service.config.data_dir.glob("service.db*"))
    session = (await browser.change(fragment)).json()
    await browser.begin_linking(session)
    provider.faults["/token"] = 500
    await browser.arrive(provider)
    provider.faults["/token"] = b"\x00"
    await browser.arrive(provider)
    while (log := (tmp_path / "log").read_text()).count('/callback"') < 3:  # the log has its own thread
        await asyncio.sleep(0.02)
    assert '"provider":"stub"' in log and flow.nonce == query["nonce"]
    secrets = [
        flow.state,
        flow.nonce,
        flow.verifier,
        browser.cookies[oauth_flows.COOKIE],
        fragment["code"],
        CLIENT_SECRET,
    ]
    secrets += [parse_qs(urlsplit(address).query)["code"][0], session["access_token"]]
    for secret in secrets:
        assert secret.encode() not in on_disk and secret not in log
    assert b"ada@example.com" in on_disk
    assert "ada@example.com" not in log


async def test_unfinished_sign_ins_are_deleted(browser: Browser, provider: StandIn, clocks: Clocks) -> None:
    for _ in range(50):
        await browser.begin()
    await browser.arrive(provider)
    clocks.advance(600)
    for _ in range(3):
        await browser.arrive(provider)
    assert await rows(browser.service, "SELECT count(*) FROM oauth_flows") == [(0,)]
    assert await rows(browser.service, "SELECT count(*) FROM oauth_codes") == [(3,)]


async def test_300_steps_a_minute_from_one_address(browser: Browser, clocks: Clocks) -> None:
    statuses = [(await browser.request("POST", "/auth/oauth/session", json={})).status_code for _ in range(299)]
    assert set(statuses) == {400} and await browser.begin()
    for method, path in (
        ("GET", "/auth/oauth/stub"),
        ("GET", "/auth/oauth/stub/callback"),
        ("POST", "/auth/oauth/session"),
    ):
        assert (await browser.request(method, path)).status_code == 429
    clocks.advance(60)
    assert await browser.begin()


# --- what the provider answers


async def test_denial_at_the_provider_is_access_denied(browser: Browser, provider: StandIn) -> None:
    asked = await browser.begin()
    denied = provider.authorize(
        asked, person(), code=None, error="access_denied", error_description="<script>alert(1)</script>"
    )
    assert await browser.come_back(denied) == {"error": "access_denied", "provider": "stub"}
    broken = provider.authorize(await browser.begin(), person(), code=None, error="<script>alert(1)</script>")
    assert await browser.come_back(broken) == {"error": "upstream_error", "provider": "stub"}


async def test_answer_of_another_provider_is_rejected(browser: Browser, provider: StandIn, other: StandIn) -> None:
    address = provider.authorize(await browser.begin(), person())
    mixed_up = address.replace("/auth/oauth/stub/callback", "/auth/oauth/other/callback")
    assert await browser.come_back(mixed_up) == {"error": "invalid_token", "provider": "other"}
    assert await browser.come_back(address) == INVALID  # that state is over
    assert await browser.come_back(provider.authorize(await browser.begin(), person(), iss=other.url)) == INVALID
    assert provider.requests["/token"] == other.requests["/token"] == 0
    assert "code" in await browser.come_back(provider.authorize(await browser.begin(), person(), iss=provider.url))


async def test_promised_issuer_is_required(browser: Browser, provider: StandIn) -> None:
    provider.metadata = {"authorization_response_iss_parameter_supported": True}
    assert await browser.arrive(provider) == INVALID
    assert "code" in await browser.come_back(provider.authorize(await browser.begin(), person(), iss=provider.url))


async def test_repeated_parameter_is_rejected(browser: Browser, provider: StandIn) -> None:
    for name in ("code", "state", "iss", "more"):
        address = provider.authorize(await browser.begin(), person(), iss=provider.url, more="x")
        value = parse_qs(urlsplit(address).query)[name][0]
        fragment = await browser.come_back(str(httpx.URL(address).copy_add_param(name, value)))
        assert fragment == {"error": "upstream_error", "provider": "stub"} and provider.requests["/token"] == 0


async def test_malformed_code_is_not_sent_to_the_provider(browser: Browser, provider: StandIn) -> None:
    for code in ("", "x" * 5000):
        fragment = await browser.come_back(provider.authorize(await browser.begin(), person(), code=code))
        assert fragment["error"] == "upstream_error" and provider.requests["/token"] == 0


# --- whose account it is


async def reset(service: Service, *, by_mail: bool) -> None:
    """Ada sets her password with a link that came by mail or from the operator."""

    body = {"token": await make_link(service, "ada@example.com", by_mail=by_mail), "password": PASSWORD}
    assert (await service.client.post("/auth/password-reset/confirm", json=body)).status_code == 204


async def ada_is_here(browser: Browser, other: StandIn, how: str) -> None:
    service = browser.service
    if how in ("password", "operator's link", "mailed link"):
        await service.sign_up("Ada@example.com")
    if how.endswith("link"):
        await reset(service, by_mail=how == "mailed link")
    if how in ("verified elsewhere", "unverified elsewhere"):
        await Browser(service).sign_in(other, person("Ada@example.com", how == "verified elsewhere"), "other")
    if how == "linked elsewhere":
        session = await service.sign_up("Ada@example.com")
        await Browser(service).link(other, session, person("different@example.com"), "other")


@pytest.mark.parametrize(
    ("here", "verified", "outcome"),
    [
        ("nobody", True, "new"),
        ("nobody", False, "new"),
        ("password", True, "email_taken"),
        ("password", False, "email_taken"),
        ("operator's link", True, "email_taken"),
        ("operator's link", False, "email_taken"),
        ("mailed link", True, "joined"),
        ("mailed link", "true", "joined"),
        ("mailed link", False, "email_not_verified"),
        ("mailed link", None, "email_not_verified"),
        ("mailed link", 1, "email_not_verified"),
        ("mailed link", "false", "email_not_verified"),
        ("mailed link", [True], "email_not_verified"),
        ("verified elsewhere", True, "joined"),
        ("verified elsewhere", False, "email_not_verified"),
        ("unverified elsewhere", True, "email_taken"),
        ("unverified elsewhere", False, "email_taken"),
        ("linked elsewhere", True, "email_taken"),
    ],
)
async def test_identity_joins_an_account_only_if_both_emails_are_verified(
    browser: Browser, provider: StandIn, other: StandIn, here: str, verified: Any, outcome: str
) -> None:
    await ada_is_here(browser, other, here)
    linked_before = await rows(browser.service, "SELECT * FROM identities")
    fragment = await browser.arrive(provider, person("ada@EXAMPLE.com", verified, subject="77"))
    assert await emails(browser.service) == ["ada@EXAMPLE.com" if here == "nobody" else "Ada@example.com"]
    if outcome.startswith("email_"):
        assert fragment == {"error": outcome, "provider": "stub"}
        assert await rows(browser.service, "SELECT * FROM identities") == linked_before
        return
    assert (await browser.change(fragment)).status_code == 200
    [(verified_at,)] = await rows(browser.service, "SELECT email_verified_at FROM accounts")
    assert (verified_at is not None) is (outcome == "joined" or verified is True)


async def test_verified_identity_verifies_the_accounts_email(
    browser: Browser, provider: StandIn, other: StandIn
) -> None:
    session = await browser.service.sign_up("ada@example.com")
    assert await browser.link(provider, session, person(verified=False)) == {"linked": "stub"}
    assert await rows(browser.service, "SELECT email_verified_at FROM accounts") == [(None,)]
    await browser.sign_in(provider, person(verified=True))
    assert await rows(browser.service, "SELECT email_verified_at FROM accounts") == [(browser.service.clocks.now,)]
    assert (await browser.sign_in(other, person(subject="1"), "other"))["user"]["id"] == session["user"]["id"]


async def test_new_account_needs_an_email(browser: Browser, provider: StandIn) -> None:
    for email in (
        None,
        "",
        "no address",
        "a@b\r\nBcc: x@y",
        5,
        ["ada@example.com"],
        "a" * 300 + "@x",
        "p@example..com",
    ):
        assert await browser.arrive(provider, person(email)) == {"error": "email_missing", "provider": "stub"}  # type: ignore[arg-type]
    assert await emails(browser.service) == []


async def test_invalid_name_is_ignored(browser: Browser, provider: StandIn) -> None:
    for number, name in enumerate((None, 5, "a\nb", "x" * 201, "", ["Ada"])):
        user = person(f"a{number}@example.com", subject=str(number), name=name)
        assert (await browser.sign_in(provider, user))["user"]["name"] is None


async def test_closed_sign_up_allows_existing_accounts_only(
    config: Config, clocks: Clocks, provider: StandIn, other: StandIn
) -> None:
    async with serving(config, clocks) as service:
        await Browser(service).sign_in(provider)
        session = await service.sign_up("bob@example.com")
        assert await Browser(service).link(other, session, person("bob@x.example"), "other") == {"linked": "other"}
    async with serving(dataclasses.replace(config, signup="closed"), clocks) as service:
        browser = Browser(service)
        refused = await browser.arrive(provider, person("eve@example.com", subject="3"))
        assert refused == {"error": "signup_closed", "provider": "stub"}
        assert (await browser.sign_in(provider))["user"]["email"] == "ada@example.com"
        assert (await browser.sign_in(other, person("bob@x.example"), "other"))["user"]["email"] == "bob@example.com"
        assert (await browser.sign_in(other, person(subject="4"), "other"))["user"]["email"] == "ada@example.com"
        assert len(await emails(service)) == 2
        assert await rows(service, "SELECT way, code, account_id IS NULL FROM sign_ins ORDER BY seq") == [
            ("stub", "ok", 0),
            ("password", "ok", 0),
            ("stub", "signup_closed", 1),
            ("stub", "ok", 0),
            ("other", "ok", 0),
            ("other", "ok", 0),
        ]


async def test_verified_address_of_the_domains_gets_an_account_while_sign_up_is_closed(
    config: Config, clocks: Clocks, provider: StandIn, other: StandIn
) -> None:
    stub, second = config.identity_providers
    providers = (dataclasses.replace(stub, domains=("corp.example", "corp.test")), second)
    async with serving(dataclasses.replace(config, signup="closed", identity_providers=providers), clocks) as service:
        browser = Browser(service)
        for number, email in enumerate(("a@corp.example", "b@CORP.test")):
            session = await browser.sign_in(provider, person(email, subject=str(number)))
            assert (session["user"]["email"], session["user"]["email_verified"]) == (email, True)
        for user, code in (
            (person("c@corp.example", subject="c", verified=False), "email_not_verified"),
            (person("c@mail.corp.example", subject="c"), "domain_not_allowed"),
            (person("c@evilcorp.example", subject="c"), "domain_not_allowed"),
            (person("c@corp.example.evil.example", subject="c"), "domain_not_allowed"),
            (person("corp.example@evil.example", subject="c"), "domain_not_allowed"),
            (person(None, subject="c"), "email_missing"),
        ):
            assert await browser.arrive(provider, user) == {"error": code, "provider": "stub"}
        refused = await browser.arrive(other, person("c@corp.example", subject="c"), "other")
        assert refused == {"error": "signup_closed", "provider": "other"}
        assert await emails(service) == ["a@corp.example", "b@CORP.test"]
        counted = service.state["metrics"].sign_ins.sums
        assert {key: number for key, number in counted.items() if key[0] != "password"} == {
            ("stub", "ok"): 2,
            ("stub", "email_not_verified"): 1,
            ("stub", "domain_not_allowed"): 4,
            ("stub", "email_missing"): 1,
            ("other", "signup_closed"): 1,
        }


@pytest.mark.parametrize(
    ("trust", "claims", "joins"),
    [
        ({"trust_email": True}, {}, True),
        ({"trusted_domains": ("corp.example",)}, {}, True),
        ({"trusted_domains": ("example", "mail.corp.example")}, {}, False),
        ({}, {}, False),
        ({"trust_email": True}, {"email_verified": False}, False),
        ({"trusted_domains": ("corp.example",)}, {"email_verified": "false"}, False),
    ],
)
async def test_operator_can_trust_addresses_of_a_provider_that_does_not_send_email_verified(
    config: Config, clocks: Clocks, provider: StandIn, trust: dict[str, Any], claims: dict[str, Any], joins: bool
) -> None:
    stub, other = config.identity_providers
    trusting = dataclasses.replace(stub, domains=("corp.example",), **trust)
    config = dataclasses.replace(config, signup="closed", identity_providers=(trusting, other))
    async with serving(config, clocks) as service:
        user = User("1", {"email": "Ada@Corp.example", **claims})
        fragment = await Browser(service).arrive(provider, user)
        assert list(fragment) == (["code"] if joins else ["error", "provider"])
        assert await emails(service) == (["Ada@Corp.example"] if joins else [])
        if not joins:
            assert fragment["error"] == "email_not_verified"


async def test_single_sign_on_joins_an_account_of_the_command_line(browser: Browser, provider: StandIn) -> None:
    place, words = browser.service.config.data_dir, ("user", "add", "Ada@example.com")
    assert (await asyncio.to_thread(command_on, place, *words, stdin=f"{PASSWORD}\n")).returncode == 0
    session = await browser.sign_in(provider)
    assert (session["user"]["email"], session["user"]["has_password"]) == ("Ada@example.com", True)
    assert len(await emails(browser.service)) == 1


async def test_50_concurrent_sign_ins_create_one_account(service: Service, provider: StandIn, other: StandIn) -> None:
    browsers = [(Browser(service), *(("stub", provider), ("other", other))[number % 2]) for number in range(50)]
    addresses = [
        at.authorize(await browser.begin(name), person(f"{'Aa'[n % 2]}da@example.com"))
        for n, (browser, name, at) in enumerate(browsers)
    ]
    provider.gates["/token"] = other.gates["/token"] = asyncio.Event()
    arriving = asyncio.gather(
        *(browser.come_back(address) for (browser, _, _), address in zip(browsers, addresses, strict=True))
    )
    while provider.requests["/token"] + other.requests["/token"] < 50:
        await asyncio.sleep(0.01)
    provider.gates["/token"].set()
    sessions = [
        await browser.change(fragment) for (browser, _, _), fragment in zip(browsers, await arriving, strict=True)
    ]
    assert {session.status_code for session in sessions} == {200}
    assert len({session.json()["user"]["id"] for session in sessions}) == len(await emails(service)) == 1
    assert await rows(service, "SELECT count(*) FROM identities") == [(2,)]
    assert (provider.requests["/jwks"], provider.requests["/.well-known/openid-configuration"]) == (1, 1)


async def test_concurrent_sign_up_with_password_creates_one_account(service: Service, provider: StandIn) -> None:
    browsers = [Browser(service) for _ in range(10)]
    addresses = [provider.authorize(await browser.begin(), person()) for browser in browsers]
    sign_up = {"email": "ADA@example.com", "password": PASSWORD}
    answers = await asyncio.gather(
        *(browser.come_back(address) for browser, address in zip(browsers, addresses, strict=True)),
        *(service.client.post("/auth/signup", json=sign_up) for _ in range(10)),
    )
    fragments, signed_up = answers[:10], [answer.status_code for answer in answers[10:]]  # type: ignore[union-attr]
    assert len(await emails(service)) == 1
    assert sorted(signed_up) in ([201] + [409] * 9, [409] * 10)
    taken = {"error": "email_taken", "provider": "stub"}
    assert (
        all(fragment == taken for fragment in fragments)
        if 201 in signed_up
        else all("code" in str(f) for f in fragments)
    )


# --- linking


async def test_linked_identity_signs_in_with_any_email(browser: Browser, provider: StandIn) -> None:
    session = await browser.service.sign_up("ada@example.com")
    headers = bearer(session["access_token"])
    assert await browser.link(provider, session, person("different@example.com", verified=False)) == {"linked": "stub"}
    browser.service.clocks.advance(1)
    for email in ("a@b\r\nBcc: x@y", None):  # a name that is not valid here
        assert await browser.link(provider, session, person(email, subject="2")) == {"linked": "stub"}
    listed = (await browser.service.client.get("/user/identities", headers=headers)).json()
    assert listed["object"] == "list" and not listed["has_more"]
    second, first = listed["data"]
    assert set(first) == {"id", "provider", "issuer", "email", "created_at"}
    assert (first["provider"], first["issuer"], first["email"]) == ("stub", provider.url, "different@example.com")
    assert second["email"] is None and first["created_at"].endswith("Z")
    assert (await Browser(browser.service).sign_in(provider, person(None)))["user"]["id"] == session["user"]["id"]


async def test_identity_belongs_to_one_account(browser: Browser, provider: StandIn) -> None:
    ada, bob = await browser.service.sign_up(), await browser.service.sign_up()
    assert await browser.link(provider, ada, person()) == {"linked": "stub"}
    assert await browser.link(provider, bob, person()) == {"error": "identity_taken", "provider": "stub"}
    assert (await browser.sign_in(provider))["user"]["id"] == ada["user"]["id"]


async def test_linking_cannot_be_finished_in_another_browser(browser: Browser, provider: StandIn) -> None:
    victim, attacker = Browser(browser.service), browser
    session = await browser.service.sign_up("eve@example.com")
    await victim.begin()
    address = provider.authorize(await attacker.begin_linking(session), person())
    assert await victim.come_back(address) == INVALID
    assert await rows(browser.service, "SELECT * FROM identities") == []


async def test_deleted_account_gets_no_identity(browser: Browser, provider: StandIn) -> None:
    session = await browser.service.sign_up()
    address = provider.authorize(await browser.begin_linking(session), person())
    provider.gates["/token"] = asyncio.Event()
    arriving = asyncio.create_task(browser.come_back(address))
    while not provider.requests["/token"]:
        await asyncio.sleep(0.01)
    headers = bearer(session["access_token"])
    gone = await browser.service.client.request("DELETE", "/user/me", json={"password": PASSWORD}, headers=headers)
    provider.gates["/token"].set()
    assert gone.status_code == 204 and await arriving == INVALID
    assert await rows(browser.service, "SELECT * FROM identities") == []


async def test_identities_are_for_sessions_only(browser: Browser, provider: StandIn) -> None:
    session = await browser.service.sign_up()
    key = bearer((await browser.service.make_key(bearer(session["access_token"])))["key"])
    await browser.link(provider, session, person())
    [(identity_id,)] = await rows(browser.service, "SELECT id FROM identities")
    for method, path in (("GET", ""), ("POST", "/stub"), ("DELETE", f"/{identity_id}")):
        answer = await browser.request(method, f"/user/identities{path}", key)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "session_required")
        assert (await browser.request(method, f"/user/identities{path}")).status_code == 401


async def test_last_identity_cannot_be_unlinked(browser: Browser, provider: StandIn) -> None:
    session = await browser.sign_in(provider)
    headers = bearer(session["access_token"])
    await browser.link(provider, session, person(subject="2"))
    first, second = [row[0] for row in await rows(browser.service, "SELECT id FROM identities ORDER BY subject")]
    delete = browser.service.client.delete
    answers = await asyncio.gather(
        *(delete(f"/user/identities/{identity}", headers=headers) for identity in (first, second))
    )
    assert sorted(answer.status_code for answer in answers) == [204, 409]
    refused = next(answer for answer in answers if answer.status_code == 409)
    assert refused.json()["error"]["code"] == "last_identity" and refused.headers["x-should-retry"] == "false"
    [(left,)] = await rows(browser.service, "SELECT id FROM identities")
    await reset(browser.service, by_mail=False)
    assert (await delete(f"/user/identities/{left}", headers=headers)).status_code == 204
    assert (await delete(f"/user/identities/{left}", headers=headers)).status_code == 404
    assert await rows(browser.service, "SELECT * FROM identities") == []


async def test_identity_of_a_removed_provider_has_no_provider_name(
    config: Config, clocks: Clocks, provider: StandIn
) -> None:
    async with serving(config, clocks) as service:
        headers = bearer((await Browser(service).sign_in(provider))["access_token"])
    async with serving(dataclasses.replace(config, identity_providers=()), clocks) as service:
        [identity] = (await service.client.get("/user/identities", headers=headers)).json()["data"]
        assert identity["provider"] is None and identity["issuer"] == provider.url


async def test_suspended_account_cannot_sign_in_with_a_provider(browser: Browser, provider: StandIn) -> None:
    session = await browser.sign_in(provider)
    fragment = await browser.arrive(provider)
    await browser.service.state["db"].write(accounts.update_account, session["user"]["id"], {"suspended_at": 1.0})
    refused = await browser.change(fragment)
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "account_suspended")
    assert (await browser.arrive(provider))["error"] == "account_suspended"
