"""Imports of exports: what they become, what is skipped, and undo. The exports are those of tests/support/exports.py."""

import asyncio
import io
import json
import stat
import tempfile
import zipfile
from typing import Any

import pytest

from svc.builtin.imports import chatgpt, reader
from svc.builtin.imports import chats as chat_records
from tests.conftest import Service, bearer
from tests.support import exports
from tests.support.cases import each

IMPORT = "/user/import"
Headers = dict[str, str]


async def begin(service: Service, headers: Headers, body: bytes, kind: str = "application/zip") -> dict[str, Any]:
    answer = await service.client.post(IMPORT, content=body, headers={**headers, "content-type": kind})
    assert answer.status_code == 202, answer.text
    assert answer.json()["status"] == "reading"
    started: dict[str, Any] = answer.json()
    return started


async def ended(service: Service, headers: Headers, import_id: str) -> dict[str, Any]:
    while True:
        report: dict[str, Any] = (await service.client.get(f"{IMPORT}/{import_id}", headers=headers)).json()
        if report["status"] != "reading":
            return report
        await asyncio.sleep(0.01)


async def imported(service: Service, headers: Headers, export: Any) -> dict[str, Any]:
    """The report of an import: of files that are zipped, or of a value as JSON."""
    is_zip = isinstance(export, dict) and any("." in name for name in export)
    body = export if isinstance(export, bytes) else exports.zipped(export) if is_zip else json.dumps(export).encode()
    kind = "application/zip" if body[:2] == b"PK" else "application/json"
    return await ended(service, headers, (await begin(service, headers, body, kind))["id"])


