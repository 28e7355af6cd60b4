"""svc/inference/answer/events.py: one block for each chunk, in ASCII, whatever its text."""

import orjson

from svc.inference.answer import events


def test_an_error_event_is_one_block() -> None:
    assert (
        events.event({"error": {"message": "é\n", "code": None}})
        == b'data: {"error":{"message":"\\u00e9\\n","code":null}}\n\n'
    )
    assert events.DONE == b"data: [DONE]\n\n"


def test_each_of_several_texts_is_a_block() -> None:
    for texts in (["a", "\n", '"', "\u2028", "\U0001f642", "\\"], ["a", "\n", '"', "\\"]):
        (written,) = events.blocks(
            [events.TextChunks(texts, [*map(orjson.dumps, texts)], "".join(texts), {}, b'data: {"text":', b"}\n\n")]
        )
        assert written.isascii()
        assert [
            orjson.loads(block)["text"] for block in written.removesuffix(b"\n\n")[6:].split(b"\n\ndata: ")
        ] == texts


def test_long_chunks_are_split_into_parts() -> None:
    chunk = {"text": "x" * 50_000}
    parts = events.blocks([chunk] * 5)
    assert [part.count(b"data: ") for part in parts] == [2, 2, 1]
