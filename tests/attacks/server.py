"""Attacks on what stands around every request: heads, cookies, bodies, connections, large answers."""

import asyncio

import orjson

from tests.attacks.lab import Lab, attack

CHAT = {"model": "builtin/assistant", "messages": [{"role": "user", "content": "hi"}]}


@attack("nothing: the yardstick of this machine")
async def a_quiet_second(lab: Lab) -> None:
    await asyncio.sleep(lab.seconds / 3)


@attack("a cookie of 62,000 backslashes, nobody signed in")
async def cookies(lab: Lab) -> None:
    cookie = '__Host-svc_checkout="' + "\\" * 62_000 + '"'
    for _ in range(3):
        await lab.request("GET", "/checkout", headers={"cookie": cookie, "authorization": ""})


@attack("193 connections announce 1 MiB each and send nothing")
async def announced_bodies(lab: Lab) -> None:
    head = b"POST /billing/webhook HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 1048576\r\n\r\n"
    async with lab.connections(193, head):
        await asyncio.sleep(lab.seconds)


@attack("400 connections send 500 KB of a body each and stay")
async def half_sent_bodies(lab: Lab) -> None:
    head = b"POST /user/api-keys HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 1048576\r\n"
    head += f"authorization: {lab.headers['authorization']}\r\n\r\n".encode()
    async with lab.connections(150 if lab.short else 400, head + b" " * 500_000):
        await asyncio.sleep(lab.seconds)


@attack("20 chats at once, each of 249,000 metadata keys")
async def metadata(lab: Lab) -> None:
    metadata = {f"key{number}": "x" for number in range(249_000)}
    await lab.flood("/v1/chat/completions", orjson.dumps({**CHAT, "metadata": metadata}))


@attack("20 chats at once, each of 62,000 messages")
async def many_messages(lab: Lab) -> None:
    await lab.flood("/v1/chat/completions", orjson.dumps({**CHAT, "messages": CHAT["messages"] * 62_000}))


@attack("20 chats at once, each of 33,000 messages")
async def messages(lab: Lab) -> None:
    await lab.flood("/v1/chat/completions", orjson.dumps({**CHAT, "messages": CHAT["messages"] * 33_000}))


@attack("12 chats at once, each of 16 MiB of escaped text")
async def escapes(lab: Lab) -> None:
    message = b'{"role": "user", "content": "' + b"\\n" * 8_000_000 + b'"}'
    await lab.flood("/v1/chat/completions", b'{"model": "builtin/echo", "messages": [%b]}' % message, 12)


@attack("3,000 connections that say nothing after the handshake")
async def silent_connections(lab: Lab) -> None:
    async with lab.connections(150 if lab.short else 3000):
        await asyncio.sleep(lab.seconds / 3)


@attack("2,000 connections that never begin the handshake")
async def silent_handshakes(lab: Lab) -> None:
    async def one() -> asyncio.StreamWriter:
        _, writer = await asyncio.open_connection(lab.server.host, lab.server.port, local_addr=(lab.address, 0))
        return writer

    writers = await asyncio.gather(*(one() for _ in range(300 if lab.short else 2000)), return_exceptions=True)
    await asyncio.sleep(lab.seconds)
    for writer in writers:
        if isinstance(writer, asyncio.StreamWriter):
            writer.transport.abort()


@attack("300 handshakes at once, again and again for 3 seconds")
async def handshakes(lab: Lab) -> None:
    async def one() -> None:
        until = asyncio.get_running_loop().time() + lab.seconds
        while asyncio.get_running_loop().time() < until:
            try:
                _, writer = await lab.server.raw(local_addr=(lab.address, 0))
                writer.transport.abort()
            except OSError as error:
                lab.count(type(error).__name__)

    await lab.at_once(50 if lab.short else 300, one)
