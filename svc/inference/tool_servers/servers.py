"""The tool servers that accounts can use, whose lists of tools are read at the start, at a reload and once an hour.

What a server listed is in the database: a request for the tools asks no server, and so does a restart.
"""

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, NamedTuple

import orjson

from svc.config import Config
from svc.db import AFTER_START_SECONDS, Database
from svc.errors import ApiError, describe
from svc.groups import Group
from svc.inference.catalog import Catalog
from svc.inference.providers import KeyBox
from svc.inference.tool_servers import operators, reading, records
from svc.inference.tool_servers.client import CALL_SECONDS, Target, ToolSession
from svc.inference.tool_servers.entries import bearer
from svc.inference.tool_servers.listed import ListedTool
from svc.inference.tool_servers.operator_server import OperatorServer
from svc.inference.tool_servers.reading import Reading
from svc.log import Log
from svc.outbound.client import Outbound

_POLL_SECONDS = 60.0
_AT_ONCE = 8
_CLOSE_SECONDS = 1.0


class OfferedTool(NamedTuple):
    """A tool of a server, whether a call of it needs approval, and its price. `own`: the server is the user's.

    `end_soon` ends a session with the server.
    """

    target: Target
    tool: ListedTool
    ask: bool
    price_micros: int
    own: bool
    end_soon: Callable[[ToolSession], None]


