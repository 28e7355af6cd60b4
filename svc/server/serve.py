"""The server around the application: the listening socket, TLS, the start, and the shutdown within 10 seconds.

bind -> create_app -> lifespan (locks the folder, opens the database) -> TLS -> listen -> "listening on ..."
SIGTERM -> drain begins (streams end themselves) -> no new connections -> answers end -> lifespan ends -> status 0
SIGHUP  -> certificates and catalog are read again; an invalid one is logged and the old one stays
"""

import asyncio
import contextlib
import errno
import gc
import logging
import os
import re
import resource
import shlex
import signal
import socket
import ssl
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import cast
from urllib.parse import urlsplit

import uvicorn
import uvloop
from starlette.applications import Starlette

from svc import allocator
from svc.certificates import files_in, tls_files
from svc.config import Config
from svc.errors import StartError, or_start_error
from svc.server.http.listener import Listener
from svc.server.http.protocol import Protocol, Watch

_SEND_SECONDS = 1.0
_BACKLOG = 2048
_OPEN_FILES = 65536
_FILES_FOR_OTHERS = 256  # for databases, workers and model servers, not for clients
_LOOPBACK_OF = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared, not bound
# Every connection inherits them from the listening socket. A client that vanished is noticed within half a minute. A
# client that does not read has little buffered in the kernel, so it is noticed and costs no memory.
_TCP_OPTIONS = {
    "TCP_NODELAY": 1,
    "TCP_KEEPIDLE": 30,
    "TCP_KEEPINTVL": 10,
    "TCP_KEEPCNT": 3,
    "TCP_USER_TIMEOUT": 30_000,
    "TCP_NOTSENT_LOWAT": 128 * 1024,
}


def notify(environ: Mapping[str, str], state: str) -> None:
    """Send `state`, such as READY=1, to the socket that NOTIFY_SOCKET names. Errors are ignored."""
    address = environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):  # an abstract name of Linux begins with NUL, which no environment variable can contain
        address = "\0" + address[1:]
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.settimeout(_SEND_SECONDS)  # a supervisor may hang
        sender.sendto(state.encode(), address)


def watchdog_seconds(environ: Mapping[str, str]) -> float | None:
    """Return how long the supervisor waits for a WATCHDOG=1 before it restarts this process; None if it does not."""
    microseconds, pid = environ.get("WATCHDOG_USEC", ""), environ.get("WATCHDOG_PID", str(os.getpid()))
    if not re.fullmatch(r"[0-9]{1,18}", microseconds) or pid != str(os.getpid()):
        return None
    return int(microseconds) / 1_000_000 or None


def keep_alive(loop: asyncio.AbstractEventLoop, environ: Mapping[str, str]) -> None:
    """Send WATCHDOG=1 from the event loop, twice as often as required: a loop that hangs sends none."""
    seconds = watchdog_seconds(environ)
    if seconds:
        notify(environ, "WATCHDOG=1")
        loop.call_later(seconds / 2, keep_alive, loop, environ)


def run(read_config: Callable[[], Config], create_app: Callable[[Config], Starlette]) -> int:
    """Serve until a signal. Return the exit status: 0 after a signal, 1 with one line on stderr if it cannot start.

    `create_app(config)` gets the configuration with the bound port. The server calls the application's
    `state.listening()` when it accepts connections, `state.answer(scope, receive, send)` for a request,
    `state.reload()` at SIGHUP, and `state.drain.begin()` at the first signal to end. A StartError of its lifespan is in
    `state.start_error`.
    """
    _open_standard_streams()
    os.umask(0o077)
    try:
        config = read_config()
        _allow_open_files()
        with bind(config.host, config.port) as listener:
            config = config.at_port(listener.getsockname()[1])
            server = Server(config, create_app(config), listener)
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(server.serve())
    except StartError as error:
        print("svc:", " ".join(str(error).split()), file=sys.stderr, flush=True)
        return 1
    return 0


