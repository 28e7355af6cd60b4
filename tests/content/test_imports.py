"""Export, import into an empty account, and export: the same content, apart from ids and the last use."""

import io
import json
import sqlite3
import zipfile
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from svc.content import answers, conversations, history
from svc.content.answers import AnswerDetails
from tests.conftest import Service, bearer
from tests.routes.test_imports import Headers, ended, imported
from tests.support import exports
from tests.support.waiting import until

KINDS = (
    "prompts",
    "forgotten",
    "projects",
    "artifacts",
    "project_files",
    "conversations",
    "messages",
    "branches",
    "answers",
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30).filter(str.strip)
NAME = st.text(st.characters(categories=["L", "N"], include_characters=" .-'"), min_size=1, max_size=20).filter(
    str.strip
)
MESSAGE = st.tuples(
    st.sampled_from(["user", "assistant", "system"]),
    TEXT,
    st.none() | st.integers(0, 9),  # the message that it replaces
    st.sampled_from(["complete", "stopped", "interrupted", "failed"]),
    st.none() | TEXT,  # reasoning
    st.booleans(),  # whether it refers to an artifact
)
CONVERSATION = st.tuples(
    st.none() | NAME,
    st.booleans(),  # pinned
    st.booleans(),  # in a project
    st.none() | st.integers(0, 20).map(lambda tenths: tenths / 10),
    st.lists(MESSAGE, max_size=8),
    st.none() | st.integers(0, 7),  # the message whose branch is shown
    st.none() | st.tuples(TEXT, st.integers(0, 7)),  # the summary up to a message
    st.none() | st.integers(0, 7),  # the message that memory has forgotten
)
ACCOUNT = st.fixed_dictionaries(
    {
        "prompts": st.lists(st.tuples(NAME, TEXT), max_size=2),
        "projects": st.lists(st.tuples(NAME, TEXT, st.none() | st.integers(1, 20)), max_size=2),
        "artifacts": st.lists(st.tuples(NAME, st.binary(max_size=50), st.booleans(), st.booleans()), max_size=3),
        "conversations": st.lists(CONVERSATION, max_size=3),
        "settings": st.fixed_dictionaries(
            {
                "instructions": st.none() | TEXT,
                "memory_enabled": st.booleans(),
                "default_model": st.sampled_from([None, "builtin/assistant"]),
                "monthly_limit_micros": st.none() | st.integers(0, 10**9),
            }
        ),
    }
)


async def fill(service: Service, headers: Headers, account_id: str, content: dict[str, Any]) -> None:
    async def post(path: str, body: Any) -> str:
        service.clocks.advance(0.25)
        answer = await service.client.post(path, json=body, headers=headers)
        assert answer.status_code == 201, answer.text
        made: str = answer.json()["id"]
        return made

    await service.client.patch("/user/settings", json=content["settings"], headers=headers)
    made = [
        await post("/projects", {"name": name, "instructions": text, "max_planner_steps": steps})
        for name, text, steps in content["projects"]
    ]
    project_id = made[0] if made else None
    files = []
    for name, data, filed, read in content["artifacts"]:
        files.append(
            await post("/artifacts", {"name": name, "content": "", "project_id": project_id if filed else None})
        )
        await service.client.put(f"/artifacts/{files[-1]}/content", content=data, headers=headers)
        if project_id and read:
            body = {"artifact_id": files[-1]}
            added = await service.client.post(f"/projects/{project_id}/files", json=body, headers=headers)
            assert added.status_code == 201
    for number, (name, text) in enumerate(content["prompts"]):
        await post("/prompts", {"name": f"{number} {name}", "text": f"Say {text}"})
    for title, pinned, filed, temperature, messages, shown, summary, forgotten in content["conversations"]:
        fields = {"title": title, "pinned": pinned, "temperature": temperature}
        conversation = await post("/conversations", {**fields, "project_id": project_id if filed else None})
        ids: list[str] = []
        for message in messages:
            service.clocks.advance(1.5)
            write = (account_id, conversation, message, ids, files[0] if files else None, service.clocks.now)
            ids.append(await service.state["db"].write(add, *write))
        if ids and shown is not None:
            body = {"current_message_id": ids[shown % len(ids)]}
            await service.client.patch(f"/conversations/{conversation}", json=body, headers=headers)
        if ids and summary is not None:
            write = (account_id, conversation, summary[0].strip(), ids[summary[1] % len(ids)])
            await service.state["db"].write(conversations.set_summary, *write)
        if ids and forgotten is not None:
            service.clocks.advance(0.25)
            path = f"/user/memory/{ids[forgotten % len(ids)]}"
            assert (await service.client.delete(path, headers=headers)).status_code == 204


