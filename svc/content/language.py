"""The language of a text, guessed from its most common words: its stop words, weak words, stems, and variants of words.

Each language has a paragraph in `stop_words.txt`, `weak_words.txt` and `own_words.txt`. A weak word, such as `year`,
matters only if a text has no others. Own words mean `I` or `my`. English is last: its stop words are often names in
other languages ("Will", "May"), so another language wins if both are as likely.
"""

import sqlite3
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache, partial
from heapq import nlargest
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from os.path import commonprefix
from pathlib import Path
from typing import Any

from svc.content.word_runs import words_beginning
from svc.content.words import folded, is_unspaced

# Unrelated words share shorter beginnings: "car" and "carpet", "plan" and "planet".
_COMMON_BEGINNING = 5
# Shorter words are one letter away from too many others: "rise" and "rice", "honey" and "money".
_LEAST_MISSPELT = 6
_LONG_MISSPELT = 8  # from here on two neighbouring letters may be wrong
_READ = 300  # words with a common beginning, of which the vocabulary of a book has about 50
_SIMILAR_READ = 1_000
_KEPT = 12  # a stem takes 50 microseconds
_CODES = "de fr es it pt nl sv da nb pl ru en"
_LANGUAGES = "german french spanish italian portuguese dutch swedish danish norwegian polish russian english"
_STEMMERS = dict(zip(_CODES.split(), _LANGUAGES.split(), strict=True))


def forms_of(conn: sqlite3.Connection, account_id: str, word: str, stem: Callable[[str], str]) -> list[str]:
    """Return up to 12 words of the account that are forms or compounds of the folded `word`.

    `stem` removes the endings of the question's language.
    """
    if _has_no_variants(word):
        return []
    root = stem(word)
    # A stem may end with another letter than the word: "happi" for "happy".
    beginning = root[: max(3, min(_COMMON_BEGINNING, len(root) - 1))]
    others = words_beginning(conn, account_id, beginning, _READ)
    alike = nlargest(_KEPT, others, key=lambda other: (len(commonprefix((root, other))), -len(other)))  # noqa: RUF071
    return [other for other in alike if other != word and are_forms(word, other, stem)]


def are_forms(one: str, other: str, stem: Callable[[str], str]) -> bool:
    """Return whether two words have one stem, or one of them (or of their stems) is a long prefix of the other."""
    return _begins(one, other) or stem(one) == stem(other) or _begins(stem(one), stem(other))


def _begins(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return len(short) >= _COMMON_BEGINNING and long.startswith(short)


def similar_words(conn: sqlite3.Connection, account_id: str, word: str) -> list[str]:
    """Return up to 12 words of the account that the folded `word` may misspell.

    The first letter must be right, and the second too unless it was swapped with the third or added.
    """
    if _has_no_variants(word) or len(word) < _LEAST_MISSPELT:
        return []
    wrong = 1 if len(word) < _LONG_MISSPELT else 2
    lengths = range(len(word) - wrong, len(word) + wrong + 1)
    return [
        other
        for beginning in dict.fromkeys((word[:2], word[0] + word[2]))
        for other in words_beginning(conn, account_id, beginning, _SIMILAR_READ, lengths)
        if is_similar(word, other)
    ][:_KEPT]


def is_similar(word: str, other: str) -> bool:
    """Return whether the words differ by one letter or by two swapped neighbours.

    In a word of 8 letters or more, any two neighbouring letters may be wrong.
    """
    start = len(commonprefix((word, other)))  # noqa: RUF071 - as is wanted here
    one, two = word[start:][::-1], other[start:][::-1]
    end = len(commonprefix((one, two)))  # noqa: RUF071
    one, two = one[end:], two[end:]
    wrong = max(len(one), len(two))
    return wrong <= 1 or (wrong == 2 and (len(word) >= _LONG_MISSPELT or one == two[::-1]))


def _has_no_variants(word: str) -> bool:
    return is_unspaced(word) or any(sign.isdigit() for sign in word)


@cache
def _listed(name: str) -> dict[str, tuple[str, ...]]:
    """Return the folded words of a file beside this module, each with the languages that list it."""
    found: dict[str, tuple[str, ...]] = {}
    language = ""
    for word in map(folded, (Path(__file__).parent / name).read_text().split()):
        if word.endswith(":"):
            language = word[:-1]
        else:
            found[word] = (*found.get(word, ()), language)
    return found


def _is_listed(name: str, word: str, language: str | None) -> bool:
    languages = _listed(name).get(word, ())
    return bool(languages) if language is None else language in languages


def language_of(words: Iterable[str], least: int = 2) -> str | None:
    """Return the language with the most stop words among these folded words, or None if there are fewer than `least`.

    A single word may be a name or a word of another language: "car" is French for "because".
    """
    stop_words = _listed("stop_words.txt")
    counts = Counter(language for word in words for language in stop_words.get(word, ()))
    language, count = counts.most_common(1)[0] if counts else (None, 0)
    return language if count >= least else None


def is_stop_word(word: str, language: str | None) -> bool:
    """Return whether a folded word is a stop word of `language`, or of any language if that is None."""
    if is_unspaced(word):  # these scripts show the language
        stop_words = _listed("stop_words.txt")
        # A pair with a particle is not a word. Japanese grammar is written in hiragana.
        is_glue = any(sign in stop_words or "\u3040" <= sign <= "\u309f" for sign in word)
        return word in stop_words or (len(word) == 2 and is_glue)
    return _is_listed("stop_words.txt", word, language)


is_weak_word = partial(_is_listed, "weak_words.txt")
is_own_word = partial(_is_listed, "own_words.txt")


def stemmer(language: str | None) -> Callable[[str], str]:
    """Return a function that removes the endings of a folded word in `language`. Without a language it keeps them.

    The function caches its results and must not be shared between threads.
    """
    if language not in _STEMMERS:
        return str
    return cache(_stemmer_class(_STEMMERS[language])().stemWord)


@cache
def _stemmer_class(name: str) -> Any:
    # The package's own __init__ imports 36 languages: 13 ms and 3 MB.
    spec = find_spec("snowballstemmer")
    assert spec is not None
    sys.modules.setdefault("snowballstemmer", module_from_spec(spec))
    return getattr(import_module(f"snowballstemmer.{name}_stemmer"), f"{name.title()}Stemmer")
