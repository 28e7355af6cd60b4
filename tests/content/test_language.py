"""svc/content/language.py: the language of a text, its stop words, and its stems; and the lists in files beside it."""

import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path

from svc.content import language
from svc.content.language import (
    are_forms,
    forms_of,
    is_own_word,
    is_similar,
    is_stop_word,
    is_weak_word,
    kana_nouns,
    language_of,
    languages_of,
    related_words,
    similar_words,
    stemmer,
)
from svc.content.words import folded, words_of
from tests.content.test_history import ada, bob, conn, say  # noqa: F401 - fixtures
from tests.support.cases import each
from tests.test_house import ROOT

LISTS = ("stop_words.txt", "weak_words.txt", "own_words.txt")


@each(
    ("language", "one", "other", "forms"),
    [
        ("en", "allergies", "allergic", True),
        ("en", "allergies", "allergy", True),
        ("en", "running", "runs", True),
        ("en", "reserve", "reservations", True),
        ("de", "termin", "terminplan", True),
        ("de", "gekundigt", "kundigung", True),
        ("de", "angemeldet", "anmelden", True),
        ("de", "gebirge", "birken", False),
        ("en", "loaf", "loaves", True),
        ("es", "luz", "luces", True),
        ("es", "luz", "lucha", False),
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


@each(
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


def test_german_participles_are_looked_up(conn: sqlite3.Connection, ada: str) -> None:  # noqa: F811
    others = " ".join(f"kundik{letter}" for letter in "abcdefghijklmnopqrst")
    say(conn, ada, f"{others} gekündigt angemeldet Geld Geduld")
    assert forms_of(conn, ada, "kundigen", stemmer("de")) == ["gekundigt"]
    assert forms_of(conn, ada, "anmeldung", stemmer("de")) == ["angemeldet"]


def test_words_with_a_long_common_beginning_are_related(conn: sqlite3.Connection, ada: str) -> None:  # noqa: F811
    say(conn, ada, "collapse collapsed colleague kaupassa kaupungit kau 12345 保存方法")
    assert related_words(conn, ada, "collapsing") == ["collapse", "collapsed"]
    assert related_words(conn, ada, "kaupan") == ["kaupassa"]  # Finnish has no stemmer here
    assert (
        related_words(conn, ada, "kau") == related_words(conn, ada, "12346") == related_words(conn, ada, "保存") == []
    )


@each(
    ("text", "likely", "found"),
    [
        ("Corfu ferry", ["en", "de"], ["en", "de"]),
        ("el cambio de pastilla", ["fr", "es"], ["es"]),  # French has "de", too
        ("cambio de pastilla", ["en", "es"], ["es"]),
        ("where is the car", ["fr"], ["en"]),
        ("where is the car", [], ["en"]),
        ("car", [], []),
    ],
)
def test_languages_of_a_short_text_are_those_that_are_likely(text: str, likely: list[str], found: list[str]) -> None:
    assert languages_of(words_of(text), likely) == found


def test_words_in_hiragana_between_blanks_are_nouns() -> None:
    assert list(kana_nouns("りんご 保存", alone=True)) == ["りんご"]
    assert list(kana_nouns("りんご 保存")) == list(kana_nouns("こと 保存です", alone=True)) == []


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


@each(
    ("text", "wanted"),
    [
        ("where is my car", "en"),
        ("wie heißt mein Kind", "de"),
        ("où est la voiture de mon fils", "fr"),
        ("dónde está el coche de mi padre", "es"),
        ("dove sono le chiavi della cantina", "it"),
        ("onde é que guardei a chave", "pt"),
        ("waar staat de fiets van mijn oma", "nl"),
        ("var ligger nyckeln till båten", "sv"),
        ("gdzie jest klucz do garażu", "pl"),
        ("где лежит ключ от гаража", "ru"),
        ("我的猫几岁了", "zh"),
        ("うちの猫は何歳ですか", "ja"),
        ("car insurance", None),  # one word of a language may be a name or another language's word
        ("", None),
    ],
)
def test_language_has_the_most_stop_words(text: str, wanted: str | None) -> None:
    assert language_of(dict.fromkeys(words_of(text))) == wanted


def test_one_stop_word_is_a_guess() -> None:
    assert language_of(["car", "insurance"]) is None and language_of(["car", "insurance"], 1) == "fr"
    assert language_of(["zebra"], 1) is None


def test_stop_words_apply_only_to_their_language() -> None:
    for word, own in {"car": "fr", "son": "fr", "ben": "nl", "kind": "en", "war": "de"}.items():
        assert is_stop_word(word, own) and is_stop_word(word, None)
        assert not is_stop_word(word, "sv")
    assert is_weak_word("name", "en") and not is_weak_word("name", "fr")
    assert is_own_word("mi", "es") and not is_own_word("mi", "it")  # "my" and "me"


def test_most_common_words_of_many_languages_are_stop_words() -> None:
    for text in ("what is the", "was ist das", "qu est ce que", "qué es el", "что это такое", "这是什么"):
        assert all(is_stop_word(word, None) for word in words_of(text) if len(word) > 1), text
    assert not any(is_stop_word(word, None) for word in words_of("zebra Hund perro собака"))


@each(
    ("name", "words"),
    [
        ("en", "reserve reservation reserved"),
        ("de", "kundigung kundigungen"),
        ("fr", "allergie allergies"),
        ("es", "habitacion habitaciones"),
        ("ru", "зубной зубного"),
        ("sv", "bilar bilen"),
    ],
)
def test_forms_of_a_word_have_one_stem(name: str, words: str) -> None:
    assert len({stemmer(name)(folded(word)) for word in words.split()}) == 1


def listed_words(name: str) -> list[tuple[str, list[str]]]:
    """Return the languages of a list, each with its words."""
    found: list[tuple[str, list[str]]] = []
    for word in (Path(language.__file__).parent / name).read_text().split():
        if word.endswith(":"):
            found.append((word[:-1], []))
        else:
            found[-1][1].append(folded(word))
    return found


def test_every_language_with_endings_has_a_stemmer() -> None:
    for name in sorted({name for name, _ in listed_words("stop_words.txt")} - {"zh", "ja", "ko"}):
        assert stemmer(name)("xylophones"), name
    assert stemmer("zh")("xylophones") == stemmer(None)("xylophones") == "xylophones"


@each("name", LISTS)
def test_stop_words_are_unique_per_language(name: str) -> None:
    languages = [code for code, _ in listed_words(name)]
    assert sorted(languages) == sorted(set(languages)) and languages[-1] == "en"
    for code, words in listed_words(name):
        twice = [word for word, times in Counter(words).items() if times > 1]
        assert twice == [], f"these stand twice in {code}"


def test_only_used_stemmers_are_imported() -> None:
    program = "import sys; from svc.content.language import stemmer; stemmer('de'); stemmer('fr'); print(*sys.modules)"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True)
    imported = {name for name in answer.stdout.split() if name.endswith("_stemmer")}
    assert imported == {"snowballstemmer.german_stemmer", "snowballstemmer.french_stemmer"}
