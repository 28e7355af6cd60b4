"""What the assistant answers without tools: arithmetic, dates, recall from the messages it was given, greetings, help."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from svc.builtin.calculate import calculate
from svc.builtin.dates import date_answer
from svc.builtin.phrases import MAX_GOAL_CHARACTERS, asks_arithmetic, expressions, quotations, sentences, trimmed, words
from svc.builtin.request import Request

# How far back recall reads, and how much of a message is answered sentence by sentence.
MAX_RECALL_CHARACTERS = 1 << 16
MAX_SENTENCES = 10
MAX_RECALL_SENTENCES = 1_000

ABILITIES = "I can do arithmetic, tell dates, recall what was said in this conversation and call the tools I am offered."
FALLBACK = (
    f"I cannot help with that: this is the built-in assistant, not a language model. {ABILITIES} "
    "For more, the operator can configure a model server."
)
ABOUT = f"This is the built-in assistant, a small program and not a language model. {ABILITIES}"

_SAY = re.compile(
    r"(?:please )?(?:say|repeat(?: after me)?|echo|(?:reply|respond|answer)(?: only| just)? with)"
    r"(?: exactly| only| just| the words?| the text)*[:\s]{1,4}(\S.*)",
    re.I | re.S,
)
_MY = re.compile(r"\b(?:what(?:'s| is| was| are| were)|tell me|do you (?:know|remember)|remember|recall) my ([\w' ]{1,40})", re.I)
_WHO_AM_I = re.compile(r"\bwho am i\b", re.I)
_WHAT_I_SAID = re.compile(
    r"\bwhat (?:did|have) i (?:just )?(?:say|said|tell you|told you|mention|mentioned|write|written|ask|asked)\b"
    r"(?: you)?(?: (?:about|on|regarding) (.+))?"
    r"|\b(?:do you remember|what do you (?:know|remember) about) (?!my\b)(.+)",
    re.I,
)
_FACT = re.compile(r"\b(?:my|(?:the )?user's) ([\w' ]{1,40}?) (?:is|are|was|were) (.+)", re.I)
_NAME = re.compile(r"\b(?:[Ii] am|[Ii]'m|[Cc]all me) ([A-Z][\w-]*(?: [A-Z][\w-]*){0,3})")
_QUESTION = re.compile(r"(?:what|who|where|when|which|why|how|is|are|do|does|did|can|could|was|were)\b", re.I)
_NOTE = re.compile(r"(?:please )?(?:remember|note)(?: that)? (.+)", re.I)
_GREETING = re.compile(r"(?:hi|hello|hey|greetings|good (?:morning|afternoon|evening|day))\b[^?]{0,30}$", re.I)
_ABOUT = re.compile(r"\b(?:who|what) are you\b|\bwhat can you do\b|\bare you (?:an?|the) |^help\W*$|\bhow can you help\b", re.I)
_THANKS = re.compile(r"(?:thanks|thank you|thx)\b", re.I)


class OwnAnswer(NamedTuple):
    text: str
    known: bool


class _Said(NamedTuple):
    sentence: str
    words: frozenset[str]
    by_user: bool


def own_answer(request: Request, now_seconds: float) -> OwnAnswer:
    """The answer to the last user message; not `known` where it only says that there is none."""
    goal = request.goal[:MAX_GOAL_CHARACTERS].strip()
    dictated = _SAY.fullmatch(goal)
    if dictated and not asks_arithmetic(goal):
        return OwnAnswer(next(iter(quotations(dictated[1])), dictated[1]), known=True)
    said = _said_before(request)
    answers: list[OwnAnswer] = []
    remarks: list[str] = []
    for sentence in sentences(goal)[:MAX_SENTENCES]:
        answer = _answer(sentence, said, now_seconds)
        remark = None if answer else _remark(sentence)
        answers += [answer] if answer else []
        remarks += [remark] if remark else []
        said.insert(0, _Said(sentence, frozenset(words(sentence)), by_user=True))
    known = [answer.text for answer in answers if answer.known] or remarks
    if known:
        return OwnAnswer("\n".join(dict.fromkeys(known)), known=True)
    return answers[0] if answers else OwnAnswer(FALLBACK, known=False)


def _said_before(request: Request) -> list[_Said]:
    """The sentences of users and instructions before the last user message, the newest first."""
    said: list[_Said] = []
    left = MAX_RECALL_CHARACTERS
    for message in reversed(request.before):
        if message.role in ("user", "system", "developer") and left > 0:
            text = message.text[:left]
            left -= len(text)
            newest_first = sentences(text)[: -MAX_RECALL_SENTENCES - 1 : -1]
            said += [_Said(sentence, frozenset(words(sentence)), message.role == "user") for sentence in newest_first]
    return said[:MAX_RECALL_SENTENCES]


def _answer(sentence: str, said: list[_Said], now_seconds: float) -> OwnAnswer | None:
    recalled = _recalled(sentence, said)
    if recalled:
        return recalled
    dated = date_answer(sentence, now_seconds)
    if dated:
        return OwnAnswer(dated, known=True)
    if asks_arithmetic(sentence):
        computed = [computation(expression) for expression in expressions(sentence)]
        if computed:
            return OwnAnswer("\n".join(computed), known=True)
    if _ABOUT.search(sentence[:500]):
        return OwnAnswer(ABOUT, known=True)
    if sentence.endswith("?") or _QUESTION.match(sentence):
        found = _closest(sentence, (one for one in said if not _is_question(one.sentence)))
        return _quoted(found) if found else None
    return None


def computation(expression: str) -> str:
    """One line: the expression and its value, or why it has none."""
    try:
        return f"{expression} = {calculate(expression)}"
    except ValueError as error:
        return f"{expression[:200]} cannot be computed: {error}"


def _remark(sentence: str) -> str | None:
    """What is said to a sentence that asks nothing."""
    if _GREETING.match(sentence):
        return f"Hello! {ABOUT}"
    if _THANKS.match(sentence):
        return "You are welcome."
    fact = _FACT.search(sentence[:500])
    if fact:
        return f"Noted: your {fact[1]} is {trimmed(fact[2])}."
    name = _NAME.search(sentence[:500])
    if name:
        return f"Noted: your name is {name[1]}."
    note = _NOTE.fullmatch(sentence[:500])
    return f"Noted: {trimmed(note[1])}." if note else None


def _recalled(sentence: str, said: list[_Said]) -> OwnAnswer | None:
    mine = _MY.search(sentence[:500])
    if mine or _WHO_AM_I.search(sentence[:500]):
        return _property(trimmed(mine[1]) if mine else "name", said)
    about = _WHAT_I_SAID.search(sentence[:500])
    if about is None:
        return None
    topic = trimmed(about[1] or about[2] or "")
    by_user = [one for one in said if one.by_user]
    found = _closest(topic, iter(said)) if topic else next(iter(by_user), None)
    return _quoted(found) if found else OwnAnswer(f"I find nothing about {topic or 'that'} in this conversation.", known=False)


def _property(name: str, said: list[_Said]) -> OwnAnswer:
    wanted = words(name)
    for one in said:
        if _is_question(one.sentence):
            continue
        fact = _FACT.search(one.sentence[:500])
        if fact and words(fact[1]) == wanted:
            return OwnAnswer(f"Your {name} is {trimmed(fact[2])}.", known=True)
        introduced = _NAME.search(one.sentence[:500]) if one.by_user and wanted == words("name") else None
        if introduced:
            return OwnAnswer(f"Your name is {introduced[1]}.", known=True)
    found = _closest(name, (one for one in said if not _is_question(one.sentence)))
    return _quoted(found) if found else OwnAnswer(f"You have not told me your {name} in this conversation.", known=False)


def _closest(topic: str, said: Iterator[_Said]) -> _Said | None:
    """What shares the most words with `topic`, at least half of them; the newest of several."""
    wanted = words(topic)
    best, best_score = None, 0
    for one in said:
        score = len(wanted & one.words)
        if score > best_score and score * 2 >= len(wanted):
            best, best_score = one, score
    return best


def _quoted(said: _Said) -> OwnAnswer:
    return OwnAnswer(f'{"You said" if said.by_user else "I was told"}: "{said.sentence[:1000]}"', known=True)


def _is_question(sentence: str) -> bool:
    return sentence.endswith("?") or bool(_QUESTION.match(sentence))
