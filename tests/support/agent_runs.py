"""Agent runs as a client sees them on its socket: sent, read block by block, and left in every way there is."""

import asyncio
import contextlib
import os
import signal
import socket
import sqlite3
import struct
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import orjson

from svc.auth import accounts, tokens
from svc.billing import wallet
from tests.support.local_server import AnyServer
from tests.support.server import RunningServer

RUN = "/v1/agents/run"
ENDS = ("final", "error", "stopped")
# The server itself, with one more ear: SIGUSR1 lists its tasks in the file TASKS_FILE.
COMMAND = (
    "-c",
    """
import asyncio, collections, json, os, signal, sys
import app

def list_tasks(*_):
    names = collections.Counter(task.get_coro().__qualname__ for task in asyncio.all_tasks())
    with open(os.environ["TASKS_FILE"] + ".new", "w") as file:
        json.dump(names, file)
    os.replace(os.environ["TASKS_FILE"] + ".new", os.environ["TASKS_FILE"])

signal.signal(signal.SIGUSR1, list_tasks)
sys.exit(app.main())
""",
)


PRO_MICROS = 5_000_000


@dataclass(frozen=True)
class Account:
    """An account that an operator made, with a key."""

    id: str
    email: str
    key: str

    @property
    def headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.key}"}


def add_accounts(server: AnyServer, count: int, *, micros: int = 0, name: str = "runner") -> list[Account]:
    """Pro accounts, past the sign-up limit: written beside the server, with `micros` in their wallets."""
    made, now = [], time.time()
    with contextlib.closing(sqlite3.connect(server.data_dir / "service.db", isolation_level=None, timeout=30)) as tx:
        tx.row_factory = sqlite3.Row
        tx.execute("PRAGMA foreign_keys = ON")
        tx.execute("BEGIN IMMEDIATE")
        for number in range(count):
            email, key = f"{name}{number}@example.com", tokens.new_key_token()
            account = accounts.add_account(tx, email, None, None, now)
            tokens.add_key(tx, account.id, "tests", key, now)
            wallet.book(tx, account.id, max(micros, PRO_MICROS), description="for the test", now_seconds=now)
            if micros < PRO_MICROS:
                wallet.book(tx, account.id, micros - PRO_MICROS, description="for the test", now_seconds=now)
            made.append(Account(account.id, email, key))
        tx.execute("COMMIT")
    return made


class Stream:
    """A request over a separate connection, whose answer is read as it arrives."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.status = 0
        self.headers: dict[str, str] = {}
        self.blocks: list[bytes] = []  # as far as they have been read

    @classmethod
    async def send(
        cls, server: AnyServer, path: str, key: str, body: Mapping[str, Any], cut: int | None = None
    ) -> "Stream":
        """Sends a request, or only `cut` bytes of it. The socket buffer is small, so that the server notices a client
        that stops reading."""
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        sock.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_connect(sock, (server.host, server.port))
            reader, writer = await asyncio.open_connection(
                sock=sock, ssl=server.tls, server_hostname=server.host if server.tls else None, limit=16_384
            )
        except BaseException:
            sock.close()
            raise
        data = orjson.dumps(body)
        lines = [f"POST {path} HTTP/1.1", f"host: {server.host}", f"authorization: Bearer {key}"]
        lines += ["content-type: application/json", f"content-length: {len(data)}"]
        writer.write(("\r\n".join(lines).encode() + b"\r\n\r\n" + data)[:cut])
        return cls(reader, writer)

    async def head(self) -> None:
        lines = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        self.status = int(lines[0].split(" ")[1])
        self.headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}

    async def body(self) -> bytes:
        """The whole body of an answer that is no stream."""
        return await self._reader.readexactly(int(self.headers["content-length"]))

    async def read(self) -> AsyncIterator[bytes]:
        """The blocks of a stream as they come, without their blank line; checks the framing and that the answer is
        whole.
        """
        assert self.headers["content-type"] == "text/event-stream" and self.headers["transfer-encoding"] == "chunked"
        data = b""
        while size := int(await self._reader.readuntil(b"\r\n"), 16):
            data += await self._reader.readexactly(size)
            assert await self._reader.readexactly(2) == b"\r\n"
            *blocks, data = data.split(b"\n\n")
            for block in blocks:
                self.blocks.append(block)
                yield block
        assert await self._reader.readexactly(2) == b"\r\n" and data == b""

    async def rest(self) -> list[bytes]:
        """Reads to the end and hangs up; all blocks."""
        try:
            async for _ in self.read():
                pass
        finally:
            await self.close()
        return self.blocks

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events among the blocks; checks that each is one line of ASCII JSON."""
        data = [block for block in self.blocks if block != b": ping"]
        assert all(
            block.startswith(b"data: ") and block.isascii() and b"\n" not in block and b"\r" not in block
            for block in data
        )
        return [orjson.loads(block[6:]) for block in data]

    def leave(self, how: str) -> None:
        """`close` says good-bye, `fin` only stops sending, `rst` is rude, `vanish` cuts without a word."""
        transport = self._writer.transport
        sock = transport.get_extra_info("socket")
        if how == "close":
            transport.close()
            return
        with contextlib.suppress(OSError):
            if how == "fin":
                sock.shutdown(socket.SHUT_WR)
                return
            if how == "rst":
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()

    async def close(self) -> None:
        self._writer.transport.abort()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()


