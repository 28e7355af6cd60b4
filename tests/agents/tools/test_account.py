"""What a model may read and write of the account."""

from svc.agents.tools.offered import TOOLS
from svc.agents.tools.registry import ToolContext
from svc.auth import accounts
from svc.content import artifacts, history, projects
from svc.content.artifact_contents import CONTENT_BYTES
from svc.db import Database
from svc.outbound.client import Outbound
from tests.support.cases import each
from tests.support.toolboxes import NOW, box_of, failure


async def add(db: Database, box: ToolContext, content: bytes, content_type: str = "text/plain") -> str:
    row = await artifacts.add_artifact(
        db, artifacts.Home(box.home.account_id), content, name="file", content_type=content_type, now_seconds=NOW
    )
    return row.id


async def test_a_written_artifact_is_listed_and_read_and_bound_to_its_run(db: Database, box: ToolContext) -> None:
    text = "Grüße\r\n\u2028 data: x\n\n🙂 \0"
    made = await box.call("write_artifact", {"name": "note.md", "content": text})
    assert set(made) == {"id", "name", "content_type", "size"}
    assert await box.call("read_artifact", {"id": made["id"]}) == text
    assert await box.call("list_artifacts", {}) == [made]
    assert (await db.read(artifacts.TABLE.by_id, box.home.account_id, made["id"])).run_id == "run_1"


async def test_lone_surrogates_in_a_content_are_replaced(box: ToolContext) -> None:
    made = await box.call("write_artifact", {"name": "n", "content": "a\ud800b"})
    assert await box.call("read_artifact", {"id": made["id"]}) == "a?b"


@each("name", ["\0", "a\0b", " ", "\ud800", "a\nb", "\x1b[31m"])
async def test_invalid_file_name_is_refused(box: ToolContext, faults: list[BaseException], name: str) -> None:
    assert "name" in await failure(box, "write_artifact", {"name": name, "content": "x"})
    assert await box.call("list_artifacts", {}) == [] and faults == []


async def test_long_text_is_read_in_part_with_whole_characters(db: Database, box: ToolContext) -> None:
    for text in ("é" * 100_000, "x" + "é" * 100_000, "x" * 65_536, "🙂" * 16_384 + "x"):
        read = await TOOLS["read_artifact"].function(box, id=await add(db, box, text.encode()))
        assert text.startswith(read) and 65_532 <= len(read.encode()) <= 65_536
    assert await box.call("read_artifact", {"id": await add(db, box, b"")}) == ""


@each("content", [b"\x89PNG\r\n\x1a\n\0\xff", b"\xff" * 200_000, b"x" * 65_535 + b"\xff" * 10, b"caf\xe9"])
async def test_binary_file_is_not_read(db: Database, box: ToolContext, content: bytes) -> None:
    assert (
        await failure(box, "read_artifact", {"id": await add(db, box, content, "image/png")})
        == "This file is not text (image/png)."
    )


async def test_large_file_is_not_loaded_whole(db: Database, box: ToolContext) -> None:
    artifact_id = await add(db, box, b"x" * CONTENT_BYTES)
    statements: list[str] = []
    await db.read(lambda conn: conn.set_trace_callback(statements.append))
    assert len(await TOOLS["read_artifact"].function(box, id=artifact_id)) == 65_536
    assert any("number = 0" in statement for statement in statements)


async def test_artifacts_of_another_account_are_not_found(
    db: Database, guarded: Outbound, box: ToolContext, faults: list[BaseException]
) -> None:
    made = await box.call("write_artifact", {"name": "n", "content": "mine"})
    other = await box_of(db, guarded, faults, "bob@example.com")
    assert await failure(other, "read_artifact", {"id": made["id"]}) == await failure(
        other, "read_artifact", {"id": "art_unknown\0"}
    )
    assert await other.call("list_artifacts", {}) == []


async def test_writing_fails_after_account_or_project_was_deleted(
    db: Database, box: ToolContext, faults: list[BaseException]
) -> None:
    project = await db.write(projects.add_project, box.home.account_id, projects.NewProject("p"), NOW)
    box.home = box.home._replace(project_id=project.id)
    await box.call("write_artifact", {"name": "n", "content": "x"})
    await db.write(projects.TABLE.delete, box.home.account_id, project.id)
    assert "no such project" in await failure(box, "write_artifact", {"name": "n", "content": "x"})
    box.home = box.home._replace(project_id=None)
    await db.write(accounts.delete_account, box.home.account_id)
    await failure(box, "write_artifact", {"name": "n", "content": "x"})
    assert await box.call("list_artifacts", {}) == [] and faults == []


async def test_memory_search_finds_only_the_accounts_messages(
    db: Database, guarded: Outbound, box: ToolContext
) -> None:
    said = {"role": "user", "content": "The zebra is called Ada.", "run_id": "run_1"}
    await db.write(history.add_message, box.home.account_id, now_seconds=NOW, **said)
    (found,) = await box.call("search_memory", {"query": "zebra"})
    assert (
        found["text"] == "The zebra is called Ada." and found["source"] == "run_1" and found["created_at"].endswith("Z")
    )
    other = await box_of(db, guarded, [], "bob@example.com")
    assert await other.call("search_memory", {"query": "zebra"}) == []
