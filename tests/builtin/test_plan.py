"""How the built-in assistant plans a goal, and how it fills the arguments of tools."""

import time
from typing import Any

from svc.builtin.plan import arguments
from svc.builtin.request import Tool
from tests.support.builtin import STRING, WEATHER, Body, agent_run, calls, choice, tool
from tests.support.cases import each


@each(
    ("goal", "planned"),
    [
        ("What time is it?", [[("current_time", {})]]),
        ("What is 6*7, and 8*9?", [[("calculate", {"expression": "6*7"}), ("calculate", {"expression": "8*9"})]]),
        ("Draw a cat, a dog and a bird", [[("generate_image", {"prompt": "a cat, a dog and a bird"})]]),
        ('Write "a, b and c" to list.md', [[("write_artifact", {"name": "list.md", "content": "a, b and c"})]]),
        ("Save a note saying buy milk", [[("write_artifact", {"name": "note.txt", "content": "buy milk"})]]),
        ("Please say good night aloud", [[("generate_audio", {"input": "good night"})]]),
        ('say "hello world" out loud', [[("generate_audio", {"input": "hello world"})]]),
        ("Narrate a short story", [[("generate_audio", {"input": "a short story"})]]),
        ("Save hello world to hello.txt", [[("write_artifact", {"name": "hello.txt", "content": "hello world"})]]),
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
    rounds, final = await agent_run(
        "Read notes.md", result=lambda name, _: listing if name == "list_artifacts" else "the notes"
    )
    assert rounds == [[("list_artifacts", {})], [("read_artifact", {"id": "art_bb"})]]
    assert "the notes" in final


SUM, SAID, NOTED = "17*23", "17*23 = 391", ("write_artifact", {"name": "note.txt", "content": "17*23 = 391"})


@each(
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
            "Make a picture of a dog and an audio recording of the word dog, and write a note with it",
            [
                ("generate_image", {"prompt": "a dog"}),
                ("generate_audio", {"input": "the word dog"}),
                ("write_artifact", {"name": "note.txt", "content": "Drew a dog.\nSaid aloud: the word dog."}),
            ],
        ),
        ("Draw a cat and a dog and a boat", [("generate_image", {"prompt": "a cat and a dog and a boat"})]),
    ],
)
async def test_every_part_of_a_compound_goal_is_done(goal: str, planned: list[Any]) -> None:
    rounds, _ = await agent_run(goal, result=lambda name, _: SAID if name == "calculate" else "done")
    made = [call for calls in rounds for call in calls]
    assert len(made) == len(planned) and all(call in made for call in planned)


@each(
    ("request_text", "offered", "called"),
    [
        ("What's the weather in Paris?", WEATHER, [("get_weather", {"location": "Paris", "unit": "c"})]),
        ("How hot is the temperature in Oslo?", WEATHER, [("get_weather", {"location": "Oslo", "unit": "c"})]),
        (
            "What is the weather in Paris and in London today?",
            WEATHER,
            [("get_weather", {"location": "Paris", "unit": "c"}), ("get_weather", {"location": "London", "unit": "c"})],
        ),
        ("What is 6 * 7?", tool("calculator", formula=STRING), [("calculator", {"formula": "6 * 7"})]),
        ("add 2 and 3", tool("add", a={"type": "integer"}, b={"type": "integer"}), [("add", {"a": 2, "b": 3})]),
        ("Search the web for blue whales", tool("searchWeb", query=STRING), [("searchWeb", {"query": "blue whales"})]),
        ("Make the lamp green", tool("set_lamp", color={"enum": ["red", "green"]}), [("set_lamp", {"color": "green"})]),
        ("Tell me a joke", WEATHER, []),
    ],
)
async def test_clients_own_tools_are_called_when_the_request_names_them(
    request_text: str, offered: Body, called: Any
) -> None:
    made = calls((await choice("assistant", request_text, tools=[offered]))["message"])
    assert made == called


CITY = tool("get_weather", "Current temperature of a city", city=STRING)
LOOKUP = tool("lookup", "The weather of a city", city=STRING)


@each("offered", [CITY, LOOKUP])
@each(
    "request_text",
    [
        "What is the weather in Paris?",
        "What is the weather in Paris? Use the tool",
        "weather in Paris please. Use the tool.",
        "What is the weather in Paris? I go there tomorrow. Please use the tool!",
    ],
)
async def test_place_argument_ends_with_its_sentence(request_text: str, offered: Body) -> None:
    name = offered["function"]["name"]
    assert calls((await choice("assistant", request_text, tools=[offered]))["message"]) == [(name, {"city": "Paris"})]


def filled(clause: str, **properties: Any) -> Any:
    return arguments(
        Tool("t", "", {"type": "object", "properties": properties, "required": list(properties)}), {}, clause
    )


@each(
    ("clause", "chosen"),
    [
        ("make it green", "green"),
        ("make it Dark-Green now", "dark green"),
        ("make it evergreen", "red"),
        ("nothing of it", "red"),
    ],
)
def test_enum_argument_is_the_mentioned_choice_or_the_first(clause: str, chosen: str) -> None:
    assert filled(clause, colour={"enum": ["red", 7, "dark green", "green", ""]}) == {"colour": chosen}


def test_numbers_and_quotations_fill_arguments_in_order() -> None:
    given = filled("add 2.5 and 3 to 'one' or \"two\"", a={"type": "number"}, b={"type": "integer"}, c=STRING, d=STRING)
    assert given == {"a": 2.5, "b": 3, "c": "one", "d": "two"}


def test_a_hundred_thousand_choices_cost_no_more_than_a_thousand() -> None:
    began = time.thread_time()
    assert filled("word " * 1_600, **{f"p{number}": {"enum": [f"v{n}" for n in range(100_000)]} for number in range(9)})
    assert time.thread_time() - began < 0.5
