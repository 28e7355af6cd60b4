"""Accepted connections: limited in all and for each address, with few TLS handshakes at once.

accept -> under the limits, or an idle connection is closed, or 503
       -> first byte -> a slot -> handshake (5 s) -> Protocol
"""

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Callable
from functools import partial
from typing import Any

from svc.allocator import release_tls_buffer
from svc.config import Config
from svc.errors import ApiError
from svc.fair_queue import FairQueue
from svc.server.http.protocol import Protocol
from svc.server.limits import network_of

_HANDSHAKE_SECONDS = 5
_HANDSHAKES = 256
_HANDSHAKES_OF_ADDRESS = 32
# A slot limits the CPU time of simultaneous handshakes. A longer handshake waits for its client, which needs no slot.
_SLOT_SECONDS = 0.1
# An upper limit: the protocol ends a connection when the client has read the last byte, or reads no more.
_TLS_END_SECONDS = 600
_ACCEPTED_AT_ONCE = 64
_REFUSALS = 32  # connections that get a 503 at the same time; others are closed without one
_CHECKED = 8  # connections of an address among which an idle one is searched
_PAUSE_SECONDS = 0.1

_log = logging.getLogger(__name__)


class Listener:
    """Accepts connections on the listening socket `sock`, and gives each a protocol made by `make`.

    `context` is the TLS context of new connections, None for plain HTTP. It may be replaced at any time.
    """

    def __init__(
        self, sock: socket.socket, make: Callable[[], Protocol], config: Config, context: ssl.SSLContext | None
    ) -> None:
        self.context = context
        self._sock = sock
        self._make = make
        self._config = config
        self._open: dict[bytes, dict[Protocol, None]] = {}  # of each address, the oldest first
        self._number = 0
        self._refused: set[Protocol] = set()
        self._opening: dict[Protocol, asyncio.Task[None]] = {}
        self._handshakes = FairQueue(_HANDSHAKES, _HANDSHAKES_OF_ADDRESS)
        self._loop = asyncio.get_running_loop()
        sock.setblocking(False)
        self._loop.add_reader(sock, self._accept)

    def close(self) -> None:
        """Accept no more connections. Open ones stay open."""
        if self._sock.fileno() >= 0:
            self._loop.remove_reader(self._sock)
            self._sock.close()
        for task in list(self._opening.values()):
            task.cancel()

    def _accept(self) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                sock, address = self._sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:  # no descriptor or no memory is left
                _log.warning("cannot accept connections at the moment: %s", error.strerror)
                self._loop.remove_reader(self._sock)
                self._loop.call_later(_PAUSE_SECONDS, self._accept_again)
                return
            sock.setblocking(False)
            self._enter(sock, str(address[0]))

    def _accept_again(self) -> None:
        if self._sock.fileno() >= 0:
            self._loop.add_reader(self._sock, self._accept)

    def _enter(self, sock: socket.socket, address: str) -> None:
        network, protocol = network_of(address), self._make()
        if self._has_room(network, address):
            self._number += 1
            self._open.setdefault(network, {})[protocol] = None
            protocol.on_lost = partial(self._forget, network, protocol)
        elif len(self._refused) < min(_REFUSALS, -(-self._config.connections // 4)):
            self._refused.add(protocol)
            protocol.refused = ApiError("overloaded", "There are too many connections. Close some, or try again later.")
            protocol.on_lost = partial(self._refused.discard, protocol)
        else:
            sock.close()
            return
        task = self._loop.create_task(self._begin(sock, protocol, network))
        self._opening[protocol] = task
        task.add_done_callback(lambda _: self._opening.pop(protocol))

    def _forget(self, network: bytes, protocol: Protocol) -> None:
        self._number -= 1
        connections = self._open[network]
        del connections[protocol]
        if not connections:
            del self._open[network]

    # --- room

    def _has_room(self, network: bytes, address: str) -> bool:
        """Whether one more connection of this address is accepted. At a limit an idle one is closed for it."""
        own = len(self._open.get(network, ()))
        if own >= self._config.connections_per_address and not self._config.trusts(address):
            return self._close_idle(network)
        if self._number < self._config.connections:
            return True
        largest = max(self._open, key=lambda each: len(self._open[each]))
        return len(self._open[largest]) > own and self._close_idle(largest)

    def _close_idle(self, network: bytes) -> bool:
        connections = self._open[network]
        for protocol in list(connections)[:_CHECKED]:
            task = self._opening.get(protocol)
            if task is not None or protocol.idle:
                if task is not None:
                    task.cancel()
                else:
                    protocol.transport.abort()
                protocol.lost()
                return True
            del connections[protocol]  # it is in use: next time others are checked first
            connections[protocol] = None
        return False

    # --- the handshake

    async def _begin(self, sock: socket.socket, protocol: Protocol, network: bytes) -> None:
        options: dict[str, Any] = {}
        try:
            with contextlib.ExitStack() as slot:
                if self.context is not None:
                    async with asyncio.timeout(_HANDSHAKE_SECONDS):
                        await self._first_byte(sock)
                        slot.callback(await self._handshakes.take(network))
                    slot.callback(self._loop.call_later(_SLOT_SECONDS, slot.close).cancel)
                    options = {
                        "ssl": self.context,
                        "ssl_handshake_timeout": _HANDSHAKE_SECONDS,
                        "ssl_shutdown_timeout": _TLS_END_SECONDS,
                    }
                transport, _ = await self._loop.connect_accepted_socket(lambda: protocol, sock, **options)
            if options:
                release_tls_buffer(transport)
        except (OSError, asyncio.CancelledError):  # the client has closed the connection, or this listener has
            sock.close()
            protocol.lost()

    async def _first_byte(self, sock: socket.socket) -> None:
        readable = asyncio.Event()
        self._loop.add_reader(sock, readable.set)
        try:
            await readable.wait()
        finally:
            self._loop.remove_reader(sock)
