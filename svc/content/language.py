"""The language of a text, guessed from its most common words: its stop words, weak words, stems, and variants of words.

Each language has a paragraph in `stop_words.txt`, `weak_words.txt` and `own_words.txt`. A weak word, such as `year`,
matters only if a text has no others. Own words mean `I` or `my`. English is last: its stop words are often names in
other languages ("Will", "May"), so another language wins if both are as likely.
"""

import math
import re
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
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
_LEAST_DENSE = 4
_CHANGING = {"f": "f", "v": "f", "z": "z", "c": "z"}
_LEAST_RELATED, _RELATED = 4, 0.55  # letters of a common beginning, and its share of the longer word
_FIRST_DENSE = "\u0590"  # Hebrew; Latin, Greek and Cyrillic are before it
_LONG_MISSPELT = 8  # from here on two neighbouring letters may be wrong
_READ = 300  # words with a common beginning, of which the vocabulary of a book has about 50
_SIMILAR_READ = 1_000
_ARABIC_ROOT = 3  # consonants
_KEPT = 12  # a stem takes 50 microseconds
_CODES = "de fr es it pt nl sv da nb pl ru hi en"
_LANGUAGES = "german french spanish italian portuguese dutch swedish danish norwegian polish russian hindi english"
_STEMMERS = dict(zip(_CODES.split(), _LANGUAGES.split(), strict=True))
# Language, first and last letter.
_SCRIPTS = (("ar", "\u0620", "\u06ff"), ("hi", "\u0900", "\u097f"))
# After a noun: the particles wa, ga, o, no, ni, to, mo and e, and the titles san, chan and kun.
_PARTICLES = "[\u306f\u304c\u3092\u306e\u306b\u3068\u3082\u3078]|\u3055\u3093|\u3061\u3083\u3093|\u304f\u3093"
_KANA_NOUN = re.compile(f"(?:^|[^\u3040-\u30ff\u3400-\u9fff]|\u306e)([\u3041-\u3096]{{2,5}}?)(?={_PARTICLES})")
_KANA_WORD = re.compile("(?<!\\S)[\u3041-\u3096]{2,8}(?!\\S)")
# Arabic changes the long vowels inside a word too: its plurals are often other vowels between the same consonants.
_ARABIC_ENDING = re.compile(
    "(?<=...)(?:\u0627\u062a|\u0648\u0646|\u064a\u0646|\u0627\u0646|\u0647\u0627|\u0647\u0645|\u0646\u0627|\u0647|\u064a)$"
)
_ALEF = "\u0627"
_ARABIC_VOWEL = re.compile("[\u0627\u0648\u064a\u0621]")


def forms_of(
    conn: sqlite3.Connection, account_id: str, word: str, stem: Callable[[str], str], mark: str = ""
) -> list[str]:
    """Return up to 12 words of the account that are forms or compounds of the folded `word`.

    `stem` removes the endings of the question's language. `mark` is that of the index, by default of messages.
    """
    if _has_no_variants(word):
        return []
    root = stem(word)
    if stem is _arabic_root:
        beginnings = [root[:2], _ALEF + root[:2]]  # the second of plurals such as "aqfal" for "qufl"
        read = _beginning_so(conn, account_id, beginnings, mark)
        return [other for other in read if other != word and are_forms(word, other, stem)][:_KEPT]
    # A stem may end with another letter than the word: "happi" for "happy", "luz" for "luces".
    letters = max(2 if root[-1:] in _CHANGING else 3, min(_COMMON_BEGINNING, len(root) - 1))
    roots, beginnings = [root], [root[:letters]]
    if isinstance(stem, _GermanStemmer):
        roots, beginnings = [root, _participle(root)], [root[:letters], _participle(root[:letters])]

    def closeness(other: str) -> tuple[int, int]:
        return max(len(commonprefix((one, other))) for one in roots), -len(other)  # noqa: RUF071

    alike = nlargest(_KEPT, _beginning_so(conn, account_id, beginnings, mark), key=closeness)
    return [other for other in alike if other != word and are_forms(word, other, stem)]


def _beginning_so(conn: sqlite3.Connection, account_id: str, beginnings: Iterable[str], mark: str) -> list[str]:
    found = (words_beginning(conn, account_id, beginning, _READ, mark=mark) for beginning in dict.fromkeys(beginnings))
    return [word for words in found for word in words]


def are_forms(one: str, other: str, stem: Callable[[str], str]) -> bool:
    """Return whether two words have one stem, or one of them (or of their stems) is a long prefix of the other."""
    roots = stem(one), stem(other)
    return _begins(one, other) or _begins(*roots) or _unchanged(roots[0]) == _unchanged(roots[1])


def _unchanged(root: str) -> str:
    """Return a stem with one of its last letters that change for each other: "loaf" for "loav", "luz" for "luc"."""
    return root[:-1] + _CHANGING.get(root[-1:], root[-1:])


