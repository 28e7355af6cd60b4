"""svc/content/variants.py: the forms of a word and what it misspells, among the words that an account has used."""

import sqlite3

import pytest

from svc.content.language import stemmer
from svc.content.variants import are_forms, forms_of, is_similar, similar_words
from tests.content.test_history import ada, bob, conn, say  # noqa: F401 - fixtures


@pytest.mark.parametrize(
    ("language", "one", "other", "forms"),
    [
        ("en", "allergies", "allergic", True),
        ("en", "allergies", "allergy", True),
        ("en", "running", "runs", True),
        ("en", "reserve", "reservations", True),
        ("de", "termin", "terminplan", True),
        ("ru", "кошка", "кошку", True),
        ("nl", "katten", "kat", True),
        ("sv", "nyckel", "nyckeln", True),
        (None, "zahnarzt", "zahnarzttermin", True),
        ("en", "internal", "interest", False),
        ("en", "dog", "dogma", False),
        ("en", "plan", "planet", False),
    ],
)
def test_forms_of_a_word_are_known(language: str | None, one: str, other: str, forms: bool) -> None:
    stem = stemmer(language)
    assert are_forms(one, other, stem) is are_forms(other, one, stem) is forms


@pytest.mark.parametrize(
    ("word", "other", "near"),
    [
        ("castelano", "castellano", True),
        ("recieve", "receive", True),
        ("zahnartzt", "zahnarzt", True),
        ("photografer", "photographer", True),  # two neighbouring letters, in a long word
        ("tommorow", "tomorrow", True),
        ("horses", "houses", True),
        ("planets", "planks", False),
        ("stapler", "stamped", False),
    ],
)
def test_a_misspelling_differs_in_one_place(word: str, other: str, near: bool) -> None:
    assert is_similar(word, other) is near


def test_forms_are_looked_up_among_the_words_of_the_account(
    conn: sqlite3.Connection,  # noqa: F811
    ada: str,  # noqa: F811
    bob: str,  # noqa: F811
) -> None:
    say(conn, ada, "happiness, a happy zebra, allergic zebras and cats")
    say(conn, bob, "zebra-like")
    stem = stemmer("en")
    assert forms_of(conn, ada, "zebra", stem) == ["zebras"]  # not the word itself
    assert forms_of(conn, ada, "allergies", stem) == ["allergic"]
    assert forms_of(conn, ada, "happy", stem) == ["happiness"] and forms_of(conn, ada, "happiness", stem) == ["happy"]
    assert forms_of(conn, ada, "cat", stem) == ["cats"]
    assert forms_of(conn, bob, "zebras", stem) == ["zebra"] and forms_of(conn, bob, "cat", stem) == []


def test_a_misspelt_word_is_looked_up_among_the_words_of_the_account(
    conn: sqlite3.Connection,  # noqa: F811
    ada: str,  # noqa: F811
    bob: str,  # noqa: F811
) -> None:
    say(conn, ada, "the restaurant sells cilantro, rice and model b747abc")
    for word in ("restuarant", "restauran", "restaurants", "rstaurant"):
        assert similar_words(conn, ada, word) == ([] if word == "rstaurant" else ["restaurant"]), word
    assert similar_words(conn, ada, "cliantro") == ["cilantro"]  # the second letter, swapped with the third
    for word in ("rise", "model", "zeppelin", "b748abc"):  # short ones, and numbers, misspell nothing
        assert similar_words(conn, ada, word) == []
    assert similar_words(conn, bob, "restuarant") == []
