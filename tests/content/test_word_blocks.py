"""svc/content/word_blocks.py: lines are packed without loss."""

import random

from hypothesis import given
from hypothesis import strategies as st

from svc.content.word_blocks import packed, unpacked


@given(st.lists(st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=8), min_size=1, max_size=40))
def test_lines_are_packed_without_loss(words: list[str]) -> None:
    lines = sorted(f"{word} {place:010x}" for place, word in enumerate(words))
    assert unpacked(packed(lines))[1:-1].split("\n") == lines


def test_lines_of_one_length_are_smaller() -> None:
    chance = random.Random(1)
    pairs = sorted(
        f"{chr(chance.randrange(0x4E00, 0x4E80))}{chr(chance.randrange(0x4E00, 0x9FA5))}" for _ in range(800)
    )
    lines = [f"{pair} {chance.randrange(128):010x}" for pair in pairs]
    assert len(packed(lines)) < 0.7 * len(packed([*lines, "𠀀" + lines[-1]]))