def _open_standard_streams() -> None:
    # If one of them is closed, the next open file gets its number: the log could be written into the database.
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def bind(host: str, port: int) -> socket.socket:
    """Return a TCP socket bound to `host` (a name or an IP address) and `port` (0 picks one). Raises StartError."""
    with or_start_error(f"listen on {host}"):
        # With protocol 0 asyncio does not set TCP_NODELAY, which costs 45 ms for each answer.
        # As bytes: for text Python imports the encoder of international names.
        name = host.encode() if host.isascii() else host
        found = socket.getaddrinfo(
            name, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP, flags=socket.AI_PASSIVE
        )
        family, kind, protocol, _, address = min(found, key=lambda entry: entry[0] != socket.AF_INET)
        listener = socket.socket(family, kind, protocol)
    with _on_port(listener, host, port):
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, host != "::")
        for name, value in _TCP_OPTIONS.items():
            if hasattr(socket, name):
                listener.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        listener.bind(address)
    return listener


@contextlib.contextmanager
def _on_port(listener: socket.socket, host: str, port: int) -> Iterator[None]:
    """Close `listener` and raise StartError if the block cannot bind it or listen."""
    try:
        yield
    except OSError as error:
        listener.close()
        reason = "address in use" if error.errno == errno.EADDRINUSE else str(error.strerror).lower()
        raise StartError(f"cannot listen on {host} port {port}: {reason}") from None


def _allow_open_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def tls_context(config: Config) -> ssl.SSLContext | None:
    """Return the TLS context, or None for `proxy`. Raises StartError for a certificate or key that cannot be used."""
    if config.tls == "proxy":
        return None
    cert, key = config.tls_cert, config.tls_key
    if config.tls == "auto":
        cert, key, _ = tls_files(config.data_dir, _names(config), config.clock())
    assert cert and key
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(cert, key, password="")  # without one OpenSSL asks the terminal
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
        raise StartError(f"cannot use the certificate {cert} with the key {key}: {reason}") from None
    return context


def _names(config: Config) -> list[str]:
    bound = [] if config.host in _LOOPBACK_OF else [config.host]
    base = urlsplit(config.base_url).hostname or ""
    return ["localhost", "127.0.0.1", "::1", *bound, base, socket.gethostname()]


