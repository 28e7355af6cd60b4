"""JSON requests over an `Outbound`."""

import contextlib

import pytest

from svc.outbound import errors
from svc.outbound.addresses import public_address
from svc.outbound.client import Outbound
from svc.outbound.json_requests import ask_json
from tests.support.outgoing import OK, Peer, Play, Stub, both_loops, once


@both_loops
async def test_answers_come_without_cookies_redirects_or_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    async def play(peer: Peer) -> None:
        while True:
            seen.append((await peer.request()).lower())
            await peer.send(b"HTTP/1.1 302 X\r\nset-cookie: a=b\r\nlocation: /x\r\ncontent-length: 4\r\n\r\n[42]")

    for variable in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(variable, "http://127.0.0.1:1")
    async with Stub(play) as stub, contextlib.aclosing(Outbound()) as client:
        for form in ({"a": "1 2"}, {"a": "1 2"}, None):
            assert await ask_json(client, stub.url, {"x-y": "z"}, form, 5.0) == (302, [42])
    assert stub.connections == 1
    assert all(
        b"accept-encoding: identity\r\n" in head and b"gzip" not in head and b"cookie" not in head and b"x-y: z" in head
        for head in seen
    )
    assert seen[0].startswith(b"post ") and seen[0].endswith(b"a=1+2") and seen[2].startswith(b"get ")


@both_loops
async def test_faults_are_outbound_errors() -> None:
    async def silent(peer: Peer) -> None:
        await peer.gone()

    flood = b"HTTP/1.1 200 OK\r\ncontent-length: 300000\r\n\r\n" + b"x" * 300_000
    cases: list[tuple[Play, type[errors.OutboundError]]] = [
        (once(b""), errors.ProtocolError),
        (once(OK[:-1]), errors.ProtocolError),
        (silent, errors.ReadTimeout),
        (once(flood), errors.TooLarge),
    ]
    for play, error in cases:
        async with Stub(play) as stub, contextlib.aclosing(Outbound()) as client:
            with pytest.raises(error):
                await ask_json(client, stub.url, {}, None, 0.2)
    async with contextlib.aclosing(Outbound(allow=public_address)) as client:
        for url, error in [
            (stub.url, errors.AddressNotAllowed),
            ("http://h.test/#fragment", errors.OutboundError),
            ("http://h.test/\n", errors.InvalidURL),
        ]:
            with pytest.raises(error):
                await ask_json(client, url, {}, None, 5.0)


async def test_other_answers_have_no_json() -> None:
    async with (
        Stub(once(b"HTTP/1.1 500 X\r\ncontent-length: 4\r\n\r\noops")) as stub,
        contextlib.aclosing(Outbound()) as client,
    ):
        assert await ask_json(client, stub.url, {}, None, 5.0) == (500, None)
