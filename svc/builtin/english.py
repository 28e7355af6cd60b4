"""The assistant's English: sentences, clauses, words, quotations, subjects, and arithmetic written in words.

Every pattern takes linear time: a repeat that another repeat may follow has a bound.
"""

import re
from itertools import pairwise

MAX_GOAL_CHARACTERS = 8_000
MAX_CLAUSES = 30
MAX_EXPRESSIONS = 8

URL = re.compile(r"https?://[^\s<>\"'`]{1,2000}[^\s<>\"'`.,;:!?)\]}]")
FILE_NAME = re.compile(r"(?<![\w/.@-])[\w-][\w.-]{0,80}\.[A-Za-z][A-Za-z0-9]{0,5}\b(?![/@])")

_STOP_WORDS = """
    a about am an and any are as ask at be can could current did do does find for from function
    get give given had has have how i if in is it its know let make me my need now of on one or
    our please remember return say said should so tell text that the their them then there this
    to told tool up us use user using want was we were what when where which who will with would
    you your
"""
_NO_MEANING = frozenset(_STOP_WORDS.split())
_ENDING = re.compile(r"(?<=\w{3})(?:ing|ies|ed|es|e|(?<!s)s|(?<![aeiou])y)$")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_CLAUSE_END = re.compile(
    r"[;\n]\s{0,9}|[.?!]\s{1,9}|,\s{1,9}(?:(?:and|then)\s{1,9}){0,2}"
    r"|\s(?:and|then)\s{1,9}(?:then\s{1,9})?",
    re.I,
)
_QUOTED = re.compile(r"\"([^\"\n]+)\"|“([^“”\n]+)”|`([^`\n]+)`|(?<!\w)'([^'\n]+)'(?!\w)")
_POLITE = re.compile(
    r"\s*(?:(?:please|kindly|now|then|also|first|next|finally|lastly|hey|hi|hello|ok|okay|so|and"
    r"|(?:can|could|would|will) you|i (?:want|need) you to|i(?:'d| would) like you to|let's)\b[\s,:]*)*",
    re.I,
)
_PUNCTUATION = " \t\n,.?!;:\"'“”`"
_LAST_WORDS = (" please", " right now", " now", " today", " for me", " currently")
_SUBJECT = re.compile(
    r"\b(?:in|at|for|of|about|to|from|on|named|called|with)\s+(?:the\s+)?(.+)",
    re.I | re.S,
)
_FIRST_WORDS = re.compile(
    r"(?:(?:what|who|where|when|which|how)(?:'s|\s{1,9}(?:is|are|was|were|do|does|did))?|\w+)\s{1,9}"
    r"(?:(?:the|a|an|me|my|up)\s{1,9})*",
    re.I,
)

_SPOKEN_ARITHMETIC = {
    r"\d{4}-\d{2}-\d{2}": " ; ",  # a date
    r"(?<=\d),(?=\d{3}(?!\d))": "",
    r"\bdivided by\b": "/",
    r"\b(?:multiplied by|times)\b": "*",
    r"\b(?:sum of|add) (-?[\d.]+) (?:and|to) (-?[\d.]+)": r"\1 + \2",
    r"\b(?:product of|multiply) (-?[\d.]+) (?:and|by|with) (-?[\d.]+)": r"\1 * \2",
    r"\bdivide (-?[\d.]+) by (-?[\d.]+)": r"\1 / \2",
    r"\bsubtract (-?[\d.]+) from (-?[\d.]+)": r"\2 - \1",
    r"\bplus\b": "+",
    r"\bminus\b": "-",
    r"\b(?:raised )?to the power of\b": "**",
    r"\bmod(?:ulo)?\b": "%",
    r"(?<=[\d)]) squared\b": " ** 2",
    r"(?<=[\d)]) cubed\b": " ** 3",
    r"(?<=\d) ?x ?(?=[\d(])": " * ",
    r"(?<=\d) ?(?:%|percent) of (?=[\d(])": " / 100 * ",
}
_SPOKEN = "plus minus times multiplied divided by squared cubed percent of mod modulo x to the power"
_SPOKEN_WORDS = frozenset(_SPOKEN.split())
_ASKS_ARITHMETIC = re.compile(
    r"\b(?:compute|calculate|evaluate|work out|solve|what(?:'s| is| are|s)|how much|result of|sum of"
    r"|product of|add|subtract|multiply|divide)\b|=\s?\??$",
    re.I,
)
_SIGNS = "-+*/%^\u00d7\u00b7\u00f7\u2212"
_EXPRESSION = re.compile(rf"(?<![\w.,)])(?:[-(\u2212] ?){{0,60}}(?:\d|\.\d)[\d .{re.escape(_SIGNS)}()]*")
_OPERATION = re.compile(rf"[\d.)] *[{re.escape(_SIGNS)}]")


