"""Shared conversations and their pictures, and new conversations from a message, through HTTP."""

import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import orjson
import pytest

from svc.auth import accounts
from svc.config import Config
from svc.content import answers, artifact_contents, history
from svc.content.answers import AnswerDetails
from svc.deletion.slices import begin_deletion
from tests.conftest import Clocks, Service, bearer, serving
from tests.support.answers import assert_error
from tests.support.cases import each
from tests.support.conversations import get, make, say

DAY = 24 * 3600
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="


@pytest.fixture
async def headers(service: Service) -> dict[str, str]:
    return await service.bearer()


async def share(service: Service, headers: dict[str, str], conversation_id: str, **fields: Any) -> dict[str, Any]:
    answer = await service.client.post(f"/conversations/{conversation_id}/shares", json=fields, headers=headers)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def read(service: Service, token: str) -> httpx.Response:
    return await service.client.get(f"/shared/{token}")


async def stored_bytes(service: Service, account_id: str) -> int:
    query = "SELECT bytes FROM stored WHERE account_id = ?"
    found: int = await service.state["db"].read(lambda conn: conn.execute(query, (account_id,)).fetchone()[0])
    return found


async def answered(service: Service, account_id: str, conversation_id: str, content: str, **details: Any) -> str:
    """Store an answer with details as a chat with tools leaves them; return its id."""

    def add(tx: Any) -> str:
        message = history.add_message(
            tx,
            account_id,
            role="assistant",
            content=content,
            model="lab-of-ada/m1",
            now_seconds=service.clocks.now,
            conversation_id=conversation_id,
        )
        passage = {"text": "MEMORY passage", "message_id": "m", "role": "user", "source": "conv_1"}
        answers.add(tx, account_id, message.id, [{**passage, "created_at": "2026-09-21T14:13:20.000Z"}])
        texts = {name: orjson.dumps(value).decode() for name, value in details.items()}
        answers.update(tx, account_id, message.id, AnswerDetails(1, 2, 3, 4, "stop", "REASONING", **texts))
        return message.id

    made: str = await service.state["db"].write(add)
    return made


async def test_link_shows_the_conversation_as_it_was_without_sign_in(service: Service, headers: dict[str, str]) -> None:
    conversation = await make(service, headers, title="Trains")
    await say(service, headers, conversation["id"], "When does it leave?")
    made = await share(service, headers, conversation["id"])
    assert re.fullmatch(r"[A-Za-z0-9_-]{22}", made["token"]) and made["url"].endswith(f"/#/shared/{made['token']}")
    assert made["expires_at"] == "2026-09-28T14:13:20.000Z"
    await say(service, headers, conversation["id"], "later")
    await service.client.patch(f"/conversations/{conversation['id']}", json={"title": "Planes"}, headers=headers)
    answer = await read(service, made["token"])
    assert answer.status_code == 200 and answer.headers["x-robots-tag"] == "noindex"
    assert answer.json() == {
        "title": "Trains",
        "created_at": "2026-09-21T14:13:20.000Z",
        "expires_at": "2026-09-28T14:13:20.000Z",
        "messages": [{"role": "user", "content": "When does it leave?", "created_at": "2026-09-21T14:13:20.000Z"}],
    }


async def test_copy_has_no_data_of_the_account(service: Service) -> None:
    session = await service.sign_up("ada.lovelace@example.com")
    headers, account_id = bearer(session["access_token"]), session["user"]["id"]
    await service.client.patch("/user/settings", json={"instructions": "INSTRUCTION mine"}, headers=headers)
    conversation = await make(service, headers, title="t")
    await say(service, headers, conversation["id"], "SYSTEM text", role="system")
    asked = await say(service, headers, conversation["id"], "hello")
    steps = [
        {"tool_call": {"id": "c", "name": "lab__find", "arguments": '{"key": "SECRET"}'}},
        {"tool_result": {"id": "c", "name": "lab__find", "ok": True, "result": "RESULT"}},
    ]
    sources = [
        {"number": 1, "kind": "web", "url": "https://example.com/", "title": "Example", "text": "TEXT"},
        {"number": 2, "kind": "file", "file": "art_1", "name": "PRIVATE.pdf", "text": "PASSAGE"},
        {"number": 3, "kind": "web", "url": "https://uncited.example/", "title": None},
    ]
    details = {"steps": steps, "sources": sources}
    answer_id = await answered(service, account_id, conversation["id"], "hi [1] [2]", **details)
    text = (await read(service, (await share(service, headers, conversation["id"]))["token"])).text
    for private in (
        *("ada.lovelace", account_id, "INSTRUCTION", "SYSTEM", "MEMORY", "REASONING", "SECRET", "RESULT", "PRIVATE"),
        *("PASSAGE", "TEXT", "uncited", "lab", conversation["id"], asked["id"], answer_id, "cost"),
    ):
        assert private not in text, private
    answer = orjson.loads(text)["messages"][1]
    assert answer == {
        "role": "assistant",
        "content": "hi [1] [2]",
        "created_at": "2026-09-21T14:13:20.000Z",
        "model": "m1",
        "status": "complete",
        "pictures": [],
        "sources": [{"number": 1, "url": "https://example.com/", "title": "Example"}],
    }


