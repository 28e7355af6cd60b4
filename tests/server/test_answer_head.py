"""The head of an answer: a header with a NUL or a line break never reaches the client."""

import asyncio
from typing import Any

import pytest

from tests.support.wire import listening_sockets


@pytest.mark.parametrize("place", ["name", "value"])
@pytest.mark.parametrize("byte", [b"\0", b"\r", b"\n"])
async def test_a_header_with_a_nul_or_a_line_break_is_not_sent(
    byte: bytes, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    bad = b"a" + byte + b"b"
    header = (bad, b"x") if place == "name" else (b"x", bad)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0"), header]})
        await send({"type": "http.response.body"})

    async with listening_sockets(app) as wire, asyncio.timeout(20):
        reader, writer = await wire.raw()
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()
    assert "a header holds a NUL or a line break" in caplog.text
