"""The undo of an import: what it has made is deleted, and what was there before stays as it was."""

import asyncio
import json
from typing import Any

from tests.conftest import Service, bearer
from tests.routes.test_imports import IMPORT, begin, chats, get, imported, listed, said, texts
from tests.support import exports
from tests.support.cases import each


@each("export", [exports.chatgpt(), exports.claude(), exports.open_webui(), exports.librechat()])
async def test_undo_deletes_everything_and_the_file_can_be_imported_again(service: Service, export: Any) -> None:
    headers = await service.bearer()
    empty = await listed(service, headers, "/conversations")
    report = await imported(service, headers, export)
    for _ in range(2):  # a second time changes nothing
        answer = await service.client.delete(f"{IMPORT}/{report['id']}", headers=headers)
        assert answer.status_code == 204, answer.text
    for path in ("/conversations", "/artifacts", "/projects"):
        assert await listed(service, headers, path) == empty
    after = await get(service, headers, f"{IMPORT}/{report['id']}")
    assert after == {**report, "status": "undone"}
    assert (await imported(service, headers, export))["counts"] == report["counts"]


async def test_undo_leaves_what_an_earlier_import_has_made(service: Service) -> None:
    headers = await service.bearer()
    nodes = [
        exports.node("q", None, "user", "One", 1_700_000_001),
        exports.node("a", "q", "assistant", "1", 1_700_000_002),
    ]
    await imported(service, headers, [exports.chatgpt_chat("c", "Count", exports.mapping(*nodes), "a")])
    count = (await chats(service, headers))["Count"]
    before = await said(service, headers, count["id"])
    more = [
        *nodes,
        exports.node("q2", "a", "user", "Two", 1_700_000_003),
        exports.node("ab", "q", "assistant", "I", 1_700_000_005),
    ]
    export = [exports.chatgpt_chat("c", "Count", exports.mapping(*more), "ab")]
    report = await imported(service, headers, export)
    assert await texts(service, headers, count["id"]) == ["One", "I"]
    assert (await service.client.delete(f"{IMPORT}/{report['id']}", headers=headers)).status_code == 204
    assert await said(service, headers, count["id"]) == before
    assert (await imported(service, headers, export))["counts"]["imported"] == 1
    assert await texts(service, headers, count["id"]) == ["One", "I"]


async def test_undo_is_possible_for_24_hours(service: Service) -> None:
    headers = bearer((await service.make_key(await service.bearer()))["key"])
    report = await imported(service, headers, exports.librechat())
    service.clocks.advance(24 * 3600 + 1)
    answer = await service.client.delete(f"{IMPORT}/{report['id']}", headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "already_ended")
    assert len(await chats(service, headers)) == 1


async def test_undo_stops_an_import_in_progress(service: Service) -> None:
    headers = await service.bearer()
    many = [{**exports.librechat(), "conversationId": f"{number}"} for number in range(300)]
    started = await begin(service, headers, json.dumps(many).encode(), "application/json")
    while (report := await get(service, headers, f"{IMPORT}/{started['id']}"))["counts"]["imported"] < 3:
        assert report["status"] == "reading", report
        await asyncio.sleep(0.005)
    assert (await service.client.delete(f"{IMPORT}/{started['id']}", headers=headers)).status_code == 204
    assert (await get(service, headers, f"{IMPORT}/{started['id']}"))["status"] == "undone"
    assert await listed(service, headers, "/conversations") == [] and service.state["open_imports"] == {}