async def test_pictures_of_answers_stay_after_their_artifacts(service: Service) -> None:
    session = await service.sign_up()
    headers, account_id = bearer(session["access_token"]), session["user"]["id"]

    async def artifact(content_type: str) -> str:
        body = {"name": "p", "content_base64": PNG, "content_type": content_type}
        made = (await service.client.post("/artifacts", json=body, headers=headers)).json()
        return str(made["id"])

    picture, named, drawing, asked = [await artifact(f"image/{kind}") for kind in ("png", "png", "svg+xml", "png")]
    conversation = await make(service, headers)
    await say(service, headers, conversation["id"], f"![p](/artifacts/{asked}/content)")
    made = [{"tool_result": {"id": "c", "name": "n", "ok": True, "result": {"id": one}}} for one in (picture, drawing)]
    await answered(service, account_id, conversation["id"], f"![p](/artifacts/{named}/content)", steps=made)
    before = await stored_bytes(service, account_id)
    token = (await share(service, headers, conversation["id"]))["token"]
    shown = (await read(service, token)).json()["messages"]
    assert shown[1]["pictures"] == [picture, named] and "pictures" not in shown[0]
    assert await stored_bytes(service, account_id) > before + 2 * 70, "the copy counts with its pictures"
    await service.client.delete(f"/artifacts/{picture}", headers=headers)
    await service.client.put(f"/artifacts/{named}/content", content=b"other", headers=headers)
    await service.state["db"].write(artifact_contents.leave_unfinished)  # as at the next start
    while await service.state["db"].write_as("alone", artifact_contents.delete_some_unused):
        pass
    for one in (picture, named):
        answer = await service.client.get(f"/shared/{token}/pictures/{one}")
        assert answer.status_code == 200 and answer.content[:4] == b"\x89PNG"
        assert answer.headers["content-type"] == "image/png" and answer.headers["x-robots-tag"] == "noindex"
        assert answer.headers["content-security-policy"] == "sandbox"
    for one in (drawing, asked, "art_unknown"):
        assert_error(await service.client.get(f"/shared/{token}/pictures/{one}"), 404, "not_found")
    [listed] = (await get(service, headers, "/user/shares"))["data"]
    assert (await service.client.delete(f"/user/shares/{listed['id']}", headers=headers)).status_code == 204
    assert_error(await service.client.get(f"/shared/{token}/pictures/{picture}"), 404, "not_found")
    unused = "SELECT count(*) FROM artifact_contents WHERE unused"
    freed = "SELECT count(*) FROM artifact_contents"
    left = await service.state["db"].read(lambda conn: conn.execute(f"SELECT ({freed}) - ({unused})").fetchone()[0])
    assert left == 3, "the contents of the artifacts that are left"


