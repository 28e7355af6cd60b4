"""The client of tool servers, with the real server in each of its transports, and with servers that misbehave."""

import asyncio
import gzip
import logging
from collections.abc import AsyncIterator, Iterator
from typing import Any

import orjson
import pytest

from svc.inference.tool_servers.client import Target, ToolSession
from svc.inference.tool_servers.listed import ListedTool, usable
from svc.inference.tool_servers.messages import ToolServerFault
from svc.outbound.client import Outbound
from tests.support.cases import each
from tests.support.loop_clock import hastened
from tests.support.tool_server import (
    HANDSHAKE,
    REVISIONS,
    STATELESS,
    Asked,
    Handler,
    error,
    events,
    handshake,
    http,
    real_server,
    result,
    scripted,
    stateless,
    text,
    tool,
)

SECRET = "key-of-the-operator-1234"


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """The real server logs each failed tool."""
    logging.disable(logging.ERROR)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
async def outbound() -> AsyncIterator[Outbound]:
    client = Outbound()
    yield client
    await client.aclose()


def session(url: str, client: Outbound, headers: dict[str, str] | None = None) -> ToolSession:
    return ToolSession(Target("wiki", url, headers or {}, client))


async def listed(one: ToolSession) -> dict[str, ListedTool]:
    entries, _ = await one.tools(None, 10)
    return {found.name: found for found in usable(entries)[0]}


LOOK = usable([tool()])[0][0]


async def fault_of(
    handler: Handler, client: Outbound, found: ListedTool = LOOK, *, is_silent: bool = False, **headers: str
) -> str:
    """The text of a call that fails. The clock is fast if it waits for a deadline."""
    async with scripted(handler) as server:
        one = session(server.url, client, headers)
        with pytest.raises(ToolServerFault) as raised:
            call = one.call(found, "{}")
            await (hastened(call) if is_silent else call)
        await one.aclose()
    return str(raised.value)


# --- the real server


@each("revision", REVISIONS)
@each("options", [{}, {"json_response": True}, {"stateless_http": True}])
async def test_real_server_is_asked_in_each_revision_and_transport(
    outbound: Outbound, revision: str, options: dict[str, Any]
) -> None:
    async with real_server(revision, **options) as server:
        one = session(server.url, outbound)
        tools = await listed(one)
        assert [*tools] == ["add", "greet", "delete_page", "draw", "fail"]
        assert [name for name, found in tools.items() if not found.read_only] == ["delete_page"]
        found = await one.call(tools["add"], '{"a": 1,\n "b": 2}')
        assert found["structuredContent"] == {"result": 3} and found["content"][0]["text"] == "3"
        assert (await one.call(tools["greet"], '{"name": "Ada"}'))["content"][0]["text"].startswith("Grüße, Ada!")
        failed = await one.call(tools["fail"], "{}")
        assert failed["isError"] is True and "the wiki is closed" in failed["content"][0]["text"]
        wrong = await one.call(tools["add"], '{"a": "x"}')
        assert wrong["isError"] is True, "the server validates its own schema"
        await one.aclose()
        verbs = [verb for verb, _ in server.seen]
        spoken = {headers.get("mcp-protocol-version") for _, headers in server.seen[1:] if headers}
        if revision == STATELESS:
            assert verbs == ["POST"] * 6 and spoken == {STATELESS}
            assert not any("mcp-session-id" in headers for _, headers in server.seen)
        else:
            keeps = "stateless_http" not in options
            assert verbs == ["POST"] * 8 + ["DELETE"] * keeps and spoken == {None, HANDSHAKE}
            assert all(("mcp-session-id" in headers) is keeps for _, headers in server.seen[2:])


async def test_session_that_the_server_has_forgotten_is_begun_anew_once(outbound: Outbound) -> None:
    async with real_server(HANDSHAKE) as server, real_server(HANDSHAKE) as restarted:
        one = session(server.url, outbound)
        tools = await listed(one)
        server.app = restarted.app  # it knows no session
        assert (await one.call(tools["greet"], '{"name": "Ada"}'))["content"][0]["text"].startswith("Grüße")

    def always_gone(asked: Asked) -> bytes | None:
        return http(b"", 404) if asked.method == "tools/call" else handshake([])(asked)

    async with scripted(always_gone) as gone:
        with pytest.raises(ToolServerFault, match="its session has ended"):
            await session(gone.url, outbound).call(LOOK, "{}")
        assert len(gone.of("initialize")) == 2


# --- what is sent


