"""Plans a goal into steps: which clause of it asks for what, and which of the tools offered does that.

    goal -> clauses -> what each asks for (a skill, or a tool of the caller's by its name) -> steps, in order

The plan depends on the goal and the tools alone, so that every round of an agent run finds the same one and goes on in it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from svc.builtin.arguments import first_sentence, property_for
from svc.builtin.phrases import (
    FILE_NAME,
    MAX_GOAL_CHARACTERS,
    URL,
    clauses,
    expressions,
    quotations,
    subject,
    trimmed,
    without_politeness,
)
from svc.builtin.request import Tool
from svc.builtin.skills import ToolWords, offered_skills, skill_asked, tool_for_words, words_of

MAX_STEPS = 8

_RESULT = re.compile(r"\b(?:results?|answers?|outcomes?|total|it|that|this|them|everything|both)\b", re.I)
_NAMED = re.compile(r"\b(?:named|called|titled)\s+[\"'`]?([\w-]{1,80})", re.I)
_NOUN = re.compile(r"\b(note|file|document|report|memo|list|summary|letter)\b", re.I)
_SAYING = re.compile(r"(?::|\b(?:saying|that says|which says|containing|with the (?:text|content|words)))\s+(.+)", re.I | re.S)
_ABOUT = re.compile(r"\b(?:about|on)\s+(.+)", re.I | re.S)
_OBJECT = re.compile(r"\w+(?: down)? (.+?) (?:to|in|into|as|under) (?:(?:a|an|the|my) )?[\w.-]+\W*$", re.I | re.S)
_AND_SAVE = re.compile(r"[,;.]?\s(?:and |then )*(?:save|store|write|put) (?:it|this|that|them)\b", re.I)
_PICTURE_OF = re.compile(r"\b(?:of|showing|with|depicting)\s+(.+)", re.I | re.S)
_DRAW = re.compile(r"(?:draw|paint|sketch|illustrate|render)\s+(?:me\s+|us\s+)?(.+)", re.I | re.S)
_SPEAK = re.compile(
    r"(?:speak|narrate|pronounce|voice|say|read)\s+(?:(?:aloud|out loud)\s+)?(.+?)"
    r"(?:\s+(?:aloud|out loud|(?:in|as)\s+(?:an?\s+)?(?:audio|speech)))?$",
    re.I | re.S,
)
_SPEECH_OF = re.compile(r"(?::|\b(?:of|saying|for|from|that says))\s+(.+)", re.I | re.S)
# How to do what is asked for, and nothing to do: `Use the tool`.
ABOUT_TOOLS = re.compile(r"(?:use|call|try|invoke)\b.{0,80}\btools?\W*", re.I | re.S)
_NAMELESS = re.compile(r"(?:an?|the)\s", re.I)
_LIST_END = re.compile(r",\s{1,9}(?:and\s{1,9})?|\s(?:and|or)\s{1,9}", re.I)
_PREPOSITION = re.compile(r"(?:in|at|for|of|the)\s+", re.I)


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do; without a `tool` no offered one does it.

    `values` are the arguments known so far, by their roles. A `needs` names the role whose value comes from the results of
    the steps before; these have to be called first.
    """

    skill: str
    tool: Tool | None
    clause: str
    values: Mapping[str, str] = field(default_factory=dict)
    needs: str = ""


def plan(goal: str, tools: Sequence[Tool]) -> list[Step]:
    """The steps that `goal` asks for, at most 8, in the order in which they can be done."""
    offered = offered_skills(tools)
    taken = {tool.name for tool in offered.values()}
    others = words_of([tool for tool in tools if tool.name not in taken])
    steps: list[Step] = []
    for skill, text in _grouped(goal[:MAX_GOAL_CHARACTERS], others):
        tool = offered.get(skill) or tool_for_words(text, others, by_description=False)
        known = skill if tool is None or tool is offered.get(skill) else "other"
        for step in _steps(known, tool, text, offered, bool(steps)):
            if step not in steps:
                steps.append(step)
    return steps[:MAX_STEPS]


def _grouped(goal: str, others: Sequence[ToolWords]) -> list[tuple[str, str]]:
    """Pairs of a skill (`other`: a tool of the caller's) and the text that asks for it: `a cat and a dog` stays together."""
    groups: list[tuple[str, str]] = []
    for before, clause in clauses(goal):
        if groups and ABOUT_TOOLS.fullmatch(clause.strip()):
            continue
        skill = _skill(clause) or ("other" if tool_for_words(clause, others, by_description=False) else "")
        same_thing = skill == "write" and bool(groups) and groups[-1][0] == "write" and _RESULT.search(clause[:30])
        if groups and (same_thing or (not skill and groups[-1][0])):
            groups[-1] = (groups[-1][0], groups[-1][1] + before + clause)
        elif skill:
            groups.append((skill, clause))
    return [(skill, without_politeness(text)) for skill, text in groups]


