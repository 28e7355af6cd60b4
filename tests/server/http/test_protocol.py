"""HTTP/1.1 on connections to this process: what is refused, the deadlines of head, body and reader, and a client
that goes away.
"""

import asyncio
import json
import re
import socket
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from svc.config import Config
from svc.server.http.head import METHODS
from svc.server.http.protocol import Protocol
from tests.support.cases import each
from tests.support.connections import GET, LAST_GET, answers, assert_refused, read_head
from tests.support.server import hang_up, read_to_end
from tests.support.tiny_app import create_app
from tests.support.waiting import until
from tests.support.wire import Sockets, listening_sockets, stalled

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


class Uploads:
    """An application that reads nothing until `reads` is set, and counts the bytes that it has `received`."""

    def __init__(self) -> None:
        self.reads = asyncio.Event()
        self.received = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.reads.wait()
        more = True
        while more:
            message = await receive()
            self.received += len(message.get("body", b""))
            more = message.get("more_body", False)
        if message["type"] == "http.request":
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
            await send({"type": "http.response.body"})


@pytest.fixture
def tiny() -> Any:
    """The tiny application. `state` counts what it does."""
    return create_app(Config())


@pytest.fixture
async def server(tiny: Any) -> AsyncIterator[Sockets]:
    async with listening_sockets(tiny) as wire:
        yield wire


@each("data", REFUSED.values())
async def test_invalid_http_is_refused_once_in_the_error_shape(server: Sockets, data: bytes) -> None:
    assert_refused(await server.exchange(data), 400, "invalid_request")