def add(
    tx: sqlite3.Connection, account: str, conversation: str, message: Any, ids: list[str], file: str | None, now: float
) -> str:
    role, text, replaced, status, reasoning, refers = message
    is_answer = role == "assistant"
    status = status if is_answer else "complete"
    if refers and file:
        text += f"\n\n![picture](/artifacts/{file}/content)"
    made = history.add_message(
        tx,
        account,
        role=role,
        content=text,
        now_seconds=now,
        conversation_id=conversation,
        model="builtin/assistant" if is_answer else None,
        replaces=ids[replaced % len(ids)] if replaced is not None and ids else None,
        status=status,
        error='{"message":"broken"}' if status == "failed" else None,
    )
    if is_answer and reasoning is not None:
        answers.add(tx, account, made.id, [])
        call = {"tool_call": {"id": "c", "name": "search_web", "arguments": '{"query": "oak"}', "within": "b"}}
        result = {"tool_result": {"id": "c", "name": "search_web", "ok": False, "result": {"found": [reasoning]}}}
        source = {"number": 1, "kind": "web", "url": "https://example.com/", "title": None}
        tools = {"steps": json.dumps([call, result]), "sources": json.dumps([source])}
        details = AnswerDetails(9, 8, 7, 6, "stop", reasoning, 5, 4, **tools)
        answers.update(tx, account, made.id, details._replace(first_sent_message_id=ids[-1] if ids else None))
    return made.id


async def exported(service: Service, headers: Headers) -> bytes:
    reading = "SELECT count(*) FROM project_files WHERE status = 'reading'"
    await until(lambda: not service.state["db"].look_up(lambda conn: conn.execute(reading).fetchone()[0]))
    answer = await service.client.get("/user/export", headers=headers)
    assert answer.status_code == 200
    return answer.content


