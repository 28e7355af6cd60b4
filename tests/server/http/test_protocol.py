"""HTTP/1.1 on real connections: what is refused, the deadlines of head, body and reader, and a client
that goes away.
"""

import asyncio
import contextlib
import json
import re
import socket
import ssl
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from svc.server.http.head import METHODS
from svc.server.http.protocol import Protocol
from tests.support.connections import GET, LAST_GET, TINY, answers, assert_refused, connected, read_head, stalled
from tests.support.server import RunningServer, hang_up, read_to_end, running_server

CHUNKED = b"POST /upload HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"


POST = b"POST /upload HTTP/1.1\r\nHost: a\r\n"


REFUSED: Mapping[str, bytes] = {
    "no host": b"GET / HTTP/1.1\r\n\r\n",
    "two hosts": b"GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n",
    "two hosts in 1.0": b"GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n",
    "absolute form without a host": b"GET https://a/healthz HTTP/1.1\r\n\r\n",
    "authority form": b"GET a:443 HTTP/1.1\r\nHost: a\r\n\r\n",
    "connect": b"CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n",
    "asterisk": b"GET * HTTP/1.1\r\nHost: a\r\n\r\n",
    "fragment": b"GET /healthz#x HTTP/1.1\r\nHost: a\r\n\r\n",
    "raw utf-8 in the path": b"GET /\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n",
    "nul in the path": b"GET /\x00 HTTP/1.1\r\nHost: a\r\n\r\n",
    "http/0.9": b"GET / HTTP/0.9\r\nHost: a\r\n\r\n",
    "http/0.9 bare": b"GET /\r\n\r\n",
    "http/2.0": b"GET / HTTP/2.0\r\nHost: a\r\n\r\n",
    "http/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "length and chunked": POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + GET,
    "chunked and length": POST + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + GET,
    "two lengths": POST + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc" + GET,
    "the same length twice": POST + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc" + GET,
    "a list of lengths": POST + b"Content-Length: 3, 3\r\n\r\nabc" + GET,
    "signed length": POST + b"Content-Length: +3\r\n\r\nabc",
    "negative length": POST + b"Content-Length: -3\r\n\r\nabc",
    "endless length": POST + b"Content-Length: 99999999999999999999999\r\n\r\nabc",
    "empty length": POST + b"Content-Length:\r\n\r\nabc",
    "gzip, chunked": POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" + GET,
    "chunked twice": POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + GET,
    "xchunked": POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + GET,
    "identity": POST + b"Transfer-Encoding: identity\r\n\r\n" + GET,
    "vertical tab before chunked": POST + b"Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
    "space before the colon": POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "chunked in http/1.0": b"POST /upload HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "folded line": b"GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\n 2\r\n\r\n",
    "bare line feeds": b"GET / HTTP/1.1\nHost: a\n\n",
    "bare line feed in a header": b"GET / HTTP/1.1\r\nHost: a\nX: 1\r\n\r\n",
    "bare carriage return": b"GET / HTTP/1.1\r\nHost: a\rX: 1\r\n\r\n",
    "nul in a header": b"GET / HTTP/1.1\r\nHost: a\r\nX: a\x00b\r\n\r\n",
    "space in a name": b"GET / HTTP/1.1\r\nHost: a\r\nX Y: 1\r\n\r\n",
    "empty name": b"GET / HTTP/1.1\r\nHost: a\r\n: x\r\n\r\n",
    "upgrade with a body": POST + b"Connection: upgrade\r\nUpgrade: h2c\r\nContent-Length: 3\r\n\r\nabc",
    "noise": b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
}


@pytest.mark.parametrize("data", REFUSED.values(), ids=REFUSED.keys())
async def test_invalid_http_is_refused_once_in_the_error_shape(server: RunningServer, data: bytes) -> None:
    assert_refused(await server.exchange(data), 400, "invalid_request")


@pytest.mark.parametrize(
    "data",
    [
        b"zz\r\n",
        b"-1\r\nx\r\n",
        b"f" * 17 + b"\r\n",
        b"0x1\r\nx\r\n",
        b"1\r\nxx0\r\n\r\n",
        b"1\nx\n0\n\n",
        b"1 \r\nx\r\n",
    ],
)
async def test_invalid_chunks_are_refused_during_the_body(server: RunningServer, data: bytes) -> None:
    reader, writer = await server.raw()
    writer.write(CHUNKED + b"3\r\nabc\r\n")
    await asyncio.sleep(0.05)
    writer.write(data + GET)
    assert_refused(await read_to_end(reader), 400, "invalid_request")
    await hang_up(writer)


