"""The outgoing client against a server that misbehaves in every way, over real sockets and under both event loops."""

import asyncio
import gc
import ipaddress
import os
import socket
import time
import weakref
from contextlib import suppress
from typing import Any

import pytest

from svc.outbound.addresses import public_address
from svc.outbound.client import Outbound
from svc.outbound.connection import Connection
from svc.outbound.errors import (
    AddressNotAllowed,
    ConnectError,
    ConnectTimeout,
    Cut,
    InvalidRequest,
    InvalidURL,
    OutboundError,
    ReadTimeout,
)
from tests.support.cases import each
from tests.support.outgoing import (
    CHUNKED,
    OK,
    START,
    Contexts,
    Peer,
    Stub,
    always,
    both_loops,
    client,
    descriptors,
    fetch,
    once,
    resolver,
)
from tests.support.waiting import until

# The request.


@both_loops
async def test_caller_sets_all_headers_but_those_of_the_client() -> None:
    seen = []

    async def play(peer: Peer) -> None:
        for _ in range(3):
            seen.append(await peer.request())
            await peer.send(OK)

    headers = [
        (b"Accept-Encoding", b"gzip"),
        (b"HOST", b"evil"),
        (b"content-length", b"9"),
        (b"x-a", b"1"),
        (b"X-A", b"2"),
    ]
    headers += [(b"transfer-encoding", b"chunked"), (b"connection", b"close"), (b"expect", b"100-continue")]
    async with Stub(play) as stub, client() as outbound:
        await fetch(outbound, stub.url + "a%20b?c=d", "POST", headers=headers, body=b"hello")
        await fetch(outbound, stub.url, "POST")
        await fetch(outbound, stub.url, headers=[(b"x-b", b"3")])
        host = b"host: 127.0.0.1:%d\r\naccept-encoding: identity\r\nuser-agent: svc\r\n" % stub.port
    assert seen == [
        b"POST /a%20b?c=d HTTP/1.1\r\n" + host + b"x-a: 1\r\nX-A: 2\r\ncontent-length: 5\r\n\r\nhello",
        b"POST / HTTP/1.1\r\n" + host + b"content-length: 0\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + host + b"x-b: 3\r\n\r\n",
    ]


@each("bad", [b"\r", b"\n", b"\0", b"a\r\nsecret: 1"])
@both_loops
async def test_characters_that_break_the_head_are_refused(bad: bytes) -> None:
    async with Stub(always(OK)) as stub, client() as outbound:
        for arguments in (
            {"headers": [(b"x" + bad, b"1")]},
            {"headers": [(b"x", b"secret" + bad)]},
            {"method": "GET" + bad.decode()},
        ):
            with pytest.raises(InvalidRequest) as refused:
                await fetch(outbound, stub.url, **arguments)
            assert "secret" not in str(refused.value)
        with pytest.raises(InvalidURL):
            await fetch(outbound, stub.url + bad.decode())
    assert stub.connections == 0


@both_loops
async def test_large_bodies_are_sent_whole() -> None:
    seen = []

    async def play(peer: Peer) -> None:
        seen.append(await peer.request())
        await peer.send(OK)

    body = os.urandom(8 << 20)
    async with Stub(play) as stub, client() as outbound:
        assert await fetch(outbound, stub.url, "POST", body=body) == (200, b"ok")
    assert seen[0].endswith(b"\r\n\r\n" + body)


@both_loops
async def test_connections_send_small_packets_at_once() -> None:
    async with Stub(always(OK)) as stub, client() as outbound:
        await fetch(outbound, stub.url)
        (connection,) = outbound._connections
        assert connection.transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


# Addresses.


@both_loops
async def test_host_is_resolved_once_and_the_checked_address_connected() -> None:
    """No DNS server knows a name that ends in .test, so another lookup would fail."""
    judged = []

    def allow(address: Any) -> bool:
        judged.append(address)
        return True

    resolve = resolver("127.0.0.1")
    async with Stub(always(OK)) as stub, client(resolve=resolve, allow=allow) as outbound:
        for _ in range(3):
            await fetch(outbound, f"http://model.test:{stub.port}/")
    assert resolve.asked == ["model.test"]
    assert judged == [ipaddress.ip_address("127.0.0.1")]
    assert stub.connections == 1


