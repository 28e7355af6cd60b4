"""Split a text in any alphabet into words, fold them for comparison, and find them in a text again."""

import re
import unicodedata
from collections.abc import Collection, Iterator
from functools import cache
from operator import add

WORD_LENGTH = 64
# Chinese, Japanese, Korean, Thai, Khmer and similar scripts have no spaces between words: each two neighbours are a
# word.
_UNSPACED = "\u0e00-\u109f\u1780-\u17ff\u3040-\u30fa\u30fc-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
# The breve of Russian \u0439 stays: stemmers need it to recognise the endings of adjectives.
_ACCENT = re.compile("[\u0300-\u036f](?<![\u0418\u0438]\u0306)")
# No script has more than a few marks on a letter; sorting a long run of them takes quadratic time.
_MARK = (
    "[\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u0610-\u061a\u064b-\u065f"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
)
_PILE = re.compile(f"({_MARK}{{4}}){_MARK}+")
_SIGN = f"[{_UNSPACED}]"
_RUN = rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}]+"
_RAW_RUN = rf"[{_UNSPACED}]+|(?:[^\W_{_UNSPACED}][\u0300-\u036f]*)+"
_compiled = cache(re.compile)  # at their first use: these three take 25 ms, too long for the start


def is_unspaced(text: str) -> bool:
    """Return whether `text` begins with a sign of a script without spaces between words."""
    return text[:1] >= _UNSPACED[0] and _compiled(_SIGN).match(text) is not None


def folded(text: str) -> str:
    """Return `text` without case and accents, for comparison."""
    bare = _ACCENT.sub("", unicodedata.normalize("NFD", _PILE.sub(r"\1", text)))
    return unicodedata.normalize("NFKC", bare).casefold()


def words_of(text: str) -> Iterator[str]:
    """Yield the folded words of `text`; in a script without spaces each sign and each two neighbours."""
    for run in _compiled(_RUN).findall(folded(text)):
        if is_unspaced(run):
            for position, sign in enumerate(run):
                yield sign
                if position + 1 < len(run):
                    yield run[position : position + 2]
        else:
            yield run[:WORD_LENGTH]


def indexed_words(text: str) -> set[str]:
    """Return the words of `text` for the index.

    In a script without spaces these are pairs of neighbours, and the last sign with a blank. A single sign is found as
    the beginning of a pair.
    """
    found: set[str] = set()
    for run in _compiled(_RUN).findall(folded(text)):
        if is_unspaced(run):
            found.update(map(add, run, run[1:] + " "))
        else:
            found.add(run[:WORD_LENGTH])
    return found


def places_of(text: str, wanted: Collection[str], beginning: str | None = None) -> list[tuple[int, int]]:
    """Return start and end of each of the folded words `wanted` in `text`, and of words that begin with `beginning`."""
    found: list[tuple[int, int]] = []
    for match in _compiled(_RAW_RUN).finditer(text):
        run = folded(match[0])
        if not is_unspaced(run):
            if run[:WORD_LENGTH] in wanted or (beginning is not None and run.startswith(beginning)):
                found.append(match.span())
            continue
        for word in wanted:  # if folding changes the number of signs, the place is slightly wrong
            place = run.find(word)
            while place >= 0:
                start = min(match.start() + place, match.end() - 1)
                found.append((start, min(start + len(word), match.end())))
                place = run.find(word, place + 1)
    joined: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if joined and start <= joined[-1][1] and is_unspaced(text[start]):
            start, before = joined.pop()
            end = max(end, before)
        joined.append((start, end))
    return joined
