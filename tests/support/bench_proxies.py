"""The yardsticks of tests/bench.py: bare pass-throughs to a model server, without keys, limits, wallet or log.

python -m tests.support.bench_proxies (aiohttp | events | httpx | own | static) URL     prints its port; URL is the
model server's. `events` is aiohttp that reads each event, as a server that counts tokens must. The others pass reads on.
"""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import orjson
import uvloop

HEADERS = {"content-type": "application/json", "authorization": "Bearer key"}
EVENTS = "text/event-stream"


async def with_aiohttp(sock: socket.socket, url: str, reads_events: bool = False) -> None:
    import aiohttp
    from aiohttp import web

    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=None))

    async def forward(request: web.Request) -> web.StreamResponse:
        async with session.post(url, data=await request.read(), headers=HEADERS) as answer:
            if answer.content_type != EVENTS:
                return web.Response(body=await answer.read(), content_type="application/json")
            response = web.StreamResponse(headers={"content-type": EVENTS})
            await response.prepare(request)
            read = partial(answer.content.readuntil, b"\n\n") if reads_events else answer.content.readany
            while data := await read():
                if reads_events and data.startswith(b"data: {"):
                    orjson.loads(data.removeprefix(b"data: "))
                await response.write(data)
            await response.write_eof()
            return response

    app = web.Application()
    app.router.add_post("/v1/chat/completions", forward)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.SockSite(runner, sock).start()
    await asyncio.Event().wait()


async def with_uvicorn(sock: socket.socket, app: Any) -> None:
    import uvicorn

    settings = uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off", timeout_keep_alive=60)
    await uvicorn.Server(settings).serve(sockets=[sock])


async def answered(send: Any, status: int, kind: bytes, pieces: Any) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", kind)]})
    async for piece in pieces:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def body_of(receive: Any) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    return body


async def with_httpx(sock: socket.socket, url: str) -> None:
    import httpx

    client = httpx.AsyncClient(timeout=None, limits=httpx.Limits(max_connections=None), trust_env=False)

    async def forward(scope: Any, receive: Any, send: Any) -> None:
        async with client.stream("POST", url, content=await body_of(receive), headers=HEADERS) as answer:
            await answered(send, answer.status_code, answer.headers["content-type"].encode(), answer.aiter_raw())

    await with_uvicorn(sock, forward)


async def with_own_client(sock: socket.socket, url: str) -> None:
    from svc.outbound.client import Outbound, Reply

    client = Outbound()
    headers = [(name.encode(), value.encode()) for name, value in HEADERS.items()]

    async def pieces(reply: Reply) -> AsyncIterator[bytes]:
        while piece := await reply.more():
            yield piece

    async def forward(scope: Any, receive: Any, send: Any) -> None:
        reply = await client.send("POST", url, headers, await body_of(receive), timeout_seconds=60)
        if (kind := dict(reply.raw_headers)[b"content-type"]) == EVENTS.encode():
            await answered(send, reply.status, kind, pieces(reply))
            return
        await send({"type": "http.response.start", "status": reply.status, "headers": [(b"content-type", kind)]})
        await send({"type": "http.response.body", "body": await reply.read(1 << 24)})

    await with_uvicorn(sock, forward)


async def with_static_starlette(sock: socket.socket, url: str) -> None:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    async def answer(request: Request) -> Response:
        return Response(b'{"object": "chat.completion"}', headers={"content-type": "application/json"})

    await with_uvicorn(sock, Starlette(routes=[Route("/v1/chat/completions", answer, methods=["POST"])]))


KINDS = {
    "aiohttp": with_aiohttp,
    "events": partial(with_aiohttp, reads_events=True),
    "httpx": with_httpx,
    "own": with_own_client,
    "static": with_static_starlette,
}


def main() -> None:
    kind, url = sys.argv[1:]
    sock = socket.create_server(("127.0.0.1", 0), backlog=2048)
    sock.setblocking(False)
    print(sock.getsockname()[1], flush=True)
    uvloop.run(KINDS[kind](sock, url))


if __name__ == "__main__":
    main()