@each(
    "addresses", [["10.0.0.1"], ["127.0.0.1", "10.0.0.1"], ["10.0.0.1", "127.0.0.1"], ["127.0.0.1", "::ffff:10.0.0.1"]]
)
@both_loops
async def test_one_refused_address_refuses_the_host(addresses: list[str]) -> None:
    def allow(address: Any) -> bool:
        return str(address) == "127.0.0.1"

    async with Stub(always(OK)) as stub, client(resolve=resolver(*addresses), allow=allow) as outbound:
        with pytest.raises(AddressNotAllowed) as refused:
            await fetch(outbound, f"http://model.test:{stub.port}/")
    assert stub.connections == 0
    assert not any(part in str(refused.value) for part in (*addresses, str(stub.port), "model.test"))
    assert isinstance(refused.value, OutboundError)


@both_loops
async def test_rebound_name_is_refused() -> None:
    answers = [["127.0.0.1"], ["127.0.0.2"]]

    async def resolve(host: str, port: int, account_id: str) -> list[str]:
        return answers.pop(0)

    async with Stub(once(OK)) as stub, client(resolve=resolve, allow=lambda a: str(a) == "127.0.0.1") as outbound:
        assert await fetch(outbound, f"http://model.test:{stub.port}/") == (200, b"ok")
        await until(lambda: not stub.opened())
        with pytest.raises(AddressNotAllowed):
            await fetch(outbound, f"http://model.test:{stub.port}/")


@each("host", ["127.1", "2130706433", "0x7f000001", "0x7f.1", "017700000001", "127.0.0.1", "[::1]", "0", "localhost"])
@both_loops
async def test_every_spelling_of_an_address_is_checked_by_its_meaning(host: str) -> None:
    async with Stub(always(OK)) as stub, client(allow=public_address) as outbound:
        with pytest.raises(AddressNotAllowed):
            await fetch(outbound, f"http://{host}:{stub.port}/")
    assert stub.connections == 0


@both_loops
async def test_without_a_rule_every_address_is_allowed() -> None:
    async with Stub(always(OK)) as stub, client() as outbound:
        assert await fetch(outbound, f"http://2130706433:{stub.port}/") == (200, b"ok")


@both_loops
async def test_next_address_is_tried_after_a_refused_or_silent_one() -> None:
    async with Stub(always(OK)) as stub:
        async with client(resolve=resolver("127.0.0.2", "127.0.0.1")) as outbound:
            assert await fetch(outbound, f"http://model.test:{stub.port}/") == (200, b"ok")
        with silent_address("127.0.0.3", stub.port):
            options: dict[str, Any] = {"resolve": resolver("127.0.0.3", "127.0.0.1"), "connect_timeout_seconds": 0.4}
            async with client(**options) as outbound:
                assert await fetch(outbound, f"http://model.test:{stub.port}/") == (200, b"ok")


class silent_address:  # noqa: N801
    """A port that takes no connection and refuses none: its queue is full."""

    def __init__(self, host: str, port: int = 0) -> None:
        self.sockets = [socket.socket() for _ in range(4)]
        self.sockets[0].bind((host, port))
        self.sockets[0].listen(0)
        self.port = self.sockets[0].getsockname()[1]
        for waiting in self.sockets[1:]:
            waiting.setblocking(False)
            waiting.connect_ex((host, self.port))

    def __enter__(self) -> "silent_address":
        return self

    def __exit__(self, *_: object) -> None:
        for opened in self.sockets:
            opened.close()


@both_loops
async def test_resolving_connecting_and_tls_share_the_connect_timeout() -> None:
    async def hang(host: str, port: int, account_id: str) -> list[str]:
        await asyncio.sleep(60)
        return []

    async def mute(peer: Peer) -> None:
        await peer.gone()

    async with client(resolve=hang, connect_timeout_seconds=0.1) as outbound, asyncio.timeout(20):
        with pytest.raises(ConnectTimeout):
            await fetch(outbound, "http://model.test/")
    with silent_address("127.0.0.1") as silent:
        async with client(connect_timeout_seconds=0.1) as outbound, asyncio.timeout(20):
            with pytest.raises(ConnectTimeout):
                await fetch(outbound, f"http://127.0.0.1:{silent.port}/")
    async with Stub(mute) as stub, client(connect_timeout_seconds=0.1) as outbound:
        with pytest.raises(ConnectTimeout):
            await fetch(outbound, f"https://127.0.0.1:{stub.port}/")
        await until(lambda: stub.ended == 1)


