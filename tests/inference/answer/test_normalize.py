"""svc/inference/answer/normalize.py through chunk_writer.py: split emoji, partial tool calls, usage that makes no sense."""

import math
from typing import Any

import orjson
import pytest

from svc.errors import UpstreamFault
from tests.support.cases import each
from tests.support.wire_grammar import (
    answer,
    assembled,
    calls,
    delta,
    message_answer,
    reasons,
    streamed,
    text_of,
    writer,
)


def test_half_an_emoji_alone_becomes_the_replacement_character() -> None:
    assert text_of(streamed(delta(content="a\ud83d"))) == "a\ufffd"
    assert text_of(streamed(delta(content="a\ud83d"), delta(content="b"))) == "a\ufffdb"
    assert text_of(streamed(delta(content="\ude00b"))) == "\ufffdb"


def test_second_half_of_an_emoji_alone_is_replaced_at_once() -> None:
    stream = writer()
    assert text_of(stream.feed(delta(content="a\ude00"))) == "a\ufffd"
    assert text_of([*stream.feed(delta(content="\ude00\U0001f642")), *stream.finish()]) == "\ufffd\U0001f642"


def test_lowest_and_highest_low_surrogates_alone_are_replaced() -> None:
    for half in ("\udc00", "\udfff"):
        stream = writer()
        assert text_of(stream.feed(delta(content=f"a{half}"))) == "a\ufffd"
        assert text_of([*stream.feed(delta(content="b")), *stream.finish()]) == "b"


# --- tool calls


