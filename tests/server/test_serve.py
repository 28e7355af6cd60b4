"""The server on real sockets: its start, TLS, and its end."""

import asyncio
import os
import re
import resource
import signal
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives import serialization

from svc.certificates import tls_files
from svc.errors import StartError
from svc.secrets import open_folder
from svc.server.serve import bind, notify, watchdog_seconds
from tests.support.connections import GET, LAST_GET, answers, assert_refused, read_head, stalled
from tests.support.served import Outcome, served
from tests.support.server import hang_up, read_to_end
from tests.support.waiting import until

if TYPE_CHECKING:  # with this name the module would have slow tests only
    from tests.support.server import RunningServer


class Supervisor(socket.socket):
    """The socket that NOTIFY_SOCKET names."""

    def heard(self, seconds: float = 10.0) -> str:
        """The next message, or nothing after so long."""
        self.settimeout(seconds)
        try:
            return self.recv(4096).decode()
        except TimeoutError:
            return ""

    def all_heard(self) -> list[str]:
        """All messages that have been sent."""
        return [*iter(lambda: self.heard(0.001), "")]


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    with Supervisor(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        heard.bind(str(tmp_path / "notify"))
        yield heard


def test_supervisor_gets_ready_watchdog_and_stopping(tmp_path: Path, supervisor: Supervisor) -> None:
    messages: list[str] = []

    async def play(server: "RunningServer") -> None:
        messages.extend([await asyncio.to_thread(supervisor.heard) for _ in range(4)])

    env = {"NOTIFY_SOCKET": supervisor.getsockname(), "WATCHDOG_USEC": "20000"}
    assert served(tmp_path, env, play).status == 0
    assert messages == ["READY=1", *["WATCHDOG=1"] * 3]
    assert "STOPPING=1" in supervisor.all_heard()


def test_watchdog_of_another_process_gets_nothing(tmp_path: Path, supervisor: Supervisor) -> None:
    env = {"NOTIFY_SOCKET": supervisor.getsockname(), "WATCHDOG_USEC": "2", "WATCHDOG_PID": "1"}
    assert served(tmp_path, env).status == 0
    assert supervisor.all_heard() == ["READY=1", "STOPPING=1"]


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


# --- the start


def one_line(outcome: Outcome) -> str:
    assert (outcome.status, outcome.stdout, outcome.stderr.count("\n")) == (1, "", 1), outcome
    assert outcome.stderr.startswith("svc: ")
    return outcome.stderr


def test_a_busy_port_is_one_line_and_status_1(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        line = one_line(served(tmp_path, {"SVC_PORT": str(other.getsockname()[1])}))
    assert "address in use" in line


def test_port_taken_between_bind_and_listen_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TINY_START", "taken")
    assert "address in use" in one_line(served(tmp_path))


def test_a_locked_data_folder_is_one_line_and_status_1(tmp_path: Path) -> None:
    folder = open_folder(tmp_path / "data")
    assert "another server" in one_line(served(tmp_path))
    folder.close()


def test_impossible_data_folder_is_one_line_and_status_1(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "data folder" in one_line(served(tmp_path, {"SVC_DATA_DIR": str(tmp_path / "file" / "data")}))


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
    assert "certificate" in one_line(served(tmp_path, env))


def test_connections_have_tcp_user_timeout_keepalive_and_no_delay() -> None:
    with bind("127.0.0.1", 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP
        listener.listen()
        with socket.create_connection(listener.getsockname()), listener.accept()[0] as connection:
            assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY), "an answer waits for no ACK"
            options = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT, socket.TCP_USER_TIMEOUT)
            assert [connection.getsockopt(socket.IPPROTO_TCP, option) for option in options] == [30, 10, 3, 30_000]


def test_foreign_host_cannot_be_bound() -> None:
    with pytest.raises(StartError, match=r"cannot listen on 192\.0\.2\.1"):
        bind("192.0.2.1", 0)


def test_start_refused_by_the_application_is_one_line_and_no_ready(
    tmp_path: Path, supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TINY_START", "refuse")
    assert "the start is refused" in one_line(served(tmp_path, {"NOTIFY_SOCKET": supervisor.getsockname()}))
    assert supervisor.all_heard() == []


def test_exception_at_the_start_is_logged_with_status_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TINY_START", "crash")
    status, stdout, stderr = served(tmp_path)
    assert (status, stdout) == (1, "")
    assert "a fault of ours" in caplog.text
    assert stderr.splitlines()[-1].startswith("svc: ")


async def healthy(server: "RunningServer") -> None:
    async with server.client() as client:
        assert (await client.get("/healthz")).status_code == 200


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("localhost", "localhost"),
        ("0.0.0.0", "127.0.0.1"),
        ("::1", "[::1]"),
        ("::", "[::1]"),
    ],
)
def test_first_line_is_the_address_and_the_last_the_ca(tmp_path: Path, host: str, shown: str) -> None:
    async def play(server: "RunningServer") -> None:
        await healthy(server)
        if host == "::":  # both families
            async with server.client(base_url=f"https://127.0.0.1:{server.port}") as client:
                assert (await client.get("/healthz")).status_code == 200

    outcome = served(tmp_path, {"SVC_HOST": host}, play)
    first, *_, last = outcome.stdout.splitlines()
    assert re.fullmatch(rf"listening on https://{re.escape(shown)}:\d+", first)
    assert last.endswith(f"--cacert {tmp_path / 'data' / 'tls' / 'ca.pem'}")
    assert (outcome.status, outcome.stderr) == (0, "")


def test_behind_a_proxy_plain_http_is_served_and_logged(tmp_path: Path) -> None:
    async def play(server: "RunningServer") -> None:
        assert answers(await server.exchange(LAST_GET))[0][0] == 200
        assert_refused(await server.exchange(b"\x16\x03\x01\x02\x00\x01\r\n\r\n"), 400, "invalid_request")

    outcome = served(tmp_path, {"SVC_TLS": "proxy", "SVC_TRUSTED_PROXIES": "127.0.0.1"}, play)
    first, second = outcome.stdout.splitlines()
    assert first.startswith("listening on https://127.0.0.1:") and "plain HTTP" in second


def test_certificate_files_are_served_unchanged(tmp_path: Path) -> None:
    files = tls_files(tmp_path, ["127.0.0.1"], time.time())

    async def play(server: "RunningServer") -> None:
        async with server.client(verify=ssl.create_default_context(cafile=files.ca)) as client:
            assert (await client.get("/healthz")).status_code == 200

    env = {"SVC_TLS": "files", "SVC_TLS_CERT": str(files.cert), "SVC_TLS_KEY": str(files.key)}
    assert served(tmp_path, env, play).stdout.count("\n") == 1


def test_tls_is_1_2_or_newer_with_http_1_1(tmp_path: Path) -> None:
    async def play(server: "RunningServer") -> None:
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

    assert served(tmp_path, play=play).status == 0


def test_the_next_start_keeps_the_certificate(tmp_path: Path) -> None:
    served(tmp_path)
    ca = (tmp_path / "data" / "tls" / "ca.pem").read_bytes()
    assert served(tmp_path, play=healthy).status == 0
    assert (tmp_path / "data" / "tls" / "ca.pem").read_bytes() == ca


def test_descriptor_limit_is_raised(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    limits = []

    async def play(server: "RunningServer") -> None:
        limits.append(resource.getrlimit(resource.RLIMIT_NOFILE)[0])

    resource.setrlimit(resource.RLIMIT_NOFILE, (512, before[1]))
    try:
        served(tmp_path, play=play)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert limits == [min(before[1], 65536)]


# --- the end


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_sigterm_ends_streams_with_their_final_event(tmp_path: Path, number: signal.Signals) -> None:
    async def play(server: "RunningServer") -> None:
        streams = [await server.raw() for _ in range(5)]
        for _, writer in streams:
            writer.write(GET.replace(b"/healthz", b"/stream"))
        for reader, _ in streams:
            await reader.readuntil(b"data: begun\n\n")
        server.send_signal(number)
        ends = await asyncio.gather(*(read_to_end(reader) for reader, _ in streams))
        assert all(end.endswith(b"data: stopped\n\n\r\n0\r\n\r\n") for end in ends)
        for _, writer in streams:
            await hang_up(writer)

    status, _, stderr = served(tmp_path, play=play, answers_seconds=600)
    assert (status, stderr) == (0, "")


def test_idle_connections_do_not_delay_shutdown(tmp_path: Path) -> None:
    """Without a deadline: the end would wait for ten minutes."""
    opened: list[socket.socket] = []

    async def play(server: "RunningServer") -> None:
        opened.extend(socket.create_connection((server.host, server.port)) for _ in range(3))
        opened.append(await stalled(server, "/healthz"))  # it never says good-bye in TLS either
        begun = [await server.raw() for _ in range(2)]
        begun[0][1].write(GET)
        begun[1][1].write(b"GET / HT")
        await begun[0][0].readuntil(b"}")
        server.send_signal()
        for reader, writer in begun:
            await read_to_end(reader)
            await hang_up(writer)

    outcome = served(tmp_path, play=play, answers_seconds=600, exit_seconds=600)
    assert (outcome.status, outcome.stderr) == (0, "")
    for connection in opened:
        connection.close()


def test_open_request_is_answered_before_shutdown(tmp_path: Path) -> None:
    async def play(server: "RunningServer") -> None:
        reader, writer = await server.raw()
        writer.write(b"POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
        await read_head(reader)  # the request has begun
        server.send_signal()
        await until(lambda: not can_connect(server))
        writer.write(b"hello")
        [(status, headers, body)] = answers(await read_to_end(reader))
        assert (status, headers["connection"]) == (200, "close") and b'"received":5' in body
        await hang_up(writer)

    assert served(tmp_path, play=play).status == 0


def can_connect(server: "RunningServer") -> bool:
    try:
        socket.create_connection((server.host, server.port)).close()
    except ConnectionRefusedError:
        return False
    return True


def test_partly_read_answer_is_completed_before_shutdown(tmp_path: Path) -> None:
    async def play(server: "RunningServer") -> None:
        reader, writer = await server.raw(limit=4096)
        writer.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32768)
        writer.write(GET.replace(b"/healthz", b"/big?bytes=4000000"))
        await read_head(reader)
        server.send_signal()
        await until(lambda: not can_connect(server))
        await reader.readexactly(4_000_000)
        await hang_up(writer)

    assert served(tmp_path, play=play).status == 0


def test_stalled_reader_delays_shutdown_briefly(tmp_path: Path) -> None:
    opened = []

    async def play(server: "RunningServer") -> None:
        opened.append(await stalled(server, "/big?bytes=8000000"))
        assert opened[0].recv(1) == b"H"

    outcome = served(tmp_path, play=play, stall_seconds_in_drain=0.1, answers_seconds=600, exit_seconds=600)
    assert outcome.status == 0
    opened[0].close()


def test_endless_answer_is_cancelled_at_shutdown(tmp_path: Path) -> None:
    async def play(server: "RunningServer") -> None:
        reader, writer = await server.raw()
        writer.write(GET.replace(b"/healthz", b"/deaf-stream"))
        await reader.readuntil(b"data: x")
        server.send_signal()
        assert not (await read_to_end(reader)).endswith(b"0\r\n\r\n")
        await hang_up(writer)

    assert served(tmp_path, play=play, answers_seconds=0.1).status == 0


def test_second_sigterm_and_sighup_change_nothing(tmp_path: Path) -> None:
    async def play(server: "RunningServer") -> None:
        streams = [await server.raw() for _ in range(2)]
        for (reader, writer), path in zip(streams, (b"/stream", b"/deaf-stream"), strict=True):
            writer.write(GET.replace(b"/healthz", path))
            await reader.readuntil(b"data: ")
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGTERM, signal.SIGTERM):
            server.send_signal(number)
            await asyncio.sleep(0)
        assert (await read_to_end(streams[0][0])).endswith(b"data: stopped\n\n\r\n0\r\n\r\n")
        assert await streams[1][0].readuntil(b"data: x"), "it still has time"
        for _, writer in streams:
            await hang_up(writer)

    assert served(tmp_path, play=play).status == 0
