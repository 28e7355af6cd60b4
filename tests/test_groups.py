"""Groups of the catalog: what a file may say, which account is in which group, and what the group changes for it."""

import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from svc.auth import accounts
from svc.config import Config
from svc.errors import ApiError
from svc.groups import AUTO, Groups
from tests.conftest import PASSWORD, Clocks, Service, bearer, serving

CATALOG = """
[access]
models = ["builtin/echo"]

[[groups]]
name = "research"
models = ["builtin/*"]
emails = ["*@Research.example", "head@example.com"]
chats_per_minute = 2

[[groups]]
name = "painters"
models = ["builtin/p*"]
emails = ["*@research.example", "*@paint.example"]
own_providers = false
"""


@pytest.fixture
async def service(config: Config, clocks: Clocks) -> AsyncIterator[Service]:
    async with serving(config, clocks, CATALOG) as service:
        yield service


def groups_of(service: Service) -> Groups:
    found: Groups = service.state["models"].catalog.groups
    return found


async def member(service: Service, choice: str | None) -> tuple[str, dict[str, str]]:
    """A new account whose group an administrator chose: its id, and the headers of a key."""
    session = await service.sign_up()
    account_id = session["user"]["id"]
    await service.state["db"].write(accounts.set_group, account_id, choice, groups_of(service))
    return account_id, bearer((await service.make_key(bearer(session["access_token"])))["key"])


async def group_now(service: Service, email: str) -> str | None:
    """The group after another sign-in."""
    service.clocks.advance(60)
    answer = await service.client.post("/auth/login", json={"email": email, "password": PASSWORD})
    shown = await service.client.get("/user/me", headers=bearer(answer.json()["access_token"]))
    assert answer.json()["user"]["group"] == shown.json()["group"]
    group: str | None = shown.json()["group"]
    return group


async def test_verified_address_joins_the_first_group_that_matches(service: Service) -> None:
    session = await service.sign_up("Ada@RESEARCH.example")
    assert session["user"]["group"] is None, "not verified"
    assert await group_now(service, "ada@research.example") is None
    await service.state["db"].write(accounts.verify_email, session["user"]["id"], service.clocks.now)
    assert await group_now(service, "ada@research.example") == "research"
    other = await service.sign_up("bob@notresearch.example")
    await service.state["db"].write(accounts.verify_email, other["user"]["id"], service.clocks.now)
    assert await group_now(service, "bob@notresearch.example") is None


async def test_choice_of_an_administrator_stays_until_it_is_auto(service: Service) -> None:
    account_id = (await service.sign_up("head@example.com"))["user"]["id"]
    db = service.state["db"]
    await db.write(accounts.verify_email, account_id, service.clocks.now)
    for choice, expected in (("painters", "painters"), (None, None), (AUTO, "research")):
        await db.write(accounts.set_group, account_id, choice, groups_of(service))
        assert await group_now(service, "head@example.com") == expected
    with pytest.raises(ApiError, match="no group 'nobody'"):
        await db.write(accounts.set_group, account_id, "nobody", groups_of(service))
    assert await db.read(accounts.groups_in_use) == {"research": 1}


async def test_group_without_own_providers_refuses_to_make_and_to_use_one(service: Service) -> None:
    account_id, headers = await member(service, None)
    body = {"name": "mine", "base_url": "http://127.0.0.1:9/v1", "models": ["m"]}
    made = await service.client.post("/user/providers", json=body, headers=headers)
    assert made.status_code == 201, "own models are not restricted by patterns"
    await service.state["db"].write(accounts.set_group, account_id, "painters", groups_of(service))
    refused: list[Any] = [
        await service.client.post("/user/providers", json={**body, "name": "other"}, headers=headers),
        await service.client.post(f"/user/providers/{made.json()['id']}/test", headers=headers),
        await service.client.post(
            "/v1/chat/completions",
            json={"model": "mine/m", "messages": [{"role": "user", "content": "x"}]},
            headers=headers,
        ),
        await service.client.get("/v1/models/mine/m", headers=headers),
        await service.client.patch("/user/settings", json={"default_model": "mine/m"}, headers=headers),
        await service.client.post("/v1/agents/run", json={"model": "mine/m", "goal": "x"}, headers=headers),
        await service.client.post("/v1/images/generations", json={"model": "mine/m", "prompt": "x"}, headers=headers),
    ]
    codes = [answer.json()["error"]["code"] for answer in refused if answer.status_code == 403]
    assert codes == ["own_providers_disabled"] * len(refused)
    listed = (await service.client.get("/v1/models", headers=headers)).json()["data"]
    assert [model["id"] for model in listed] == ["builtin/paint", "paint"]
    assert len((await service.client.get("/user/providers", headers=headers)).json()["data"]) == 1


async def test_chats_per_minute_of_a_group_replace_those_of_the_tier(service: Service) -> None:
    body = {"model": "builtin/echo", "messages": [{"role": "user", "content": "hi"}]}
    for choice, limit in (("research", 2), (None, 20)):
        _, headers = await member(service, choice)
        for left in (limit - 1, limit - 2):
            answer = await service.client.post("/v1/chat/completions", json=body, headers=headers)
            shown = [answer.headers[f"x-ratelimit-{name}-requests"] for name in ("limit", "remaining")]
            assert (answer.status_code, shown) == (200, [str(limit), str(left)])
        refused = await service.client.post("/v1/chat/completions", json=body, headers=headers)
        assert (refused.status_code == 429) == (limit == 2)
        assert refused.headers["x-ratelimit-limit-requests"] == str(limit)


async def test_a_sign_in_is_as_short_with_a_thousand_groups(config: Config, clocks: Clocks) -> None:
    began = time.thread_time()
    groups = "".join(
        f'[[groups]]\nname = "g{number}"\nmodels = ["m{number}/*"]\nemails = ["*@{number}.example"]\n'
        for number in range(1000)
    )
    async with serving(config, clocks, groups) as service:
        known, start_seconds = groups_of(service), time.thread_time() - began
        for _ in range(2):
            began = time.thread_time()
            assert known.matching("ada@999.example") == "g999" and known.matching("ada@example.com") is None
            assert [group.name for group in known.by_name.values() if group.allows("m7/x")] == ["g7"]
            assert time.thread_time() - began < start_seconds / 20  # every pattern is compiled at the start
