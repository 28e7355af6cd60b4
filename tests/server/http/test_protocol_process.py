"""HTTP/1.1 under TLS on the real server process: uvloop buffers what a client has not read, and TLS has a separate end."""

import asyncio
import contextlib
import ssl
import time
from pathlib import Path

import pytest

from tests.support.connections import GET, TINY, connected, stalled
from tests.support.server import RunningServer, running_server


async def until_left(server: RunningServer, number: int) -> None:
    async with server.client() as client, asyncio.timeout(10):
        while (await client.get("/left")).json() != number:
            await asyncio.sleep(0.02)


async def count(server: RunningServer, path: str) -> int:
    async with server.client() as client:
        return int((await client.get(path)).json())


async def test_end_of_tls_is_a_disconnect(server: RunningServer) -> None:
    before, watched = await count(server, "/left"), await count(server, "/watched")
    connection = await connected(server)
    connection.sendall(GET.replace(b"/healthz", b"/watch"))
    while await count(server, "/watched") == watched:
        await asyncio.sleep(0.02)
    connection.settimeout(0.1)
    with contextlib.suppress(TimeoutError, ssl.SSLError):
        await asyncio.to_thread(connection.unwrap)
    await until_left(server, before + 1)
    connection.close()


async def test_end_of_tls_of_a_stalled_client_is_a_disconnect(server: RunningServer) -> None:
    before = await count(server, "/left")
    connection = await stalled(server, "/stream?bytes=4000000&seconds=0")  # more than all buffers hold
    assert connection.recv(1) == b"H"
    connection.settimeout(0.1)
    with contextlib.suppress(TimeoutError, ssl.SSLError):
        await asyncio.to_thread(connection.unwrap)
    await until_left(server, before + 1)
    connection.close()


async def test_refusal_reaches_a_client_that_reads_after_sending(server: RunningServer) -> None:
    client = await connected(server)
    head = b"POST /refuse HTTP/1.1\r\nHost: a\r\nContent-Length: 20000000\r\nConnection: close\r\n\r\n"
    await asyncio.to_thread(client.sendall, head)
    for _ in range(20):
        await asyncio.to_thread(client.sendall, b"x" * 1_000_000)
    assert b"413" in await asyncio.to_thread(client.recv, 1000)
    client.close()


@pytest.mark.parametrize(
    "path", ["/stream?bytes=20000&seconds=0.001", "/big?bytes=8000000"], ids=["stream", "one answer"]
)
async def test_stalled_reader_is_disconnected(hasty: RunningServer, path: str) -> None:
    async with hasty.client() as client:  # the first request opens what the server keeps
        await client.get("/big?bytes=1")
    before = await hasty.settled_descriptors(20)
    connections = [await stalled(hasty, path) for _ in range(5)]
    assert [await asyncio.to_thread(connection.recv, 1) for connection in connections] == [b"H"] * 5, "answers begin"
    assert await hasty.settled_descriptors(before) <= before
    for connection in connections:
        connection.close()


@pytest.mark.soak
@pytest.mark.timeout(200)
async def test_500_stalled_readers_are_disconnected_within_30_seconds(tmp_path: Path) -> None:
    async with running_server(tmp_path, command=TINY) as server:
        before = server.counts().descriptors
        connections = [await stalled(server, "/stream?bytes=2000&seconds=0.01") for _ in range(500)]
        stopped_at, slowest = time.monotonic(), 0.0
        async with server.client() as client:
            while server.counts().descriptors > before + 5:
                began = time.monotonic()
                await client.get("/healthz")
                slowest = max(slowest, time.monotonic() - began)
                assert time.monotonic() - stopped_at < 60
                await asyncio.sleep(0.2)
        print(f"cut within {time.monotonic() - stopped_at:.1f} s, slowest answer {slowest * 1000:.0f} ms")
        for connection in connections:
            connection.close()
        assert slowest < 1
