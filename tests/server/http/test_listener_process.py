"""Connections to the real server process: the deadline of a handshake, and certificates that SIGHUP reads again."""

import asyncio
import signal
import ssl
import time
from pathlib import Path

from svc.certificates import tls_files
from tests.support.connections import TINY
from tests.support.server import hang_up, running_server
from tests.support.waiting import until


async def test_silent_connections_are_closed_after_5_seconds(tmp_path: Path) -> None:
    async with running_server(tmp_path, command=TINY) as server:
        before = server.counts().descriptors
        silent = [await asyncio.open_connection(server.host, server.port) for _ in range(200)]
        for _, writer in silent[::2]:
            writer.write(b"\x16")
        await until(lambda: server.counts().descriptors >= before + 200)
        assert await server.settled_descriptors(before + 5) <= before + 5
        for _, writer in silent:
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
