"""A server process around a few routes that provoke the server itself: `svc.server.serve.run` without our application.

TINY_<NAME>=SECONDS sets a deadline of the protocol or the server, such as TINY_HEAD_SECONDS.
TINY_START=refuse|crash|taken makes the start fail.
"""

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import AsyncIterator
from functools import partial

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from svc.config import Config, from_environ
from svc.errors import StartError
from svc.secrets import open_folder
from svc.server.http.protocol import Protocol
from svc.server.serve import Server, run


class Drain:
    """What the server asks of an application: `begin` at the first signal."""

    def __init__(self) -> None:
        self.draining = False
        self.begun = asyncio.Event()

    def begin(self) -> None:
        self.draining = True
        self.begun.set()

    def __len__(self) -> int:
        return 0


async def healthz(request: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def stream(request: Request) -> Response:
    """Events without end, of `bytes` each, every `seconds`; the last one says why it ended."""
    drain: Drain = request.app.state.drain
    size, pause = int(request.query_params.get("bytes", "1")), float(request.query_params.get("seconds", "0.05"))

    async def events() -> AsyncIterator[bytes]:
        try:
            yield b"data: begun\n\n"
            while not drain.draining:
                yield b"data: " + b"x" * size + b"\n\n"
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(drain.begun.wait(), pause)
            yield b"data: stopped\n\n"
        finally:
            request.app.state.left += 1

    return StreamingResponse(events(), headers={"content-type": "text/event-stream"})


async def deaf_stream(request: Request) -> Response:
    """Events without end that no drain ends."""

    async def events() -> AsyncIterator[bytes]:
        while True:
            yield b"data: x\n\n"
            await asyncio.sleep(0.05)

    return StreamingResponse(events(), headers={"content-type": "text/event-stream"})


async def upload(request: Request) -> Response:
    received = 0
    async for piece in request.stream():
        received += len(piece)
    return JSONResponse({"received": received, "headers": dict(request.headers)})


async def busy_upload(request: Request) -> Response:
    """Reads nothing for a while, then the whole body."""
    await asyncio.sleep(float(request.query_params["seconds"]))
    return await upload(request)


async def refuse(request: Request) -> Response:
    return JSONResponse({"error": "too large"}, 413)


async def big(request: Request) -> Response:
    """One body of `bytes` bytes, handed over at once."""
    return Response(b"x" * int(request.query_params["bytes"]), media_type="application/octet-stream")


async def watch(request: Request) -> Response:
    """Answers nothing until its client goes away."""
    request.app.state.watched += 1
    while (await request.receive())["type"] != "http.disconnect":
        pass
    request.app.state.left += 1
    return Response()


async def watched(request: Request) -> Response:
    return JSONResponse(request.app.state.watched)


async def left(request: Request) -> Response:
    return JSONResponse(request.app.state.left)


class TinyApp(Starlette):
    """Fails at /crash below every error handler of Starlette, at /crash-alone after its client has left."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == "/crash":
            raise RuntimeError("a text that nobody may see")
        if scope["type"] == "http" and scope["path"] == "/crash-alone":
            while (await receive())["type"] != "http.disconnect":
                pass
            raise RuntimeError("nobody is left")
        await super().__call__(scope, receive, send)


def create_app(config: Config) -> Starlette:
    handlers = {
        "/healthz": healthz,
        "/stream": stream,
        "/deaf-stream": deaf_stream,
        "/big": big,
        "/watch": watch,
        "/watched": watched,
        "/left": left,
    }
    routes = [Route(path, handler) for path, handler in handlers.items()]
    posts = {"/upload": upload, "/busy-upload": busy_upload, "/refuse": refuse}
    routes += [Route(path, handler, methods=["POST"]) for path, handler in posts.items()]

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[dict[str, object]]:
        try:
            folder = open_folder(config.data_dir)
            if os.environ.get("TINY_START") == "refuse":
                raise StartError("the start is refused")
        except StartError as error:
            app.state.start_error = error
            raise
        if os.environ.get("TINY_START") == "crash":
            raise RuntimeError("a fault of ours")
        with contextlib.ExitStack() as other:
            if os.environ.get("TINY_START") == "taken":
                other.enter_context(socket.create_server((config.host, config.port)))
            yield {"folder": folder}
        folder.close()

    app = TinyApp(routes=routes, lifespan=lifespan)
    app.state.answer = app
    app.state.drain = Drain()
    app.state.start_error = None
    app.state.listening = lambda: None
    app.state.reload = partial(asyncio.sleep, 0, [])
    app.state.left = app.state.watched = 0
    return app


def main() -> int:
    for name, value in os.environ.items():
        if name.startswith("TINY_") and name != "TINY_START":
            attribute = name.removeprefix("TINY_").lower()
            owner = Protocol if hasattr(Protocol, attribute) else Server
            assert hasattr(owner, attribute), name
            setattr(owner, attribute, float(value))
    return run(partial(from_environ, os.environ), create_app)


if __name__ == "__main__":
    sys.exit(main())