def _skill(clause: str) -> str | None:
    """The skill that a clause asks for; `and a recording of it` goes on with the verb of the clause before."""
    skill = skill_asked(clause)
    if skill is None and _NAMELESS.match(clause) and (made := skill_asked(f"make {clause}")) in ("image", "audio"):
        return made
    return skill


def _steps(skill: str, tool: Tool | None, text: str, offered: Mapping[str, Tool], later: bool) -> Iterator[Step]:
    """The steps of one group; `later` when there are steps before it, whose results it may speak of."""
    if skill == "calculate":
        yield from (Step(skill, tool, expression, {"expression": expression}) for expression in expressions(text))
    elif skill == "fetch":
        yield from (Step(skill, tool, url, {"url": url}) for url in dict.fromkeys(URL.findall(text)))
    elif skill == "write":
        yield _write(tool, text, later)
    elif skill == "image":
        match = _DRAW.match(text) or _PICTURE_OF.search(text)
        yield _made(Step(skill, tool, text, {"prompt": _whole(match, text)}), later)
    elif skill == "audio":
        match = _SPEAK.match(trimmed(text)) or _SPEECH_OF.search(text)
        spoken = next(iter(quotations(text)), None) or _whole(match, text)
        yield _made(Step(skill, tool, text, {"speech": spoken}), later)
    elif skill == "read":
        yield from _read(tool, text, offered)
    elif skill == "other" and tool is not None:
        yield from _other(tool, text)
    else:
        yield Step(skill, tool, text, {"query": subject(text)} if skill == "search" else {})


def _made(step: Step, later: bool) -> Step:
    """The step, or where `it` or `the result` is to be drawn or said, one that waits for the results of those before."""
    ((role, subject_text),) = step.values.items()
    if later and len(subject_text.split()) <= 3 and _RESULT.search(subject_text):
        return Step(step.skill, step.tool, step.clause, needs=role)
    return step


def _whole(match: re.Match[str] | None, text: str) -> str:
    return trimmed(match[1]) if match else subject(text)


def _write(tool: Tool | None, text: str, later: bool) -> Step:
    file_name, named, noun = FILE_NAME.search(text), _NAMED.search(text), _NOUN.search(text)
    name = file_name[0] if file_name else (named[1] if named else noun[1].lower() if noun else "note") + ".txt"
    quoted = [one for one in quotations(text) if one != name and not (named and one.startswith(named[1]))]
    wanted = _AND_SAVE.split(text)[0]
    saying, thing, about = _SAYING.search(wanted), _OBJECT.match(wanted), _ABOUT.search(wanted)
    if quoted or saying:
        return Step("write", tool, text, {"name": name, "content": quoted[0] if quoted else _whole(saying, wanted)})
    content = trimmed(thing[1]) if thing and not _NOUN.search(thing[1]) else ""
    own_subject = about is not None and not _RESULT.search(about[1])
    if later and (_RESULT.search(content) if content else not own_subject):
        return Step("write", tool, text, {"name": name}, needs="content")
    return Step("write", tool, text, {"name": name, "content": content or _whole(about, wanted)})


def _read(tool: Tool | None, text: str, offered: Mapping[str, Tool]) -> Iterator[Step]:
    """A file that is known by its name is looked up in the list first, where the tool reads by id."""
    artifact_id, file_name, named = re.search(r"\bart_\w{1,40}", text), FILE_NAME.search(text), _NAMED.search(text)
    name = file_name[0] if file_name else named[1] if named else next(iter(quotations(text)), "") or subject(text)
    by_id = tool is not None and property_for(tool, "name") is None
    if artifact_id:
        yield Step("read", tool, text, {"id" if by_id else "name": artifact_id[0]})
    elif by_id and "list" in offered:
        yield Step("list", offered["list"], name)
        yield Step("read", tool, text, {"name": name}, needs="id")
    else:
        yield Step("read", tool, text, {"name": name})


def _other(tool: Tool, text: str) -> Iterator[Step]:
    """A caller's own tool; one that takes a place is called for each place."""
    place = property_for(tool, "place") if tool.properties else None
    if place is None:
        yield Step("other", tool, text)
        return
    for part in _LIST_END.split(first_sentence(subject(text))):
        name = trimmed(_PREPOSITION.sub("", part.strip(), count=1) if _PREPOSITION.match(part.strip()) else part)
        if name:
            yield Step("other", tool, text, {"place": name})
