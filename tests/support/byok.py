"""What the tests of users' own providers share: names that resolve as a test says, raw servers, providers made by the
API.
"""

import asyncio
import itertools
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.conftest import Service

KEY = "sk-users-own-0123456789-secret"
PUBLIC = "93.184.216.34"


class Names:
    """A resolver for tests: `names.resolve("host", ["10.0.0.1"], ["10.0.0.2"])` returns one list after the other, then
    always the last. Addresses stand for themselves, other names are unknown. `asked` holds what was looked up."""

    def __init__(self) -> None:
        self._answers: dict[str, list[list[str]]] = {}
        self.asked: list[str] = []

    def resolve(self, host: str, *answers: list[str]) -> None:
        self._answers[host] = list(answers)

    async def __call__(self, host: str, port: int, account_id: str) -> list[str]:
        self.asked.append(host)
        answers = self._answers.get(host)
        if answers is None:
            return await numeric(host, port)
        return answers.pop(0) if len(answers) > 1 else answers[0]


async def numeric(host: str, port: int) -> list[str]:
    """`host` if it is an address; OSError for a name: no test asks a DNS server."""
    found = await asyncio.get_running_loop().getaddrinfo(
        host, port, flags=socket.AI_NUMERICHOST, type=socket.SOCK_STREAM
    )
    return [str(entry[4][0]) for entry in found]


class Raw:
    """A server on loopback that reads a request's head and sends `answer` unchanged, or nothing for None. It counts
    connections."""

    def __init__(self, answer: bytes | None = b"") -> None:
        self.answer = answer
        self.connections = 0
        self.port = 0

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(self.answer or b"")
            await writer.drain()
            if self.answer is None:
                await reader.read()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def raw_server(answer: bytes | None = b"") -> AsyncIterator[Raw]:
    raw = Raw(answer)
    server = await asyncio.start_server(raw.connected, "127.0.0.1", 0)
    raw.port = server.sockets[0].getsockname()[1]
    try:
        yield raw
    finally:
        server.close()


def http_answer(status: str, body: bytes, *headers: bytes) -> bytes:
    """An HTTP answer as a server of users' own choice may write it."""
    lines = [
        f"HTTP/1.1 {status}".encode(),
        b"content-length: %d" % len(body),
        b"content-type: application/json",
        *headers,
    ]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


_numbers = itertools.count(1)


async def add_provider(service: Service, headers: dict[str, str], base_url: str, **fields: Any) -> dict[str, Any]:
    """A provider of the caller's, with the key `KEY` unless `fields` say otherwise."""
    body = {"name": f"mine{next(_numbers)}", "base_url": base_url, "api_key": KEY, **fields}
    made = await service.client.post("/user/providers", json=body, headers=headers)
    assert made.status_code == 201, made.text
    provider: dict[str, Any] = made.json()
    return provider
