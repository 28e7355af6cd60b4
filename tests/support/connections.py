"""Connections in the hands of a test, to the tiny application that tests/support/tiny_app.py serves."""

import asyncio
import json
import re
import socket
import ssl

from tests.support.server import RunningServer

TINY = ("-m", "tests.support.tiny_app")
SHORT = {
    "TINY_HEAD_SECONDS": "1",
    "TINY_IDLE_SECONDS": "1",
    "TINY_BODY_GRACE_SECONDS": "1.5",
    "TINY_STALL_SECONDS": "1.5",
    "TINY_UNREAD_LINGER_SECONDS": "1",
    "TINY_TRIM_SECONDS": "0.5",
}
GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
LAST_GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def answers(data: bytes) -> list[tuple[int, dict[str, str], bytes]]:
    """The answers (status, headers, body) in `data`, whose bodies have a length; fails when anything is left over."""
    found = []
    while data:
        head, _, rest = data.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        assert re.fullmatch(r"HTTP/1\.1 \d{3} [\w ]+", first), first
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        length = int(headers.get("content-length", "0"))
        assert len(rest) >= length, "cut off"
        found.append((int(first.split()[1]), headers, rest[:length]))
        data = rest[length:]
    return found


def assert_refused(data: bytes, status: int, code: str) -> None:
    """Exactly one answer, the error shape with the headers that every answer has, and the end of the connection."""
    [(got, headers, body)] = answers(data)
    assert (got, json.loads(body)["error"]["code"]) == (status, code)
    assert set(json.loads(body)["error"]) == {"message", "type", "code", "param"}
    assert headers["content-type"] == "application/json"
    assert headers["connection"] == "close"
    assert headers["strict-transport-security"]
    assert headers["x-request-id"]


async def read_head(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(10):
        return await reader.readuntil(b"\r\n\r\n")


async def connected(server: RunningServer, receive_buffer_bytes: int | None = None) -> ssl.SSLSocket:
    """A TLS connection in the hands of the test, which asyncio would read, close and answer by itself."""
    plain = socket.socket()
    if receive_buffer_bytes:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
    plain.connect((server.host, server.port))
    assert server.tls
    return await asyncio.to_thread(server.tls.wrap_socket, plain, server_hostname=server.host)


async def stalled(server: RunningServer, path: str) -> ssl.SSLSocket:
    """A connection that asks for `path` and then reads nothing."""
    connection = await connected(server, receive_buffer_bytes=16384)
    connection.sendall(b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % path.encode())
    return connection
