"""Conversations, their messages and the search for them, through HTTP."""

import contextlib
import re
from typing import Any

import pytest

from svc.config import Config
from svc.schema import connect
from tests.conftest import PASSWORD, Clocks, Service, bearer, serving
from tests.content.test_history import indexed
from tests.support.cases import each
from tests.support.conversations import found, get, make, say

FIELDS = {
    "archived",
    "always_allow",
    "summary",
    "id",
    "title",
    "project_id",
    "pinned",
    "temperature",
    "max_output_tokens",
    "answering",
    "created_at",
    "updated_at",
}


@pytest.fixture
async def headers(service: Service) -> dict[str, str]:
    return await service.bearer()


async def test_conversation_is_returned_as_created(service: Service, headers: dict[str, str]) -> None:
    project = (await service.client.post("/projects", json={"name": "p"}, headers=headers)).json()
    made = await make(service, headers, title=" Über 🙂 </script> ", project_id=project["id"])
    assert set(made) == FIELDS and re.fullmatch(r"conv_[0-9a-z]{26}", made["id"])
    assert (made["title"], made["project_id"]) == (" Über 🙂 </script> ", project["id"])
    assert made["created_at"] == made["updated_at"] == "2026-09-21T14:13:20.000Z"
    assert await get(service, headers, f"/conversations/{made['id']}") == made
    assert (await get(service, headers, "/conversations"))["data"] == [made]


async def test_all_fields_are_optional_and_service_fields_ignored(service: Service, headers: dict[str, str]) -> None:
    other = await service.sign_up()
    made = await make(service, headers, id="conv_x", account_id=other["user"]["id"], number=1, created_at="x")
    assert made["id"] != "conv_x" and (made["title"], made["project_id"]) == (None, None)
    assert (await get(service, bearer(other["access_token"]), "/conversations"))["data"] == []


async def test_change_keeps_missing_fields_and_null_resets(service: Service, headers: dict[str, str]) -> None:
    project = (await service.client.post("/projects", json={"name": "p"}, headers=headers)).json()
    made = await make(service, headers)
    path = f"/conversations/{made['id']}"
    for changes in ({"title": "new"}, {"project_id": project["id"]}, {"title": None}, {"project_id": None}):
        service.clocks.advance(1)
        before = await get(service, headers, path)
        after = (await service.client.patch(path, json=changes, headers=headers)).json()
        assert after == {**before, **changes, "updated_at": after["updated_at"]} == await get(service, headers, path)
        assert after["updated_at"] > before["updated_at"]
    for unused in (
        {"temperature": 0.5, "max_output_tokens": 9},
        {"temperature": None},
        {"max_output_tokens": None},
        {},
    ):
        after = {**await get(service, headers, path), **unused}
        assert (await service.client.patch(path, json=unused, headers=headers)).json() == after


WRONG: list[tuple[str, Any]] = [
    *[("title", value) for value in ("", " \n", 5, True, ["x"], {}, "a\nb", "a\0", "x" * 201)],
    *[("temperature", value) for value in (-0.1, 2.1, "1", True)],
    *[("max_output_tokens", value) for value in (0, 1.5, 2**31, "1", True)],
    *[(name, value) for name in ("pinned", "archived") for value in (1, "yes", [])],
    *[("project_id", value) for value in (5, True, [], {})],
]


async def test_wrong_value_is_400_and_changes_nothing(service: Service, headers: dict[str, str]) -> None:
    made = await make(service, headers, title="t")
    for field, value in WRONG:
        for method, path in (("POST", "/conversations"), ("PATCH", f"/conversations/{made['id']}")):
            answer = await service.client.request(method, path, json={field: value}, headers=headers)
            error = answer.json()["error"]
            assert (answer.status_code, error["code"], error["param"]) == (400, "invalid_value", field), (field, value)
        assert (await get(service, headers, "/conversations"))["data"] == [made], (field, value)