@both_loops
async def test_unreachable_host_is_a_connect_error_without_its_address() -> None:
    async def fails(host: str, port: int, account_id: str) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "secret")

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        for options in ({"resolve": fails}, {"resolve": resolver()}, {"resolve": resolver("nonsense")}, {}):
            async with client(**options) as outbound:
                with pytest.raises(ConnectError) as refused:
                    await fetch(outbound, f"http://127.0.0.1:{port}/?secret")
                assert not any(part in str(refused.value) for part in ("secret", "127", str(port)))
                assert refused.value.__suppress_context__ or refused.value.__context__ is None
        async with client() as outbound:
            with pytest.raises(ConnectError):
                await fetch(outbound, f"http://{'a' * 70}.test/")


# TLS.


@both_loops
async def test_tls_verifies_and_sends_the_host_name(authority: Contexts) -> None:
    seen: list[object] = []

    async def play(peer: Peer) -> None:
        seen.append(await peer.request())
        await peer.send(OK)
        seen.append(await peer.request())
        await peer.send(CHUNKED)
        await peer.gone()

    server, trusting = authority
    server.sni_callback = lambda _, name, __: seen.append(name)
    async with Stub(play, server) as stub, client(resolve=resolver("127.0.0.1"), ssl_context=trusting) as outbound:
        assert await fetch(outbound, f"https://model.test:{stub.port}/") == (200, b"ok")
        assert b"\r\nhost: model.test:%d\r\n" % stub.port in seen[1]  # type: ignore[operator]
        assert await fetch(outbound, f"https://model.test:{stub.port}/", "POST", body=bytes(1 << 20)) == (
            200,
            b"abcdefg",
        )
        assert stub.connections == 1
    async with (
        Stub(always(OK), server) as stub,
        client(resolve=resolver("127.0.0.1"), ssl_context=trusting) as outbound,
    ):
        assert await fetch(outbound, f"https://model.test.:{stub.port}/") == (200, b"ok")
    server.sni_callback = None
    assert seen[0] == "model.test"


@both_loops
async def test_a_certificate_of_another_name_or_authority_is_refused(authority: Contexts) -> None:
    server, trusting = authority
    async with Stub(always(OK), server) as stub:
        for url, context in (
            (f"https://other.test:{stub.port}/", trusting),
            (f"https://127.0.0.1:{stub.port}/", trusting),
            (f"https://model.test:{stub.port}/", None),
        ):
            async with client(resolve=resolver("127.0.0.1"), ssl_context=context) as outbound:
                with pytest.raises(ConnectError, match="certificate was refused"):
                    await fetch(outbound, url)
                await until(lambda: not stub.opened())


