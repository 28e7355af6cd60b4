"""svc/inference/repeats.py: an event that repeats the one before it is read as if it had been parsed."""

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from svc.inference import wire
from svc.inference.repeats import Repeat, Repeats

HEAD = {"id": "chatcmpl-x", "created": 1_790_000_000, "model": "here/it"}
SECRET = "svc-secret-0123"
TEXTS = st.text(max_size=8) | st.sampled_from(["", '"', "\\", '"content":', "[DONE]", "é", "\U0001f642", "x" * 70_000, SECRET])
EXTRAS = st.sampled_from([{}, {"system_fingerprint": "fp"}, {"usage": None}, {"usage": {"prompt_tokens": 3}}, {"model": "other"}])
CHOICES = st.sampled_from(
    [
        *({}, {"logprobs": None}, {"logprobs": {"content": [{"token": "a"}]}}, {"finish_reason": None}, {"index": 1}),
        *({"finish_reason": "stop"}, {"stop_reason": 7}),
    ]
)
DELTAS = st.sampled_from([{}, {"role": "assistant"}, {"reasoning_content": "hm"}, {"token_ids": [1]}, {"refusal": None}])


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


def writer(choice_bytes: float) -> wire.ChunkWriter:
    made = wire.ChunkWriter(**HEAD, include_usage=False, request={"messages": []})
    made.choice_bytes = choice_bytes
    return made


@settings(max_examples=300, deadline=None)
@given(STREAMS, st.sampled_from([float("inf"), 5]))
def test_a_stream_reads_the_same_whether_its_repeats_are_found_or_not(stream: list[dict[str, Any]], choice_bytes: float) -> None:
    repeats, with_repeats, without = Repeats(SECRET.encode()), writer(choice_bytes), writer(choice_bytes)
    for raw in stream:
        data = orjson.dumps(raw)
        found = repeats.find(data)
        if found is None:
            repeats.learn(data, raw)
        else:
            assert found.whole() == raw
        assert with_repeats.feed(found or raw) == without.feed(raw)
    assert (with_repeats.content(), with_repeats.usage) == (without.content(), without.usage)
    assert with_repeats.text_bytes == without.text_bytes and with_repeats.finished == without.finished


def test_an_ordinary_stream_is_parsed_once() -> None:
    repeats, first = Repeats(None), chunk("a", {}, {}, {})
    repeats.learn(orjson.dumps(first), first)
    for text in ("b", "", "\n", 'with "quotes" and \\', "é"):
        assert repeats.find(orjson.dumps(chunk(text, {}, {}, {}))) == Repeat(first, text)


@pytest.mark.parametrize(
    "data",
    [
        b'{"id":"1","choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"stop"}]}',
        b'{"id":"1","choices":[{"index":0,"delta":{"content":"b","role":"x"}}]}',
        b'{"id":"1","choices":[{"index":0,"delta":{"content":null}}]}',
        b'{"id":"1","choices":[{"index":0,"delta":{"content":7}}]}',
        b'{"id":"1","choices":[{"index":0,"delta":{"content":"a","content":"b"}}]}',
        b'{"id":"1","choices":[{"index":0,"delta":{"content":"\xff"}}]}',
        b'{"id":"1","choices":[{"index":0,"delta":{"content":"\\ud83d"}}]}',
        b'{"id":"1","choices":[{"index":0,"delta":{"content":""}',
        b'{"id":"1","choices":[{"index":0,"delta":{"content":}}]}',
        b'{"id":"1","choices":[{"index":0,"delta":{"content":my-secret-key}}]}',
        b'{"id":"1","choices":[{"index":0,"delta":{"content":"my-secret-key"}}]}',
        b'{"id":"1","choices":[{"index":0,"delta":{"content":"my\\u002dsecret-key"}}]}',
    ],
)
def test_what_differs_in_anything_else_or_may_hold_the_secret_is_left_to_the_parser(data: bytes) -> None:
    repeats, first = Repeats(b"my-secret-key"), chunk("a", {}, {}, {})
    repeats.learn(orjson.dumps(first), first)
    assert repeats.find(data) is None


def test_a_stream_that_never_repeats_itself_is_soon_looked_at_no_more() -> None:
    repeats = Repeats(None)
    for number in range(100):
        raw = chunk("a", {"obfuscation": str(number)}, {}, {})
        assert repeats.find(orjson.dumps(raw)) is None
        repeats.learn(orjson.dumps(raw), raw)
    assert repeats.find(orjson.dumps(raw)) is None
