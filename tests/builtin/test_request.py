"""How the built-in models read a request: what is counted, and what is refused with a 400."""

import json

import pytest

from svc.builtin.provider import chat
from svc.errors import UpstreamFault
from tests.support.builtin import WEATHER, Body, answers, said


async def test_prompt_tokens_count_messages_calls_and_tools() -> None:
    plain = (await answers("echo", "12345678"))[0]["usage"]["prompt_tokens"]
    with_tools = (await answers("echo", "12345678", tools=[WEATHER]))[0]["usage"]["prompt_tokens"]
    assert plain == 2
    assert with_tools == -(-(8 + len(json.dumps([WEATHER], separators=(",", ":")))) // 4)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"n": 0}, "n"),
        ({"n": True}, "n"),
        ({"n": 10**9}, "n"),
        ({"max_tokens": 1.5}, "max_tokens"),
        ({"max_completion_tokens": 0}, "max_completion_tokens"),
        ({"stop": 5}, "stop"),
        ({"stop": ["x", 5]}, "stop"),
        ({"stop": "x" * 1000}, "stop"),
        ({"tools": {}}, "tools"),
        ({"tools": [WEATHER] * 200}, "tools"),
        ({"tools": [{"type": "custom", "custom": {"name": "x"}}]}, "tools[0]"),
        ({"tools": [{"type": "function"}]}, "tools[0].function"),
        ({"tools": [{"type": "function", "function": {}}]}, "tools[0].function.name"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": {"type": "function", "function": {"name": "no"}}, "tools": [WEATHER]}, "tool_choice"),
        ({"tool_choice": 7, "tools": [WEATHER]}, "tool_choice"),
        ({"response_format": "json"}, "response_format"),
        ({"response_format": {"type": "json_schema"}}, "response_format"),
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": {"enum": []}}}}, "response_format"),
        ({"messages": "hi"}, "messages"),
        ({"messages": [5]}, "messages[0]"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0].text"),
        ({"messages": [{"role": "user", "content": "x" * (4 << 20) + "x"}]}, "messages"),
        ({"messages": [{"role": "user"}] * 10_001}, "messages"),
    ],
)
async def test_what_makes_no_sense_is_a_400_that_names_the_field(fields: Body, param: str) -> None:
    body = {"messages": said("user: hi"), **fields}
    with pytest.raises(UpstreamFault) as refused:
        await anext(chat("assistant", body))
    assert (refused.value.kind, refused.value.status) == ("status", 400)
    assert refused.value.error is not None and refused.value.error["param"] == param


async def test_reminders_of_claude_code_are_no_part_of_the_goal() -> None:
    reminder = "<system-reminder>\nfail 500 Never commit.\n</system-reminder>\n"
    parts = [{"type": "text", "text": text} for text in (reminder, reminder + "say Hello", reminder)]
    answer = (await answers("script", messages=[{"role": "user", "content": parts}]))[0]
    assert answer["choices"][0]["message"]["content"].strip() == "Hello"
    assert (await answers("echo", "a </b> <system-reminder> c"))[0]["choices"][0]["message"][
        "content"
    ] == "a </b> <system-reminder> c"
