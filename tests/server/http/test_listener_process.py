"""Connections to the real server process: the deadline of a handshake, which is real time."""

import asyncio
from pathlib import Path

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
