"""Which pages a model may read, with anything that a page answers."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from svc.agents.tools.registry import ToolContext
from svc.db import Database
from svc.outbound.client import Outbound
from tests.support.cases import each
from tests.support.loop_clock import hastened
from tests.support.toolboxes import box_of, failure

UNREADABLE = "This address cannot be read. Only public http and https pages can."

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any]


@contextlib.asynccontextmanager
async def web(handler: Handler) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A page server on loopback; its address and the request heads that it saw."""
    heads: list[bytes] = []

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            heads.append(await reader.readuntil(b"\r\n\r\n"))
            await handler(reader, writer)
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", heads
    finally:
        server.close()


def page(
    content: bytes, content_type: str = "text/html; charset=utf-8", status: bytes = b"200 OK", more: bytes = b""
) -> Handler:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = b"HTTP/1.1 %b\r\ncontent-type: %b\r\ncontent-length: %d\r\n%b\r\n" % (
            status,
            content_type.encode(),
            len(content),
            more,
        )
        writer.write(head + content)
        await writer.drain()

    return handler


@pytest.fixture
async def open_box(db: Database, faults: list[BaseException]) -> AsyncIterator[ToolContext]:
    """Tools that reach loopback, where the tests' pages are."""
    outbound = Outbound()
    yield await box_of(db, outbound, faults, "eve@example.com")
    await outbound.aclose()


async def test_fetch_sends_no_data_of_the_caller(open_box: ToolContext) -> None:
    async with web(page("Grüße".encode())) as (address, heads):
        found = await open_box.call("fetch_url", {"url": f"{address}/a?b=c"})
    assert found == {"status": 200, "content_type": "text/html; charset=utf-8", "text": "Grüße"}
    assert (
        heads[0].startswith(b"GET /a?b=c HTTP/1.1\r\n")
        and b"user_" not in heads[0]
        and b"cookie" not in heads[0].lower()
    )


async def test_missing_page_is_a_result_with_its_status(open_box: ToolContext) -> None:
    async with web(page(b"gone", status=b"404 Not Found")) as (address, _):
        assert (await open_box.call("fetch_url", {"url": address}))["status"] == 404


async def test_a_redirect_is_not_followed(open_box: ToolContext) -> None:
    async with web(page(b"secret")) as (inner, seen):
        async with web(page(b"", status=b"302 Found", more=b"location: " + inner.encode() + b"\r\n")) as (
            address,
            heads,
        ):
            assert (await open_box.call("fetch_url", {"url": address}))["status"] == 302
        assert len(heads) == 1 and seen == []


async def test_large_page_is_cut_and_its_connection_closed(open_box: ToolContext) -> None:
    ended = asyncio.Event()

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n")
        try:
            while True:
                writer.write("é".encode() * 5_000)
                await writer.drain()
        finally:
            ended.set()

    async with web(endless) as (address, _):
        found = await open_box.call("fetch_url", {"url": address})
        await asyncio.wait_for(ended.wait(), 5)
    assert len(found["text"].encode()) <= 65_540 and found["text"].startswith("éé")


async def dripping(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n")
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.02)


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(60)


async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf")


async def nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")


async def test_every_fault_has_one_text_in_bounded_time(open_box: ToolContext, faults: list[BaseException]) -> None:
    texts = set()
    for handler in (dripping, silent, cut, nonsense):
        async with web(handler) as (address, _):
            texts.add(await hastened(failure(open_box, "fetch_url", {"url": address})))
    texts.add(await failure(open_box, "fetch_url", {"url": address}))  # no server listens there
    texts.add(await failure(open_box, "fetch_url", {"url": "https" + address.removeprefix("http")}))
    assert texts == {UNREADABLE} and faults == []


@each("content", [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", b"\0" * 100_000])
async def test_binary_page_is_not_fetched(open_box: ToolContext, content: bytes) -> None:
    async with web(page(content, "image/png")) as (address, _):
        assert (
            await failure(open_box, "fetch_url", {"url": address})
            == "The content of this address is not text (image/png)."
        )


@each(
    "host",
    [
        *(
            "127.0.0.1",
            "127.1",
            "2130706433",
            "0x7f000001",
            "0177.0.0.1",
            "0",
            "0.0.0.0",
            "localhost",
            "LOCALHOST",
            "127.0.0.1.",
        ),
        *(
            "[::1]",
            "[::]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "[::127.0.0.1]",
            "[64:ff9b::7f00:1]",
            "[2002:7f00:1::]",
        ),
        *(
            "10.0.0.1",
            "172.16.0.1",
            "192.168.0.1",
            "169.254.169.254",
            "[fe80::1]",
            "[fd00::1]",
            "224.0.0.1",
            "100.64.0.1",
        ),
        *(
            "255.255.255.255",
            "①②⑦.0.0.1",
            "127。0。0。1",
            "[fe80::1%25lo]",
            "%31%32%37.0.0.1",
            "127.0.0.1%00.example.com",
        ),
    ],
)
async def test_private_address_is_refused_in_any_spelling(
    box: ToolContext, faults: list[BaseException], host: str
) -> None:
    async with web(page(b"secret")) as (address, heads):
        port = address.rpartition(":")[2]
        for url in (
            f"http://{host}:{port}/",
            f"https://{host}:{port}/",
            f"http://example.com@{host}:{port}/",
            f"http://{host}/",
        ):
            assert await failure(box, "fetch_url", {"url": url}) == UNREADABLE
    assert heads == [] and faults == []


@each(
    "url",
    [
        *(
            "file:///etc/passwd",
            "ftp://example.com/",
            "gopher://x/",
            "javascript:alert(1)",
            "http:///",
            "http://\0.com/",
            "http:////x",
        ),
        *(
            "http://[",
            "http://a b/",
            "http://x:99999/",
            "http://x\r\nHost: y/",
            "//example.com",
            "example.com",
            "http://\ud800.com/",
        ),
        *("http://xn--/", "http://" + "a" * 300 + ".com/", "data:text/plain,hello", "unix:///run/docker.sock"),
    ],
)
async def test_invalid_address_is_refused_with_the_same_text(
    box: ToolContext, faults: list[BaseException], url: str
) -> None:
    assert await failure(box, "fetch_url", {"url": url}) == UNREADABLE
    assert faults == []
