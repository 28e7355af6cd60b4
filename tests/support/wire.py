"""Bytes over a socket to an application of this process, through the server's own protocol, without TLS."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from uvicorn.server import ServerState

from svc.server.http.protocol import Protocol, Watch
from tests.conftest import Service


@dataclass
class Sockets:
    """What listens: its address, and the connections and open answers of its clients."""

    address: tuple[str, int] = ("", 0)
    state: ServerState = field(default_factory=ServerState)

    def shutdown(self) -> None:
        """Close idle connections now and the others after their answers, as the server does at SIGTERM."""
        for connection in list(self.state.connections):
            connection.shutdown()


@asynccontextmanager
async def listening_sockets(app: Any) -> AsyncIterator[Sockets]:
    """Serve `app` on loopback."""
    sockets = Sockets()
    watch = Watch(set())
    loop = asyncio.get_running_loop()
    async with await loop.create_server(lambda: Protocol(app, sockets.state, watch), "127.0.0.1", 0) as server:
        sockets.address = server.sockets[0].getsockname()
        yield sockets


@asynccontextmanager
async def listening(app: Any) -> AsyncIterator[tuple[str, int]]:
    """Serve `app` on loopback; the address is the result."""
    async with listening_sockets(app) as sockets:
        yield sockets.address


async def exchange(service: Service, data: bytes) -> bytes:
    """Send `data` to the application and read until it hangs up."""
    async with listening(service.app) as address:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(data)
        answer = await asyncio.wait_for(reader.read(), 10)
        writer.close()
        await writer.wait_closed()
        return answer
