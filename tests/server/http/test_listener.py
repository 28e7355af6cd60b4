"""Connections are limited in total and for each address: an idle one is closed, otherwise the new one is refused with a
reason.
"""

import asyncio
import socket
from collections.abc import AsyncIterator
from ipaddress import ip_network

import pytest

from svc.config import Config
from tests.support.connections import GET, assert_refused
from tests.support.server import hang_up, read_to_end
from tests.support.tiny_app import create_app
from tests.support.waiting import until
from tests.support.wire import Sockets, listening_sockets

STREAM = GET.replace(b"/healthz", b"/stream")
SMALL: dict[str, int] = {"connections": 6, "connections_per_address": 3}
Opened = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def opened(server: Sockets, address: str, request: bytes = b"") -> Opened:
    """A connection from `address` that has sent `request` and read its answer, or the beginning of a stream."""
    reader, writer = await server.raw(local_addr=(address, 0))
    if request:
        writer.write(request)
        async with asyncio.timeout(20):
            assert await reader.readuntil(b"}" if request is GET else b"begun")
    return reader, writer


async def silent(server: Sockets, address: str) -> Opened:
    """A connection that sends no byte of its handshake."""
    return await asyncio.open_connection(*server.address, local_addr=(address, 0))


def ended(*connections: Opened) -> list[bool]:
    return [reader.at_eof() or reader.exception() is not None for reader, _ in connections]


async def hang_up_all(*connections: Opened) -> None:
    for _, writer in connections:
        await hang_up(writer)


@pytest.fixture
async def small() -> AsyncIterator[Sockets]:
    """A server of six connections, three for each address."""
    async with listening_sockets(create_app(Config()), **SMALL) as wire:
        yield wire


@pytest.fixture
async def small_tls() -> AsyncIterator[Sockets]:
    async with listening_sockets(create_app(Config()), tls=True, **SMALL) as wire:
        yield wire


async def test_address_with_all_connections_in_use_is_503(small: Sockets) -> None:
    busy = [await opened(small, "127.0.0.2", STREAM) for _ in range(3)]
    reader, writer = await small.raw(local_addr=("127.0.0.2", 0))
    answer = await read_to_end(reader)
    assert_refused(answer, 503, "overloaded")
    assert b"retry-after: 1" in answer
    await hang_up(writer)
    other = await opened(small, "127.0.0.3", GET)
    await until(lambda: len(small.connections) == 4)
    await hang_up(busy[0][1])
    await until(lambda: len(small.connections) == 3)
    again = await opened(small, "127.0.0.2", GET)
    await hang_up_all(*busy, other, again)


async def test_proxy_may_open_more_connections_than_an_address() -> None:
    proxies = (ip_network("127.0.0.2/32"),)
    async with listening_sockets(create_app(Config()), **SMALL, trusted_proxies=proxies) as wire:
        busy = [await opened(wire, "127.0.0.2", STREAM) for _ in range(6)]
        assert len(wire.connections) == 6
        await hang_up_all(*busy)


async def test_longest_idle_connection_is_closed_first(small: Sockets) -> None:
    busy = await opened(small, "127.0.0.2", STREAM)
    idle = [await opened(small, "127.0.0.2", GET) for _ in range(2)]
    await until(lambda: sum(connection.idle for connection in small.connections) == 2)
    newest = await opened(small, "127.0.0.2", GET)
    await until(lambda: ended(*idle)[0])
    assert ended(busy, *idle, newest) == [False, True, False, False]
    await hang_up_all(busy, *idle, newest)


async def test_full_server_closes_a_connection_of_the_largest_address(small: Sockets) -> None:
    crowd = [await opened(small, address) for address in ("127.0.0.2", "127.0.0.3") for _ in range(3)]
    newcomer = await opened(small, "127.0.0.4", GET)
    await until(lambda: any(ended(*crowd)))
    assert sum(ended(*crowd)) == 1 and len(small.connections) == 6
    await hang_up_all(*crowd, newcomer)


async def test_full_server_refuses_an_address_that_has_as_many_as_others(small: Sockets) -> None:
    crowd = [await opened(small, f"127.0.0.{number}", GET) for number in range(2, 8)]
    await until(lambda: all(connection.idle for connection in small.connections))
    reader, writer = await small.raw(local_addr=("127.0.0.2", 0))
    assert_refused(await read_to_end(reader), 503, "overloaded")
    assert not any(ended(*crowd))
    await hang_up_all(*crowd, (reader, writer))


async def test_refusals_are_limited_too(small: Sockets) -> None:
    """A refused connection takes memory until its client has read the reason. Above the limit there is none."""
    busy = [await opened(small, "127.0.0.2", STREAM) for _ in range(3)]
    refused = [socket.create_connection(small.address, source_address=("127.0.0.2", 0)) for _ in range(10)]
    answers = await asyncio.gather(*(asyncio.to_thread(received, connection) for connection in refused))
    assert sorted(answers) == [b""] * 8 + [b"HTTP/1.1 503 "] * 2
    await hang_up_all(*busy)


def received(connection: socket.socket) -> bytes:
    with connection:
        try:
            return connection.recv(13)
        except ConnectionResetError:
            return b""


async def test_connections_without_handshake_do_not_block_others(small_tls: Sockets) -> None:
    waiting = [await silent(small_tls, "127.0.0.2") for _ in range(20)]
    other = await opened(small_tls, "127.0.0.3", GET)
    assert sum(ended(*waiting)) == 17, "three are still open"
    await hang_up_all(*waiting, other)


async def test_silent_connections_do_not_delay_their_address() -> None:
    async with listening_sockets(create_app(Config()), tls=True) as wire:
        waiting = [await silent(wire, "127.0.0.2") for _ in range(80)]
        for _, writer in waiting[::2]:
            writer.write(b"\x16")
        other = await opened(wire, "127.0.0.2", GET)
        assert not any(ended(*waiting)), "they are still open"
        await hang_up_all(*waiting, other)


async def test_silent_connection_is_closed_for_the_next_of_its_address(small_tls: Sockets) -> None:
    waiting = [await silent(small_tls, "127.0.0.2") for _ in range(3)]
    other = await opened(small_tls, "127.0.0.2", GET)
    await until(lambda: any(ended(*waiting)))
    assert ended(*waiting, other) == [True, False, False, False]
    await hang_up_all(*waiting, other)


async def test_plain_http_on_the_tls_port_gets_no_answer(small_tls: Sockets) -> None:
    reader, writer = await silent(small_tls, "127.0.0.2")
    writer.write(GET)
    assert b"HTTP" not in await read_to_end(reader)
    await hang_up(writer)
