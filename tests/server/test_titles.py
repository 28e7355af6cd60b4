"""Titles of new conversations that the model of the first answer makes."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from svc.billing import wallet
from svc.config import Config
from svc.server.titles import OUTPUT_TOKENS, made_title
from tests.conftest import Clocks, Service, bearer, serving
from tests.support.cases import each
from tests.support.model_server import ModelServer
from tests.support.money import assert_exact, watch
from tests.support.waiting import until

CHAT, HEADER = "/v1/chat/completions", "x-service-conversation"
FREE, PAID, FAILS = "lab/ok", "lab/ok+paid", "lab/status-500"


@pytest.fixture
async def upstream() -> AsyncIterator[ModelServer]:
    async with ModelServer() as server:
        yield server


@pytest.fixture
async def service(config: Config, clocks: Clocks, upstream: ModelServer) -> AsyncIterator[Service]:
    prices = "input_micros_per_million_tokens = 1_000_000\noutput_micros_per_million_tokens = 2_000_000"
    catalog = f'[[providers]]\nname = "lab"\nbase_url = "{upstream.base_url}"\n'
    catalog += f'[[providers.models]]\nid = "ok"\n[[providers.models]]\nid = "ok+paid"\n{prices}\n'
    async with serving(config, clocks, catalog) as service:
        watch(service.config.data_dir / "service.db")
        yield service


async def person(service: Service, **settings: Any) -> dict[str, str]:
    signed_up = await service.sign_up(makes_titles=True)
    book = {"description": "", "now_seconds": service.clocks.now}
    await service.state["db"].write(wallet.book, signed_up["user"]["id"], 1_000_000, **book)
    headers = bearer(signed_up["access_token"])
    if settings:
        assert (
            await service.client.patch("/user/settings", json=settings, headers=headers)
        ).json().items() >= settings.items()
    return headers


async def ask(service: Service, headers: dict[str, str], text: str, model: str = FREE, stream: bool = True) -> Any:
    body = {"model": model, "messages": [{"role": "user", "content": text}], "stream": stream}
    answer = await service.client.post(CHAT, json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    await until(lambda: not service.state["title_tasks"])
    return answer


async def title(service: Service, headers: dict[str, str], conversation: str) -> str:
    shown: str = (await service.client.get(f"/conversations/{conversation}", headers=headers)).json()["title"]
    return shown


async def said(service: Service, headers: dict[str, str], conversation: str) -> str:
    listed = await service.client.get(f"/conversations/{conversation}/messages", headers=headers)
    text: str = listed.json()["data"][0]["content"]
    return text


@each("stream", [True, False])
async def test_first_answer_is_followed_by_a_title_of_the_same_model(
    service: Service, upstream: ModelServer, stream: bool
) -> None:
    headers, before = await person(service), len(upstream.requests)
    answer = await ask(service, headers, "Where do walruses live?", stream=stream)
    conversation = answer.headers[HEADER]
    assert await title(service, headers, conversation) == made_title(await said(service, headers, conversation))
    asked = upstream.requests[before + 1].body
    assert asked["model"] == "ok" and asked["max_tokens"] == OUTPUT_TOKENS and not asked.get("stream")
    assert "walruses" in asked["messages"][0]["content"]
    listed = await service.client.get("/conversations", headers=headers, params={"q": "walruses"})
    assert [one["id"] for one in listed.json()["data"]] == [conversation]
    await ask(service, {**headers, HEADER: conversation}, "And seals?")
    assert len(upstream.requests) == before + 3


@each(
    "setting, model, made",
    [
        ("free", FREE, True),
        ("free", PAID, False),
        ("always", FREE, True),
        ("always", PAID, True),
        ("never", FREE, False),
        ("never", PAID, False),
    ],
)
async def test_setting_says_which_models_make_titles_and_each_is_paid(
    service: Service, upstream: ModelServer, setting: str, model: str, made: bool
) -> None:
    headers, before = await person(service, generate_titles=setting), len(upstream.requests)
    answer = await ask(service, headers, "Where do walruses live?", model)
    assert len(upstream.requests) == before + 1 + made
    assert (await title(service, headers, answer.headers[HEADER]) != "Where do walruses live?") is made
    assert_exact(service.config.data_dir / "service.db")
    ledger = (await service.client.get("/billing/ledger", headers=headers)).json()["data"]
    assert len([entry for entry in ledger if entry["kind"] == "debit"]) == (1 + made if model == PAID else 0)


async def test_title_of_a_person_is_never_replaced(service: Service, upstream: ModelServer) -> None:
    headers = await person(service)
    made = (await service.client.post("/conversations", json={"title": "Mine"}, headers=headers)).json()["id"]
    await ask(service, {**headers, HEADER: made}, "Where do walruses live?")
    assert await title(service, headers, made) == "Mine" and len(upstream.requests) == 1
    untitled = (await service.client.post("/conversations", json={}, headers=headers)).json()["id"]
    upstream.always = frozenset({"waits"})
    upstream.release.set()
    body = {"model": FREE, "messages": [{"role": "user", "content": "And seals?"}]}
    await service.client.post(CHAT, json=body, headers={**headers, HEADER: untitled})
    changed = await service.client.patch(f"/conversations/{untitled}", json={"title": "Also mine"}, headers=headers)
    assert changed.status_code == 200
    await until(lambda: not service.state["title_tasks"])
    assert await title(service, headers, untitled) == "Also mine"


async def test_temporary_and_built_in_chats_make_no_title(service: Service, upstream: ModelServer) -> None:
    headers = await person(service, generate_titles="always")
    await ask(service, {**headers, "x-service-temporary": "true"}, "Hello")
    assert len(upstream.requests) == 1
    answer = await ask(service, headers, "Hello there", "builtin/echo")
    assert await title(service, headers, answer.headers[HEADER]) == "Hello there"


async def test_setting_has_three_values_and_free_is_the_default(service: Service) -> None:
    headers = await person(service)
    assert (await service.client.get("/user/settings", headers=headers)).json()["generate_titles"] == "free"
    refused = await service.client.patch("/user/settings", json={"generate_titles": "no"}, headers=headers)
    assert refused.status_code == 400 and refused.json()["error"]["param"] == "generate_titles"


@each(
    "text, expected",
    [
        ('"Walruses of the Arctic"', "Walruses of the Arctic"),
        ("«Les morses»\nand more", "Les morses"),
        ("**Walruses.**", "Walruses"),
        ("  \n\n", None),
        ('""', None),
        ("x" * 300, "x" * 79 + "…"),
    ],
)
def test_title_is_the_first_line_without_quotes(text: str, expected: str | None) -> None:
    assert made_title(text) == expected
