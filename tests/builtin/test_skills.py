"""Which of a caller's own tools a request speaks of."""

from typing import Any

import pytest

from tests.support.builtin import STRING, WEATHER, Body, calls, choice, tool


@pytest.mark.parametrize(
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
async def test_callers_own_tools_are_called_when_the_request_speaks_of_them(
    request_text: str, offered: Body, called: Any
) -> None:
    made = calls((await choice("assistant", request_text, tools=[offered]))["message"])
    assert made == called
