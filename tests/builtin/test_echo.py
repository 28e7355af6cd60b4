"""The model `echo` says what it was told."""

import pytest

from tests.support.builtin import Body, said, text


@pytest.mark.parametrize(
    ("messages", "echoed"),
    [
        (said("system: s", "user: first", "assistant: a", "user: last \u2028 \U0001f600"), "last \u2028 \U0001f600"),
        (said("system: s"), ""),
        ([], ""),
        ([{"role": "user"}], ""),
        ([{"role": "user", "content": None}], ""),
        ([{"role": "user", "content": [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {}}]}], "see [image]"),
        ([{"role": "user", "content": [{"type": "input_audio"}, {"type": "file"}, "plain"]}], "[audio] [file] plain"),
        ([{"role": "user", "content": "hi"}, {"role": "narrator", "content": "unknown"}], "hi"),
    ],
)
async def test_echo_answers_with_the_last_user_message(messages: list[Body], echoed: str) -> None:
    assert await text("echo", messages) == echoed
