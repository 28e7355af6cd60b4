"""Bodies of requests: one sane JSON object, no more than a path takes, nothing coded, counted as they arrive."""

import asyncio
import tracemalloc
from collections.abc import AsyncIterator

import orjson
import pytest

from svc.server.limits import MIB
from tests.conftest import JSON, Service
from tests.support.answers import assert_error
from tests.support.cases import each


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not json",
        b"[1]",
        b'"text"',
        b"null",
        b"{}{}",
        b'{"email": NaN}',
        b'{"email": "\\ud800"}',
        b'{"email": "\xff"}',
        b'{"a": \x00}',
        b'{"a": 1' + b"0" * 5000 + b"}",
        b'{"a": ' + b"[" * 200 + b"]" * 200 + b"}",
        b'{"a": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
        b'{"a": ' + b'{"b": ' * 150 + b"1" + b"}" * 151,
    ],
)
async def test_invalid_json_body_is_400(service: Service, body: bytes) -> None:
    answer = await service.client.post("/auth/signup", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400, answer.text
    assert_error(answer, 400, answer.json()["error"]["code"])


@each(
    ("content_type", "status"),
    [
        ("application/json", 400),
        ("APPLICATION/JSON; charset=UTF-8", 400),
        ('application/json; charset="utf-8"', 400),
        (None, 415),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data; boundary=x", 415),
        ("application/json; charset=utf-16", 415),
    ],
)
async def test_only_utf_8_json_is_accepted(service: Service, content_type: str | None, status: int) -> None:
    headers = {} if content_type is None else {"content-type": content_type}
    answer = await service.client.post("/auth/signup", content=b"{}", headers=headers)
    assert_error(answer, status, "missing_field" if status == 400 else "unsupported_media_type")


async def test_body_over_1_mib_is_413_before_it_is_complete(service: Service) -> None:
    sent = 0

    async def chunks() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(64):
            sent += 64 * 1024
            yield b" " * 64 * 1024

    assert_error(
        await service.client.post("/auth/signup", content=b" " * (MIB + 1), headers=JSON), 413, "PAYLOAD_TOO_LARGE"
    )
    assert_error(await service.client.post("/auth/signup", content=chunks(), headers=JSON), 413, "PAYLOAD_TOO_LARGE")
    assert service.state["bodies"].taken_bytes == 0


async def test_a_chat_body_may_have_16_mib(service: Service) -> None:
    headers = await service.bearer()
    padding = " " * (16 * MIB - 200)
    body = orjson.dumps({"model": "builtin/echo", "messages": [{"role": "user", "content": "hi"}], "padding": padding})
    assert len(body) < 16 * MIB
    assert (
        await service.client.post("/v1/chat/completions", content=body, headers={**headers, **JSON})
    ).status_code == 200
    assert_error(
        await service.client.post("/v1/chat/completions", content=body + b" " * 200, headers={**headers, **JSON}),
        413,
        "PAYLOAD_TOO_LARGE",
    )


async def test_bodies_over_the_budget_are_503_and_release_it(service: Service) -> None:
    headers = await service.bearer()
    bodies = service.state["bodies"]
    whole, bodies.budget_bytes = bodies.budget_bytes, 0
    answer = await service.client.post("/user/api-keys", json={"name": "x" * 150_000}, headers=headers)
    assert_error(answer, 503, "overloaded")
    assert answer.headers["retry-after"] == "1" and bodies.taken_bytes == 0
    assert (await service.client.post("/user/api-keys", json={"name": "x"}, headers=headers)).status_code == 201
    bodies.budget_bytes = whole


@each(("coding", "status"), [("gzip", 415), ("br, gzip", 415), ("identity", 400), ("", 400)])
async def test_compressed_body_is_415(service: Service, coding: str, status: int) -> None:
    answer = await service.client.post("/auth/signup", content=b"{}", headers={**JSON, "content-encoding": coding})
    assert answer.status_code == status
    made = await service.client.post("/billing/webhook", content=b"{}", headers={"content-encoding": coding})
    assert made.status_code == status


async def test_large_body_is_parsed_off_the_event_loop(service: Service) -> None:
    """The watchdog judges."""
    headers = await service.bearer()
    body = {"name": "x", "more": [{"key": "x"}] * 30_000}
    assert (await service.client.post("/projects", json=body, headers=headers)).status_code == 201


async def test_body_is_freed_before_the_model_answers(service: Service) -> None:
    headers = {**await service.bearer(), "content-type": "application/json"}
    chat = {"model": "builtin/script", "messages": [{"role": "user", "content": "wait 600"}]}
    content = orjson.dumps(chat) + b" " * 15 * MIB
    tracemalloc.start()
    try:
        asked = asyncio.create_task(service.client.post("/v1/chat/completions", content=content, headers=headers))
        while len(service.state["drain"]) == 0:
            await asyncio.sleep(0.01)
        snapshot = tracemalloc.take_snapshot()
        assert (await asked).status_code == 200
    finally:
        tracemalloc.stop()
    assert all(trace.size < 15 * MIB for trace in snapshot.traces)
