"""The models `assistant` and `assistant-paid`: a deterministic assistant that talks and calls the tools it is offered.

    plan of the goal - calls since the last user message -> the calls that can be made now
    no call left -> a report of the results, or an answer from dates, arithmetic and the messages

A step is done once its tool was called as often as the plan says, whatever the result, so a run ends. A forced call
(`tool_choice`) is made once; then the answer is text.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import orjson

from svc.builtin.answer import Piece, TextPiece, ToolCallPiece
from svc.builtin.calculate import calculate
from svc.builtin.dates import date_answer
from svc.builtin.english import MAX_GOAL_CHARACTERS, asks_arithmetic, expressions, quotations, sentences, subject, trimmed, words
from svc.builtin.plan import ABOUT_TOOLS, Step, arguments, known_tools, plan, skill_of, tool_for
from svc.builtin.request import EarlierCall, PromptMessage, Request
from svc.builtin.structured import in_format

MAX_ROUNDS = 10
MAX_REPORTED_CALLS = 20
MAX_RESULT_CHARACTERS = 2_000
MAX_PARSED_CHARACTERS = 100_000
MAX_RECALL_CHARACTERS = 1 << 16
MAX_RECALL_SENTENCES = 1_000
MAX_SENTENCES = 10

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
_MY = re.compile(
    r"\b(?:what(?:'s| is| was| are| were)|tell me|do you (?:know|remember)|remember|recall) my ([\w' ]{1,40})"
    r"|\bwho am i\b",
    re.I,
)
_WHAT_I_SAID = re.compile(
    r"\bwhat (?:did|have) i (?:just )?(?:say|said|tell you|told you|mention|mentioned|write|written|ask|asked)\b"
    r"(?: you)?(?: (?:about|on|regarding) (.+))?"
    r"|\b(?:do you remember|what do you (?:know|remember) about) (?!my\b)(.+)",
    re.I,
)
_FACT = re.compile(r"\b(?:my|(?:the )?user's) ([\w' ]{1,40}?) (?:is|are|was|were) (.+)", re.I)
_NAME = re.compile(r"\b(?:[Ii] am|[Ii]'m|[Cc]all me) ([A-Z][\w-]*(?: [A-Z][\w-]*){0,3})")
_QUESTION = re.compile(r"(?:what|who|where|when|which|why|how|is|are|do|does|did|can|could|was|were)\b|.*\?$", re.I | re.S)
_ABOUT = re.compile(r"\b(?:who|what) are you\b|\bwhat can you do\b|\bare you (?:an?|the) |^help\W*$|\bhow can you help\b", re.I)
# The answers to sentences that ask nothing.
_REMARKS = {
    re.compile(r"^(?:hi|hello|hey|greetings|good (?:morning|afternoon|evening|day))\b[^?]{0,30}$", re.I): f"Hello! {ABOUT}",
    re.compile(r"^(?:thanks|thank you|thx)\b", re.I): "You are welcome",
    _FACT: r"Noted: your \1 is \2",
    _NAME: r"Noted: your name is \1",
    re.compile(r"^(?:please )?(?:remember|note)(?: that)? (.+)", re.I): r"Noted: \1",
}

_ENVELOPES = ("result", "value", "output", "answer", "content", "text", "time", "now", "iso", "data", "results")
_PRODUCTS = {"write": "Saved", "image": "Drew", "audio": "Said aloud:"}


class OwnAnswer(NamedTuple):
    text: str
    known: bool = True


class _Said(NamedTuple):
    sentence: str
    by_user: bool
    words: frozenset[str]


def pieces(request: Request, now_seconds: float) -> list[Piece]:
    """Return tool calls, or the text of the answer.

    Raises UpstreamFault (400) if the answer does not fit `response_format`.
    """
    calls = _calls_made(request.since)
    steps = plan(request.goal, request.tools)
    own = None
    if not any(step.tool for step in steps):
        own = own_answer(request, now_seconds)
        steps += _last_resort(request, own)
    rounds = sum(message.role == "assistant" for message in request.since)
    ready = _ready(steps, calls) if rounds < MAX_ROUNDS else []
    if ready:
        return [_call(step, steps, calls) for step in (ready if request.parallel_calls else ready[:1])]
    text = _report(request, steps, calls) if calls or own is None else own.text
    return [TextPiece(in_format(text, request.response_format))]


# --- tools


def _last_resort(request: Request, own: OwnAnswer) -> list[Step]:
    """Return a step if the assistant has no answer of its own or must call a tool."""
    if not request.tools or (own.known and not request.must_call):
        return []
    goal = request.goal[:MAX_GOAL_CHARACTERS]
    goal = " ".join(one for one in sentences(goal) if not ABOUT_TOOLS.fullmatch(one)) or goal
    memory = next((tool for tool in request.tools if skill_of(tool.name) == "search"), None)
    if memory and own.text != FALLBACK:
        return [Step("search", memory, goal, {"query": subject(goal)})]
    tool = tool_for(goal, known_tools(request.tools), by_description=True)
    tool = tool or (request.tools[0] if request.must_call else None)
    return [Step("other", tool, goal)] if tool else []


def _ready(steps: Sequence[Step], calls: Sequence[EarlierCall]) -> list[Step]:
    """Return the steps that can be called now. A step with `needs` waits until all steps before it were called."""
    made = Counter(call.name for call in calls)
    ready: list[Step] = []
    for step in steps:
        if step.tool is not None:
            made[step.tool.name] -= 1
            if made[step.tool.name] < 0 and not (step.needs and ready):
                ready.append(step)
    return ready


def _call(step: Step, steps: Sequence[Step], calls: Sequence[EarlierCall]) -> ToolCallPiece:
    assert step.tool is not None
    values = dict(step.values)
    if step.needs == "id":
        values["id"] = _artifact_id(values["name"], calls) or values["name"]
    elif step.needs:
        results = [_outcome(call) for call in calls[-MAX_REPORTED_CALLS:]]
        informative = [text for text, has_value in results if has_value] + _computed(steps)
        values[step.needs] = "\n".join(informative or [text for text, _ in results])
    given = arguments(step.tool, values, step.clause)
    return ToolCallPiece(step.tool.name, json.dumps(given, ensure_ascii=False))


def _computed(steps: Iterable[Step]) -> list[str]:
    """Return the results of arithmetic for which no tool is offered."""
    return [_computation(step.clause) for step in steps if step.tool is None and step.skill == "calculate"]


def _report(request: Request, steps: Sequence[Step], calls: Sequence[EarlierCall]) -> str:
    lines = [_outcome(call)[0] for call in calls[-MAX_REPORTED_CALLS:]] + _computed(steps)
    if request.tools:
        undone = (step for step in steps if step.tool is None and step.skill != "calculate")
        lines += [f"I was offered no tool for this: {trimmed(step.clause)[:200]}." for step in undone]
    return "\n".join(dict.fromkeys(lines)) or FALLBACK


def _calls_made(since: Iterable[PromptMessage]) -> list[EarlierCall]:
    """Return the calls in these messages, each with its result if a tool message has one."""
    made: list[EarlierCall] = []
    waiting: dict[str, list[EarlierCall]] = {}
    for message in since:
        for call in message.calls:
            made.append(call)
            waiting.setdefault(call.id, []).append(call)
        if message.role == "tool" and waiting.get(message.call_id):
            waiting[message.call_id].pop(0).result = message.text
    return made


def _outcome(call: EarlierCall) -> tuple[str, bool]:
    """Return the call's result as a sentence, and whether it has a value that a later step may need."""
    if call.result is None:
        return f"{call.name}: no result came.", False
    value, failed = _value(call.result)
    if failed:
        return f"{call.name} failed: {value}", True
    given, skill = _object(call.arguments), skill_of(call.name)
    first = next((text for text in given.values() if isinstance(text, str)), "")[:200]
    if skill in _PRODUCTS:
        named = _object(call.result).get("revised_prompt") if skill == "image" else given.get("name")
        return f"{_PRODUCTS[skill]} {(named if isinstance(named, str) else first).rstrip('.')}.", False
    if skill == "calculate":
        return (value if "=" in value else f"{first} = {value}"), True
    label = "The current time" if skill == "time" else f"{call.name}({first})" if first else call.name
    return f"{label}: {value}", True


