"""What the built-in assistant answers without tools: recall, greetings, and that it is no language model."""

import pytest

from tests.support.builtin import Body, said, text


@pytest.mark.parametrize(
    ("messages", "recalled"),
    [
        (said("user: My name is Ada Lovelace. I like trains.", "assistant: ok", "user: What is my name?"), "Ada Lovelace"),
        (said("user: I'm Bob", "user: my name is Eve", "assistant: ok", "user: who am I?"), "Eve"),
        (said("user: My favourite colour is green!", "user: What's my favourite colour?"), "green"),
        (said("user: My dog is called Rex.", "user: What is my dog's name?"), "My dog is called Rex."),
        (said("system: The launch code is 7421. Be kind.", "user: What is the launch code?"), "The launch code is 7421."),
        (
            said("user: The server room is upstairs.", "user: What did I say about the server room?"),
            "The server room is upstairs.",
        ),
        (said("user: alpha beta", "assistant: ok", "user: What did I just say?"), "alpha beta"),
    ],
)
async def test_assistant_recalls_what_it_was_told(messages: list[Body], recalled: str) -> None:
    assert recalled in await text("assistant-paid", messages)


@pytest.mark.parametrize(
    "request_text", ["Write a sonnet about the sea", "How do whales sleep?", "", "call 555-1234", "hello", "who are you?"]
)
async def test_assistant_says_that_it_is_no_language_model(request_text: str) -> None:
    assert "not a language model" in await text("assistant", request_text)
    if request_text.startswith("W"):
        assert "configure a model server" in await text("assistant", request_text)
