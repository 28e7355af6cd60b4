"""What holds for every path: who may enter, which methods it takes, errors, HEAD, and the limits told in headers."""

import asyncio
import dataclasses
import logging
import re

import httpx
import pytest

from app import ROUTES, create_app
from svc.config import Config
from svc.server.body_budget import MIB
from tests.conftest import JSON, PASSWORD, Service, _WithState, bearer
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


@pytest.mark.parametrize(("method", "path"), GUARDED)
async def test_every_guarded_route_answers_401_without_a_token(service: Service, method: str, path: str) -> None:
    answer = await service.client.request(method, filled(path))
    assert_error(answer, 401, "invalid_api_key")
    assert answer.headers["www-authenticate"] == "Bearer" and answer.headers["x-request-id"]


@pytest.mark.parametrize("path", sorted({path for _, path, _ in ROUTES}))
async def test_every_path_names_its_methods_on_405(service: Service, path: str) -> None:
    methods = {method for method, other, _ in ROUTES if other == path}
    answer = await service.client.request("TRACE", filled(path))
    assert_error(answer, 405, "method_not_allowed")
    assert set(answer.headers["allow"].split(", ")) == methods | ({"HEAD"} if "GET" in methods else set())


@pytest.mark.parametrize("path", ["/nothing", "/v1/embeddings", "/v1/chat/completions/", "/v1/", "/static/../app.py", "/%00"])
async def test_an_unknown_path_is_404_in_the_error_shape_and_never_a_redirect(service: Service, path: str) -> None:
    assert_error(await service.client.post(path), 404, "not_found")


async def test_head_works_on_get_paths(service: Service) -> None:
    answer = await service.client.head("/healthz")
    assert (answer.status_code, answer.content) == (200, b"")


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


async def test_metrics_count_by_route_and_never_by_path(service: Service) -> None:
    for path in ("/healthz", "/healthz", "/static/secret-name", "/secret-path"):
        await service.client.get(path)
    text = (await service.client.get("/metrics")).text
    assert 'svc_requests_total{method="GET",route="/healthz",status="200"} 2' in text
    assert 'route="/static/{path:path}",status="404"} 1' in text and "secret" not in text


@pytest.mark.parametrize(
    ("token", "sent", "status"), [(None, "", 404), ("t" * 16, "", 401), ("t" * 16, "Bearer " + "t" * 16, 200)]
)
async def test_outside_the_local_posture_metrics_need_the_operators_token(
    config: Config, token: str | None, sent: str, status: int
) -> None:
    app = create_app(dataclasses.replace(config, base_url="https://ai.example", metrics_token=token))
    async with app.router.lifespan_context(app) as state:
        transport = httpx.ASGITransport(_WithState(app, state))
        async with httpx.AsyncClient(transport=transport, base_url="https://ai.example") as client:
            assert (await client.get("/metrics", headers={"authorization": sent})).status_code == status


async def test_library_loggers_that_could_show_secrets_stay_at_warning(service: Service) -> None:
    assert PASSWORD  # the fixture's lifespan has set the loggers up
    for name in ("aiosqlite", "httpx", "httpcore"):
        assert logging.getLogger(name).getEffectiveLevel() >= logging.WARNING
