"""The server on real sockets: its start, TLS, descriptors and memory, and its end."""

import asyncio
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
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from cryptography.hazmat.primitives import serialization

from svc.certificates import tls_files
from svc.errors import StartError
from svc.secrets import open_folder
from svc.server import status
from svc.server.http.protocol import Protocol
from svc.server.serve import Server, bind, notify, watchdog_seconds
from tests.support.answers import assert_error
from tests.support.connections import GET, LAST_GET, TINY, answers, assert_refused, read_head, stalled
from tests.support.server import (
    APP,
    COMMAND,
    ROOT,
    RunningServer,
    hang_up,
    read_to_end,
    running_server,
    running_server_sync,
    start_fails,
)
from tests.support.waiting import until


class Supervisor(socket.socket):
    """The socket that NOTIFY_SOCKET names."""

    def heard(self, seconds: float = 10.0) -> str:
        """The next message, or nothing after so long."""
        self.settimeout(seconds)
        try:
            return self.recv(4096).decode()
        except TimeoutError:
            return ""

    def heard_within(self, seconds: float) -> list[str]:
        """All that is said in so long a time."""
        end = time.monotonic() + seconds
        said = []
        while (left := end - time.monotonic()) > 0:
            said.append(self.heard(left))
        return [message for message in said if message]


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    with Supervisor(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        heard.bind(str(tmp_path / "notify"))
        yield heard


def test_supervisor_gets_ready_watchdog_and_stopping(tmp_path: Path, supervisor: Supervisor) -> None:
    env = {"NOTIFY_SOCKET": supervisor.getsockname(), "WATCHDOG_USEC": "200000"}
    with running_server_sync(tmp_path, env, TINY) as server:
        assert [supervisor.heard() for _ in range(4)] == ["READY=1", *["WATCHDOG=1"] * 3]
        server.send_signal(signal.SIGSTOP)
        supervisor.heard_within(0.3)
        assert supervisor.heard_within(0.6) == []
        server.send_signal(signal.SIGCONT)
        assert supervisor.heard() == "WATCHDOG=1"
        server.send_signal(signal.SIGTERM)
        assert server.process.wait(10) == 0
    assert "STOPPING=1" in supervisor.heard_within(0.1)


def test_watchdog_of_another_process_gets_nothing(tmp_path: Path, supervisor: Supervisor) -> None:
    env = {"NOTIFY_SOCKET": supervisor.getsockname(), "WATCHDOG_USEC": "20000", "WATCHDOG_PID": "1"}
    with running_server_sync(tmp_path, env, TINY):
        assert supervisor.heard() == "READY=1"
        assert supervisor.heard_within(0.2) == []


def test_refused_start_sends_no_ready(tmp_path: Path, supervisor: Supervisor) -> None:
    env = {"NOTIFY_SOCKET": supervisor.getsockname(), "TINY_START": "refuse"}
    assert start_fails(tmp_path, env, TINY)[0] == 1
    assert supervisor.heard_within(0.05) == []


def test_notify_socket_may_be_abstract(tmp_path: Path) -> None:
    name = f"svc-test-{os.getpid()}"
    with Supervisor(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
        supervisor.bind(f"\0{name}")
        notify({"NOTIFY_SOCKET": f"@{name}"}, "READY=1")
        assert supervisor.heard() == "READY=1"


@pytest.mark.parametrize("address", ["", "/nowhere", "@nobody", "x" * 200])
def test_missing_notify_socket_is_ignored(address: str) -> None:
    notify({"NOTIFY_SOCKET": address}, "READY=1")
    notify({}, "READY=1")


@pytest.mark.parametrize(
    ("environ", "seconds"),
    [
        ({"WATCHDOG_USEC": "30000000"}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "-5"}, None),
        ({"WATCHDOG_USEC": "9" * 400}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({}, None),
    ],
)
def test_watchdog_interval_comes_from_the_supervisor(environ: dict[str, str], seconds: float | None) -> None:
    assert watchdog_seconds(environ) == seconds


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


def test_port_taken_between_bind_and_listen_is_one_line(tmp_path: Path) -> None:
    assert "address in use" in one_line(start_fails(tmp_path, {"TINY_START": "taken"}, TINY))


def test_a_locked_data_folder_is_one_line_and_status_1(tmp_path: Path) -> None:
    folder = open_folder(tmp_path / "data")
    assert "another server" in one_line(start_fails(tmp_path, command=TINY))
    folder.close()


def test_impossible_data_folder_is_one_line_and_status_1(tmp_path: Path) -> None:
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


def test_connections_have_tcp_user_timeout_and_keepalive() -> None:
    with bind("127.0.0.1", 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP
        listener.listen()
        with socket.create_connection(listener.getsockname()), listener.accept()[0] as connection:
            assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            options = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT, socket.TCP_USER_TIMEOUT)
            assert [connection.getsockopt(socket.IPPROTO_TCP, option) for option in options] == [30, 10, 3, 30_000]


def test_foreign_host_cannot_be_bound() -> None:
    with pytest.raises(StartError, match=r"cannot listen on 192\.0\.2\.1"):
        bind("192.0.2.1", 0)


def test_start_refused_by_the_application_is_one_line_and_status_1(tmp_path: Path) -> None:
    assert "the start is refused" in one_line(start_fails(tmp_path, {"TINY_START": "refuse"}, TINY))


def test_exception_at_the_start_is_shown_with_status_1(tmp_path: Path) -> None:
    status, stdout, stderr = start_fails(tmp_path, {"TINY_START": "crash"}, TINY)
    assert (status, stdout) == (1, "")
    assert "a fault of ours" in stderr
    assert stderr.splitlines()[-1].startswith("svc: ")


@pytest.mark.parametrize(
    ("host", "shown"), [("127.0.0.1", "127.0.0.1"), ("localhost", "localhost"), ("0.0.0.0", "127.0.0.1")]
)
async def test_first_line_is_the_address_and_the_last_the_ca(tmp_path: Path, host: str, shown: str) -> None:
    async with running_server(tmp_path, {"SVC_HOST": host}, TINY) as server:
        first, *_, last = server.stdout().splitlines()
        assert re.fullmatch(rf"listening on https://{re.escape(shown)}:{server.port}", first)
        assert last.endswith(f"--cacert {server.ca}")
        assert await still_serves(server)


async def test_ipv6_address_is_in_brackets(tmp_path: Path) -> None:
    async with running_server(tmp_path, {"SVC_HOST": "::1"}, TINY) as server:
        assert server.stdout().startswith(f"listening on https://[::1]:{server.port}\n")
        assert await still_serves(server)


async def test_two_colons_bind_ipv4_and_ipv6(tmp_path: Path) -> None:
    async with running_server(tmp_path, {"SVC_HOST": "::"}, TINY) as server:
        for host in ("127.0.0.1", "[::1]"):
            async with server.client(base_url=f"https://{host}:{server.port}") as client:
                assert (await client.get("/healthz")).status_code == 200


async def test_behind_a_proxy_plain_http_is_served_and_logged(tmp_path: Path) -> None:
    async with running_server(tmp_path, {"SVC_TLS": "proxy", "SVC_TRUSTED_PROXIES": "127.0.0.1"}, TINY) as server:
        first, second = server.stdout().splitlines()
        assert first == f"listening on https://127.0.0.1:{server.port}"
        assert "plain HTTP" in second
        assert answers(await server.exchange(LAST_GET))[0][0] == 200
        assert_refused(await server.exchange(b"\x16\x03\x01\x02\x00\x01\r\n\r\n"), 400, "invalid_request")


async def test_certificate_files_are_served_unchanged(tmp_path: Path) -> None:
    files = tls_files(tmp_path, ["127.0.0.1"], time.time())
    env = {"SVC_TLS": "files", "SVC_TLS_CERT": str(files.cert), "SVC_TLS_KEY": str(files.key)}
    async with running_server(tmp_path, env, TINY) as server:
        assert server.stdout().count("\n") == 1
        async with server.client(verify=ssl.create_default_context(cafile=files.ca)) as client:
            assert (await client.get("/healthz")).status_code == 200


async def test_tls_is_1_2_or_newer_with_http_1_1(server: RunningServer) -> None:
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


async def test_plain_http_is_refused_on_the_tls_port(server: RunningServer) -> None:
    reader, writer = await asyncio.open_connection(server.host, server.port)
    writer.write(LAST_GET)
    assert b"HTTP" not in await read_to_end(reader, within_seconds=2)
    await hang_up(writer)


# --- what is refused


# --- requests in a row


# --- deadlines


# --- many connections


async def test_memory_and_descriptors_are_released_after_many_connections(tmp_path: Path) -> None:
    # These deadlines are longer than it takes to open 200 connections on a busy machine.
    env = {"TINY_HEAD_SECONDS": "120", "TINY_IDLE_SECONDS": "120", "TINY_TRIM_SECONDS": "0.5"}
    async with running_server(tmp_path, env, TINY) as server:
        assert await still_serves(server)
        await server.settled_descriptors(15)  # that connection is closed
        before, peak = server.counts(), 0
        for _ in range(2):
            connections = [await server.raw() for _ in range(200)]
            for reader, writer in connections[::2]:  # the others say nothing
                writer.write(GET)
                await reader.readuntil(b"}")
            assert server.counts().descriptors >= before.descriptors + 200
            peak = max(peak, server.counts().rss_bytes)
            for _, writer in connections:
                await hang_up(writer)
            assert await server.settled_descriptors(before.descriptors) <= before.descriptors
        await until(lambda: server.counts().rss_bytes - before.rss_bytes < (peak - before.rss_bytes) / 2)
        assert server.counts().threads == before.threads


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


async def test_descriptor_limit_is_raised(tmp_path: Path) -> None:
    def usual() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 4096))

    async with running_server(tmp_path, command=TINY, preexec_fn=usual) as server:
        connections = [await server.raw() for _ in range(100)]
        assert await still_serves(server)
        for _, writer in connections:
            await hang_up(writer)


