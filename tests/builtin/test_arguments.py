"""How the built-in assistant fills a tool's arguments out of a request."""

import time
from typing import Any

import pytest

from svc.builtin.arguments import arguments
from svc.builtin.request import Tool
from tests.support.builtin import STRING, Body, calls, choice, tool

CITY = tool("get_weather", "Current temperature of a city", city=STRING)
LOOKUP = tool("lookup", "The weather of a city", city=STRING)


@pytest.mark.parametrize("offered", [CITY, LOOKUP], ids=["by its name", "by its description"])
@pytest.mark.parametrize(
    "request_text",
    [
        "What is the weather in Paris?",
        "What is the weather in Paris? Use the tool",
        "weather in Paris please. Use the tool.",
        "What is the weather in Paris? I go there tomorrow. Please use the tool!",
    ],
)
async def test_a_place_is_read_without_what_follows_it(request_text: str, offered: Body) -> None:
    name = offered["function"]["name"]
    assert calls((await choice("assistant", request_text, tools=[offered]))["message"]) == [(name, {"city": "Paris"})]


def filled(clause: str, **properties: Any) -> Any:
    return arguments(Tool("t", "", {"type": "object", "properties": properties, "required": list(properties)}), {}, clause)


@pytest.mark.parametrize(
    ("clause", "chosen"),
    [
        ("make it green", "green"),
        ("make it Dark-Green now", "dark green"),
        ("make it evergreen", "red"),
        ("nothing of it", "red"),
    ],
)
def test_the_choice_that_is_spoken_of_is_taken_else_the_first(clause: str, chosen: str) -> None:
    assert filled(clause, colour={"enum": ["red", 7, "dark green", "green", ""]}) == {"colour": chosen}


def test_numbers_and_quotations_are_taken_in_their_order() -> None:
    given = filled("add 2.5 and 3 to 'one' or \"two\"", a={"type": "number"}, b={"type": "integer"}, c=STRING, d=STRING)
    assert given == {"a": 2.5, "b": 3, "c": "one", "d": "two"}


def test_a_hundred_thousand_choices_cost_no_more_than_a_thousand() -> None:
    began = time.thread_time()
    assert filled("word " * 1_600, **{f"p{number}": {"enum": [f"v{n}" for n in range(100_000)]} for number in range(9)})
    assert time.thread_time() - began < 0.5
