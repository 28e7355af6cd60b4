"""Connections are limited in total and for each address: an idle one is closed, otherwise the new one is refused with a
reason."""

import asyncio
import contextlib
import signal
import ssl
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from svc.certificates import tls_files
from tests.support.server import RunningServer, hang_up, read_to_end, running_server
from tests.support.waiting import until

HEALTH = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"
STREAM = b"GET /stream HTTP/1.1\r\nhost: localhost\r\n\r\n"
TINY = (Path(__file__).parent.parent / "support" / "tiny_app.py",)
Opened = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def opened(server: RunningServer, address: str, request: bytes = b"") -> Opened:
    """A connection from `address` that has sent `request` and read the beginning of its answer."""
    reader, writer = await server.raw(local_addr=(address, 0))
    if request:
        writer.write(request)
        assert await reader.readuntil(b"\r\n\r\n")
    return reader, writer


async def ended(connection: Opened) -> bool:
    with contextlib.suppress(TimeoutError):
        await read_to_end(connection[0], 0.5)
        return True
    return False


@pytest.fixture
async def small(tmp_path: Path) -> AsyncIterator[RunningServer]:
    """A server of six connections, three for each address."""
    env = {"SVC_CONNECTIONS": "6", "SVC_CONNECTIONS_PER_ADDRESS": "3"}
    async with running_server(tmp_path, env, TINY) as server:
        yield server


async def test_address_with_all_connections_in_use_is_503(small: RunningServer) -> None:
    busy = [await opened(small, "127.0.0.2", STREAM) for _ in range(3)]
    reader, writer = await small.raw(local_addr=("127.0.0.2", 0))
    answer = await read_to_end(reader)
    assert answer.startswith(b"HTTP/1.1 503 ") and b'"overloaded"' in answer and b"retry-after: 1" in answer
    await hang_up(writer)
    other = await opened(small, "127.0.0.3", HEALTH)
    before = small.counts().descriptors
    await hang_up(busy[0][1])
    await until(lambda: small.counts().descriptors < before)
    again = await opened(small, "127.0.0.2", HEALTH)
    for _, writer in (*busy, other, again):
        await hang_up(writer)


async def test_longest_idle_connection_is_closed_first(small: RunningServer) -> None:
    busy = await opened(small, "127.0.0.2", STREAM)
    idle = [await opened(small, "127.0.0.2", HEALTH) for _ in range(2)]
    for connection in idle:
        await connection[0].readuntil(b"}")
    await asyncio.sleep(0.2)  # a kernel may acknowledge what it took a little later
    newest = await opened(small, "127.0.0.2", HEALTH)
    assert await ended(idle[0])
    assert not await ended(idle[1])
    assert (await busy[0].read(10)).strip()
    for _, writer in (busy, *idle, newest):
        await hang_up(writer)


async def test_full_server_closes_a_connection_of_the_largest_address(small: RunningServer) -> None:
    crowd = [await opened(small, address) for address in ("127.0.0.2", "127.0.0.3") for _ in range(3)]
    newcomer = await opened(small, "127.0.0.4", HEALTH)
    assert sum([await ended(connection) for connection in crowd]) == 1
    for _, writer in (*crowd, newcomer):
        await hang_up(writer)


async def test_connections_without_handshake_do_not_block_others(small: RunningServer) -> None:
    silent = [await asyncio.open_connection(small.host, small.port, local_addr=("127.0.0.2", 0)) for _ in range(20)]
    began = time.monotonic()
    other = await opened(small, "127.0.0.3", HEALTH)
    assert time.monotonic() - began < 4
    for _, writer in (*silent, other):
        await hang_up(writer)
    assert await small.settled_descriptors(20) <= 20


async def test_silent_connections_do_not_delay_their_address(tmp_path: Path) -> None:
    async with running_server(tmp_path, command=TINY) as server:
        before = server.counts().descriptors
        silent = [await asyncio.open_connection(server.host, server.port) for _ in range(200)]
        for _, writer in silent[::2]:
            writer.write(b"\x16")
        await asyncio.sleep(0.2)
        async with asyncio.timeout(2.5):  # a silent one has 5 s
            other = await opened(server, "127.0.0.1", HEALTH)
        await hang_up(other[1])
        assert server.counts().descriptors >= before + 200, "they are still open"
        assert await server.settled_descriptors(before + 5) <= before + 5, "and they are cut in the end"
        for _, writer in silent:
            await hang_up(writer)


async def test_silent_connection_is_closed_for_the_next_of_its_address(small: RunningServer) -> None:
    silent = [await asyncio.open_connection(small.host, small.port, local_addr=("127.0.0.2", 0)) for _ in range(3)]
    other = await opened(small, "127.0.0.2", HEALTH)
    assert [await ended(connection) for connection in silent].count(True) == 1
    for _, writer in (*silent, other):
        await hang_up(writer)


async def test_sighup_reloads_certificate_files(tmp_path: Path) -> None:
    pairs = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        pairs.append(tls_files(tmp_path / name, ["127.0.0.1"], time.time()).ca.parent)
    live = tmp_path / "live"
    live.mkdir()
    env = {"SVC_TLS": "files", "SVC_TLS_CERT": str(live / "cert.pem"), "SVC_TLS_KEY": str(live / "key.pem")}

    def put(folder: Path, *names: str) -> None:
        for name in names:
            (live / name).write_bytes((folder / name).read_bytes())

    async def trusted(folder: Path) -> bool:
        try:
            context = ssl.create_default_context(cafile=folder / "ca.pem")
            _, writer = await asyncio.open_connection(server.host, server.port, ssl=context)
        except ssl.SSLError:
            return False
        await hang_up(writer)
        return True

    put(pairs[0], "cert.pem", "key.pem")
    (tmp_path / "server").mkdir()
    async with running_server(tmp_path / "server", env) as server:
        assert await trusted(pairs[0])
        put(pairs[1], "cert.pem")
        server.send_signal(signal.SIGHUP)
        await until(lambda: [line for line in server.log_lines() if line["event"] == "library"])
        assert await trusted(pairs[0]), "a certificate without its key changes nothing"
        put(pairs[1], "key.pem")
        server.send_signal(signal.SIGHUP)
        async with asyncio.timeout(20):
            while not await trusted(pairs[1]):
                await asyncio.sleep(0.05)
        assert not await trusted(pairs[0])
        assert [line["logger"] for line in server.log_lines() if line["event"] == "library"] == ["svc.server.serve"]
