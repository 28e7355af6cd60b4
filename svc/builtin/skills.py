"""What the assistant knows how to do with tools: which words ask for it, and which of the tools offered does it."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from svc.builtin.arguments import property_for
from svc.builtin.phrases import URL, asks_arithmetic, expressions, without_politeness, words
from svc.builtin.request import Tool

# A clause's kind shows in its beginning, a tool's purpose in the first lines of its description.
HEAD_CHARACTERS = 300
DESCRIPTION_CHARACTERS = 500

_THING = r"(?:artifact|file|note|document)"
_PICTURE = r"(?:image|picture|drawing|illustration|painting|photo|sketch|logo)"
_MAKE = r"(?:generate|create|make|produce)"


class Skill(NamedTuple):
    """`tool` is the name of our agent's own tool, `similar` matches others' that will do if they take a `role`."""

    tool: str
    similar: re.Pattern[str]
    role: str
    asked: re.Pattern[str]


def _skill(tool: str, similar: str, role: str, asked: str) -> Skill:
    return Skill(tool, re.compile(similar), role, re.compile(asked, re.I | re.S))


# The order matters: `make a recording of …` is audio before it is anything else.
SKILLS = {
    "fetch": _skill("fetch_url", r"fetch|browse|download|(?:open|read|get|visit)_\w*(?:url|page|site|link)", "url", URL.pattern),
    "list": _skill(
        "list_artifacts", rf"(?:list|get)_\w*{_THING}s", "", rf"^(?:list|show|what|which|see|display)\b.*\b{_THING}s\b"
    ),
    "audio": _skill(
        "generate_audio",
        r"audio|speech|speak|tts|voice",
        "speech",
        r"^(?:speak|narrate|pronounce|voice)\b|^(?:say|read)\b.*\b(?:aloud|out loud|(?:in|as) (?:an? )?(?:audio|speech))\b"
        rf"|^(?:{_MAKE}|record|turn|convert)\b.*\b(?:audio|speech|recording|spoken)\b",
    ),
    "image": _skill(
        "generate_image",
        r"image|picture|draw|paint",
        "prompt",
        rf"^(?:draw|paint|sketch|illustrate|render)\b|^(?:{_MAKE}|design|give me|show me)\b.*\b{_PICTURE}\b",
    ),
    "read": _skill(
        "read_artifact",
        rf"(?:read|get|open|load)_\w*{_THING}(?!s)",
        "name",
        rf"^(?:read|open|show|load|print|display|what(?:'s| is) in)\b.*(?:\b{_THING}\b|\w\.[a-z]{{2,5}}\b)",
    ),
    "write": _skill(
        "write_artifact",
        rf"(?:write|save|create|store|add|put)_\w*{_THING}",
        "content",
        rf"^(?:save|store|jot|write|record|note)\b|^(?:{_MAKE}|add|put)\b.*\b(?:{_THING}|report|memo)\b",
    ),
    "search": _skill(
        "search_memory",
        r"memor(?:y|ies)",
        "query",
        r"^(?:search|look|find|check)\b.*\b(?:memory|memories|conversations?|history|past)\b|^recall\b",
    ),
    "time": _skill(
        "current_time",
        r"current_(?:date_?)?time|current_date|^(?:get_)?(?:date_?time|time|date|clock|now)$",
        "",
        r"\bwhat(?:'s| is) the (?:current )?(?:time|date)\b|\bwhat time is it\b|\bwhat day is (?:it|today)\b"
        r"|\b(?:current|tell me the) (?:date|time)\b",
    ),
    "calculate": _skill(
        "calculate", r"calc|math|arithmetic|evaluate|compute", "expression", r"^(?:add|subtract|multiply|divide)\b.*\d"
    ),
}


def skill_asked(clause: str) -> str | None:
    """The skill that `clause` asks for, by how it begins."""
    head = without_politeness(clause[:HEAD_CHARACTERS])
    for name, skill in SKILLS.items():
        if skill.asked.search(head):
            return name
    return "calculate" if asks_arithmetic(head) and expressions(head) else None


def skill_of(tool_name: str) -> str | None:
    """The skill that a tool of this name serves."""
    exact = next((name for name, skill in SKILLS.items() if skill.tool == tool_name), None)
    return exact or next((name for name, skill in SKILLS.items() if skill.similar.search(_snake(tool_name))), None)


def offered_skills(tools: Sequence[Tool]) -> dict[str, Tool]:
    """Skill: the offered tool that does it, our own agent's by preference."""
    found: dict[str, Tool] = {}
    for tool in sorted(tools, key=lambda tool: tool.name not in {skill.tool for skill in SKILLS.values()}):
        name = skill_of(tool.name)
        if name and name not in found and (SKILLS[name].tool == tool.name or _takes(tool, SKILLS[name].role)):
            found[name] = tool
    return found


def _takes(tool: Tool, role: str) -> bool:
    return not role or property_for(tool, role) is not None


class ToolWords(NamedTuple):
    """A tool with the words of its name and of its description, found once for all clauses of a goal."""

    tool: Tool
    name: set[str]
    description: set[str]


def words_of(tools: Sequence[Tool]) -> list[ToolWords]:
    return [
        ToolWords(tool, words(_snake(tool.name).replace("_", " ")), words(tool.description[:DESCRIPTION_CHARACTERS]))
        for tool in tools
    ]


def tool_for_words(clause: str, known: Sequence[ToolWords], *, by_description: bool) -> Tool | None:
    """The tool whose name (or, if asked, description) shares the most words with `clause`."""
    wanted = words(clause)
    best, best_score = None, 0
    for one in known:
        score = 10 * len(wanted & one.name)
        if by_description or score:
            score += len(wanted & one.description)
        if score > best_score:
            best, best_score = one.tool, score
    return best


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[-. ]", "_", name[:64]).lower()
