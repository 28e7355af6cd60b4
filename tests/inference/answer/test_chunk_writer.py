"""svc/inference/answer/chunk_writer.py, rule by rule of OpenAI's format: streams, JSON answers, sizes, events."""

import math
import time
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from svc.errors import UpstreamFault
from svc.inference.answer import chunk_writer, events
from svc.inference.answer.events import TextChunks
from svc.inference.answer.upstream_errors import caller_error
from tests.support.cases import each
from tests.support.wire_grammar import (
    HEAD,
    REASONS,
    answer,
    as_sent,
    assembled,
    calls,
    check_completion,
    delta,
    message_answer,
    reasons,
    streamed,
    text_of,
    writer,
)

# --- streams, rule by rule


def test_role_is_sent_first_and_once() -> None:
    chunks = streamed(
        delta(role="assistant", content="Hel"), delta(role="assistant", content="lo"), delta(finish_reason="stop")
    )
    assert [chunk["choices"][0]["delta"] for chunk in chunks] == [
        {"role": "assistant", "content": ""},
        {"content": "Hel"},
        {"content": "lo"},
        {},
    ]
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None, None, None, "stop"]


def test_finish_chunk_waits_for_the_clean_end() -> None:
    stream = writer()
    assert stream.feed(delta(content="x", finish_reason="stop"))[-1]["choices"][0]["finish_reason"] is None
    assert stream.finished
    assert reasons(stream.finish()) == ["stop"]


def test_choice_ends_with_its_finish_reason() -> None:
    chunks = streamed(delta(content="a", finish_reason="length"), delta(content="b"), delta(finish_reason="stop"))
    assert text_of(chunks) == "a"
    assert reasons(chunks) == ["length"]


@each(
    ("given_reason", "seen"),
    [
        (None, "stop"),
        ("", "stop"),
        ("eos", "stop"),
        ("max_tokens", "length"),
        ("SAFETY", "content_filter"),
        ("tool_calls", "stop"),
    ],
)
def test_missing_and_foreign_finish_reasons_are_repaired(given_reason: str | None, seen: str) -> None:
    assert reasons(streamed(delta(content="a", finish_reason=given_reason))) == [seen]
    assert message_answer({"content": "a"}, finish_reason=given_reason)["choices"][0]["finish_reason"] == seen


@each("given_reason", [None, "stop", "function_call", "tool_calls"])
def test_finish_reason_is_tool_calls_when_there_were_some(given_reason: str | None) -> None:
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    assert reasons(streamed(calls(call), delta(finish_reason=given_reason))) == ["tool_calls"]


def test_finish_reason_error_is_a_cut_answer() -> None:
    with pytest.raises(UpstreamFault) as caught:
        streamed(delta(content="a"), delta(finish_reason="error"))
    assert caught.value.kind == "cut"


def test_requested_usage_is_only_in_the_last_chunk() -> None:
    usage = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
    raws = [
        {**delta(content="a"), "usage": usage},
        {**delta(finish_reason="stop"), "usage": usage},
        {"choices": [], "usage": usage},
    ]
    assert streamed(*raws, include_usage=True)[-1]["usage"] == usage
    assert not any("usage" in chunk for chunk in streamed(*raws))


def test_usage_inside_a_choice_is_read_and_not_passed_on() -> None:
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    raw = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": usage}]}
    assert streamed(delta(content="a"), raw, include_usage=True)[-1]["usage"] == usage


def test_chunks_without_choices_are_dropped() -> None:
    assert writer().feed({"choices": [], "prompt_filter_results": [1]}) == []
    assert writer().feed({"type": "ping"}) == []


def test_unknown_fields_are_kept_at_every_level() -> None:
    raw = {
        "system_fingerprint": "fp",
        "choices": [
            {"index": 0, "delta": {"content": "a", "reasoning": "why"}, "token_ids": [1], "logprobs": {"content": [1]}}
        ],
    }
    role, text, finish = streamed(
        raw, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "stop_reason": 2}]}
    )
    assert role["system_fingerprint"] == text["system_fingerprint"] == "fp"
    assert text["choices"][0]["delta"] == {"content": "a", "reasoning": "why"}
    assert text["choices"][0]["token_ids"] == [1]
    assert text["choices"][0]["logprobs"] == {"content": [1]}
    assert finish["choices"][0]["stop_reason"] == 2
    assert role["choices"][0].keys() == {"index", "delta", "logprobs", "finish_reason"}


