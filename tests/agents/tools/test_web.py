"""Which pages a model may read, with anything that a page answers."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import orjson
import pytest

from svc.agents.tools.registry import ToolContext
from svc.builtin.processes import ProcessPool
from svc.config import Config
from svc.db import Database
from svc.outbound.client import Outbound
from tests.conftest import Clocks, serving
from tests.support import pdfs
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
    async with web(page("<title>Grüße</title><p>an <a href=/x>alle</a><script>x()</script>".encode())) as (
        address,
        heads,
    ):
        found = await open_box.call("fetch_url", {"url": f"{address}/a?b=c#part"})
    text = f"an [alle]({address}/x)"
    assert found == {"number": 1, "url": f"{address}/a?b=c", "title": "Grüße", "text": text, "truncated": False}
    assert (
        heads[0].startswith(b"GET /a?b=c HTTP/1.1\r\n")
        and b"user_" not in heads[0]
        and b"cookie" not in heads[0].lower()
    )


@each("status", [b"404 Not Found", b"400 X", b"401 X", b"500 X", b"304 Not Modified", b"300 X"])
async def test_page_with_another_status_is_a_failure_that_names_it(open_box: ToolContext, status: bytes) -> None:
    async with web(page(b"gone", status=status)) as (address, _):
        told = await failure(open_box, "fetch_url", {"url": address})
    assert told == f"The page answered with status {int(status[:3])}."


def hops(count: int, to: bytes = b"/%d") -> Handler:
    """A page behind `count` redirects."""
    left = [count]

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        left[0] -= 1
        if left[0] >= 0:
            location = to % left[0] if b"%" in to else to
            await page(b"", status=b"302 Found", more=b"location: " + location + b"\r\n")(reader, writer)
        else:
            await page(b"there", "text/plain")(reader, writer)

    return handler


async def test_redirects_are_followed_three_times(open_box: ToolContext) -> None:
    for count in (0, 1, 3):
        async with web(hops(count)) as (address, heads):
            found = await open_box.call("fetch_url", {"url": f"{address}/start"})
            assert (found["text"], found["url"]) == ("there", f"{address}/{0 if count else 'start'}")
            assert len(heads) == count + 1
    async with web(hops(4)) as (address, heads):
        assert "redirects more than 3 times" in await failure(open_box, "fetch_url", {"url": address})
        assert len(heads) == 4


async def test_target_of_a_redirect_is_checked_as_the_first_address(db: Database, faults: list[BaseException]) -> None:
    """The first server is allowed here by its port's host name; the others are not."""

    async def resolve(host: str, port: int, account_id: str) -> list[str]:
        return {"public.example": ["127.0.0.1"], "rebound.example": ["127.0.0.1", "10.0.0.1"]}.get(host, [host])

    guarded = Outbound(allow=lambda address: str(address) == "127.0.0.1", resolve=resolve)
    box = await box_of(db, guarded, faults, "eve@example.com")
    inner = (b"http://10.0.0.1/", b"http://169.254.169.254/latest", b"http://[::1]/", b"http://rebound.example/")
    others = (b"file:///etc/passwd", b"ftp://x/", b"http://user@x/", b"http://[", b"//10.0.0.1/")
    for target in (*inner, *others):
        async with web(hops(1, target)) as (address, heads):
            port = address.rpartition(":")[2]
            assert await failure(box, "fetch_url", {"url": f"http://public.example:{port}/"}) == UNREADABLE, target
            assert len(heads) == 1
    await guarded.aclose()
    assert faults == []


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
    assert 65_535 <= len(found["text"].encode()) <= 65_536 and found["text"].startswith("éé") and found["truncated"]


@each(
    ("content", "content_type", "text"),
    [
        ("Grüße".encode("cp1252"), "text/plain; charset=ISO-8859-1", "Grüße"),
        ("Grüße".encode("utf-16"), "text/plain", "Grüße"),
        (b"\xef\xbb\xbf" + "Grüße".encode(), "text/plain; charset=latin1", "Grüße"),
        ("<meta charset='koi8-r'><html><p>Привет".encode("koi8-r"), "text/html", "Привет"),
        ("日本".encode("shift_jis"), 'text/plain; charset="Shift_JIS"', "日本"),
        ("Grüße".encode(), "text/plain; charset=rot13", "Grüße"),
        ("Grüße".encode(), "text/plain; charset=punycode", "Grüße"),
        (b"caf\xe9", "text/plain", "caf\ufffd"),
        (b'{"a": [1]}', "application/json", '{"a": [1]}'),
        (b"# Title\n<b>as it is</b>", "text/markdown", "# Title\n<b>as it is</b>"),
        (b" <!DOCTYPE html><html><body><b>x</b>", "", "**x**"),
        (b"<!-- c --><html><body><b>x</b>", "application/octet-stream", "**x**"),
        (b"", "text/html", ""),
        (b"<b>x</b>", "TEXT/HTML", "**x**"),
    ],
)
async def test_content_is_read_by_its_type_and_encoding(
    open_box: ToolContext, content: bytes, content_type: str, text: str
) -> None:
    async with web(page(content, content_type)) as (address, _):
        found = await open_box.call("fetch_url", {"url": f"{address}/dir/my%20file.txt"})
    assert found.pop("number") >= 1
    assert found == {"url": f"{address}/dir/my%20file.txt", "title": "my file.txt", "text": text, "truncated": False}


async def test_page_that_its_helper_cannot_read_is_a_failure(open_box: ToolContext) -> None:
    async with web(page(b"<p>text")) as (address, _):
        box = replace(open_box, pools={"pages": ProcessPool("svc.builtin.pdf")})
        assert "cannot be read within the limits" in await failure(box, "fetch_url", {"url": address})


@pdfs.needs_pypdf
async def test_pdf_is_read_in_a_run(config: Config, clocks: Clocks) -> None:
    config = replace(config, agent_fetch=True, byok_private=True)
    async with serving(config, clocks) as service:
        headers = await service.bearer()

        async def result(content: bytes) -> dict[str, Any]:
            async with web(page(content, "application/pdf")) as (address, _):
                goal = f'tool fetch_url {{"url": "{address}/report.pdf"}}\n---\nsay done'
                body = {"goal": goal, "model": "builtin/script"}
                answer = await service.client.post("/v1/agents/run", json=body, headers=headers)
            events = [orjson.loads(block[6:]) for block in answer.text.split("\n\n")[:-1]]
            return next(event for event in events if event["type"] == "tool_result")

        found = await result(pdfs.with_texts(b"Quarterly report"))
        assert found["ok"] and "Quarterly report" in found["result"]["text"]
        assert (found["result"]["title"], found["result"]["truncated"]) == ("report.pdf", False)
        assert found["result"]["url"].endswith("/report.pdf")
        broken = await result(b"%PDF-1.7 broken")
        assert not broken["ok"] and "damaged" in broken["result"]
        large = await result(b"%PDF-1.7" + bytes(9 << 20))
        assert large["result"] == "This PDF has over 8 MiB."


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
