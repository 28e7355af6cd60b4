"""What stands around every request: its id and headers, hosts, proxies, CORS, the drain, the last resort."""

import asyncio
import dataclasses
import ipaddress
import re
from collections.abc import AsyncIterator, Sequence

import httpx
import orjson
import pytest

from app import create_app
from svc.config import Config
from tests.conftest import Clocks, Service, _WithState, serving
from tests.support.answers import assert_error
from tests.support.cases import each
from tests.support.model_server import ModelServer
from tests.support.wire import exchange, listening_sockets

CATALOG = """
    [[providers]]
    name = "up"
    base_url = "{}"
    models = [{{ id = "silent" }}]
"""


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
                    assert (
                        answer.headers.get("access-control-allow-origin") != origin or origin == "https://app.example"
                    )


async def test_answers_have_the_fixed_headers(service: Service) -> None:
    for answer in (
        await service.client.get("/healthz"),
        await service.client.get("/nothing"),
        await service.client.get("/user/me"),
    ):
        assert answer.headers["strict-transport-security"] == "max-age=31536000"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert re.fullmatch(r"req_[0-9A-Za-z]{22}", answer.headers["x-request-id"])


@each(("sent", "kept"), [("abc-123", True), ("x" * 128, True), ("x" * 129, False), ("a b", False), ("", False)])
async def test_valid_request_id_of_the_client_is_kept(service: Service, sent: str, kept: bool) -> None:
    answer = await service.client.get("/healthz", headers={"x-request-id": sent})
    assert (answer.headers["x-request-id"] == sent) == kept


async def test_unexpected_exception_is_500_without_its_text(service: Service) -> None:
    headers = await service.bearer()
    await service.state["db"].write(lambda tx: tx.execute("ALTER TABLE ledger RENAME TO hunter2") and None)
    answer = await service.client.get("/billing/ledger", headers=headers)
    assert_error(answer, 500, "internal_error")
    assert "hunter2" not in answer.text and "table" not in answer.text and answer.headers["x-request-id"]


@pytest.mark.parametrize("stream", [False, True])
async def test_client_that_leaves_before_its_answer_counts_as_499(config: Config, clocks: Clocks, stream: bool) -> None:
    async with ModelServer() as upstream, serving(config, clocks, CATALOG.format(upstream.base_url)) as service:
        key = await service.make_key(await service.bearer())
        chat = {"model": "up/silent", "messages": [{"role": "user", "content": "hello?"}], "stream": stream}
        body = orjson.dumps(chat)
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {key['key']}\r\n"
        head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        async with listening_sockets(service.app) as wire:
            _, writer = await wire.raw()
            writer.write(head.encode() + body)
            while not upstream.requests:
                await asyncio.sleep(0.01)
            writer.close()
            while len(service.state["drain"]):
                await asyncio.sleep(0.01)
        counted = (await service.client.get("/metrics")).text
        assert 'route="/v1/chat/completions",status="499"} 1' in counted


@each("name", ["x" * 300 + ".js", "x" * 5000 + ".css", "%00.js", "a/" * 200 + "b.js", "\u00e9" * 200 + ".js"])
async def test_impossible_file_name_is_404(service: Service, name: str) -> None:
    assert_error(await service.client.get(f"/static/{name}"), 404, "not_found")


# --- hosts and proxies


