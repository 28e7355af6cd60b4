"""The archive of all that an account has: whole, without secrets, readable by common tools, in bounded memory."""

import io
import json
import shutil
import sqlite3
import subprocess
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import httpx
import pytest

from svc.auth import tokens
from svc.billing import wallet
from svc.content import artifact_contents
from svc.routes.export import KINDS
from tests.conftest import Service, bearer
from tests.support.wire import listening

EXPORT = "/user/export"


async def archive_of(service: Service, headers: dict[str, str]) -> zipfile.ZipFile:
    answer = await service.client.get(EXPORT, headers=headers)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/zip" and answer.headers["cache-control"] == "no-store"
    assert answer.headers["content-disposition"] == 'attachment; filename="export-2026-09-21.zip"'
    archive = zipfile.ZipFile(io.BytesIO(answer.content))
    assert archive.testzip() is None
    return archive


def lines(archive: zipfile.ZipFile, kind: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in archive.read(f"{kind}.jsonl").splitlines()]


async def fill(service: Service, headers: dict[str, str], account_id: str) -> dict[str, Any]:
    """Something of every kind; what the API shows of it."""

    async def post(path: str, body: Any, status: int = 201) -> Any:
        answer = await service.client.post(path, json=body, headers=headers)
        assert answer.status_code == status, answer.text
        return answer.json()

    await service.state["db"].write(
        wallet.book, account_id, 6_000_000, description="Funds", now_seconds=service.clocks.now
    )
    project = await post("/projects", {"name": "p", "instructions": "Be brief."})
    await post("/prompts", {"name": "p", "text": "Be brief."})
    key = await post("/user/api-keys", {"name": "my laptop"})
    provider = {"name": "lab", "base_url": "http://127.0.0.1:9/v1", "api_key": "sk-very-secret-key"}
    await post("/user/providers", provider)
    await post("/user/tool-servers", {"name": "lab", "url": "http://127.0.0.1:9/mcp", "api_key": "sk-very-secret-key"})
    conversation = await post("/conversations", {"title": "t", "project_id": project["id"]})
    await post(f"/conversations/{conversation['id']}/messages", {"role": "user", "content": "line\n\u2028 🙂"})
    await post(
        "/v1/chat/completions",
        {"model": "builtin/assistant-paid", "messages": [{"role": "user", "content": "2 + 2"}]},
        200,
    )
    body = {"goal": 'tool write_artifact {"name": "n.txt", "content": "made"}\n---\nsay ok', "model": "builtin/script"}
    assert (await service.client.post("/v1/agents/run", json=body, headers=headers)).status_code == 200
    await post("/artifacts", {"name": "../../etc/pass wd\u202e.txt", "content": "Grüße", "project_id": project["id"]})
    empty = await post("/artifacts", {"name": "empty..", "content": ""})
    await post(f"/projects/{project['id']}/files", {"artifact_id": empty["id"]})
    await post(f"/conversations/{conversation['id']}/shares", {})
    await post("/support/conversations", {"subject": "s", "message": "help"})
    return {"key": key, "project": project, "conversation": conversation}


async def test_export_has_all_data_of_the_account_only(service: Service) -> None:
    session, other = await service.sign_up("ada@example.com"), await service.sign_up("bob@example.com")
    headers = bearer(session["access_token"])
    await service.client.patch("/user/settings", json={"instructions": "Be brief."}, headers=headers)
    made = await fill(service, headers, session["user"]["id"])
    await fill(service, bearer(other["access_token"]), other["user"]["id"])
    archive = await archive_of(service, headers)
    account = json.loads(archive.read("account.json"))
    assert account["email"] == "ada@example.com" and account["tier"] == "pro" and account["memory_enabled"] is True
    assert account["instructions"] == "Be brief." and (account["admin"], account["status"]) == (True, "active")
    counts = {kind: len(lines(archive, kind)) for kind in (*KINDS, "artifacts")}
    assert counts == {
        **dict.fromkeys(
            (
                "api_keys",
                "providers",
                "tool_servers",
                "projects",
                "prompts",
                "runs",
                "support_conversations",
                "support_messages",
                "shares",
            ),
            1,
        ),
        **dict.fromkeys(("conversations", "ledger", "usage"), 2),
        "messages": 5,
        "answers": 1,
        "sign_ins": 1,
        "artifacts": 3,
        "identities": 0,
        "checkouts": 0,
        "branches": 0,
        "forgotten": 0,
        "share_pictures": 0,
        "imports": 0,
        "project_files": 1,
        "import_entries": 0,
    }
    assert lines(archive, "projects") == [made["project"]]
    shown = (await service.client.get("/conversations", headers=headers)).json()["data"]
    assert sorted(lines(archive, "conversations"), key=str) == sorted(shown, key=str)
    messages = lines(archive, "messages")
    assert messages[0]["content"] == "line\n\u2028 🙂" and messages[0]["conversation_id"] == made["conversation"]["id"]
    assert [message["role"] for message in messages] == ["user", "user", "assistant", "user", "assistant"]
    assert messages[3]["run_id"] == lines(archive, "runs")[0]["id"]
    ledger = (await service.client.get("/billing/ledger", headers=headers)).json()["data"]
    assert lines(archive, "ledger") == ledger[::-1]
    for artifact in lines(archive, "artifacts"):
        content = await service.client.get(f"/artifacts/{artifact['id']}/content", headers=headers)
        assert archive.read(artifact["file"]) == content.content
    everything = b"".join(archive.read(name) for name in archive.namelist())
    assert b"bob@example.com" not in everything and other["user"]["id"].encode() not in everything
    for secret in (
        made["key"]["key"][10:],
        "sk-very-secret-key",
        tokens.token_hash(made["key"]["key"]).hex(),
        "argon2",
    ):
        assert secret.encode() not in everything


