"""The server against real sockets: its start, what it refuses, its deadlines, and its end."""

import asyncio
import contextlib
import json
import os
import re
import resource
import signal
import socket
import ssl
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives import serialization

from svc.errors import StartError
from svc.secrets import open_folder, served_address, tls_files
from svc.server.serve import bind
from tests.support.server import APP, ROOT, RunningServer, hang_up, read_to_end, running_server, running_server_sync, start_fails

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
CHUNKED = b"POST /upload HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server with its real deadlines."""
    with running_server_sync(tmp_path_factory.mktemp("server"), command=TINY) as running:
        yield running


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server whose deadlines are one to two seconds."""
    with running_server_sync(tmp_path_factory.mktemp("hasty"), SHORT, TINY) as running:
        yield running


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


async def still_serves(server: RunningServer) -> bool:
    async with server.client() as client:
        return (await client.get("/healthz")).status_code == 200


# --- the start


def one_line(outcome: tuple[int, str, str]) -> str:
    status, stdout, stderr = outcome
    assert (status, stdout, stderr.count("\n")) == (1, "", 1), outcome
    assert stderr.startswith("svc: ")
    return stderr


def test_a_busy_port_is_one_line_and_status_1(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        line = one_line(start_fails(tmp_path, {"SVC_PORT": str(other.getsockname()[1])}, TINY))
    assert "address in use" in line


def test_a_port_that_is_taken_between_bind_and_listen_is_one_line_too(tmp_path: Path) -> None:
    assert "address in use" in one_line(start_fails(tmp_path, {"TINY_START": "taken"}, TINY))


def test_a_locked_data_folder_is_one_line_and_status_1(tmp_path: Path) -> None:
    folder = open_folder(tmp_path / "data")
    assert "another server" in one_line(start_fails(tmp_path, command=TINY))
    folder.close()


def test_a_data_folder_that_cannot_be_made_is_one_line_and_status_1(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "data folder" in one_line(start_fails(tmp_path, {"SVC_DATA_DIR": str(tmp_path / "file" / "data")}, TINY))


@pytest.mark.parametrize("broken", ["cert", "key", "other key", "encrypted key"])
def test_a_broken_certificate_is_one_line_and_status_1(tmp_path: Path, broken: str) -> None:
    files = tls_files(tmp_path, ["localhost"], time.time())
    cert, key = files.cert, files.key
    if broken == "cert":
        cert.write_text("nothing")
    if broken == "key":
        key.write_text("nothing")
    if broken == "other key":
        key = tmp_path / "tls" / "ca-key.pem"
    if broken == "encrypted key":
        key = tmp_path / "encrypted.pem"
        lock = serialization.BestAvailableEncryption(b"x")
        private = serialization.load_pem_private_key(files.key.read_bytes(), None)
        key.write_bytes(private.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, lock))
    env = {"SVC_TLS": "files", "SVC_TLS_CERT": str(cert), "SVC_TLS_KEY": str(key)}
    assert "certificate" in one_line(start_fails(tmp_path, env, TINY))


def test_connections_inherit_what_notices_a_client_that_vanished() -> None:
    with bind("127.0.0.1", 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP
        listener.listen()
        with socket.create_connection(listener.getsockname()), listener.accept()[0] as connection:
            assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            options = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT, socket.TCP_USER_TIMEOUT)
            assert [connection.getsockopt(socket.IPPROTO_TCP, option) for option in options] == [30, 10, 3, 30_000]


def test_a_host_that_is_none_of_this_machine_cannot_be_bound() -> None:
    with pytest.raises(StartError, match=r"cannot listen on 192\.0\.2\.1"):
        bind("192.0.2.1", 0)


def test_a_start_that_the_application_refuses_is_one_line_and_status_1(tmp_path: Path) -> None:
    assert "the start is refused" in one_line(start_fails(tmp_path, {"TINY_START": "refuse"}, TINY))


def test_a_fault_of_ours_at_the_start_is_shown_and_ends_with_status_1(tmp_path: Path) -> None:
    status, stdout, stderr = start_fails(tmp_path, {"TINY_START": "crash"}, TINY)
    assert (status, stdout) == (1, "")
    assert "a fault of ours" in stderr
    assert stderr.splitlines()[-1].startswith("svc: ")


@pytest.mark.parametrize(("host", "shown"), [("127.0.0.1", "127.0.0.1"), ("localhost", "localhost"), ("0.0.0.0", "localhost")])
async def test_the_first_line_is_the_address_and_the_second_the_ca(tmp_path: Path, host: str, shown: str) -> None:
    async with running_server(tmp_path, {"SVC_HOST": host}, TINY) as server:
        first, second = server.stdout().splitlines()
        assert re.fullmatch(rf"listening on https://{re.escape(shown)}:{server.port}", first)
        assert second.endswith(f"--cacert {server.ca}")
        assert await still_serves(server)


async def test_an_ipv6_address_stands_in_brackets(tmp_path: Path) -> None:
    async with running_server(tmp_path, {"SVC_HOST": "::1"}, TINY) as server:
        assert server.stdout().startswith(f"listening on https://[::1]:{server.port}\n")
        assert await still_serves(server)


async def test_every_address_of_both_kinds_is_bound_by_two_colons(tmp_path: Path) -> None:
    async with running_server(tmp_path, {"SVC_HOST": "::"}, TINY) as server:
        for host in ("127.0.0.1", "[::1]"):
            async with server.client(base_url=f"https://{host}:{server.port}") as client:
                assert (await client.get("/healthz")).status_code == 200


async def test_behind_a_proxy_it_speaks_plain_http_and_says_so(tmp_path: Path) -> None:
    async with running_server(tmp_path, {"SVC_TLS": "proxy", "SVC_TRUSTED_PROXIES": "127.0.0.1"}, TINY) as server:
        first, second = server.stdout().splitlines()
        assert first == f"listening on https://127.0.0.1:{server.port}"
        assert "plain HTTP" in second
        assert answers(await server.exchange(LAST_GET))[0][0] == 200
        assert_refused(await server.exchange(b"\x16\x03\x01\x02\x00\x01\r\n\r\n"), 400, "invalid_request")


async def test_certificate_files_are_served_as_they_are(tmp_path: Path) -> None:
    files = tls_files(tmp_path, ["127.0.0.1"], time.time())
    env = {"SVC_TLS": "files", "SVC_TLS_CERT": str(files.cert), "SVC_TLS_KEY": str(files.key)}
    async with running_server(tmp_path, env, TINY) as server:
        assert server.stdout().count("\n") == 1
        async with server.client(verify=ssl.create_default_context(cafile=files.ca)) as client:
            assert (await client.get("/healthz")).status_code == 200


async def test_tls_is_1_2_or_newer_and_speaks_http_1_1(server: RunningServer) -> None:
    context = ssl.create_default_context(cafile=server.ca)
    context.set_alpn_protocols(["h2", "http/1.1"])
    _, writer = await asyncio.open_connection(server.host, server.port, ssl=context)
    assert writer.get_extra_info("ssl_object").selected_alpn_protocol() == "http/1.1"
    await hang_up(writer)
    old = ssl.create_default_context(cafile=server.ca)
    old.set_ciphers("DEFAULT:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning):
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await asyncio.open_connection(server.host, server.port, ssl=old)


async def test_plain_http_gets_no_service_on_the_tls_port(server: RunningServer) -> None:
    reader, writer = await asyncio.open_connection(server.host, server.port)
    writer.write(LAST_GET)
    assert b"HTTP" not in await read_to_end(reader, within_seconds=2)
    await hang_up(writer)


# --- what is refused

POST = b"POST /upload HTTP/1.1\r\nHost: a\r\n"
REFUSED: Mapping[str, bytes] = {
    "no host": b"GET / HTTP/1.1\r\n\r\n",
    "two hosts": b"GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n",
    "two hosts in 1.0": b"GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n",
    "absolute form": b"GET https://a/healthz HTTP/1.1\r\nHost: a\r\n\r\n",
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
async def test_what_is_no_good_http_is_refused_once_in_the_error_shape(server: RunningServer, data: bytes) -> None:
    assert_refused(await server.exchange(data), 400, "invalid_request")


@pytest.mark.parametrize(
    "data", [b"zz\r\n", b"-1\r\nx\r\n", b"f" * 17 + b"\r\n", b"0x1\r\nx\r\n", b"1\r\nxx0\r\n\r\n", b"1\nx\n0\n\n", b"1 \r\nx\r\n"]
)
async def test_bad_chunks_are_refused_while_the_body_is_read(server: RunningServer, data: bytes) -> None:
    reader, writer = await server.raw()
    writer.write(CHUNKED + b"3\r\nabc\r\n")
    await asyncio.sleep(0.05)
    writer.write(data + GET)
    assert_refused(await read_to_end(reader), 400, "invalid_request")
    await hang_up(writer)


async def test_an_unknown_method_is_405_with_what_there_is(server: RunningServer) -> None:
    data = await server.exchange(b"BREW /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
    assert_refused(data, 405, "method_not_allowed")
    assert "POST" in answers(data)[0][1]["allow"]


async def test_a_known_method_is_the_applications_to_answer(server: RunningServer) -> None:
    [(status, _, _)] = answers(await server.exchange(LAST_GET.replace(b"GET", b"PURGE")))
    assert status == 405


async def test_a_header_of_20_mb_is_refused_at_once_and_not_kept(server: RunningServer) -> None:
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


@pytest.mark.parametrize("filler", [b"0\r\nX: " + b"x" * 70_000, b"1;" + b"x" * 70_000], ids=["trailer", "chunk extension"])
async def test_what_surrounds_a_body_is_limited_as_a_head_is(server: RunningServer, filler: bytes) -> None:
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


async def test_a_fault_below_every_handler_is_a_500_in_the_error_shape(server: RunningServer) -> None:
    data = await server.exchange(LAST_GET.replace(b"/healthz", b"/crash"))
    assert_refused(data, 500, "internal_error")
    assert b"nobody may see" not in data


# --- requests in a row


async def test_pipelined_requests_are_answered_in_order(server: RunningServer) -> None:
    post = b"POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
    found = answers(await server.exchange(GET + post + GET + LAST_GET + GET))
    assert [status for status, _, _ in found] == [200, 200, 200, 200]
    assert [b"received" in body for _, _, body in found] == [False, True, False, False]


async def test_a_bad_request_behind_good_ones_is_refused_after_their_answers(server: RunningServer) -> None:
    slow = b"POST /busy-upload?seconds=0.3 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
    found = answers(await server.exchange(slow + GET + b"GET / HTTP/1.1\r\n\r\n"))
    assert [status for status, _, _ in found] == [200, 200, 400]


async def test_a_bad_body_behind_good_requests_is_refused_after_their_answers(server: RunningServer) -> None:
    slow = b"POST /busy-upload?seconds=0.3 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
    found = answers(await server.exchange(slow + GET + CHUNKED + b"zz\r\n"))
    assert [status for status, _, _ in found] == [200, 200, 400]


async def test_a_flood_of_pipelined_requests_is_cut_after_64(server: RunningServer) -> None:
    slow = b"POST /busy-upload?seconds=0.3 HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"
    found = answers(await server.exchange(slow + GET * 3000))
    assert [status for status, _, _ in found] == [200] * 65 + [400]


async def test_a_client_that_leaves_ends_the_request_that_runs_not_only_the_last_one(server: RunningServer) -> None:
    async with server.client() as client:
        before = (await client.get("/left")).json()
        _, writer = await server.raw()
        writer.write(GET.replace(b"/healthz", b"/watch") + GET)
        await asyncio.sleep(0.1)
        await hang_up(writer)
        await until(lambda: left_is(client, before + 1))


@pytest.mark.parametrize("way", ["FIN", "RST", "close_notify"])
async def test_a_client_that_goes_away_is_noticed_at_once(server: RunningServer, way: str) -> None:
    async with server.client() as client:
        before = (await client.get("/left")).json()
        connection = await connected(server)
        connection.sendall(GET.replace(b"/healthz", b"/watch"))
        await asyncio.sleep(0.1)
        if way == "close_notify":
            connection.settimeout(0.3)
            with contextlib.suppress(TimeoutError, ssl.SSLError):
                await asyncio.to_thread(connection.unwrap)
        if way == "FIN":
            connection.shutdown(socket.SHUT_WR)
        if way == "RST":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
            connection.close()
        await until(lambda: left_is(client, before + 1))
        connection.close()


async def test_a_client_that_says_good_bye_while_it_does_not_read_is_noticed_at_once(server: RunningServer) -> None:
    async with server.client() as client:
        before = (await client.get("/left")).json()
        connection = await stalled(server, "/stream?bytes=20000&seconds=0.001")
        await asyncio.sleep(0.5)
        connection.settimeout(0.1)
        with contextlib.suppress(TimeoutError, ssl.SSLError):
            await asyncio.to_thread(connection.unwrap)
        await until(lambda: left_is(client, before + 1))
        connection.close()


async def left_is(client: httpx.AsyncClient, number: int) -> bool:
    return bool((await client.get("/left")).json() == number)


async def until(holds: Any, within_seconds: float = 2.0) -> None:
    async with asyncio.timeout(within_seconds):
        while not await holds():
            await asyncio.sleep(0.02)


async def test_100_continue_is_sent_when_the_body_is_wanted(server: RunningServer) -> None:
    reader, writer = await server.raw()
    writer.write(POST + b"Content-Length: 5\r\nExpect: 100-continue\r\n\r\n")
    assert await read_head(reader) == b"HTTP/1.1 100 Continue\r\n\r\n"
    writer.write(b"hello")
    [(status, _, body)] = answers(await read_to_end(reader))
    assert (status, json.loads(body)["received"]) == (200, 5)
    await hang_up(writer)


async def test_100_continue_is_not_sent_for_a_body_that_is_refused(server: RunningServer) -> None:
    data = await server.exchange(b"POST /refuse HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
    [(status, headers, _)] = answers(data)
    assert (status, headers["connection"]) == (413, "close")


@pytest.mark.parametrize("connection", [b"close", b"keep-alive"])
async def test_a_refusal_reaches_a_client_that_reads_only_after_it_has_sent_all(server: RunningServer, connection: bytes) -> None:
    head = b"POST /refuse HTTP/1.1\r\nHost: a\r\nContent-Length: 20000000\r\nConnection: %s\r\n\r\n" % connection
    client = await connected(server)
    await asyncio.to_thread(client.sendall, head)
    for _ in range(20):
        await asyncio.to_thread(client.sendall, b"x" * 1_000_000)
        await asyncio.sleep(0.02)
    assert b"413" in await asyncio.to_thread(client.recv, 1000)
    client.close()


async def test_an_answer_does_not_wait_for_an_acknowledgement(server: RunningServer) -> None:
    async with server.client() as client:
        await client.get("/healthz")
        began = time.monotonic()
        for _ in range(20):
            await client.post("/upload", content=b"x")
        assert time.monotonic() - began < 20 * 0.035


# --- deadlines


async def test_a_head_that_never_ends_is_cut_with_408(hasty: RunningServer) -> None:
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
    assert 0.4 < time.monotonic() - began < 5
    trickling.cancel()
    await hang_up(writer)


async def test_the_head_of_a_later_request_has_its_deadline_too(hasty: RunningServer) -> None:
    reader, writer = await hasty.raw()
    writer.write(GET)
    assert b"200" in await read_head(reader)
    assert await reader.readexactly(15)
    writer.write(b"GET / HT")
    assert_refused(await read_to_end(reader), 408, "request_timeout")
    await hang_up(writer)


@pytest.mark.parametrize("sent", [b"", GET], ids=["from the start", "after a request"])
async def test_a_silent_connection_is_closed_without_a_word(hasty: RunningServer, sent: bytes) -> None:
    assert len(answers(await hasty.exchange(sent))) == (1 if sent else 0)


@pytest.mark.parametrize("head", [CHUNKED, POST + b"Content-Length: 100000\r\n\r\n"], ids=["chunked", "with a length"])
async def test_a_body_that_trickles_is_cut_with_408(hasty: RunningServer, head: bytes) -> None:
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
    assert 1 < time.monotonic() - began < 6
    trickling.cancel()
    await hang_up(writer)


async def test_a_body_that_comes_steadily_may_take_longer_than_the_grace(hasty: RunningServer) -> None:
    reader, writer = await hasty.raw()
    writer.write(POST + b"Content-Length: 16000\r\nConnection: close\r\n\r\n")
    for _ in range(32):
        writer.write(b"x" * 500)
        await asyncio.sleep(0.1)
    assert [status for status, _, _ in answers(await read_to_end(reader))] == [200]
    await hang_up(writer)


async def test_a_client_is_not_blamed_while_the_application_reads_nothing(hasty: RunningServer) -> None:
    async with hasty.client() as client:
        answer = await client.post("/busy-upload?seconds=3", content=b"x" * 3_000_000, timeout=20)
    assert answer.json()["received"] == 3_000_000


async def test_the_rest_of_a_refused_body_is_awaited_only_briefly(hasty: RunningServer) -> None:
    reader, writer = await hasty.raw()
    writer.write(b"POST /refuse HTTP/1.1\r\nHost: a\r\nContent-Length: 20000000\r\n\r\nabc")
    [(status, _, _)] = answers(await read_to_end(reader))
    assert status == 413
    await hang_up(writer)


async def stalled(server: RunningServer, path: str) -> ssl.SSLSocket:
    """A connection that asks for `path` and then reads nothing."""
    connection = await connected(server, receive_buffer_bytes=16384)
    connection.sendall(b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % path.encode())
    return connection


@pytest.mark.parametrize("path", ["/stream?bytes=20000&seconds=0.001", "/big?bytes=8000000"], ids=["stream", "one answer"])
async def test_a_reader_that_stops_reading_is_cut(hasty: RunningServer, path: str) -> None:
    await asyncio.sleep(0.2)
    before = hasty.counts().descriptors
    connections = [await stalled(hasty, path) for _ in range(5)]
    await asyncio.sleep(0.5)
    assert hasty.counts().descriptors >= before + 5
    assert await hasty.settled_descriptors(before, within_seconds=8) <= before
    for connection in connections:
        connection.close()


@pytest.mark.parametrize("header", ["Connection: close", "Connection: keep-alive"])
async def test_a_slow_but_steady_reader_gets_everything(hasty: RunningServer, header: str) -> None:
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
async def test_500_readers_that_stop_reading_are_cut_within_30_seconds_without_harm_to_others(tmp_path: Path) -> None:
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


# --- many connections


async def test_1000_idle_connections_leave_nothing_behind(server: RunningServer) -> None:
    before = await server.settled_descriptors(15)
    connections = [await server.raw() for _ in range(1000)]
    for _, writer in connections[::2]:
        writer.write(GET)
    assert await still_serves(server)
    assert server.counts().descriptors >= before + 1000
    for _, writer in connections:
        await hang_up(writer)
    assert await server.settled_descriptors(before) <= before


async def test_memory_comes_back_when_many_connections_have_gone(hasty: RunningServer) -> None:
    await asyncio.sleep(0.6)
    before, peak = hasty.counts(), 0
    for _ in range(3):
        connections = [await hasty.raw() for _ in range(300)]
        for reader, writer in connections:
            writer.write(GET)
            await reader.readuntil(b"}")
        peak = max(peak, hasty.counts().rss_bytes)
        for _, writer in connections:
            await hang_up(writer)
        await hasty.settled_descriptors(before.descriptors)
    await asyncio.sleep(0.7)
    assert hasty.counts().rss_bytes - before.rss_bytes < (peak - before.rss_bytes) / 2
    assert hasty.counts().threads == before.threads


async def test_a_server_without_descriptors_recovers(tmp_path: Path) -> None:
    def few() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))

    async with running_server(tmp_path, command=TINY, preexec_fn=few) as server:
        connections = [socket.create_connection((server.host, server.port)) for _ in range(100)]
        await asyncio.sleep(0.3)
        for connection in connections:
            connection.close()
        await server.settled_descriptors(20)
        assert await still_serves(server)


async def test_more_descriptors_are_taken_than_a_shell_gives(tmp_path: Path) -> None:
    def usual() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 4096))

    async with running_server(tmp_path, command=TINY, preexec_fn=usual) as server:
        connections = [await server.raw() for _ in range(100)]
        assert await still_serves(server)
        for _, writer in connections:
            await hang_up(writer)


# --- the end


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_60_open_streams_end_with_their_last_event_and_status_0(tmp_path: Path, number: signal.Signals) -> None:
    async with running_server(tmp_path, command=TINY) as server:
        streams = [await server.raw() for _ in range(60)]
        for _, writer in streams:
            writer.write(GET.replace(b"/healthz", b"/stream"))
        for reader, _ in streams:
            await reader.readuntil(b"data: begun\n\n")
        began = time.monotonic()
        server.send_signal(number)
        ends = await asyncio.gather(*(read_to_end(reader) for reader, _ in streams))
        assert await server.wait() == 0
        assert time.monotonic() - began < 2
        assert all(end.endswith(b"data: stopped\n\n\r\n0\r\n\r\n") for end in ends)
        assert server.stderr() == ""
        for _, writer in streams:
            await hang_up(writer)


async def test_idle_and_silent_connections_do_not_delay_the_end(tmp_path: Path) -> None:
    async with running_server(tmp_path, command=TINY) as server:
        silent = [socket.create_connection((server.host, server.port)) for _ in range(20)]
        begun = [await server.raw() for _ in range(20)]
        # These never read, so they never say good-bye in TLS either.
        mute = [await stalled(server, "/healthz") for _ in range(20)]
        for _, writer in begun[:10]:
            writer.write(GET)
        for _, writer in begun[10:]:
            writer.write(b"GET / HT")
        await asyncio.sleep(0.3)
        began = time.monotonic()
        assert await server.stop() == 0
        assert time.monotonic() - began < 1.5
        assert server.stderr() == ""
        for connection in [*silent, *mute]:
            connection.close()
        for _, writer in begun:
            await hang_up(writer)


async def test_a_request_in_progress_is_answered_before_the_end(tmp_path: Path) -> None:
    async with running_server(tmp_path, command=TINY) as server, server.client() as client:
        asking = asyncio.create_task(client.post("/busy-upload?seconds=0.7", content=b"hello"))
        await asyncio.sleep(0.3)
        server.send_signal()
        answer = await asking
        assert (answer.status_code, answer.json()["received"], answer.headers["connection"]) == (200, 5, "close")
        assert await server.wait() == 0


async def test_an_answer_that_is_still_being_taken_arrives_whole(tmp_path: Path) -> None:
    async with running_server(tmp_path, command=TINY) as server:
        reader, writer = await server.raw(limit=4096)
        writer.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32768)
        writer.write(GET.replace(b"/healthz", b"/big?bytes=4000000"))
        await read_head(reader)
        await asyncio.sleep(0.2)
        server.send_signal()
        for _ in range(160):
            await reader.readexactly(25_000)
            await asyncio.sleep(0.01)
        assert await server.wait() == 0
        await hang_up(writer)


async def test_a_reader_that_stopped_reading_delays_the_end_only_briefly(tmp_path: Path) -> None:
    async with running_server(tmp_path, command=TINY) as server:
        connections = [await stalled(server, path) for path in ("/stream?bytes=20000&seconds=0.001", "/big?bytes=8000000")]
        await asyncio.sleep(0.5)
        began = time.monotonic()
        assert await server.stop() == 0
        assert time.monotonic() - began < 6
        for connection in connections:
            connection.close()


async def test_an_answer_that_does_not_end_is_cancelled_in_the_end(tmp_path: Path) -> None:
    async with running_server(tmp_path, {"TINY_ANSWERS_SECONDS": "1"}, TINY) as server:
        reader, writer = await server.raw()
        writer.write(GET.replace(b"/healthz", b"/deaf-stream"))
        await read_head(reader)
        began = time.monotonic()
        assert await server.stop() == 0
        assert 0.9 < time.monotonic() - began < 4
        await hang_up(writer)


async def test_a_second_signal_ends_at_once(tmp_path: Path) -> None:
    async with running_server(tmp_path, command=TINY) as server:
        reader, writer = await server.raw()
        writer.write(GET.replace(b"/healthz", b"/deaf-stream"))
        await read_head(reader)
        server.send_signal()
        await asyncio.sleep(0.5)
        assert server.process.poll() is None
        began = time.monotonic()
        assert await server.stop() == 1
        assert time.monotonic() - began < 1
        await hang_up(writer)


async def test_a_killed_server_starts_again_on_the_same_folder(tmp_path: Path) -> None:
    async with running_server(tmp_path, command=TINY) as server:
        ca = server.ca.read_bytes()
        server.kill()
    async with running_server(tmp_path, command=TINY) as server:
        assert server.ca.read_bytes() == ca
        assert await still_serves(server)


# --- the application's own process


async def test_the_application_starts_serves_and_ends(tmp_path: Path) -> None:
    async with running_server(tmp_path, command=(APP,)) as server:
        assert await still_serves(server)
        assert_refused(await server.exchange(b"GET / HTTP/1.1\r\n\r\n"), 400, "invalid_request")
        assert await server.stop() == 0
        assert all(line["event"] != "library" for line in server.log_lines())


# --- what a start finds


async def test_with_closed_standard_streams_it_serves_and_ends_with_status_0(tmp_path: Path) -> None:
    """Whatever is opened next would take the numbers 0 to 2: the log must not be written into it."""
    program = (
        f"import os, sys; [os.close(number) for number in range(3)]; os.execv(sys.executable, [sys.executable, {str(APP)!r}])"
    )
    data = tmp_path / "data"
    env = {**os.environ, "SVC_PORT": "0", "SVC_DATA_DIR": str(data), "SVC_DISCOVER": "0"}
    process = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, env=env)
    try:
        async with asyncio.timeout(20):
            while (address := served_address(data)) is None:
                await asyncio.sleep(0.05)
        async with httpx.AsyncClient(
            base_url=address, verify=ssl.create_default_context(cafile=data / "tls" / "ca.pem")
        ) as client:
            assert (await client.get("/healthz")).status_code == 200
            assert (await client.get("/readyz")).status_code == 200
        process.terminate()
        assert await asyncio.to_thread(process.wait, 10) == 0
    finally:
        process.kill()
        process.wait()
    assert served_address(data) is None
    assert {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in data.rglob("*")} == {0}
