"""Server-sent events: the grammar, however the bytes are split, within a limit and in linear time."""

import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.outbound.errors import TooLarge
from svc.outbound.event_stream import EventReader, parse_event
from tests.support.cases import each


def events_of(reader: EventReader, data: bytes | None) -> list[bytes]:
    """Feed `data`, or None for the end, and return the events that end with it."""
    if data is None:
        reader.end()
    else:
        reader.feed(data)
    found = []
    while reader.place < len(reader.text):
        if (event := reader.next_event()) is not None:
            found.append(event)
    return found


def read(data: bytes, cuts: list[int] | None = None, limit_bytes: int = 1000) -> list[tuple[bytes, bytes]]:
    reader = EventReader(limit_bytes)
    edges = sorted({0, len(data), *(cut for cut in cuts or [] if cut < len(data))})
    found = [event for start, end in itertools.pairwise(edges) for event in events_of(reader, data[start:end])]
    found += events_of(reader, None)
    return [event for event in map(parse_event, found) if event is not None]


def events(data: bytes, cuts: list[int] | None = None, limit_bytes: int = 1000) -> list[bytes]:
    return [data for _, data in read(data, cuts, limit_bytes)]


@each(
    ("stream", "expected"),
    [
        (b"data: a\n\ndata: b\n\n", [b"a", b"b"]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [b"a", b"b"]),
        (b"data: a\r\rdata: b\r\r", [b"a", b"b"]),
        (b"data: a\r\n\ndata: b\n\r\n", [b"a", b"b"]),
        (b"data: a\ndata: b\n\n", [b"a\nb"]),
        (b"data:a\n\ndata:  a\n\n", [b"a", b" a"]),
        (b"data\n\ndata:\n\ndata: \n\n", [b"", b"", b""]),
        (b"data\ndata\n\n", [b"\n"]),
        (b": ping\n\nevent: x\nid: 1\nretry: 5\n\ndata: a\nevent: y\n\n", [b"a"]),
        (b":data: a\n\ndatax: a\n\nDATA: a\n\n data: a\n\nxdata: a\n\n", []),
        (b"\xef\xbb\xbfdata: a\n\n", []),  # svc/inference/answer/raw_answer.py strips it
        ("data: a\u2028b\u0085c\x0bd\x0ce\x1cf\x00g\n\n".encode(), ["a\u2028b\u0085c\x0bd\x0ce\x1cf\x00g".encode()]),
        (b"data: a: b\n\n", [b"a: b"]),
        (b"\n\n\r\r\n\ndata: a\n\n\n\n", [b"a"]),
        (b"data: a", [b"a"]),
        (b"data: a\n", [b"a"]),
        (b"data: a\r", [b"a"]),
        (b"data: a\n\ndata: [DONE]", [b"a", b"[DONE]"]),
        (b"data: a\r\ndata: b\r", [b"a\nb"]),
        (b"", []),
        (b"\xef\xbb\xbf", []),
        (b": ping", []),
    ],
)
def test_events_follow_the_grammar(stream: bytes, expected: list[bytes]) -> None:
    assert events(stream) == expected
    assert events(stream, list(range(len(stream)))) == expected


tokens = st.sampled_from(
    [
        b"data",
        b"data: ",
        b"data:",
        b": x",
        b"id: 1",
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b"\xef\xbb\xbf",
        b" ",
        b"abc",
        b"\xe2\x80\xa8",
    ]
)


@given(st.lists(tokens, max_size=30).map(b"".join), st.lists(st.integers(0, 120), max_size=12))
def test_events_are_the_same_for_any_split_of_bytes(stream: bytes, cuts: list[int]) -> None:
    assert read(stream) == read(stream, cuts)


@given(
    st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"])).map(str.encode), max_size=5)
)
def test_text_without_line_ends_is_unchanged(texts: list[bytes]) -> None:
    stream = b"".join(b"data: %b\n\n" % text for text in texts)
    assert events(stream, limit_bytes=10**6) == texts


@each("line", [b"data: ", b": ", b"other: "])
def test_line_over_the_limit_is_refused_before_its_end(line: bytes) -> None:
    reader = EventReader(1000)
    assert events_of(reader, b"data: first\n\n" + line) == [b"data: first"]
    with pytest.raises(TooLarge):
        for _ in range(12):
            assert events_of(reader, b"x" * 100) == []


@each(
    ("stream", "expected"),
    [
        (b"event: error\ndata: {}\n\ndata: a\n\n", [(b"error", b"{}"), (b"", b"a")]),
        (b"data: {}\nevent: error\n\n", [(b"error", b"{}")]),
        (b"event: error\n\ndata: a\n\n", [(b"", b"a")]),
        (b'data: a\n\nerror: {"code": 500}\n\n', [(b"", b"a"), (b"error", b'{"code": 500}')]),
        (b'error: {"code": 500}', [(b"error", b'{"code": 500}')]),
    ],
)
def test_an_event_has_its_name_and_llama_cpps_error_line_is_one(
    stream: bytes, expected: list[tuple[bytes, bytes]]
) -> None:
    assert read(stream) == expected
    assert read(stream, list(range(len(stream)))) == expected


def test_an_event_over_the_limit_is_refused() -> None:
    assert events(b"data: " + b"x" * 994 + b"\n\n") == [b"x" * 994]
    for line in (b": ", b"id: ", b"data: "):
        with pytest.raises(TooLarge):
            events(line + b"x" * 1000 + b"\n\n")
    with pytest.raises(TooLarge):
        events(b"data: abc\n" * 300 + b"\n")
    with pytest.raises(TooLarge):
        events(b"data\n" * 1002 + b"\n")


def test_reader_is_linear_in_a_long_line() -> None:
    def seconds(size: int, piece: int) -> float:
        started = time.process_time()
        reader = EventReader(64 << 20)
        events_of(reader, b"data: ")
        for _ in range(size // piece):
            events_of(reader, b"x" * piece)
        assert [len(event) for event in events_of(reader, None)] == [len("data: ") + size]
        return time.process_time() - started

    small = min(seconds(50_000, 1) for _ in range(3))
    assert seconds(400_000, 1) < 8 * small * 4  # a quadratic reader takes 64 times as long
    assert seconds(32 << 20, 4096) < 3
