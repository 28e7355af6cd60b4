"""The client under httpx: what httpx's users see of it."""

import httpx
import pytest

from svc.outbound import errors
from svc.outbound.addresses import public_address
from svc.outbound.client import Outbound
from svc.outbound.transport import httpx_client
from tests.support.outgoing import OK, Peer, Play, Stub, both_loops, once


@both_loops
async def test_httpx_clients_work_over_it_without_cookies_redirects_or_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    async def play(peer: Peer) -> None:
        while True:
            seen.append((await peer.request()).lower())
            await peer.send(
                b"HTTP/1.1 302 X\r\nset-cookie: a=b\r\nlocation: /x\r\nX-Y: z\r\ncontent-length: 4\r\n\r\n[42]"
            )

    for variable in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(variable, "http://127.0.0.1:1")
    async with Stub(play) as stub, httpx_client(Outbound()) as session:
        for _ in range(2):
            response = await session.post(stub.url, json={"a": 1})
            assert (response.status_code, response.json(), response.headers["x-y"]) == (302, [42], "z")
        assert (await session.get(stub.url)).content == b"[42]"
    assert stub.connections == 1
    assert all(
        b"accept-encoding: identity\r\n" in head and b"gzip" not in head and b"cookie" not in head for head in seen
    )
    assert seen[0].endswith(b'{"a":1}')


@both_loops
async def test_httpx_users_see_httpx_exceptions_with_their_request() -> None:
    async def silent(peer: Peer) -> None:
        await peer.gone()

    cases: list[tuple[Play, type[httpx.TransportError]]] = [
        (once(b""), httpx.RemoteProtocolError),
        (once(OK[:-1]), httpx.RemoteProtocolError),
        (silent, httpx.TimeoutException),
    ]
    for play, error in cases:
        async with Stub(play) as stub, httpx_client(Outbound()) as session:
            with pytest.raises(error) as raised:
                await session.get(stub.url, timeout=0.2)
            assert raised.value.request.url == stub.url
    flood = b"HTTP/1.1 200 OK\r\ncontent-length: 300000\r\n\r\n" + b"x" * 300_000
    async with Stub(once(flood)) as stub, httpx_client(Outbound()) as session:
        with pytest.raises(errors.TooLarge):
            await session.get(stub.url)
    async with httpx_client(Outbound(allow=public_address)) as session:
        for url in (stub.url, "http://h.test/#fragment"):
            with pytest.raises(httpx.TransportError):
                await session.get(url)
