"""The application in the test's own process, behind the server's own protocol on a loopback port, without TLS.

It has what tests use of a server process (tests/support/server.py), except signals, TLS and limits of the process.
Tests of connections, disconnects and streams use it, because it starts in a few milliseconds.
"""

import asyncio
import contextlib
import dataclasses
import shutil
import sqlite3
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx

from svc.config import Config
from tests.conftest import Clocks, Service, serving
from tests.support.server import RunningServer
from tests.support.waiting import until
from tests.support.wire import Sockets, listening_sockets


class LocalServer:
    """The listening application. `service` has its state and a client without a socket."""

    tls = None

    def __init__(self, service: Service, sockets: Sockets, closing: contextlib.AsyncExitStack) -> None:
        self.service = service
        self.data_dir = service.config.data_dir
        self.host, self.port = sockets.address
        self.base_url = f"https://{self.host}:{self.port}"
        self._sockets = sockets
        self._closing = closing
        self._reader: sqlite3.Connection | None = None

    def client(self, **options: Any) -> httpx.AsyncClient:
        """An httpx client for the server; `options` go to httpx.AsyncClient."""
        return httpx.AsyncClient(
            **{"base_url": f"http://{self.host}:{self.port}", "trust_env": False, "verify": False, **options}
        )

    async def raw(self, **options: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(self.host, self.port, **options)

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """Read the database over a separate connection."""
        if self._reader is None:
            path = f"file:{self.data_dir / 'service.db'}?mode=ro"
            self._reader = self._closing.enter_context(
                contextlib.closing(sqlite3.connect(path, uri=True, isolation_level=None))
            )
        return self._reader.execute(query, values).fetchall()

    def log_lines(self) -> list[dict[str, Any]]:
        return self.service.log_lines()

    def log(self) -> str:
        return (self.data_dir.parent / "log").read_text()

    @property
    def open_answers(self) -> int:
        return len(self._sockets.state.tasks)

    @property
    def connections(self) -> int:
        return len(self._sockets.state.connections)

    async def idle(self, *, but: int = 0) -> None:
        """Wait until every answer has ended and every connection `but` so many. Then nothing more is charged."""
        await until(lambda: not self.open_answers and self.connections <= but)

    def copy_after_crash(self, folder: Path) -> Path:
        """Copy the data folder into `folder` as a crash now would leave it. Return the copy of the database."""
        shutil.copytree(self.data_dir, folder / "data", ignore=shutil.ignore_patterns("status"))
        return folder / "data" / "service.db"

    async def stop(self, *, with_grace: bool = True) -> None:
        """Shut down as SIGTERM does: interrupt what is open, wait for the answers, and close the database.

        JSON answers have 5 seconds to end, which `with_grace=False` leaves out.
        """
        drain = self.service.state["drain"]
        drain.begin()
        self._sockets.shutdown()
        if not with_grace:
            for interrupt in list(drain.open):
                interrupt("shutdown")
        await until(lambda: not self.open_answers and not len(drain))
        await self._closing.aclose()


AnyServer = RunningServer | LocalServer


@contextlib.asynccontextmanager
async def local_server(folder: Path, catalog: str | None = None, **settings: Any) -> AsyncIterator[LocalServer]:
    """Serve from `folder`, with the real clock. `catalog` is the text of a catalog file, `settings` are of Config."""
    log = (folder / "log").open("ab", buffering=0)
    config = Config(
        log_fd=log.fileno(), data_dir=folder / "data", discover=False, argon2_memory_kib=8, argon2_time_cost=1
    )
    async with contextlib.AsyncExitStack() as closing:
        closing.callback(log.close)
        service = await closing.enter_async_context(
            serving(dataclasses.replace(config, **settings), Clocks(time.time(), time.monotonic()), catalog)
        )
        sockets = await closing.enter_async_context(listening_sockets(service.app))
        yield LocalServer(service, sockets, closing)