async def test_list_shows_shares_without_their_links_and_revoking_ends_one(
    service: Service, headers: dict[str, str]
) -> None:
    conversation = await make(service, headers, title="Trains")
    await say(service, headers, conversation["id"], "hello")
    first, second = [await share(service, headers, conversation["id"]) for _ in range(2)]
    assert first["token"] != second["token"]
    listed = (await get(service, headers, "/user/shares"))["data"]
    assert [one["id"] for one in listed] == [second["id"], first["id"]]
    assert set(listed[0]) == {"id", "conversation_id", "title", "created_at", "expires_at"}
    path = f"/user/shares/{first['id']}"
    assert (await service.client.delete(path, headers=headers)).status_code == 204
    assert_error(await read(service, first["token"]), 404, "not_found")
    assert (await read(service, second["token"])).status_code == 200
    assert_error(await service.client.delete(path, headers=headers), 404, "not_found")
    audit = "SELECT action, details FROM audit ORDER BY seq DESC LIMIT 3"
    rows = await service.state["db"].read(lambda conn: [tuple(row) for row in conn.execute(audit)])
    assert [row[0] for row in rows] == ["share.delete", "share.add", "share.add"]
    assert not any(first["token"] in row[1] for row in rows)


async def test_only_the_hash_of_a_token_is_stored(service: Service, headers: dict[str, str]) -> None:
    conversation = await make(service, headers)
    await say(service, headers, conversation["id"], "hello")
    token = (await share(service, headers, conversation["id"]))["token"]
    row = await service.state["db"].read(lambda conn: tuple(conn.execute("SELECT * FROM shares").fetchone()))
    assert all(token not in str(value) for value in row)


@each("days", [1, 30, 365, None])
async def test_link_ends_after_its_days(service: Service, days: int | None) -> None:
    headers = await service.bearer()
    conversation = await make(service, headers)
    await say(service, headers, conversation["id"], "hello")
    made = await share(service, headers, conversation["id"], expires_days=days)
    service.clocks.advance((days or 4000) * DAY - 1)
    assert (await read(service, made["token"])).status_code == 200
    service.clocks.advance(1)
    if days is None:
        assert made["expires_at"] is None and (await read(service, made["token"])).status_code == 200
    else:
        assert_error(await read(service, made["token"]), 404, "not_found")


@each("days", [0, -1, 366, 1.5, "7", True])
async def test_wrong_days_are_400(service: Service, headers: dict[str, str], days: Any) -> None:
    conversation = await make(service, headers)
    await say(service, headers, conversation["id"], "hello")
    path = f"/conversations/{conversation['id']}/shares"
    answer = await service.client.post(path, json={"expires_days": days}, headers=headers)
    assert assert_error(answer, 400, "invalid_value")["param"] == "expires_days"
    assert (await get(service, headers, "/user/shares"))["data"] == []


async def test_share_ends_at_the_named_message_of_the_current_branch(service: Service, headers: dict[str, str]) -> None:
    conversation = await make(service, headers)
    path = f"/conversations/{conversation['id']}/shares"
    assert_error(await service.client.post(path, json={}, headers=headers), 404, "not_found")
    said = [await say(service, headers, conversation["id"], text) for text in ("one", "two", "three")]
    made = await share(service, headers, conversation["id"], message_id=said[1]["id"])
    shown = (await read(service, made["token"])).json()["messages"]
    assert [message["content"] for message in shown] == ["one", "two"]
    body = {"model": "builtin/script", "messages": [{"role": "user", "content": "say new"}]}
    named = {"x-service-conversation": conversation["id"], "x-service-replaces": said[2]["id"]}
    assert (await service.client.post("/v1/chat/completions", json=body, headers={**headers, **named})).is_success
    newest = await share(service, headers, conversation["id"])
    shown = (await read(service, newest["token"])).json()["messages"]
    assert [message["content"] for message in shown] == ["one", "two", "say new", "new"]
    answer = await service.client.post(path, json={"message_id": said[2]["id"]}, headers=headers)
    assert assert_error(answer, 404, "not_found")["param"] == "message_id"


async def test_copy_of_more_than_four_million_bytes_is_413(service: Service, headers: dict[str, str]) -> None:
    conversation = await make(service, headers)
    first = await say(service, headers, conversation["id"], "x" * 900_000)
    for _ in range(4):
        await say(service, headers, conversation["id"], "ü" * 450_000)
    path = f"/conversations/{conversation['id']}/shares"
    error = assert_error(await service.client.post(path, json={}, headers=headers), 413, "PAYLOAD_TOO_LARGE")
    assert error["param"] == "message_id"
    made = await share(service, headers, conversation["id"], message_id=first["id"])
    assert len((await read(service, made["token"])).json()["messages"][0]["content"]) == 900_000
    assert (await service.client.delete(f"/user/shares/{made['id']}", headers=headers)).status_code == 204
    count = await service.state["db"].read(lambda conn: conn.execute("SELECT count(*) FROM shares").fetchone()[0])
    assert count == 0