class Server(uvicorn.Server):
    """uvicorn's server with our start and shutdown."""

    answers_seconds = 8.0  # from the signal, for open answers
    cancelled_seconds = 0.5  # for the clean-up of answers that are cancelled then
    exit_seconds = 9.5  # for the whole shutdown
    renew_seconds = 86400.0  # between two checks of the certificate
    trim_seconds = 10.0  # between two returns of free memory to the system

    def __init__(self, config: Config, app: Starlette, listener: socket.socket) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=Protocol,
                lifespan="on",
                ws="none",
                log_config=None,
                log_level="warning",
                server_header=False,
            )
        )
        self._service = config
        self._app = app
        self._socket = listener
        self._interrupted = False
        self._reading = asyncio.Lock()  # one at a time, so that an older certificate never replaces a newer one
        self._connections = cast(set[Protocol], self.server_state.connections)
        self._watch = Watch(self._connections)
        # uvicorn would log the traceback of a StartError, for which run() prints one line.
        logging.getLogger("uvicorn.error").addFilter(lambda record: app.state.start_error is None)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self.lifespan.startup()
        if self.lifespan.should_exit:
            raise self._app.state.start_error or StartError("cannot start; the lines above say why")
        try:
            self._listen(tls_context(self._service))
            self._app.state.reload = partial(self._reload, self._app.state.reload)
        except BaseException:
            await self.lifespan.shutdown()
            raise
        self.started = True
        self._watch.check()
        self._trim_memory()
        # The start's objects live as long as the process. Without them in each collection a request takes 10 % less
        # CPU.
        gc.freeze()
        gc.enable()
        gc.set_threshold(10_000, 20, 20)
        self._announce()

    def _listen(self, context: ssl.SSLContext | None) -> None:
        with _on_port(self._socket, self._service.host, self._service.port):
            self._socket.listen(_BACKLOG)  # two servers may have bound the port; uvloop would not report the error
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - len(list(Path("/dev/fd").iterdir()))
        connections = min(self._service.connections, files - min(files // 2, _FILES_FOR_OTHERS))
        self._listener = Listener(
            self._socket,
            lambda: Protocol(self._app.state.answer, self.server_state, self._watch),
            replace(self._service, connections=connections),
            context,
        )
        if context is not None:
            self._renewal = self._loop.create_task(self._renew_daily())

    async def _renew_daily(self) -> None:
        while True:
            await asyncio.sleep(self.renew_seconds)
            async with self._reading:
                await self._renew_certificate()

    async def _renew_certificate(self) -> list[str]:
        """Read the certificate again, and renew our own if it expires soon. An error is logged and returned."""
        try:
            self._listener.context = await asyncio.to_thread(tls_context, self._service)
        except StartError as error:
            logging.getLogger(__name__).warning("the certificate is not replaced: %s", error)
            return [str(error)]
        return []

    def _begin_reload(self) -> None:
        self._reloading = self._loop.create_task(self._app.state.reload())

    async def _reload(self, read_catalog: Callable[[], Awaitable[dict[str, list[str]]]]) -> dict[str, list[str]]:
        """Read the certificate and the catalog again. Return the `errors` and `notes`, for `svc reload`."""
        async with self._reading:
            faults, found = await self._renew_certificate(), await read_catalog()
            return {**found, "errors": faults + found["errors"]}

    def _announce(self) -> None:
        config = self._service
        host, base_url = config.host, config.base_url
        # The loopback address always passes the check of `Host`, with any SVC_BASE_URL.
        lines = [f"listening on {Config(host=_LOOPBACK_OF.get(host, host), port=config.port).base_url}"]
        if host in _LOOPBACK_OF:
            derived = base_url == Config(host=host, port=config.port).base_url
            advice = "set SVC_BASE_URL to the URL that clients use" if derived else f"clients use {base_url}"
            lines.append(f"on all addresses of this machine; {advice}")
        if config.tls == "auto":
            ca = files_in(config.data_dir).ca.absolute()
            lines.append(f"to trust its certificate: --cacert {shlex.quote(str(ca))}")
        if config.tls == "proxy":
            lines.append("plain HTTP, only for the trusted proxies, which terminate TLS")
        self._app.state.listening()
        with contextlib.suppress(OSError):  # stdout is closed
            print(*lines, sep="\n", flush=True)
        notify(config.environ, "READY=1")
        keep_alive(self._loop, config.environ)

    def _trim_memory(self) -> None:
        # uvloop allocates 256 KiB for each TLS connection, and glibc keeps what is freed. After 1,000 connections that
        # opened and closed 16 times it kept 275 MB, and 50 MB with this.
        self._loop.call_later(self.trim_seconds, self._trim_memory)
        allocator.trim()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals. Afterwards they are ignored, so that the process ends with its own exit status."""
        self._loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self.handle_exit)
        signal.signal(signal.SIGHUP, self._handle_reload)
        try:
            yield
        finally:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin the shutdown at the first signal. Another SIGTERM changes nothing; a second SIGINT ends the process."""
        if sig == signal.SIGINT:
            if self._interrupted:
                os._exit(1)
            self._interrupted = True
        if not self.should_exit:
            self.should_exit = True
            self._loop.call_soon_threadsafe(self._begin_shutdown)

    def _handle_reload(self, sig: int, frame: FrameType | None) -> None:
        if self.started and not self.should_exit:
            self._loop.call_soon_threadsafe(self._begin_reload)

    def _begin_shutdown(self) -> None:
        # A thread that hangs, in a library or in a name lookup, would keep the interpreter from ending.
        last_resort = threading.Timer(self.exit_seconds, os._exit, (1,))
        last_resort.daemon = True
        last_resort.start()
        notify(self._service.environ, "STOPPING=1")
        self._app.state.drain.begin()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._listener.close()
        for connection in list(self._connections):
            connection.shutdown()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.answers_seconds):
                while self.server_state.tasks or self._sending() or len(self._app.state.drain):  # noqa: ASYNC110 - neither has an event to wait for
                    await asyncio.sleep(0.02)
        tasks = set(self.server_state.tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=self.cancelled_seconds)
        await self.lifespan.shutdown()
        self._watch.stop()
        for connection in list(self._connections):
            connection.transport.abort()

    def _sending(self) -> bool:
        return any(connection.outgoing()[0] for connection in self._connections)