def _begins(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return len(short) >= _COMMON_BEGINNING and long.startswith(short)


def similar_words(conn: sqlite3.Connection, account_id: str, word: str, mark: str = "") -> list[str]:
    """Return up to 12 words of the account that the folded `word` may misspell.

    The first letter must be right, and the second too unless it was swapped with the third or added. In dense scripts
    the second may be a vowel, which is often wrong.
    """
    is_dense = is_dense_script(word)
    if _has_no_variants(word) or len(word) < (_LEAST_DENSE if is_dense else _LEAST_MISSPELT):
        return []
    wrong = 1 if len(word) < _LONG_MISSPELT else 2
    beginnings = [word[0]] if is_dense else dict.fromkeys((word[:2], word[0] + word[2]))
    lengths = range(len(word) - wrong, len(word) + wrong + 1)
    return [
        other
        for beginning in beginnings
        for other in words_beginning(conn, account_id, beginning, _SIMILAR_READ, lengths, mark)
        if is_similar(word, other)
    ][:_KEPT]


def related_words(conn: sqlite3.Connection, account_id: str, word: str, mark: str = "") -> list[str]:
    """Return up to 12 words of the account whose common beginning with the folded `word` is most of the longer one.

    For languages without a stemmer, and for forms that stems do not join: "collapsing" and "collapse".
    """
    least = max(_LEAST_RELATED, math.ceil(_RELATED * len(word)))
    if _has_no_variants(word) or len(word) < least:
        return []
    beginning = word[:least]
    others = words_beginning(conn, account_id, beginning, _READ, mark=mark)
    common = {other: len(commonprefix((word, other))) / max(len(word), len(other)) for other in others}  # noqa: RUF071
    return nlargest(_KEPT, (other for other in others if common[other] >= _RELATED), key=lambda other: common[other])


def is_dense_script(word: str) -> bool:
    """Return whether the script of a word writes few or no vowels as letters, as those of Arabic and Hindi do."""
    return word >= _FIRST_DENSE


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


def languages_of(words: Iterable[str], likely: Sequence[str]) -> list[str]:
    """Return the languages of folded `words` of a text whose `likely` languages are known.

    They are the likely ones with the most stop words, so all if the words have none. Another language must have at
    least two stop words, and more than each likely one.
    """
    words = list(words)
    stop_words = _listed("stop_words.txt")
    counts = Counter(language for word in words for language in stop_words.get(word, ()))
    most = max((counts[language] for language in likely), default=0)
    other = language_of(words)
    if other is not None and counts[other] > most:
        return [other]
    return [language for language in likely if counts[language] == most]


def language_of_script(words: Iterable[str]) -> str | None:
    """Return the most spoken language of the script of the words, if it is not shared by many languages."""
    found = (code for word in words for code, first, last in _SCRIPTS if first <= word <= last)
    return next(found, None)


def kana_nouns(text: str, *, alone: bool = False) -> Iterator[str]:
    """Yield the nouns in hiragana before a particle or a title, such as the name Sakura. Most hiragana is grammar.

    With `alone` also the words in hiragana between blanks, as in the words for a search.
    """
    for word in [*_KANA_NOUN.findall(text), *(_KANA_WORD.findall(text) if alone else ())]:
        if word not in _listed("stop_words.txt"):
            yield word


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
is_task_word = partial(_is_listed, "task_words.txt")


def stemmer(language: str | None) -> Callable[[str], str]:
    """Return a function that removes the endings of a folded word in `language`. Without a language it keeps them.

    The function caches its results and must not be shared between threads.
    """
    if language == "ar":
        return _arabic_root
    if language == "de":
        return _GermanStemmer()
    if language not in _STEMMERS:
        return str
    return cache(_stemmer_class(_STEMMERS[language])().stemWord)


_SEPARABLE = "(an|ab|auf|aus|ein|her|hin|mit|nach|um|vor|weg|zu|zuruck|zusammen)"
_PARTICIPLE = re.compile(f"{_SEPARABLE}?ge(...+?)(?:e?t|en)")
_BEFORE_GE = re.compile(f"{_SEPARABLE}?(?=..)")


class _GermanStemmer:
    """Removes the endings of a German word, and what makes a participle of a verb: "angemeldet" becomes "anmeld"."""

    def __init__(self) -> None:
        self._stem = cache(_stemmer_class("german")().stemWord)

    def __call__(self, word: str) -> str:
        participle = _PARTICIPLE.fullmatch(word)
        return str(self._stem(word if participle is None else (participle[1] or "") + participle[2]))


def _participle(beginning: str) -> str:
    """Return the beginning of a participle of the German verb that begins so."""
    return _BEFORE_GE.sub(r"\1ge", beginning, count=1)


def _arabic_root(word: str) -> str:
    bare = _ARABIC_ENDING.sub("", word)
    root = _ARABIC_VOWEL.sub("", bare)
    return root if len(root) >= _ARABIC_ROOT else bare


@cache
def _stemmer_class(name: str) -> Any:
    # The package's own __init__ imports 36 languages: 13 ms and 3 MB.
    spec = find_spec("snowballstemmer")
    assert spec is not None
    sys.modules.setdefault("snowballstemmer", module_from_spec(spec))
    return getattr(import_module(f"snowballstemmer.{name}_stemmer"), f"{name.title()}Stemmer")
