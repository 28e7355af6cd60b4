"""The assistant's English: sentences, clauses, words, quotations, subjects.

Every pattern takes linear time: a repeat that another repeat may follow has a bound.
"""

import re
from itertools import pairwise

MAX_GOAL_CHARACTERS = 8_000
MAX_CLAUSES = 30

URL = re.compile(r"https?://[^\s<>\"'`]{1,2000}[^\s<>\"'`.,;:!?)\]}]")
FILE_NAME = re.compile(r"(?<![\w/.@-])[\w-][\w.-]{0,80}\.[A-Za-z][A-Za-z0-9]{0,5}\b(?![/@])")

_STOP_WORDS = """
a about am an and any are as ask at be can could current did do does find for from function get give given had has
have how i if in is it its know let make me my need now of on one or our please remember return say said should so
tell text that the their them then there this to told tool up us use user using want was we were what when where
which who will with would you your
"""
_NO_MEANING = frozenset(_STOP_WORDS.split())
_ENDING = re.compile(r"(?<=\w{3})(?:ing|ies|ed|es|e|(?<!s)s|(?<![aeiou])y)$")
_CLAUSE_END = re.compile(
    r"(?i)[;\n]\s{0,9}|[.?!]\s{1,9}|,\s{1,9}(?:(?:and|then)\s{1,9}){0,2}|\s(?:and|then)\s{1,9}(?:then\s{1,9})?"
)
_QUOTED = re.compile(r"\"([^\"\n]+)\"|“([^“”\n]+)”|`([^`\n]+)`|(?<!\w)'([^'\n]+)'(?!\w)")
_POLITE = re.compile(
    r"(?i)\s*(?:(?:please|now|then|also|first|next|finally|hey|hi|hello|ok|okay|so|and|(?:can|could|would|will) you"
    r"|i (?:want|need) you to|i(?:'d| would) like you to|let's)\b[\s,:]*)*"
)
_LAST_WORDS = re.compile(r"(?i) (?:please|right now|now|today|for me|currently)$")
_SUBJECT = re.compile(r"(?is)\b(?:in|at|for|of|about|to|from|on|named|called|with)\s+(?:the\s+)?(.+)")
_FIRST_WORDS = re.compile(
    r"(?i)(?:(?:what|who|where|when|which|how)(?:'s|\s{1,9}(?:is|are|was|were))?|\w+)\s{1,9}(?:(?:the|a|an|me|my|up)\s{1,9})*"
)


def sentences(text: str) -> list[str]:
    return [part.strip() for part in re.split(r"(?<=[.!?])\s+|\n+", text) if part.strip()]


def words(text: str) -> frozenset[str]:
    """Return the words that carry meaning, in lower case and roughly without their endings."""
    found = re.findall(r"[^\W_]+", text.lower())
    known = (word for word in found if word not in _NO_MEANING and (word[1:] or word.isdigit()))
    return frozenset(_ENDING.sub("", word) for word in known)


def clauses(text: str) -> list[tuple[str, str]]:
    """Split `text` at commas, full stops, `and` and `then` outside quotations into separators and clauses."""
    unquoted = _QUOTED.sub(lambda match: "_" * len(match[0]), text)
    cuts = [(0, 0), *(match.span() for match in _CLAUSE_END.finditer(unquoted)), (len(text), 0)]
    pairs = [(text[start:end], text[end:following]) for (start, end), (following, _) in pairwise(cuts)]
    return [(separator, clause) for separator, clause in pairs[:MAX_CLAUSES] if clause.strip()]


def without_politeness(clause: str) -> str:
    return _POLITE.sub("", clause, count=1)


def quotations(text: str) -> list[str]:
    return [next(filter(None, groups)) for groups in _QUOTED.findall(text)]


def place(clause: str) -> str:
    """Return the subject of a clause, up to the end of its sentence."""
    return trimmed(next(iter(sentences(subject(clause))), ""))


def trimmed(text: str) -> str:
    """Return `text` without punctuation at its ends and without final words such as `please`."""
    text = text.strip(" \t\n,.?!;:\"'“”`")
    ending = _LAST_WORDS.search(text, max(len(text) - 12, 0))
    return text[: ending.start()].rstrip(" ,") if ending else text


def subject(clause: str) -> str:
    """Return the first quotation, else the words after the first preposition, else those after the verb."""
    plain = trimmed(without_politeness(clause))
    match = _SUBJECT.search(plain)
    about = (match[1] if match else _FIRST_WORDS.sub("", plain, count=1)) or plain or clause.strip()
    return next(iter(quotations(clause)), about)
