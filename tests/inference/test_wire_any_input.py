"""svc/inference/answer/chunk_writer.py: whatever a provider sends, the answer obeys the format and the text arrives unchanged."""

import itertools
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.errors import UpstreamFault
from svc.inference.answer.events import event
from tests.support.wire_grammar import (
    answer,
    check_completion,
    check_grammar,
    check_usage,
    delta,
    streamed,
    text_of,
    writer,
)

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
TRUE_ODDS = 4


def mostly(likely: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(*[likely] * TRUE_ODDS, anything)


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """An object with any of the fields, each mostly of its kind, and perhaps some unknown ones."""
    known = st.fixed_dictionaries({}, optional={name: mostly(value) for name, value in fields.items()})
    return st.tuples(st.dictionaries(st.sampled_from(["extra", "id", "x_note"]), anything, max_size=1), known).map(
        lambda pair: {**pair[0], **pair[1]}
    )


arguments = st.sampled_from(["", "{", '"a"', ": 1}", "{}", '{"a": 1}'])
tool_calls = st.lists(
    mostly(
        some(
            index=st.integers(-1, 3),
            id=st.sampled_from(["", "call_a", "call_b"]),
            type=st.just("function"),
            function=some(name=st.sampled_from(["", "look_up", "draw"]), arguments=arguments),
            custom=some(name=st.just("sql"), input=st.text(max_size=4)),
        )
    ),
    max_size=3,
)
deltas = some(
    role=st.just("assistant"),
    content=st.text(max_size=6),
    refusal=st.text(max_size=4),
    reasoning_content=st.text(max_size=4),
    tool_calls=tool_calls,
    function_call=some(name=st.just("old"), arguments=arguments),
)
choices_ = some(
    index=st.integers(-1, 2),
    delta=deltas,
    message=deltas,
    text=st.text(max_size=4),
    finish_reason=st.sampled_from(["stop", "length", "tool_calls", "", "eos", "function_call", "error"]),
    logprobs=some(content=st.lists(anything, max_size=1)),
)
usages = some(prompt_tokens=st.integers(-1, 50), completion_tokens=st.integers(0, 50), total_tokens=st.integers(0, 99))
raws = some(choices=st.lists(mostly(choices_), max_size=3), usage=usages, system_fingerprint=st.text(max_size=3))


@pytest.mark.slow
@given(st.lists(raws, max_size=6), st.booleans())
def test_any_sequence_of_raw_chunks_gives_a_stream_that_obeys_the_grammar(
    sequence: list[dict[str, Any]], asked: bool
) -> None:
    stream = writer(asked)
    sent: list[dict[str, Any]] = []
    try:
        for raw in sequence:
            sent += stream.feed(raw)
        check_grammar(sent, asked, complete=False)
        sent += stream.finish()
    except UpstreamFault:
        check_grammar(sent, asked, complete=False)
    else:
        check_grammar(sent, asked, complete=True)
        assert stream.finish() == []
    check_usage(stream.usage)
    orjson.dumps(stream.content())


@given(raws)
def test_any_raw_answer_gives_a_completion_of_the_right_shape_or_one_fault(raw: dict[str, Any]) -> None:
    try:
        whole = answer(raw)
    except UpstreamFault as fault:
        assert fault.kind in ("status", "invalid", "cut")
        return
    check_completion(whole)
    assert orjson.loads(orjson.dumps(whole)) == whole


@given(st.text(), st.lists(st.integers(0, 200), max_size=8))
def test_text_arrives_unchanged_even_when_emoji_are_split(text: str, cuts: list[int]) -> None:
    units = text.encode("utf-16-le")
    ends = sorted({min(2 * cut, len(units)) for cut in cuts} | {0, len(units)})
    pieces = [units[a:b].decode("utf-16-le", "surrogatepass") for a, b in itertools.pairwise(ends)]
    chunks = streamed(delta(role="assistant"), *(delta(content=piece) for piece in pieces))
    assert text_of(chunks) == text
    blocks = b"".join(event(chunk) for chunk in chunks).decode("ascii")
    events = [orjson.loads(line.removeprefix("data: ")) for line in blocks.split("\n\n") if line]
    assert text_of(events) == text


@given(raws)
def test_json_and_stream_have_the_same_content(raw: dict[str, Any]) -> None:
    try:
        whole = answer(raw)
        chunks = streamed(raw)
    except UpstreamFault:
        return
    for choice in whole["choices"]:
        message, seen = choice["message"], assembled_of_functions(chunks, choice["index"])
        assert (message["content"] or "") == (seen["content"] or "")
        found = [call["function"] for call in message.get("tool_calls", []) if call["type"] == "function"]
        assert [(call["name"], call["arguments"]) for call in found] == [
            (call["name"], call["arguments"]) for call in seen["calls"]
        ]


def assembled_of_functions(chunks: list[dict[str, Any]], index: int) -> dict[str, Any]:
    """`assembled`, custom tools aside."""
    content = "".join(
        part["delta"].get("content") or "" for chunk in chunks for part in chunk["choices"] if part["index"] == index
    )
    found: dict[int, dict[str, str]] = {}
    entries = [
        call
        for chunk in chunks
        for part in chunk["choices"]
        if part["index"] == index
        for call in part["delta"].get("tool_calls", [])
    ]
    for call in entries:
        if "function" in call:
            known = found.setdefault(call["index"], {"name": call["function"].get("name", ""), "arguments": ""})
            known["arguments"] += call["function"]["arguments"]
    return {"content": content, "calls": [found[number] for number in sorted(found)]}