async def test_session_and_key_can_export(service: Service) -> None:
    headers = await service.bearer()
    key = bearer((await service.make_key(headers))["key"])
    assert "account.json" in (await archive_of(service, key)).namelist()
    assert (await service.client.get(EXPORT)).status_code == 401
    head = await service.client.head(EXPORT, headers=headers)
    assert head.status_code == 200 and head.headers["content-type"] == "application/zip" and head.content == b""


async def test_unzip_extracts_into_one_folder(service: Service, tmp_path: Path) -> None:
    session = await service.sign_up()
    headers = bearer(session["access_token"])
    await fill(service, headers, session["user"]["id"])
    (tmp_path / "export.zip").write_bytes((await service.client.get(EXPORT, headers=headers)).content)
    tool = shutil.which("unzip")
    command = [tool, "-q"] if tool else ["python3", "-m", "zipfile", "-e"]
    place = ["-d", str(tmp_path / "out")] if tool else [str(tmp_path / "out")]
    subprocess.run([*command, str(tmp_path / "export.zip"), *place], check=True)
    files = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*") if path.is_file()}
    named = [json.loads(line)["file"] for line in (tmp_path / "out" / "artifacts.jsonl").read_text().splitlines()]
    assert len(named) == 3 and set(named) < files and all(name.count("/") == 1 and ".." not in name for name in named)
    assert not (tmp_path / "etc").exists()


async def test_many_and_large_rows_are_exported_in_order(service: Service) -> None:
    headers = await service.bearer()
    made = (await service.client.post("/conversations", json={}, headers=headers)).json()
    contents = [f"{number} " + "x" * (900_000 if number % 7 == 0 else 10) for number in range(30)]
    for content in contents:
        body = {"role": "user", "content": content}
        await service.client.post(f"/conversations/{made['id']}/messages", json=body, headers=headers)
    archive = await archive_of(service, headers)
    assert [message["content"] for message in lines(archive, "messages")] == contents


async def test_content_replaced_during_export_is_read_again(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    headers = await service.bearer()
    content = "old" * artifact_contents.CHUNK_BYTES
    for name in ("one", "two"):
        await service.client.post("/artifacts", json={"name": name, "content": content}, headers=headers)
    listed = (await service.client.get("/artifacts", headers=headers)).json()["data"]
    read, db = artifact_contents.content_chunk, service.state["db"]
    replaced = []

    def content_chunk(conn: sqlite3.Connection, *arguments: Any) -> bytes:
        if len(replaced) < 2 and arguments[-1] == 1:  # as if it had happened between two chunks
            replaced.append(arguments[1])
            raise artifact_contents.ContentReplaced
        return read(conn, *arguments)

    monkeypatch.setattr(artifact_contents, "content_chunk", content_chunk)
    archive = await archive_of(service, headers)
    assert len(listed) == 2 and replaced[0] == replaced[1]
    assert [archive.read(artifact["file"]) for artifact in lines(archive, "artifacts")] == [content.encode()] * 2
    assert await db.read(lambda conn: conn.execute("SELECT count(*) FROM artifacts").fetchone()[0]) == 2


async def test_export_is_streamed_in_bounded_memory(service: Service) -> None:
    headers = await service.bearer()
    for number in range(2):
        made = await service.client.post("/artifacts", json={"name": "a", "content": ""}, headers=headers)
        content = bytes([number]) * 6_000_000
        await service.client.put(f"/artifacts/{made.json()['id']}/content", content=content, headers=headers)
    for _ in range(60):  # no messages: the writer would index their words at the same time
        body = {"name": "p", "instructions": "x" * 100_000}
        assert (await service.client.post("/projects", json=body, headers=headers)).status_code == 201
    async with (
        listening(service.app) as (host, port),
        httpx.AsyncClient(base_url=f"http://{host}:{port}", trust_env=False, headers=headers) as client,
    ):
        tracemalloc.start()
        async with client.stream("GET", EXPORT) as answer:
            assert answer.status_code == 200 and "content-length" not in answer.headers
            size, most_bytes = 0, {"projects": 0, "artifacts": 0}
            async for chunk in answer.aiter_raw():
                part = "projects" if size < 6_000_000 else "artifacts"
                most_bytes[part] = max(most_bytes[part], tracemalloc.get_traced_memory()[1])
                tracemalloc.reset_peak()
                size += len(chunk)
        tracemalloc.stop()
        assert size > 18_000_000
        # orjson reserves 8 bytes for each one of a text.
        assert most_bytes["projects"] < 20_000_000 and most_bytes["artifacts"] < 4_000_000
        async with client.stream("GET", EXPORT) as answer:  # a disconnect does no harm
            await anext(answer.aiter_raw())
        assert (await client.get("/user/me")).status_code == 200
    assert "error" not in (service.config.data_dir.parent / "log").read_text()


async def test_file_names_keep_letters_and_lose_unsafe_characters(service: Service) -> None:
    headers = await service.bearer()
    names = {
        "Отчёт за май.txt": "Отчёт за май.txt",
        "報告.md": "報告.md",
        "gpj\u202e.exe": "gpj_.exe",
        "..": "_",
        ".": "",
        "é" * 200: "é" * 75,
    }
    for name in names:
        await service.client.post("/artifacts", json={"name": name, "content": "x"}, headers=headers)
    told = lines(await archive_of(service, headers), "artifacts")
    assert {line["name"]: line["file"].split("/")[1].partition("-")[2] for line in told} == names


async def test_empty_account_has_an_archive(service: Service) -> None:
    archive = await archive_of(service, await service.bearer())
    assert set(archive.namelist()) == {"account.json", *(f"{kind}.jsonl" for kind in (*KINDS, "artifacts"))}
