"""The guards: who may enter, with which token, and one admission before the body is read."""

import asyncio
import contextlib
import re
import sqlite3
import threading

import pytest

from app import ROUTES
from svc.config import Config
from svc.errors import ApiError
from svc.server.guards import Caller
from svc.server.limits import MIB
from tests.conftest import JSON, Clocks, Service, bearer, serving
from tests.support.answers import assert_error
from tests.support.databases import read_only

OPEN = {"/auth/signup", "/auth/login", "/auth/password-reset", "/auth/password-reset/confirm", "/auth/verify-email"}
OPEN |= {
    "/healthz",
    "/readyz",
    "/metrics",
    "/openapi.json",
    "/docs",
    "/password-reset",
    "/verify-email",
    "/preview",
    "/static/{path:path}",
    "/",
}
OPEN |= {"/shared/{token}", "/shared/{token}/pictures/{picture}"}  # the token is the secret
OPEN |= {"/billing/webhook"}  # it has a signature
OPEN |= {path for _, path, _ in ROUTES if path.startswith(("/checkout", "/auth/oauth"))}  # these have a cookie
GUARDED = [(method, path) for method, path, _ in ROUTES if path not in OPEN]


def filled(path: str) -> str:
    return re.sub(r"\{[^}]+\}", "some-id", path)


async def test_guarded_routes_are_401_without_a_token(service: Service) -> None:
    assert len(GUARDED) > 40
    for method, path in GUARDED:
        answer = await service.client.request(method, filled(path))
        assert answer.status_code == 401, f"{method} {path}: add a guard in app.py, or add the path to OPEN"
        assert_error(answer, 401, "invalid_api_key")
        assert answer.headers["www-authenticate"] == "Bearer" and answer.headers["x-request-id"], (method, path)


async def test_chat_headers_show_the_remaining_admissions(service: Service) -> None:
    headers = await service.bearer()
    first = await service.client.post("/v1/chat/completions", content=b"broken", headers={**headers, **JSON})
    assert first.status_code == 400
    assert [first.headers[f"x-ratelimit-{name}-requests"] for name in ("limit", "remaining", "reset")] == [
        "20",
        "19",
        "59s",
    ]
    service.clocks.advance(23)
    answers = await asyncio.gather(
        *(service.client.post("/v1/chat/completions", content=b"", headers={**headers, **JSON}) for _ in range(200))
    )
    assert sorted(answer.status_code for answer in answers) == [400] * 19 + [429] * 181
    refused = next(answer for answer in answers if answer.status_code == 429)
    error = assert_error(refused, 429, "rate_limit_exceeded")
    assert error["retry_after"] == int(refused.headers["retry-after"]) == 37
    assert (
        refused.headers["x-ratelimit-remaining-requests"] == "0"
        and refused.headers["x-ratelimit-reset-requests"] == "37s"
    )


async def test_keys_and_sessions_share_one_bucket_per_account(service: Service) -> None:
    session = bearer((await service.sign_up())["access_token"])
    keys = [bearer((await service.make_key(session))["key"]) for _ in range(2)]
    statuses = [
        (await service.client.post("/v1/chat/completions", content=b"", headers={**who, **JSON})).status_code
        for who in [session, *keys] * 7
    ]
    assert statuses == [400] * 20 + [429]
    other = await service.bearer()
    assert (
        await service.client.post("/v1/chat/completions", content=b"", headers={**other, **JSON})
    ).status_code == 400
    assert (await service.client.get("/user/me", headers=session)).status_code == 200


async def test_refused_token_takes_no_admission_and_429_precedes_the_body(service: Service) -> None:
    headers = await service.bearer()
    for _ in range(30):
        assert (await service.client.post("/v1/chat/completions", content=b"", headers=bearer("x"))).status_code == 401
    for _ in range(20):
        await service.client.post("/v1/chat/completions", content=b"", headers={**headers, **JSON})
    answer = await service.client.post("/v1/chat/completions", content=b" " * (17 * MIB), headers={**headers, **JSON})
    assert answer.status_code == 429


async def test_deleted_key_is_refused_at_once(service: Service) -> None:
    session = await service.bearer()
    key = await service.make_key(session)
    for _ in range(2):
        assert (await service.client.get("/v1/models", headers=bearer(key["key"]))).status_code == 200
    assert (await service.client.delete(f"/user/api-keys/{key['id']}", headers=session)).status_code == 204
    assert_error(await service.client.get("/v1/models", headers=bearer(key["key"])), 401, "invalid_api_key")


