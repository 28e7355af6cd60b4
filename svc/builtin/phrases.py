"""What the assistant understands of English: sentences, clauses, words, quotations, subjects and written arithmetic."""

import re
from itertools import pairwise

# How much of a message is looked at; a clause's kind is judged by its beginning.
MAX_GOAL_CHARACTERS = 8_000
MAX_CLAUSES = 30
MAX_EXPRESSIONS = 8

URL = re.compile(r"https?://[^\s<>\"'`]{1,2000}[^\s<>\"'`.,;:!?)\]}]")
FILE_NAME = re.compile(r"(?<![\w/.@-])[\w-][\w.-]{0,80}\.[A-Za-z][A-Za-z0-9]{0,5}\b(?![/@])")
NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")

_NO_MEANING = """
    a about am an and any are as ask at be can could current did do does find for from function get give given had has have how i
    if in is it its know let make me my need now of on one or our please remember return say said should so tell text that the
    their them then there this to told tool up us use user using want was we were what when where which who will with would you
    your
"""
_STOP_WORDS = frozenset(_NO_MEANING.split())
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_QUOTED = re.compile(r"\"([^\"\n]+)\"|\u201c([^\u201c\u201d\n]+)\u201d|`([^`\n]+)`|(?<!\w)'([^'\n]+)'(?!\w)")
# Repeats are bounded where a run of blanks or brackets would be tried from each of its characters.
_CLAUSE_END = re.compile(
    r"[;\n]\s{0,9}|,\s{1,9}(?:(?:and|then)\s{1,9}){0,2}|[.?!]\s{1,9}|\s(?:and|then)\s{1,9}(?:then\s{1,9})?", re.I
)
_POLITE = re.compile(
    r"(?:(?:please|kindly|now|then|also|first|next|finally|lastly|hey|hi|hello|ok|okay|so|and"
    r"|(?:can|could|would|will) you|i (?:want|need) you to|i(?:'d| would) like you to|let's)\b[\s,:]*)+",
    re.I,
)
_TAIL_WORDS = (" please", " right now", " now", " today", " for me", " currently")
_SUBJECT = re.compile(r"\b(?:in|at|for|of|about|to|from|on|named|called|with)\s+(?:the\s+)?(.+)", re.I | re.S)
_LEADING_WORDS = re.compile(
    r"(?:(?:what|who|where|when|which|how)(?:'s|\s{1,9}(?:is|are|was|were|do|does|did))?|\w+)\s{1,9}(?:(?:the|a|an|me|my|up)\s{1,9})*",
    re.I,
)

_SPOKEN_ARITHMETIC = tuple(
    (re.compile(pattern, re.I), replacement)
    for pattern, replacement in (
        (r"\d{4}-\d{2}-\d{2}", " ; "),
        (r"(?<=\d),(?=\d{3}(?!\d))", ""),
        (r"\bdivided by\b", "/"),
        (r"\b(?:multiplied by|times)\b", "*"),
        (r"\b(?:sum of|add) (-?[\d.]+) (?:and|to) (-?[\d.]+)", r"\1 + \2"),
        (r"\b(?:product of|multiply) (-?[\d.]+) (?:and|by|with) (-?[\d.]+)", r"\1 * \2"),
        (r"\bdivide (-?[\d.]+) by (-?[\d.]+)", r"\1 / \2"),
        (r"\bsubtract (-?[\d.]+) from (-?[\d.]+)", r"\2 - \1"),
        (r"\bplus\b", "+"),
        (r"\bminus\b", "-"),
        (r"\b(?:raised )?to the power of\b", "**"),
        (r"\bmod(?:ulo)?\b", "%"),
        (r"(?<=[\d)]) squared\b", " ** 2"),
        (r"(?<=[\d)]) cubed\b", " ** 3"),
        (r"(?<=\d) ?x ?(?=[\d(])", " * "),
        (r"(?<=\d) ?(?:%|percent) of (?=[\d(])", " / 100 * "),
    )
)
_SPOKEN = "plus minus times multiplied divided by squared cubed percent of mod modulo x to the power"
_SPOKEN_WORDS = frozenset(_SPOKEN.split())
_ASKS_ARITHMETIC = re.compile(
    r"\b(?:compute|calculate|evaluate|work out|solve|what(?:'s| is| are|s)|how much|result of|sum of|product of"
    r"|add|subtract|multiply|divide)\b|=\s?\??$"
)
_SIGNS = "-+*/%^\u00d7\u00b7\u00f7\u2212"
_EXPRESSION = re.compile(rf"(?<![\w.,)])(?:[-(\u2212] ?){{0,60}}(?:\d|\.\d)[\d .{re.escape(_SIGNS)}()]*")
_OPERATION = re.compile(rf"[\d.)] *[{re.escape(_SIGNS)}]")


