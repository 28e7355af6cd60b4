"""What the protocol adds to one connection: the deadline of a whole body, and codings as they may be written.

Heads, refusals, readers and pipelining are proved with the server in test_serve.py.
"""

import asyncio
import time
from collections.abc import Iterator

import pytest

from tests.support.server import RunningServer, hang_up, read_to_end, running_server_sync

TINY = ("-m", "tests.support.tiny_app")
POST = b"POST /upload HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server that gives a body two seconds, and one more for each 100 KB."""
    env = {"TINY_BODY_SECONDS": "2", "TINY_BODY_BYTES_PER_EXTRA_SECOND": "100000"}
    with running_server_sync(tmp_path_factory.mktemp("server"), env, TINY) as running:
        yield running


async def test_a_body_that_comes_at_its_least_rate_for_too_long_is_408(server: RunningServer) -> None:
    reader, writer = await server.raw()
    writer.write(POST + b"Content-Length: 1000000\r\n\r\n")
    answer, began = asyncio.create_task(read_to_end(reader)), time.monotonic()
    while not answer.done() and time.monotonic() - began < 10:
        writer.write(b"x" * 1000)  # 5 KB/s: more than the least rate
        await asyncio.sleep(0.2)
    assert (await answer).startswith(b"HTTP/1.1 408 ") and 1.5 < time.monotonic() - began < 6
    await hang_up(writer)


async def test_a_large_body_has_longer(server: RunningServer) -> None:
    reader, writer = await server.raw()
    writer.write(POST + b"Content-Length: 1000000\r\n\r\n")
    for _ in range(10):
        writer.write(b"x" * 100_000)
        await asyncio.sleep(0.4)
    answer = await read_to_end(reader)
    assert answer.startswith(b"HTTP/1.1 200 ") and b'"received":1000000' in answer
    await hang_up(writer)


@pytest.mark.parametrize("coding", [b"chunked", b"Chunked", b"CHUNKED"])
async def test_chunked_is_known_in_any_case(server: RunningServer, coding: bytes) -> None:
    answer = await server.exchange(POST + b"Transfer-Encoding: " + coding + b"\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 ") and b'"received":3' in answer
