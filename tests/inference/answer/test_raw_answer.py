"""svc/inference/answer/raw_answer.py: events that repeat the one before them are read as if parsed;
test_upstream.py has more.
"""

import contextlib
import itertools
import json
import math
import time
from collections.abc import Iterable, Iterator
from typing import Any, cast

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from svc.errors import UpstreamFault
from svc.inference.answer import chunk_writer, events
from svc.inference.answer.events import TextChunks
from svc.inference.answer.raw_answer import RawAnswer
from svc.inference.catalog import Provider
from svc.outbound.connection import Reply
from tests.support.cases import each
from tests.support.wire_grammar import as_sent

HEAD = {"id": "chatcmpl-x", "created": 1_790_000_000, "model": "here/it"}
SECRET = "svc-secret-0123"
TEXTS = st.text(max_size=8) | st.sampled_from(
    ["", '"', "\\", '"content":', "[DONE]", "é", "\U0001f642", "x" * 70_000, SECRET]
)
EXTRAS = st.sampled_from(
    [{}, {"system_fingerprint": "fp"}, {"usage": None}, {"usage": {"prompt_tokens": 3}}, {"model": "other"}]
)
CHOICES = st.sampled_from(
    [
        *({}, {"logprobs": None}, {"logprobs": {"content": [{"token": "a"}]}}, {"finish_reason": None}, {"index": 1}),
        *({"finish_reason": "stop"}, {"stop_reason": 7}),
    ]
)
DELTAS = st.sampled_from(
    [
        *(
            {},
            {"role": "assistant"},
            {"reasoning_content": "hm"},
            {"token_ids": [1]},
            {"refusal": None},
            {"tool_calls": []},
        ),
        *({"function_call": {"arguments": "1"}}, {"tool_calls": [{"function": {"arguments": "1"}}]}),
    ]
)


def chunk(text: str, extra: dict[str, Any], choice: dict[str, Any], delta: dict[str, Any]) -> dict[str, Any]:
    return {"id": "1", "choices": [{"index": 0, **choice, "delta": {**delta, "content": text}}], **extra}


# Streams whose form stays for a while, as real ones do.
STREAMS = st.lists(
    st.tuples(EXTRAS, CHOICES, DELTAS, st.lists(TEXTS, min_size=1, max_size=5)).map(
        lambda form: [chunk(text, *form[:3]) for text in form[3]]
    )
    | st.sampled_from(
        [[{"id": "1", "choices": []}], [{"choices": [], "note": "late"}], [{"choices": [{"index": 0, "seen": 1}]}]]
    ),
    max_size=5,
).map(lambda parts: [raw for part in parts for raw in part])


class Scripted:
    """An answer whose reads of the network are given."""

    framed, ended = True, False

    def __init__(self, reads: Iterable[bytes]) -> None:
        self._reads = iter(reads)

    async def more(self) -> bytes:
        data = next(self._reads, b"")
        self.ended = not data
        return data


def writer(choice_bytes: float) -> chunk_writer.ChunkWriter:
    made = chunk_writer.ChunkWriter(**HEAD, request={"messages": []})
    made.choice_bytes = choice_bytes
    return made


def event_of(raw: dict[str, Any], ending: bytes = b"\n\n") -> bytes:
    return b"data: " + orjson.dumps(raw) + ending


def ending_of(stream: chunk_writer.ChunkWriter) -> list[events.Chunk]:
    with contextlib.suppress(UpstreamFault):  # where there was no choice
        return stream.finish()
    return []


@given(
    STREAMS,
    st.sampled_from([float("inf"), 5]),
    st.lists(st.integers(1, 400), min_size=1),
    st.sampled_from([b"\n\n", b"\r\n\r\n"]),
)
@example([chunk(text, {}, {}, {"function_call": {"arguments": "1"}}) for text in "abcdef"], math.inf, [100], b"\n\n")
@example([chunk(text, {"note": "x"}, {"finish_reason": "stop"}, {}) for text in "abcdef"], math.inf, [100], b"\n\n")
@example(
    [chunk("a", {}, {}, {}), *(chunk(text, {}, {"finish_reason": "stop"}, {}) for text in "bcd")],
    math.inf,
    [10**6],
    b"\n\n",
)
async def test_stream_parses_the_same_for_any_grouping_of_events(
    stream: list[dict[str, Any]], choice_bytes: float, sizes: list[int], ending: bytes
) -> None:
    data, cuts = b"".join(event_of(raw, ending) for raw in stream), itertools.accumulate(itertools.cycle(sizes))
    places = [0, *itertools.takewhile(lambda place: place < len(data), cuts), len(data)]
    reads = [data[start:end] for start, end in itertools.pairwise(places) if start < end] or [b": none\n\n"]
    together, one_by_one = writer(choice_bytes), writer(choice_bytes)
    answer = RawAnswer(cast(Reply, Scripted(reads)), Provider("lab", "http://lab", SECRET))
    sent, found = [], []
    while (raws := await answer.more()) is not None:
        for raw in raws:
            found += raw.raws() if isinstance(raw, TextChunks) else [raw]
            sent += together.feed(raw)
    hidden = [orjson.loads(orjson.dumps(raw).replace(SECRET.encode(), b"***")) for raw in stream]
    assert found == hidden
    parsed = [chunk for raw in hidden for chunk in one_by_one.feed(raw)]
    assert as_sent(sent + ending_of(together)) == as_sent(parsed + ending_of(one_by_one))
    assert (together.content(), together.usage) == (one_by_one.content(), one_by_one.usage)
    assert together.text_bytes == one_by_one.text_bytes and together.finished == one_by_one.finished


