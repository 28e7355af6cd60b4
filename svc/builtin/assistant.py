"""The models `assistant` and `assistant-paid`: a deterministic assistant that talks and calls the tools it is offered.

    plan of the goal - calls since the last user message -> the calls that can be made now
    no call left -> a report of the results, or an answer from dates, arithmetic and the messages

A step is done once its tool was called as often as the plan says, whatever the result, so a run ends. A forced call
(`tool_choice`) is made once; then the answer is text.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from svc.builtin.answer import Part, ToolCallPart
from svc.builtin.calculate import asks_arithmetic, calculate, expressions
from svc.builtin.dates import date_answer
from svc.builtin.english import MAX_GOAL_CHARACTERS, quotations, sentences, trimmed, words
from svc.builtin.plan import Step, arguments, known_tools, last_call, plan, skill_of, tool_for
from svc.builtin.request import BuiltinRequest, EarlierCall
from svc.builtin.structured import in_format, json_object

MAX_REPORTED_CALLS = 20
MAX_RESULT_CHARACTERS = 2_000
MAX_PARSED_CHARACTERS = 100_000
MAX_RECALLED_SENTENCES = 1_000
MAX_SENTENCES = 10

_SELF = "This is the built-in assistant, a small program and not a language model."
# The page has a card of this title.
_CONNECT = (
    'For real answers, choose "Connect a language model" in a new chat of the web application, or send '
    "POST /user/providers (see /docs)."
)
REFERRAL = f"{_SELF} {_CONNECT}"
INTRODUCTION = (
    f"{_SELF} I can do arithmetic, tell dates, recall what was said in this conversation and call the tools I am "
    f"offered. {_CONNECT}"
)
FALLBACK = f"I cannot answer this. {INTRODUCTION}"
_GREETING = re.compile(
    r"(?i)(?:hi|hello|hey|good (?:morning|afternoon|evening)|help)(?: (?:there|again|assistant|all|me))?\W*$"
    r"|.*\b(?:(?:who|what) are you|are you (?:an?|chat\w*|gpt|claude|gemini|llama)|what can you do"
    r"|(?:what|which) model (?:is|are|do)|connect\b.*\bmodel)\b"
)
_DICTATED = re.compile(r"(?is)(?:please )?(?:say|repeat|echo|(?:reply|respond|answer) with)(?: exactly)?:?\s+(\S.*)")
_MY = re.compile(r"(?i)\b(?:what(?:'s| is| was| are| were)|tell me|remember|recall) my ([\w' ]{1,40})|\bwho am i\b")
_WHAT_I_SAID = re.compile(
    r"(?i)\bwhat (?:did|have) i (?:just )?(?:say|said|tell you|told you)\b(?: (?:about|on) (.+))?"
)
_FACT = re.compile(r"(?i)\b(?:my|(?:the )?user's) ([\w' ]{1,40}?) (?:is|are|was|were) (.+)")
_NAME = re.compile(r"\b(?:[Ii] am|[Ii]'m|[Cc]all me) ([A-Z][\w-]*(?: [A-Z][\w-]*){0,3})")
_QUESTION = re.compile(r"(?is)(?:what|who|where|when|which|why|how|is|are|do|does|did|can|could|was|were)\b|.*\?$")
# The fields of a tool's result that hold its value.
_VALUES = ("error", "message", "result", "value", "output", "answer", "content", "text", "time", "data", "results")
_PRODUCTS = {"write": "Saved", "image": "Drew", "audio": "Said aloud:"}

Answer = tuple[str, bool]  # a text, and whether it answers the question
Said = tuple[str, frozenset[str]]  # a sentence and its words


def parts(request: BuiltinRequest, now_seconds: float) -> list[Part]:
    """Return tool calls, or the text of the answer.

    Raises UpstreamFault (400) if the answer does not fit `response_format`.
    """
    goal, calls = request.goal[:MAX_GOAL_CHARACTERS], request.calls
    last = last_call(request.tools)
    tools = [tool for tool in request.tools if tool is not last]
    steps = plan(goal, tools)
    own, known = "", True
    if not any(step.tool for step in steps):
        own, known = own_answer(request, now_seconds)
        must_call = request.must_call and last is None
        if must_call or not known:
            others = (tool for tool in tools if must_call or not skill_of(tool.name))
            tool = tool_for(goal, known_tools(others), by_description=True)
            if tool or must_call:
                steps = [step for step in steps if step.skill != "beyond"]
                steps.append(Step("other", tool or tools[0], goal))
    computed = [text for step in steps if step.tool is None for text in _computed(step, now_seconds)]
    if ready := _ready(steps, calls):
        return [_call(step, computed, calls) for step in (ready if request.parallel_calls else ready[:1])]
    beyond = any(step.skill == "beyond" for step in steps)
    text = _report(request, steps, [*computed, *(own.splitlines() if known else [])]) if calls or beyond else own
    if last is not None and last.name not in [call.name for call in calls]:
        return [ToolCallPart(last.name, json.dumps(arguments(last, {"answer": text}, goal), ensure_ascii=False))]
    return [in_format(text, request.response_format)]


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


def _call(step: Step, computed: Sequence[str], calls: Sequence[EarlierCall]) -> ToolCallPart:
    assert step.tool is not None
    values, calls = dict(step.values), calls[-MAX_REPORTED_CALLS:]
    if step.needs == "id":  # it is beside the name in a list of files
        listed = "\n".join((call.result or "")[:MAX_PARSED_CHARACTERS] for call in calls)
        entry = re.search(rf'"id": ?"(\w{{1,40}})", ?"name": ?"{re.escape(values["name"])}"', listed)
        values["id"] = entry[1] if entry else values["name"]
    elif step.needs:
        informative = [call for call in calls if skill_of(call.name) not in _PRODUCTS]
        values[step.needs] = "\n".join([*map(_outcome, informative), *computed] or map(_outcome, calls))
    return ToolCallPart(step.tool.name, json.dumps(arguments(step.tool, values, step.clause), ensure_ascii=False))


def _computed(step: Step, now_seconds: float) -> Iterator[str]:
    """Yield the result of a step that needs no tool."""
    if step.skill == "calculate":
        yield _computation(step.clause)
    elif step.skill == "date":
        yield from filter(None, [date_answer(step.clause, now_seconds)])


def _report(request: BuiltinRequest, steps: Sequence[Step], own: Sequence[str]) -> str:
    """Return the results of the calls, what needed no tool, and what was not done."""
    lines = [*map(_outcome, request.calls[-MAX_REPORTED_CALLS:]), *own]
    for step in steps:
        if step.skill == "beyond":
            lines.append(f"I cannot do this: {trimmed(step.clause)[:200]}.")
        elif request.tools and step.tool is None and step.skill not in ("calculate", "date"):
            lines.append(f"I was offered no tool for this: {trimmed(step.clause)[:200]}.")
    lines += [REFERRAL] if any(step.skill == "beyond" for step in steps) else []
    return "\n".join(dict.fromkeys(lines)) or FALLBACK


def _outcome(call: EarlierCall) -> str:
    """Return the call's result as a sentence."""
    if call.result is None:
        return f"{call.name}: no result came."
    given, result = (json_object(text[:MAX_PARSED_CHARACTERS]) or {} for text in (call.arguments, call.result))
    skill = skill_of(call.name)
    value: Any = result
    while isinstance(value, dict):
        value = next((value[key] for key in _VALUES if value.get(key) is not None), None)
    text = (str(value) if isinstance(value, str | int | float) else call.result)[:MAX_RESULT_CHARACTERS]
    if result.get("ok") is False or result.get("error") or text.lower().startswith("error"):
        return f"{call.name} failed: {text}"
    first = next((text for text in given.values() if isinstance(text, str)), "")[:200]
    if skill in _PRODUCTS:
        named = result.get("revised_prompt") if skill == "image" else given.get("name")
        return f"{_PRODUCTS[skill]} {(named if isinstance(named, str) else first).rstrip('.')}."
    if skill == "calculate":
        return text if "=" in text else f"{first} = {text}"
    return f"{'The current time' if skill == 'time' else f'{call.name}({first})' if first else call.name}: {text}"