async def test_arguments_are_sent_byte_by_byte_with_the_headers_of_the_revision(outbound: Outbound) -> None:
    written = '{ "at":\t"Grüße", "at": 1e3, "at" : "\\u0041" }'
    async with scripted(stateless([])) as server:
        await session(server.url, outbound, {"authorization": f"Bearer {SECRET}"}).call(LOOK, written)
    discover, call = server.asked
    assert b'"arguments":' + written.encode() + b"," in call.raw
    assert call.headers["authorization"] == f"Bearer {SECRET}"
    named = {name: call.headers[f"mcp-{name}"] for name in ("protocol-version", "method", "name")}
    assert named == {"protocol-version": STATELESS, "method": "tools/call", "name": "look"}
    meta = call.body["params"]["_meta"]
    assert meta["io.modelcontextprotocol/protocolVersion"] == STATELESS
    assert (
        meta["io.modelcontextprotocol/clientCapabilities"]
        == {}
        == discover.body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]
    )
    assert call.body["params"]["name"] == "look" and discover.id != call.id


async def test_annotated_arguments_are_repeated_in_headers(outbound: Outbound) -> None:
    properties = {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "deep": {"type": "object", "properties": {"dry": {"type": "boolean", "x-mcp-header": "Dry"}}},
        "size": {"type": "integer", "x-mcp-header": "Size"},
    }
    (found,), _ = usable([tool(inputSchema={"type": "object", "properties": properties})])
    async with scripted(stateless([])) as server:
        one = session(server.url, outbound)
        await one.call(found, '{"region": "Zürich\\r\\nx: y", "deep": {"dry": true}}')
        await one.call(found, '{"region": "eu", "size": 7}')
    first, second = (
        {name: value for name, value in asked.headers.items() if name.startswith("mcp-param-")}
        for asked in server.of("tools/call")
    )
    assert first == {"mcp-param-region": "=?base64?WsO8cmljaA0KeDogeQ==?=", "mcp-param-dry": "true"}
    assert second == {"mcp-param-region": "eu", "mcp-param-size": "7"}


