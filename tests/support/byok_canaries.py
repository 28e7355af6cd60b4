"""Run by test_byok_addresses.py in an isolated network namespace, where every address is local and each packet is
recorded.
"""

import asyncio
import contextlib
import ipaddress
import itertools
import socket
import struct
import subprocess
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from svc.config import Config
from tests.conftest import Service
from tests.inference.test_byok_addresses import HELLO, NEVER, PRIVATE, create, refused, url_of, uses
from tests.support.byok import PUBLIC, Names, add_provider, http_answer

PUBLIC_6 = "2606:4700::1111"
COMPLETION = b'{"choices": [{"message": {"content": "from outside"}}]}'


class Wire:
    """Every address to which a connection or anything else was begun; and a server that answers at all of them, on port
    80.
    """

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self._socket.bind(("lo", 0))
        self._socket.setblocking(False)

    def seen(self) -> set[str]:
        """The addresses since the last call."""
        found = set()
        while True:
            try:
                frame = self._socket.recv(65536)
            except BlockingIOError:
                return found
            kind, packet = struct.unpack("!H", frame[12:14])[0], frame[14:]
            version_4 = kind == 0x0800
            protocol, start = (packet[9], (packet[0] & 15) * 4) if version_4 else (packet[6], 40)
            address = ipaddress.ip_address(packet[16:20] if version_4 else packet[24:40])
            if (
                protocol != 6 or packet[start + 13] & 0x12 == 0x02
            ):  # of TCP the first packet alone: the others answer it
                found.add(str(address))

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
async def wire() -> AsyncIterator[Wire]:
    for command in ("link set lo up", "route add local 0.0.0.0/0 dev lo", "-6 route add local ::/0 dev lo"):
        subprocess.run(["ip", *command.split()], check=False, capture_output=True)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer), contextlib.suppress(asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(http_answer("200 OK", COMPLETION, b"connection: close"))

    try:
        server = await asyncio.start_server(answer, ["0.0.0.0", "::"], 80)
    except OSError:
        pytest.skip("this machine has no IPv6")
    wire = Wire()
    async with server:
        for address in ("10.0.0.1", "169.254.169.254", "fdff::1"):
            _, writer = await asyncio.open_connection(address, 80)
            writer.close()
            await writer.wait_closed()
            assert address in wire.seen(), "the wire shows what goes inside"
        wire.seen()
        yield wire
    wire.close()


@pytest.fixture
def names() -> Names:
    return Names()


@pytest.fixture(params=[False, True], ids=["public alone", "private ones too"])
def config(config: Config, names: Names, request: pytest.FixtureRequest) -> Config:
    return replace(config, resolve=names, byok_private=request.param)


async def test_private_addresses_get_no_packet(service: Service, wire: Wire, names: Names) -> None:
    headers = await service.bearer()
    forbidden = NEVER if service.config.byok_private else [*NEVER, *PRIVATE]
    names.resolve("later.example", [PUBLIC])
    provider = await add_provider(service, headers, "http://later.example")
    for address in forbidden:
        assert refused(await create(service, headers, url_of(address)))
        names.resolve("later.example", [address])
        assert all(map(refused, await uses(service, headers, provider))), address
    for address in forbidden[::6]:
        for found in ([PUBLIC, address], [address, PUBLIC], [PUBLIC_6, PUBLIC, address]):
            names.resolve("later.example", found)
            assert all(map(refused, await uses(service, headers, provider))), found
    for first, second in itertools.pairwise(forbidden[::6]):
        names.resolve("later.example", *[[first], [second]] * 7)
        assert all(map(refused, await uses(service, headers, provider)))
    assert wire.seen() == set()

    for found in ([PUBLIC], [PUBLIC_6]):
        names.resolve("later.example", found)
        body = {"model": f"{provider['name']}/ok", "messages": HELLO}
        answer = await service.client.post("/v1/chat/completions", json=body, headers=headers)
        assert answer.json()["choices"][0]["message"]["content"] == "from outside"
        assert wire.seen() == set(found), "what may be reached is reached, there and nowhere else"
