"""Bytes over a socket to an application of this process, through the server's own listener and protocol. Their deadlines
pass when a test says so.
"""

import asyncio
import socket
import ssl
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import httpx
from uvicorn.server import ServerState

from svc.certificates import files_in, tls_files
from svc.config import Config
from svc.server.http.listener import Listener
from svc.server.http.protocol import Protocol, Watch
from svc.server.serve import bind, tls_context
from tests.conftest import Service
from tests.support.server import hang_up, read_to_end
from tests.support.waiting import until


@dataclass
class Sockets:
    """What listens: its address, and its connections and open answers in `state`. `tls` is the context of the clients,
    None for plain HTTP.
    """

    address: tuple[str, int]
    tls: ssl.SSLContext | None = None
    state: ServerState = field(default_factory=ServerState)

    def __post_init__(self) -> None:
        self.watch = Watch(self.connections)

    @property
    def connections(self) -> set[Any]:
        """The open connections, as the server has them."""
        return self.state.connections

    async def raw(self, **options: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to the server."""
        return await asyncio.open_connection(*self.address, ssl=self.tls, **options)

    async def exchange(self, data: bytes) -> bytes:
        """Send `data` over a new connection. Return everything that comes back until the server hangs up."""
        reader, writer = await self.raw()
        writer.write(data)
        answer = await read_to_end(reader)
        await hang_up(writer)
        return answer

    def client(self, **options: Any) -> httpx.AsyncClient:
        """An httpx client for the server; `options` go to httpx.AsyncClient."""
        base_url = f"{'https' if self.tls else 'http'}://{self.address[0]}:{self.address[1]}"
        verify = self.tls or False
        return httpx.AsyncClient(**{"base_url": base_url, "trust_env": False, "verify": verify, **options})

    def pass_seconds(self, seconds: float) -> None:
        """Move the clock of the deadlines, and check them as often as the server does."""
        for _ in range(round(seconds / self.watch.interval_seconds)):
            self.watch.check()
            self.watch.stop()

    def shutdown(self) -> None:
        """Close idle connections now and the others after their answers, as the server does at SIGTERM."""
        for connection in list(self.connections):
            connection.shutdown()

    async def until_busy(self) -> None:
        """Wait until the server has read the beginning of a request from each connection."""
        await until(lambda: self.connections and not any(connection.idle for connection in self.connections))


@cache
def _certificates() -> tuple[ssl.SSLContext | None, ssl.SSLContext]:
    """The contexts of a server and of a client that trusts its certificate."""
    with tempfile.TemporaryDirectory() as folder:
        tls_files(Path(folder), ["127.0.0.1"], time.time())
        server = tls_context(Config(data_dir=Path(folder), host="127.0.0.1"))
        return server, ssl.create_default_context(cafile=files_in(Path(folder)).ca)


@asynccontextmanager
async def listening_sockets(app: Any, *, tls: bool = False, **settings: Any) -> AsyncIterator[Sockets]:
    """Serve `app` on loopback with these settings, such as `connections`. Open connections are aborted at the end."""
    contexts = _certificates() if tls else (None, None)
    with bind("127.0.0.1", 0) as sock:
        sock.listen(2048)
        wire = Sockets(sock.getsockname(), contexts[1])
        listener = Listener(sock, lambda: Protocol(app, wire.state, wire.watch), Config(**settings), contexts[0])
        try:
            yield wire
        finally:
            listener.close()
            for connection in list(wire.connections):
                connection.transport.abort()
            for task in list(wire.state.tasks):
                task.cancel()
            await until(lambda: not wire.connections and not wire.state.tasks)


@asynccontextmanager
async def listening(app: Any) -> AsyncIterator[tuple[str, int]]:
    """Serve `app` on loopback; the address is the result."""
    async with listening_sockets(app) as sockets:
        yield sockets.address


async def exchange(service: Service, data: bytes) -> bytes:
    """Send `data` to the application and read until it hangs up."""
    async with listening_sockets(service.app) as wire:
        return await wire.exchange(data)


async def stalled(wire: Sockets, path: str) -> socket.socket:
    """A connection without TLS that asks for `path` and then reads nothing. The server's buffers are full."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
    connection.connect(wire.address)
    connection.sendall(b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % path.encode())
    place = connection.getsockname()
    await until(lambda: _of(wire, place))
    [protocol] = _of(wire, place)
    taken, same = (False, 0), 0
    while not taken[0] or same < 20:
        await asyncio.sleep(0.002)
        before, taken = taken, protocol.outgoing()
        same = same + 1 if taken == before else 0
    return connection


def _of(wire: Sockets, place: tuple[str, int]) -> list[Any]:
    """The connections of the client at `place`."""
    return [each for each in wire.connections if each.transport.get_extra_info("peername") == place]
