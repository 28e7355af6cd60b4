"""svc/inference/answer/repeats.py: what is no plain repeat is left to the parser; test_raw_answer.py plays whole streams."""

import json
import re
from typing import Any

import orjson

from svc.inference.answer.events import TextChunks
from svc.inference.answer.repeats import Repeats
from tests.support.cases import each


def chunk(text: str, extra: dict[str, Any], choice: dict[str, Any], delta: dict[str, Any]) -> dict[str, Any]:
    return {"id": "1", "choices": [{"index": 0, **choice, "delta": {**delta, "content": text}}], **extra}


def event_of(raw: dict[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(raw)


def found_in(repeats: Repeats, events: list[bytes], start: int = 0) -> tuple[TextChunks, list[bytes]] | None:
    """Return the repeats among `events` from `start` on, and the events after them."""
    place = sum(len(event) + 2 for event in events[:start])
    text = b"".join(event + b"\n\n" for event in events)
    found = repeats.find(text, place)
    return None if found is None else (found[0], text[found[1] :].split(b"\n\n")[:-1])


@each(
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
        b'{"id":"1","choices":[{"index":0,"delta":{"content":""}}]}',
        b'{"id":"1","choices":[{"index":0,"delta":{"content":}}]}',
        b'{"id":"1","choices":[{"index":0,"delta":{"content":my-secret-key}}]}',
        b'{"id":"1","choices":[{"index":0,"delta":{"content":"my-secret-key"}}]}',
        b'{"id":"1","choices":[{"index":0,"delta":{"content":"my\\u002dsecret-key"}}]}',
    ],
)
def test_events_that_differ_elsewhere_or_contain_the_secret_are_not_repeats(data: bytes) -> None:
    repeats, first = Repeats("my-secret-key"), chunk("a", {}, {}, {})
    repeats.learn(event_of(first), first)
    assert found_in(repeats, [event_of(first)]) == (TextChunks(["a"], [b'"a"'], "a", first), [])
    assert found_in(repeats, [b"data: " + data]) is None


@each(
    "data",
    [
        b'{"content":"a","choices":[{"index":0,"delta":{"content" :"a"}}]}',
        b'{"choices":[{"index":0,"delta":{"content" :"a"},"message":{"content":"a"}}]}',
        b'{"choices":[{"index":0,"delta":{"\\u0063ontent":"a","x":{"content":"a"}}}]}',
        b'{"choices":[{"index":0,"delta":{"content" :"a","a\\"content":"a"}}]}',
        b'{"choices":[{"index":0,"delta":{"content":"b","content" :"a"}}]}',
        b'{"choices":[{"index":0,"delta":{"content":"a"},"message":{"content":"a"}}]}',  # in two places
        b'{"choices":[{"index":0,"delta":{"content":"a"},"x":{"content":""}}]}',
        b'{"choices":[{"index":0,"delta":{"content" :"a"}}]}',  # in none
        b'{"choices":[{"index":0,"delta":{"content" :"a","a\\"content":""}}]}',
        b'{"choices":[{"index":0,"delta":{"content":"a"}},{"index":1,"delta":{}}]}',
    ],
)
def test_event_with_other_content_is_not_a_repeat(data: bytes) -> None:
    repeats = Repeats(None)
    repeats.learn(b"data: " + data, orjson.loads(data))
    other = re.sub(rb'("content":)"\w*"', rb'\1"b"', data)
    assert found_in(repeats, [b"data: " + data]) is None and found_in(repeats, [b"data: " + other]) is None


@each(
    "other",
    [
        chunk("", {}, {"finish_reason": "stop"}, {}),
        chunk("c", {"id": "2"}, {}, {}),
        chunk("c", {}, {}, {"role": "assistant"}),
        {"id": "1", "choices": [], "usage": {"prompt_tokens": 1}},
    ],
)
@each("separators", [(",", ":"), (", ", ": ")])
@each("texts", [["b"], ["b", '"content":', "d"]])
def test_repeats_end_at_another_event(other: dict[str, Any], separators: tuple[str, str], texts: list[str]) -> None:
    def written(raw: dict[str, Any]) -> bytes:
        return json.dumps(raw, separators=separators).encode()

    repeats, first = Repeats(None), chunk("a", {}, {}, {})
    repeats.learn(b"data: " + written(first), first)
    repeated = [b"data: " + written(chunk(text, {}, {}, {})) for text in texts]
    tokens = [json.dumps(text).encode() for text in texts]
    for rest in (
        [],
        [b"data: " + written(other), *repeated],
        [b"data: " + written(first)[:-3]],
        [b": ping", *repeated],
    ):
        expected = TextChunks(texts, tokens, "".join(texts), first), rest
        assert found_in(repeats, [*repeated, *rest]) == expected
        assert found_in(repeats, [b": ping", *repeated, *rest], 1) == expected


def test_events_that_are_valid_only_together_are_not_repeats() -> None:
    repeats, first = Repeats(None), chunk("a", {}, {}, {})
    repeats.learn(event_of(first), first)
    before, after = event_of(first).split(b'"a"')
    for parts in (
        [b'"a', b'b"', b'"c","d"'],
        [b'"c","d"'],
        [b'["x"', b'"y"]'],
        [b'"a","b"', b""],
        [b'"a"\n'],
        [b'"a\tb"'],
    ):
        assert found_in(repeats, [before + part + after for part in parts]) is None


def test_comparison_stops_in_a_stream_without_repeats() -> None:
    repeats = Repeats(None)
    for number in range(100):
        raw = chunk("a", {"obfuscation": str(number)}, {}, {})
        assert found_in(repeats, [event_of(raw)]) is None
        repeats.learn(event_of(raw), raw)
    assert found_in(repeats, [event_of(raw)]) is None