@both_loops
async def test_plain_http_on_a_tls_port_and_tls_on_a_plain_port_are_errors(authority: Contexts) -> None:
    async with Stub(always(OK), authority[0]) as stub, client() as outbound:
        with pytest.raises(Cut):
            await fetch(outbound, stub.url)

    async def refuse(peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 400 no\r\n\r\n")

    async with Stub(refuse) as stub, client() as outbound:
        with pytest.raises(ConnectError):
            await fetch(outbound, stub.url.replace("http", "https"))


@both_loops
async def test_tls_body_without_close_notify_is_cut(authority: Contexts) -> None:
    async def cut_off(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\n\r\nabc")
        raw = peer.writer.transport.get_extra_info("socket")
        with socket.fromfd(raw.fileno(), socket.AF_INET, socket.SOCK_STREAM) as same:
            same.shutdown(socket.SHUT_WR)  # the TCP stream ends, TLS did not say so
        await peer.gone()

    server, trusting = authority
    for play, whole in ((once(b"HTTP/1.1 200 OK\r\n\r\nabc"), True), (cut_off, False)):
        async with Stub(play, server) as stub, client(resolve=resolver("127.0.0.1"), ssl_context=trusting) as outbound:
            reply = await outbound.send("GET", f"https://model.test:{stub.port}/", timeout_seconds=5)
            if whole:
                assert await reply.read(100) == b"abc"
            else:
                with pytest.raises(Cut):
                    await reply.read(100)


# The pool.


@both_loops
async def test_connection_is_reused_only_for_its_origin_and_client() -> None:
    async with Stub(always(OK, CHUNKED)) as stub, Stub(always(OK)) as other, client() as outbound, client() as second:
        for _ in range(5):
            await fetch(outbound, stub.url)
        assert stub.connections == 1
        await fetch(outbound, other.url)
        assert (stub.connections, other.connections) == (1, 1)
        await fetch(outbound, stub.url.replace("127.0.0.1", "localhost"))
        assert stub.connections == 2
        await fetch(second, stub.url)
        assert stub.connections == 3


@both_loops
async def test_newest_idle_connection_is_used_first_and_idle_ones_expire() -> None:
    by: list[int] = []
    gate = asyncio.Event()

    async def play(peer: Peer) -> None:
        while True:
            await peer.request()
            by.append(peer.number)
            await gate.wait()
            await peer.send(OK)

    async with Stub(play) as stub, client(max_idle=2, idle_seconds=0.3) as outbound:
        three = [asyncio.create_task(fetch(outbound, stub.url)) for _ in range(3)]
        await until(lambda: len(by) == 3)
        gate.set()
        await asyncio.gather(*three)
        await until(lambda: stub.opened() == 2)
        for _ in range(3):
            await fetch(outbound, stub.url)
        assert len(set(by[3:])) == 1
        assert stub.connections == 3
        await until(lambda: stub.ended == 3)


@each(
    ("answer", "kept"),
    [
        (OK, True),
        (CHUNKED, True),
        (b"HTTP/1.1 204 No\r\n\r\n", True),
        (b"HTTP/1.1 304 No\r\ncontent-length: 5\r\n\r\n", True),
        (b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\nok", True),
        (b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok", False),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\ncontent-length: 2\r\n\r\nok", False),
        (OK + b"X", False),
        (OK + OK, False),
        (CHUNKED + b"HTTP/1.1 200", False),
        (b"HTTP/1.1 204 No\r\ncontent-length: 5\r\n\r\nhello", False),
    ],
)
@both_loops
async def test_connection_is_kept_only_if_the_answer_ended_cleanly(answer: bytes, kept: bool) -> None:
    async with Stub(always(answer)) as stub, client() as outbound:
        for _ in range(3):
            assert (await fetch(outbound, stub.url))[1] in (b"ok", b"abcdefg", b"")
        assert stub.connections == (1 if kept else 3)


@both_loops
async def test_unrequested_bytes_close_an_idle_connection() -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(OK)
        await asyncio.sleep(0.02)
        await peer.send(b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n")
        await peer.gone()

    async with Stub(play) as stub, client() as outbound:
        assert await fetch(outbound, stub.url) == (200, b"ok")
        await until(lambda: not stub.opened())
        assert await fetch(outbound, stub.url) == (200, b"ok")
    assert stub.connections == 2


@both_loops
async def test_connection_with_an_unread_body_is_closed() -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nab")
        await peer.gone()

    async with Stub(play) as stub, client() as outbound:
        reply = await outbound.send("GET", stub.url, timeout_seconds=5)
        assert await reply.more() == b"ab"
        await reply.aclose()
        await reply.aclose()
        await until(lambda: stub.ended == 1)
        with pytest.raises(Cut):
            await reply.more()


@both_loops
async def test_connection_with_an_unsent_request_is_not_reused() -> None:
    async def play(peer: Peer) -> None:
        await peer.reader.readuntil(b"\r\n\r\n")
        await peer.send(OK)
        await asyncio.sleep(0.1)
        await peer.gone()

    async with Stub(play) as stub, client() as outbound:
        assert await fetch(outbound, stub.url, "POST", body=bytes(32 << 20)) == (200, b"ok")
        await until(lambda: stub.ended == 1)


@both_loops
async def test_closing_a_reply_whose_body_is_complete_keeps_the_connection() -> None:
    async with Stub(always(OK)) as stub, client() as outbound:
        for _ in range(3):
            reply = await outbound.send("GET", stub.url, timeout_seconds=5)
            await reply.aclose()
            assert await reply.read(10) == b""
        assert stub.connections == 1


@each("reset", [False, True])
@both_loops
async def test_reused_connection_without_an_answer_is_replaced_once(reset: bool) -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(OK)
        if peer.number == 1:  # takes the next request and dies
            await peer.request()
            if reset:
                peer.reset()
            return
        await peer.request()
        await peer.send(OK)
        await peer.gone()

    async with Stub(play) as stub, client() as outbound:
        assert [await fetch(outbound, stub.url, "POST", body=b"x") for _ in range(3)] == [(200, b"ok")] * 3
    assert stub.connections == 2


@each("reset", [False, True])
@both_loops
async def test_connection_closed_while_idle_is_not_used(reset: bool) -> None:
    async with Stub(once(OK, reset=reset)) as stub, client() as outbound:
        assert await fetch(outbound, stub.url) == (200, b"ok")
        await until(lambda: not stub.opened())
        assert await fetch(outbound, stub.url) == (200, b"ok")
        time.sleep(0.05)
        assert await fetch(outbound, stub.url) == (200, b"ok")
    assert stub.connections == 3


@both_loops
async def test_connection_closed_before_its_body_was_read_is_not_kept() -> None:
    async with Stub(once(OK)) as stub, client() as outbound:
        reply = await outbound.send("GET", stub.url, timeout_seconds=5)
        await until(lambda: not stub.opened())
        assert await reply.read(10) == b"ok"
        assert await fetch(outbound, stub.url) == (200, b"ok")
    assert stub.connections == 2


@both_loops
async def test_request_is_sent_at_most_twice_and_once_on_new_connections() -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        if peer.number == 1:
            await peer.send(OK)
            await peer.request()

    async with Stub(play) as stub, client() as outbound:
        assert await fetch(outbound, stub.url) == (200, b"ok")
        with pytest.raises(Cut):
            await fetch(outbound, stub.url)
        assert stub.connections == 2
        with pytest.raises(Cut):
            await fetch(outbound, stub.url)
        assert stub.connections == 3


@both_loops
async def test_reused_connection_that_fails_after_the_first_byte_is_an_error() -> None:
    async def first_byte(peer: Peer) -> None:
        await peer.request()
        await peer.send(OK)
        await peer.request()
        await peer.send(b"H")

    async def silent(peer: Peer) -> None:
        await peer.request()
        await peer.send(OK)
        await peer.gone()

    for play, error in ((first_byte, Cut), (silent, ReadTimeout)):
        async with Stub(play) as stub, client() as outbound:
            assert await fetch(outbound, stub.url) == (200, b"ok")
            with pytest.raises(error):
                await fetch(outbound, stub.url, timeout_seconds=0.1)
        assert stub.connections == 1


@both_loops
async def test_closed_client_closes_connections_and_refuses_requests() -> None:
    async def play(peer: Peer) -> None:
        request = await peer.request()
        if b"hang" not in request:
            await peer.send(OK if b"idle" in request else b"HTTP/1.1 200 OK\r\n\r\nab")
        await peer.gone()

    async with Stub(play) as stub:
        outbound = Outbound()
        reply = await outbound.send("GET", stub.url, timeout_seconds=5)
        waiting = asyncio.create_task(fetch(outbound, stub.url + "hang"))
        await fetch(outbound, stub.url + "idle")
        await until(lambda: stub.connections == 3)
        await outbound.aclose()
        await until(lambda: stub.ended == 3)
        with pytest.raises(Cut):
            await waiting
        assert await reply.more() == b"ab"
        with pytest.raises(Cut):
            await reply.more()
        with pytest.raises(ConnectError):
            await fetch(outbound, stub.url)
        await until(lambda: stub.ended == stub.connections)


# Framing.


@each("status", [301, 302, 307, 404, 500])
@both_loops
async def test_redirects_and_errors_are_returned_as_answers(status: int) -> None:
    answer = b"HTTP/1.1 %d X\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 2\r\n\r\nno" % status
    async with Stub(always(answer)) as stub, client() as outbound:
        reply = await outbound.send("GET", stub.url, timeout_seconds=5)
        assert reply.status == status
        assert reply.header(b"location") == "http://127.0.0.1:1/"
        assert await reply.read(10) == b"no"
    assert stub.connections == 1


# Time, room and cancellation.


@each("phase", ["resolve", "connect", "tls", "head", "part of the head", "body"])
@both_loops
async def test_cancelled_task_closes_its_connection_in_every_phase(phase: str) -> None:
    reached = asyncio.Event()

    async def play(peer: Peer) -> None:
        if phase != "tls":
            await peer.request()
            await peer.send({"part of the head": START, "body": OK[:-1]}.get(phase, b""))
        reached.set()
        await peer.gone()

    async def hang(host: str, port: int, account_id: str) -> list[str]:
        reached.set()
        await asyncio.sleep(60)
        return []

    options = {"resolve": hang} if phase == "resolve" else {}
    async with Stub(play) as stub, client(**options) as outbound:
        with silent_address("127.0.0.1") as silent:
            url = stub.url if phase != "connect" else f"http://127.0.0.1:{silent.port}/"
            before = descriptors()
            task = asyncio.create_task(fetch(outbound, url.replace("http", "https") if phase == "tls" else url))
            if phase != "connect":
                await asyncio.wait_for(reached.wait(), 5)
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await until(lambda: stub.ended == stub.connections)
            await until(lambda: descriptors() <= before)


@both_loops
async def test_cancelled_read_closes_the_connection_of_a_kept_reply() -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(OK[:-1])
        await peer.gone()

    async with Stub(play) as stub, client() as outbound:
        reply = await outbound.send("GET", stub.url, timeout_seconds=5)
        await reply.more()
        reading = asyncio.create_task(reply.more())
        await asyncio.sleep(0.05)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await until(lambda: stub.ended == 1)
        with pytest.raises(OutboundError, match="cancelled"):
            await reply.more()


@both_loops
async def test_lost_reply_closes_its_connection() -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(OK[:-1])
        await peer.gone()

    async with Stub(play) as stub, client() as outbound:
        await outbound.send("GET", stub.url, timeout_seconds=5)
        gc.collect()
        await until(lambda: stub.ended == 1)


@both_loops
async def test_an_ended_connection_is_freed_without_the_collector() -> None:
    async with Stub(once(OK)) as stub, client() as outbound:
        gc.disable()
        try:
            await fetch(outbound, stub.url)
            ended = [weakref.ref(connection) for connection in gc.get_objects() if type(connection) is Connection]
            await until(lambda: not stub.opened())
            await until(lambda: ended[0]() is None)
        finally:
            gc.enable()


@both_loops
async def test_cancellation_as_the_answer_arrives_closes_everything() -> None:
    async with Stub(always(OK[:-1])) as stub, client() as outbound:
        for turn in range(60):
            task = asyncio.create_task(outbound.send("GET", stub.url, timeout_seconds=5))
            for _ in range(turn % 30):
                await asyncio.sleep(0)
            await asyncio.sleep(0.0005 * (turn % 5))
            task.cancel()
            with suppress(asyncio.CancelledError):
                await (await task).aclose()
        await until(lambda: stub.ended == stub.connections)


@both_loops
async def test_200_requests_at_once_each_get_their_own_answer() -> None:
    async def play(peer: Peer) -> None:
        while True:
            body = (await peer.request()).split(b"\r\n\r\n", 1)[1]
            await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))

    async with Stub(play) as stub, client(max_idle=50) as outbound:
        bodies = [b"%d" % number * (number % 40 + 1) for number in range(200)]
        for _ in range(3):
            answers = await asyncio.gather(*(fetch(outbound, stub.url, "POST", body=body) for body in bodies))
            assert [answer for _, answer in answers] == bodies
            await until(lambda: stub.opened() <= 50)
