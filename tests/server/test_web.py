"""What holds for every request: bodies, errors, headers, hosts, proxies, CORS (contract 2)."""

import asyncio
import dataclasses
import ipaddress
import logging
import re
import time
import tracemalloc
from collections.abc import AsyncIterator
from typing import Any

import httpx
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app import ROUTES, create_app
from svc.config import Config
from svc.errors import ERRORS, ApiError
from svc.server.bodies import parse_json
from svc.server.body_budget import MIB, BodyBudget
from tests.conftest import JSON, PASSWORD, Service, _WithState, bearer

OPEN = {"/auth/signup", "/auth/login", "/auth/password-reset", "/auth/password-reset/confirm"}
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


def assert_error(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert set(body) == {"error"}
    error: dict[str, Any] = body["error"]
    assert set(error) - {"retry_after"} == {"message", "type", "code", "param"}
    assert error["code"] == code and error["type"] == ERRORS[code][1] and error["message"]
    return error


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


async def test_every_answer_has_the_standing_headers(service: Service) -> None:
    for answer in (
        await service.client.get("/healthz"),
        await service.client.get("/nothing"),
        await service.client.get("/user/me"),
    ):
        assert answer.headers["strict-transport-security"] == "max-age=31536000"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert re.fullmatch(r"req_[0-9A-Za-z]{22}", answer.headers["x-request-id"])


@pytest.mark.parametrize(
    ("sent", "kept"), [("abc-123", True), ("x" * 128, True), ("x" * 129, False), ("a b", False), ("", False)]
)
async def test_a_callers_own_request_id_is_kept_when_it_is_valid(service: Service, sent: str, kept: bool) -> None:
    answer = await service.client.get("/healthz", headers={"x-request-id": sent})
    assert (answer.headers["x-request-id"] == sent) == kept


# --- bodies


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
async def test_a_body_that_is_not_one_sane_json_object_is_400(service: Service, body: bytes) -> None:
    answer = await service.client.post("/auth/signup", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400, answer.text
    assert_error(answer, 400, answer.json()["error"]["code"])


def test_100_levels_are_taken_and_101_are_not() -> None:
    assert parse_json(b"[" * 100 + b"1" + b"]" * 100)
    with pytest.raises(ApiError, match="100 levels"):
        parse_json(b"[" * 101 + b"]" * 101)


def test_brackets_inside_text_are_no_levels_and_no_values() -> None:
    text = '[{,"\\' * 100_000
    assert parse_json(orjson.dumps({"text": text})) == {"text": text}


def test_a_text_full_of_commas_is_read_as_fast_as_any_other() -> None:
    body = orjson.dumps({"text": ",[{" * 5_000_000})
    began = time.perf_counter()
    assert len(parse_json(body)["text"]) == 15_000_000
    assert time.perf_counter() - began < 2


def test_more_than_100_000_values_are_refused_before_they_take_memory() -> None:
    body = b"[" + b"{}," * 5_000_000 + b"{}]"
    tracemalloc.start()
    with pytest.raises(ApiError, match="100000 values"):
        parse_json(body)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2 * len(body)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(st.characters(codec="utf-8")),
        st.lists,
        max_leaves=50,
    )
)
def test_any_json_value_is_read_as_it_was_written(value: Any) -> None:
    assert parse_json(orjson.dumps(value)) == value


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused_and_never_fail_otherwise(body: bytes) -> None:
    try:
        parse_json(body)
    except ApiError as error:
        assert error.status in (400, 413)


@pytest.mark.parametrize(
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
async def test_only_json_in_utf_8_is_taken(service: Service, content_type: str | None, status: int) -> None:
    headers = {} if content_type is None else {"content-type": content_type}
    answer = await service.client.post("/auth/signup", content=b"{}", headers=headers)
    assert_error(answer, status, "missing_field" if status == 400 else "unsupported_media_type")


async def test_a_body_over_1_mib_is_413_by_length_and_by_chunks_before_it_is_whole(service: Service) -> None:
    sent = 0

    async def chunks() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(64):
            sent += 64 * 1024
            yield b" " * 64 * 1024

    assert_error(await service.client.post("/auth/signup", content=b" " * (MIB + 1), headers=JSON), 413, "PAYLOAD_TOO_LARGE")
    assert_error(await service.client.post("/auth/signup", content=chunks(), headers=JSON), 413, "PAYLOAD_TOO_LARGE")
    assert service.state["bodies"].free_bytes == BodyBudget().free_bytes


async def test_a_chat_body_may_have_16_mib(service: Service) -> None:
    headers = await service.bearer()
    padding = " " * (16 * MIB - 200)
    body = orjson.dumps({"model": "builtin/echo", "messages": [{"role": "user", "content": "hi"}], "padding": padding})
    assert len(body) < 16 * MIB
    assert (await service.client.post("/v1/chat/completions", content=body, headers={**headers, **JSON})).status_code == 200
    assert_error(
        await service.client.post("/v1/chat/completions", content=body + b" " * 200, headers={**headers, **JSON}),
        413,
        "PAYLOAD_TOO_LARGE",
    )


async def test_more_bodies_than_the_budget_are_503_and_the_budget_comes_back(service: Service) -> None:
    headers = await service.bearer()
    bodies = service.state["bodies"]
    whole, bodies.free_bytes = bodies.free_bytes, 100_000
    answer = await service.client.post("/user/api-keys", json={"name": "x" * 150_000}, headers=headers)
    assert_error(answer, 503, "overloaded")
    assert answer.headers["retry-after"] == "1" and bodies.free_bytes == 100_000
    assert (await service.client.post("/user/api-keys", json={"name": "x"}, headers=headers)).status_code == 201
    assert bodies.free_bytes == 100_000
    bodies.free_bytes = whole


async def test_an_unforeseen_exception_is_500_without_its_text(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*args: Any) -> None:
        raise ValueError("the password is hunter2")

    headers = await service.bearer()
    lines: list[dict[str, Any]] = []
    monkeypatch.setattr(service.state["db"], "read", broken)
    answer = await service.client.get("/user/me", headers=headers)
    assert_error(answer, 500, "internal_error")
    assert "hunter2" not in answer.text and not lines and answer.headers["x-request-id"]


# --- hosts and proxies


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8443", 200),
        ("localhost", 200),
        ("[::1]:8443", 200),
        ("LOCALHOST:1", 200),
        ("evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("", 421),
        ("localhost.", 421),
    ],
)
async def test_a_foreign_host_is_421(service: Service, host: str, status: int) -> None:
    answer = await service.client.get("/healthz", headers={"host": host})
    assert answer.status_code == status
    if status == 421:
        assert_error(answer, 421, "misdirected_request")


