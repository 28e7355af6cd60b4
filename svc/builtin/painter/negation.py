"""Find the negated words of a prompt: "no cats or dogs", "without birds", "not at night", "cloudless", "cat-free"."""

import re
from collections.abc import Callable, Sequence

# After a negator these words make no negation: "not only cats", "no less than three", "not so dark".
_NO_NEGATION = {
    "only", "just", "less", "fewer", "more", "longer", "matter", "doubt", "without", "far", "so", "too", "very", "quite"
}  # fmt: skip
# The number of words after a negator that it may negate; "zero gravity" negates nothing else.
_NEGATORS = {
    "no": 6, "not": 6, "without": 6, "neither": 6, "nor": 6, "minus": 6, "lacking": 6, "except": 6, "avoid": 6,
    "exclude": 6, "omit": 6, "zero": 1, "0": 1,
}  # fmt: skip
_JOINS = {",", "or", "nor", "and"}
_ARTICLES = {"a", "an", "the", "one", "two", "three", "four", "five", "six", "seven", "some", "many", "few", "several"}
_PREPOSITIONS = {
    "on", "in", "at", "by", "near", "under", "over", "above", "below", "beside", "behind", "before", "during", "from"
}  # fmt: skip
_ENDS = {"but", "with", "while", "instead", "that", "who", "which", "because", "only", "just", "is", "are", "was"}
_QUALIFIERS = {"other", "more", "further", "additional", "second", "extra", "another", "big", "small", "large"}
_BEHIND_A_JOIN, _LIST = 3, 10


def kept_and_refused(text: str, known: Callable[[str], object], colors: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words of a prompt in lower case without the negated ones, and the negated `known` words.

    A negated word with a colour or another qualifier ("no black cats", "no other cats") is in neither list.
    """
    text = re.sub(r"([^\W_]+)-free\b", r"without \1;", re.sub("n['\u2019]t\\b", " not ", text))
    tokens = re.findall(r"[^\W_]+|[,.;:!?\n]", text)
    kept, refused = [], []
    reach, found, qualified = 0, False, False
    for place, token in enumerate(tokens):
        before, behind = tokens[place - 1] if place else "", tokens[place + 1 : place + _LIST]
        if token in _NEGATORS and before != "not" and not _NO_NEGATION.intersection(behind[:1]):
            reach, found, qualified = _NEGATORS[token], False, False
        elif token.endswith("less") and known(token[:-4]):
            refused.append(token[:-4])
        elif reach and not _ends(before, token, behind, found):
            if token in _JOINS:
                reach, found, qualified = _BEHIND_A_JOIN, False, False
            elif known(token):
                found = True
                refused += [] if qualified else [token]
            else:
                reach, qualified = reach - 1, qualified or token in _QUALIFIERS or token in colors
        else:
            reach = 0
            kept += [token] if token[0].isalnum() else []
    return kept, refused


def _ends(before: str, token: str, behind: Sequence[str], found: bool) -> bool:
    """Return whether a negation ends at a token. `found`: the word before is a negated word."""
    continues = behind and behind[0] not in _ARTICLES and not behind[0].isdecimal()
    if token == ",":  # a negated list has an "or" before its last word
        return not (continues and {"or", "nor"}.intersection(behind))
    if token in ("or", "nor"):
        return False
    if token == "and":
        return not (continues and behind[0] not in _PREPOSITIONS | _ENDS)
    return found or token in _ENDS or not token[0].isalnum() or (token in _PREPOSITIONS and before not in _NEGATORS)