@pytest.mark.parametrize("line", [b"BREW /healthz", b"TRACE /healthz", b"PURGE /admin/audit", b"PROPFIND /nothing"])
async def test_unknown_method_is_405_on_every_path(server: RunningServer, line: bytes) -> None:
    data = await server.exchange(line + b" HTTP/1.1\r\nHost: a\r\n\r\n")
    assert_refused(data, 405, "method_not_allowed")
    assert answers(data)[0][1]["allow"] == METHODS


async def test_header_of_20_mb_is_refused_without_buffering(server: RunningServer) -> None:
    reader, writer = await server.raw()
    before = server.counts().rss_bytes
    writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nX: ")
    with contextlib.suppress(ConnectionError):
        for _ in range(320):
            writer.write(b"x" * 65536)
            await asyncio.wait_for(writer.drain(), 10)
    assert_refused(await read_to_end(reader), 431, "headers_too_large")
    await hang_up(writer)
    assert server.counts().rss_bytes - before < 4_000_000


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: 1\r\n" * 200_000 + b"\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: 1\r\n" * 100 + b"\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 66_000 + b"\r\n\r\n",
        b"GET /" + b"x" * 66_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
        b"\r\n" * 40_000,
        b"PRI" + b"x" * 66_000,
    ],
    ids=["200,000 headers", "101 headers", "a long value", "a long path", "empty lines", "no line"],
)
async def test_a_head_over_64_kib_or_100_lines_is_refused(server: RunningServer, head: bytes) -> None:
    data = await server.exchange(head)
    [(status, _, _)] = answers(data)
    assert status == 431 or (head.startswith(b"PRI") and status == 400)


async def test_a_head_just_under_the_limits_is_served(server: RunningServer) -> None:
    lines = b"".join(b"X-%d: %s\r\n" % (number, b"x" * 600) for number in range(98))
    [(status, _, _)] = answers(await server.exchange(LAST_GET[:-2] + lines + b"\r\n"))
    assert status == 200


@pytest.mark.parametrize(
    "filler", [b"0\r\nX: " + b"x" * 70_000, b"1;" + b"x" * 70_000], ids=["trailer", "chunk extension"]
)
async def test_trailers_and_chunk_extensions_are_limited(server: RunningServer, filler: bytes) -> None:
    reader, writer = await server.raw()
    writer.write(CHUNKED + b"3\r\nabc\r\n")
    await asyncio.sleep(0.05)
    for start in range(0, len(filler), 16384):
        writer.write(filler[start : start + 16384])
        await asyncio.sleep(0.01)
    assert_refused(await read_to_end(reader), 431, "headers_too_large")
    await hang_up(writer)


async def test_trailers_do_not_become_headers(server: RunningServer) -> None:
    reader, writer = await server.raw()
    writer.write(CHUNKED + b"3\r\nabc\r\n0\r\nAuthorization: Bearer forged\r\n\r\n")
    head = await read_head(reader)
    body = json.loads(await reader.readexactly(int(re.search(rb"content-length: (\d+)", head)[1])))  # type: ignore[index]
    assert body == {"received": 3, "headers": {"host": "localhost", "transfer-encoding": "chunked"}}
    writer.write(LAST_GET)
    assert [status for status, _, _ in answers(await read_to_end(reader))] == [200]
    await hang_up(writer)


async def test_an_upgrade_is_ignored_and_the_next_request_served(server: RunningServer) -> None:
    upgrade = GET[:-2] + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    assert [status for status, _, _ in answers(await server.exchange(upgrade + upgrade + LAST_GET))] == [200, 200, 200]
    assert [status for status, _, _ in answers(await server.exchange(upgrade + b"nonsense\r\n\r\n"))] == [200, 400]


async def test_exception_below_all_handlers_is_500_in_the_error_shape(server: RunningServer) -> None:
    data = await server.exchange(LAST_GET.replace(b"/healthz", b"/crash"))
    assert_refused(data, 500, "internal_error")
    assert b"nobody may see" not in data


async def test_pipelined_requests_are_answered_in_order(server: RunningServer) -> None:
    post = b"POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
    found = answers(await server.exchange(GET + post + GET + LAST_GET + GET))
    assert [status for status, _, _ in found] == [200, 200, 200, 200]
    assert [b"received" in body for _, _, body in found] == [False, True, False, False]


async def test_invalid_pipelined_request_is_refused_after_earlier_answers(server: RunningServer) -> None:
    slow = b"POST /busy-upload?seconds=0.3 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
    found = answers(await server.exchange(slow + GET + b"GET / HTTP/1.1\r\n\r\n"))
    assert [status for status, _, _ in found] == [200, 200, 400]


