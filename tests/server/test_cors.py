"""CORS: /v1 answers pages of other sites, nothing else does."""

import dataclasses

import httpx

from app import create_app
from svc.config import Config
from tests.conftest import Service, _WithState
from tests.support.answers import assert_error


async def test_preflight_on_v1_needs_no_key_and_echoes_headers(service: Service) -> None:
    headers = {
        "origin": "https://app.example",
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type,x-stainless-lang",
    }
    answer = await service.client.options("/v1/chat/completions", headers=headers)
    assert answer.status_code == 200 and answer.headers["access-control-allow-origin"] == "*"
    assert "x-stainless-lang" in answer.headers["access-control-allow-headers"]
    assert "access-control-allow-credentials" not in answer.headers and answer.headers["x-request-id"]


async def test_errors_have_cors_headers_only_on_v1(service: Service) -> None:
    origin = {"origin": "https://app.example"}
    answers = [
        await service.client.get("/v1/models", headers=origin),
        await service.client.get("/v1/nothing", headers=origin),
        await service.client.get("/v1/models", headers={**origin, "host": "evil.example"}),
    ]
    for answer in answers:
        assert answer.status_code >= 400 and answer.headers["access-control-allow-origin"] == "*"
        assert {"retry-after", "x-request-id", "request-id", "x-service-ignored-tools"} <= set(
            answer.headers["access-control-expose-headers"].split(", ")
        )
    for path in ("/user/me", "/healthz", "/auth/login"):
        assert "access-control-allow-origin" not in (await service.client.get(path, headers=origin)).headers


async def test_preflight_from_a_foreign_origin_is_refused_in_the_error_shape(config: Config) -> None:
    app = create_app(dataclasses.replace(config, cors_origins=("https://app.example",)))
    async with app.router.lifespan_context(app) as state:
        transport = httpx.ASGITransport(_WithState(app, state))
        async with httpx.AsyncClient(transport=transport, base_url=config.base_url) as client:
            for origin, method, status in (
                ("https://app.example", "POST", 200),
                ("https://evil.example", "POST", 400),
                ("https://app.example", "TRACE", 400),
            ):
                headers = {"origin": origin, "access-control-request-method": method}
                answer = await client.options("/v1/chat/completions", headers=headers)
                assert answer.status_code == status
                if status == 400:
                    assert_error(answer, 400, "invalid_request")
                    assert answer.headers.get("access-control-allow-origin") != origin or origin == "https://app.example"