async def test_a_request_with_a_key_does_not_wait_for_the_writer(service: Service) -> None:
    key = await service.make_key(await service.bearer())
    proceed, began = threading.Event(), threading.Event()
    writing = asyncio.ensure_future(service.state["db"].write(lambda tx: (began.set(), proceed.wait(20))))
    while not began.is_set():
        await asyncio.sleep(0.001)
    async with asyncio.timeout(10):
        for _ in range(3):
            assert (await service.client.get("/user/me", headers=bearer(key["key"]))).status_code == 200
            service.clocks.advance(60)
    proceed.set()
    await writing


async def test_use_of_a_key_is_written_once_a_minute(service: Service) -> None:
    service.clocks.now = 1_790_000_040.0  # 14:14:00
    session, uses = await service.bearer(), service.state["key_uses"]
    key = await service.make_key(session)

    async def use(at_seconds: float) -> list[float]:
        service.clocks.now = 1_790_000_040.0 + at_seconds
        assert (await service.client.get("/user/me", headers=bearer(key["key"]))).status_code == 200
        return [minute for (_, key_id), minute in uses.pending.items() if key_id]

    async def shown() -> str | None:
        found: str | None = (await service.client.get("/user/api-keys", headers=session)).json()[0]["last_used_at"]
        return found

    assert await use(1) == [1_790_000_040.0] and await use(2) == [1_790_000_040.0]
    async with asyncio.timeout(30):  # two seconds on an idle machine
        while await shown() != "2026-09-21T14:14:00.000Z":
            await asyncio.sleep(0.1)
    for seconds in (3, 59.9):
        assert await use(seconds) == [], "it is written already"
    assert await use(60) == [1_790_000_100.0]
    await uses.flush()
    assert await shown() == "2026-09-21T14:15:00.000Z"


async def test_the_use_of_a_deleted_key_is_dropped(service: Service) -> None:
    session, uses = await service.bearer(), service.state["key_uses"]
    key = await service.make_key(session)
    assert (await service.client.get("/user/me", headers=bearer(key["key"]))).status_code == 200
    assert (await service.client.delete(f"/user/api-keys/{key['id']}", headers=session)).status_code == 204
    await uses.flush()
    assert not uses.pending and (await service.client.get("/user/api-keys", headers=session)).json() == []
    assert_error(await service.client.get("/user/me", headers=bearer(key["key"])), 401, "invalid_api_key")


async def test_uses_of_keys_are_written_at_shutdown_in_batches(config: Config, clocks: Clocks) -> None:
    async with serving(config, clocks) as service:
        session = await service.bearer()
        keys = [await service.make_key(session) for _ in range(205)]
        for key in keys:
            assert (await service.client.get("/user/me", headers=bearer(key["key"]))).status_code == 200
    with contextlib.closing(sqlite3.connect(config.data_dir / "service.db")) as conn:
        uses = conn.execute("SELECT last_used_at, count(*) FROM api_keys GROUP BY 1").fetchall()
    assert uses == [(clocks.now // 60 * 60, 205)]


async def test_a_full_disk_does_not_refuse_a_key(service: Service) -> None:
    key, db = await service.make_key(await service.bearer()), service.state["db"]
    async with read_only(db):
        assert (await service.client.get("/user/me", headers=bearer(key["key"]))).status_code == 200
        await service.state["key_uses"].flush()
    assert not service.state["key_uses"].pending
    assert (await service.client.get("/user/me", headers=bearer(key["key"]))).status_code == 200
    assert service.state["key_uses"].pending, "the next use is noted again"


async def test_caller_of_a_just_deleted_account_is_refused(service: Service) -> None:
    caller = Caller((await service.sign_up())["user"]["id"], "free", None, "session")
    assert caller.account(service.state["db"]).id == caller.id
    caller.id = "user_gone"
    with pytest.raises(ApiError) as caught:
        caller.account(service.state["db"])
    assert caught.value.code == "invalid_api_key"


# --- the token in x-api-key


async def test_models_accept_the_token_in_x_api_key(service: Service) -> None:
    headers = await service.bearer()
    token = headers["authorization"].removeprefix("Bearer ")
    key = (await service.make_key(headers))["key"]
    for sent in ({"x-api-key": key}, {"x-api-key": token}, {"x-api-key": key, **bearer(key)}):
        assert (await service.client.get("/v1/models", headers=sent)).status_code == 200
    refused: list[dict[str, str]] = [
        {"x-api-key": "svc-v1-nothing"},
        {"x-api-key": ""},
        {"x-api-key": key, **headers},
        {"x-api-key": f"{key}, {key}"},
        {"x-api-key": key, "authorization": f"Basic {key}"},
    ]
    for sent in refused:
        assert_error(await service.client.get("/v1/models", headers=sent), 401, "invalid_api_key")
    assert_error(await service.client.get("/user/me", headers={"x-api-key": key}), 401, "invalid_api_key")