# JSON that is valid and odd: a text stands for each `@`.
NAMES = st.sampled_from(
    ['"content":', '"content" :', '"content": ', '"\\u0063ontent":', '"a\\"content":', '"x":', '"message":']
)
VALUES = st.recursive(
    st.sampled_from(["@", "@", '""', "null", '"content"', '"\\"content\\":"', "7"]),
    lambda values: (
        st.lists(st.tuples(NAMES, values).map("".join), max_size=3).map(lambda parts: "{" + ",".join(parts) + "}")
        | st.lists(values, max_size=2).map(lambda items: "[" + ",".join(items) + "]")
    ),
    max_leaves=4,
)
MEMBERS = st.lists(st.tuples(NAMES, VALUES).map("".join), max_size=3)
FIRST_CHOICES = st.builds(
    lambda *parts: "{" + ",".join([part for members in parts for part in members]) + "}",
    st.sampled_from([['"index":0'], []]),
    MEMBERS,
    st.tuples(
        st.sampled_from(['"delta":', '"delta" :']),
        st.lists(st.tuples(NAMES, VALUES).map("".join), min_size=1, max_size=3),
    ).map(lambda delta: [delta[0] + "{" + ",".join(delta[1]) + "}"]),
    st.sampled_from([[], ['"finish_reason":null'], ['"delta":{"content" :@}']]),
    MEMBERS,
)
FORMS = st.builds(
    lambda before, choices, after: "{" + ",".join([*before, '"choices":[' + ",".join(choices) + "]", *after]) + "}",
    MEMBERS,
    st.lists(FIRST_CHOICES, min_size=1, max_size=2),
    MEMBERS,
)


def filled(form: str, text: str, varying: set[int]) -> bytes:
    """`form` with `text` in the places that vary, and "a" in the others."""
    first, *parts = form.split("@")
    texts = [json.dumps(text if place in varying else "a") for place in range(len(parts))]
    return (first + "".join(text + part for text, part in zip(texts, parts, strict=True))).encode()


@given(
    FORMS,
    st.sets(st.integers(0, 4)),
    st.lists(st.sampled_from(["a", "b", "", '"content":"c"', "é"]), min_size=2, max_size=6),
)
@example('{"content":@,"choices":[{"index":0,"delta":{"content" :@}}]}', {0}, ["a", "b"])
@example('{"content":@,"choices":[{"index":0,"delta":{"content" :@}}]}', {1}, ["a", "b"])
@example('{"choices":[{"index":0,"delta":{"\\u0063ontent":@}}],"content":@}', {1}, ["a", "b", "c"])
@example('{"x":{"content" :""},"choices":[{"index":0,"delta":{"content":@}}]}', {0}, [*"abcd"])
@example('{"choices":[{"index":0,"delta":{"x":{"content":@},"content" :@}}]}', {0}, ["a", "b"])
@example('{"choices":[{"index":0,"delta":{"content":@},"delta":{"content" :@}}]}', {0}, ["a", "b"])
@example('{"choices":[{"index":0,"delta":{"content" :@},"message":{"content":@}}]}', {1}, ["a", "b"])
@example('{"choices":[{"index":0,"delta":{"content" :@,"a\\"content":@}}]}', {1}, ["a", "b"])
@example(
    '{"choices":[{"index":0,"delta":{"content" :@}}],"choices":[{"index":0,"delta":{"content":@}}]}', {0}, ["a", "b"]
)
async def test_odd_events_parse_the_same_together_and_alone(form: str, varying: set[int], texts: list[str]) -> None:
    events = [filled(form, text, varying) for text in ["a", *texts]]
    blocks = [b"data: " + data + b"\n\n" for data in events]
    first, *others = blocks
    reads = [first[:9], first[9:], *(b"".join(others[place : place + 2]) for place in range(0, len(others), 2))]
    together, one_by_one = writer(math.inf), writer(math.inf)
    answer = RawAnswer(cast(Reply, Scripted(reads)), Provider("lab", "http://lab"))
    sent, parsed = [], [chunk for data in events for chunk in one_by_one.feed(orjson.loads(data))]
    while (raws := await answer.more()) is not None:
        sent += [chunk for raw in raws for chunk in together.feed(raw)]
    assert as_sent(sent + ending_of(together)) == as_sent(parsed + ending_of(one_by_one))
    assert (together.content(), together.text_bytes) == (one_by_one.content(), one_by_one.text_bytes)


