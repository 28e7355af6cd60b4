"""The built-in assistant: its tool calls, its reports of results, and its answers without tools."""

from typing import Any

from tests.support.builtin import AGENT_TOOLS, WEATHER, Body, agent_run, calls, choice, said, text
from tests.support.cases import each

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


@each("forced", ["required", {"type": "function", "function": {"name": "get_weather"}}])
async def test_forced_call_is_made_once_and_then_answered(forced: Any) -> None:
    rounds, final = await agent_run("hello", [WEATHER], lambda *_: "sunny", tool_choice=forced)
    assert [[name for name, _ in calls] for calls in rounds] == [["get_weather"]]
    assert "sunny" in final


async def test_tool_choice_none_calls_no_tool_and_named_only_one() -> None:
    assert "84" in await text("assistant", GOAL, tools=AGENT_TOOLS, tool_choice="none")
    named = {"type": "function", "function": {"name": "generate_image"}}
    assert calls((await choice("assistant", GOAL, tools=AGENT_TOOLS, tool_choice=named))["message"]) == [DRAW]


@each("result", ['{"ok": false, "error": {"message": "broken"}}', "Error: broken", "", "[[[", "[" * 900 + "]" * 900])
async def test_no_call_is_repeated_for_any_result(result: str) -> None:
    rounds, final = await agent_run(GOAL, result=lambda *_: result)
    assert [name for made in rounds for name, _ in made] == ["calculate", "generate_image", "write_artifact"]
    assert ("broken" in final) == ("broken" in result)


async def test_run_ends_without_tool_results() -> None:
    messages = said(f"user: {GOAL}")
    for _ in range(3):
        messages.append((await choice("assistant", messages, tools=AGENT_TOOLS))["message"])
    assert "no result came" in messages[-1]["content"]


@each(
    ("messages", "recalled"),
    [
        (
            said("user: My name is Ada Lovelace. I like trains.", "assistant: ok", "user: What is my name?"),
            "Ada Lovelace",
        ),
        (said("user: I'm Bob", "user: my name is Eve", "assistant: ok", "user: who am I?"), "Eve"),
        (said("user: Call me Eve", "assistant: ok", "user: What's my Name?"), "Your name is Eve."),
        (said("user: My favourite colour is green!", "user: What's my favourite colour?"), "green"),
        (said("user: My dog is called Rex.", "user: What is my dog's name?"), "My dog is called Rex."),
        (
            said("system: The launch code is 7421. Be kind.", "user: What is the launch code?"),
            "The launch code is 7421.",
        ),
        (
            said("user: The server room is upstairs.", "user: What did I say about the server room?"),
            "The server room is upstairs.",
        ),
        (said("user: alpha beta", "assistant: ok", "user: What did I just say?"), "alpha beta"),
    ],
)
async def test_assistant_recalls_earlier_messages(messages: list[Body], recalled: str) -> None:
    assert recalled in await text("assistant-paid", messages)


@each(
    "request_text",
    ["Write a sonnet about the sea", "How do whales sleep?", "", "call 555-1234", "hello", "who are you?"],
)
async def test_assistant_says_that_it_is_not_a_language_model(request_text: str) -> None:
    assert "not a language model" in await text("assistant", request_text)
    if request_text.startswith("W"):
        assert "Connect a language model" in await text("assistant", request_text)
