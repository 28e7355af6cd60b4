"""svc/content/words.py: words of any script, forms, misspellings, and no text that takes long."""

import time

import pytest

from svc.content.words import are_forms, folded, is_near, is_stop_word, places_of, words_of


@pytest.mark.parametrize(
    ("one", "other", "forms"),
    [
        ("allergies", "allergic", True),
        ("allergies", "allergy", True),
        ("running", "runs", True),
        ("reserve", "reservations", True),
        ("termin", "terminplan", True),
        ("кошка", "кошку", True),
        ("internal", "interest", False),
        ("dog", "dogma", False),
    ],
)
def test_forms_of_a_word_are_known(one: str, other: str, forms: bool) -> None:
    assert are_forms(one, other) is are_forms(other, one) is forms


@pytest.mark.parametrize(
    ("one", "other", "near"),
    [
        ("castelano", "castellano", True),
        ("recieve", "receive", True),
        ("zahnartzt", "zahnarzt", True),
        ("house", "horse", True),
        ("cat", "car", False),
        ("lemon", "melon", False),
        ("item2019", "item2018", False),
    ],
)
def test_misspellings_are_known_in_words_of_four_letters_and_more(one: str, other: str, near: bool) -> None:
    assert is_near(one, other) is is_near(other, one) is near


def test_the_commonest_words_of_many_languages_tell_nothing() -> None:
    for text in ("what is the", "was ist das", "qu'est ce que", "qué es el", "что это такое", "这是什么"):
        assert all(is_stop_word(word) for word in words_of(text)), text
    assert not any(is_stop_word(word) for word in words_of("zebra Hund perro собака"))


@pytest.mark.parametrize("mark", ["\u0301", "\u0323\u0301", "\u05b0", "\u20d0", "\u0e47"])
def test_runs_of_marks_take_linear_time(mark: str) -> None:
    began = time.thread_time()
    folded("e" + mark * 500_000)
    assert time.thread_time() - began < 1


def test_places_are_told_in_the_text_as_it_was_typed() -> None:
    text = "Zürich, ZURICH and zu\u0308rich"
    assert [text[start:end] for start, end in places_of(text, {"zurich"})] == ["Zürich", "ZURICH", "zu\u0308rich"]
    assert [("x 海鲜")[start:end] for start, end in places_of("x 海鲜", {"海", "鲜", "海鲜"})] == ["海鲜"]
