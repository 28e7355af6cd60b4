"""Groups and administrators by the claims of an identity provider, and keys of people who do not sign in any more."""

import dataclasses
from collections.abc import AsyncIterator
from typing import Any

import pytest

from svc import audit
from svc.config import Config
from tests.conftest import Clocks, Service, bearer, serving
from tests.support.cases import each
from tests.support.identity_provider import StandIn, User, person, stand_in
from tests.support.oauth_browser import Browser, with_providers

CATALOG = """
default_model = "builtin/echo"
[access]
admin_claims = ["svc-admins"]
max_days_without_sign_in = 30

[[groups]]
name = "research"
claims = ["lab", "team/physics"]

[[groups]]
name = "office"
claims = ["everybody"]
emails = ["*@example.com"]
"""
DAY_SECONDS = 86_400


@pytest.fixture
async def provider(clocks: Clocks) -> AsyncIterator[StandIn]:
    async with stand_in(lambda: clocks.now) as provider:
        yield provider


@pytest.fixture
def config(config: Config, provider: StandIn) -> Config:
    config = with_providers(config, stub=provider.url)
    (stub,) = config.identity_providers
    path = config.data_dir.parent / "catalog.toml"
    path.write_text(CATALOG)
    return dataclasses.replace(
        config, catalog=path, identity_providers=(dataclasses.replace(stub, groups_claim="roles"),)
    )


@pytest.fixture
def browser(service: Service) -> Browser:
    return Browser(service)


async def user_after(browser: Browser, provider: StandIn, **claims: Any) -> dict[str, Any]:
    user: dict[str, Any] = (await browser.sign_in(provider, person(**claims)))["user"]
    return user


@each(
    ("roles", "group"),
    [
        (["lab"], "research"),
        ("team/physics", "research"),
        (["everybody", "lab", 5, None], "research"),
        (["everybody"], "office"),
        (["unknown"], "office"),
        ([], "office"),
        (None, "office"),
        ({"lab": True}, "office"),
    ],
)
async def test_claims_decide_the_group_at_each_sign_in(
    browser: Browser, provider: StandIn, roles: Any, group: str
) -> None:
    claims = {} if roles is None else {"roles": roles}
    user = await user_after(browser, provider, **claims)
    assert user["group"] == group, "without a matching claim the address decides"


async def test_group_goes_with_its_claim_and_a_choice_of_an_administrator_stays(
    browser: Browser, provider: StandIn
) -> None:
    ada = await user_after(browser, provider, email="ada@elsewhere.example", roles=["lab"])
    assert ada["group"] == "research"
    assert (await user_after(browser, provider, email="ada@elsewhere.example"))["group"] is None
    admin = await browser.sign_in(provider, person("root@example.com", subject="2", roles=["svc-admins"]))
    chosen = await browser.service.client.patch(
        f"/admin/users/{ada['id']}", json={"group": "office"}, headers=bearer(admin["access_token"])
    )
    assert chosen.status_code == 200
    assert (await user_after(browser, provider, email="ada@elsewhere.example", roles=["lab"]))["group"] == "office"


async def test_claims_of_the_userinfo_endpoint_count_if_the_token_has_none(browser: Browser, provider: StandIn) -> None:
    claims = {"email": "ada@elsewhere.example", "email_verified": True}
    user = User("1", claims, {"roles": ["lab"], "email": "eve@example.com"})
    signed_in = (await browser.sign_in(provider, user))["user"]
    assert (signed_in["group"], signed_in["email"]) == ("research", "ada@elsewhere.example")


async def test_admin_claim_makes_an_administrator_and_its_loss_unmakes_all_but_the_last(
    browser: Browser, provider: StandIn
) -> None:
    ada = await user_after(browser, provider, roles=[])
    assert ada["admin"] is True, "the first account of a local installation, and nobody else could administer it"
    eve = await user_after(browser, provider, email="eve@example.com", subject="2", roles=["svc-admins", "lab"])
    assert (eve["admin"], eve["group"]) == (True, "research")
    assert (await user_after(browser, provider, roles=["lab"]))["admin"] is False
    eve_again = await user_after(browser, provider, email="eve@example.com", subject="2", roles=[])
    assert (eve_again["admin"], eve_again["group"]) == (True, "office")
    found = (await browser.service.state["db"].read(audit.TABLE.page, None, 20, None)).items
    changes = [(row["subject"], row["details"]["admin"]) for row in found if row["details"].get("by") == "admin_claims"]
    assert changes == [(ada["id"], False), (eve["id"], True)]


async def test_without_the_name_of_the_claim_nothing_is_taken_from_the_provider(
    config: Config, clocks: Clocks, provider: StandIn
) -> None:
    (stub,) = config.identity_providers
    unnamed = dataclasses.replace(config, identity_providers=(dataclasses.replace(stub, groups_claim=None),))
    async with serving(unnamed, clocks) as service:
        await service.sign_up("first@example.com")  # the administrator of a local installation
        user = await user_after(Browser(service), provider, roles=["lab", "svc-admins"])
        assert (user["group"], user["admin"]) == ("office", False)


async def test_keys_are_refused_until_their_owner_signs_in_again(
    browser: Browser, provider: StandIn, clocks: Clocks
) -> None:
    async def key_of(session: dict[str, Any]) -> dict[str, str]:
        made = await browser.service.client.post(
            "/user/api-keys", json={"name": "laptop"}, headers=bearer(session["access_token"])
        )
        return bearer(made.json()["key"])

    company = await key_of(await browser.sign_in(provider))
    local = await key_of(await browser.service.sign_up("local@example.com"))
    for days, status in ((30, 200), (30 + 1 / DAY_SECONDS, 403)):
        clocks.now += days * DAY_SECONDS - (clocks.now - 1_790_000_000)
        answer = await browser.service.client.get("/user/me", headers=company)
        assert answer.status_code == status
        assert (await browser.service.client.get("/user/me", headers=local)).status_code == 200
    error = answer.json()["error"]
    assert error["code"] == "sign_in_required" and error["type"] == "permission_error"
    assert "30 days" in error["message"] and browser.service.config.base_url in error["message"]
    await browser.sign_in(provider)
    assert (await browser.service.client.get("/user/me", headers=company)).status_code == 200