def sentences(text: str) -> list[str]:
    """The sentences and lines of `text`, without blank ones."""
    return [part.strip() for part in _SENTENCE_END.split(text) if part.strip()]


def words(text: str) -> set[str]:
    """The words that carry meaning, in lower case and roughly without their endings."""
    found = re.findall(r"[^\W_]+", text.lower())
    return {_stem(word) for word in found if word not in _STOP_WORDS and (len(word) > 1 or word.isdigit())}


def _stem(word: str) -> str:
    for ending, least in (("ing", 6), ("ies", 5), ("ed", 5), ("es", 5), ("s", 4)):
        if len(word) >= least and word.endswith(ending) and not word.endswith("ss"):
            word = word.removesuffix(ending) + ("y" if ending == "ies" else "")
            break
    return word.removesuffix("e") if len(word) > 3 else word


def clauses(text: str) -> list[tuple[str, str]]:
    """`text` cut at commas, full stops, `and` and `then` outside quotations: pairs of what stood before a clause, and it."""
    hidden = _QUOTED.sub(lambda match: "_" * len(match[0]), text)
    cuts = [(0, 0), *((match.start(), match.end()) for match in _CLAUSE_END.finditer(hidden)), (len(text), len(text))]
    pairs = [(text[start:end], text[end : following[0]]) for (start, end), following in pairwise(cuts)]
    return [(before, clause) for before, clause in pairs[:MAX_CLAUSES] if clause.strip()]


def without_politeness(clause: str) -> str:
    match = _POLITE.match(clause.lstrip())
    return clause.lstrip()[match.end() :] if match else clause.strip()


def quotations(text: str) -> list[str]:
    """What stands in quotation marks or backticks."""
    return [next(filter(None, match.groups())) for match in _QUOTED.finditer(text)]


def trimmed(text: str) -> str:
    """`text` without closing punctuation and words such as `please`."""
    before = None
    while text != before:
        before = text
        text = text.strip(" \t\n,.?!;:\"'\u201c\u201d`")
        ending = next((word for word in _TAIL_WORDS if text.lower().endswith(word)), "")
        text = text[: len(text) - len(ending)]
    return text


def subject(clause: str) -> str:
    """What a request is about: what it quotes, what follows its first preposition, or what follows its verb."""
    quoted = quotations(clause)
    if quoted:
        return quoted[0]
    plain = trimmed(without_politeness(clause))
    match = _SUBJECT.search(plain)
    return (match[1] if match else _LEADING_WORDS.sub("", plain, count=1)) or plain or clause.strip()


def expressions(text: str) -> list[str]:
    """The arithmetic written in `text`, as calculate.py reads it; spoken forms (`15% of 80`, `3 times 4`) included."""
    for pattern, replacement in _SPOKEN_ARITHMETIC:
        text = pattern.sub(replacement, text)
    found = []
    for match in _EXPRESSION.finditer(text):
        candidate = _balanced(match[0].strip().rstrip(_SIGNS + "(. "))
        if _OPERATION.search(candidate):
            found.append(candidate)
    return list(dict.fromkeys(found))[:MAX_EXPRESSIONS]


def asks_arithmetic(text: str) -> bool:
    """Whether `text` asks for its arithmetic to be done, or is nothing else; `call 555-1234` does not."""
    lowered = text.lower()
    return bool(_ASKS_ARITHMETIC.search(lowered)) or set(re.findall(r"[a-z]+", lowered)) <= _SPOKEN_WORDS


def _balanced(candidate: str) -> str:
    """Without the brackets of the sentence around it: `(what is 2 + 2)`."""
    while candidate.endswith(")") and candidate.count(")") > candidate.count("("):
        candidate = candidate[:-1].rstrip()
    while candidate.startswith("(") and candidate.count("(") > candidate.count(")"):
        candidate = candidate[1:].lstrip()
    return candidate