@dataclasses.dataclass
class Behind:
    """An application behind a proxy at 10.0.0.1."""

    client: httpx.AsyncClient
    transport: httpx.ASGITransport

    async def login(self, peer: str, *forwarded: str, proto: str | None = "https") -> httpx.Response:
        self.transport.client = (peer, 1)
        headers = [("host", "ai.example"), *(("x-forwarded-for", value) for value in forwarded)]
        headers += [("x-forwarded-proto", proto)] if proto else []
        return await self.client.post("/auth/login", json={}, headers=headers)


@pytest.fixture
async def behind(config: Config) -> AsyncIterator[Behind]:
    proxied = dataclasses.replace(
        config, tls="proxy", base_url="https://ai.example", trusted_proxies=(ipaddress.ip_network("10.0.0.0/24"),)
    )
    app = create_app(proxied)
    async with app.router.lifespan_context(app) as state:
        transport = httpx.ASGITransport(_WithState(app, state))
        async with httpx.AsyncClient(transport=transport, base_url="http://ai.example") as client:
            yield Behind(client, transport)


async def test_behind_a_proxy_only_what_it_marked_as_https_is_served(behind: Behind) -> None:
    assert (await behind.login("10.0.0.1", "192.0.2.1")).status_code == 400
    for answer in (
        await behind.login("10.0.0.1", "192.0.2.1", proto=None),
        await behind.login("10.0.0.1", "192.0.2.1", proto="http"),
        await behind.login("192.0.2.1"),
    ):
        assert_error(answer, 403, "https_required")


async def test_the_client_is_the_last_untrusted_forwarded_address(behind: Behind) -> None:
    statuses = [(await behind.login("10.0.0.1", f"203.0.113.{n}, 192.0.2.1, 10.0.0.2")).status_code for n in range(6)]
    assert statuses == [400] * 5 + [429]
    assert (await behind.login("10.0.0.1", "192.0.2.1, 192.0.2.9")).status_code == 400
    assert (await behind.login("10.0.0.1", "192.0.2.7", "192.0.2.1")).status_code == 429


@pytest.mark.parametrize(
    "forwarded", ["", ",,,", "unknown", "300.1.1.1", "1.2.3.4:80", "x" * 10_000, "10.0.0.2, 10.0.0.3", "::ffff:1.2.3.4"]
)
async def test_a_malformed_forwarded_for_never_fails(behind: Behind, forwarded: str) -> None:
    assert (await behind.login("10.0.0.1", forwarded)).status_code == 400


# --- CORS


async def test_a_preflight_on_v1_is_answered_without_a_key_and_echoes_its_headers(service: Service) -> None:
    headers = {
        "origin": "https://app.example",
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type,x-stainless-lang",
    }
    answer = await service.client.options("/v1/chat/completions", headers=headers)
    assert answer.status_code == 200 and answer.headers["access-control-allow-origin"] == "*"
    assert "x-stainless-lang" in answer.headers["access-control-allow-headers"]
    assert "access-control-allow-credentials" not in answer.headers and answer.headers["x-request-id"]


async def test_errors_on_v1_carry_cors_headers_and_other_paths_never_do(service: Service) -> None:
    origin = {"origin": "https://app.example"}
    answers = [
        await service.client.get("/v1/models", headers=origin),
        await service.client.get("/v1/nothing", headers=origin),
        await service.client.get("/v1/models", headers={**origin, "host": "evil.example"}),
    ]
    for answer in answers:
        assert answer.status_code >= 400 and answer.headers["access-control-allow-origin"] == "*"
        assert {"retry-after", "x-request-id"} <= set(answer.headers["access-control-expose-headers"].split(", "))
    for path in ("/user/me", "/healthz", "/auth/login"):
        assert "access-control-allow-origin" not in (await service.client.get(path, headers=origin)).headers


# --- the drain


async def test_a_draining_service_is_alive_but_takes_nothing_new(service: Service) -> None:
    headers = await service.bearer()
    service.state["drain"].begin()
    assert (await service.client.get("/healthz")).status_code == 200
    answer = await service.client.get("/user/me", headers=headers)
    assert_error(answer, 503, "shutting_down")
    assert answer.headers["retry-after"] == "1" and answer.headers["connection"] == "close"


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