def test_null_fields_are_left_out() -> None:
    raw = delta(content="a", tool_calls=None, refusal=None, function_call=None, audio=None)
    assert streamed(raw)[1]["choices"][0]["delta"] == {"content": "a"}


@each("nothing", [None, {}, "", []])
def test_empty_error_is_ignored(nothing: Any) -> None:
    assert text_of(streamed({**delta(content="a"), "error": nothing})) == "a"
    assert "error" not in message_answer({"content": "a"}, error=nothing)


def test_an_error_in_a_choice_is_a_fault() -> None:
    with pytest.raises(UpstreamFault):
        writer().feed({"choices": [{"index": 0, "delta": {"content": ""}, "error": {"message": "overloaded"}}]})
    with pytest.raises(UpstreamFault) as caught:
        writer().feed({"choices": [{"index": 0, "error": {"message": "slow down", "code": 429, "type": ["a"]}}]})
    assert caller_error(caught.value, provider="lab", byok=False).status == 503


def test_a_stream_without_any_choice_is_invalid() -> None:
    with pytest.raises(UpstreamFault) as caught:
        writer().finish()
    assert caught.value.kind == "invalid"


def test_an_endless_answer_is_stopped() -> None:
    stream, piece = writer(), "x" * 1_000_000
    with pytest.raises(UpstreamFault) as caught:
        for _ in range(20):
            stream.feed(delta(content=piece))
    assert caught.value.kind == "invalid"


def test_long_text_is_split_and_fields_beside_it_are_sent_once() -> None:
    text, thought, arguments = "\U0001f642" * 150_000, "é" * 65_537, '"' + "ü" * 200_000 + '"'
    call = {
        "index": 0,
        "id": "c",
        "type": "function",
        "x_of_call": 3,
        "function": {"name": "f", "arguments": arguments},
    }
    raw = delta(content=text, reasoning_content=thought, x_of_delta=[1], tool_calls=[call])
    raw["x_top"], raw["choices"][0]["logprobs"] = 2, {"content": []}
    chunks = streamed(raw, delta(tool_calls=[{**call, "function": {"arguments": arguments}}]), include_usage=True)
    assert max(len(events.event(chunk)) for chunk in chunks) < 20 * 65_536
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    pieces = [
        entry["function"]["arguments"]
        for found in deltas
        for entry in found.get("tool_calls", [])
        if "function" in entry
    ]
    assert "".join(found.get("content") or "" for found in deltas) == text
    assert "".join(found.get("reasoning_content", "") for found in deltas) == thought
    assert "".join(pieces) == arguments * 2 and max(map(len, pieces)) == 65_536
    assert sum("x_of_delta" in found for found in deltas) == 1
    assert sum(choice["logprobs"] is not None for chunk in chunks for choice in chunk["choices"]) == 1
    assert str(chunks).count("x_top") < 6, "only where there is something new"
    (made,) = answer(raw)["choices"]
    assert (made["message"]["content"], made["message"]["reasoning_content"]) == (text, thought)
    assert made["message"]["tool_calls"][0]["function"]["arguments"] == arguments


def test_choices_are_kept_apart() -> None:
    chunks = streamed(
        delta(0, content="a"), delta(1, content="b"), delta(1, "stop", content="B"), delta(0, "length", content="A")
    )
    assert assembled(chunks, 0)["content"] == "aA"
    assert assembled(chunks, 1)["content"] == "bB"
    assert reasons(chunks) == ["length", "stop"]


