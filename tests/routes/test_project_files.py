"""The files of projects: adding, reading, their use in runs and chats, and their end."""

import asyncio
import base64
from pathlib import Path
from typing import Any

import orjson

from svc import quota
from svc.content import project_files
from tests.conftest import Service
from tests.support.cases import each
from tests.support.waiting import until

TRAIN = "# Trains\n\nThe night train to Vienna leaves at 22:40 from platform nine every day.\n\n# Boats\n\nNone."


async def artifact(service: Service, headers: dict[str, str], content: bytes, name: str = "a.md", **more: Any) -> str:
    body = {"name": name, "content_base64": base64.b64encode(content).decode(), **more}
    made = await service.client.post("/artifacts", json=body, headers=headers)
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


async def project_of(service: Service, headers: dict[str, str]) -> str:
    made = await service.client.post("/projects", json={"name": "plans"}, headers=headers)
    return str(made.json()["id"])


async def listed(service: Service, headers: dict[str, str], project_id: str) -> list[dict[str, Any]]:
    answer = await service.client.get(f"/projects/{project_id}/files", headers=headers)
    assert answer.status_code == 200 and answer.json()["has_more"] is False
    return list(answer.json()["data"])


async def add(service: Service, headers: dict[str, str], project_id: str, artifact_id: str) -> dict[str, Any]:
    """Add a file, wait until it is read, and return it."""
    answer = await service.client.post(
        f"/projects/{project_id}/files", json={"artifact_id": artifact_id}, headers=headers
    )
    assert answer.status_code == 201 and answer.json()["status"] == "reading", answer.text
    return await read(service, headers, project_id, artifact_id)


async def read(service: Service, headers: dict[str, str], project_id: str, artifact_id: str) -> dict[str, Any]:
    async with asyncio.timeout(30):
        while True:
            files = await listed(service, headers, project_id)
            (found,) = (file for file in files if file["artifact_id"] == artifact_id)
            if found["status"] != "reading":
                return found
            await asyncio.sleep(0.01)


async def has_text(service: Service, text_bytes: int) -> None:
    """Store that the file of the service has so much text: to read it takes many seconds."""
    statement = "UPDATE project_files SET text_bytes = ?"
    await service.state["db"].write(lambda tx: tx.execute(statement, (text_bytes,)) and None)


