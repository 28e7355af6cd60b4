"""JSON of callers: every text and number as it was sent, bounds told before they cost anything, no thread kept waiting."""

import random
import time
import tracemalloc
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.errors import ApiError
from svc.server import json_text
from svc.server.json_text import _values, parse_json

# Pieces of texts: every kind of escape, characters of one to four bytes; then what no text may hold.
GOOD = [
    b"a",
    rb"\\",
    rb"\"",
    rb"\n",
    rb"\u00e9",
    rb"\ud83d\ude00",
    "\u00e9".encode(),
    "\U0001f600".encode(),
    b",",
    b"[",
    b"{",
    rb"\/",
]
BAD = [rb"\ud83d", rb"\u12", b"\x01", b"\xff", rb"\x", b'"']


def test_100_levels_are_taken_and_101_are_not() -> None:
    assert parse_json(b"[" * 100 + b"1" + b"]" * 100)
    with pytest.raises(ApiError, match="100 levels"):
        parse_json(b"[" * 101 + b"]" * 101)


def test_brackets_inside_text_are_no_levels_and_no_values() -> None:
    text = '[{,"\\' * 100_000
    assert parse_json(orjson.dumps({"text": text})) == {"text": text}


def test_a_text_full_of_commas_is_read_as_fast_as_any_other() -> None:
    body = orjson.dumps({"text": ",[{" * 5_000_000})
    began = time.perf_counter()
    assert len(parse_json(body)["text"]) == 15_000_000
    assert time.perf_counter() - began < 2


def test_more_than_100_000_values_are_refused_before_they_take_memory() -> None:
    body = b"[" + b"{}," * 5_000_000 + b"{}]"
    tracemalloc.start()
    with pytest.raises(ApiError, match="100000 values"):
        parse_json(body)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2 * len(body)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(st.characters(codec="utf-8")),
        st.lists,
        max_leaves=50,
    )
)
def test_any_json_value_is_read_as_it_was_written(value: Any) -> None:
    assert parse_json(orjson.dumps(value)) == value


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused_and_never_fail_otherwise(body: bytes) -> None:
    try:
        parse_json(body)
    except ApiError as error:
        assert error.status in (400, 413)


def test_values_are_told_from_what_stands_in_texts_wherever_a_slice_ends() -> None:
    for text in ("\\" * 65_535, "a" + "\\" * 65_535, '"' * 65_535, '\\"' * 30_000, ",[{" * 30_000 + "\\"):
        body = orjson.dumps([text, ",", {text: 1}])
        assert _values(body) == 4 and parse_json(body) == [text, ",", {text: 1}]


def test_long_texts_are_read_in_pieces_exactly_as_they_would_be_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_text, "_LONG_BYTES", 50)
    monkeypatch.setattr(json_text, "_SLICE_BYTES", 16)
    chance = random.Random(1)

    def text() -> bytes:
        pieces = GOOD if chance.random() < 0.9 else GOOD + BAD
        return b'"%b"' % b"".join(chance.choice(pieces) for _ in range(chance.choice([0, 1, 5, 20, 60, 100])))

    outcomes = set()
    for _ in range(3000):
        body = b'{%b:[%b,%b,{"k":%b}],"z":%b}' % tuple(text() for _ in range(5))
        try:
            expected = orjson.loads(body)
        except orjson.JSONDecodeError:
            with pytest.raises(ApiError) as refused:
                parse_json(body)
            assert refused.value.code == "invalid_json"
            outcomes.add("refused")
        else:
            assert parse_json(body) == expected
            outcomes.add("read")
    assert outcomes == {"read", "refused"}