def test_a_whole_completion_becomes_chunks() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    message = {"role": "assistant", "content": "Hi", "tool_calls": [call], "refusal": None}
    chunks = streamed(
        {"object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    )
    assert assembled(chunks) == {"content": "Hi", "calls": [{"id": "c", "name": "f", "arguments": '{"a": 1}'}]}


def repeats_of(like: dict[str, Any], *texts: str) -> TextChunks:
    return TextChunks([*texts], [orjson.dumps(text) for text in texts], "".join(texts), like)


def test_half_an_emoji_is_sent_before_repeated_texts() -> None:
    stream, half = writer(), delta(content="a\ud83d")
    chunks = [
        *stream.feed(delta(content="")),
        *stream.feed(half),
        *stream.feed(repeats_of(half, "b", "c")),
        *stream.finish(),
    ]
    assert text_of(chunks) == "a\ufffdbc" == stream.content()["content"]


def test_waiting_fields_of_a_choice_are_not_repeated_with_its_texts() -> None:
    stream, text = writer(), delta(content="a")
    waiting = {"choices": [{"index": 0, "delta": {}, "token_ids": [1]}]}
    raws = (delta(content=""), waiting, text, repeats_of(text, "b", "c"))
    chunks = as_sent(chunk for raw in raws for chunk in stream.feed(raw))
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    assert [choice["delta"]["content"] for choice in choices] == ["", "a", "b", "c"]
    assert [choice.get("token_ids") for choice in choices] == [None, [1], None, None]


def test_waiting_fields_in_a_text_itself_are_of_a_text_itself_are_in_its_repeats() -> None:
    stream = writer()
    text = {"choices": [{"index": 0, "delta": {"content": "a"}, "token_ids": [1]}]}
    raws = (delta(content=""), text, repeats_of(text, "b", "c"))
    chunks = as_sent(chunk for raw in raws for chunk in stream.feed(raw))
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    assert "".join(choice["delta"]["content"] for choice in choices) == "abc"
    assert [choice.get("token_ids") for choice in choices if choice["delta"]["content"]] == [[1], [1], [1]]


def test_no_chunk_follows_the_end() -> None:
    stream, last = writer(), delta(content="b")
    for raw in (delta(content="a"), last):
        stream.feed(raw)
    stream.finish()
    assert [*stream.feed(repeats_of(last, "c")), *stream.feed(delta(content="d"))] == []


def test_stream_is_finished_when_all_requested_choices_ended() -> None:
    stream = chunk_writer.ChunkWriter(**HEAD, request={"messages": [], "n": 2})
    for index in (0, 1):
        assert not stream.finished
        stream.feed({"choices": [{"index": index, "delta": {"content": "a"}}]})
        assert not stream.finished
        stream.feed({"choices": [{"index": index, "delta": {}, "finish_reason": "stop"}]})
    assert stream.finished


def test_a_legacy_text_choice_is_read() -> None:
    assert (
        text_of(streamed({"choices": [{"text": "a"}]}, {"choices": [{"text": "b", "finish_reason": "stop"}]})) == "ab"
    )


def test_text_bytes_and_content_report_the_output_so_far() -> None:
    stream = writer()
    stream.feed(delta(content="é", reasoning_content="hm"))
    assert stream.text_bytes == 4
    assert stream.content() == {"role": "assistant", "content": "é", "refusal": None, "reasoning_content": "hm"}
    assert not stream.finished


def granted(size_bytes: float) -> chunk_writer.ChunkWriter:
    stream = writer()
    stream.choice_bytes = size_bytes
    return stream


def test_choice_over_its_limit_is_cut_with_length() -> None:
    stream = granted(10)
    chunks = [chunk for raw in [delta(content="Hello, "), delta(content="wörld!")] for chunk in stream.feed(raw)]
    assert text_of(chunks) == "Hello, wö" and stream.finished and stream.cut
    assert stream.feed(delta(content="more")) == []
    assert reasons(stream.finish()) == ["length"]


@each(("size_bytes", "text"), [(5, "abcde"), (6, "abcdef"), (7, "abcdef"), (8, "abcdefé")])
def test_repeated_texts_are_cut_at_the_limit_too(size_bytes: int, text: str) -> None:
    stream, first = granted(size_bytes), delta(content="ab")
    raws = (delta(content=""), first, repeats_of(first, "c", "d"), repeats_of(first, "e", "f"), repeats_of(first, "é"))
    chunks = as_sent(chunk for raw in raws for chunk in stream.feed(raw))
    assert text_of(chunks) == text == stream.content()["content"]
    assert stream.text_bytes == len(text.encode()) and stream.cut is (size_bytes < 8)
    assert reasons(stream.finish()) == ["stop" if size_bytes == 8 else "length"]


def test_text_reasoning_and_arguments_share_the_limit_of_a_choice() -> None:
    stream = granted(10)
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1, "b": 2}'}}
    stream.feed(delta(0, reasoning_content="abcd", content="efgh", tool_calls=[call]))
    stream.feed(delta(1, "stop", content="0123456789"))
    assert reasons(stream.finish()) == ["length", "stop"]
    first, second = (choice["message"] for choice in stream.answer()[0]["choices"])
    assert first["tool_calls"][0]["function"]["arguments"] == '{"' and second["content"] == "0123456789"


def test_a_whole_answer_beyond_its_grant_is_cut_too() -> None:
    choice = message_answer({"content": "Hello, world!"}, by=granted(5))["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("Hello", "length")


@each(
    "raw",
    [
        {f"field-{number}": 1 for number in range(6_000)},
        {"choices": [{"index": 0, "delta": {}}] * 6_000},
        delta(**{f"field-{number}": 1 for number in range(6_000)}),
        delta(tool_calls=[{"index": 0, "function": {"name": "f", "arguments": ""}}] * 6_000),
    ],
)
def test_chunk_of_thousands_of_parts_is_refused_first(raw: dict[str, Any]) -> None:
    with pytest.raises(UpstreamFault) as caught:
        writer().feed(raw)
    assert caught.value.kind == "invalid"


def seconds_for(raws: list[dict[str, Any]]) -> float:
    began = time.process_time()
    answer(*raws)
    return time.process_time() - began


def repeated_names(count: int) -> list[dict[str, Any]]:
    """The deltas of one call by a server that gives its name with each."""
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": "b'}}
    return [calls(call), *[calls({**call, "function": {"name": "f", "arguments": "bbbb"}})] * count]


def logprobs(count: int) -> list[dict[str, Any]]:
    return [{"choices": [{"index": 0, "delta": {"content": "a"}, "logprobs": {"content": [{"token": "a"}]}}]}] * count


@each("raws", [repeated_names, logprobs])
def test_thousands_of_deltas_take_linear_time(raws: Callable[[int], list[dict[str, Any]]]) -> None:
    small = min(seconds_for(raws(1_000)) for _ in range(3))
    assert seconds_for(raws(16_000)) < 16 * small * 4  # joining everything for each delta would take 256 times as long


@each(
    "part",
    [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "thinking", "thinking": "hm"},
        {"type": "reasoning", "text": "hm"},
    ],
)
def test_thinking_in_a_list_of_parts_becomes_reasoning_content(part: dict[str, Any]) -> None:
    parts = [part, {"type": "text", "text": "a"}]
    message = message_answer({"content": parts})["choices"][0]["message"]
    assert (message["content"], message["reasoning_content"]) == ("a", "hm")
    chunks = streamed(delta(content=parts))
    assert chunks[1]["choices"][0]["delta"] == {"content": "a", "reasoning_content": "hm"}


# --- JSON answers


@each("text", ["\n" * 200_000, "\u00e9\U0001f642" * 50_000])
def test_answer_written_in_a_thread_is_the_same(text: str) -> None:
    raw = {
        "choices": [{"message": {"content": text, "x": [1.5, None, {"y": text}]}, "finish_reason": "stop"}],
        "z": -(2**63),
    }
    written = []
    for apart in (False, True):
        whole_writer = writer(whole=True)
        whole_writer.feed(raw)
        whole, data = whole_writer.answer(apart)
        written.append(orjson.loads(data))
        assert whole["choices"][0]["message"]["content"] == text
    assert written[0] == written[1]


def test_minimal_answer_gets_all_required_fields() -> None:
    assert answer({"choices": [{"message": {"content": "Hi"}}]}) == {
        **HEAD,
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Hi", "refusal": None},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6},
    }


@each("raw", [{}, {"choices": []}, {"choices": None}, {"choices": [{"index": 0}]}, {"choices": ["x"]}, {"detail": "x"}])
def test_answer_without_a_choice_is_invalid(raw: dict[str, Any]) -> None:
    with pytest.raises(UpstreamFault) as caught:
        answer(raw)
    assert caught.value.kind == "invalid"


@each(
    ("content", "seen"),
    [(None, ""), ("", ""), ([{"type": "text", "text": "a"}, {"type": "x"}, "b"], "ab"), (5, ""), ({}, "")],
)
def test_content_is_a_string_unless_there_are_calls(content: Any, seen: str) -> None:
    assert message_answer({"role": "assistant", "content": content})["choices"][0]["message"]["content"] == seen
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    with_call = message_answer({"content": content, "tool_calls": [call]})["choices"][0]["message"]
    assert with_call["content"] == (seen or None)


@each("empty", [None, []])
def test_text_messages_have_no_tool_calls_key(empty: Any) -> None:
    assert message_answer({"content": "a", "tool_calls": empty})["choices"][0]["message"].keys() == {
        "role",
        "content",
        "refusal",
    }


@given(
    message=st.fixed_dictionaries(
        {"role": st.sampled_from(["assistant", None]), "content": st.text(max_size=9) | st.none()},
        optional={
            "refusal": st.none() | st.just("No."),
            "tool_calls": st.just([]),
            "reasoning": st.none() | st.just("Hm."),
        },
    ),
    choice=st.fixed_dictionaries(
        {
            "index": st.sampled_from([0, 1, None, "0"]),
            "finish_reason": st.sampled_from([*sorted(REASONS), "eos", None]),
        },
        optional={
            "logprobs": st.none() | st.just({"content": []}),
            "stop_reason": st.none() | st.just("x"),
            "usage": st.none(),
        },
    ),
    granted_bytes=st.sampled_from([3, 9, math.inf]),
)
@example(
    message={"role": None, "content": "0", "refusal": "No."},
    choice={"index": 0, "finish_reason": "content_filter"},
    granted_bytes=math.inf,
)
def test_whole_message_equals_its_delta(message: dict[str, Any], choice: dict[str, Any], granted_bytes: float) -> None:
    said = [
        answer({"choices": [{**choice, name: message}], "usage": {"prompt_tokens": 7}}, by=granted(granted_bytes))
        for name in ("message", "delta")
    ]
    assert said[0] == said[1]


@each("name", ["message", "delta"])
def test_choices_over_the_maximum_are_dropped(name: str) -> None:
    raw = {
        "choices": [
            {"index": index, name: {"role": "assistant", "content": "a"}, "finish_reason": "stop"}
            for index in range(200)
        ]
    }
    assert [choice["index"] for choice in answer(raw)["choices"]] == [*range(128)]


def test_usage_after_the_end_is_ignored() -> None:
    counts = [{"prompt_tokens": n, "completion_tokens": n, "total_tokens": 2 * n} for n in (1, 100)]
    by = writer()
    by.feed({"choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}], "usage": counts[0]})
    by.finish()
    told = by.usage
    by.feed({"choices": [], "usage": counts[1]})
    assert told == by.usage == counts[0]


def test_messages_under_one_index_are_several_answers() -> None:
    whole = answer({"choices": [{"index": 0, "message": {"content": text}, "finish_reason": "stop"} for text in "ab"]})
    assert [(choice["index"], choice["message"]["content"]) for choice in whole["choices"]] == [(0, "a"), (1, "b")]


def test_stream_as_one_raw_answer_is_joined() -> None:
    parts = [{"index": 0, "delta": {"content": text}, "logprobs": {"content": [text]}} for text in "ab"]
    whole = answer({"choices": [*parts, {"index": 0, "delta": {}, "finish_reason": "length"}], "service_tier": "x"})
    check_completion(whole)
    assert whole["choices"][0]["message"]["content"] == "ab"
    assert whole["choices"][0]["logprobs"] == {"content": ["a", "b"]}
    assert whole["choices"][0]["finish_reason"] == "length"
    assert whole["service_tier"] == "x"


@each("value", ["\ud83d", [[]], 2**70])
def test_invalid_json_values_are_a_fault_instead_of_a_500(value: Any) -> None:
    if value == [[]]:
        for _ in range(300):
            value = [value]
    for raw in (
        {**delta(content="a"), "odd": value},
        delta(odd=[value]),
        {"choices": [{"index": 0, "delta": {"content": "a"}, "odd": value}]},
    ):
        with pytest.raises(UpstreamFault) as caught:
            answer(raw)
        assert caught.value.kind == "invalid"
        with pytest.raises(UpstreamFault):
            streamed(raw)
    with pytest.raises(UpstreamFault):
        answer({**delta(content="a"), "usage": {"cost": value}})