def _value(result: str) -> tuple[str, bool]:
    """Return what a tool's message says, without its JSON envelopes, and whether it is a failure."""
    value: Any = _object(result) or result
    for _ in range(4):
        if not isinstance(value, dict):
            break
        if value.get("ok") is False or value.get("error"):
            error = value.get("error") or value.get("result") or value
            return _short(error.get("message", error) if isinstance(error, dict) else error), True
        key = next((key for key in _ENVELOPES if key in value), None)
        if key is None:
            break
        value = value[key]
    text = _short(value)
    return text, text.lower().startswith("error")


def _object(text: str) -> dict[str, Any]:
    try:
        value = orjson.loads(text[:MAX_PARSED_CHARACTERS])
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _short(value: Any) -> str:
    try:
        text = value if isinstance(value, str) else orjson.dumps(value).decode()
    except TypeError:  # orjson parses deeper nesting than it writes
        text = "(nested too deep to show)"
    return text if len(text) <= MAX_RESULT_CHARACTERS else text[:MAX_RESULT_CHARACTERS] + "…"


def _artifact_id(name: str, calls: Sequence[EarlierCall]) -> str | None:
    """Return the id closest to `name` in the first result that has ids."""
    for call in calls[-MAX_REPORTED_CALLS:]:
        text = (call.result or "")[:MAX_PARSED_CHARACTERS]
        place = max(text.find(name), 0)
        if ids := list(re.finditer(r"\bart_\w{1,40}", text)):
            return min(ids, key=lambda match: abs(match.start() - place))[0]
    return None


