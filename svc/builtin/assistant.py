"""The models `assistant` and `assistant-paid`: a deterministic assistant that talks and calls the tools it is offered.

    plan of the goal - calls made since the last user message -> the calls that can be made now
    nothing left to call -> a report of the results, or, where nothing was called, an answer of its own (talk.py)

A step counts as done once its tool has been called as often as the plan says, whatever came of it: no call is repeated, so a
run ends. A forced call (`tool_choice`) is made once; then the answer is text, or an agent that always forces would never end.
"""

import json
from collections import Counter
from collections.abc import Sequence

from svc.builtin.answer import Piece, TextPiece, ToolCallPiece
from svc.builtin.arguments import arguments
from svc.builtin.phrases import MAX_GOAL_CHARACTERS, sentences, subject, trimmed
from svc.builtin.plan import ABOUT_TOOLS, Step, plan
from svc.builtin.request import EarlierCall, Request
from svc.builtin.results import artifact_id, calls_made, outcomes
from svc.builtin.skills import offered_skills, tool_for_words, words_of
from svc.builtin.structured import in_format
from svc.builtin.talk import FALLBACK, OwnAnswer, computation, own_answer

MAX_ROUNDS = 10


def pieces(request: Request, now_seconds: float) -> list[Piece]:
    """Tool calls, or the text of the answer. Raises UpstreamFault (400) if the answer has no place in `response_format`."""
    calls = calls_made(request.since)
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


def _last_resort(request: Request, own: OwnAnswer) -> list[Step]:
    """A tool where the assistant has no answer of its own, or has to call one."""
    told = sentences(request.goal[:MAX_GOAL_CHARACTERS])
    goal = " ".join(one for one in told if not ABOUT_TOOLS.fullmatch(one)) or request.goal[:MAX_GOAL_CHARACTERS]
    if not request.tools or (own.known and not request.must_call):
        return []
    memory = offered_skills(request.tools).get("search")
    if memory and own.text != FALLBACK:
        return [Step("search", memory, goal, {"query": subject(goal)})]
    tool = tool_for_words(goal, words_of(request.tools), by_description=True)
    if tool is None and request.must_call:
        tool = request.tools[0]
    return [Step("other", tool, goal)] if tool else []


def _ready(steps: Sequence[Step], calls: Sequence[EarlierCall]) -> list[Step]:
    """The steps not yet called whose needs are met. As long as any is missing, the first of them is ready: a run gets on."""
    made = Counter(call.name for call in calls)
    ready: list[Step] = []
    missing = False
    for step in steps:
        if step.tool is None:
            continue
        made[step.tool.name] -= 1
        if made[step.tool.name] >= 0:
            continue
        if not (step.needs and missing):
            ready.append(step)
        missing = True
    return ready


def _call(step: Step, steps: Sequence[Step], calls: Sequence[EarlierCall]) -> ToolCallPiece:
    assert step.tool is not None
    values = dict(step.values)
    if step.needs == "id":
        values["id"] = artifact_id(values["name"], calls) or values["name"]
    elif step.needs:
        values[step.needs] = _results(steps, calls)
    given = arguments(step.tool, values, step.clause)
    return ToolCallPiece(step.tool.name, json.dumps(given, ensure_ascii=False))


def _results(steps: Sequence[Step], calls: Sequence[EarlierCall]) -> str:
    """The results so far, for a note of them: values if there are any, else what was made."""
    known = outcomes(calls)
    informative = [one.text for one in known if one.informative] + _own_results(steps)
    return "\n".join(informative or [one.text for one in known])


def _own_results(steps: Sequence[Step]) -> list[str]:
    """Arithmetic that no tool was offered for."""
    return [computation(step.clause) for step in steps if step.tool is None and step.skill == "calculate"]


def _report(request: Request, steps: Sequence[Step], calls: Sequence[EarlierCall]) -> str:
    lines = [one.text for one in outcomes(calls)] + _own_results(steps)
    if request.tools:
        undone = (step for step in steps if step.tool is None and step.skill != "calculate")
        lines += [f"I was offered no tool for this: {trimmed(step.clause)[:200]}." for step in undone]
    return "\n".join(dict.fromkeys(lines)) or FALLBACK