async def test_requests_of_the_server_are_refused_and_a_ping_is_answered(outbound: Outbound) -> None:
    requests = [
        {"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": {}},
        {"jsonrpc": "2.0", "id": "e", "method": "elicitation/create", "params": {}},
        {"jsonrpc": "2.0", "id": 3, "method": "roots/list"},
        {"jsonrpc": "2.0", "id": 4, "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}},
    ]

    def ask_back(asked: Asked) -> bytes:
        return events(*requests, {"jsonrpc": "2.0", "id": asked.id, "result": text("done")})

    async with scripted(handshake([], ask_back)) as server:
        assert await session(server.url, outbound).call(LOOK, "{}") == text("done")
    answers = [asked for asked in server.asked if asked.raw and "method" not in asked.body]
    assert [answer.id for answer in answers] == [1, "e", 3, 4] and answers[3].body["result"] == {}
    assert [answer.body["error"]["code"] for answer in answers[:3]] == [-32601] * 3
    assert {answer.headers["mcp-session-id"] for answer in answers} == {"session-1"}


async def test_16_requests_of_the_server_are_answered(outbound: Outbound) -> None:
    def asking(count: int) -> Handler:
        pings = [{"jsonrpc": "2.0", "id": number, "method": "ping"} for number in range(count)]
        return handshake([], lambda asked: events(*pings, {"jsonrpc": "2.0", "id": asked.id, "result": text("done")}))

    async with scripted(asking(16)) as server:
        assert await session(server.url, outbound).call(LOOK, "{}") == text("done")
    assert "too many requests of its own" in await fault_of(asking(17), outbound)


async def test_redirect_within_the_server_is_followed_three_times(outbound: Outbound) -> None:
    def moved(times: int) -> Handler:
        def handle(asked: Asked) -> bytes | None:
            if len(asked.path) - len("/mcp") < times:
                return http(b"", 307, location=f"{asked.path}/")
            return stateless([])(asked)

        return handle

    async with scripted(moved(3)) as server:
        assert await session(server.url, outbound).call(LOOK, "{}") == text("seen")
        assert {asked.path for asked in server.of("tools/call")} == {"/mcp///"}, "the new address is remembered"
    assert "redirects more than 3 times" in await fault_of(moved(4), outbound)


async def test_redirect_to_another_server_sends_nothing_there(outbound: Outbound) -> None:
    async with scripted(stateless([])) as other:
        for status in (301, 302, 303, 307, 308):
            for location in (other.url, "//127.0.0.1:1/", "http://[", "", "ftp://x/"):

                def away(asked: Asked, status: int = status, location: str = location) -> bytes:
                    return http(b"", status, location=location)

                found = await fault_of(away, outbound, authorization=f"Bearer {SECRET}")
                assert "redirects" in found, (status, location)
    assert other.asked == []


# --- servers that misbehave: each costs only its own call


def answering(body: bytes, status: int = 200, content_type: str = "application/json", **headers: str) -> Handler:
    return stateless([], lambda asked: http(body, status, content_type, **headers))


def with_id(value: Any) -> Handler:
    return stateless([], lambda asked: http(orjson.dumps({"jsonrpc": "2.0", "id": value, "result": text("x")})))


def endless_events(asked: Asked) -> bytes:
    return b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + b"data: {}\n\n" * 150_000


def many_requests(asked: Asked) -> bytes:
    return events(*({"jsonrpc": "2.0", "id": number, "method": "ping"} for number in range(50)))


DEEP = b'{"jsonrpc":"2.0","id":2,"result":' + b'{"a":' * 5_000 + b"1" + b"}" * 5_000 + b"}"
HOSTILE: dict[str, Handler] = {
    "silent": lambda asked: None,
    "silent call": stateless([], lambda asked: None),
    "silent in a stream": stateless(
        [], lambda asked: b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 99\r\n\r\n: x\n\n"
    ),
    "endless stream": stateless([], endless_events),
    "stream without an answer": stateless([], lambda asked: events({"jsonrpc": "2.0", "method": "x"})),
    "empty stream": stateless([], lambda asked: events()),
    "broken event": stateless([], lambda asked: events().replace(b"\r\n\r\n", b"\r\n\r\ndata: {{\n\n")),
    "requests without end": stateless([], many_requests),
    "over 1 MiB": answering(b" " * (1 << 20) + b"{}"),
    "no JSON": answering(b"<html>", content_type="text/html"),
    "half of JSON": answering(b'{"jsonrpc": "2.0", "id": 2, "res'),
    "bad UTF-8": answering(b'{"jsonrpc":"2.0","id":2,"result":{"content":"\xff"}}'),
    "nothing": answering(b""),
    "nested too deep": answering(DEEP),
    "a number": answering(b"7"),
    "a list of nothing": answering(b"[1, null, []]"),
    "id of another request": with_id(77),
    "id as text": with_id("2"),
    "id as true": with_id(True),
    "id as a list": with_id([2]),
    "no id": with_id(None),
    "result and method": stateless(
        [], lambda asked: http(orjson.dumps({"id": asked.id, "method": "x", "result": {}, "jsonrpc": "2.0"}))
    ),
    "result as a list": stateless([], lambda asked: result(asked, [1])),
    "neither result nor error": stateless([], lambda asked: http(orjson.dumps({"jsonrpc": "2.0", "id": asked.id}))),
    "asks for input": stateless([], lambda asked: result(asked, {"resultType": "input_required", "inputRequests": {}})),
    "accepted": answering(b"", 202),
    "gzip": stateless([], lambda asked: http(gzip.compress(b"{}"), content_encoding="gzip")),
    "500": answering(b"boom", 500),
    "401": answering(b"", 401),
    "404 without a session": answering(b"", 404),
    "204": answering(b"", 204),
    "error as text": stateless([], lambda asked: http(orjson.dumps({"id": asked.id, "error": "no"}))),
    "error of any shape": stateless([], lambda asked: error(asked, -1, ["x"], supported=[[1]])),  # type: ignore[arg-type]
    "error": stateless([], lambda asked: error(asked, -32602, "unknown tool", 400)),
    "no HTTP": lambda asked: b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
    "cut": lambda asked: b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\nconnection: close\r\n\r\nhalf",
    "head without end": lambda asked: b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 20_000,
    "unknown revision": handshake([]),
    "other revision": stateless([]),
    "revision refused": lambda asked: error(asked, -32022, "Unsupported", 400, supported=["2030-01-01", [1]]),
    "bad session id": handshake([]),
}


def misnaming(handler: Handler, name: str) -> Handler:
    if name == "unknown revision":
        return lambda asked: (
            result(asked, {"protocolVersion": "1999-01-01"}) if asked.method == "initialize" else http(b"", 400)
        )
    if name == "other revision":
        return lambda asked: result(asked, {"supportedVersions": {"2026-07-28": 1}, "protocolVersion": ["x"]})
    if name == "bad session id":
        return lambda asked: (
            result(asked, {"protocolVersion": HANDSHAKE}, mcp_session_id="a b" * 500)
            if asked.method == "initialize"
            else http(b"", 400)
        )
    return handler


@each("name", [*HOSTILE])
async def test_hostile_server_costs_only_its_own_call(outbound: Outbound, name: str) -> None:
    found = await fault_of(
        misnaming(HOSTILE[name], name),
        outbound,
        is_silent=True,
        authorization=f"Bearer {SECRET}",
        x_other="another secret value",
    )
    assert found.startswith("wiki: ") and len(found) < 2_100 and SECRET not in found and "another" not in found
    async with scripted(stateless([])) as good:
        assert await session(good.url, outbound).call(LOOK, "{}") == text("seen")


async def test_faults_of_the_network_have_one_text(outbound: Outbound) -> None:
    texts = {
        await fault_of(HOSTILE[name], outbound, is_silent=True)
        for name in ("silent", "silent call", "no HTTP", "cut", "gzip")
    }
    one = session("http://127.0.0.1:1/mcp", outbound)
    with pytest.raises(ToolServerFault) as raised:
        await one.call(LOOK, "{}")
    assert texts == {str(raised.value)} == {"wiki: it did not answer as a tool server."}


@each("quoted", [SECRET, f"Bearer {SECRET}", "".join(f"\\u{ord(one):04x}" for one in SECRET)])
async def test_server_that_repeats_its_key_does_not_show_it(outbound: Outbound, quoted: str) -> None:
    headers = {"authorization": f"Bearer {SECRET}"}

    def leaking(asked: Asked) -> bytes:
        shown = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"I got %b"}]}}'
        return http(shown % (asked.id, quoted.encode()))

    async with scripted(stateless([], leaking)) as server:
        found = await session(server.url, outbound, headers).call(LOOK, "{}")
        assert found["content"][0]["text"] in ("I got ***", "I got Bearer ***")
    failing = stateless([], lambda asked: error(asked, 1, f"key {SECRET} is wrong", 401))
    assert await fault_of(failing, outbound, **headers) == "wiki: key *** is wrong"