async def test_invalid_pipelined_body_is_refused_after_earlier_answers(server: RunningServer) -> None:
    slow = b"POST /busy-upload?seconds=0.3 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
    found = answers(await server.exchange(slow + GET + CHUNKED + b"zz\r\n"))
    assert [status for status, _, _ in found] == [200, 200, 400]


async def test_at_most_64_pipelined_requests_wait(server: RunningServer) -> None:
    slow = b"POST /busy-upload?seconds=0.3 HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"
    found = answers(await server.exchange(slow + GET * 3000))
    assert [status for status, _, _ in found] == [200] * 65 + [400]


async def test_disconnect_ends_the_running_pipelined_request(server: RunningServer) -> None:
    async with server.client() as client:
        before, watched = [(await client.get(path)).json() for path in ("/left", "/watched")]
        _, writer = await server.raw()
        writer.write(GET.replace(b"/healthz", b"/watch") + GET)
        await until(lambda: count_is(client, "/watched", watched + 1))
        await hang_up(writer)
        await until(lambda: count_is(client, "/left", before + 1))


@pytest.mark.parametrize("way", ["FIN", "RST", "close_notify"])
async def test_disconnect_is_detected_at_once(server: RunningServer, way: str) -> None:
    async with server.client() as client:
        before, watched = [(await client.get(path)).json() for path in ("/left", "/watched")]
        connection = await connected(server)
        connection.sendall(GET.replace(b"/healthz", b"/watch"))
        await until(lambda: count_is(client, "/watched", watched + 1))
        if way == "close_notify":
            connection.settimeout(0.3)
            with contextlib.suppress(TimeoutError, ssl.SSLError):
                await asyncio.to_thread(connection.unwrap)
        if way == "FIN":
            connection.shutdown(socket.SHUT_WR)
        if way == "RST":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
            connection.close()
        await until(lambda: count_is(client, "/left", before + 1))
        connection.close()


async def test_disconnect_of_a_stalled_client_is_detected_at_once(server: RunningServer) -> None:
    async with server.client() as client:
        before = (await client.get("/left")).json()
        connection = await stalled(server, "/stream?bytes=20000&seconds=0.001")
        await asyncio.sleep(0.5)
        connection.settimeout(0.1)
        with contextlib.suppress(TimeoutError, ssl.SSLError):
            await asyncio.to_thread(connection.unwrap)
        await until(lambda: count_is(client, "/left", before + 1))
        connection.close()


async def count_is(client: httpx.AsyncClient, path: str, number: int) -> bool:
    return bool((await client.get(path)).json() == number)


async def until(holds: Any, within_seconds: float = 2.0) -> None:
    async with asyncio.timeout(within_seconds):
        while not await holds():
            await asyncio.sleep(0.02)


async def test_100_continue_is_sent_when_the_body_is_read(server: RunningServer) -> None:
    reader, writer = await server.raw()
    writer.write(POST + b"Content-Length: 5\r\nExpect: 100-continue\r\n\r\n")
    assert await read_head(reader) == b"HTTP/1.1 100 Continue\r\n\r\n"
    writer.write(b"hello")
    [(status, _, body)] = answers(await read_to_end(reader))
    assert (status, json.loads(body)["received"]) == (200, 5)
    await hang_up(writer)


async def test_100_continue_is_not_sent_for_a_refused_body(server: RunningServer) -> None:
    data = await server.exchange(
        b"POST /refuse HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"
    )
    [(status, headers, _)] = answers(data)
    assert (status, headers["connection"]) == (413, "close")


@pytest.mark.parametrize("connection", [b"close", b"keep-alive"])
async def test_refusal_reaches_a_client_that_reads_after_sending(server: RunningServer, connection: bytes) -> None:
    head = b"POST /refuse HTTP/1.1\r\nHost: a\r\nContent-Length: 20000000\r\nConnection: %s\r\n\r\n" % connection
    client = await connected(server)
    await asyncio.to_thread(client.sendall, head)
    for _ in range(20):
        await asyncio.to_thread(client.sendall, b"x" * 1_000_000)
        await asyncio.sleep(0.02)
    assert b"413" in await asyncio.to_thread(client.recv, 1000)
    client.close()


async def test_answer_is_sent_without_waiting_for_an_ack(server: RunningServer) -> None:
    async with server.client() as client:
        await client.get("/healthz")
        began = time.monotonic()
        for _ in range(20):
            await client.get("/healthz")
        alone_seconds = time.monotonic() - began
        began = time.monotonic()
        for _ in range(20):
            await client.post("/upload", content=b"x")
        assert time.monotonic() - began < 3 * alone_seconds + 20 * 0.035  # a delayed acknowledgement takes 0.04 s


