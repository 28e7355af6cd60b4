"""Texts of files that a crash leaves unfinished. tests/routes/test_project_files.py has the rest."""

from svc.content import project_files
from svc.content.project_files import FilePassage
from tests.conftest import Service

LEFT = """
    SELECT (SELECT count(*) FROM file_texts) + (SELECT count(*) FROM file_passages) + (SELECT count(*) FROM fresh_words)
"""


async def test_unfinished_text_is_deleted_after_a_start(service: Service) -> None:
    db, account_id = service.state["db"], (await service.sign_up())["user"]["id"]
    text_id = await db.write(project_files.begin_text, account_id)
    passages = [FilePassage(None, number, number, f"word{number}") for number in range(1, 40)]
    await db.write(project_files.add_passages, account_id, "proj_123456", text_id, passages)
    assert not await db.write(project_files.delete_unused)
    await db.write(project_files.leave_unfinished)
    while await db.write(project_files.delete_unused):
        pass
    assert await db.read(lambda conn: conn.execute(LEFT).fetchone()[0]) == 0
