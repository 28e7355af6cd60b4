"""One outgoing connection: framing, deadlines and back-pressure, against a server that misbehaves in every way."""

import asyncio
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.outbound.addresses import Origin
from svc.outbound.connection import Connection
from svc.outbound.errors import Cut, ProtocolError, ReadTimeout, TooLarge
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
    fetch,
    once,
    quiet_loop,
    resolver,
)
from tests.support.waiting import until

GOOD = {
    "length": (OK, b"ok"),
    "empty": (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b""),
    "chunked": (CHUNKED, b"abcdefg"),
    "interim": (b"HTTP/1.1 103 Early\r\nlink: x\r\n\r\nHTTP/1.1 100 C\r\n\r\n" + OK, b"ok"),
    "empty header": (b"HTTP/1.1 200 OK\r\nA:\r\nContent-Length: 2\r\n\r\nok", b"ok"),
    "identity": (b"HTTP/1.1 200 OK\r\ncontent-encoding: identity\r\ncontent-length: 2\r\n\r\nok", b"ok"),
}


@each(("answer", "body"), GOOD.values())
@both_loops
async def test_answers_in_single_bytes_are_complete(answer: bytes, body: bytes) -> None:
    async def play(peer: Peer) -> None:
        for _ in range(2):
            await peer.request()
            for index in range(len(answer)):
                await peer.send(answer[index : index + 1])
                await asyncio.sleep(0)

    async with Stub(play) as stub, client() as outbound:
        assert await fetch(outbound, stub.url) == (200, body)
        assert await fetch(outbound, stub.url) == (200, body)
    assert stub.connections == 1


@both_loops
async def test_headers_of_interim_answers_are_dropped() -> None:
    async with Stub(always(GOOD["interim"][0])) as stub, client() as outbound:
        reply = await outbound.send("GET", stub.url, timeout_seconds=5)
        assert reply.raw_headers == [(b"content-length", b"2")]
        assert await reply.read(10) == b"ok"


class Wire:
    """A transport that only records calls, so that a test decides how the bytes are split."""

    def __init__(self) -> None:
        self.closing = False

    def write(self, data: bytes) -> None: ...
    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...
    def is_closing(self) -> bool:
        return self.closing

    def get_write_buffer_size(self) -> int:
        return 0

    def abort(self) -> None:
        self.closing = True

    def get_extra_info(self, name: str) -> None:
        return None


chunked_bodies = st.lists(st.binary(min_size=1, max_size=40), max_size=6)


@given(
    chunked_bodies,
    st.sampled_from(["length", "chunked", "close"]),
    st.lists(st.integers(0, 400), max_size=12),
    st.booleans(),
)
def test_body_is_the_same_for_any_split_of_bytes(pieces: list[bytes], kind: str, cuts: list[int], whole: bool) -> None:
    body = b"".join(pieces)
    answer = b"HTTP/1.1 200 OK\r\nx: y\r\n"
    if kind == "length":
        answer += b"content-length: %d\r\n\r\n" % len(body) + body
    elif kind == "chunked":
        chunks = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
        answer += b"transfer-encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"
    else:
        answer += b"\r\n" + body
    if not whole:
        answer = answer[:-1]
    edges = sorted({0, len(answer), *(cut for cut in cuts if cut < len(answer))})

    async def main() -> bytes:
        connection = Connection(Origin("http", "h", 80), lambda _: False, lambda _: None)
        connection.connection_made(Wire())  # type: ignore[arg-type]
        task = asyncio.create_task(connection.exchange(b"", b"", 5))
        await asyncio.sleep(0)
        for start, end in itertools.pairwise(edges):
            connection.data_received(answer[start:end])
        connection.eof_received()
        connection.connection_lost(None)
        return await (await task).read(10_000)

    if whole or (kind == "close" and body):
        assert quiet_loop().run_until_complete(main()) == (body if whole else body[:-1])
    else:
        with pytest.raises(Cut):
            quiet_loop().run_until_complete(main())


@each("reset", [False, True])
@each("answer", [OK, CHUNKED, GOOD["interim"][0]])
@both_loops
async def test_answer_cut_at_any_byte_is_an_error(answer: bytes, reset: bool) -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(answer[: peer.number - 1])
        if reset:
            peer.reset()

    async with Stub(play) as stub, client() as outbound:
        for size in range(len(answer)):
            with pytest.raises(Cut):
                await fetch(outbound, stub.url)
            assert stub.connections == size + 1
        await until(lambda: not stub.opened())


