"""The helper process of speech recognition: pieces of long audio, and their times."""

from types import SimpleNamespace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from svc.builtin.hear import quiet_pieces, segment_of

RATE = 16_000


@given(st.integers(0, 400), st.integers(0, 2**32 - 1))
def test_pieces_are_the_whole_audio_and_have_at_most_two_minutes(seconds: int, seed: int) -> None:
    sound = np.random.default_rng(seed).integers(-30_000, 30_000, seconds * 100, dtype=np.int16).repeat(160)
    pieces = list(quiet_pieces(sound))
    assert np.array_equal(np.concatenate([piece for _, piece in pieces]), sound)
    assert [first for first, _ in pieces] == [sum(len(piece) for _, piece in pieces[:n]) for n in range(len(pieces))]
    assert all(len(piece) <= 120 * RATE for _, piece in pieces)
    assert all(len(piece) >= 110 * RATE for _, piece in pieces[:-1])


def test_piece_ends_where_it_is_quiet() -> None:
    sound = np.full(200 * RATE, 9_000, np.int16)
    sound[115 * RATE : 115 * RATE + RATE // 2] = 0
    (_, first), _ = quiet_pieces(sound)
    assert 115 <= len(first) / RATE <= 115.5


def test_times_of_a_piece_begin_where_it_does() -> None:
    word = SimpleNamespace(word=" Hi", start=0.5, end=1.0)
    segment = SimpleNamespace(
        seek=10, start=0.5, end=1.5, text=" Hi", tokens=[1], temperature=0.0, avg_logprob=-0.1, compression_ratio=1.0,
        no_speech_prob=0.0, words=[word],
    )  # fmt: skip
    line = segment_of(segment, 118.5)
    assert (line["seek"], line["start"], line["end"]) == (11_860, 119.0, 120.0)
    assert line["words"] == [{"word": "Hi", "start": 119.0, "end": 119.5}]
