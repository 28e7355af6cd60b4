"""svc/inference/formats/request.py: the messages of a chat request, in the order that model servers accept."""

import pytest

from svc.errors import ApiError
from svc.inference.chat_shape import CHAT_REQUEST
from svc.inference.formats.request import ChatMessages
from tests.support.cases import each

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def test_a_turn_is_one_assistant_message_and_system_texts_lead() -> None:
    messages = ChatMessages()
    messages.add_system("Be brief.")
    messages.add_user("Weather?")
    messages.add_said("reasoning_content", "Two calls.")
    messages.add_said("content", "I look.")
    messages.add_call("a", "weather", "{}", "input[2]")
    messages.add_call("b", "time", "{}", "input[3]")
    messages.add_system("In English.")
    messages.add_result("b", [{"type": "text", "text": "noon"}], "input[4]")
    messages.add_result("a", [{"type": "text", "text": "sun"}, IMAGE], "input[5]")
    messages.add_said("content", "Sunny.")
    found = messages.all()
    assert CHAT_REQUEST.check({"messages": found}, "")
    assert found == [
        {"role": "system", "content": "Be brief.\n\nIn English."},
        {"role": "user", "content": "Weather?"},
        {
            "role": "assistant",
            "content": "I look.",
            "reasoning_content": "Two calls.",
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "weather", "arguments": "{}"}},
                {"id": "b", "type": "function", "function": {"name": "time", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "b", "content": "noon"},
        {"role": "tool", "tool_call_id": "a", "content": "sun"},
        {"role": "user", "content": [IMAGE]},
        {"role": "assistant", "content": "Sunny."},
    ]


def test_a_user_message_between_a_call_and_its_result_follows_the_result() -> None:
    messages = ChatMessages()
    messages.add_call("a", "weather", "{}", "input[0]")
    messages.add_user("Hurry")
    messages.add_result("a", [{"type": "text", "text": "sun"}], "input[2]")
    assert [message["role"] for message in messages.all()] == ["assistant", "tool", "user"]


@each("end", ["end", "turn", "again", "unknown"])
def test_calls_and_results_must_match(end: str) -> None:
    messages = ChatMessages()
    messages.add_call("a", "weather", "{}", "input[0]")
    with pytest.raises(ApiError) as refused:
        if end == "turn":
            messages.add_call("b", "weather", "{}", "input[1]")
            messages.add_result("b", [{"type": "text", "text": "sun"}], "input[2]")
            messages.add_said("content", "Sunny.")
        elif end == "again":
            messages.add_call("a", "weather", "{}", "input[1]")
        elif end == "unknown":
            messages.add_result("b", [{"type": "text", "text": "sun"}], "input[1]")
        messages.all()
    assert refused.value.status == 400 and refused.value.error["param"] in ("input[0]", "input[1]")


def test_error_shows_the_beginning_of_a_long_id() -> None:
    with pytest.raises(ApiError) as found:
        ChatMessages().add_result("x" * 1_000_000, [], "input[0]")
    assert len(str(found.value)) < 300