async def test_share_needs_room(service: Service) -> None:
    session = await service.sign_up()
    headers, account_id = bearer(session["access_token"]), session["user"]["id"]
    conversation = await make(service, headers)
    await say(service, headers, conversation["id"], "x" * 1000)
    limit = await stored_bytes(service, account_id) + 1000
    await service.state["db"].write(lambda tx: tx.execute("UPDATE storage_limit SET bytes = ?", (limit,)))
    path = f"/conversations/{conversation['id']}/shares"
    assert_error(await service.client.post(path, json={}, headers=headers), 413, "quota_exceeded")
    assert (await get(service, headers, "/user/shares"))["data"] == []


async def test_deleting_the_conversation_or_the_account_ends_its_shares(service: Service) -> None:
    session = await service.sign_up()
    headers = bearer(session["access_token"])
    tokens = []
    for _ in range(2):
        conversation = await make(service, headers)
        await say(service, headers, conversation["id"], "hello")
        tokens.append((await share(service, headers, conversation["id"]))["token"])
    await service.client.delete(f"/conversations/{conversation['id']}", headers=headers)
    assert [(await read(service, token)).status_code for token in tokens] == [200, 404]
    body = {"password": "correct horse battery"}
    assert (await service.client.request("DELETE", "/user/me", json=body, headers=headers)).status_code == 204
    assert_error(await read(service, tokens[0]), 404, "not_found")


async def test_links_of_a_suspended_account_do_not_work(service: Service) -> None:
    session = await service.sign_up()
    headers, account_id = bearer(session["access_token"]), session["user"]["id"]
    conversation = await make(service, headers)
    await say(service, headers, conversation["id"], "hello")
    token = (await share(service, headers, conversation["id"]))["token"]
    statement = "UPDATE accounts SET suspended_at = ? WHERE id = ?"
    for at, status in ((1.0, 404), (None, 200)):
        await service.state["db"].write(lambda tx, at=at: tx.execute(statement, (at, account_id)))
        assert (await read(service, token)).status_code == status


async def test_links_end_when_the_deletion_of_the_account_begins(service: Service) -> None:
    session = await service.sign_up()
    headers, account_id = bearer(session["access_token"]), session["user"]["id"]
    conversation = await make(service, headers)
    await say(service, headers, conversation["id"], "hello")
    token = (await share(service, headers, conversation["id"]))["token"]
    await service.state["db"].write(begin_deletion, account_id, service.clocks.now, None)
    assert_error(await read(service, token), 404, "not_found")


async def test_answer_in_progress_is_not_in_the_copy(service: Service) -> None:
    session = await service.sign_up()
    headers, account_id = bearer(session["access_token"]), session["user"]["id"]
    conversation = await make(service, headers)
    await say(service, headers, conversation["id"], "hello")
    fields = {"role": "assistant", "content": "so far", "now_seconds": 1.0, "conversation_id": conversation["id"]}
    db = service.state["db"]
    await db.write(lambda tx: history.add_message(tx, account_id, status="in_progress", **fields))
    token = (await share(service, headers, conversation["id"]))["token"]
    assert [message["content"] for message in (await read(service, token)).json()["messages"]] == ["hello"]
    await db.write(history.end_interrupted_answers)


async def test_an_address_reads_240_shares_a_minute(service: Service) -> None:
    for number in range(241):
        answer = await read(service, "unknown")
        assert answer.status_code == (404 if number < 240 else 429)
    service.clocks.advance(60)
    assert (await read(service, "unknown")).status_code == 404


# --- the switch


CATALOG = """
[access]
models = ["*"]

[[groups]]
name = "press"
models = ["*"]
sharing = true
"""


@pytest.fixture
async def team(config: Config, clocks: Clocks) -> AsyncIterator[Service]:
    async with serving(config, clocks, CATALOG) as service:
        yield service


