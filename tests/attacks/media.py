"""Attacks by model servers that draw: silent ones, and answers that make no sense."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from tests.attacks.lab import Lab, attack

IMAGES = "/v1/images/generations"


@attack("80 pictures of two accounts from own providers that never answer; then one of a third account")
async def silent_painters(lab: Lab) -> None:
    async with _silent_server() as port:
        held = []
        for number in range(2):
            headers = await lab.account(number)
            provider = {"name": "own", "base_url": f"http://127.0.0.1:{port}/v1", "models": ["x"]}
            await lab.request("POST", "/user/providers", json=provider, headers=headers)
            body = {"prompt": "a cat", "model": "own/x"}
            held += [asyncio.create_task(lab.request("POST", IMAGES, json=body, headers=headers)) for _ in range(40)]
        await asyncio.sleep(1)
        await lab.post(
            IMAGES, {"prompt": "a cat", "model": "builtin/paint", "size": "64x64"}
        )  # 402 is an answer, 503 is none
        for task in held:
            task.cancel()
        await asyncio.gather(*held, return_exceptions=True)


@attack("40 pictures from an own provider, each answer nested 900 levels deep")
async def deep_pictures(lab: Lab) -> None:
    deep = b'{"a":' * 900 + b"1" + b"}" * 900
    answer = b'{"data": [{"b64_json": "iVBORw0KGgo=", "x": ' + deep + b'}], "usage": ' + deep + b"}"
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(answer)
    async with server_that_says(head + answer) as port:
        await lab.post("/user/providers", {"name": "own", "base_url": f"http://127.0.0.1:{port}/v1", "models": ["x"]})
        await lab.at_once(5 if lab.short else 40, lambda: lab.post(IMAGES, {"prompt": "a cat", "model": "own/x"}))


@contextlib.asynccontextmanager
async def server_that_says(answer: bytes | None) -> AsyncIterator[int]:
    """A server that gives each connection one answer, or None: says nothing; its port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            if answer is None:
                await reader.read()
            else:
                writer.write(answer)
                await writer.drain()
                await asyncio.sleep(0.2)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def _silent_server() -> contextlib.AbstractAsyncContextManager[int]:
    return server_that_says(None)
