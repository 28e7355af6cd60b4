"""The assistant's plan: what a goal asks for, which offered tool does it, and the arguments for that tool.

goal -> clauses -> skills, or the client's own tools -> steps in order

The plan depends on the goal and the tools alone, so each round of an agent run continues the same plan.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple

from svc.builtin import english
from svc.builtin.english import FILE_NAME, MAX_GOAL_CHARACTERS, URL, expressions, quotations, subject, trimmed, words
from svc.builtin.request import Tool
from svc.builtin.structured import instance

MAX_STEPS = 8
MAX_ARGUMENTS = 50
MAX_CHOICES = 1_000
MAX_VALUE_COST = 200

_FILE = "(?:artifact|file|note|document)"
_MAKE = "generate|create|make"


# By skill, the names of tools that serve it.
TOOL_NAMES = {
    "fetch": "fetch|browse|download|_url",
    "list": f"list_{_FILE}s",
    "audio": "audio|speech|speak|tts|voice",
    "image": "image|picture|draw|paint",
    "read": f"(?:read|open|get)_{_FILE}",
    "write": f"(?:write|save|create)_{_FILE}",
    "search": "memory|memories",
    "time": "^(?:get_|current_)*(?:date|time|datetime)$",
    "calculate": "calc|math|compute",
}
# The role of the value that such a tool must have a parameter for.
ROLES = {"fetch": "url", "audio": "speech", "image": "prompt", "write": "content", "search": "query", "calculate": "expression"}
# By skill, the beginning of a clause. The first match wins: `make a recording of the picture` is audio.
ASKED = {
    "fetch": URL.pattern,
    "list": rf"^(?:list|show|what|which)\b.*\b{_FILE}s\b",
    "audio": rf"^(?:speak|narrate|pronounce|(?:say|read|record|{_MAKE}|turn|convert|an?)\b.*"
    r"\b(?:aloud|out loud|audio|speech|recording))\b",
    "image": rf"^(?:draw|paint|sketch|illustrate|(?:{_MAKE}|design|show me|an?)\b.*"
    r"\b(?:image|picture|drawing|illustration|painting|photo|sketch|logo))\b",
    "read": rf"^(?:read|open|show|print|what(?:'s| is) in)\b.*(?:\b{_FILE}\b|\w\.[a-z]{{2,5}}\b)",
    "write": r"^(?:save|store|jot|write|record|note"
    rf"|(?:{_MAKE}|add|put)\b.*\b(?:{_FILE}|report|memo))\b",
    "search": r"^(?:search|look|find|check|recall)\b.*\b(?:memory|memories|conversations?|history|past)\b",
    "time": r"\b(?:what(?:'s| is) the|current|tell me the) (?:current )?(?:time|date)\b"
    r"|\bwhat (?:time is it|day is (?:it|today))\b",
    "calculate": r"^(?:add|subtract|multiply|divide)\b.*\d",
}
# Each role's parameters, the likeliest first.
PARAMETERS = {
    "expression": ["expression", "expr", "formula", "equation", "calculation", "input", "query", "text"],
    "prompt": ["prompt", "description", "text", "input", "query", "subject"],
    "speech": ["input", "text", "content", "message", "script", "prompt"],
    "name": ["name", "filename", "file_name", "title", "path", "file", "artifact"],
    "content": ["content", "contents", "text", "body", "data", "note"],
    "id": ["id", "artifact_id", "file_id", "note_id"],
    "query": ["query", "q", "search", "text", "topic", "keywords", "input"],
    "url": ["url", "uri", "link", "href", "address"],
    "place": ["location", "city", "place", "town", "country"],
}

_RESULT = re.compile(r"\b(?:results?|answers?|outcomes?|total|it|that|this|them|everything|both)\b", re.I)
_NAMED = re.compile(r"\b(?:named|called|titled)\s+[\"'`]?([\w-]{1,80})", re.I)
_NOUN = re.compile(r"\b(note|file|document|report|memo|list|summary|letter)\b", re.I)
_SAYING = re.compile(r"(?::|\b(?:saying|that says|containing|with the (?:text|words)))\s+(.+)", re.I | re.S)
_ABOUT = re.compile(r"\b(?:about|on)\s+(.+)", re.I | re.S)
_OBJECT = re.compile(r"\w+(?: down)? (.+?) (?:to|in|into|as|under) (?:(?:a|an|the|my) )?[\w.-]+\W*$", re.I | re.S)
_AND_SAVE = re.compile(r"[,;.]?\s(?:and |then )*(?:save|store|write|put) (?:it|this|that|them)\b", re.I)
_MADE_OF = re.compile(
    r"(?:draw|paint|sketch|illustrate|speak|narrate|pronounce|say|read)\s+(?:(?:me|us|aloud|out loud)\s+)?(.+?)"
    r"(?:\s+(?:aloud|out loud|(?:in|as)\s+(?:an?\s+)?(?:audio|speech)))?$",
    re.I | re.S,
)
_OF = re.compile(r"(?::|\b(?:of|showing|with|depicting|saying|that says|for|from))\s+(.+)", re.I | re.S)
# `Use the tool` adds nothing to a goal.
ABOUT_TOOLS = re.compile(r"(?:use|call|try|invoke)\b.{0,80}\btools?\W*", re.I | re.S)
_LIST_END = re.compile(r",\s{1,9}(?:and\s{1,9})?|\s(?:and|or)\s{1,9}", re.I)


class Step(NamedTuple):
    """One thing to do. Without a `tool`, no offered tool does it.

    `values` are the known arguments by role. `needs` is the role whose value comes from the results of earlier steps.
    """

    skill: str
    tool: Tool | None
    clause: str
    values: Mapping[str, str] = {}
    needs: str = ""


class KnownTool(NamedTuple):
    tool: Tool
    name: frozenset[str]
    description: frozenset[str]


def plan(goal: str, tools: Sequence[Tool]) -> list[Step]:
    offered: dict[str, Tool] = {}
    for tool in tools:
        skill = skill_of(tool.name)
        if skill and (skill not in ROLES or parameter(tool, ROLES[skill])):
            offered.setdefault(skill, tool)
    others = known_tools(tool for tool in tools if tool not in offered.values())
    steps: list[Step] = []
    for skill, text in _requests(goal[:MAX_GOAL_CHARACTERS], others):
        found = offered.get(skill)
        other = None if found else tool_for(text, others)
        made = _steps("other" if other else skill, found or other, text, offered, later=bool(steps))
        steps += islice(made, MAX_STEPS)
    return [step for index, step in enumerate(steps) if step not in steps[:index]][:MAX_STEPS]


def skill_of(tool_name: str) -> str | None:
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[-. ]", "_", tool_name[:64]).lower()
    return next((skill for skill, names in TOOL_NAMES.items() if re.search(names, name)), None)


def known_tools(tools: Iterable[Tool]) -> list[KnownTool]:
    names = ((tool, re.sub("(?<=[a-z0-9])(?=[A-Z])", " ", tool.name[:64])) for tool in tools)
    return [KnownTool(tool, words(name), words(tool.description[:500])) for tool, name in names]


def tool_for(clause: str, known: Iterable[KnownTool], *, by_description: bool = False) -> Tool | None:
    """Return the tool whose name shares the most words with `clause`; its description decides between equals."""
    wanted = words(clause)

    def score(one: KnownTool) -> int:
        named = len(wanted & one.name)
        return 10 * named + len(wanted & one.description) if named or by_description else 0

    best = max(known, key=score, default=None)
    return best.tool if best and score(best) else None


def _requests(goal: str, others: list[KnownTool]) -> list[tuple[str, str]]:
    """Return pairs of a skill, or `other`, and the text that asks for it: `a cat and a dog` stays together."""
    found: list[tuple[str, str]] = []
    for before, clause in english.clauses(goal):
        if found and ABOUT_TOOLS.fullmatch(clause.strip()):
            continue
        skill = _skill_asked(clause) or ("other" if tool_for(clause, others) else "")
        last_skill, last = found[-1] if found else ("", "")
        saves_it = skill == last_skill == "write" and _RESULT.search(clause[:30])
        if last_skill and (not skill or saves_it):
            found[-1] = (last_skill, last + before + clause)
        elif skill:
            found.append((skill, clause))
    return [(skill, english.without_politeness(text)) for skill, text in found]


def _skill_asked(clause: str) -> str:
    head = english.without_politeness(clause[:300])
    skills = (skill for skill, asked in ASKED.items() if re.search(asked, head, re.I | re.S))
    return next(skills, "calculate" if english.asks_arithmetic(head) and expressions(head) else "")


def _steps(skill: str, tool: Tool | None, text: str, offered: Mapping[str, Tool], later: bool) -> Iterator[Step]:
    """Yield the steps of one request. `later` requests may mean the results of the steps before."""
    if skill == "calculate":
        yield from (Step(skill, tool, one, {"expression": one}) for one in expressions(text))
    elif skill == "fetch":
        yield from (Step(skill, tool, one, {"url": one}) for one in dict.fromkeys(URL.findall(text)))
    elif skill in ("image", "audio"):
        match = _MADE_OF.match(trimmed(text)) or _OF.search(text)
        quoted = quotations(text) if skill == "audio" else []
        about = quoted[0] if quoted else _rest(match, text)
        of_result = later and len(about.split()) <= 3 and _RESULT.search(about)
        role = ROLES[skill]
        yield Step(skill, tool, text, needs=role) if of_result else Step(skill, tool, text, {role: about})
    elif skill == "write":
        yield _write(tool, text, later)
    elif skill == "read":
        yield from _read(tool, text, offered)
    elif skill == "other" and tool and tool.properties and parameter(tool, "place"):
        for part in _LIST_END.split(_first_sentence(subject(text))):
            place = trimmed(re.sub(r"^\s*(?:in|at|for|of|the)\s+", "", part, flags=re.I))
            yield Step(skill, tool, text, {"place": place})
    else:
        yield Step(skill, tool, text, {"query": subject(text)} if skill == "search" else {})


def _rest(match: re.Match[str] | None, text: str) -> str:
    return trimmed(match[1]) if match else subject(text)


def _write(tool: Tool | None, text: str, later: bool) -> Step:
    file_name, named, noun = FILE_NAME.search(text), _NAMED.search(text), _NOUN.search(text)
    name = file_name[0] if file_name else (named[1] if named else noun[1].lower() if noun else "note") + ".txt"
    quoted = [one for one in quotations(text) if one != name and not (named and one.startswith(named[1]))]
    wanted = _AND_SAVE.split(text)[0]
    saying, thing, about = _SAYING.search(wanted), _OBJECT.match(wanted), _ABOUT.search(wanted)
    content = trimmed(thing[1]) if thing and not _NOUN.search(thing[1]) else ""
    if quoted or saying:
        content = quoted[0] if quoted else _rest(saying, wanted)
    elif later and (_RESULT.search(content) if content else not about or _RESULT.search(about[1])):
        return Step("write", tool, text, {"name": name}, needs="content")
    return Step("write", tool, text, {"name": name, "content": content or _rest(about, wanted)})


def _read(tool: Tool | None, text: str, offered: Mapping[str, Tool]) -> Iterator[Step]:
    """Yield the steps that read a file. A tool that reads by id needs the list of files first."""
    by_id = tool is not None and not parameter(tool, "name")
    if artifact_id := re.search(r"\bart_\w{1,40}", text):
        yield Step("read", tool, text, {"id" if by_id else "name": artifact_id[0]})
        return
    file_name, named = FILE_NAME.search(text), _NAMED.search(text)
    name = file_name[0] if file_name else named[1] if named else subject(text)
    if by_id and "list" in offered:
        yield Step("list", offered["list"], name)
    yield Step("read", tool, text, {"name": name}, needs="id" if by_id and "list" in offered else "")


def parameter(tool: Tool, role: str) -> str | None:
    """Return the parameter of `tool` for a value of this role. A tool without a schema has the role's first."""
    names = PARAMETERS[role]
    return next((name for name in names if _takes_text(tool.properties.get(name))), None) if tool.properties else names[0]


