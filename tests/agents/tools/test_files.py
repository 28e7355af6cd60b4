"""Tools for the files of a project, with their failures. tests/routes/test_project_files.py has their use in chats."""

from dataclasses import replace

from svc.agents.tools.registry import ToolContext
from svc.agents.tools.sources import Sources
from svc.content import artifacts, project_files, projects
from svc.content.project_files import FilePassage, NewFile
from svc.db import Database
from tests.support.toolboxes import NOW, failure


async def with_file(db: Database, box: ToolContext, name: str, *texts: str) -> ToolContext:
    """Return the context in a new project with a file of these passages."""
    owner = box.home.account_id
    home = artifacts.Home(owner)
    made = await artifacts.add_artifact(db, home, b"x", name=name, content_type="text/plain", now_seconds=NOW)
    project = await db.write(projects.add_project, owner, projects.NewProject("p"), NOW)
    file, _ = await db.write(project_files.add_file, owner, project.id, NewFile(made.id), NOW)
    text_id = await db.write(project_files.begin_text, owner)
    passages = [FilePassage((number + 1) // 2, number, number, text) for number, text in enumerate(texts, 1)]
    await db.write(project_files.add_passages, owner, project.id, text_id, passages)
    await db.write(project_files.finish, file, text_id, 10)
    return replace(box, home=artifacts.Home(owner, project.id, "run_1"))


async def test_forms_of_words_are_found_and_the_rarest_words_count_most(db: Database, box: ToolContext) -> None:
    texts = ["The ferry sails at noon.", "The ferries of Corfu sailed late.", "Buses stop here."]
    here = await with_file(db, box, "a.txt", *texts)
    found = await here.call("find_in_files", {"query": "When does the ferry to Corfu sail?"})
    assert [one["from_line"] for one in found] == [2, 1] and [one["number"] for one in found] == [1, 2]
    again = await here.call("find_in_files", {"query": "ferry noon"})
    assert again[0]["from_line"] == 1 and again[0]["number"] == 2, "one number for one passage"


async def test_files_of_other_projects_are_not_found(db: Database, box: ToolContext) -> None:
    await with_file(db, box, "a.txt", "zebra one")
    here = await with_file(db, box, "b.txt", "lion two")
    assert "b.txt" in await failure(here, "find_in_files", {"query": "zebra"})
    assert "b.txt" in await failure(here, "read_file", {"file": "a.txt", "from": 1, "lines": 9})


async def test_lines_are_read_by_id_or_name(db: Database, box: ToolContext) -> None:
    here = await with_file(db, box, "a.txt", "one", "two", "three")
    read = await here.call("read_file", {"file": "a.txt", "from": 2, "lines": 5})
    assert (read["from_line"], read["to_line"], read["text"]) == (2, 3, "two\nthree")
    assert await here.call("read_file", {"file": read["file"], "from": 2, "lines": 5}) == read
    assert read["page"] == 1, "that of the first line"
    assert (await here.call("read_file", {"file": "a.txt", "from": 3, "lines": 1}))["page"] == 2
    assert "no line 4" in await failure(here, "read_file", {"file": "a.txt", "from": 4, "lines": 1})


async def test_sources_of_an_earlier_part_of_the_answer_keep_their_numbers(db: Database, box: ToolContext) -> None:
    here = replace(await with_file(db, box, "a.txt", "zebra"), sources=Sources())
    (found,) = await here.call("find_in_files", {"query": "zebra"})
    assert here.sources is not None
    assert found["number"] == here.sources.number("https://example.com/", "e") - 1 == 1
    resumed = Sources(here.sources.listed(""))
    assert resumed.number_of_passage({name: value for name, value in found.items() if name != "number"}) == 1