# --- answers without tools


def own_answer(request: Request, now_seconds: float) -> OwnAnswer:
    """Return the answer to the last user message. It is not `known` if it only says that there is none."""
    goal = request.goal[:MAX_GOAL_CHARACTERS].strip()
    dictated = _SAY.fullmatch(goal)
    if dictated and not asks_arithmetic(goal):
        return OwnAnswer(next(iter(quotations(dictated[1])), dictated[1]))
    said = _said_before(request)
    answers: list[OwnAnswer] = []
    remarks: list[str] = []
    for sentence in sentences(goal)[:MAX_SENTENCES]:
        if answer := _answer(sentence[:500], said, now_seconds):
            answers.append(answer)
        elif remark := _remark(sentence[:500]):
            remarks.append(remark)
        said.insert(0, _Said(sentence, True, words(sentence)))
    known = [answer.text for answer in answers if answer.known] or remarks
    if known:
        return OwnAnswer("\n".join(dict.fromkeys(known)))
    return answers[0] if answers else OwnAnswer(FALLBACK, known=False)


def _said_before(request: Request) -> list[_Said]:
    """Return the sentences of users and instructions before the last user message, the newest first."""
    said: list[_Said] = []
    left = MAX_RECALL_CHARACTERS
    for message in reversed(request.before):
        if message.role in ("user", "system", "developer") and left > 0:
            newest_first = sentences(message.text[:left])[: -MAX_RECALL_SENTENCES - 1 : -1]
            said += [_Said(sentence, message.role == "user", words(sentence)) for sentence in newest_first]
            left -= len(message.text)
    return said[:MAX_RECALL_SENTENCES]


def _answer(sentence: str, said: list[_Said], now_seconds: float) -> OwnAnswer | None:
    if mine := _MY.search(sentence):
        return _property(trimmed(mine[1] or "name"), said)
    if about := _WHAT_I_SAID.search(sentence):
        topic = trimmed(about[1] or about[2] or "")
        found = _closest(topic, said) if topic else next((one for one in said if one.by_user), None)
        return _quoted(found) or OwnAnswer(f"I find nothing about {topic or 'that'} in this conversation.", known=False)
    if dated := date_answer(sentence, now_seconds):
        return OwnAnswer(dated)
    if asks_arithmetic(sentence) and (found_expressions := expressions(sentence)):
        return OwnAnswer("\n".join(map(_computation, found_expressions)))
    if _ABOUT.search(sentence):
        return OwnAnswer(ABOUT)
    return _quoted(_closest(sentence, _statements(said))) if _QUESTION.match(sentence) else None


def _computation(expression: str) -> str:
    try:
        return f"{expression} = {calculate(expression)}"
    except ValueError as error:
        return f"{expression[:200]} cannot be computed: {error}"


def _remark(sentence: str) -> str | None:
    found = ((pattern.search(sentence), remark) for pattern, remark in _REMARKS.items())
    return next((trimmed(match.expand(remark)) + "." for match, remark in found if match), None)


def _property(name: str, said: list[_Said]) -> OwnAnswer:
    """Return the answer to `What is my <name>?`."""
    wanted = words(name)
    for sentence, by_user, _ in _statements(said):
        fact = _FACT.search(sentence[:500])
        if fact and words(fact[1]) == wanted:
            return OwnAnswer(f"Your {name} is {trimmed(fact[2])}.")
        if by_user and wanted == words("name") and (introduced := _NAME.search(sentence[:500])):
            return OwnAnswer(f"Your name is {introduced[1]}.")
    missing = OwnAnswer(f"You have not told me your {name} in this conversation.", known=False)
    return _quoted(_closest(name, _statements(said))) or missing


def _statements(said: Iterable[_Said]) -> list[_Said]:
    return [one for one in said if not _QUESTION.match(one.sentence)]


def _closest(topic: str, said: Iterable[_Said]) -> _Said | None:
    """Return the newest sentence with the most words of `topic`, at least half of them."""
    wanted = words(topic)
    best = max(said, key=lambda one: len(wanted & one.words), default=None)
    return best if best and wanted & best.words and len(wanted & best.words) * 2 >= len(wanted) else None


def _quoted(said: _Said | None) -> OwnAnswer | None:
    return OwnAnswer(f'{"You said" if said.by_user else "I was told"}: "{said.sentence[:1000]}"') if said else None
