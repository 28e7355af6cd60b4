"""Fills the arguments of a tool from a request, by the names and types in the tool's own JSON schema."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from svc.builtin.phrases import NUMBER, URL, expressions, quotations, sentences, subject, trimmed
from svc.builtin.request import Tool
from svc.builtin.structured import instance

# What is filled in for one call at most, how many choices are looked at, and how large a value made up from a schema may be.
MAX_FILLED = 50
MAX_CHOICES = 1_000
MAX_CHOICE_CHARACTERS = 8_000
MAX_VALUE_COST = 200

_WORDS = re.compile(r"[^\W_]+")
# Role of a value: the properties it goes into, the likeliest first.
ALIASES: dict[str, tuple[str, ...]] = {
    "expression": ("expression", "expr", "formula", "equation", "calculation", "problem", "input", "query", "text"),
    "prompt": ("prompt", "description", "text", "input", "query", "subject"),
    "speech": ("input", "text", "content", "message", "script", "prompt"),
    "name": ("name", "filename", "file_name", "title", "path", "file", "artifact"),
    "content": ("content", "contents", "text", "body", "data", "note"),
    "id": ("id", "artifact_id", "file_id", "note_id"),
    "query": ("query", "q", "search", "text", "topic", "keywords", "input"),
    "url": ("url", "uri", "link", "href", "address"),
    "place": ("location", "city", "place", "town", "country"),
}


def property_for(tool: Tool, role: str) -> str | None:
    """The property of `tool` that takes a value of this role; a tool without a schema takes it under the role's first name."""
    if not tool.properties:
        return ALIASES[role][0]
    return next((name for name in ALIASES[role] if _takes_text(tool.properties.get(name))), None)


def arguments(tool: Tool, values: Mapping[str, str], clause: str) -> dict[str, Any]:
    """Arguments for `tool`: `values` by their roles, then what else it requires, read out of `clause`."""
    given: dict[str, Any] = {}
    for role, value in values.items():
        name = property_for(tool, role)
        if name is not None and name not in given:
            given[name] = value
    wanted = [name for name in tool.required if name not in given]
    if not tool.required and not given:
        wanted = [name for name in tool.properties if _takes_text(tool.properties[name])][:1]
    numbers, quoted = iter(NUMBER.findall(clause)), iter(quotations(clause))
    for name in wanted[:MAX_FILLED]:
        try:
            given[name] = _value(tool, name, clause, numbers, quoted)
        except ValueError:
            # A property that nothing fits is left out; the tool will say what it misses.
            continue
    return given


def _takes_text(schema: Any) -> bool:
    if not isinstance(schema, dict) or "enum" in schema or "const" in schema:
        return False
    kind = schema.get("type", "string")
    return kind == "string" or (isinstance(kind, list) and "string" in kind)


def _value(tool: Tool, name: str, clause: str, numbers: Iterator[str], quoted: Iterator[str]) -> Any:
    schema = tool.properties.get(name, {"type": "string"})
    schema = schema if isinstance(schema, dict) else {"type": "string"}
    choices = schema.get("enum")
    if isinstance(choices, list):
        return _mentioned(choices[:MAX_CHOICES], clause)
    if schema.get("type") in ("integer", "number"):
        whole = schema["type"] == "integer"
        number = next((one for one in numbers if not (whole and "." in one)), None)
        if number is not None and len(number) <= 18:
            return float(number) if "." in number else int(number)
    if not _takes_text(schema) or "format" in schema:
        url = URL.search(clause) if schema.get("format") in ("uri", "url") else None
        return url[0] if url else instance(tool.parameters, schema, name=name, text=subject(clause), max_cost=MAX_VALUE_COST)
    return _text(name.lower(), clause, quoted)


def _mentioned(choices: list[Any], clause: str) -> Any:
    """The first of `choices` whose words stand in `clause`, else the very first."""
    said = _spaced(clause)
    return next((one for one in choices if isinstance(one, str) and _spaced(one) in said), choices[0] if choices else None)


def _spaced(text: str) -> str:
    """The words of `text` in lower case between single blanks, so that whole words are found without a pattern for each."""
    return " " + " ".join(_WORDS.findall(text[:MAX_CHOICE_CHARACTERS].lower())) + " "


def first_sentence(text: str) -> str:
    return trimmed(next(iter(sentences(text)), ""))


def _text(name: str, clause: str, quoted: Iterator[str]) -> str:
    if name in ALIASES["url"]:
        url = URL.search(clause)
        return url[0] if url else subject(clause)
    if name in ALIASES["expression"][:6]:
        return next(iter(expressions(clause)), None) or subject(clause)
    if name in ALIASES["place"]:
        return next(quoted, None) or first_sentence(subject(clause))
    return next(quoted, None) or subject(clause)
