"""The words of a text in any alphabet, which of them tell nothing, and which are forms or misspellings of one another."""

import re
import unicodedata
from collections.abc import Collection, Iterator
from functools import cache
from operator import add
from os.path import commonprefix
from pathlib import Path

from svc.content.stem import stem

WORD_LENGTH = 64
# Chinese, Japanese, Korean, Thai, Khmer and their kin: where words have no spaces between, each two neighbours are one.
_UNSPACED = "\u0e00-\u109f\u1780-\u17ff\u3040-\u30fa\u30fc-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_ACCENT = re.compile("[\u0300-\u036f]+")
# No script puts more than a few marks on a letter; ordering a long run of them takes quadratic time.
_MARK = "[\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
_PILE = re.compile(f"({_MARK}{{4}}){_MARK}+")
_LATIN = re.compile("[a-z]+")
_LEAST_PREFIX = 5
# Of the longer of two words, how much their common beginning makes up when they are forms of one.
_FORM_SHARE = 0.7
LEAST_MISSPELT = 4


@cache  # these three take 25 ms to compile, a part of the start for which nobody should wait
def _unspaced() -> re.Pattern[str]:
    return re.compile(f"[{_UNSPACED}]")


@cache
def _run() -> re.Pattern[str]:
    return re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}]+")


@cache
def _raw_run() -> re.Pattern[str]:
    return re.compile(rf"[{_UNSPACED}]+|(?:[^\W_{_UNSPACED}][\u0300-\u036f]*)+")


def is_unspaced(text: str) -> bool:
    """Whether `text` begins with a sign of a script that puts no spaces between words."""
    return text[:1] >= _UNSPACED[0] and _unspaced().match(text) is not None


def folded(text: str) -> str:
    """`text` without case, accents and the like, as words are compared."""
    bare = _ACCENT.sub("", unicodedata.normalize("NFD", _PILE.sub(r"\1", text)))
    return unicodedata.normalize("NFKC", bare).lower()


@cache
def _listed(name: str) -> frozenset[str]:
    """The words of a file beside this one, folded; read when they are first asked for."""
    return frozenset(folded((Path(__file__).parent / name).read_text()).split())


def _stop_words() -> frozenset[str]:
    """The commonest words of eleven languages, and what questions to an assistant are made of: `tell me`, `weißt du noch`."""
    return _listed("stop_words.txt")


def words_of(text: str) -> Iterator[str]:
    """The words of `text`, folded; of a script without spaces each sign and each two neighbours."""
    for run in _run().findall(folded(text)):
        if is_unspaced(run):
            for position, sign in enumerate(run):
                yield sign
                if position + 1 < len(run):
                    yield run[position : position + 2]
        else:
            yield run[:WORD_LENGTH]


def indexed_words(text: str) -> set[str]:
    """The words of `text` as the index has them: of a script without spaces all pairs of neighbours, and each last sign with a
    blank. Any other single sign is found as the beginning of a pair."""
    found: set[str] = set()
    for run in _run().findall(folded(text)):
        if is_unspaced(run):
            found.update(map(add, run, run[1:]))
            found.add(run[-1] + " ")
        else:
            found.add(run[:WORD_LENGTH])
    return found


def is_stop_word(word: str) -> bool:
    """Whether a folded word is so common in its language that it tells nothing of what a text is about."""
    if is_unspaced(word):
        return all(sign in _stop_words() for sign in word) or word in _stop_words() or (len(word) == 2 and _is_glue(word))
    return word in _stop_words() or (len(word) < 3 and not any(sign.isdigit() for sign in word))


def is_weak_word(word: str) -> bool:
    """Whether a folded word tells a little, beside another: `name`, `year`, `work`."""
    return word in _listed("weak_words.txt")


def is_own_word(word: str) -> bool:
    """Whether a folded word shows that somebody asks about themselves, or about what was said."""
    return word in _listed("own_words.txt")


def _is_glue(pair: str) -> bool:
    # Two neighbours of which one is a particle are an accident, not a word. So is Japanese grammar, which is hiragana.
    return any(sign in _stop_words() or "\u3040" <= sign <= "\u309f" for sign in pair)


def are_forms(one: str, other: str) -> bool:
    """Whether two folded words are forms of one: by Porter's stems in Latin letters, else by how they begin."""
    if one == other:
        return True
    if _LATIN.fullmatch(one) and _LATIN.fullmatch(other) and stem(one) == stem(other):
        return True
    common = _common_beginning(one, other)
    short, long = sorted((len(one), len(other)))
    if common >= _LEAST_PREFIX and common >= _FORM_SHARE * long:
        return True
    if not one.isascii() and common >= 3 and long - common <= 2 and long <= 6:  # кошка, кошку: short stems, short endings
        return True
    return common == short >= _LEAST_PREFIX  # Zahnarzt, Zahnarzttermin


def _common_beginning(one: str, other: str) -> int:
    return len(commonprefix((one, other)))  # noqa: RUF071 - as is wanted here


def is_near(one: str, other: str) -> bool:
    """Whether one of two folded words is a misspelling of the other: one letter is wrong, missing, too many or swapped
    with its neighbour, in a word of eight letters or more two of these."""
    short, long = sorted((len(one), len(other)))
    allowed = 1 if short < 8 else 2
    if short < LEAST_MISSPELT or long - short > allowed or any(sign.isdigit() for sign in one + other):
        return False
    return _distance(one, other, allowed) <= allowed


def _distance(one: str, other: str, most: int) -> int:
    """How many letters to change, add, drop or swap with a neighbour make `other` of `one`; it stops counting over `most`."""
    before_last: list[int] = []
    last = list(range(len(other) + 1))
    for row, a in enumerate(one, 1):
        current = [row]
        for column, b in enumerate(other, 1):
            cost = min(last[column] + 1, current[-1] + 1, last[column - 1] + (a != b))
            if row > 1 and column > 1 and a == other[column - 2] and one[row - 2] == b:
                cost = min(cost, before_last[column - 2] + 1)
            current.append(cost)
        if min(current) > most:
            return most + 1
        before_last, last = last, current
    return last[-1]


def places_of(text: str, wanted: Collection[str], beginning: str | None = None) -> list[tuple[int, int]]:
    """Where in `text` the folded words `wanted` stand, and words that begin with `beginning`: from and to, in order, apart."""
    found: list[tuple[int, int]] = []
    for match in _raw_run().finditer(text):
        run = folded(match[0])
        if not is_unspaced(run):
            if run[:WORD_LENGTH] in wanted or (beginning is not None and run.startswith(beginning)):
                found.append(match.span())
            continue
        for word in wanted:  # signs keep their number when they are folded, or the place is a little off
            place = run.find(word)
            while place >= 0:
                start = min(match.start() + place, match.end() - 1)
                found.append((start, min(start + len(word), match.end())))
                place = run.find(word, place + 1)
    joined: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if joined and start <= joined[-1][1] and is_unspaced(text[start]):
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
