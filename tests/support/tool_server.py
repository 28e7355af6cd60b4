"""Tool servers on loopback: the real one of the `mcp` package in each of its transports, and one that a test scripts."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson
import uvicorn

from tests.support.late_imports import import_late
from tests.support.model_media import PNG

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

STATELESS, HANDSHAKE = "2026-07-28", "2025-06-18"
REVISIONS = (STATELESS, HANDSHAKE)


def sample_tools() -> "MCPServer[Any]":
    """A server with tools of every kind."""
    import_late("mcp.server.mcpserver")
    import mcp_types as types
    from mcp.server.mcpserver import Image, MCPServer
    from mcp.server.mcpserver.exceptions import ToolError

    server = MCPServer("sample")

    @server.tool(annotations=types.ToolAnnotations(read_only_hint=True))
    def add(a: int, b: int) -> int:
        """Adds two numbers."""
        return a + b

    @server.tool(annotations=types.ToolAnnotations(read_only_hint=True), structured_output=False)
    def greet(name: str) -> str:
        """Greets a person."""
        return f"Grüße, {name}!\nBis bald."

    @server.tool(structured_output=False)
    def delete_page(title: str) -> str:
        """Deletes a page."""
        return f"deleted {title}"

    @server.tool(annotations=types.ToolAnnotations(read_only_hint=True), structured_output=False)
    def draw() -> Image:
        """Draws."""
        return Image(data=PNG, format="png")

    @server.tool(annotations=types.ToolAnnotations(read_only_hint=True))
    def fail() -> str:
        """Fails."""
        raise ToolError("the wiki is closed")

    return server


@dataclass
class Served:
    """A server at `url`. `seen` has the method and the headers of each HTTP request; `app` may be replaced."""

    url: str
    app: Any
    seen: list[tuple[str, dict[str, str]]] = field(default_factory=list)


@contextlib.asynccontextmanager
async def real_server(
    revision: str = STATELESS, server: "MCPServer[Any] | None" = None, **options: Any
) -> AsyncIterator[Served]:
    """The server of the `mcp` package. For HANDSHAKE it refuses the stateless revision, as earlier releases do."""
    app = (server or sample_tools()).streamable_http_app(**options)
    served = Served("", app)

    async def entry(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            headers = {name.decode(): value.decode() for name, value in scope["headers"]}
            served.seen.append((scope["method"], headers))
            if revision == HANDSHAKE and headers.get("mcp-protocol-version") == STATELESS:
                await send({"type": "http.response.start", "status": 400, "headers": []})
                await send({"type": "http.response.body", "body": b"Bad Request: Unsupported protocol version"})
                return
        await served.app(scope, receive, send)

    config = uvicorn.Config(entry, host="127.0.0.1", port=0, log_config=None, lifespan="off", ws="none")
    running = uvicorn.Server(config)
    async with app.router.lifespan_context(app):
        task = asyncio.create_task(running._serve())
        while not running.started:
            await asyncio.sleep(0.005)
        served.url = f"http://127.0.0.1:{running.servers[0].sockets[0].getsockname()[1]}/mcp"
        try:
            yield served
        finally:
            running.should_exit = running.force_exit = True
            await task


# --- a scripted server


@dataclass
class Asked:
    """A request: its HTTP method, headers and body, as bytes and as JSON."""

    verb: str
    path: str
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> dict[str, Any]:
        found: dict[str, Any] = orjson.loads(self.raw) if self.raw else {}
        return found

    @property
    def method(self) -> str:
        return str(self.body.get("method", ""))

    @property
    def id(self) -> Any:
        return self.body.get("id")


Handler = Callable[[Asked], bytes | Awaitable[bytes | None] | None]


class Scripted:
    """A server that answers with the bytes of `handler`, and never if that returns None."""

    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        self.asked: list[Asked] = []
        self.url = ""

    def of(self, method: str) -> list[Asked]:
        return [one for one in self.asked if one.method == method]

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                verb, path, _ = head[0].split(" ")
                headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
                asked = Asked(verb, path, headers, await reader.readexactly(int(headers.get("content-length", 0))))
                self.asked.append(asked)
                answer = self.handler(asked)
                answer = await answer if asyncio.iscoroutine(answer) else answer
                if answer is None:
                    await reader.read()
                    break
                writer.write(answer)
                await writer.drain()
                if b"connection: close" in answer[:1000]:
                    break
        writer.close()


@contextlib.asynccontextmanager
async def scripted(handler: Handler) -> AsyncIterator[Scripted]:
    server = Scripted(handler)
    listening = await asyncio.start_server(server.connected, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/mcp"
    try:
        yield server
    finally:
        listening.close()


def http(body: bytes, status: int = 200, content_type: str = "application/json", **headers: str) -> bytes:
    more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    head = f"HTTP/1.1 {status} X\r\ncontent-type: {content_type}\r\ncontent-length: {len(body)}\r\n{more}\r\n"
    return head.encode() + body


def result(asked: Asked, value: Any, **headers: str) -> bytes:
    return http(orjson.dumps({"jsonrpc": "2.0", "id": asked.id, "result": value}), **headers)


def error(asked: Asked, code: int, message: str, status: int = 200, **data: Any) -> bytes:
    fault = {"code": code, "message": message, **({"data": data} if data else {})}
    return http(orjson.dumps({"jsonrpc": "2.0", "id": asked.id, "error": fault}), status)


def events(*messages: Any) -> bytes:
    """An event stream with these messages that ends with the connection."""
    data = b"".join(b"event: message\ndata: %b\n\n" % orjson.dumps(message) for message in messages)
    return b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n" + data


def tool(name: str = "look", **fields: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"at": {"type": "string"}}}
    return {"name": name, "description": f"Does {name}.", "inputSchema": schema, **fields}


def text(value: str, **fields: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": value}], **fields}


def stateless(tools: list[dict[str, Any]], call: Callable[[Asked], bytes | None] | None = None) -> Handler:
    """A handler of the stateless revision with these tools, which are read at each request."""

    def handle(asked: Asked) -> bytes | None:
        if asked.method == "server/discover":
            return result(asked, {"supportedVersions": [STATELESS], "capabilities": {}, "resultType": "complete"})
        if asked.method == "tools/list":
            return result(asked, {"tools": tools, "resultType": "complete"})
        return result(asked, text("seen")) if call is None else call(asked)

    return handle


def handshake(tools: list[dict[str, Any]], call: Callable[[Asked], bytes | None] | None = None) -> Handler:
    """A handler of a revision with a handshake, with sessions."""

    def handle(asked: Asked) -> bytes | None:
        if asked.method == "server/discover":
            return http(b"", 400)
        if asked.method == "initialize":
            about = {"protocolVersion": HANDSHAKE, "capabilities": {"tools": {}}, "serverInfo": {"name": "x"}}
            return result(asked, about, mcp_session_id="session-1")
        if asked.id is None:
            return http(b"", 202)
        if asked.method == "tools/list":
            return result(asked, {"tools": tools})
        return result(asked, text("seen")) if call is None else call(asked)

    return handle