# --- the end


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_sigterm_ends_60_streams_with_their_final_event(tmp_path: Path, number: signal.Signals) -> None:
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
        assert time.monotonic() - began < Server.answers_seconds
        assert all(end.endswith(b"data: stopped\n\n\r\n0\r\n\r\n") for end in ends)
        assert server.stderr() == ""
        for _, writer in streams:
            await hang_up(writer)


async def test_idle_connections_do_not_delay_shutdown(tmp_path: Path) -> None:
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
        assert time.monotonic() - began < Protocol.stall_seconds_in_drain
        assert server.stderr() == ""
        for connection in [*silent, *mute]:
            connection.close()
        for _, writer in begun:
            await hang_up(writer)


async def test_open_request_is_answered_before_shutdown(tmp_path: Path) -> None:
    async with running_server(tmp_path, command=TINY) as server, server.client() as client:
        asking = asyncio.create_task(client.post("/busy-upload?seconds=0.7", content=b"hello"))
        await asyncio.sleep(0.3)
        server.send_signal()
        answer = await asking
        assert (answer.status_code, answer.json()["received"], answer.headers["connection"]) == (200, 5, "close")
        assert await server.wait() == 0


async def test_partly_read_answer_is_completed_before_shutdown(tmp_path: Path) -> None:
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