@each(
    ("host", "status"),
    [
        ("127.0.0.1:8443", 200),
        ("localhost", 200),
        ("[::1]:8443", 200),
        ("LOCALHOST:1", 200),
        ("evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("", 421),
        ("localhost:", 200),
        ("localhost:x", 400),
        ("localhost:8443:8443", 400),
        ("localhost:999999", 400),
        ("[::1]x", 400),
        ("[::1", 400),
        ("::1", 400),
        ("user@localhost", 400),
        ("localhost.", 421),
    ],
)
async def test_foreign_host_is_421_and_malformed_host_400(service: Service, host: str, status: int) -> None:
    answer = await service.client.get("/healthz", headers={"host": host})
    assert answer.status_code == status
    if status != 200:
        assert_error(answer, status, "misdirected_request" if status == 421 else "invalid_request")


@each(
    ("target", "host", "status"),
    [
        (b"https://localhost/healthz", b"localhost", 200),
        (b"https://LOCALHOST:8443/healthz?x=1", b"evil.example", 200),
        (b"https://evil.example/healthz", b"localhost", 421),
        (b"http://localhost/healthz", b"localhost", 421),
        (b"https://me@localhost/healthz", b"localhost", 400),
    ],
)
async def test_host_of_an_absolute_target_overrides_the_host_header(
    service: Service, target: bytes, host: bytes, status: int
) -> None:
    answer = await exchange(
        service, b"GET " + target + b" HTTP/1.1\r\nHost: " + host + b"\r\nConnection: close\r\n\r\n"
    )
    assert answer.startswith(b"HTTP/1.1 %d " % status)


@each(
    ("target", "host", "status"),
    [(b"*", b"localhost", 204), (b"https://localhost", b"x", 204), (b"*", b"evil.example", 421)],
)
async def test_options_asterisk_lists_the_methods(service: Service, target: bytes, host: bytes, status: int) -> None:
    answer = await exchange(
        service, b"OPTIONS " + target + b" HTTP/1.1\r\nHost: " + host + b"\r\nConnection: close\r\n\r\n"
    )
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert (b"\r\nallow: DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT\r\n" in answer) == (status == 204)


@each("space", [b" ", b"\t", b" \t "])
async def test_trailing_white_space_of_a_header_is_ignored(service: Service, space: bytes) -> None:
    """RFC 9110, 5.5."""
    headers = await service.bearer()
    lines = {
        "host": "localhost",
        "connection": "close",
        "content-type": "application/json",
        "content-length": "12",
        "x-request-id": "mine",
        **headers,
    }
    head = b"".join(b"%s: %s%s\r\n" % (name.encode(), value.encode(), space) for name, value in lines.items())
    answer = await exchange(service, b"POST /projects HTTP/1.1\r\n" + head + b"\r\n" + b'{"name":"a"}')
    assert answer.startswith(b"HTTP/1.1 201 ") and b"x-request-id: mine\r\n" in answer


@dataclasses.dataclass
class Behind:
    """An application behind a proxy at 10.0.0.1."""

    client: httpx.AsyncClient
    transport: httpx.ASGITransport

    async def login(self, peer: str, *forwarded: str, proto: str | Sequence[str] | None = "https") -> httpx.Response:
        self.transport.client = (peer, 1)
        headers = [("host", "ai.example"), *(("x-forwarded-for", value) for value in forwarded)]
        headers += [("x-forwarded-proto", value) for value in ([proto] if isinstance(proto, str) else proto or [])]
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


async def test_behind_a_proxy_only_forwarded_https_is_served(behind: Behind) -> None:
    assert (await behind.login("10.0.0.1", "192.0.2.1")).status_code == 400
    for answer in (
        await behind.login("10.0.0.1", "192.0.2.1", proto=None),
        await behind.login("10.0.0.1", "192.0.2.1", proto="http"),
        await behind.login("10.0.0.1", "192.0.2.1", proto="https, http"),
        await behind.login("10.0.0.1", "192.0.2.1", proto=["https", "http"]),
        await behind.login("10.0.0.1", "192.0.2.1", proto=["http", "https"]),
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


# --- the drain


async def test_draining_service_is_alive_and_refuses_requests(service: Service) -> None:
    headers = await service.bearer()
    service.state["drain"].begin()
    assert (await service.client.get("/healthz")).status_code == 200
    answer = await service.client.get("/user/me", headers=headers)
    assert_error(answer, 503, "shutting_down")
    assert answer.headers["retry-after"] == "1" and answer.headers["connection"] == "close"
