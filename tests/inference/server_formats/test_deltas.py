"""svc/inference/server_formats/deltas.py: deltas of one text that come in one read."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from svc.inference.answer.chunk_writer import ChunkWriter
from svc.inference.server_formats.answer import reader_of
from svc.inference.server_formats.deltas import JoinedDeltas
from tests.support.format_events import Said, events_of
from tests.support.format_server import cassette, cassettes

REQUEST = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
PLAYED = [
    (api, cassette(name)[api]["events"])
    for name in cassettes()
    for api in ("responses", "messages")
    if "events" in cassette(name).get(api, {}) and "error" not in name
]


def answer_of(api: str, reads: list[list[dict[str, Any]]], stops: list[str], joined: bool) -> dict[str, Any]:
    reader, writer = reader_of(api, stops), ChunkWriter("id", 1, "m", REQUEST)
    writer.whole = True
    deltas = JoinedDeltas(reader)
    for read in reads:
        for event in read:
            if joined:
                deltas.add(event)
            elif not reader.ended:
                for chunk in reader.chunks(event):
                    writer.feed(chunk)
        for chunk in deltas.taken():
            writer.feed(chunk)
    return writer.answer()[0]


@given(st.sampled_from(PLAYED), st.lists(st.integers(1, 9), max_size=9))
def test_answer_is_the_same_however_its_events_come(played: tuple[str, list[dict[str, Any]]], sizes: list[int]) -> None:
    api, events = played
    cuts = [sum(sizes[:number]) for number in range(len(sizes) + 1)]
    reads = [events[start:end] for start, end in zip(cuts, [*cuts[1:], None], strict=True)]
    assert answer_of(api, reads, [], True) == answer_of(api, [events], [], False)


@given(st.integers(1, 9), st.integers(1, 6))
def test_stop_sequence_is_found_in_joined_deltas(size: int, piece: int) -> None:
    events = events_of("responses", Said([{"text": "one, two, three"}], piece=piece), "m")
    reads = [events[start : start + size] for start in range(0, len(events), size)]
    (choice,) = answer_of("responses", reads, ["two"], True)["choices"]
    assert (choice["message"]["content"], choice["stop_reason"]) == ("one, ", "two")


def test_deltas_of_one_text_are_one_chunk() -> None:
    deltas = JoinedDeltas(reader_of("messages"))
    for text in ("a", "b", "c"):
        deltas.add({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}})
    (chunk,) = deltas.taken()
    assert chunk["choices"][0]["delta"] == {"content": "abc"} and deltas.taken() == []
