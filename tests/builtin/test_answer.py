"""What every built-in model honours of a request: streams, choices, stop sequences, the output limit."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from tests.support.builtin import (
    Body,
    answers,
    assembled,
    choice,
    text,
)


@given(st.text(max_size=60), st.lists(st.text(max_size=3), max_size=3), st.integers(1, 12), st.integers(1, 3))
def test_stream_and_json_agree_and_keep_the_limits(message: str, stops: list[str], max_tokens: int, n: int) -> None:
    async def both() -> tuple[list[Body], list[Body]]:
        fields = {"stop": stops, "max_tokens": max_tokens, "max_completion_tokens": 9, "n": n}
        return await answers("echo", message, **fields), await answers("echo", message, **fields, stream=True)

    at_once, chunks = asyncio.run(both())
    choices = assembled(at_once)
    assert assembled(chunks) == choices and len(at_once) <= 4 * n + 1
    assert chunks[-1]["usage"] == at_once[-1]["usage"]
    assert [one["index"] for one in choices] == list(range(n))
    content, finish = choices[0]["message"]["content"], choices[0]["finish_reason"]
    message = message.encode("utf-8", "replace").decode()
    assert message.startswith(content) and not any(stop in content for stop in stops if stop)
    assert len(content.encode()) <= 4 * min(max_tokens, 9)
    if finish == "length":
        assert len(message[: len(content) + 1].encode()) > 4 * min(max_tokens, 9)
    else:
        assert content == message or any(message.startswith(stop, len(content)) for stop in stops if stop)
    usage = at_once[-1]["usage"]
    assert usage["prompt_tokens"] == -(-len(message.encode()) // 4)
    assert usage["completion_tokens"] == n * -(-len(content.encode()) // 4)


async def test_stream_is_sent_word_by_word() -> None:
    chunks = await answers("echo", "one two  three", stream=True)
    assert [chunk["choices"][0]["delta"].get("content") for chunk in chunks[:-1]] == [
        "",
        "one ",
        "two ",
        " ",
        "three",
        None,
    ]


async def test_stop_sequence_is_found_across_parts_and_its_prefix_is_kept() -> None:
    script = "say one ST\nsay O\nsay P two"
    assert (await choice("script", script, stop="STOP")) == {
        "index": 0,
        "message": {"role": "assistant", "content": "one ", "refusal": None},
        "logprobs": None,
        "finish_reason": "stop",
        "stop_reason": "STOP",
    }
    assert await text("script", "say one ST\nsay AR two ST", stop=["STOP"]) == "one STAR two ST"


async def test_max_tokens_cuts_the_arguments_of_a_call() -> None:
    cut = await choice("script", 'tool f {"key": "value"}', max_tokens=2)
    assert cut["finish_reason"] == "length"
    assert cut["message"]["tool_calls"][0]["function"]["arguments"] == '{"key":'
    assert "tool_calls" not in (await choice("script", "tool a_long_name {}", max_tokens=1))["message"]