@both_loops
async def test_bytes_before_the_cut_are_delivered_and_the_fault_remains() -> None:
    async with Stub(once(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nab")) as stub, client() as outbound:
        reply = await outbound.send("GET", stub.url, timeout_seconds=5)
        assert await reply.more() == b"ab"
        for _ in range(2):
            with pytest.raises(Cut):
                await reply.more()


@both_loops
async def test_body_without_length_ends_with_a_clean_close() -> None:
    answer = b"HTTP/1.1 200 OK\r\nx: y\r\n\r\nabc"
    async with Stub(once(answer)) as stub, client() as outbound:
        assert await fetch(outbound, stub.url) == (200, b"abc")
    async with Stub(once(answer, reset=True)) as stub, client() as outbound:
        with pytest.raises(Cut):
            await fetch(outbound, stub.url)


CHUNKS = START + b"transfer-encoding: chunked\r\n\r\n"
BAD = {
    "two lengths": START + b"content-length: 2\r\ncontent-length: 2\r\n\r\nok",
    "a list of lengths": START + b"content-length: 2, 2\r\n\r\nok",
    "length and chunked": START + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunked and length": START + b"transfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n0\r\n\r\n",
    "twice chunked": START + b"transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "gzip, chunked": START + b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "transfer gzip": START + b"transfer-encoding: gzip\r\n\r\nok",
    "chunked under 1.0": b"HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "a negative length": START + b"content-length: -2\r\n\r\nok",
    "a signed length": START + b"content-length: +2\r\n\r\nok",
    "an empty length": START + b"content-length:\r\n\r\nok",
    "a huge length": START + b"content-length: 99999999999999999999999\r\n\r\nok",
    "no chunk size": CHUNKS + b"\r\nok\r\n",
    "a chunk size of g": CHUNKS + b"g\r\nok\r\n",
    "a negative chunk size": CHUNKS + b"-1\r\nok\r\n",
    "a chunk size of 0x2": CHUNKS + b"0x2\r\nok\r\n",
    "a huge chunk size": CHUNKS + b"fffffffffffffffff\r\nok\r\n",
    "a chunk without its end": CHUNKS + b"1\r\nok\r\n0\r\n\r\n",
    "bare line feeds": b"HTTP/1.1 200 OK\ncontent-length: 2\n\nok",
    "a folded header": START + b"x: a\r\n b\r\ncontent-length: 2\r\n\r\nok",
    "a space in a name": START + b"x y: a\r\ncontent-length: 2\r\n\r\nok",
    "a NUL": START + b"x: a\0b\r\ncontent-length: 2\r\n\r\nok",
    "no HTTP": b"<html>nothing</html>",
    "a status of 99": b"HTTP/1.1 099 Odd\r\ncontent-length: 0\r\n\r\n",
    "a status of 600": b"HTTP/1.1 600 Odd\r\ncontent-length: 0\r\n\r\n",
    "an upgrade": b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
    "a bare 101": b"HTTP/1.1 101 Switching\r\n\r\n" + OK,
    "gzip": START + b"content-encoding: gzip\r\ncontent-length: 2\r\n\r\n\x1f\x8b",
    "identity, br": START + b"content-encoding: identity, br\r\ncontent-length: 2\r\n\r\nok",
    "101 headers": START + b"x: y\r\n" * 101 + b"content-length: 2\r\n\r\nok",
    "101 trailers": CHUNKS + b"1\r\na\r\n0\r\n" + b"x: y\r\n" * 101 + b"\r\n",
    "a head over 64 KiB": START + b"x: " + b"y" * 65_536 + b"\r\n\r\n",
    "a status line over 64 KiB": b"HTTP/1.1 200 " + b"y" * 65_536 + b"\r\n\r\n",
    "interim answers of 64 KiB": b"HTTP/1.1 103 Early\r\n\r\n" * 3_000 + OK,
}


@each("answer", BAD.values())
@both_loops
async def test_ambiguous_or_unbounded_answers_are_refused(answer: bytes) -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(answer)
        await peer.gone()

    async with Stub(play) as stub, client() as outbound:
        with pytest.raises(ProtocolError) as refused:
            await fetch(outbound, stub.url)
        assert not isinstance(refused.value, Cut)
        await until(lambda: stub.ended == 1)
    assert stub.connections == 1


@both_loops
async def test_head_just_within_its_limits_is_accepted() -> None:
    for filler in (b"x: y\r\n" * 99, b"x: " + b"y" * 65_000 + b"\r\n"):
        async with Stub(always(START + filler + b"content-length: 2\r\n\r\nok")) as stub, client() as outbound:
            assert await fetch(outbound, stub.url) == (200, b"ok")


@each(
    ("start", "piece"),
    [
        (START + b"x: ", b"y" * 4096),
        (CHUNKS + b"1\r\na\r\n1;", b"y" * 4096),
        (CHUNKS + b"1\r\na\r\n0\r\nx: ", b"y" * 4096),
    ],
)
@both_loops
async def test_endless_heads_and_framing_are_refused(start: bytes, piece: bytes) -> None:
    sent = 0

    async def play(peer: Peer) -> None:
        nonlocal sent
        await peer.request()
        await peer.send(start)
        while not peer.writer.transport.is_closing():
            await peer.send(piece)
            sent += len(piece)
            await asyncio.sleep(0.001)

    async with Stub(play) as stub, client() as outbound:
        with pytest.raises(ProtocolError):
            await fetch(outbound, stub.url)
        await until(lambda: stub.ended == 1)
    assert sent < 512 * 1024


@both_loops
async def test_slow_head_times_out() -> None:
    async def silent(peer: Peer) -> None:
        await peer.gone()

    async def byte_by_byte(peer: Peer) -> None:
        for byte in START + b"x: " + b"y" * 1000:
            await peer.send(bytes([byte]))
            await asyncio.sleep(0.02)

    async def interim(peer: Peer) -> None:
        for _ in range(9):
            await peer.send(b"HTTP/1.1 102 Wait\r\n\r\n")
            await asyncio.sleep(0.05)
        await peer.gone()

    for play in (silent, byte_by_byte, interim):
        async with Stub(play) as stub, client() as outbound:
            too_early = asyncio.ensure_future(asyncio.sleep(0.15))
            async with asyncio.timeout(10):  # byte by byte the head takes 20 s
                with pytest.raises(ReadTimeout):
                    await fetch(outbound, stub.url, timeout_seconds=0.2)
            assert too_early.done()
            await until(lambda: stub.ended == 1)


@both_loops
async def test_timeout_restarts_with_each_part_of_the_body() -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(CHUNKS)
        for _ in range(5):
            await asyncio.sleep(0.1)
            await peer.send(b"1\r\na\r\n")
        await peer.gone()

    async with Stub(play) as stub, client() as outbound:
        reply = await outbound.send("GET", stub.url, timeout_seconds=0.4)
        for _ in range(5):
            assert await reply.more() == b"a"
        for _ in range(2):
            with pytest.raises(ReadTimeout):
                await reply.more()


@both_loops
async def test_framing_without_body_bytes_does_not_extend_the_timeout() -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(CHUNKS + b"1;")
        while not peer.writer.transport.is_closing():
            await peer.send(b"x")
            await asyncio.sleep(0.02)

    async with Stub(play) as stub, client() as outbound:
        reply = await outbound.send("GET", stub.url, timeout_seconds=0.2)
        with pytest.raises(ReadTimeout):
            await reply.more()


@both_loops
async def test_slow_reader_causes_no_timeout() -> None:
    async with Stub(always(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nab")) as stub, client() as outbound:
        reply = await outbound.send("GET", stub.url, timeout_seconds=0.1)
        assert await reply.more() == b"ab"
        await asyncio.sleep(0.3)
        assert stub.opened() == 1
        with pytest.raises(ReadTimeout):
            await reply.more()


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "TLS"])
@both_loops
async def test_memory_is_bounded_for_a_fast_server(tls: bool, authority: Contexts) -> None:
    size = 64 << 20
    sent = 0

    async def play(peer: Peer) -> None:
        nonlocal sent
        peer.writer.transport.set_write_buffer_limits(1 << 16)
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size)
        block = bytes(1 << 16)
        while sent < size:
            await peer.send(block)
            sent += len(block)

    server, trusting = authority
    async with (
        Stub(play, server if tls else None) as stub,
        client(resolve=resolver("127.0.0.1"), ssl_context=trusting) as outbound,
    ):
        reply = await outbound.send("GET", f"http{'s' * tls}://model.test:{stub.port}/", timeout_seconds=10)
        before = -1
        while before != sent:
            before = sent
            await asyncio.sleep(0.1)
        (connection,) = outbound._connections
        assert connection._buffered_bytes <= 1 << 20
        assert sent < 32 << 20  # what the kernel's buffers hold
        received = 0
        while piece := await reply.more():
            assert len(piece) <= 1 << 20
            received += len(piece)
        assert received == size


@both_loops
async def test_body_over_the_limit_closes_the_connection() -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(CHUNKS)
        while True:
            await peer.send(b"4\r\nabcd\r\n")
            await asyncio.sleep(0)

    async with Stub(always(OK)) as stub, client() as outbound:
        reply = await outbound.send("GET", stub.url, timeout_seconds=5)
        assert await reply.read(2) == b"ok"
        reply = await outbound.send("GET", stub.url, timeout_seconds=5)
        with pytest.raises(TooLarge):
            await reply.read(1)
    async with Stub(play) as stub, client() as outbound:
        reply = await outbound.send("GET", stub.url, timeout_seconds=5)
        with pytest.raises(TooLarge):
            await reply.read(10_000)
        await until(lambda: stub.ended == 1)
