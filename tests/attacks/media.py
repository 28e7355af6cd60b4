"""Attacks on the built-in models, on pictures and on speech."""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from tests.attacks.lab import Lab, attack

IMAGES, GENERATE = "/v1/images/generations", "/v1/audio/generate"


def _asked(text: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text}]


@attack("a tool schema with 100,000 enum entries, sent to the built-in assistant")
async def enum_entries(lab: Lab) -> None:
    unit = {"enum": [f"{number}" for number in range(100_000)]}
    parameters = {"type": "object", "properties": {"unit": unit}, "required": ["unit"]}
    function = {"name": "get_weather", "description": "the weather", "parameters": parameters}
    body = {"messages": _asked("weather " * 900), "tools": [{"type": "function", "function": function}]}
    await lab.at_once(2 if lab.short else 10, lambda: lab.chat(**body))


@attack("a script of 10,000 lines of twenty nested repeats")
async def nested_repeats(lab: Lab) -> None:
    script = "\n".join(["repeat 2 " * 20 + "say x"] * 9_999)
    await lab.at_once(2 if lab.short else 10, lambda: lab.chat(model="builtin/script", messages=_asked(script)))


@attack("speech of 100,000 dots, forty times at once")
async def dots(lab: Lab) -> None:
    await _fund(lab)
    body = {"input": "." * 99_999 + "a", "tts_max_tokens": 256}
    await lab.at_once(4 if lab.short else 40, lambda: lab.post(GENERATE, body))


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
        await lab.post(IMAGES, {"prompt": "a cat", "model": "builtin/paint", "size": "64x64"})  # 402 is an answer, 503 is none
        for task in held:
            task.cancel()
        await asyncio.gather(*held, return_exceptions=True)


@attack("40 pictures from an own provider, each answer nested 900 levels deep")
async def deep_pictures(lab: Lab) -> None:
    deep = b'{"a":' * 900 + b"1" + b"}" * 900
    answer = b'{"data": [{"b64_json": "iVBORw0KGgo=", "x": ' + deep + b'}], "usage": ' + deep + b"}"
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(answer)
    async with _server(head + answer) as port:
        await lab.post("/user/providers", {"name": "own", "base_url": f"http://127.0.0.1:{port}/v1", "models": ["x"]})
        await lab.at_once(5 if lab.short else 40, lambda: lab.post(IMAGES, {"prompt": "a cat", "model": "own/x"}))


async def _fund(lab: Lab) -> None:
    """Five dollars from the operator, so that what is asked for is really made."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "svc", "credit", "attacker@example.com", "5"),
        cwd=Path(f"/proc/{lab.server.pid}/cwd").readlink(),
        env={**os.environ, "SVC_DATA_DIR": str(lab.server.data_dir)},
        stdout=asyncio.subprocess.DEVNULL,
    )
    assert await process.wait() == 0


@contextlib.asynccontextmanager
async def _server(answer: bytes | None) -> AsyncIterator[int]:
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
    return _server(None)