async def test_a_probe_that_takes_too_long_is_followed_by_the_handshake(outbound: Outbound) -> None:
    def slow(asked: Asked) -> bytes | None:
        return None if asked.method == "server/discover" else handshake([])(asked)

    async with scripted(slow) as server:
        assert await hastened(session(server.url, outbound).call(LOOK, "{}")) == text("seen")


async def test_sessions_are_negotiated_once_for_calls_at_the_same_time(outbound: Outbound) -> None:
    async with scripted(handshake([])) as server:
        one = session(server.url, outbound)
        assert await asyncio.gather(*(one.call(LOOK, "{}") for _ in range(8))) == [text("seen")] * 8
        assert len(server.of("initialize")) == 1 and one.is_open
        await one.aclose()
        assert server.asked[-1].verb == "DELETE" and server.asked[-1].headers["mcp-session-id"] == "session-1"
        assert not one.is_open


# --- lists


async def test_list_is_read_in_pages_within_limits(outbound: Outbound) -> None:
    def pages(most: int, size: int = 10) -> Handler:
        def handle(asked: Asked) -> bytes | None:
            if asked.method != "tools/list":
                return stateless([])(asked)
            number = int(asked.body["params"].get("cursor", 0))
            page = [tool(f"t{number}_{place}") for place in range(size)]
            return result(asked, {"tools": page, **({"nextCursor": str(number + 1)} if number + 1 < most else {})})

        return handle

    for most, read in ((1, 1), (3, 3), (100, 7)):
        async with scripted(pages(most)) as server:
            entries, notes = await session(server.url, outbound).tools(None, 10)
            assert (len(entries), len(server.of("tools/list")), notes) == (10 * read, read, [])
    async with scripted(pages(100, 0)) as server:
        entries, notes = await session(server.url, outbound).tools(None, 10)
        assert entries == [] and len(server.of("tools/list")) == 20 and "20 pages" in notes[0]
    async with scripted(pages(30)) as server:
        entries, _ = await session(server.url, outbound).tools(frozenset(("t15_3", "t2_1")), 10)
        assert [entry["name"] for entry in entries] == ["t2_1", "t15_3"], "the operator's choice picks before the limit"


@each("as_events", [False, True])
async def test_list_over_1_mib_gives_its_first_tools(outbound: Outbound, as_events: bool) -> None:
    tools = [tool(f"t{number}", description="x" * 9_000) for number in range(200)]

    def large(asked: Asked) -> bytes | None:
        if asked.method != "tools/list":
            return stateless([])(asked)
        message = {"jsonrpc": "2.0", "id": asked.id, "result": {"tools": tools}}
        return events(message) if as_events else http(orjson.dumps(message))

    async with scripted(large) as server:
        entries, notes = await session(server.url, outbound).tools(None, 10)
    assert notes == ["The list of tools is over 1 MiB."]
    assert len(entries) > 64 and entries == tools[: len(entries)]