async def test_catalog_with_groups_allows_sharing_only_to_groups_that_say_so(team: Service) -> None:
    session = await team.sign_up()
    headers, account_id = bearer(session["access_token"]), session["user"]["id"]
    conversation = await make(team, headers)
    await say(team, headers, conversation["id"], "hello")
    groups = team.state["models"].catalog.groups
    path = f"/conversations/{conversation['id']}/shares"
    assert_error(await team.client.post(path, json={}, headers=headers), 403, "sharing_disabled")
    assert (await get(team, headers, "/user/settings"))["sharing_enabled"] is False
    await team.state["db"].write(accounts.set_group, account_id, "press", groups)
    assert (await get(team, headers, "/user/settings"))["sharing_enabled"] is True
    made = await share(team, headers, conversation["id"])
    assert (await read(team, made["token"])).status_code == 200
    await team.state["db"].write(accounts.set_group, account_id, None, groups)
    assert_error(await read(team, made["token"]), 404, "not_found")
    assert (await team.client.delete(f"/user/shares/{made['id']}", headers=headers)).status_code == 204


async def test_without_groups_everybody_may_share(service: Service, headers: dict[str, str]) -> None:
    assert (await get(service, headers, "/user/settings"))["sharing_enabled"] is True


# --- forks


async def fork(service: Service, headers: dict[str, str], conversation_id: str, message_id: str) -> httpx.Response:
    path = f"/conversations/{conversation_id}/fork"
    return await service.client.post(path, json={"message_id": message_id}, headers=headers)


async def test_fork_has_the_messages_up_to_one_with_their_answers(service: Service) -> None:
    session = await service.sign_up()
    headers, account_id = bearer(session["access_token"]), session["user"]["id"]
    project = (await service.client.post("/projects", json={"name": "p"}, headers=headers)).json()
    fields = {"project_id": project["id"], "temperature": 0.5, "max_output_tokens": 9}
    conversation = await make(service, headers, title="Trains", **fields)
    await say(service, headers, conversation["id"], "hello zebra")
    sources = [{"number": 1, "kind": "web", "url": "https://example.com/", "title": "Example"}]
    last = await answered(service, account_id, conversation["id"], "hi [1]", sources=sources)
    await say(service, headers, conversation["id"], "not copied")
    service.clocks.advance(60)
    made = (await fork(service, headers, conversation["id"], last)).json()
    assert {name: made[name] for name in (*fields, "title")} == {**fields, "title": "Trains"}
    assert made["id"] != conversation["id"] and made["updated_at"] > conversation["updated_at"]
    before = (await get(service, headers, f"/conversations/{conversation['id']}/messages"))["data"]
    after = (await get(service, headers, f"/conversations/{made['id']}/messages"))["data"]
    own = {"id", "conversation_id"}
    assert [{name: one[name] for name in one.keys() - own} for one in after] == [
        {name: one[name] for name in one.keys() - own} for one in before[1:]
    ]
    assert all(one["conversation_id"] == made["id"] for one in after)
    found = (await get(service, headers, "/conversations", q="zebra"))["data"]
    assert {one["id"] for one in found} == {made["id"], conversation["id"]}
    await service.client.delete(f"/conversations/{conversation['id']}", headers=headers)
    assert (await get(service, headers, f"/conversations/{made['id']}/messages"))["data"] == after


async def test_fork_of_a_message_that_is_not_shown_is_404(service: Service, headers: dict[str, str]) -> None:
    conversation, other = await make(service, headers), await make(service, headers)
    message = await say(service, headers, other["id"], "hello")
    answer = await fork(service, headers, conversation["id"], message["id"])
    assert assert_error(answer, 404, "not_found")["param"] == "message_id"
    assert len((await get(service, headers, "/conversations"))["data"]) == 2


async def test_fork_needs_room(service: Service) -> None:
    session = await service.sign_up()
    headers, account_id = bearer(session["access_token"]), session["user"]["id"]
    conversation = await make(service, headers)
    message = await say(service, headers, conversation["id"], "x" * 1000)
    limit = await stored_bytes(service, account_id) + 1000
    await service.state["db"].write(lambda tx: tx.execute("UPDATE storage_limit SET bytes = ?", (limit,)))
    assert_error(await fork(service, headers, conversation["id"], message["id"]), 413, "quota_exceeded")
    assert len((await get(service, headers, "/conversations"))["data"]) == 1