async def get(service: Service, headers: Headers, path: str, **params: Any) -> Any:
    answer = await service.client.get(path, params=params, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def listed(service: Service, headers: Headers, path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await get(service, headers, path, limit=100))["data"]
    return found


async def chats(service: Service, headers: Headers) -> dict[str, dict[str, Any]]:
    return {one["title"]: one for one in await listed(service, headers, "/conversations")}


async def said(service: Service, headers: Headers, conversation_id: str) -> list[dict[str, Any]]:
    """The messages on the shown branch, oldest first."""
    return (await listed(service, headers, f"/conversations/{conversation_id}/messages"))[::-1]


async def texts(service: Service, headers: Headers, conversation_id: str) -> list[str]:
    return [message["content"] for message in await said(service, headers, conversation_id)]


def outcomes(report: dict[str, Any]) -> list[tuple[str, str]]:
    return [(entry["title"], entry["status"]) for entry in report["conversations"]]


# --- the applications


async def test_chatgpt_becomes_conversations_with_versions_files_and_times(service: Service) -> None:
    headers = await service.bearer()
    report = await imported(service, headers, exports.chatgpt())
    assert (report["status"], report["source"], report["reason"]) == ("done", "chatgpt", None)
    assert report["counts"] == {"imported": 3, "skipped": 2, "failed": 0}
    assert [entry["status"] for entry in report["conversations"]] == [
        "imported", "imported", "imported", "skipped", "skipped"
    ]  # fmt: skip
    assert report["conversations"][3] == {"title": "Archived", "status": "skipped", "reason": "Archived in the export."}
    found = await chats(service, headers)
    assert set(found) == {"Trains", "Tree", "Half ? emoji"}
    trains = found["Trains"]
    assert trains["pinned"] is True and found["Tree"]["pinned"] is False
    assert (trains["created_at"], trains["updated_at"]) == ("2023-11-14T22:13:20.500Z", "2023-11-14T22:28:20.250Z")
    shown = await said(service, headers, trains["id"])
    assert [(one["role"], one["content"], one["model"]) for one in shown] == [
        ("user", "When does the train leave?", None),
        ("assistant", "At 7:12.", "gpt-5-2"),
        ("user", "And back on Sunday?", None),
        ("assistant", "At 19:30.", "gpt-5-2"),
    ]
    assert [one["created_at"][-7:] for one in shown] == ["21.000Z", "23.000Z", "25.000Z", "30.000Z"]
    assert [len(one["versions"]) for one in shown] == [0, 2, 2, 0]
    assert shown[3]["answer"]["reasoning"] == "Sundays have few trains."
    assert [next(iter(step)) for step in shown[3]["steps"]] == ["tool_call", "tool_result"]
    assert shown[3]["steps"][1]["tool_result"] == {"id": "c", "name": "python", "ok": True, "result": "19:30"}
    await service.client.patch(
        f"/conversations/{trains['id']}", json={"current_message_id": shown[2]["versions"][0]}, headers=headers
    )
    assert (await texts(service, headers, trains["id"]))[2:] == ["And back?", "At 18."]


async def test_chatgpt_files_become_artifacts_that_the_message_shows(service: Service) -> None:
    headers = await service.bearer()
    await imported(service, headers, exports.chatgpt())
    files = {one["name"]: one for one in await listed(service, headers, "/artifacts")}
    assert {name: file["content_type"] for name, file in files.items()} == {
        "tree.png": "image/png",
        "plan.pdf": "application/pdf",
    }
    content = await service.client.get(f"/artifacts/{files['tree.png']['id']}/content", headers=headers)
    assert content.content == exports.PNG
    tree = (await chats(service, headers))["Tree"]
    text = (await texts(service, headers, tree["id"]))[0]
    assert text.startswith("What is this?\n\n[gone.txt]\n\n")
    assert f"![tree.png](/artifacts/{files['tree.png']['id']}/content)" in text
    assert f"[plan.pdf](/artifacts/{files['plan.pdf']['id']}/content)" in text


async def test_claude_becomes_a_project_with_its_documents_and_conversations(service: Service) -> None:
    headers = await service.bearer()
    report = await imported(service, headers, exports.claude())
    assert (report["source"], report["counts"]["imported"]) == ("claude", 1)
    (project,) = await listed(service, headers, "/projects")
    assert (project["name"], project["instructions"]) == ("Forest", "Name the species.")
    files = {one["name"]: one for one in await listed(service, headers, "/artifacts")}
    assert {name: file["project_id"] for name, file in files.items()} == {"species.md": project["id"], "notes.md": None}
    oaks = (await chats(service, headers))["Oaks"]
    assert oaks["project_id"] == project["id"] and oaks["created_at"] == "2026-05-01T09:59:00.000Z"
    shown = await said(service, headers, oaks["id"])
    assert [one["content"] for one in shown[1:]] == ["It is an oak.", "Thanks"]
    link = f"[notes.md](/artifacts/{files['notes.md']['id']}/content)"
    assert shown[0]["content"] == f"Read this\n\n[photo.jpg]\n\nFile: {link}\n```md\n# Oak\nold\n```"
    assert [step["tool_result"]["result"] for step in shown[1]["steps"][1:]] == ["2"]
    assert shown[1]["answer"]["reasoning"] == "An oak." and len(shown[1]["versions"]) == 2


async def test_open_webui_becomes_conversations_with_tokens_and_files(service: Service) -> None:
    headers = await service.bearer()
    report = await imported(service, headers, exports.open_webui())
    assert report["source"] == "open_webui" and outcomes(report) == [("Elm", "imported"), ("Old", "skipped")]
    elm = (await chats(service, headers))["Elm"]
    assert elm["pinned"] is True and elm["updated_at"] == "2025-10-09T08:53:29.000Z"
    shown = await said(service, headers, elm["id"])
    assert [one["content"] for one in shown[1:]] == ["A tree.", "Thanks"] and shown[1]["model"] == "qwen3"
    assert "![image.png](/artifacts/art_" in shown[0]["content"] and "```txt\nelm\noak\n```" in shown[0]["content"]
    await service.client.patch(
        f"/conversations/{elm['id']}", json={"current_message_id": shown[1]["versions"][0]}, headers=headers
    )
    other = (await said(service, headers, elm["id"]))[1]
    assert (other["content"], other["model"]) == ("An elm.", "llama3")
    details = other["answer"]
    assert (details["reasoning"], details["input_tokens"], details["output_tokens"]) == ("Let me see.", 12, 5)


@each("recursive", [False, True])
async def test_librechat_becomes_a_conversation_from_both_of_its_forms(service: Service, recursive: bool) -> None:
    headers = await service.bearer()
    report = await imported(service, headers, exports.librechat(recursive=recursive))
    assert report["source"] == "librechat" and outcomes(report) == [("Greetings", "imported")]
    shown = await said(service, headers, (await chats(service, headers))["Greetings"]["id"])
    assert [one["content"] for one in shown] == ["Hello", "Good morning", "Bye"]
    assert (shown[1]["answer"]["reasoning"], shown[1]["answer"]["output_tokens"]) == ("A greeting.", 7)
    assert len(shown[1]["versions"]) == 2 and shown[2]["created_at"] == "2026-02-01T08:01:00.000Z"


def test_steps_of_tools_can_be_sent_to_any_model() -> None:
    """A result has a call before it, arguments are a JSON object, and names are those of functions."""
    trains, _ = exports.chatgpt()["conversations-000.json"]
    messages = [
        one for kind, one in chat_records.records_of(chatgpt.chat_of(trains, lambda *_: None)) if kind == "message"
    ]
    assert [one["steps"] for one in messages if one["steps"]] == [
        [
            {"tool_call": {"id": "c", "name": "python", "arguments": '{"input": "find(7)"}'}},
            {"tool_result": {"id": "c", "name": "python", "ok": True, "result": "19:30"}},
        ]
    ]
    alone = chat_records.tool_result("x", "browser.open page", "404", ok=False)
    said = chat_records.Said("m", None, "assistant", steps=[alone, chat_records.tool_result("x", "", "")])
    assert said.as_json()["steps"] == [
        {"tool_call": {"id": "x-0", "name": "browser_open_page", "arguments": "{}"}},
        {"tool_result": {"id": "x-0", "name": "browser_open_page", "ok": False, "result": "404"}},
        {"tool_call": {"id": "x-1", "name": "tool", "arguments": "{}"}},
        {"tool_result": {"id": "x-1", "name": "tool", "ok": True, "result": ""}},
    ]


# --- again


@each("export", [exports.chatgpt(), exports.claude(), exports.open_webui(), exports.librechat()])
async def test_same_file_again_changes_nothing(service: Service, export: Any) -> None:
    headers = await service.bearer()
    first = await imported(service, headers, export)
    before = [await listed(service, headers, path) for path in ("/conversations", "/artifacts", "/projects")]
    again = await imported(service, headers, export)
    skipped = first["counts"]["imported"] + first["counts"]["skipped"]
    assert again["counts"] == {"imported": 0, "skipped": skipped, "failed": 0}
    assert [await listed(service, headers, path) for path in ("/conversations", "/artifacts", "/projects")] == before


async def test_new_messages_of_a_chat_are_added(service: Service) -> None:
    headers = await service.bearer()
    nodes = [
        exports.node("r", None, None),
        exports.node("q", "r", "user", "One", 1_700_000_001),
        exports.node("a", "q", "assistant", "1", 1_700_000_002),
    ]
    await imported(service, headers, [exports.chatgpt_chat("c", "Count", exports.mapping(*nodes), "a")])
    count = (await chats(service, headers))["Count"]
    more = [
        *nodes,
        exports.node("q2", "a", "user", "Two", 1_700_000_003),
        exports.node("a2", "q2", "assistant", "2", 1_700_000_004),
        exports.node("ab", "q", "assistant", "I", 1_700_000_005),
    ]
    report = await imported(service, headers, [exports.chatgpt_chat("c", "Count", exports.mapping(*more), "a2")])
    assert report["conversations"] == [{"title": "Count", "status": "imported", "reason": "3 new messages were added."}]
    shown = await said(service, headers, count["id"])
    assert [one["content"] for one in shown] == ["One", "1", "Two", "2"] and len(shown[1]["versions"]) == 2
    assert len(await chats(service, headers)) == 1


async def test_added_message_is_a_version_beside_what_was_said_here(service: Service) -> None:
    headers = await service.bearer()
    nodes = [
        exports.node("q", None, "user", "One", 1_700_000_001),
        exports.node("a", "q", "assistant", "1", 1_700_000_002),
    ]
    await imported(service, headers, [exports.chatgpt_chat("c", "Count", exports.mapping(*nodes), "a")])
    count = (await chats(service, headers))["Count"]
    path = f"/conversations/{count['id']}/messages"
    await service.client.post(path, json={"role": "user", "content": "Own"}, headers=headers)
    nodes.append(exports.node("q2", "a", "user", "Two", 1_700_000_003))
    await imported(service, headers, [exports.chatgpt_chat("c", "Count", exports.mapping(*nodes), "q2")])
    shown = await said(service, headers, count["id"])
    assert [one["content"] for one in shown] == ["One", "1", "Two"] and len(shown[2]["versions"]) == 2
    change = {"current_message_id": shown[2]["versions"][0]}
    await service.client.patch(f"/conversations/{count['id']}", json=change, headers=headers)
    assert (await texts(service, headers, count["id"]))[2] == "Own"


async def test_deleted_conversation_is_imported_again(service: Service) -> None:
    headers = await service.bearer()
    await imported(service, headers, exports.librechat())
    found = (await chats(service, headers))["Greetings"]
    await service.client.delete(f"/conversations/{found['id']}", headers=headers)
    assert outcomes(await imported(service, headers, exports.librechat())) == [("Greetings", "imported")]
    assert len(await texts(service, headers, (await chats(service, headers))["Greetings"]["id"])) == 3


# --- refusals and damaged files


@each("kind", ["text/plain", "", "multipart/form-data; boundary=x", "application/gzip"])
async def test_other_types_are_415(service: Service, kind: str) -> None:
    headers = {**await service.bearer(), "content-type": kind}
    answer = await service.client.post(IMPORT, content=b"{}", headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (415, "unsupported_media_type")
    assert await listed(service, headers, IMPORT) == []


async def test_file_over_the_limit_is_413(service: Service) -> None:
    headers = {**await service.bearer(), "content-type": "application/json"}
    answer = await service.client.post(IMPORT, content=b"", headers={**headers, "content-length": "200000001"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "PAYLOAD_TOO_LARGE")

    async def body() -> Any:  # without a length
        for _ in range(21):
            yield b"[".ljust(10_000_000)

    answer = await service.client.post(IMPORT, content=body(), headers=headers)
    assert answer.status_code == 413


def symlink() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        link = zipfile.ZipInfo("conversations.json")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
    return buffer.getvalue()


def encrypted() -> bytes:
    data = bytearray(exports.zipped({"conversations.json": []}))
    data[data.index(b"PK\x03\x04") + 6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


ZIP = exports.zipped(exports.claude())
DAMAGED = [
    (b"", "no export of"),
    (b"hello", "not valid JSON"),
    (b"[1, 2, {}]", "no export of"),
    (b'[{"mapping": {}', "not valid JSON"),
    (b"[", "middle of a list"),
    (b"\xff\xfe[]", "not in UTF-8"),
    (b"[" * 100_000, "nested too deeply"),
    (ZIP[:-30], "damaged or incomplete"),
    (ZIP[:200] + b"\0" * 200 + ZIP[400:], "damaged or incomplete"),
    (exports.zipped({"notes.txt": b"x"}), "no export of"),
    (symlink(), "no export of"),
    (encrypted(), "password"),
    (b"PK\x03\x04", "damaged or incomplete"),
]


@each(("body", "reason"), DAMAGED)
async def test_unreadable_file_fails_with_a_reason(service: Service, body: bytes, reason: str) -> None:
    headers = await service.bearer()
    report = await imported(service, headers, body)
    assert report["status"] == "failed" and reason in report["reason"]
    assert report["counts"] == {"imported": 0, "skipped": 0, "failed": 0}
    assert await listed(service, headers, "/conversations") == []


@pytest.mark.slow
async def test_zip_bomb_fails(service: Service) -> None:
    headers = await service.bearer()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("conversations.json", "w") as file:
        file.write(b'[{"mapping": {}, "title": "')
        for _ in range(80):
            file.write(b"x" * 2**20)
    report = await imported(service, headers, buffer.getvalue())
    assert report["status"] == "failed" and "64 million characters" in report["reason"]


@each(("is_zip", "reason"), [(True, "The files in this ZIP have over 1 GB"), (False, "over 1 GB of files and texts")])
def test_what_is_read_and_written_is_limited(is_zip: bool, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MOST_BYTES", 3_000)
    many = [{**exports.librechat(), "conversationId": f"{number}"} for number in range(5)]
    with tempfile.TemporaryFile() as file:
        file.write(exports.zipped({"conversations.json": many}) if is_zip else json.dumps(many).encode())
        file.flush()
        assert reason in reader._read(file.fileno())["reason"]


async def test_rest_of_a_broken_file_fails_and_what_came_before_stays(service: Service) -> None:
    headers = await service.bearer()
    body = json.dumps([exports.librechat()])[:-1] + ", {broken"
    report = await imported(service, headers, body.encode())
    assert (report["status"], report["counts"]["imported"]) == ("failed", 1) and "JSON" in report["reason"]
    assert len(await chats(service, headers)) == 1


WRONG = [None, 7, -1.5, True, "x", [], {}, [1], {"a": 1}, [None], "9" * 400, 1e300]


def spoilt(value: Any) -> list[Any]:
    """Copies of a value, each with one part replaced by a value of another type."""
    if isinstance(value, dict):
        return [{**value, key: other} for key in value for other in (*WRONG, *spoilt(value[key]))]
    if isinstance(value, list):
        return [
            [*value[:place], other, *value[place + 1 :]]
            for place in range(len(value))
            for other in spoilt(value[place])
        ]
    return []


@each(
    "export",
    [
        *exports.chatgpt()["conversations-000.json"][:1],
        *exports.claude()["conversations.json"],
        exports.open_webui()[0],
        exports.librechat(),
    ],
)
async def test_value_of_a_wrong_type_stops_nothing(service: Service, export: dict[str, Any]) -> None:
    headers = await service.bearer()
    for key in ("conversation_id", "uuid", "conversationId"):
        export = {**export, **({key: "kept"} if key in export else {})}
    copies = spoilt(export)[::17]
    assert len(copies) > 30
    report = await imported(service, headers, [*copies, {**exports.librechat(), "conversationId": "after"}])
    assert report["status"] == "done", report["reason"]
    assert report["conversations"][-1]["status"] == "imported"
    for entry in report["conversations"]:
        assert entry["status"] != "failed" or entry["reason"] == "This conversation is damaged and cannot be read."


async def test_circles_and_missing_parents_lose_no_message(service: Service) -> None:
    headers = await service.bearer()
    nodes = exports.mapping(
        exports.node("a", "c", "user", "A", 1_700_000_001),
        exports.node("b", "a", "assistant", "B", 1_700_000_002),
        exports.node("c", "b", "user", "C", 1_700_000_003),
        exports.node("d", "gone", "user", "D", 1_700_000_004),
        exports.node("e", "e", "user", "E", 1_700_000_005),
    )
    report = await imported(service, headers, [exports.chatgpt_chat("c", "Circle", nodes, "c")])
    assert report["counts"]["imported"] == 1
    circle = (await chats(service, headers))["Circle"]
    assert await texts(service, headers, circle["id"]) == ["A", "B", "C"]
    markdown = (await service.client.get(f"/conversations/{circle['id']}/export", headers=headers)).text
    assert all(f"\n{letter}\n" in markdown for letter in "ABCDE")


# --- limits


async def test_full_account_is_413_and_a_chat_without_room_fails(service: Service) -> None:
    session = await service.sign_up()
    headers, db = bearer(session["access_token"]), service.state["db"]
    large = exports.librechat()
    large = {**large, "conversationId": "large", "title": "Large"}
    large["messages"] = [{**large["messages"][0], "text": "x" * 100_000}]
    limit = "UPDATE storage_limit SET bytes = ?"
    await db.write(lambda tx: tx.execute(limit, (50_000,)) and None)
    report = await imported(service, headers, [large, exports.librechat()])
    assert outcomes(report) == [("Large", "failed"), ("Greetings", "imported")]
    assert "bytes of storage" in report["conversations"][0]["reason"] and report["status"] == "done"
    await db.write(lambda tx: tx.execute(limit, (1_000,)) and None)
    body = {"content": b"[]", "headers": {**headers, "content-type": "application/json"}}
    answer = await service.client.post(IMPORT, **body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "quota_exceeded")


async def test_one_import_at_a_time_and_a_key_may_import(service: Service) -> None:
    headers = await service.bearer()
    key = bearer((await service.make_key(headers))["key"])
    first = await begin(service, key, ZIP)
    answer = await service.client.post(IMPORT, content=ZIP, headers={**key, "content-type": "application/zip"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "already_active")
    assert (await ended(service, headers, first["id"]))["counts"]["imported"] == 1
    shown = await listed(service, headers, IMPORT)
    assert [one["id"] for one in shown] == [first["id"]] and "conversations" not in shown[0]


async def test_old_conversations_are_skipped_where_they_would_be_deleted(service: Service) -> None:
    headers = await service.bearer()
    object.__setattr__(service.config, "keep_conversations_days", 30)
    report = await imported(service, headers, exports.librechat())
    assert report["conversations"][0] == {
        "title": "Greetings",
        "status": "skipped",
        "reason": "Older than this server keeps conversations.",
    }