async def test_events_of_one_read_are_returned_together() -> None:
    texts = ["b", "\n", 'with "quotes" and \\', "\u00e9", "\U0001f642", "\u2028"]
    stream = b"".join(event_of(chunk(text, {}, {}, {})) for text in ["a", *texts])
    end = event_of(chunk("", {}, {"finish_reason": "stop"}, {})) + b"data: [DONE]\n\n"
    answer = RawAnswer(cast(Reply, Scripted([stream[:-20], stream[-20:] + end])), Provider("lab", "http://lab"))
    first = await answer.more()
    tokens = [*map(orjson.dumps, texts)]
    assert first == [
        chunk("a", {}, {}, {}),
        TextChunks(texts[:-1], tokens[:-1], "".join(texts[:-1]), chunk("a", {}, {}, {})),
    ]
    second = await answer.more()
    repeated = TextChunks(texts[-1:], tokens[-1:], texts[-1], chunk("a", {}, {}, {}))
    assert second is not None and second[0] == repeated and len(second) == 2
    assert await answer.more() is None
    made = writer(float("inf"))
    written = b"".join(events.blocks([chunk for raw in [*first, *second] for chunk in made.feed(raw)]))
    assert (
        written.isascii() and b'"content":"\\u2028"' in written and made.content()["content"] == "".join(["a", *texts])
    )


async def test_fault_ends_the_answer_after_the_chunks_before_it() -> None:
    def reads() -> Iterator[bytes]:
        yield (
            event_of(chunk("a", {}, {}, {}))
            + b'event: error\ndata: {"message": "overloaded"}\n\n'
            + event_of(chunk("b", {}, {}, {}))
        )
        raise AssertionError("it was read on")

    answer = RawAnswer(cast(Reply, Scripted(reads())), Provider("lab", "http://lab"))
    assert await answer.more() == [chunk("a", {}, {}, {})]
    for _ in range(2):
        with pytest.raises(UpstreamFault, match="error"):
            await answer.more()


@each("form", [b"%b", b"data: %b\n\n"])
@each(
    "raw",
    [
        {"error": {"message": "no"}, "choices": []},
        {"error": "no"},
        {"object": "error", "message": "no", "code": 400, "choices": []},
    ],
)
async def test_an_error_object_is_a_fault(form: bytes, raw: dict[str, Any]) -> None:
    answer = RawAnswer(cast(Reply, Scripted([form % orjson.dumps(raw)])), Provider("lab", "http://lab"))
    with pytest.raises(UpstreamFault) as caught:
        await answer.more()
    assert (caught.value.kind, (caught.value.error or {})["message"]) == ("status", "no")


@each("filler", [b": \n\n", b"data: \n\n", b"\n\n"])
async def test_events_share_the_bytes_of_a_read(filler: bytes) -> None:
    async def seconds(count: int) -> float:
        answer = RawAnswer(cast(Reply, Scripted([b": \n\n", filler * count])), Provider("lab", "http://lab"))
        began = time.thread_time()
        assert await answer.more() is None
        return time.thread_time() - began

    few = min([await seconds(8_000) for _ in range(3)])
    assert await seconds(128_000) < 16 * 5 * few


@each("number", [b"NaN", b"-Infinity", b"1e999", b"-1e999"])
@each("form", [b'{"choices": [], "score": %b}', b'data: {"choices": [], "score": %b}\n\n'])
async def test_nan_and_infinity_are_null(form: bytes, number: bytes) -> None:
    answer = RawAnswer(cast(Reply, Scripted([form % number])), Provider("lab", "http://lab"))
    assert await answer.more() == [{"choices": [], "score": None}]


@each("cut", [1, 3, 9])
async def test_a_byte_order_mark_before_the_first_event_is_skipped(cut: int) -> None:
    data = b"\xef\xbb\xbf" + event_of(chunk("a", {}, {}, {}))
    answer = RawAnswer(cast(Reply, Scripted([data[:cut], data[cut:]])), Provider("lab", "http://lab"))
    assert await answer.more() == [chunk("a", {}, {}, {})]
