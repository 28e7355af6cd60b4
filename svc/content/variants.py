"""Find variants of a word in an account's messages: its other forms, or the words that it misspells."""

import sqlite3
from collections.abc import Callable
from heapq import nlargest
from itertools import islice
from os.path import commonprefix

from svc.content.word_runs import words_beginning
from svc.content.words import is_unspaced

# Unrelated words share shorter beginnings: "car" and "carpet", "plan" and "planet".
_COMMON_BEGINNING = 5
# Shorter words are one letter away from too many others: "rise" and "rice", "honey" and "money".
_LEAST_MISSPELT = 6
_LONG_MISSPELT = 8  # from here on two neighbouring letters may be wrong
_READ = 300  # words with a common beginning, of which the vocabulary of a book has about 50
_SIMILAR_READ = 1_000
_KEPT = 12  # a stem takes 50 microseconds


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
    others = [
        other
        for beginning in {word[:2]: None, word[0] + word[2]: None}
        for other in words_beginning(conn, account_id, beginning, _SIMILAR_READ, lengths)
    ]
    return list(islice((other for other in others if is_similar(word, other)), _KEPT))


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