def sentences(text: str) -> list[str]:
    return [part.strip() for part in _SENTENCE_END.split(text) if part.strip()]


def words(text: str) -> frozenset[str]:
    """Return the words that carry meaning, in lower case and roughly without their endings."""
    found = re.findall(r"[^\W_]+", text.lower())
    return frozenset(_ENDING.sub("", word) for word in found if word not in _NO_MEANING and (word[1:] or word.isdigit()))


def clauses(text: str) -> list[tuple[str, str]]:
    """Cut `text` at commas, full stops, `and` and `then` outside quotations.

    Return each clause after the text that separates it from the clause before.
    """
    unquoted = _QUOTED.sub(lambda match: "_" * len(match[0]), text)
    cuts = [(0, 0), *(match.span() for match in _CLAUSE_END.finditer(unquoted)), (len(text), 0)]
    pairs = [(text[start:end], text[end:following]) for (start, end), (following, _) in pairwise(cuts)]
    return [(before, clause) for before, clause in pairs[:MAX_CLAUSES] if clause.strip()]


def without_politeness(clause: str) -> str:
    return _POLITE.sub("", clause, count=1)


def quotations(text: str) -> list[str]:
    return [next(filter(None, groups)) for groups in _QUOTED.findall(text)]


def trimmed(text: str) -> str:
    """Return `text` without punctuation at its ends and without final words such as `please`."""
    while True:
        text = text.strip(_PUNCTUATION)
        ending = next((word for word in _LAST_WORDS if text[-10:].lower().endswith(word)), "")
        if not ending:
            return text
        text = text[: -len(ending)]


def subject(clause: str) -> str:
    """Return the first quotation, else what follows the first preposition, else what follows the verb."""
    for quoted in quotations(clause):
        return quoted
    plain = trimmed(without_politeness(clause))
    match = _SUBJECT.search(plain)
    return (match[1] if match else _FIRST_WORDS.sub("", plain, count=1)) or plain or clause.strip()


def expressions(text: str) -> list[str]:
    """Return the arithmetic in `text` as calculate.py reads it, including `15% of 80` and `3 times 4`."""
    for pattern, replacement in _SPOKEN_ARITHMETIC.items():
        text = re.sub(pattern, replacement, text, flags=re.I)
    found = [_balanced(match[0].strip().rstrip(_SIGNS + "(. ")) for match in _EXPRESSION.finditer(text)]
    return list(dict.fromkeys(filter(_OPERATION.search, found)))[:MAX_EXPRESSIONS]


def asks_arithmetic(text: str) -> bool:
    """Return whether `text` asks for a result or holds nothing else; `call 555-1234` does not."""
    return bool(_ASKS_ARITHMETIC.search(text)) or {*re.findall(r"[a-z]+", text.lower())} <= _SPOKEN_WORDS


def _balanced(expression: str) -> str:
    """Remove the brackets of the sentence around the expression: `(what is 2 + 2)`."""
    while (excess := expression.count(")") - expression.count("(")) > 0 and expression.endswith(")"):
        expression = expression[:-1].rstrip()
    while excess < 0 and expression.startswith("("):
        expression, excess = expression[1:].lstrip(), excess + 1
    return expression
