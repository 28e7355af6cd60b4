"""Servers that misbehave on a socket, and clients to ask them: for the tests of the outgoing client and its
connections.
"""

import asyncio
import functools
import gc
import inspect
import os
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import uvloop

from svc.outbound.client import Outbound, getaddrinfo
from tests.support.waiting import until

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
START = b"HTTP/1.1 200 OK\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nT: x\r\n\r\n"


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@functools.cache
def quiet_loop() -> asyncio.AbstractEventLoop:
    return asyncio.new_event_loop()


def both_loops(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Runs a test under asyncio and uvloop; afterwards no descriptor, task or unretrieved fault may be left."""

    def run(loop_factory: Callable[[], asyncio.AbstractEventLoop], **arguments: Any) -> None:
        gc.collect()
        gc.freeze()  # the collection at the end then looks through what this test has made only
        before, faults = descriptors(), []

        async def main() -> None:
            await asyncio.wait_for(test(**arguments), 30)
            await until(lambda: asyncio.all_tasks() == {asyncio.current_task()})

        with asyncio.Runner(loop_factory=loop_factory) as runner:
            runner.get_loop().set_exception_handler(lambda _, context: faults.append(context))
            runner.run(main())
        gc.collect()
        assert faults == []
        assert descriptors() <= before  # what an earlier test has left may be closed meanwhile

    run.__name__, run.__doc__, run.__module__ = test.__name__, test.__doc__, test.__module__
    own = [inspect.Parameter("loop_factory", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    run.__signature__ = inspect.Signature([*own, *inspect.signature(test).parameters.values()])  # type: ignore[attr-defined]
    run.pytestmark = [*getattr(test, "pytestmark", [])]  # type: ignore[attr-defined]
    return pytest.mark.parametrize(
        "loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
    )(run)


class Peer:
    """The server's end of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        self.reader, self.writer, self.number = reader, writer, number

    async def request(self) -> bytes:
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        return head + await self.reader.readexactly(int(length[0].split(b":")[1]) if length else 0)

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def gone(self) -> None:
        """Returns when the client has ended the connection."""
        with suppress(ConnectionError):
            while await self.reader.read(65536):
                pass

    def reset(self) -> None:
        self.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


Play = Callable[[Peer], Awaitable[None]]


class Stub:
    """A raw server that gives every connection to `play` and closes it (FIN) afterwards."""

    def __init__(self, play: Play, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1", port: int = 0) -> None:
        self.play, self.tls, self.host, self.port = play, tls, host, port
        self.connections = self.ended = 0
        self.tasks: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> "Stub":
        self.server = await asyncio.start_server(self._connected, self.host, self.port, ssl=self.tls, backlog=512)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self.server.close()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await self.server.wait_closed()
        await asyncio.sleep(0.005)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        self.connections += 1
        try:
            await self.play(Peer(reader, writer, self.connections))
            writer.close()
            await writer.wait_closed()
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError, asyncio.CancelledError, RuntimeError):
            pass  # asyncio 3.11 logs a handler that ends in a cancellation
        finally:
            self.ended += 1
            self.tasks.discard(task)
            writer.transport.abort()

    def opened(self) -> int:
        """Return how many sockets of its clients are open."""
        lines = [line.split() for line in Path("/proc/self/net/tcp").read_text().splitlines()[1:]]
        return sum(
            line[2].endswith(f":{self.port:04X}") and line[9] != "0" for line in lines
        )  # its peer, and the inode

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"


def always(*answers: bytes) -> Play:
    """Answer the requests of each connection with `answers` in order, then always with the last one, and wait for the
    client.
    """

    async def play(peer: Peer) -> None:
        for index in range(10**6):
            await peer.request()
            await peer.send(answers[min(index, len(answers) - 1)])

    return play


def once(answer: bytes, *, reset: bool = False) -> Play:
    """Answers one request and ends the connection."""

    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(answer)
        if reset:
            await asyncio.sleep(0.01)
            peer.reset()

    return play


@asynccontextmanager
async def client(*, allow: Any = None, resolve: Any = getaddrinfo, **limits: Any) -> AsyncIterator[Outbound]:
    outbound = Outbound(allow=allow, resolve=resolve)
    for name, value in limits.items():
        setattr(outbound, name, value)
    try:
        yield outbound
    finally:
        await outbound.aclose()


async def fetch(
    outbound: Outbound, url: str, method: str = "GET", timeout_seconds: float = 5.0, **rest: Any
) -> tuple[int, bytes]:
    reply = await outbound.send(method, url, timeout_seconds=timeout_seconds, **rest)
    return reply.status, await reply.read(1 << 24)


def resolver(*addresses: str) -> Any:
    async def resolve(host: str, port: int, account_id: str) -> list[str]:
        resolve.asked.append(host)  # type: ignore[attr-defined]
        return list(addresses)

    resolve.asked = []  # type: ignore[attr-defined]
    return resolve


Contexts = tuple[ssl.SSLContext, ssl.SSLContext]
