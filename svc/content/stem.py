"""The Porter stemmer: an English word without its endings (M. F. Porter, An algorithm for suffix stripping, 1980)."""

import re
from functools import lru_cache

_MEASURE = re.compile("[aeiouy]+[^aeiouy]+")
_HAS_VOWEL = re.compile("[aeiou]|(?<=[^aeiou])y")
_DOUBLE = re.compile(r"([^aeiouylsz])\1$")
_SHORT = re.compile("[^aeiou][aeiouy][^aeiouwxy]$")
_STEP_2 = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize", "abli": "able", "alli": "al",
    "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize", "ation": "ate", "ator": "ate", "alism": "al",
    "iveness": "ive", "fulness": "ful", "ousness": "ous", "aliti": "al", "iviti": "ive", "biliti": "ble",
}  # fmt: skip
_STEP_3 = {"icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": ""}
_STEP_4 = (
    *("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ou", "ism", "ate", "iti", "ous", "ive"),
    *("ize", "sion", "tion"),
)


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """The stem of an English `word` of small letters; equal for its forms, not always a word itself."""
    if len(word) < 3:
        return word
    word = _step_1(word)
    word = _replaced(_replaced(word, _STEP_2), _STEP_3)
    for ending in sorted(_STEP_4, key=len, reverse=True):
        if word.endswith(ending):
            base = word.removesuffix("ion") if ending in ("sion", "tion") else word.removesuffix(ending)
            word = base if _measure(base) > 1 else word
            break
    if word.endswith("e"):
        base = word[:-1]
        if _measure(base) > 1 or (_measure(base) == 1 and not _SHORT.search(base)):
            word = base
    return word[:-1] if word.endswith("ll") and _measure(word) > 1 else word


def _measure(base: str) -> int:
    """How many times vowels are followed by consonants."""
    return len(_MEASURE.findall(base))


def _step_1(word: str) -> str:
    """Plurals, -ed and -ing, and the y that becomes i."""
    if word.endswith(("sses", "ies")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    if word.endswith("eed"):
        word = word[:-1] if _measure(word[:-3]) else word
    else:
        for ending in ("ed", "ing"):
            base = word.removesuffix(ending)
            if base != word and _HAS_VOWEL.search(base):
                word = _mended(base)
                break
    return word[:-1] + "i" if word.endswith("y") and _HAS_VOWEL.search(word[:-1]) else word


def _mended(base: str) -> str:
    """What -ed or -ing stood behind, as it is without them: hop(p), fil(e), conflat(e)."""
    if base.endswith(("at", "bl", "iz")) or (_measure(base) == 1 and _SHORT.search(base)):
        return base + "e"
    return base[:-1] if _DOUBLE.search(base) else base


def _replaced(word: str, endings: dict[str, str]) -> str:
    for ending in sorted(endings, key=len, reverse=True):
        if word.endswith(ending):
            base = word.removesuffix(ending)
            return base + endings[ending] if _measure(base) else word
    return word
