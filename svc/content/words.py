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
# Marks that are often left out: accents, vowels of Hebrew and Arabic, dots below Indian letters. Then joiners and
# hyphens that are not shown, and the line that stretches Arabic words. The breve of Russian \u0439 stays: stemmers need
# it to recognise the endings of adjectives.
_LEFT_OUT = re.compile(
    "[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc"
    "\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u093c\u09bc\u0a3c\u0abc\u0b3c\u00ad\u0640\u200c\u200d]"
    "(?<![\u0418\u0438]\u0306)"
)
# Letters of Arabic and Hindi that stand for each other.
_SAME = (("\u0649", "\u064a"), ("\u0629", "\u0647"), ("\u0901", "\u0902"))
# The Arabic article, and a preposition or "and" before it, are one word with the noun.
_ARTICLE = re.compile("(?:[\u0648\u0641\u0628\u0643]?\u0627\u0644|\u0644\u0644)(?=..)")
# No script has more than a few marks on a letter; sorting a long run of them takes quadratic time.
_MARK = (
    "[\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u0610-\u061a\u064b-\u065f"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
)
_PILE = re.compile(f"({_MARK}{{4}}){_MARK}+")
_compiled = cache(re.compile)  # at their first use: these take 25 ms, too long for the start


@cache
def _marks() -> str:
    """Return the marks that are part of a word, such as the vowels of Hindi and Tamil, and what is not shown in one."""
    # Up to the plane of ancient scripts; looking up all signs takes 100 ms.
    marks = (sign for sign in map(chr, range(0x300, 0x1_2000)) if unicodedata.category(sign)[0] == "M")
    return "".join(marks) + "\u00ad\u200c\u200d"


@cache
def _run() -> re.Pattern[str]:
    letter = rf"[^\W_{_UNSPACED}]"
    return re.compile(rf"[{_UNSPACED}]+|{letter}+(?:[{_marks()}]+{letter}*)*")


def is_cut_anew(text: str) -> bool:
    """Return whether releases before 1.2 found other words in `text`: it has a mark, a joiner or an Arabic article."""
    return not text.isascii() and _compiled(f"[\u0600-\u06ff{_marks()}]").search(text) is not None


def is_unspaced(text: str) -> bool:
    """Return whether `text` begins with a sign of a script without spaces between words."""
    return text[:1] >= _UNSPACED[0] and _compiled(f"[{_UNSPACED}]").match(text) is not None


def folded(text: str) -> str:
    """Return `text` without case and accents, for comparison."""
    if text.isascii():
        return text.casefold()
    bare = _LEFT_OUT.sub("", unicodedata.normalize("NFD", _PILE.sub(r"\1", text)))
    bare = unicodedata.normalize("NFKC", bare).casefold()
    for one, other in _SAME:
        bare = bare.replace(one, other)
    return bare


def _word(run: str) -> str:
    """Return the word of a folded run of letters, as the index has it."""
    if "\u0600" <= run[:1] <= "\u06ff":
        article = _ARTICLE.match(run)
        run = run[article.end() :] if article else run
    return run[:WORD_LENGTH]


def runs_of(text: str) -> list[str]:
    """Return the folded words of `text`; in a script without spaces all neighbouring signs are one."""
    return [run if is_unspaced(run) else _word(run) for run in _run().findall(folded(text))]


def words_of(text: str) -> Iterator[str]:
    """Yield the folded words of `text`; in a script without spaces each sign and each two neighbours."""
    for run in _run().findall(folded(text)):
        if is_unspaced(run):
            for position, sign in enumerate(run):
                yield sign
                if position + 1 < len(run):
                    yield run[position : position + 2]
        else:
            yield _word(run)


def indexed_words(text: str) -> set[str]:
    """Return the words of `text` for the index.

    In a script without spaces these are pairs of neighbours, and the last sign with a blank. A single sign is found as
    the beginning of a pair.
    """
    found: set[str] = set()
    for run in _run().findall(folded(text)):
        if is_unspaced(run):
            found.update(map(add, run, run[1:] + " "))
        else:
            found.add(_word(run))
    return found


def places_of(text: str, wanted: Collection[str], beginning: str | None = None) -> list[tuple[int, int]]:
    """Return start and end of each of the folded words `wanted` in `text`, and of words that begin with `beginning`."""
    found: list[tuple[int, int]] = []
    for match in _run().finditer(text):
        run = folded(match[0])
        if not is_unspaced(run):
            run = _word(run)
            if run in wanted or (beginning is not None and run.startswith(beginning)):
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