async def events_of(service: Service, headers: dict[str, str], body: dict[str, Any]) -> list[dict[str, Any]]:
    answer = await service.client.post("/v1/agents/run", json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    return [orjson.loads(line[6:]) for line in answer.text.split("\n") if line.startswith("data: ")]


async def test_added_file_is_read_and_adding_it_again_returns_it(service: Service) -> None:
    headers = await service.bearer()
    project_id, artifact_id = await project_of(service, headers), await artifact(service, headers, TRAIN.encode())
    file = await add(service, headers, project_id, artifact_id)
    assert (file["status"], file["error"], file["name"]) == ("ready", None, "a.md")
    assert file["text_bytes"] == len(TRAIN.encode())
    path = f"/projects/{project_id}/files"
    again = await service.client.post(path, json={"artifact_id": artifact_id}, headers=headers)
    assert (again.status_code, again.json()) == (200, file)
    removed = await service.client.delete(f"{path}/{artifact_id}", headers=headers)
    assert removed.status_code == 204 and await listed(service, headers, project_id) == []
    assert (await service.client.delete(f"{path}/{artifact_id}", headers=headers)).status_code == 404
    assert (await service.client.get(f"/artifacts/{artifact_id}", headers=headers)).status_code == 200


@each("content", [b"", b" \n ", b"\x89PNG\r\n\x1a\n" + bytes(range(32)) * 30, b"PK\x03\x04broken", b"%PDF-1.7 broken"])
async def test_file_without_a_text_fails_with_a_reason(service: Service, content: bytes) -> None:
    headers = await service.bearer()
    project_id = await project_of(service, headers)
    file = await add(service, headers, project_id, await artifact(service, headers, content))
    assert file["status"] == "failed" and file["text_bytes"] == 0
    assert file["error"]["code"] in ("no_text", "unsupported_media_type") and file["error"]["message"]


async def test_replaced_file_is_read_again(service: Service) -> None:
    headers = await service.bearer()
    project_id, artifact_id = await project_of(service, headers), await artifact(service, headers, b"\0\1\2" * 99)
    assert (await add(service, headers, project_id, artifact_id))["status"] == "failed"
    path = f"/artifacts/{artifact_id}/content"
    replaced = await service.client.put(path, content=TRAIN.encode(), headers={**headers, "content-type": "text/plain"})
    assert replaced.status_code == 200
    assert (await read(service, headers, project_id, artifact_id))["status"] == "ready"


async def test_removed_text_leaves_nothing_and_its_storage_is_free(service: Service) -> None:
    signed_up = await service.sign_up()
    account, headers = signed_up["user"]["id"], {"authorization": f"Bearer {signed_up['access_token']}"}
    project_id = await project_of(service, headers)
    artifact_id = await artifact(service, headers, TRAIN.encode() * 200)
    db = service.state["db"]
    before = (await db.read(quota.stored, account)).stored_bytes
    await add(service, headers, project_id, artifact_id)
    after = (await db.read(quota.stored, account)).stored_bytes
    assert after == before + 256 + len(TRAIN.encode()) * 200
    await service.client.delete(f"/artifacts/{artifact_id}", headers=headers)
    db = service.state["db"]

    count = "SELECT (SELECT count(*) FROM file_passages) + (SELECT count(*) FROM file_texts)"
    await until(lambda: not db.look_up(lambda conn: conn.execute(count).fetchone()[0]))
    assert await listed(service, headers, project_id) == []


async def test_project_has_at_most_200_files(service: Service) -> None:
    headers = await service.bearer()
    project_id = await project_of(service, headers)
    for number in range(project_files.MOST_FILES):
        artifact_id = await artifact(service, headers, b"x%d" % number)
        made = await service.client.post(
            f"/projects/{project_id}/files", json={"artifact_id": artifact_id}, headers=headers
        )
        assert made.status_code == 201
    body = {"artifact_id": await artifact(service, headers, b"x")}
    refused = await service.client.post(f"/projects/{project_id}/files", json=body, headers=headers)
    assert refused.status_code == 413 and refused.json()["error"]["code"] == "PAYLOAD_TOO_LARGE"


async def test_run_finds_and_reads_files_of_its_project(service: Service) -> None:
    headers = await service.bearer()
    project_id = await project_of(service, headers)
    artifact_id = await artifact(service, headers, TRAIN.encode())
    await add(service, headers, project_id, artifact_id)
    goal = 'tool find_in_files {"query": "When do trains to Vienna leave?"}\n---\n'
    goal += 'tool read_file {"file": "a.md", "from": 3, "lines": 1}\n---\nsay done'
    body = {"goal": goal, "model": "builtin/script", "project_id": project_id}
    run = await events_of(service, headers, body)
    found, lines = [event for event in run if event["type"] == "tool_result"]
    assert found["ok"], found
    assert found["result"][0]["file"] == artifact_id and "22:40" in found["result"][0]["text"]
    assert found["result"][0] | {"text": ""} == {
        "number": 1, "file": artifact_id, "name": "a.md", "page": None, "from_line": 1, "to_line": 4, "text": ""
    }  # fmt: skip
    assert lines["ok"] and lines["result"]["text"] == TRAIN.split("\n")[2]
    without = await events_of(service, headers, {**body, "project_id": None})
    assert "find_in_files" not in without[0]["tools"]


async def test_chat_of_a_project_has_the_tools_and_its_quotations_are_checked(service: Service) -> None:
    headers = await service.bearer()
    project_id = await project_of(service, headers)
    artifact_id = await artifact(service, headers, TRAIN.encode())
    await add(service, headers, project_id, artifact_id)
    made = await service.client.post("/conversations", json={"project_id": project_id}, headers=headers)
    right = "the night train to vienna  leaves at 22:40 from platform nine"
    wrong = "the night train to Vienna leaves at 23:40 from platform nine"
    said = f'It says \u201c{right}\u201d [1]. Or "{wrong}" [1]. Every day [1].'
    goal = f'tool find_in_files {{"query": "trains to Vienna"}}\n---\nsay {said}'
    chat = {"model": "builtin/script", "messages": [{"role": "user", "content": goal}]}
    in_chat = {**headers, "x-service-conversation": made.json()["id"]}
    answer = await service.client.post("/v1/chat/completions", json=chat, headers=in_chat)
    assert answer.status_code == 200, answer.text
    path = f"/conversations/{made.json()['id']}/messages"
    message = (await service.client.get(path, headers=headers)).json()["data"][0]
    assert message["content"] == said
    (source,) = message["sources"]
    assert (source["kind"], source["file"], source["name"], source["from_line"]) == ("file", artifact_id, "a.md", 1)
    assert message["citations"] == [
        {"number": 1, "quotation": right, "verified": True},
        {"number": 1, "quotation": wrong, "verified": False},
        {"number": 1, "quotation": None, "verified": None},
    ]
    run = await events_of(service, headers, {"goal": goal, "model": "builtin/script", "project_id": project_id})
    record = (await service.client.get(f"/v1/agents/runs/{run[0]['run_id']}", headers=headers)).json()
    assert {name: record[name] for name in ("sources", "citations")} == {
        name: message[name] for name in ("sources", "citations")
    }
    elsewhere = await service.client.post("/v1/chat/completions", json=chat, headers=headers)
    assert elsewhere.status_code == 200 and "service" not in elsewhere.json()


async def test_passages_of_a_file_surround_a_line_and_are_its_whole_text(service: Service) -> None:
    headers, other = await service.bearer(), await service.bearer()
    text = "\n".join(f"Line {number} of a long report. " + "word " * 150 for number in range(1, 101))
    artifact_id = await artifact(service, headers, text.encode())
    path = f"/artifacts/{artifact_id}/passages"
    unread = await service.client.get(path, headers=headers)
    assert (unread.status_code, unread.json()["error"]["code"]) == (404, "not_found")
    await add(service, headers, await project_of(service, headers), artifact_id)
    near = (await service.client.get(f"{path}?line=60", headers=headers)).json()
    assert (near["offset"], near["total"], len(near["data"])) == (39, 100, 40)
    assert near["data"][20] == {"page": None, "from_line": 60, "to_line": 60, "text": text.split("\n")[59]}
    assert (await service.client.get(path, headers=headers)).json()["offset"] == 0
    parts: list[str] = []
    for offset in (0, 40, 80):
        part = (await service.client.get(f"{path}?offset={offset}&line=7", headers=headers)).json()
        assert part["offset"] == offset
        parts += [passage["text"] for passage in part["data"]]
    assert "\n".join(parts) == text
    after = (await service.client.get(f"{path}?offset=100", headers=headers)).json()
    assert after == {"data": [], "offset": 100, "total": 100}
    for wrong in ("line=0", "line=x", "line=", "offset=-1", "offset=1.5", "line=999999999"):
        refused = await service.client.get(f"{path}?{wrong}", headers=headers)
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "invalid_value"), wrong
    assert (await service.client.get(path, headers=other)).status_code == 404


