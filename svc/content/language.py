"""Guess the language of a text from its most common words, and provide its stop words, weak words and stems.

Each language has a paragraph in `stop_words.txt`, `weak_words.txt` and `own_words.txt`. A weak word, such as `year`, matters only
if a text has no others. Own words mean `I` or `my`. English is last: its stop words are often names in other languages ("Will",
"May"), so another language wins if both are as likely.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import Any

from svc.content.words import folded, is_unspaced

_CODES = "de fr es it pt nl sv da nb pl ru en"
_LANGUAGES = "german french spanish italian portuguese dutch swedish danish norwegian polish russian english"
_STEMMERS = dict(zip(_CODES.split(), _LANGUAGES.split(), strict=True))


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
        return word in stop_words or all(sign in stop_words for sign in word) or (len(word) == 2 and _is_glue(word))
    return _is_listed("stop_words.txt", word, language)


def _is_glue(pair: str) -> bool:
    # A pair with a particle is not a word. Japanese grammar is written in hiragana.
    return any(sign in _listed("stop_words.txt") or "\u3040" <= sign <= "\u309f" for sign in pair)


def is_weak_word(word: str, language: str | None) -> bool:
    """Return whether a folded word matters only if a text has no others."""
    return _is_listed("weak_words.txt", word, language)


def is_own_word(word: str, language: str | None) -> bool:
    """Return whether a folded word means `I`, `we`, `my` or `our`."""
    return _is_listed("own_words.txt", word, language)


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
