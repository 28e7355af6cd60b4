"""JSON of callers: texts and numbers are unchanged, limits are checked first, and no thread is blocked."""

import json
import random
import time
import tracemalloc
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc import json_text
from svc.errors import ApiError
from svc.json_text import AT_ONCE_BYTES, has_more_values, parse_json
from tests.support.cases import each
from tests.support.turns import waited_for_less_than_50_ms

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


def test_100_levels_are_accepted_and_101_refused() -> None:
    assert parse_json(b"[" * 100 + b"1" + b"]" * 100)
    with pytest.raises(ApiError, match="100 levels"):
        parse_json(b"[" * 101 + b"]" * 101)


def test_brackets_in_strings_do_not_count_as_levels_or_values() -> None:
    text = '[{,"\\' * 100_000
    assert parse_json(orjson.dumps({"text": text})) == {"text": text}


def test_string_full_of_commas_is_parsed_as_fast() -> None:
    body = orjson.dumps({"text": ",[{" * 5_000_000})
    began = time.thread_time()
    assert len(parse_json(body)["text"]) == 15_000_000
    assert time.thread_time() - began < 2


def test_over_100_000_values_are_refused_without_memory() -> None:
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
def test_json_values_round_trip(value: Any) -> None:
    assert parse_json(orjson.dumps(value)) == value


@given(st.binary(max_size=200))
def test_any_bytes_are_parsed_or_refused(body: bytes) -> None:
    try:
        parse_json(body)
    except ApiError as error:
        assert error.status in (400, 413)


def test_commas_in_strings_do_not_count_as_values_at_slice_ends() -> None:
    for text in ("\\" * 65_535, "a" + "\\" * 65_535, '"' * 65_535, '\\"' * 30_000, ",[{" * 30_000 + "\\"):
        body = orjson.dumps([text, ",", {text: 1}])
        assert has_more_values(body, 3) and not has_more_values(body, 4)
        assert parse_json(body) == [text, ",", {text: 1}]


def test_long_strings_parse_the_same_in_slices() -> None:
    """A slice has 64 KiB: the pieces of each text are around the end of one."""
    chance = random.Random(1)

    def text(is_long: bool) -> bytes:
        pieces = GOOD if chance.random() < 0.9 else GOOD + BAD
        filler = b"x" * (chance.choice([1, 1, 2]) * AT_ONCE_BYTES - chance.randrange(-3, 60) if is_long else 0)
        return b'"%b%b"' % (filler, b"".join(chance.choice(pieces) for _ in range(chance.choice([0, 1, 5, 20, 60]))))

    outcomes = set()
    for _ in range(300):
        body = b'{%b:[%b,%b,{"k":%b}],"z":%b}' % tuple(text(chance.random() < 0.4) for _ in range(5))
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


@each("digits", [18, 19, 20, 308, 309, 310, 1000, 1001, 70_000])
@each("sign", ["", "-"])
def test_integer_of_1000_digits_is_unchanged(digits: int, sign: str) -> None:
    number = sign + "7" * digits
    body = b'{"before": "%b", "n": %b, "f": 1.5}' % (b"x" * (65_536 - 30), number.encode())
    if digits > 1000:
        with pytest.raises(ApiError, match="1000 digits"):
            parse_json(body)
        return
    assert (found := parse_json(body))["n"] == int(number) and found["f"] == 1.5


@each(
    "text",
    [
        *(
            "[NaN, LONG]",
            "[Infinity, LONG]",
            '"\\ud800LONG"',
            "0LONG",
            "-LONG-",
            "1eLONG",
            "HUGE.5",
            "[LONG",
            '"\xffLONG"',
        ),
        *("[" * 1000 + "LONG" + "]" * 1000, "\u00ef\u00bb\u00bfLONG", "LONG LONG"),
    ],
)
def test_long_integers_allow_no_other_deviation(text: str) -> None:
    with pytest.raises(ApiError) as refused:
        parse_json(text.replace("LONG", "9" * 30).replace("HUGE", "9" * 400).encode("latin-1"))
    assert refused.value.code == "invalid_json"


def test_digits_in_strings_and_escapes_are_unchanged() -> None:
    text = "\u00e91234567890123456789012345 "
    for body in (json.dumps([text]), '["\\u0031' + "9" * 100_000 + '"]'):
        assert parse_json(body.encode()) == json.loads(body)


def test_long_texts_round_trip() -> None:
    for text in ("x" * 200_000, "\n" * 200_000, '\U0001f642\\"' * 40_000, "é" * 65_536 + "\x01"):
        value = {"a": [text, {"b": text}, 1, None, True, 0.5, 10**400], text[:70_000]: ""}
        assert json.loads(json_text.dumps(value)) == value
        del value["a"][-1]  # type: ignore[attr-defined]
        assert json_text.loads(orjson.dumps(value)) == value == orjson.loads(json_text.dumps(value))
    with pytest.raises(orjson.JSONDecodeError):
        json_text.loads(b'{"a": "' + b"x" * 200_000)


@each("text", ["\n" * 8_000_000, "\u00e9" * 7_000_000, "\x01" * 2_000_000])
def test_serializing_a_long_string_does_not_block_threads(text: str) -> None:
    assert orjson.loads(waited_for_less_than_50_ms(lambda: json_text.dumps([text]))) == [text]


def test_parsing_many_short_strings_does_not_block_threads() -> None:
    texts = [b"\\n" * 60 + b"%d" % number for number in range(40_000)]
    body = b'{"list":["%b"],%b,"end":1}' % (
        b'","'.join(texts),
        b",".join(b'"%b":%d' % (b"k" * 70, n) for n in range(2)),
    )
    value = waited_for_less_than_50_ms(lambda: parse_json(body))
    assert value == orjson.loads(body) and list(value) == ["list", "k" * 70, "end"]


def test_parsing_an_unterminated_string_does_not_block_threads() -> None:
    body = b'{"data":[{"b64_json":"' + b"A" * (47 * 1024 * 1024)
    with pytest.raises(orjson.JSONDecodeError, match="unexpected end"):
        waited_for_less_than_50_ms(lambda: json_text.loads(body))
