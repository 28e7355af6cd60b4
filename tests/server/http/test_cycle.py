"""One answer: HTTP/1.0 gets no chunks, and the last resort has the shape of all errors."""

from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from svc.config import Config
from svc.errors import ApiError
from svc.server.http.cycle import last_answer
from tests.support.cases import each
from tests.support.connections import LAST_GET, answers, read_head
from tests.support.server import hang_up
from tests.support.tiny_app import create_app
from tests.support.waiting import until
from tests.support.wire import Sockets, listening_sockets


@pytest.fixture
async def server() -> AsyncIterator[Sockets]:
    async with listening_sockets(create_app(Config())) as wire:
        yield wire


async def test_http_1_0_answer_without_length_closes_the_connection(server: Sockets) -> None:
    reader, writer = await server.raw()
    writer.write(b"GET /stream?seconds=0.01 HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n")
    head = await reader.readuntil(b"\r\n\r\n")
    assert b"transfer-encoding" not in head and b"connection: close" in head
    assert (await reader.readexactly(26)).startswith(b"data: begun\n\ndata: x\n\n")
    writer.transport.abort()


@pytest.mark.parametrize("method", [b"GET", b"HEAD"])
async def test_http_1_0_answer_with_length_keeps_the_connection(server: Sockets, method: bytes) -> None:
    answer = await server.exchange(method + b" /big?bytes=300000 HTTP/1.0\r\nHost: localhost\r\n\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"content-length: 300000" in head and len(body) == (300_000 if method == b"GET" else 0)


async def test_exception_after_the_client_has_left_is_logged_alone(
    server: Sockets, caplog: pytest.LogCaptureFixture
) -> None:
    reader, writer = await server.raw()
    writer.write(b"GET /crash-alone HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n")
    await read_head(reader)  # the handler waits for the body
    writer.transport.abort()
    await until(lambda: "nobody is left" in caplog.text)
    assert [status for status, _, _ in answers(await server.exchange(LAST_GET))] == [200]
    assert "never retrieved" not in caplog.text and "AttributeError" not in caplog.text


async def test_crash_during_a_head_request_has_no_body(server: Sockets) -> None:
    answer = await server.exchange(b"HEAD /crash HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 500 ") and answer.endswith(b"\r\nconnection: close\r\n\r\n")


async def test_no_100_continue_follows_the_beginning_of_an_answer() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 413, "headers": [(b"content-length", b"0")]})
        await receive()
        await send({"type": "http.response.body"})

    head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n"
    async with listening_sockets(app) as wire:
        reader, writer = await wire.raw()
        writer.write(head)
        await wire.until_busy()
        writer.write(b"x")
        assert (await reader.read()).startswith(b"HTTP/1.1 413 ")
        await hang_up(writer)


@each("parts", [[b"three"], [b"long", b"er"], [b"longest"]])
async def test_answer_of_another_length_than_it_promises_is_cut_off(
    parts: list[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"6")]})
        for part in parts:
            await send({"type": "http.response.body", "body": part, "more_body": part is not parts[-1]})

    caplog.clear()
    async with listening_sockets(app) as wire:
        answer = await wire.exchange(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    body = answer.partition(b"\r\n\r\n")[2]
    whole = b"".join(parts)
    assert body == (whole if len(whole) == 6 else b"")
    assert ("not as long as its content-length" in caplog.text) == (len(whole) != 6)


def test_last_resort_answer_has_the_error_shape() -> None:
    head, _, body = last_answer(ApiError("overloaded")).partition(b"\r\n\r\n")
    assert orjson.loads(body) == ApiError("overloaded").body()
    assert head.startswith(b"HTTP/1.1 503 ") and b"\r\nretry-after: 1\r\n" in head
    assert b"\r\ncontent-length: %d\r\n" % len(body) in head and head.endswith(b"\r\nconnection: close")
