"""What of a list is accepted."""

import orjson

from svc.inference.tool_servers.client import Target
from svc.inference.tool_servers.listed import usable
from svc.inference.tool_servers.reading import Reading, columns_of, read
from svc.outbound.client import Outbound
from tests.support.tool_server import HANDSHAKE, real_server, scripted, stateless, tool


def accepted(tools: list[str], before: dict[str, str] | None, *trusted: str) -> set[str]:
    found = usable([tool(name) for name in tools])[0]
    text = None if before is None else orjson.dumps(before).decode()
    return set(orjson.loads(columns_of(Reading(found), text, 1.0, trusted)["accepted"]))


def test_first_list_is_accepted_and_later_only_trusted_names_are() -> None:
    assert accepted(["a", "b"], None) == {"a", "b"}
    assert accepted(["a", "b"], {}) == set()
    assert accepted(["a", "b"], {"a": "digest"}) == {"a"}
    assert accepted(["a", "b"], {"c": "digest"}, "b", "d") == {"b", "c"}


async def test_reading_ends_the_session_that_it_has_begun() -> None:
    outbound = Outbound()
    async with real_server(HANDSHAKE) as server:
        found = await read(Target("wiki", server.url, {}, outbound), None, 5)
        assert found.tools is not None and len(found.tools) == 5 and found.detail is None
        assert server.seen[-1][0] == "DELETE"
    await outbound.aclose()


async def test_reasons_are_in_the_detail() -> None:
    outbound = Outbound()
    entries = [tool(), tool("bad", inputSchema=7), {"name": 1}]
    async with scripted(stateless(entries)) as server:
        found = await read(Target("wiki", server.url, {}, outbound), None, 5)
    assert found.tools is not None and [one.name for one in found.tools] == ["look"]
    assert found.detail is not None and found.detail.count("A tool is left out.") == 2
    failed = await read(Target("wiki", "http://127.0.0.1:1/", {}, outbound), None, 5)
    assert failed == Reading(None, "wiki: it did not answer as a tool server.")
    await outbound.aclose()
