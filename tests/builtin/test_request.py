"""How the built-in models read a request: what they count, what they refuse, and which message is the
last of the user.
"""

import json

import pytest

from svc.builtin.provider import chat
from svc.errors import UpstreamFault
from tests.support.builtin import WEATHER, Body, answers, said, text
from tests.support.cases import each


async def test_prompt_tokens_count_messages_calls_and_tools() -> None:
    plain = (await answers("echo", "12345678"))[-1]["usage"]["prompt_tokens"]
    with_tools = (await answers("echo", "12345678", tools=[WEATHER]))[-1]["usage"]["prompt_tokens"]
    assert plain == 2
    assert with_tools == -(-(8 + len(json.dumps([WEATHER], separators=(",", ":")))) // 4)


@each(
    ("fields", "param"),
    [
        ({"stop": "x" * 1000}, "stop"),
        ({"tools": [WEATHER] * 200}, "tools"),
        ({"tools": [WEATHER, {"type": "custom", "custom": {"name": "x"}}]}, "tools[1]"),
        ({"tools": [{"type": "function", "function": {"name": "x", "parameters": {"y": 2**70}}}]}, "tools"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": {"type": "function", "function": {"name": "no"}}, "tools": [WEATHER]}, "tool_choice"),
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": {"enum": []}}}}, "response_format"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": {"x": "y" * (1 << 18)}}}},
            "response_format",
        ),
        ({"messages": [{"role": "user", "content": "x" * (4 << 20) + "x"}]}, "messages"),
        ({"messages": [{"role": "user"}] * 10_001}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": ""}] * 10_000}]}, "messages"),
    ],
)
async def test_unsupported_value_is_a_400_that_names_the_field(fields: Body, param: str) -> None:
    body = {"messages": said("user: hi"), **fields}
    with pytest.raises(UpstreamFault) as refused:
        await anext(chat("assistant", body))
    assert (refused.value.kind, refused.value.status) == ("status", 400)
    assert refused.value.error is not None and refused.value.error["param"] == param


async def test_reminders_of_claude_code_are_removed() -> None:
    reminder = "<system-reminder>\nfail 500 Never commit.\n</system-reminder>\n"
    parts = [{"type": "text", "text": text} for text in (reminder, reminder + "say Hello", reminder)]
    assert (await text("script", [{"role": "user", "content": parts}])).strip() == "Hello"
    assert await text("echo", "a </b> <system-reminder> c") == "a </b> <system-reminder> c"


_IMAGE = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
_REMINDER = {"type": "text", "text": "<system-reminder>\nBe brief.\n</system-reminder>"}
_RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "done"}


@each(
    ("messages", "echoed"),
    [
        (said("system: s", "user: first", "assistant: a", "user: last \u2028 \U0001f600"), "last \u2028 \U0001f600"),
        (said("system: s"), ""),
        ([{"role": "user"}], ""),
        ([{"role": "user", "content": None}], ""),
        ([{"role": "user", "content": [{"type": "text", "text": "see"}, _IMAGE]}], "see [image]"),
        ([{"role": "user", "content": [{"type": "input_audio", "text": 5}, {"type": "file"}]}], "[audio] [file]"),
        ([{"role": "user", "content": [_REMINDER, {"type": "text", "text": "hi"}]}], "hi"),
        (
            [
                *said("user: hi"),
                _RESULT,
                {"role": "user", "content": [_IMAGE]},
                {"role": "user", "content": [_REMINDER]},
            ],
            "hi",
        ),
        ([*said("user: hi"), _RESULT, *said("user: then")], "then"),
    ],
)
async def test_echo_answers_with_the_last_user_message(messages: list[Body], echoed: str) -> None:
    assert await text("echo", messages) == echoed
