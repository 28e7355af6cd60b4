"""How a goal becomes calls of an agent's tools."""

from typing import Any

import pytest

from tests.support.builtin import agent_run


@pytest.mark.parametrize(
    ("goal", "planned"),
    [
        ("What time is it?", [[("current_time", {})]]),
        ("What is 6*7, and 8*9?", [[("calculate", {"expression": "6*7"}), ("calculate", {"expression": "8*9"})]]),
        ("Draw a cat, a dog and a bird", [[("generate_image", {"prompt": "a cat, a dog and a bird"})]]),
        ('Write "a, b and c" to list.md', [[("write_artifact", {"name": "list.md", "content": "a, b and c"})]]),
        ("Save a note saying buy milk", [[("write_artifact", {"name": "note.txt", "content": "buy milk"})]]),
        ("Please say good night aloud", [[("generate_audio", {"input": "good night"})]]),
        ("List my files", [[("list_artifacts", {})]]),
        ("Search my memory for the launch code", [[("search_memory", {"query": "launch code"})]]),
        ("What is my favourite colour?", [[("search_memory", {"query": "favourite colour"})]]),
        ("Fetch https://example.com/a?b=c.", [[("fetch_url", {"url": "https://example.com/a?b=c"})]]),
        ("hello", []),
    ],
)
async def test_requests_become_calls_of_the_agents_tools(goal: str, planned: list[Any]) -> None:
    assert (await agent_run(goal))[0] == planned


async def test_artifact_is_looked_up_by_name_where_the_tool_reads_by_id() -> None:
    listing = '[{"id":"art_aa","name":"other.md"},{"id":"art_bb","name":"notes.md"}]'
    rounds, final = await agent_run("Read notes.md", result=lambda name, _: listing if name == "list_artifacts" else "the notes")
    assert rounds == [[("list_artifacts", {})], [("read_artifact", {"id": "art_bb"})]]
    assert "the notes" in final


SUM, SAID, NOTED = "17*23", "17*23 = 391", ("write_artifact", {"name": "note.txt", "content": "17*23 = 391"})


@pytest.mark.parametrize(
    ("goal", "planned"),
    [
        (
            "Compute 17*23, draw a cat, say it in audio and note it.",
            [
                ("calculate", {"expression": SUM}),
                ("generate_image", {"prompt": "a cat"}),
                ("generate_audio", {"input": SAID}),
                NOTED,
            ],
        ),
        (
            "Compute 17*23, draw it, say hello as audio, note it. Use the tools.",
            [
                ("calculate", {"expression": SUM}),
                ("generate_image", {"prompt": SAID}),
                ("generate_audio", {"input": "hello"}),
                NOTED,
            ],
        ),
        (
            "Make a picture of a dog and an audio recording of the word dog, and write a note about dogs",
            [
                ("generate_image", {"prompt": "a dog"}),
                ("generate_audio", {"input": "the word dog"}),
                ("write_artifact", {"name": "note.txt", "content": "dogs"}),
            ],
        ),
        ("Draw a cat and a dog and a boat", [("generate_image", {"prompt": "a cat and a dog and a boat"})]),
    ],
)
async def test_every_part_of_a_compound_goal_is_done(goal: str, planned: list[Any]) -> None:
    rounds, _ = await agent_run(goal, result=lambda name, _: SAID if name == "calculate" else "done")
    made = [call for calls in rounds for call in calls]
    assert len(made) == len(planned) and all(call in made for call in planned)