def arguments(tool: Tool, values: Mapping[str, str], clause: str) -> dict[str, Any]:
    """Return arguments for `tool`: `values` by role, and its other required parameters from `clause`."""
    given: dict[str, Any] = {}
    for role, value in values.items():
        if name := parameter(tool, role):
            given.setdefault(name, value)
    wanted = [name for name in tool.required if name not in given]
    if not tool.required and not given:
        wanted = [name for name, schema in tool.properties.items() if _takes_text(schema)][:1]
    numbers, quoted = iter(re.findall(r"-?[0-9]+(?:\.[0-9]+)?", clause)), iter(quotations(clause))
    for name in wanted[:MAX_ARGUMENTS]:
        with suppress(ValueError):  # no value fits its schema: the tool names the missing parameter
            given[name] = _argument(tool, name, clause, numbers, quoted)
    return given


def _takes_text(schema: Any) -> bool:
    if not isinstance(schema, dict) or "enum" in schema or "const" in schema:
        return False
    kind = schema.get("type", "string")
    return kind == "string" or (isinstance(kind, list) and "string" in kind)


def _argument(tool: Tool, name: str, clause: str, numbers: Iterator[str], quoted: Iterator[str]) -> Any:
    schema = tool.properties.get(name)
    schema = schema if isinstance(schema, dict) else {}
    if isinstance(schema.get("enum"), list):
        return _choice(schema["enum"][:MAX_CHOICES], clause)
    if schema.get("type") in ("integer", "number"):
        number = next((one for one in numbers if schema["type"] == "number" or "." not in one), "")
        if 0 < len(number) <= 18:
            return float(number) if "." in number else int(number)
    name, url, computed = name.lower(), URL.search(clause), expressions(clause)
    if url and (name in PARAMETERS["url"] or schema.get("format") in ("uri", "url")):
        return url[0]
    about = subject(clause)
    if not _takes_text(schema) or "format" in schema:
        return instance(tool.parameters, schema, name=name, text=about, max_cost=MAX_VALUE_COST)
    if computed and name in PARAMETERS["expression"][:5]:
        return computed[0]
    return next(quoted, None) or (_first_sentence(about) if name in PARAMETERS["place"] else about)


def _choice(choices: list[Any], clause: str) -> Any:
    """Return the first of `choices` that `clause` mentions, else the first of all."""

    def spaced(text: str) -> str:
        return " " + " ".join(re.findall(r"[^\W_]+", text[:MAX_GOAL_CHARACTERS].lower())) + " "

    said = spaced(clause)
    return next((one for one in choices if isinstance(one, str) and spaced(one) in said), choices[0] if choices else None)


def _first_sentence(text: str) -> str:
    return trimmed(next(iter(english.sentences(text)), ""))
