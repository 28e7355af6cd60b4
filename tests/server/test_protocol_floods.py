"""Requests in as many small parts as a client can send: none of them keeps the event loop for long."""

import asyncio
import contextlib
import socket
import time
from typing import Any

from tests.support.cases import each
from tests.support.turns import free_loop
from tests.support.wire import listening_sockets

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: a\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
LARGE_CHUNK = CHUNKED + b"fde8\r\n" + b"x" * 65_000 + b"\r\n"
FIRST_BYTES = len(LARGE_CHUNK)
FLOODS = {
    "one-byte chunks": CHUNKED + b"1\r\nx\r\n" * 200_000 + b"0\r\n\r\n",
    "one-byte chunks after a large one": LARGE_CHUNK + b"1\r\nx\r\n" * 200_000 + b"0\r\n\r\n",
    "trailers": CHUNKED + b"0\r\n" + b"a:\r\n" * 200_000,
    "headers": GET[:-2] + b"".join(b"%x:\r\n" % number for number in range(100_000)),
    "pipelined requests": GET * 20_000,
    "pipelined one-byte bodies": (POST + b"Content-Length: 1\r\n\r\nx") * 20_000,
    "pipelined upgrades": (GET[:-2] + b"Connection: upgrade\r\nUpgrade: h2c\r\n\r\n") * 10_000,
}


async def slow_reader(scope: Any, receive: Any, send: Any) -> None:
    """Waits before it reads, so that as much as possible is unread."""
    await asyncio.sleep(0.1)
    while (message := await receive())["type"] == "http.request" and message["more_body"]:
        pass
    await send({"type": "http.response.start", "status": 204, "headers": [(b"x", b"y")]})
    await send({"type": "http.response.body"})


@each("data", FLOODS.values())
async def test_flood_of_small_parts_does_not_block_the_loop(data: bytes) -> None:
    async with listening_sockets(slow_reader) as wire:
        client = socket.create_connection(wire.address)
        client.settimeout(10)

        def send_all() -> None:
            with contextlib.suppress(ConnectionError):  # the server does not read a refused request to its end
                client.sendall(data[:FIRST_BYTES])
                time.sleep(0.02)  # so that the server reads the rest by itself
                client.sendall(data[FIRST_BYTES:])
                client.recv(100)

        async with free_loop(0.05):
            await asyncio.to_thread(send_all)
        client.close()
