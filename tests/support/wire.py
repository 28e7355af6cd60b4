"""Bytes over a socket to an application of this process, through the server's own protocol, without TLS."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from uvicorn.server import ServerState

from svc.server.http.protocol import Protocol, Watch
from tests.conftest import Service


@asynccontextmanager
async def listening(app: Any) -> AsyncIterator[tuple[str, int]]:
    """Serves `app` on loopback; the address is the result."""
    watch = Watch(set())
    loop = asyncio.get_running_loop()
    async with await loop.create_server(lambda: Protocol(app, ServerState(), watch), "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        yield host, port


async def exchange(service: Service, data: bytes) -> bytes:
    """Send `data` to the application and read until it hangs up."""
    async with listening(service.client._transport.app) as address:  # type: ignore[attr-defined]
        reader, writer = await asyncio.open_connection(*address)
        writer.write(data)
        answer = await asyncio.wait_for(reader.read(), 10)
        writer.close()
        await writer.wait_closed()
        return answer
