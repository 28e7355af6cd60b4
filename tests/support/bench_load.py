"""The load of tests/bench.py: connections in a closed loop that cost little, and the CPU of a server
process during it.
"""

import asyncio
import itertools
import os
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import cast

import orjson

_ROUND_SECONDS = 120.0


@dataclass(frozen=True)
class Target:
    """A server that is being measured. `keys` are those of its accounts; a bare pass-through has none."""

    name: str
    pid: int
    port: int
    keys: list[str] = field(default_factory=list)
    tls: ssl.SSLContext | None = None


@dataclass(frozen=True)
class Load:
    """So much of one kind of request: `units` are what is counted of one (1, or its events)."""

    model: str
    stream: bool = False
    units: int = 1
    path: str = "/v1/chat/completions"
    in_flight: int = 64

    def request(self, key: str, number: str | None = None) -> bytes:
        """One request; `number` names its stream to the model server."""
        said = [{"role": "user", "content": "hello there"}]
        asked: dict[str, object] = {"messages": said}
        if "agents" in self.path:
            asked = {"goal": "count"}
        elif self.path.endswith("responses"):
            asked = {"input": said}
        elif self.path.endswith("messages"):
            asked = {"messages": said, "max_tokens": 1000}
        body = orjson.dumps(
            {"model": self.model, **asked, **({"stream": True} if self.stream else {}), "user": number or ""}
        )
        lines = [
            f"POST {self.path} HTTP/1.1",
            "host: 127.0.0.1",
            "x-forwarded-proto: https",
            "x-forwarded-for: 192.0.2.7",
            f"authorization: Bearer {key}",
            "content-type: application/json",
            f"content-length: {len(body)}",
        ]
        return "\r\n".join([*lines, "", ""]).encode() + body


@dataclass(frozen=True)
class Figures:
    """What one round came to: microseconds of CPU a unit, units a second, and the seconds of each request."""

    cpu_micros: float
    rate: float
    seconds: list[float]

    @property
    def p50_millis(self) -> float:
        return sorted(self.seconds)[len(self.seconds) // 2] * 1000


def cpu_seconds(pid: int) -> float:
    """The CPU time that all threads of a process have used: what clock_getcpuclockid(3) gives, to the nanosecond."""
    return time.clock_gettime((~pid << 3) | 2)


def on_one_core(pid: int) -> int:
    """`pid`, all of whose threads share one core from now on: what a process costs that has more depends on who else
    runs.
    """
    core = min(os.sched_getaffinity(0))
    for thread in os.listdir(f"/proc/{pid}/task"):
        os.sched_setaffinity(int(thread), {core})
    return pid


class Client(asyncio.Protocol):
    """One connection that, from the first `ask` on, asks again when it is answered, while `next_request` gives it
    something.

    `arrived(count)` is called with the number of stream events that have arrived.
    """

    def __init__(self, next_request: Callable[[], bytes | None], arrived: Callable[[int], None]) -> None:
        self._next = next_request
        self._arrived = arrived
        self._events = 0
        self._received = b""
        self._missing = -1  # bytes of the body; -1 before the head is there
        self._began = 0.0
        self.seconds: list[float] = []
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(exc or ConnectionError("the server hung up"))

    def data_received(self, data: bytes) -> None:
        if self._missing < 0:
            self._received += data
            head, end, data = self._received.partition(b"\r\n\r\n")
            if not end:
                return
            if not head.startswith(b"HTTP/1.1 200"):
                self.done.set_exception(AssertionError(self._received[:600]))
                self._transport.abort()
                return
            self._received = b""
            length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
            self._missing = int(length) if length else 1 << 60
        self._missing -= len(data)
        if self._missing > 1 << 50:  # chunks: the last one is empty
            self._events += (self._received[-1:] + data).count(b"\n\n")
            self._received = (self._received + data)[-5:]
            if self._received != b"0\r\n\r\n":
                self._arrived(self._events)
                return
        elif self._missing > 0:
            return
        self._received, self._missing = b"", -1
        self.seconds.append(time.perf_counter() - self._began)
        self.ask()

    def ask(self) -> None:
        request = self._next()
        if request is not None:
            self._events, self._began = 0, time.perf_counter()
            self._transport.write(request)
            return
        if not self.done.done():
            self.done.set_result(None)
        self._transport.close()


async def play(target: Target, load: Load, requests: int, arrived: Callable[[str, int], None]) -> Figures:
    """Send `requests` requests, `load.in_flight` at a time. `arrived(number, count)` reports the events of a numbered
    stream.
    """
    loop, left = asyncio.get_running_loop(), itertools.repeat(None, requests)
    keys: Iterator[str] = itertools.cycle(target.keys or ["key"])

    def client(number: str) -> Client:
        def next_request() -> bytes | None:
            return next((load.request(next(keys), number if load.stream else None) for _ in left), None)

        return Client(next_request, partial(arrived, number))

    clients = [
        (await loop.create_connection(partial(client, f"stream-{number}"), "127.0.0.1", target.port, ssl=target.tls))[1]
        for number in range(min(load.in_flight, requests))
    ]
    cpu_before, began = cpu_seconds(target.pid), time.perf_counter()
    for each in clients:
        each.ask()
    async with asyncio.timeout(_ROUND_SECONDS):
        await asyncio.gather(*(client.done for client in clients))
    took, cpu = time.perf_counter() - began, cpu_seconds(target.pid) - cpu_before
    seconds = [second for client in clients for second in client.seconds]
    units = len(seconds) * load.units
    return Figures(cpu / units * 1e6, units / took, seconds)