def checked(stream: Stream) -> list[dict[str, Any]]:
    """The events of a run that was read to its end: numbered without a gap, one run, one terminal event, last."""
    found = stream.events
    assert [event["seq"] for event in found] == list(range(1, len(found) + 1))
    assert {event["run_id"] for event in found} == {stream.headers["x-service-run"]}
    assert found[0]["type"] == "started"
    assert [event["type"] in ENDS for event in found] == [False] * (len(found) - 1) + [True], found[-3:]
    return found


def agrees(last: dict[str, Any], record: dict[str, Any]) -> bool:
    """Whether the event that ended a run and its record say the same."""
    own = {"final": "output", "error": "error", "stopped": "reason"}[last["type"]]
    said = dict.fromkeys(("output", "error", "reason")) | {own: last[own]}
    said |= {"status": last["type"], **{name: last[name] for name in ("steps", "usage", "cost_micros")}}
    return said == {name: record[name] for name in said} and record["finished_at"] is not None


async def run_to_the_end(server: AnyServer, account: Account, goal: str, **fields: Any) -> list[dict[str, Any]]:
    """A run of `builtin/script`, or of the `model` given, read to its end."""
    stream = await Stream.send(server, RUN, account.key, {"goal": goal, "model": "builtin/script", **fields})
    await stream.head()
    assert stream.status == 200, await stream.body()
    await stream.rest()
    return checked(stream)


async def listed(client: httpx.AsyncClient, account: Account, path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while True:
        after = f"&after={found[-1]['id']}" if found else ""
        page = (await client.get(f"{path}?limit=100{after}", headers=account.headers)).json()
        found += page["data"]
        if not page["has_more"]:
            return found


async def books(client: httpx.AsyncClient, account: Account) -> tuple[int, int, int]:
    """The balance, what of it is held, and the sum of the ledger."""
    shown = (await client.get("/billing/account", headers=account.headers)).json()
    ledger = await listed(client, account, "/billing/ledger")
    return shown["wallet_balance_micros"], shown["held_micros"], sum(row["amount_micros"] for row in ledger)


async def record_of(client: httpx.AsyncClient, account: Account, run_id: str) -> dict[str, Any]:
    answer = await client.get(f"/v1/agents/runs/{run_id}", headers=account.headers)
    assert answer.status_code == 200, answer.text
    record: dict[str, Any] = answer.json()
    return record


async def ended(client: httpx.AsyncClient, account: Account, run_id: str, within_seconds: float = 10) -> dict[str, Any]:
    """The record once the run has ended."""
    async with asyncio.timeout(within_seconds):
        while (record := await record_of(client, account, run_id))["status"] == "running":
            await asyncio.sleep(0.02)
        return record


async def begun(server: AnyServer, account: Account, goal: str, **fields: Any) -> Stream:
    """A run whose first two events have been read."""
    stream = await Stream.send(server, RUN, account.key, {"goal": goal, "model": "builtin/script", **fields})
    await stream.head()
    assert stream.status == 200, await stream.body()
    blocks = stream.read()
    for _ in range(2):
        await anext(blocks)
    return stream


def unix_seconds(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp.replace("Z", "+00:00")).timestamp()


async def tasks(server: RunningServer, file: Path) -> Counter[str]:
    """The server's tasks by the name of their coroutine; the server was started by COMMAND with TASKS_FILE."""
    with contextlib.suppress(FileNotFoundError):
        file.unlink()
    os.kill(server.pid, signal.SIGUSR1)
    async with asyncio.timeout(10):
        while not file.exists():
            await asyncio.sleep(0.01)
    return Counter(orjson.loads(file.read_bytes()))
