"""The built-in assistant as the model of an agent: the rounds of calls that it makes, and its last answer."""

from typing import Any

import pytest

from tests.support.builtin import AGENT_TOOLS, WEATHER, agent_run, calls, choice, text

GOAL = "Compute 12 * (3 + 4), draw a lighthouse and save a note with the result"


CALCULATE = ("calculate", {"expression": "12 * (3 + 4)"})


DRAW = ("generate_image", {"prompt": "a lighthouse"})


WRITE = ("write_artifact", {"name": "note.txt", "content": "12 * (3 + 4) = 84"})


async def test_goal_is_planned_and_dependent_steps_wait_for_results() -> None:
    rounds, final = await agent_run(GOAL)
    assert rounds == [[CALCULATE, DRAW], [WRITE]]
    assert "84" in final and "note.txt" in final


async def test_without_parallel_calls_a_round_is_one_call() -> None:
    assert (await agent_run(GOAL, parallel_tool_calls=False))[0] == [[CALCULATE], [DRAW], [WRITE]]


async def test_only_offered_tools_are_called_and_the_rest_is_done_or_declined() -> None:
    rounds, final = await agent_run(GOAL, [AGENT_TOOLS[2]])
    assert rounds == [[WRITE]]
    assert "84" in final and "no tool for this: draw a lighthouse" in final


@pytest.mark.parametrize("forced", ["required", {"type": "function", "function": {"name": "get_weather"}}])
async def test_forced_call_is_made_once_and_then_answered(forced: Any) -> None:
    rounds, final = await agent_run("hello", [WEATHER], lambda *_: "sunny", tool_choice=forced)
    assert [[name for name, _ in calls] for calls in rounds] == [["get_weather"]]
    assert "sunny" in final


async def test_tool_choice_none_calls_nothing_and_named_calls_nothing_else() -> None:
    assert "84" in await text("assistant", GOAL, tools=AGENT_TOOLS, tool_choice="none")
    named = {"type": "function", "function": {"name": "generate_image"}}
    assert calls((await choice("assistant", GOAL, tools=AGENT_TOOLS, tool_choice=named))["message"]) == [DRAW]