async def test_passages_of_a_long_line_surround_the_one_that_begins_so(service: Service) -> None:
    headers = await service.bearer()
    line = " ".join(f"word {number}" for number in range(12_000))
    artifact_id = await artifact(service, headers, f"First.\n{line}\nLast.".encode())
    await add(service, headers, await project_of(service, headers), artifact_id)
    path = f"/artifacts/{artifact_id}/passages"
    everything = [
        one for at in (0, 40, 80, 120)
        for one in (await service.client.get(f"{path}?offset={at}", headers=headers)).json()["data"]
    ]  # fmt: skip
    for place in (1, 70, len(everything) - 2):
        asked = {"line": 2, "begin": everything[place]["text"][:100]}
        near = (await service.client.get(path, params=asked, headers=headers)).json()
        assert near["offset"] == max(0, place - 20) and near["data"][place - near["offset"]] == everything[place]
    for asked in ({"line": 2, "begin": "other"}, {"line": 1, "begin": everything[70]["text"][:100]}, {"line": 2}):
        assert (await service.client.get(path, params=asked, headers=headers)).json()["offset"] == 0
    refused = await service.client.get(path, params={"begin": "x" * 201}, headers=headers)
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "begin")


async def test_files_of_office_programs_and_pdfs_are_found_with_their_pages(service: Service) -> None:
    headers = await service.bearer()
    project_id = await project_of(service, headers)
    folder = Path(__file__).parent.parent / "builtin" / "files"
    pages = {"reportlab.pdf": 1, "powerpoint-mac.pptx": 2, "word-2007.docx": None, "libreoffice.ods": None}
    for name in pages:
        file = await add(
            service, headers, project_id, await artifact(service, headers, (folder / name).read_bytes(), name)
        )
        assert file["status"] == "ready", file
    protected = await artifact(service, headers, (folder / "protected.docx").read_bytes(), "protected.docx")
    assert "password" in (await add(service, headers, project_id, protected))["error"]["message"]
    queries = {
        "reportlab.pdf": "Vienna",
        "powerpoint-mac.pptx": "table cell",
        "word-2007.docx": "snoska",
        "libreoffice.ods": "annotation",
    }
    for name, query in queries.items():
        goal = f'tool find_in_files {{"query": "{query}"}}\n---\nsay done'
        run = await events_of(service, headers, {"goal": goal, "model": "builtin/script", "project_id": project_id})
        (found,) = [event["result"] for event in run if event["type"] == "tool_result"]
        assert (found[0]["name"], found[0]["page"]) == (name, pages[name]), found


async def test_file_for_a_project_that_has_all_the_text_is_refused(service: Service) -> None:
    headers = await service.bearer()
    project_id = await project_of(service, headers)
    await add(service, headers, project_id, await artifact(service, headers, b"x" * 100))
    await has_text(service, project_files.MOST_TEXT_BYTES)
    body = {"artifact_id": await artifact(service, headers, b"y")}
    refused = await service.client.post(f"/projects/{project_id}/files", json=body, headers=headers)
    assert (refused.status_code, refused.json()["error"]["code"]) == (413, "PAYLOAD_TOO_LARGE")
    assert len(await listed(service, headers, project_id)) == 1


async def test_files_of_another_account_are_not_found(service: Service) -> None:
    headers, other = await service.bearer(), await service.bearer()
    project_id, artifact_id = await project_of(service, headers), await artifact(service, headers, TRAIN.encode())
    await add(service, headers, project_id, artifact_id)
    path = f"/projects/{project_id}/files"
    body = {"artifact_id": artifact_id}
    for answer in (
        await service.client.get(path, headers=other),
        await service.client.post(path, json=body, headers=other),
        await service.client.delete(f"{path}/{artifact_id}", headers=other),
        await service.client.post(f"/projects/{await project_of(service, other)}/files", json=body, headers=other),
    ):
        assert answer.status_code == 404
