"""Bytes that were HTTP, over sockets, to a server process whose loop has a pulse."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from pathlib import Path

import orjson

from tests.attacks.lab import PASSWORD, pulsing_server
from tests.fuzz.mutation import mutated_bytes
from tests.support.server import hang_up

MOST_STALL_MS = 50.0
_AT_ONCE = 16
_PIPELINED = 2
_PATIENCE_SECONDS = 30.0
_PROXY = {
    "SVC_TLS": "proxy",
    "SVC_TRUSTED_PROXIES": "127.0.0.1",
}  # without TLS, whose handshakes would take most of the time
_CHAT = {"model": "builtin/echo", "messages": [{"role": "user", "content": "hello"}], "stream": True}
REQUESTS = (
    ("GET", "/healthz", b""),
    ("GET", "/user/me", b""),
    ("GET", "/v1/models?limit=3", b""),
    ("GET", "/artifacts?after=x&limit=5", b""),
    ("GET", "/static/app/main.js", b""),
    ("HEAD", "/", b""),
    ("OPTIONS", "/v1/models", b""),
    ("POST", "/v1/chat/completions", orjson.dumps(_CHAT)),
    ("POST", "/projects", b'{"name": "x", "instructions": "y"}'),
    ("POST", "/auth/login", b'{"email": "a@example.com", "password": "b"}'),
    ("POST", "/billing/webhook", b"{}"),
    ("POST", "/checkout/sign-in", b"email=a%40example.com&password=x"),
    ("PATCH", "/user/me", b'{"name": "x"}'),
)


async def play(folder: Path, seed: str, count: int) -> list[str]:
    """Sends `count` requests made from `seed` to a new server in `folder`; what did not hold, a line each."""
    rnd = random.Random(seed)
    found: list[str] = []
    async with pulsing_server(folder, _PROXY) as (server, pulse):
        async with server.client(headers={"x-forwarded-proto": "https"}) as client:
            session = await client.post("/auth/signup", json={"email": "fuzz@example.com", "password": PASSWORD})
        good = [written(server.host, session.json()["access_token"], *request) for request in REQUESTS]
        good.append(good[0][:-2] + b"connection: upgrade\r\nupgrade: h2c\r\n\r\n")  # the parser stops behind it
        for request in good:  # what the first request of a kind loads is no stall of an attacker
            await exchange(server.port, request, found)
        await pulse.longest_stall_ms()
        for begin in range(0, count, _AT_ONCE * _PIPELINED):
            number = min(_AT_ONCE, -(-(count - begin) // _PIPELINED))
            sent = [b"".join(mutated_bytes(rnd.choice(good), rnd) for _ in range(_PIPELINED)) for _ in range(number)]
            await asyncio.gather(*(exchange(server.port, data, found) for data in sent))
            if begin % 1024 == 0 and (stall_ms := await pulse.longest_stall_ms()) > MOST_STALL_MS:
                found.append(f"the loop stood still for {stall_ms:.0f} ms of CPU time at {begin}")
        async with server.client(headers={"x-forwarded-proto": "https"}) as client:
            assert (await client.get("/readyz")).status_code == 200
        found += [f"in the log: {line}" for line in server.log_lines() if line.get("level") == "error"]
    return found


def written(host: str, token: str, method: str, path: str, body: bytes) -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\nx-forwarded-proto: https\r\n"
    kind = "application/x-www-form-urlencoded" if body.startswith(b"email") else "application/json"
    head += f"content-type: {kind}\r\ncontent-length: {len(body)}\r\n" if body else ""
    return head.encode() + b"\r\n" + body


async def exchange(port: int, data: bytes, found: list[str]) -> None:
    """Sends it, says that nothing more comes, and reads to the end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**20)
    try:
        answer = b""
        async with asyncio.timeout(_PATIENCE_SECONDS):
            with contextlib.suppress(ConnectionError):
                writer.write(data)
                writer.write_eof()
                async for piece in _pieces(reader):
                    answer += piece
        if b"HTTP/1.1 500" in answer or b"internal_error" in answer:
            found.append(f"500: {data!r}")
    except TimeoutError:
        found.append(f"no end within {_PATIENCE_SECONDS:.0f} s: {data!r}")
    finally:
        await hang_up(writer)


async def _pieces(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while piece := await reader.read(65536):
        yield piece