class ToolServers:
    """Reads the lists of all tool servers, and says which tools an account may use."""

    def __init__(
        self,
        catalog: Catalog,
        db: Database,
        box: KeyBox,
        outbound: Outbound,
        guarded: Outbound,
        config: Config,
        log: Log,
    ) -> None:
        self._catalog, self._db, self._box, self._log = catalog, db, box, log
        self._outbound, self._guarded = outbound, guarded
        self._clock, self._user_seconds = config.clock, config.list_tools_seconds
        self._work: set[asyncio.Task[None]] = set()
        self._wake = asyncio.Event()

    def start(self) -> None:
        self._in_background(self._keep_reading())

    async def reload(self) -> None:
        """Take over the servers of the catalog, and read their lists in the background."""
        if not self._catalog.tool_servers and not self._db.look_up(operators.exist):
            return
        await self._db.write(operators.sync, self._catalog.tool_servers.values(), self._clock())
        self._wake.set()

    async def close(self) -> None:
        """Stop reading. Sessions that are being ended get a second for it."""
        for task in self._work:
            if task.get_name() == "reading":
                task.cancel()
        if self._work:
            await asyncio.wait(self._work, timeout=_CLOSE_SECONDS)
        for task in self._work:
            task.cancel()

    def end_soon(self, session: ToolSession) -> None:
        """End the session of a run or an answer, which does not wait for it."""
        if session.is_open:
            self._in_background(session.aclose(), "ending")

    def _in_background(self, work: Coroutine[Any, Any, None], name: str = "reading") -> None:
        task = asyncio.create_task(work, name=name)
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    # --- what an account may use

    async def offered(self, account_id: str, group: Group | None) -> list[OfferedTool]:
        """Return the tools of the operator's servers, then those of the account's own ones."""
        operator_rows, own_rows = await self._db.read(self._rows, account_id)
        found: list[OfferedTool] = []
        for row in operator_rows:
            server = self._catalog.tool_servers.get(row["name"])
            if server is not None and server.allows(group):
                target = server.target(self._outbound)
                found += [
                    OfferedTool(target, tool, asks(server, tool), server.micros_per_call, False, self.end_soon)
                    for tool in reading.known(row).available
                ]
        for row in own_rows if group is None or group.own_providers else ():
            if row["name"] not in self._catalog.tool_servers:
                found += self._own(row)
        return found

    @staticmethod
    def _rows(conn: sqlite3.Connection, account_id: str) -> tuple[list[sqlite3.Row], list[sqlite3.Row]]:
        return operators.rows(conn), records.all_of(conn, account_id)

    def _own(self, row: sqlite3.Row) -> Iterable[OfferedTool]:
        own_asks = orjson.loads(row["ask"])
        with contextlib.suppress(ApiError):  # the stored key cannot be read any more
            target = self.target_of(row)
            for tool in reading.known(row).available:
                yield OfferedTool(target, tool, own_asks.get(tool.name, not tool.read_only), 0, True, self.end_soon)

    def target_of(self, row: sqlite3.Row) -> Target:
        """Return a user's server. Raises ApiError `invalid_value` if its key cannot be read."""
        key = records.key_of(row, row["url"], self._box)
        return self.own_target(row["account_id"], row["name"], row["url"], key)

    def own_target(self, account_id: str, name: str, url: str, api_key: str | None) -> Target:
        return Target(name, url, bearer(api_key), self._guarded, account_id)

    # --- reading

    async def read_own(self, target: Target) -> Reading:
        """Read the list of a user's server. A failure takes as long as the longest answer.

        So it does not tell which ports are open.
        """
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + self._user_seconds
        found = await self._read(target, None, self._user_seconds)
        if found.tools is None:
            await asyncio.sleep(ends_at - loop.time())
        return found

    async def _read(self, target: Target, wanted: frozenset[str] | None, seconds: float) -> Reading:
        try:
            return await reading.read(target, wanted, seconds)
        except Exception as error:  # a bug must not end the reading of the other servers
            self._log("tool_server", level="error", error=describe(error))
            return Reading(None, "The list of tools could not be read.")

    async def _keep_reading(self) -> None:
        seconds = AFTER_START_SECONDS
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._wake.wait()
            self._wake.clear()
            seconds = _POLL_SECONDS
            with contextlib.suppress(ApiError):  # the storage is full, or the server stops
                await self.read_due()

    async def read_due(self) -> None:
        """Read the tools of each server whose time has come. Raises ApiError if they cannot be stored."""
        names = await self._db.read(operators.due, self._clock())
        servers = [self._catalog.tool_servers[name] for name in names if name in self._catalog.tool_servers]
        await _each(self._read_operators, servers)
        while rows := await self._db.read(records.due, self._clock()):
            await _each(self._read_users, rows)

    async def _read_operators(self, server: OperatorServer) -> None:
        found = await self._read(server.target(self._outbound), server.tools, CALL_SECONDS)
        changed = await self._db.write(operators.store, server, found, self._clock())
        level = "info" if found.tools is not None else "warning"
        if changed or found.detail:
            tools = None if found.tools is None else len(found.tools)
            self._log("tool_server", level=level, server=server.name, tools=tools, message=found.detail)

    async def _read_users(self, row: sqlite3.Row) -> None:
        groups = self._catalog.groups
        found = Reading(None, "The operator has disabled own servers.")
        if groups is None or groups.of(row["group_name"]).own_providers:
            try:
                found = await self._read(self.target_of(row), None, self._user_seconds)
            except ApiError as error:
                found = Reading(None, str(error))
        owner = (row["account_id"], row["id"])
        try:
            await self._db.write(records.store, *owner, row, found, self._clock())
        except ApiError as error:
            if error.code == "quota_exceeded":
                found = Reading(None, "The account has no room for the list of tools.")
                await self._db.write(records.store, *owner, row, found, self._clock())
            elif error.code != "not_found":
                raise


async def _each(read: Callable[[Any], Coroutine[Any, Any, None]], items: Iterable[Any]) -> None:
    """Read some at once. A hostile server takes only its own time."""
    places = asyncio.Semaphore(_AT_ONCE)

    async def one(item: Any) -> None:
        async with places:
            await read(item)

    await asyncio.gather(*map(one, items))


def asks(server: OperatorServer, tool: ListedTool) -> bool:
    """Return whether a call of the operator's tool needs approval."""
    return not tool.read_only if server.ask is None else server.ask
