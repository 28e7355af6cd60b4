"""The assistant's plan: what a goal asks for, which offered tool does it, and the arguments for that tool.

goal -> clauses -> skills, or the client's own tools -> steps in order

The plan depends on the goal and the tools alone, so each round of an agent run continues the same plan.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from svc.builtin import english
from svc.builtin.calculate import asks_arithmetic, expressions
from svc.builtin.dates import date_answer
from svc.builtin.english import URL, quotations, subject, trimmed, words
from svc.builtin.request import Tool
from svc.builtin.structured import argument, takes_text

MAX_STEPS = 8
MAX_ARGUMENTS = 50


def _asked(verbs_with_noun: str, nouns: str, verbs: str = "(?!)") -> str:
    return rf"^(?:{verbs}|(?:{verbs_with_noun})\b.*\b(?:{nouns}))\b"


_FILE = "(?:artifact|file|note|document)"
_FILE_OR_NAME = rf"{_FILE}|\w+\.[a-z]{{2,5}}"
_MAKE = "generate|create|make"
_PICTURE = "image|picture|draw|paint"
_MEMORY = "memory|memories|conversations?|history"
_SAVE = "save|store|jot|write|record|note"
_SOUNDS = "aloud|out loud|audio|speech|recording"
_ABOUT_ME = r"what(?:'s| is| are) my|what did i say"
_TIME = r"\b(?:what(?:'s| is) the|current) (?:time|date)\b|\bwhat (?:time|day) is (?:it|today)\b"
# By skill: the names of its tools, the role of their argument, and the clauses that ask for it. The first match wins:
# `make a recording of the picture` is audio.
SKILLS = {
    "fetch": ("fetch|browse|download|_url", "url", URL.pattern),
    "list": (f"list_{_FILE}s", "", _asked("list|show|what|which", f"{_FILE}s")),
    "audio": ("audio|speech|speak|voice", "content", _asked(f"say|read|record|{_MAKE}|an?", _SOUNDS, "speak|narrate")),
    "image": (_PICTURE, "content", _asked(f"{_MAKE}|an?", "image|picture|drawing|photo", "draw|paint|sketch")),
    "read": (f"(?:read|open|get)_{_FILE}", "", _asked("read|open|show|what(?:'s| is) in", _FILE_OR_NAME)),
    "write": (f"(?:write|save|create)_{_FILE}", "content", _asked(f"{_MAKE}|put", f"{_FILE}|report", _SAVE)),
    "search": ("memory|memories", "query", _asked("search|look|find|check", _MEMORY, _ABOUT_ME)),
    "time": ("^(?:get_|current_)*(?:date|time|datetime)$", "", _TIME),
    "calculate": ("calc|math|compute", "expression", r"^(?:add|subtract|multiply|divide)\b.*\d"),
}
# What needs a language model, or the world outside. A tool of the client may do it.
_BEYOND = re.compile(
    r"(?i)(?:find|research|look up|look for|search|browse|summari[sz]e|translate|explain|describe|analy[sz]e|compare"
    r"|recommend|suggest|buy|send|publish|remind|fix|debug|improve|rewrite|rephrase|proofread|correct|convert|compose"
    r"|brainstorm|invent|develop|implement|build|organi[sz]e|prepare|collect|gather|monitor|create|make|generate|write"
    r"|give me|tell me (?:an?|about)|teach|help me"
    # Words that are nouns, too: `Book a flight`, but not `Book 3 is lost`.
    r"|(?:book|plan|order|post|schedule|review|edit|draft|design|code|program|check|e-?mail|call)"
    r" (?:an?|the|my|our|some|this|that|it|them|him|her))\b"
)
# What somebody must compose, unless it is there to be kept.
_COMPOSED = re.compile(
    r"(?i)\b(?:poems?|haikus?|stor(?:y|ies)|essay|article|letter|e-?mail|song|lyrics|blog|code|scripts?|functions?"
    r"|programs?|translation|summary|plan|jokes?|recipe|analysis)\b"
)
_KEPT = re.compile(r"(?i)(?:save|store|jot|record|note|keep|put)\b")
_NOT_LITERAL = re.compile(r"(?i)(?:an?|the|my|your|some|all|it|this|that|them|everything)\b")
# The last tool call of an agent, whose argument is the answer.
_LAST_CALL = re.compile(r"final_?(?:answer|result)|submit_answer|finish|attempt_completion|task_complete")
# By role, the names of its parameter, the likeliest first.
PARAMETERS = {
    "expression": "expression expr formula equation calculation input query text",
    "content": "content contents prompt input text body message description script note subject",
    "name": "name filename file_name title path file artifact",
    "id": "id artifact_id file_id note_id",
    "query": "query q search text topic keywords input",
    "url": "url uri link href address",
    "place": "location city place town country",
    "answer": "answer result output response text content message summary final_answer",
}

_RESULT = re.compile(r"(?i)\b(?:results?|answers?|outcomes?|total|it|that|this|them|everything|both)\b")
_NAMED = re.compile(r"(?i)\b(?:named|called|titled)\s+[\"'`]?([\w-]{1,80})")
_SAYING = re.compile(r"(?is)(?::|\b(?:saying|that says|containing|with the (?:text|words)))\s+(.+)")
_ABOUT = re.compile(r"(?is)(?::|\b(?:about|on|of|showing|with|depicting|saying|for|from))\s+(.+)")
_SAVED = re.compile(r"(?is)\w+(?: down)? (.+?) (?:to|in|into|as|under) (?:(?:a|an|the|my) )?[\w.-]+\W*$")
_SOUND = r"(?:aloud|out loud|(?:in|as)\s+(?:an?\s+)?(?:audio|speech))"
_MADE = re.compile(rf"(?is)(?:draw|paint|sketch|speak|narrate|say|read)\s+(?:(?:me|aloud)\s+)?(.+?)(?:\s+{_SOUND})?$")
_AND_SAVE = re.compile(r"(?i)[,;.]?\s(?:and |then )*(?:save|store|write|put) (?:it|this|that|them)\b")
_LIST_END = re.compile(r"(?i),\s{1,9}(?:and\s{1,9})?|\s(?:and|or)\s{1,9}")
# `Use the tool` adds nothing to a goal.
_ABOUT_TOOLS = re.compile(r"(?is)(?:use|call|try|invoke)\b.{0,80}\btools?\W*")

KnownTool = tuple[Tool, frozenset[str], frozenset[str]]  # with the words of its name and of its description


class Step(NamedTuple):
    """One step of a plan: what to do (`skill`), the tool that does it, and the words of the goal (`clause`).

    `tool` is None if no offered tool can do it. `values` are the arguments that the goal contains, by role: `name`,
    `content`. `needs` is the role of the argument that the results of earlier steps contain, or empty.
    """

    skill: str
    tool: Tool | None
    clause: str
    values: Mapping[str, str] = {}
    needs: str = ""


def plan(goal: str, tools: Sequence[Tool]) -> list[Step]:
    offered: dict[str, Tool] = {}
    for tool in tools:
        skill = skill_of(tool.name)
        if skill and (not SKILLS[skill][1] or parameter(tool, SKILLS[skill][1])):
            offered.setdefault(skill, tool)
    others = known_tools(tool for tool in tools if tool not in offered.values())
    steps: list[Step] = []
    for skill, text in _requests(goal, others):
        other = None if skill in offered else tool_for(text, others)
        for step in _steps("other" if other else skill, other or offered.get(skill), text, offered, later=bool(steps)):
            if step.needs and steps and steps[-1].skill == "beyond":  # no tool gives the result that this step needs
                step = Step("beyond", None, text)
            if len(steps) < MAX_STEPS and step not in steps:
                steps.append(step)
    return steps


def last_call(tools: Iterable[Tool]) -> Tool | None:
    """Return the tool with which the client wants the answer, such as `final_answer` of smolagents."""
    return next((tool for tool in tools if _LAST_CALL.fullmatch(_named(tool))), None)


def _named(tool: Tool) -> str:
    return re.sub("[-. ]", "_", _spaced(tool.name)).lower()


def skill_of(tool_name: str) -> str:
    name = re.sub("[-. ]", "_", _spaced(tool_name)).lower()
    return next((skill for skill, (names, _, _) in SKILLS.items() if re.search(names, name)), "")


def known_tools(tools: Iterable[Tool]) -> list[KnownTool]:
    return [(tool, words(_spaced(tool.name)), words(tool.description[:500])) for tool in tools]


def _spaced(tool_name: str) -> str:
    return re.sub("(?<=[a-z0-9])(?=[A-Z])", " ", tool_name[:64])


def tool_for(clause: str, known: Iterable[KnownTool], *, by_description: bool = False) -> Tool | None:
    """Return the tool whose name shares the most words with `clause`; its description decides between equals."""
    wanted = words(clause)
    scores = [(10 * len(wanted & name) + min(len(wanted & described), 9), tool) for tool, name, described in known]
    score, tool = max(scores, key=lambda one: one[0], default=(0, None))
    return tool if score >= (1 if by_description else 10) else None


def _requests(goal: str, others: list[KnownTool]) -> list[tuple[str, str]]:
    """Return pairs of a skill, `date`, `other` or `beyond`, and the text that asks for it.

    `a cat and a dog` stays together.
    """
    found: list[tuple[str, str]] = []
    for separator, clause in english.clauses(goal):
        head = english.without_politeness(clause[:300])
        asked = (skill for skill, (_, _, pattern) in SKILLS.items() if re.search(pattern, head, re.I | re.S))
        skill = next(asked, None) or _other_skill(head, clause, others)
        last, text = found[-1] if found else ("", "")
        if not last:
            found += [(skill, clause)] if skill else []
        elif not _ABOUT_TOOLS.fullmatch(clause.strip()):
            joined = not skill or (skill == last == "write" and _RESULT.search(clause[:30]))
            found[-1:] = [(last, text + separator + clause)] if joined else [(last, text), (skill, clause)]
    return [(skill, english.without_politeness(text)) for skill, text in found]


def _other_skill(head: str, clause: str, others: list[KnownTool]) -> str:
    if date_answer(head, 0.0):
        return "date"
    if asks_arithmetic(head) and expressions(head):
        return "calculate"
    return "other" if tool_for(clause, others) else "beyond" if _BEYOND.match(head) else ""


def _steps(skill: str, tool: Tool | None, text: str, offered: Mapping[str, Tool], later: bool) -> Iterator[Step]:
    """Yield the steps of one request. `later` requests may mean the results of the steps before."""
    file_name = english.FILE_NAME.search(text) or _NAMED.search(text)
    name = file_name[file_name.lastindex or 0] if file_name else ""
    quoted = [one for one in quotations(text) if one != name and skill != "image"]
    role = SKILLS[skill][1] if skill in SKILLS else ""
    if skill in ("calculate", "fetch"):
        for one in dict.fromkeys(expressions(text) if skill == "calculate" else URL.findall(text)):
            yield Step(skill, tool, one, {role: one})
    elif skill == "write":
        yield _write_step(tool, text, name if "." in name else f"{name or 'note'}.txt", quoted, later)
    elif skill in ("image", "audio"):
        match = _MADE.match(trimmed(text)) or _ABOUT.search(text)
        about = quoted[0] if quoted else trimmed(match[1]) if match else subject(text)
        needs = role if later and not quoted and _means_a_result(about) else ""
        yield Step(skill, tool, text, {} if needs else {role: about}, needs)
    elif skill == "read":  # a tool that reads by id needs the list of files first
        needs = "id" if tool and not parameter(tool, "name") and "list" in offered else ""
        if needs:
            yield Step("list", offered["list"], name)
        yield Step(skill, tool, text, {"name": name or subject(text)}, needs)
    elif skill == "other" and tool and tool.properties and parameter(tool, "place"):
        for part in _LIST_END.split(english.place(text)):
            one = re.sub(r"(?i)^\s*(?:in|at|for|of|the)\s+", "", part)
            yield Step(skill, tool, text, {"place": trimmed(one)})
    else:
        yield Step(skill, tool, text, {role: subject(text)} if skill == "search" else {})


def _means_a_result(about: str) -> bool:
    return len(about.split()) <= 3 and _RESULT.search(about) is not None


def _write_step(tool: Tool | None, text: str, name: str, quoted: Sequence[str], later: bool) -> Step:
    """Return the step for a file with what the person wrote, or with results. Another text must be composed."""
    wanted = _AND_SAVE.split(text)[0]
    said, saved = _SAYING.search(wanted), _SAVED.match(wanted)
    content = quoted[0] if quoted else trimmed(said[1] if said else saved[1] if saved else "")
    before = wanted.replace(content, "") if quoted else wanted[: said.start(1)] if said else wanted
    composed = not _KEPT.match(wanted) and _COMPOSED.search(before)
    of_a_result = _means_a_result(content or subject(wanted)) or not (content or _ABOUT.search(wanted))
    if later and not quoted and not composed and of_a_result:
        return Step("write", tool, text, {"name": name}, needs="content")
    literal = quoted or said or (saved and not _NOT_LITERAL.match(content))
    if composed or not literal:
        return Step("beyond", None, text)
    return Step("write", tool, text, {"name": name, "content": content})


def parameter(tool: Tool, role: str) -> str | None:
    """Return the parameter of `tool` for a value of this role. A tool without a schema has the role's first."""
    names, known = PARAMETERS[role].split(), tool.properties
    return next((name for name in names if not known or takes_text(known.get(name))), None)


def arguments(tool: Tool, values: Mapping[str, str], clause: str) -> dict[str, Any]:
    """Return arguments for `tool`: `values` by role, and its other required parameters from `clause`."""
    by_name = {parameter(tool, role): value for role, value in values.items()}
    given: dict[str, Any] = {name: value for name, value in by_name.items() if name}
    wanted = [name for name in tool.required if name not in given]
    if not tool.required and not given:
        wanted = [name for name, schema in tool.properties.items() if takes_text(schema)][:1]
    numbers, quoted = iter(re.findall(r"-?[0-9]+(?:\.[0-9]+)?", clause)), iter(quotations(clause))
    for name in wanted[:MAX_ARGUMENTS]:
        schema = tool.properties.get(name)
        if schema is None or (takes_text(schema) and "format" not in schema):
            about = english.place if name in PARAMETERS["place"].split() else subject
            given[name] = next(quoted, None) or about(clause)
        else:
            with suppress(ValueError):  # no value fits its schema: the tool names the missing parameter
                given[name] = argument(tool.parameters, schema, name, clause, numbers)
    return given
