"""Temporary chats of sessions: nothing is stored, nothing is recalled, and the money is as exact as elsewhere."""

import contextlib
from pathlib import Path

import pytest

from svc.billing import wallet
from tests.conftest import Service, bearer
from tests.support.cases import each
from tests.support.model_server import ModelServer
from tests.support.money import assert_exact, watch

CHAT, TEMPORARY, HEADER = "/v1/chat/completions", "x-service-temporary", "x-service-conversation"
MODEL, PAID = "builtin/echo", "builtin/assistant-paid"


@pytest.fixture
async def headers(service: Service) -> dict[str, str]:
    return await service.bearer()


def is_in_database(service: Service, word: str) -> bool:
    """Return whether a word is in the database or its log."""
    files = Path(service.config.data_dir).glob("service.db*")
    return any(word.encode() in file.read_bytes() for file in files)


def question(text: str, **fields: object) -> dict[str, object]:
    return {"model": MODEL, "messages": [{"role": "user", "content": text}], **fields}


async def test_temporary_chat_stores_nothing_and_has_no_conversation(service: Service, headers: dict[str, str]) -> None:
    body = question("xylophonist wandering")
    for stream in (True, False):
        asked = {**body, "stream": stream}
        answer = await service.client.post(CHAT, json=asked, headers={**headers, TEMPORARY: "true"})
        assert answer.status_code == 200 and "xylophonist" in answer.text
        assert not {HEADER, "x-service-memory"} & {*answer.headers}
    assert (await service.client.get("/conversations", headers=headers)).json()["data"] == []
    assert not is_in_database(service, "xylophonist")
    await service.client.post(CHAT, json=body, headers={**headers, TEMPORARY: "false"})
    assert is_in_database(service, "xylophonist")


async def test_temporary_chat_recalls_nothing_and_keeps_the_instructions(
    service: Service, headers: dict[str, str]
) -> None:
    await service.client.patch("/user/settings", json={"instructions": "Call me Ada."}, headers=headers)
    await service.client.post(CHAT, json=question("My zebra is called Zora."), headers=headers)
    async with contextlib.AsyncExitStack() as stack:
        server = ModelServer()
        await server.start()
        stack.push_async_callback(server.stop)
        body = {"name": "own", "base_url": server.base_url, "api_key": "key-of-a-user-123456"}
        assert (await service.client.post("/user/providers", json=body, headers=headers)).status_code == 201
        asked = question("What is my zebra called?", model="own/ok")
        for value, recalled in (("false", True), ("true", False)):
            answer = await service.client.post(CHAT, json=asked, headers={**headers, TEMPORARY: value})
            assert answer.status_code == 200, answer.text
            system, sent = server.requests[-1].body["messages"]
            assert system["content"] == "Call me Ada." and ("Zora" in sent["content"]) is recalled


@each(
    "name, value",
    [
        (HEADER, "conv_01m3250v3vfsgzezy8ak224fj9"),
        ("x-service-replaces", "msg_01m3250v3vfsgzezy8ak224fj9"),
        ("x-service-continue", "true"),
        ("idempotency-key", "key-1"),
    ],
)
async def test_header_that_needs_what_is_stored_is_refused_in_a_temporary_chat(
    service: Service, headers: dict[str, str], name: str, value: str
) -> None:
    sent = {**headers, TEMPORARY: "true", name: value}
    answer = await service.client.post(CHAT, json=question("pelican", stream=True), headers=sent)
    assert answer.status_code == 400 and answer.json()["error"]["param"] == TEMPORARY
    assert name in answer.json()["error"]["message"].lower()
    assert not is_in_database(service, "pelican")
    wrong = await service.client.post(CHAT, json=question("pelican"), headers={**headers, TEMPORARY: "yes"})
    assert wrong.status_code == 400 and wrong.json()["error"]["param"] == TEMPORARY


async def test_temporary_chat_is_paid_like_another(service: Service) -> None:
    watch(service.config.data_dir / "service.db")
    signed_up = await service.sign_up()
    headers = bearer(signed_up["access_token"])
    book = {"description": "", "now_seconds": service.clocks.now}
    await service.state["db"].write(wallet.book, signed_up["user"]["id"], 100_000, **book)
    body = question("What is 12 * 3?", model=PAID)
    costs = [
        int((await service.client.post(CHAT, json=body, headers={**headers, TEMPORARY: value})).headers[name])
        for value, name in (("true", "x-service-cost-micros"), ("false", "x-service-cost-micros"))
    ]
    assert costs[0] == costs[1] > 0
    assert_exact(service.config.data_dir / "service.db")
    account = (await service.client.get("/billing/account", headers=headers)).json()
    assert account["available_micros"] == 100_000 - sum(costs)


async def test_key_ignores_the_header_of_temporary_chats(service: Service, headers: dict[str, str]) -> None:
    key = bearer((await service.make_key(headers))["key"])
    sent = {**key, TEMPORARY: "true", HEADER: "conv_none"}
    assert (await service.client.post(CHAT, json=question("hello"), headers=sent)).status_code == 200