def own_answer(request: BuiltinRequest, now_seconds: float) -> Answer:
    goal = request.goal[:MAX_GOAL_CHARACTERS].strip()
    dictated = _DICTATED.fullmatch(goal)
    if _GREETING.match(goal[:200]):
        return INTRODUCTION, True
    if dictated and not asks_arithmetic(goal):
        return next(iter(quotations(dictated[1])), dictated[1]), True
    newest_first = (sentence[:1000] for text in reversed(request.earlier) for sentence in reversed(sentences(text)))
    said = [(sentence, words(sentence)) for sentence in islice(newest_first, MAX_RECALLED_SENTENCES)]
    answers: list[Answer] = []
    for sentence in sentences(goal)[:MAX_SENTENCES]:
        answers += filter(None, [_answer(sentence[:500], said, now_seconds)])
        said.insert(0, (sentence[:500], words(sentence[:500])))
    known = [text for text, is_known in answers if is_known]
    return ("\n".join(dict.fromkeys(known)), True) if known else next(iter(answers), (FALLBACK, False))


def _answer(sentence: str, said: list[Said], now_seconds: float) -> Answer | None:
    statements = [one for one in said if not _QUESTION.match(one[0])]
    if mine := _MY.search(sentence):
        name = trimmed(mine[1] or "name").lower()
        values = (value for statement, _ in statements for value, named in _facts(statement) if named == words(name))
        if value := next(values, None):
            return f"Your {name} is {value}.", True
        return _closest(name, statements) or (f"You have not told me your {name} in this conversation.", False)
    if about := _WHAT_I_SAID.search(sentence):
        return _closest(about[1] or "", said) or ("I find nothing about that in this conversation.", False)
    if dated := date_answer(sentence, now_seconds):
        return dated, True
    if asks_arithmetic(sentence) and (found := expressions(sentence)):
        return "\n".join(map(_computation, found)), True
    if sentence.lower().startswith("thank"):
        return "You are welcome.", True
    if _QUESTION.match(sentence):
        return _closest(sentence, statements) if words(sentence) else None
    if sentence.lower().startswith(("remember", "note")) or any(_facts(sentence)):
        return "Noted.", False
    return None


def _computation(expression: str) -> str:
    try:
        return f"{expression} = {calculate(expression)}"
    except ValueError as error:
        return f"{expression[:200]} cannot be computed: {error}"


def _facts(statement: str) -> Iterator[Said]:
    """Yield what a user said of themselves: a value and the words that name it."""
    if fact := _FACT.search(statement):
        yield trimmed(fact[2]), words(fact[1])
    if name := _NAME.search(statement):
        yield name[1], words("name")


def _closest(topic: str, said: list[Said]) -> Answer | None:
    """Quote the newest sentence with the most words of `topic`, at least half of them."""
    wanted = words(topic)
    sentence, its_words = max(said, key=lambda one: len(wanted & one[1]), default=("", frozenset()))
    return (f'I remember: "{sentence}"', True) if sentence and len(wanted & its_words) * 2 >= len(wanted) else None