@each(
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
async def test_invalid_chunks_are_refused_during_the_body(data: bytes) -> None:
    app = Uploads()
    app.reads.set()
    async with listening_sockets(app) as wire:
        reader, writer = await wire.raw()
        writer.write(CHUNKED + b"3\r\nabc\r\n")
        await until(lambda: app.received == 3)
        writer.write(data + GET)
        assert_refused(await read_to_end(reader), 400, "invalid_request")
        await hang_up(writer)


@each("line", [b"BREW /healthz", b"TRACE /healthz", b"PURGE /admin/audit", b"PROPFIND /nothing"])
async def test_unknown_method_is_405_on_every_path(server: Sockets, line: bytes) -> None:
    data = await server.exchange(line + b" HTTP/1.1\r\nHost: a\r\n\r\n")
    assert_refused(data, 405, "method_not_allowed")
    assert answers(data)[0][1]["allow"] == METHODS


@each(
    "head",
    [
        b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: 1\r\n" * 20_000 + b"\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: 1\r\n" * 100 + b"\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 66_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 66_000,  # refused before its end
        b"GET /" + b"x" * 66_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
        b"\r\n" * 40_000,
        b"PRI" + b"x" * 66_000,
    ],
)
async def test_a_head_over_64_kib_or_100_lines_is_refused(server: Sockets, head: bytes) -> None:
    data = await server.exchange(head)
    [(status, _, _)] = answers(data)
    assert status == 431 or (head.startswith(b"PRI") and status == 400)


async def test_a_head_just_under_the_limits_is_served(server: Sockets) -> None:
    lines = b"".join(b"X-%d: %s\r\n" % (number, b"x" * 600) for number in range(98))
    [(status, _, _)] = answers(await server.exchange(LAST_GET[:-2] + lines + b"\r\n"))
    assert status == 200


@each("filler", [b"0\r\nX: " + b"x" * 70_000, b"1;" + b"x" * 70_000])
async def test_trailers_and_chunk_extensions_are_limited(filler: bytes) -> None:
    app = Uploads()
    app.reads.set()
    async with listening_sockets(app) as wire:
        reader, writer = await wire.raw()
        writer.write(CHUNKED + b"3\r\nabc\r\n")
        await until(lambda: app.received == 3)
        writer.write(filler)
        assert_refused(await read_to_end(reader), 431, "headers_too_large")
        await hang_up(writer)


async def test_trailers_do_not_become_headers(server: Sockets) -> None:
    reader, writer = await server.raw()
    writer.write(CHUNKED + b"3\r\nabc\r\n0\r\nAuthorization: Bearer forged\r\n\r\n")
    head = await read_head(reader)
    body = json.loads(await reader.readexactly(int(re.search(rb"content-length: (\d+)", head)[1])))  # type: ignore[index]
    assert body == {"received": 3, "headers": {"host": "localhost", "transfer-encoding": "chunked"}}
    writer.write(LAST_GET)
    assert [status for status, _, _ in answers(await read_to_end(reader))] == [200]
    await hang_up(writer)


async def test_an_upgrade_is_ignored_and_the_next_request_served(server: Sockets) -> None:
    upgrade = GET[:-2] + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    assert [status for status, _, _ in answers(await server.exchange(upgrade + upgrade + LAST_GET))] == [200, 200, 200]
    assert [status for status, _, _ in answers(await server.exchange(upgrade + b"nonsense\r\n\r\n"))] == [200, 400]


async def test_exception_below_all_handlers_is_500_in_the_error_shape(server: Sockets) -> None:
    data = await server.exchange(LAST_GET.replace(b"/healthz", b"/crash"))
    assert_refused(data, 500, "internal_error")
    assert b"nobody may see" not in data


async def test_pipelined_requests_are_answered_in_order(server: Sockets) -> None:
    post = b"POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
    found = answers(await server.exchange(GET + post + GET + LAST_GET + GET))
    assert [status for status, _, _ in found] == [200, 200, 200, 200]
    assert [b"received" in body for _, _, body in found] == [False, True, False, False]


SLOW = b"POST /busy-upload?seconds=0.02 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"


@each("invalid", [b"GET / HTTP/1.1\r\n\r\n", CHUNKED + b"zz\r\n"])
async def test_invalid_pipelined_request_is_refused_after_earlier_answers(server: Sockets, invalid: bytes) -> None:
    found = answers(await server.exchange(SLOW + GET + invalid))
    assert [status for status, _, _ in found] == [200, 200, 400]


async def test_at_most_64_pipelined_requests_wait(server: Sockets) -> None:
    found = answers(await server.exchange(SLOW + GET * 3000))
    assert [status for status, _, _ in found] == [200] * 65 + [400]


async def test_disconnect_ends_the_running_pipelined_request(server: Sockets, tiny: Any) -> None:
    _, writer = await server.raw()
    writer.write(GET.replace(b"/healthz", b"/watch") + GET)
    await until(lambda: tiny.state.watched == 1)
    await hang_up(writer)
    await until(lambda: tiny.state.left == 1)


@each("way", ["FIN", "RST"])
async def test_disconnect_is_detected_at_once(server: Sockets, tiny: Any, way: str) -> None:
    """Without a deadline: the clock stands still."""
    left, watched = tiny.state.left, tiny.state.watched
    connection = socket.create_connection(server.address)
    connection.sendall(GET.replace(b"/healthz", b"/watch"))
    await until(lambda: tiny.state.watched == watched + 1)
    if way == "FIN":
        connection.shutdown(socket.SHUT_WR)
    else:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        connection.close()
    await until(lambda: tiny.state.left == left + 1)
    connection.close()


async def test_disconnect_of_a_stalled_client_is_detected_at_once(server: Sockets, tiny: Any) -> None:
    connection = await stalled(server, "/stream?bytes=200000&seconds=0")
    assert tiny.state.left == 0
    connection.shutdown(socket.SHUT_WR)
    await until(lambda: tiny.state.left == 1)
    connection.close()


async def test_100_continue_is_sent_when_the_body_is_read(server: Sockets) -> None:
    reader, writer = await server.raw()
    writer.write(POST + b"Content-Length: 5\r\nExpect: 100-continue\r\n\r\n")
    assert await read_head(reader) == b"HTTP/1.1 100 Continue\r\n\r\n"
    writer.write(b"hello")
    [(status, _, body)] = answers(await read_to_end(reader))
    assert (status, json.loads(body)["received"]) == (200, 5)
    await hang_up(writer)


async def test_100_continue_is_not_sent_for_a_refused_body(server: Sockets) -> None:
    data = await server.exchange(
        b"POST /refuse HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"
    )
    [(status, headers, _)] = answers(data)
    assert (status, headers["connection"]) == (413, "close")


async def test_refusal_reaches_a_client_that_reads_after_sending(server: Sockets) -> None:
    def send_all() -> bytes:
        with socket.create_connection(server.address) as client:
            client.sendall(b"POST /refuse HTTP/1.1\r\nHost: a\r\nContent-Length: 5000000\r\n\r\n")
            for _ in range(50):
                client.sendall(b"x" * 100_000)
            return client.recv(1000)

    assert b" 413 " in await asyncio.to_thread(send_all)


async def opened(wire: Sockets, data: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, Protocol]:
    """The ends of a connection whose first bytes the server has read."""
    reader, writer = await wire.raw()
    writer.write(data)
    await wire.until_busy()
    [protocol] = wire.connections
    return reader, writer, protocol


async def test_endless_head_is_408_after_10_seconds(server: Sockets) -> None:
    reader, writer, protocol = await opened(server, b"GET / HTTP/1.1\r\nHost: a\r\n")
    for _ in range(20):
        writer.write(b"X: 1\r\n")
        await asyncio.sleep(0)
        server.pass_seconds(0.5)
    assert not protocol.transport.is_closing()
    server.pass_seconds(0.5)
    assert_refused(await read_to_end(reader), 408, "request_timeout")
    await hang_up(writer)


async def test_head_of_a_later_request_has_a_deadline(server: Sockets) -> None:
    reader, writer = await server.raw()
    writer.write(GET)
    assert b"200" in await read_head(reader)
    assert await reader.readexactly(15)
    server.pass_seconds(30)
    writer.write(b"GET / HT")
    await server.until_busy()
    [protocol] = server.connections
    server.pass_seconds(10)
    assert not protocol.transport.is_closing()
    server.pass_seconds(0.5)
    assert_refused(await read_to_end(reader), 408, "request_timeout")
    await hang_up(writer)


@each(("sent", "seconds"), [(b"", 10), (GET, 60)])
async def test_silent_connection_is_closed_without_an_answer(server: Sockets, sent: bytes, seconds: int) -> None:
    reader, writer = await server.raw()
    writer.write(sent)
    answer = await reader.readuntil(b"}") if sent else b""
    await until(lambda: server.connections)
    [protocol] = server.connections
    await until(lambda: protocol.idle)
    server.pass_seconds(seconds)
    assert not protocol.transport.is_closing()
    server.pass_seconds(0.5)
    assert len(answers(answer + await read_to_end(reader))) == (1 if sent else 0)
    await hang_up(writer)
    await until(lambda: not server.connections)


@each("head", [CHUNKED, POST + b"Content-Length: 100000\r\n\r\n"])
async def test_slow_body_is_408_after_15_seconds(server: Sockets, head: bytes) -> None:
    reader, writer, protocol = await opened(server, head)
    for _ in range(30):
        writer.write(b"1\r\nx\r\n" if head is CHUNKED else b"x")
        await asyncio.sleep(0)
        server.pass_seconds(0.5)
    assert not protocol.transport.is_closing()
    server.pass_seconds(0.5)
    assert_refused(await read_to_end(reader), 408, "request_timeout")
    await hang_up(writer)
    await until(lambda: not server.connections)


@each(("bytes_per_second", "seconds"), [(2048, 60), (200 * 1024, 70)])
async def test_steady_body_may_exceed_the_grace_time_and_a_fast_one_a_minute(
    bytes_per_second: int, seconds: int
) -> None:
    """1 KiB a second is enough for the grace time. The whole body has a minute, and a second more for each 128 KiB."""
    app = Uploads()
    app.reads.set()
    async with listening_sockets(app) as wire:
        reader, writer, protocol = await opened(wire, POST + b"Content-Length: 5000000000\r\n\r\n")
        for second in range(1, seconds + 1):
            writer.write(b"x" * bytes_per_second)
            await until(lambda sent=second * bytes_per_second: app.received == sent, every_seconds=0)  # type: ignore[misc]
            wire.pass_seconds(1)
            assert not protocol.transport.is_closing()
        if seconds == 60:
            wire.pass_seconds(1.5)  # 120 KiB have earned most of a second
            assert_refused(await read_to_end(reader), 408, "request_timeout")
        await hang_up(writer)


async def test_fast_beginning_of_a_body_earns_no_more_than_the_grace_time() -> None:
    app = Uploads()
    app.reads.set()
    async with listening_sockets(app) as wire:
        reader, writer, protocol = await opened(wire, POST + b"Content-Length: 5000000\r\n\r\n")
        writer.write(b"x" * 1_000_000)
        await until(lambda: app.received == 1_000_000)
        wire.pass_seconds(15)
        assert not protocol.transport.is_closing()
        wire.pass_seconds(1)
        assert_refused(await read_to_end(reader), 408, "request_timeout")
        await hang_up(writer)


async def test_no_timeout_while_the_application_does_not_read() -> None:
    app = Uploads()
    async with listening_sockets(app) as wire:
        _, writer, protocol = await opened(wire, POST + b"Content-Length: 3000000\r\n\r\n")
        writer.write(b"x" * 3_000_000)
        await until(lambda: not protocol.transport.is_reading())
        wire.pass_seconds(1000)
        assert not protocol.transport.is_closing()
        app.reads.set()
        await until(lambda: app.received == 3_000_000)
        await hang_up(writer)


async def test_rest_of_a_refused_body_is_read_for_5_seconds(server: Sockets) -> None:
    reader, writer = await server.raw()
    writer.write(b"POST /refuse HTTP/1.1\r\nHost: a\r\nContent-Length: 20000000\r\n\r\nabc")
    answer = await reader.readuntil(b"}")
    [protocol] = server.connections
    server.pass_seconds(5)
    assert not protocol.transport.is_closing()
    server.pass_seconds(0.5)
    [(status, _, _)] = answers(answer + await read_to_end(reader))
    assert status == 413
    await hang_up(writer)


@each("path", ["/stream?bytes=200000&seconds=0", "/big?bytes=8000000"])
async def test_stalled_reader_is_disconnected_within_30_seconds(server: Sockets, path: str) -> None:
    connection = await stalled(server, path)
    server.pass_seconds(24.5)
    assert server.connections
    server.pass_seconds(5.5)
    await until(lambda: not server.connections)
    connection.close()


@each("header", ["Connection: close", "Connection: keep-alive"])
async def test_slow_steady_reader_gets_the_whole_answer(server: Sockets, header: str) -> None:
    connection = await stalled(server, f"/big?bytes=2000000 HTTP/1.1\r\n{header}\r\nX:")
    [protocol] = server.connections
    received, taken = 0, protocol.outgoing()
    while received < 2_000_000:
        # A smaller piece, as on a busy machine, may free too little of the window, and the server then sends nothing.
        size = min(400_000, 2_000_000 - received)
        piece = await asyncio.to_thread(connection.recv, size, socket.MSG_WAITALL)
        assert piece, f"cut off after {received} bytes"
        received += len(piece)
        if received < 1_900_000:  # the rest may be in the client's buffer
            await until(lambda before=taken: protocol.outgoing() != before)  # type: ignore[misc]
        taken = protocol.outgoing()
        server.pass_seconds(20)
    connection.close()
    await until(lambda: not server.connections)


async def test_shutdown_closes_idle_connections_at_once_and_others_after_their_answer(server: Sockets) -> None:
    idle, idle_writer = await server.raw()
    idle_writer.write(GET)
    await idle.readuntil(b"}")
    busy, busy_writer = await server.raw()
    busy_writer.write(POST + b"Content-Length: 5\r\n\r\n")
    await until(lambda: sum(connection.idle for connection in server.connections) == 1)
    server.shutdown()
    assert await read_to_end(idle) == b""
    busy_writer.write(b"hello")
    [(status, headers, _)] = answers(await read_to_end(busy))
    assert (status, headers["connection"]) == (200, "close")
    await hang_up(idle_writer)
    await hang_up(busy_writer)