def content_of(archive: bytes) -> dict[str, Any]:
    """What an archive holds, with the place of each object in place of its id, and without the last use."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        rows = {kind: [json.loads(line) for line in opened.read(f"{kind}.jsonl").splitlines()] for kind in KINDS}
        account = json.loads(opened.read("account.json"))
        for artifact in rows["artifacts"]:
            artifact["content"] = opened.read(artifact.pop("file")).hex()
    chats = [row["id"] for row in rows["conversations"]]
    rows["messages"].sort(key=lambda row: chats.index(row["conversation_id"]))  # stable: by number
    text = json.dumps({kind: [{**row, "updated_at": None} for row in rows[kind]] for kind in KINDS})
    for kind in KINDS:
        for number, row in enumerate(rows[kind]):
            if "id" in row:
                text = text.replace(row["id"], f"{kind}-{number}")
    rows = json.loads(text)
    for kind in ("answers", "forgotten"):
        rows[kind].sort(key=lambda row: row["message_id"])
    names = ("instructions", "memory_enabled", "default_model", "monthly_limit_micros")
    return {**rows, "settings": {name: account[name] for name in names}}


@pytest.mark.slow
@given(content=ACCOUNT)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
async def test_round_trip_keeps_everything(service: Service, content: dict[str, Any]) -> None:
    session, other = await service.sign_up(), await service.sign_up()
    one, two = bearer(session["access_token"]), bearer(other["access_token"])
    await fill(service, one, session["user"]["id"], content)
    first = await exported(service, one)
    service.clocks.advance(60)
    report = await imported(service, two, first)
    assert (report["status"], report["source"], report["reason"]) == ("done", "svc", None)
    assert report["counts"] == {"imported": len(content["conversations"]), "skipped": 0, "failed": 0}
    assert content_of(await exported(service, two)) == content_of(first)


async def filled(service: Service) -> tuple[Headers, bytes]:
    session = await service.sign_up()
    headers = bearer(session["access_token"])
    message = ("user", "Hello", None, "complete", None, True)
    content = {
        "settings": {"instructions": "Be brief.", "memory_enabled": False},
        "prompts": [("Shorten", "it in few {{words}}.")],
        "projects": [("Thesis", "Cite.", 7)],
        "artifacts": [("a.txt", b"abc", True, True), ("b.txt", b"b", True, False), ("c.txt", b"", True, True)],
        "conversations": [
            ("One", True, True, 0.5, [message, message, message], 0, ("They greeted.", 1), 2),
            (None, False, False, None, [], None, None, None),
        ],
    }
    await fill(service, headers, session["user"]["id"], content)
    return headers, await exported(service, headers)


async def test_own_export_changes_nothing_in_its_own_account_and_restores_what_was_deleted(service: Service) -> None:
    headers, archive = await filled(service)
    report = await imported(service, headers, archive)
    assert report["counts"] == {"imported": 0, "skipped": 2, "failed": 0}
    before = content_of(archive)
    assert content_of(await exported(service, headers)) == before
    for kind in ("conversations", "artifacts"):
        listed = (await service.client.get(f"/{kind}", headers=headers)).json()["data"]
        assert (await service.client.delete(f"/{kind}/{listed[-1]['id']}", headers=headers)).status_code == 204
    report = await imported(service, headers, archive)
    after = content_of(await exported(service, headers))
    assert report["counts"] == {"imported": 1, "skipped": 1, "failed": 0}
    assert {kind: len(after[kind]) for kind in KINDS} == {kind: len(before[kind]) for kind in KINDS}


async def test_settings_replace_those_of_an_unused_account_only_and_undo_restores_them(service: Service) -> None:
    _, archive = await filled(service)
    session = await service.sign_up()
    headers = bearer(session["access_token"])
    shown = ("instructions", "memory_enabled")
    before = (await service.client.get("/user/settings", headers=headers)).json()
    report = await imported(service, headers, archive)
    changed = (await service.client.get("/user/settings", headers=headers)).json()
    assert [changed[name] for name in shown] == ["Be brief.", False]
    assert (await service.client.delete(f"/user/import/{report['id']}", headers=headers)).status_code == 204
    assert (await service.client.get("/user/settings", headers=headers)).json() == before
    await service.client.post("/conversations", json={}, headers=headers)
    assert (await imported(service, headers, archive))["counts"]["imported"] == 2
    assert (await service.client.get("/user/settings", headers=headers)).json() == before


async def test_export_of_release_1_1_is_imported(service: Service) -> None:
    """Its branches do not say which one is shown."""
    _, archive = await filled(service)
    older = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as opened, zipfile.ZipFile(older, "w") as written:
        for name in opened.namelist():
            if name not in ("imports.jsonl", "import_entries.jsonl"):
                written.writestr(
                    name, opened.read(name).replace(b',"current":true', b"").replace(b',"current":false', b"")
                )
    headers = await service.bearer()
    assert (await imported(service, headers, older.getvalue()))["counts"]["imported"] == 2


async def test_export_with_a_deep_value_fails_with_a_reason(service: Service) -> None:
    _, archive = await filled(service)
    deep = b'"status":"failed","error":' + b'{"a":' * 400 + b"1" + b"}" * 400
    hostile = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as opened, zipfile.ZipFile(hostile, "w") as written:
        for name in opened.namelist():
            written.writestr(name, opened.read(name).replace(b'"status":"complete","error":null', deep))
    report = await imported(service, await service.bearer(), hostile.getvalue())
    assert (report["status"], report["reason"]) == ("failed", "This file is nested too deeply.")


async def test_old_reports_are_deleted_and_what_was_imported_stays(service: Service) -> None:
    from svc.deletion.slices import delete_old

    headers = bearer((await service.make_key(await service.bearer()))["key"])
    report = await imported(service, headers, exports.librechat())
    service.clocks.advance(31 * 24 * 3600)
    await delete_old(service.state["db"], service.config)
    assert (await service.client.get(f"/user/import/{report['id']}", headers=headers)).status_code == 404
    again = await imported(service, headers, exports.librechat())
    assert Counter(entry["status"] for entry in again["conversations"]) == {"skipped": 1}
    assert (await ended(service, headers, again["id"]))["counts"]["skipped"] == 1
