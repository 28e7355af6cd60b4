"""Tools for the files of a project, with their failures. tests/routes/test_project_files.py has their use in chats."""

from dataclasses import replace

import pytest

from svc.agents.tools.registry import ToolContext
from svc.agents.tools.sources import Sources
from svc.content import artifacts, file_search, project_files, projects
from svc.content.project_files import FilePassage, NewFile
from svc.db import Database
from tests.support.cases import each
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


@each(
    ("query", "text"),
    [
        ("Corfu ferry", "The ferries of the island are late, and they do not sail when the wind is strong."),
        ("Kündigungsfrist", "Wer bis zum Ende des Monats gekündigt hat, der muss die Schlüssel mit der Post schicken."),
        ("cambio de pastilla", "El médico me ha cambiado las pastillas, y por eso no puedo tomar el café con leche."),
        ("りんご 保存", "りんごはほかのものと分けて、暗い場所に置いてください。"),
        ("kaupan", "Tavarat ovat kaupassa."),  # no stemmer knows Finnish
    ],
)
async def test_forms_are_found_by_a_query_without_stop_words(
    db: Database, box: ToolContext, query: str, text: str
) -> None:
    here = await with_file(db, box, "a.txt", "Nothing.", text, "Nothing else.")
    assert [one["text"] for one in await here.call("find_in_files", {"query": query})] == [text]


async def test_words_are_as_rare_as_they_are_in_the_project(db: Database, box: ToolContext) -> None:
    await with_file(db, box, "b.txt", *(f"other {number}" for number in range(2_000)))
    here = await with_file(db, box, "a.txt", *["alpha beta gamma"] * 30, "a zebra")
    found = await here.call("find_in_files", {"query": "alpha beta gamma zebra"})
    assert found[0]["text"] == "a zebra"


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
    assert found["number"] == here.sources.number("https://example.com/", "e") - 1 == 1
    resumed = Sources(here.sources.listed(""))
    assert resumed.number_of_passage({name: value for name, value in found.items() if name != "number"}) == 1


async def test_search_without_time_for_forms_has_looked_up_every_word(
    db: Database, box: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = await with_file(db, box, "a.txt", "The ferries sail.", "Ferry tickets are sold here.", "Zebra.")
    left = iter(range(3))  # a look for each word, and then no time
    monkeypatch.setattr(file_search, "spent", lambda: next(left, None) is None)
    found = await here.call("find_in_files", {"query": "ferry tickets zebra"})
    assert sorted(one["from_line"] for one in found) == [2, 3]