@each(
    ("body", "code", "param"),
    [
        ({"content": "x"}, "missing_field", "role"),
        ({"role": "user"}, "missing_field", "content"),
        ({"role": "tool", "content": "x"}, "invalid_value", "role"),
        ({"role": ["user"], "content": "x"}, "invalid_value", "role"),
        ({"role": "user", "content": " \n"}, "invalid_value", "content"),
        ({"role": "user", "content": 5}, "invalid_value", "content"),
        ({"role": "user", "content": [{"type": "text", "text": "x"}]}, "invalid_value", "content"),
        ({"role": "user", "content": "x" * 1_000_001}, "invalid_value", "content"),
    ],
)
async def test_wrong_message_is_400_and_not_stored(
    service: Service, headers: dict[str, str], body: dict[str, Any], code: str, param: str
) -> None:
    made = await make(service, headers)
    answer = await service.client.post(f"/conversations/{made['id']}/messages", json=body, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"], answer.json()["error"]["param"]) == (400, code, param)
    assert (await get(service, headers, f"/conversations/{made['id']}/messages"))["data"] == []


async def test_pinned_conversations_come_first_on_exact_pages(service: Service, headers: dict[str, str]) -> None:
    ids = []
    for number in range(7):
        service.clocks.advance(1)
        ids.insert(0, (await make(service, headers, title=f"zebra {number}", pinned=number == 0))["id"])
    before = await get(service, headers, f"/conversations/{ids[3]}")
    service.clocks.advance(1)
    pinned = await service.client.patch(f"/conversations/{ids[3]}", json={"pinned": True}, headers=headers)
    assert pinned.json() == {**before, "pinned": True}, "to pin is no use"
    expected = [ids[3], ids[6], *(ids[number] for number in (0, 1, 2, 4, 5))]
    for words in ({}, {"q": "zebra"}):
        paged: list[str] = []
        more = True
        while more:
            after = {"after": paged[-1]} if paged else {}
            page = await get(service, headers, "/conversations", limit=2, **words, **after)
            paged, more = paged + [item["id"] for item in page["data"]], page["has_more"]
        assert paged == expected
    await service.client.patch(f"/conversations/{ids[3]}", json={"pinned": False}, headers=headers)
    listed = (await get(service, headers, "/conversations"))["data"]
    assert [item["id"] for item in listed] == [ids[6], *ids[:6]]


async def archive(service: Service, headers: dict[str, str], conversation_id: str, *, archived: bool = True) -> Any:
    path = f"/conversations/{conversation_id}"
    answer = await service.client.patch(path, json={"archived": archived}, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def listed(service: Service, headers: dict[str, str], **params: Any) -> list[str]:
    return [one["title"] for one in (await get(service, headers, "/conversations", **params))["data"]]


async def test_archived_conversation_is_out_of_the_list_and_found(service: Service, headers: dict[str, str]) -> None:
    made = [await make(service, headers, title=f"zebra {number}") for number in range(3)]
    changed = await archive(service, headers, made[1]["id"])
    assert changed == {**made[1], "archived": True}, "to archive is no use"
    others = ["zebra 2", "zebra 0"]
    assert await listed(service, headers) == await listed(service, headers, archived="false") == others
    assert await listed(service, headers, archived="true") == ["zebra 1"]
    assert await get(service, headers, f"/conversations/{made[1]['id']}") == changed
    assert await listed(service, headers, q="zebra") == ["zebra 2", "zebra 1", "zebra 0"]
    assert await listed(service, headers, q="zebra", archived="true") == ["zebra 1"]
    assert await listed(service, headers, q="zebra", archived="false", limit=1) == ["zebra 2"]
    assert (await service.client.get("/conversations?archived=yes", headers=headers)).status_code == 400
    assert await archive(service, headers, made[1]["id"], archived=False) == made[1]
    assert await listed(service, headers) == ["zebra 2", "zebra 1", "zebra 0"]


async def test_pages_of_archived_conversations_are_exact(service: Service, headers: dict[str, str]) -> None:
    ids = []
    for number in range(6):
        service.clocks.advance(1)
        ids.insert(0, (await make(service, headers, title=f"{number}", pinned=number == 0))["id"])
        await archive(service, headers, ids[0], archived=number % 2 == 0)
    page = await get(service, headers, "/conversations", archived="true", limit=2)
    assert ([one["title"] for one in page["data"]], page["has_more"]) == (["0", "4"], True)
    rest = await get(service, headers, "/conversations", archived="true", limit=2, after=page["data"][-1]["id"])
    assert ([one["title"] for one in rest["data"]], rest["has_more"]) == (["2"], False)


async def test_question_takes_a_conversation_out_of_the_archive(service: Service, headers: dict[str, str]) -> None:
    made = await make(service, headers, title="kept")
    path = f"/conversations/{made['id']}"
    await archive(service, headers, made["id"])
    await say(service, headers, made["id"], "hello")
    assert (await get(service, headers, path))["archived"] is False
    await archive(service, headers, made["id"])
    chat = {"model": "builtin/echo", "messages": [{"role": "user", "content": "hi"}]}
    asked = {**headers, "x-service-conversation": made["id"]}
    assert (await service.client.post("/v1/chat/completions", json=chat, headers=asked)).status_code == 200
    assert (await get(service, headers, path))["archived"] is False


async def test_end_of_an_answer_leaves_its_conversation_archived(service: Service, headers: dict[str, str]) -> None:
    chat = {
        "model": "builtin/script",
        "stream": True,
        "messages": [{"role": "user", "content": "say begun\nwait 300\nsay done"}],
    }
    async with service.client.stream("POST", "/v1/chat/completions", json=chat, headers=headers) as answer:
        conversation_id = answer.headers["x-service-conversation"]
        await archive(service, headers, conversation_id)
        async for _ in answer.aiter_lines():
            pass
    found = await get(service, headers, f"/conversations/{conversation_id}")
    assert (found["archived"], found["answering"]) == (True, False)


async def test_memory_recalls_archived_conversations(service: Service, headers: dict[str, str]) -> None:
    made = await make(service, headers, title="pets")
    await say(service, headers, made["id"], "My zebra is called Zora.")
    await archive(service, headers, made["id"])
    found = await get(service, headers, "/user/memory", q="What is my zebra called?")
    assert [one["conversation_id"] for one in found["data"]] == [made["id"]]


async def test_search_finds_all_words_in_messages_or_title(service: Service, headers: dict[str, str]) -> None:
    ids = []
    for title, content in (("Zürich trip", "the zebra crossed"), ("lunch", "a lion crossed"), ("zebra", "nothing")):
        service.clocks.advance(1)
        ids.append((await make(service, headers, title=title))["id"])
        await say(service, headers, ids[-1], content)
    assert await found(service, headers, "ZEBRA") == [ids[2], ids[0]]
    assert await found(service, headers, "crossed zebra") == [ids[0]]
    assert await found(service, headers, "trip zebra cros") == [ids[0]]
    assert await found(service, headers, "zurich") == [ids[0]]
    assert await found(service, headers, "lion zebra") == await found(service, headers, "!!!") == []
    assert await found(service, headers, "") == ids[::-1]
    too_long = await service.client.get("/conversations", params={"q": "x" * 501}, headers=headers)
    assert (too_long.status_code, too_long.json()["error"]["param"]) == (400, "q")
    await service.client.patch(f"/conversations/{ids[2]}", json={"title": "renamed"}, headers=headers)
    assert await found(service, headers, "zebra") == [ids[0]] and await found(service, headers, "renamed") == [ids[2]]


async def test_search_has_pages_and_a_project_filter(service: Service, headers: dict[str, str]) -> None:
    project = (await service.client.post("/projects", json={"name": "p"}, headers=headers)).json()
    ids = []
    for number in range(5):
        service.clocks.advance(1)
        fields = {"project_id": project["id"]} if number % 2 else {}
        ids.insert(0, (await make(service, headers, **fields))["id"])
        await say(service, headers, ids[0], "a zebra " * (number + 1))
    page = await get(service, headers, "/conversations", q="zebra", limit=2)
    assert [item["id"] for item in page["data"]] == ids[:2] and page["has_more"]
    rest = await get(service, headers, "/conversations", q="zebra", limit=3, after=ids[1])
    assert [item["id"] for item in rest["data"]] == ids[2:] and not rest["has_more"]
    assert await found(service, headers, "zebra", project_id=project["id"]) == [ids[1], ids[3]]


@pytest.mark.parametrize(
    "query", ['"', "AND", "NOT x", "zebra*", "NEAR(a b)", "(", "content:x", "a\0b", " OR ".join(["x"] * 100)]
)
async def test_any_query_is_answered(service: Service, headers: dict[str, str], query: str) -> None:
    made = await make(service, headers)
    await say(service, headers, made["id"], "zebra")
    assert await found(service, headers, query) == ([made["id"]] if "zebra" in query else [])


async def test_export_is_the_whole_conversation_as_markdown(service: Service, headers: dict[str, str]) -> None:
    key = bearer((await service.make_key(headers))["key"])
    made = await make(service, headers, title="Züge & <b>")
    path, title, at = f"/conversations/{made['id']}/export", "# Züge & <b>\n", "2026-09-21T14:13:20.000Z"
    empty = await service.client.get(path, headers=headers)
    assert (empty.text, empty.headers["content-type"]) == (title, "text/markdown; charset=utf-8")
    assert empty.headers["content-disposition"] == f'attachment; filename="{made["id"]}.md"'
    chat = {"model": "builtin/echo", "messages": [{"role": "user", "content": " hi\n"}]}
    in_conversation = {**headers, "x-service-conversation": made["id"]}
    assert (await service.client.post("/v1/chat/completions", json=chat, headers=in_conversation)).status_code == 200
    exchange = f"{title}\n## User, {at}\n\nhi\n\n## Assistant, builtin/echo, {at}\n\nhi\n"
    for by in (headers, key):
        assert (await service.client.get(path, headers=by)).text == exchange
    long = [letter * 400_000 for letter in "äbcdef"]
    for content in long:
        await say(service, headers, made["id"], content, role="system")
    exported = await service.client.get(path, headers=headers)
    assert "content-length" not in exported.headers, "it is streamed"
    assert exported.text == exchange + "".join(f"\n## System, {at}\n\n{content}\n" for content in long)
    untitled = await make(service, headers)
    assert (await service.client.get(f"/conversations/{untitled['id']}/export", headers=headers)).text == "# Untitled\n"


async def test_deleted_accounts_words_are_in_no_file(service: Service) -> None:
    stays, session = await service.bearer(), await service.sign_up()
    goes = {"authorization": f"Bearer {session['access_token']}"}
    for headers, word in ((goes, "canary"), (stays, "sparrow")):
        for number in range(30):
            made = await make(service, headers, title=f"{word} title {number}")
            await say(service, headers, made["id"], f"{word}{number} and more " + "of these words " * 700)
    deleted = await service.client.request("DELETE", "/user/me", json={"password": PASSWORD}, headers=goes)
    assert deleted.status_code == 204
    files = b"".join(path.read_bytes() for path in service.config.data_dir.glob("service.db*"))
    assert files.count(b"canary") == 0 and b"sparrow" in files, files[files.find(b"canary") - 300 :][:500]
    assert session["user"]["id"].replace("_", "").encode() not in files
    assert len((await get(service, stays, "/conversations", q="sparrow2"))["data"]) == 11


async def test_deleted_words_leave_the_index_after_a_restart(config: Config, clocks: Clocks) -> None:
    async with serving(config, clocks) as service:
        headers = await service.bearer()
        kept, gone = await make(service, headers), await make(service, headers)
        for number in range(150):  # more than stay fresh
            await say(service, headers, (kept, gone)[number % 2]["id"], f"{('lion', 'zebra')[number % 2]} {number}")
        assert (await service.client.delete(f"/conversations/{gone['id']}", headers=headers)).status_code == 204
        assert await found(service, headers, "zebra") == [] and await found(service, headers, "lion 4") == [kept["id"]]
    with contextlib.closing(connect(config.data_dir / "service.db")) as conn:
        assert "zebra" in {word for _, word, _ in indexed(conn)}
        conn.execute("UPDATE word_purges SET due_at = 0")
    async with serving(config, clocks) as service:
        db = service.state["db"]
        while await db.read(lambda conn: conn.execute("SELECT 1 FROM word_purges").fetchone()):
            pass
        words = {word for _, word, _ in await db.read(indexed)}
        assert "lion" in words and not words & {"zebra", "1", "3"}
        assert await found(service, headers, "lion 4") == [kept["id"]]


async def test_versions_of_a_message_are_listed_with_their_texts(service: Service, headers: dict[str, str]) -> None:
    conversation = await make(service, headers)
    first = await say(service, headers, conversation["id"], "one")
    other = await say(service, headers, conversation["id"], "two", role="assistant")
    path = f"/conversations/{conversation['id']}/messages"
    assert (await get(service, headers, f"{path}/{other['id']}/versions"))["data"] == [
        (await get(service, headers, path))["data"][0]
    ]
    for text in ("three", "four"):
        body = {"model": "builtin/script", "messages": [{"role": "user", "content": f"say {text}"}]}
        named = {"x-service-conversation": conversation["id"], "x-service-replaces": other["id"]}
        assert (await service.client.post("/v1/chat/completions", json=body, headers={**headers, **named})).is_success
    newest = (await get(service, headers, path))["data"][0]
    for message_id in newest["versions"]:
        listed = (await get(service, headers, f"{path}/{message_id}/versions"))["data"]
        assert [one["content"] for one in listed] == ["four", "three", "two"]
        assert all(one["versions"] == newest["versions"] for one in listed)
    page = await get(service, headers, f"{path}/{other['id']}/versions", limit=1, after=newest["id"])
    assert [one["content"] for one in page["data"]] == ["three"] and page["has_more"]
    assert [one["content"] for one in (await get(service, headers, f"{path}/{first['id']}/versions"))["data"]] == [
        "one"
    ]
    stranger = await service.bearer()
    assert (await service.client.get(f"{path}/{first['id']}/versions", headers=stranger)).status_code == 404
    elsewhere = await make(service, headers)
    answer = await service.client.get(
        f"/conversations/{elsewhere['id']}/messages/{first['id']}/versions", headers=headers
    )
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")