def test_a_whole_call_is_split_into_opening_and_arguments() -> None:
    chunks = streamed(
        calls({"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}})
    )
    assert [chunk["choices"][0]["delta"] for chunk in chunks] == [
        {"role": "assistant", "content": None},
        {"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"a": 1}'}}]},
        {},
    ]


def test_later_deltas_carry_index_and_arguments_alone() -> None:
    first = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}
    later = [{**first, "function": {"name": "f", "arguments": piece}} for piece in ('{"a"', "", ": 1}")]
    chunks = streamed(calls(first), *(calls(call) for call in later))
    assert assembled(chunks)["calls"] == [{"id": "c", "name": "f", "arguments": '{"a": 1}'}]
    assert len(chunks) == 5


CALL_A = {"name": "look_up", "arguments": '{"a": 1}'}
CALL_B = {"name": "look_up", "arguments": '{"b": 2}'}


@pytest.mark.parametrize(
    "raws",
    [
        pytest.param([calls({"function": CALL_A}, {"function": CALL_B})], id="no index, id or type, in one delta"),
        pytest.param(
            [calls({"function": CALL_A}), calls({"function": CALL_B})], id="no index, id or type, in two deltas"
        ),
        pytest.param([calls(CALL_A, CALL_B)], id="flat"),
        pytest.param(
            [calls({"index": 0, "id": "x", "function": CALL_A}), calls({"index": 0, "id": "y", "function": CALL_B})],
            id="one index, two ids",
        ),
        pytest.param(
            [calls({"index": 0, "function": CALL_A}), calls({"index": 0, "function": CALL_B})], id="one index, no ids"
        ),
        pytest.param(
            [calls({"index": 1, "id": "x", "function": CALL_A}), calls({"index": 2, "id": "y", "function": CALL_B})],
            id="indices from 1",
        ),
        pytest.param(
            [calls({"index": 0, "id": "x", "function": CALL_A}, {"index": 1, "id": "x", "function": CALL_B})],
            id="one id, two indices",
        ),
        pytest.param(
            [calls({"id": "x", "function": CALL_A}), calls({"id": "x", "function": CALL_B})], id="one id, no index"
        ),
        pytest.param(
            [calls({"id": 1, "function": CALL_A}), calls({"id": 2, "function": CALL_B})], id="ids that are numbers"
        ),
        pytest.param(
            [
                calls(
                    {"index": 0, "id": "x", "function": {"name": "look_up"}},
                    {"index": 1, "id": "y", "function": {"name": "look_up"}},
                ),
                calls(
                    {"index": 1, "function": {"arguments": '{"b"'}}, {"index": 0, "function": {"arguments": '{"a": 1}'}}
                ),
                calls({"index": 1, "id": "", "function": {"name": "", "arguments": ": 2}"}}),
            ],
            id="mixed pieces",
        ),
        pytest.param(
            [
                calls({"id": "x", "function": {"name": "look_up", "arguments": ""}}),
                calls({"function": {"arguments": '{"a": 1}'}}),
                calls({"id": "y", "function": {"name": "look_up", "arguments": ""}}),
                calls({"function": {"arguments": '{"b": 2}'}}),
            ],
            id="pieces without index",
        ),
        pytest.param(
            [
                calls(
                    {"function": {"name": "look_up", "arguments": {"a": 1}}},
                    {"function": {"name": "look_up", "arguments": {"b": 2}}},
                )
            ],
            id="arguments as objects",
        ),
        pytest.param(
            [
                calls({"index": 0, "function": {"arguments": '{"a"'}}),
                calls({"index": 0, "function": {"name": "look_up", "arguments": ": 1}"}}),
                calls({"index": 1, "function": CALL_B}),
            ],
            id="the name after the arguments",
        ),
    ],
)
def test_two_calls_without_index_id_or_type_stay_separate(raws: list[dict[str, Any]]) -> None:
    found = assembled(streamed(*raws))["calls"]
    assert [call["name"] for call in found] == ["look_up", "look_up"]
    assert [orjson.loads(call["arguments"]) for call in found] == [{"a": 1}, {"b": 2}]
    assert found[0]["id"] != found[1]["id"]


def test_a_call_without_a_name_is_dropped() -> None:
    chunks = streamed(
        calls({"index": 0, "id": "c", "function": {"arguments": "{}"}}), delta(finish_reason="tool_calls")
    )
    assert assembled(chunks)["calls"] == []
    assert reasons(chunks) == ["stop"]


def test_a_call_without_arguments_gets_an_empty_object() -> None:
    assert assembled(streamed(calls({"function": {"name": "now"}})))["calls"][0]["arguments"] == "{}"
    whole = message_answer(
        {"content": None, "tool_calls": [{"id": "c", "function": {"name": "now", "arguments": None}}]}
    )
    assert whole["choices"][0]["message"]["tool_calls"][0]["function"] == {"name": "now", "arguments": "{}"}


def test_two_calls_without_arguments_in_one_delta_are_two() -> None:
    found = assembled(streamed(calls({"function": {"name": "now"}}, {"function": {"name": "now"}})))["calls"]
    assert [(call["name"], call["arguments"]) for call in found] == [("now", "{}"), ("now", "{}")]


def test_unknown_fields_of_a_call_are_kept() -> None:
    call = {"index": 0, "id": "c", "function": CALL_A, "extra_content": {"google": {"thought_signature": "s"}}}
    stream = writer()
    opening = stream.feed(calls(call))[1]
    assert opening["choices"][0]["delta"]["tool_calls"][0]["extra_content"] == call["extra_content"]
    assert stream.content()["tool_calls"][0]["extra_content"] == call["extra_content"]


def test_custom_tools_keep_their_form() -> None:
    call = {"index": 0, "id": "c", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}
    chunks = streamed(calls(call))
    assert chunks[1]["choices"][0]["delta"] == {
        "tool_calls": [{"index": 0, "id": "c", "type": "custom", "custom": {"name": "sql", "input": ""}}]
    }
    assert chunks[2]["choices"][0]["delta"] == {"tool_calls": [{"index": 0, "custom": {"input": "select 1"}}]}


def test_a_deprecated_function_call_keeps_its_form() -> None:
    chunks = streamed(delta(function_call={"name": "f", "arguments": ""}), delta(function_call={"arguments": "{}"}))
    assert [chunk["choices"][0]["delta"] for chunk in chunks[1:3]] == [
        {"function_call": {"name": "f", "arguments": ""}},
        {"function_call": {"arguments": "{}"}},
    ]
    assert reasons(chunks) == ["function_call"]


def test_too_many_calls_are_invalid() -> None:
    with pytest.raises(UpstreamFault) as caught:
        streamed(calls(*({"index": index, "function": CALL_A} for index in range(200))))
    assert caught.value.kind == "invalid"


# --- usage

COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")


@each(
    ("reported", "counts"),
    [
        ({"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}, (7, 5, 12)),
        ({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, (0, 0, 0)),
        ({"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 999}, (7, 5, 12)),
        ({"prompt_tokens": 7, "completion_tokens": 5}, (7, 5, 12)),
        ({"prompt_tokens": 7, "total_tokens": 12}, (7, 5, 12)),
        ({"completion_tokens": 5, "total_tokens": 12}, (7, 5, 12)),
        ({"prompt_tokens": 7.0, "completion_tokens": "5", "total_tokens": None}, (7, 5, 12)),
        ({"input_tokens": 7, "output_tokens": 5}, (7, 5, 12)),
        ({"prompt_tokens": 7, "completion_tokens": 2.5}, (7, 3, 10)),
        ({"prompt_tokens": -7, "completion_tokens": 5}, (5, 5, 10)),
        ({"prompt_tokens": 7, "completion_tokens": 10**30}, (7, 2, 9)),
        ({"prompt_tokens": 7, "completion_tokens": 1e300}, (7, 2, 9)),
        ({"prompt_tokens": math.nan, "completion_tokens": math.inf}, (5, 2, 7)),
        ({"prompt_tokens": True, "completion_tokens": [5], "total_tokens": "x"}, (5, 2, 7)),
        ({"prompt_tokens": 9, "total_tokens": 3}, (9, 0, 9)),
        ({}, (5, 2, 7)),
        (None, (5, 2, 7)),
        ("many", (5, 2, 7)),
        # Gemini and xAI leave the reasoning out of the completion.
        (
            {
                "prompt_tokens": 7,
                "completion_tokens": 5,
                "total_tokens": 20,
                "completion_tokens_details": {"reasoning_tokens": 8},
            },
            (7, 13, 20),
        ),
    ],
)
def test_usage_is_three_whole_numbers_that_add_up(reported: Any, counts: tuple[int, int, int]) -> None:
    raw = {"choices": [{"message": {"content": "8 bytes."}}], "usage": reported}
    for usage in (answer(raw)["usage"], streamed(raw, include_usage=True)[-1]["usage"]):
        assert tuple(usage[name] for name in COUNTS) == counts


def test_usage_details_are_never_null_and_unknown_fields_are_kept() -> None:
    reported = {
        **dict.fromkeys(COUNTS, 0),
        "prompt_tokens_details": None,
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": None, "x": "y"},
        "cost": 0.25,
    }
    usage = answer({"choices": [{"message": {"content": ""}}], "usage": reported})["usage"]
    assert usage == {**dict.fromkeys(COUNTS, 0), "completion_tokens_details": {"reasoning_tokens": 0}, "cost": 0.25}


def test_last_usage_of_a_stream_counts() -> None:
    stream = writer()
    stream.feed({**delta(content="a"), "usage": {"prompt_tokens": 7, "completion_tokens": 1, "total_tokens": 8}})
    stream.feed({**delta(content="b"), "usage": {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}})
    stream.feed({**delta(content="c"), "usage": None})
    assert tuple(stream.usage[name] for name in COUNTS) == (7, 2, 9)