async def test_stalled_reader_delays_shutdown_briefly(tmp_path: Path) -> None:
    async with running_server(tmp_path, command=TINY) as server:
        connections = [
            await stalled(server, path) for path in ("/stream?bytes=20000&seconds=0.001", "/big?bytes=8000000")
        ]
        await asyncio.sleep(0.5)
        began = time.monotonic()
        assert await server.stop() == 0
        assert time.monotonic() - began < Server.answers_seconds
        for connection in connections:
            connection.close()


async def test_endless_answer_is_cancelled_at_shutdown(tmp_path: Path) -> None:
    async with running_server(tmp_path, {"TINY_ANSWERS_SECONDS": "1"}, TINY) as server:
        reader, writer = await server.raw()
        writer.write(GET.replace(b"/healthz", b"/deaf-stream"))
        await read_head(reader)
        began = time.monotonic()
        assert await server.stop() == 0
        assert 0.9 < time.monotonic() - began < Server.answers_seconds
        await hang_up(writer)


async def test_a_killed_server_starts_again_on_the_same_folder(tmp_path: Path) -> None:
    async with running_server(tmp_path, command=TINY) as server:
        ca = server.ca.read_bytes()
        server.kill()
    async with running_server(tmp_path, command=TINY) as server:
        assert server.ca.read_bytes() == ca
        assert await still_serves(server)


# --- the application's own process


async def test_application_starts_serves_and_stops(tmp_path: Path) -> None:
    async with running_server(tmp_path, command=COMMAND) as server:
        assert await still_serves(server)
        assert_refused(await server.exchange(b"GET / HTTP/1.1\r\n\r\n"), 400, "invalid_request")
        for method, path, refusal in (
            ("GET", "/nowhere", (404, "not_found")),
            ("POST", "/healthz", (405, "method_not_allowed")),
            ("POST", "/artifacts/x", (405, "method_not_allowed")),
        ):
            async with server.client() as client:
                assert_error(await client.request(method, path), *refusal)
                page = await client.request(method, path, headers={"accept": "text/html"})
                assert (page.status_code, "text/html" in page.headers["content-type"]) == (
                    refusal[0],
                    path == "/nowhere",
                )
        assert await server.stop() == 0
        assert all(line["event"] != "library" for line in server.log_lines())


# --- what a start finds


async def test_closed_standard_streams_are_ignored(tmp_path: Path) -> None:
    """Whatever is opened next would take the numbers 0 to 2: the log must not be written into it."""
    program = f"import os, sys; [os.close(number) for number in range(3)]; os.execv(sys.executable, [sys.executable, {str(APP)!r}])"
    data = tmp_path / "data"
    env = {**os.environ, "SVC_PORT": "0", "SVC_DATA_DIR": str(data), "SVC_DISCOVER": "0"}
    process = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, env=env)
    try:
        async with asyncio.timeout(20):
            while not data.exists() or (answer := await asyncio.to_thread(status.ask, data)) is None:
                await asyncio.sleep(0.05)
        async with httpx.AsyncClient(
            base_url=answer["base_url"], verify=ssl.create_default_context(cafile=data / "tls" / "ca.pem")
        ) as client:
            assert (await client.get("/healthz")).status_code == 200
            assert (await client.get("/readyz")).status_code == 200
        process.terminate()
        assert await asyncio.to_thread(process.wait, 10) == 0
    finally:
        process.kill()
        process.wait()
    assert status.ask(data) is None
    assert {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in data.rglob("*")} == {0}
