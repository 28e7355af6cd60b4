"""The server process: what it holds, what survives a kill, and a start of the application itself."""

import asyncio
import os
import resource
import signal
import socket
import ssl
import stat
import subprocess
import sys
from pathlib import Path

import httpx

from svc.server import status
from tests.support.answers import assert_error
from tests.support.connections import GET, TINY, assert_refused
from tests.support.server import APP, COMMAND, ROOT, RunningServer, hang_up, running_server, running_server_sync
from tests.support.waiting import until


async def still_serves(server: RunningServer) -> bool:
    async with server.client() as client:
        return (await client.get("/healthz")).status_code == 200


def test_stopped_process_sends_no_watchdog(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
        supervisor.bind(str(tmp_path / "notify"))
        env = {"NOTIFY_SOCKET": supervisor.getsockname(), "WATCHDOG_USEC": "200000"}
        with running_server_sync(tmp_path, env, TINY) as server:
            assert [supervisor.recv(4096) for _ in range(3)] == [b"READY=1", b"WATCHDOG=1", b"WATCHDOG=1"]
            server.send_signal(signal.SIGSTOP)
            while "T" not in Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()[0]:
                pass
            supervisor.settimeout(0.6)
            heard = []
            try:
                while True:
                    heard.append(supervisor.recv(4096))
            except TimeoutError:
                assert len(heard) <= 1, "one was on its way"
            server.send_signal(signal.SIGCONT)
            supervisor.settimeout(10)
            assert supervisor.recv(4096) == b"WATCHDOG=1"


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
        before = server.counts().descriptors
        connections = [socket.create_connection((server.host, server.port)) for _ in range(100)]
        await until(lambda: server.counts().descriptors >= before + 10)  # half of the free ones are for connections
        for connection in connections:
            connection.close()
        await server.settled_descriptors(20)
        assert await still_serves(server)


async def test_a_killed_server_starts_again_on_the_same_folder(tmp_path: Path) -> None:
    async with running_server(tmp_path, command=TINY) as server:
        ca = server.ca.read_bytes()
        server.kill()
    async with running_server(tmp_path, command=TINY) as server:
        assert server.ca.read_bytes() == ca
        assert await still_serves(server)


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
