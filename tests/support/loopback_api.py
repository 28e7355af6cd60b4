"""A small HTTP server on loopback that plays another company's API. The test's object decides what it answers."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import orjson

# What to do with a request in place of an answer: say nothing, hang up, or send 2 MB.
HANG, DROP, FLOOD = "hang", "drop", "flood"
# A status and a value for JSON, or the bytes of a body; or one of the above.
Answer = tuple[int, Any] | str


class Received(NamedTuple):
    """A request. The names of its headers are in lower case, and its body is a form."""

    method: str
    path: str
    headers: dict[str, str]
    form: dict[str, str]


async def _received(reader: asyncio.StreamReader) -> Received:
    start, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    method, target, _ = start.split(" ")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines if line)}
    body = (await reader.readexactly(int(headers.get("content-length", "0")))).decode()
    form = {name: values[0] for name, values in parse_qs(body, strict_parsing=bool(body)).items()}
    return Received(method, urlsplit(target).path, headers, form)


@contextlib.asynccontextmanager
async def loopback_api(answer: Callable[[Received], Awaitable[Answer]]) -> AsyncIterator[str]:
    """Answer each request with `answer(request)`. The URL is the result."""
    tasks: set[asyncio.Task[Any] | None] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())
        try:
            while (found := await answer(await _received(reader))) != DROP:
                if found == HANG:
                    await asyncio.Event().wait()
                if found == FLOOD:
                    writer.write(b"HTTP/1.1 200 X\r\ncontent-type: application/json\r\n\r\n" + b" " * 2_000_000)
                    await writer.drain()
                    break
                status, value = found
                data = value if isinstance(value, bytes) else orjson.dumps(value)
                writer.write(b"HTTP/1.1 %d X\r\ncontent-length: %d\r\n\r\n%b" % (status, len(data), data))
            writer.close()
        except (asyncio.CancelledError, asyncio.IncompleteReadError, ConnectionError):
            writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in filter(None, tasks):
            task.cancel()
        await asyncio.gather(*filter(None, tasks), return_exceptions=True)
