"""The guards: who may enter, with which token, and one admission before the body is read."""

import asyncio
import re

import pytest

from app import ROUTES
from svc.errors import ApiError
from svc.server.body_budget import MIB
from svc.server.gate import Caller
from tests.conftest import JSON, Service, bearer
from tests.support.answers import assert_error

OPEN = {"/auth/signup", "/auth/login", "/auth/password-reset", "/auth/password-reset/confirm", "/auth/verify-email"}
OPEN |= {
    "/healthz",
    "/readyz",
    "/metrics",
    "/openapi.json",
    "/docs",
    "/password-reset",
    "/verify-email",
    "/static/{path:path}",
    "/",
}
OPEN |= {"/billing/webhook"}  # it has a signature
OPEN |= {path for _, path, _ in ROUTES if path.startswith(("/checkout", "/auth/oauth"))}  # these have a cookie
GUARDED = [(method, path) for method, path, _ in ROUTES if path not in OPEN]


def filled(path: str) -> str:
    return re.sub(r"\{[^}]+\}", "some-id", path)


async def test_every_guarded_route_answers_401_without_a_token(service: Service) -> None:
    assert len(GUARDED) > 40
    for method, path in GUARDED:
        answer = await service.client.request(method, filled(path))
        assert_error(answer, 401, "invalid_api_key")
        assert answer.headers["www-authenticate"] == "Bearer" and answer.headers["x-request-id"], (method, path)


async def test_chat_headers_tell_what_the_bucket_still_holds_whatever_the_answer(service: Service) -> None:
    headers = await service.bearer()
    first = await service.client.post("/v1/chat/completions", content=b"broken", headers={**headers, **JSON})
    assert first.status_code == 400
    assert [first.headers[f"x-ratelimit-{name}-requests"] for name in ("limit", "remaining", "reset")] == ["20", "19", "59s"]
    service.clocks.advance(23)
    answers = await asyncio.gather(
        *(service.client.post("/v1/chat/completions", content=b"", headers={**headers, **JSON}) for _ in range(200))
    )
    assert sorted(answer.status_code for answer in answers) == [400] * 19 + [429] * 181
    refused = next(answer for answer in answers if answer.status_code == 429)
    error = assert_error(refused, 429, "rate_limit_exceeded")
    assert error["retry_after"] == int(refused.headers["retry-after"]) == 37
    assert refused.headers["x-ratelimit-remaining-requests"] == "0" and refused.headers["x-ratelimit-reset-requests"] == "37s"


async def test_keys_and_sessions_share_the_accounts_bucket_and_others_have_their_own(service: Service) -> None:
    session = bearer((await service.sign_up())["access_token"])
    keys = [bearer((await service.make_key(session))["key"]) for _ in range(2)]
    statuses = [
        (await service.client.post("/v1/chat/completions", content=b"", headers={**who, **JSON})).status_code
        for who in [session, *keys] * 7
    ]
    assert statuses == [400] * 20 + [429]
    other = await service.bearer()
    assert (await service.client.post("/v1/chat/completions", content=b"", headers={**other, **JSON})).status_code == 400
    assert (await service.client.get("/user/me", headers=session)).status_code == 200


async def test_a_refused_token_takes_no_admission_and_a_429_comes_before_the_body(service: Service) -> None:
    headers = await service.bearer()
    for _ in range(30):
        assert (await service.client.post("/v1/chat/completions", content=b"", headers=bearer("x"))).status_code == 401
    for _ in range(20):
        await service.client.post("/v1/chat/completions", content=b"", headers={**headers, **JSON})
    answer = await service.client.post("/v1/chat/completions", content=b" " * (17 * MIB), headers={**headers, **JSON})
    assert answer.status_code == 429


async def test_a_key_is_refused_as_soon_as_it_is_deleted(service: Service) -> None:
    session = await service.bearer()
    key = await service.make_key(session)
    for _ in range(2):
        assert (await service.client.get("/v1/models", headers=bearer(key["key"]))).status_code == 200
    assert (await service.client.delete(f"/user/api-keys/{key['id']}", headers=session)).status_code == 204
    assert_error(await service.client.get("/v1/models", headers=bearer(key["key"])), 401, "invalid_api_key")


async def test_a_caller_whose_account_is_gone_meanwhile_is_refused(service: Service) -> None:
    caller = Caller((await service.sign_up())["user"]["id"], "free", None, "session")
    assert (await caller.account(service.state["db"])).id == caller.id
    caller.id = "user_gone"
    with pytest.raises(ApiError) as caught:
        await caller.account(service.state["db"])
    assert caught.value.code == "invalid_api_key"