async def test_endless_head_is_408(hasty: RunningServer) -> None:
    reader, writer = await hasty.raw()
    writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n")
    began = time.monotonic()

    async def trickle() -> None:
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write(b"X: 1\r\n")
                await writer.drain()
                await asyncio.sleep(0.1)

    trickling = asyncio.create_task(trickle())
    assert_refused(await read_to_end(reader), 408, "request_timeout")
    assert 0.4 < time.monotonic() - began < Protocol.head_seconds
    trickling.cancel()
    await hang_up(writer)


async def test_head_of_a_later_request_has_a_deadline(hasty: RunningServer) -> None:
    reader, writer = await hasty.raw()
    writer.write(GET)
    assert b"200" in await read_head(reader)
    assert await reader.readexactly(15)
    writer.write(b"GET / HT")
    assert_refused(await read_to_end(reader), 408, "request_timeout")
    await hang_up(writer)


@pytest.mark.parametrize("sent", [b"", GET], ids=["from the start", "after a request"])
async def test_silent_connection_is_closed_without_an_answer(hasty: RunningServer, sent: bytes) -> None:
    assert len(answers(await hasty.exchange(sent))) == (1 if sent else 0)


@pytest.mark.parametrize("head", [CHUNKED, POST + b"Content-Length: 100000\r\n\r\n"], ids=["chunked", "with a length"])
async def test_slow_body_is_408(hasty: RunningServer, head: bytes) -> None:
    reader, writer = await hasty.raw()
    writer.write(head)
    began = time.monotonic()

    async def trickle() -> None:
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write(b"1\r\nx\r\n" if head is CHUNKED else b"x")
                await writer.drain()
                await asyncio.sleep(0.1)

    trickling = asyncio.create_task(trickle())
    assert_refused(await read_to_end(reader), 408, "request_timeout")
    assert 1 < time.monotonic() - began < Protocol.body_grace_seconds
    trickling.cancel()
    await hang_up(writer)


async def test_steady_body_may_exceed_the_grace_time(hasty: RunningServer) -> None:
    reader, writer = await hasty.raw()
    writer.write(POST + b"Content-Length: 16000\r\nConnection: close\r\n\r\n")
    for _ in range(32):
        writer.write(b"x" * 500)
        await asyncio.sleep(0.1)
    assert [status for status, _, _ in answers(await read_to_end(reader))] == [200]
    await hang_up(writer)


async def test_no_timeout_while_the_application_does_not_read(hasty: RunningServer) -> None:
    async with hasty.client() as client:
        answer = await client.post("/busy-upload?seconds=3", content=b"x" * 3_000_000, timeout=20)
    assert answer.json()["received"] == 3_000_000


async def test_rest_of_a_refused_body_is_read_briefly(hasty: RunningServer) -> None:
    reader, writer = await hasty.raw()
    writer.write(b"POST /refuse HTTP/1.1\r\nHost: a\r\nContent-Length: 20000000\r\n\r\nabc")
    [(status, _, _)] = answers(await read_to_end(reader))
    assert status == 413
    await hang_up(writer)


@pytest.mark.parametrize(
    "path", ["/stream?bytes=20000&seconds=0.001", "/big?bytes=8000000"], ids=["stream", "one answer"]
)
async def test_stalled_reader_is_disconnected(hasty: RunningServer, path: str) -> None:
    async with hasty.client() as client:  # the first request opens what the server keeps
        await client.get("/big?bytes=1")
    await asyncio.sleep(0.2)
    before = hasty.counts().descriptors
    connections = [await stalled(hasty, path) for _ in range(5)]
    await asyncio.sleep(0.5)
    assert hasty.counts().descriptors >= before + 5
    assert await hasty.settled_descriptors(before, within_seconds=8) <= before
    for connection in connections:
        connection.close()


@pytest.mark.parametrize("header", ["Connection: close", "Connection: keep-alive"])
async def test_slow_steady_reader_gets_the_whole_answer(hasty: RunningServer, header: str) -> None:
    reader, writer = await hasty.raw(limit=4096)
    writer.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32768)
    writer.write(b"GET /big?bytes=2000000 HTTP/1.1\r\nHost: localhost\r\n%s\r\n\r\n" % header.encode())
    await read_head(reader)
    received = 0
    while received < 2_000_000:
        piece = await asyncio.wait_for(reader.read(25_000), 5)
        assert piece, f"cut off after {received} bytes"
        received += len(piece)
        await asyncio.sleep(0.05)
    assert received == 2_000_000
    await hang_up(writer)


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
