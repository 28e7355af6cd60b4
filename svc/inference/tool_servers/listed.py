"""The tools that a server lists: checked, and cut to what model servers accept.

tools/list -> usable(): names, sizes, schemas -> ListedTool with a digest, by which a change is noticed
"""

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import orjson

MOST_TOOLS = 64
NAME_CHARACTERS = 64
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_PROPERTY_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")  # what Anthropic and OpenAI accept
_HEADER_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,64}")
_DESCRIPTION_CHARACTERS = 4_000
_SCHEMA_BYTES = 16 * 1024
_LIST_BYTES = 256 * 1024
_MOST_DEPTH = 12
_HASH_CHARACTERS = 6
_MOST_REASONS = 5
_TYPES = frozenset(("object", "array", "string", "number", "integer", "boolean", "null"))
# Model servers refuse the keywords that combine schemas at the root.
_ROOT = ("type", "properties", "required", "additionalProperties", "$defs", "definitions", "description", "title")


class ListedTool(NamedTuple):
    """A tool of a server. `headers` has the path of an argument by the header of revision 2026-07-28 that repeats it.

    `digest` is of what the server sent, before it was cut. `accepted_description` is that of a tool that
    has changed since its owner accepted it.
    """

    name: str
    description: str
    schema: dict[str, Any]
    read_only: bool
    headers: dict[str, list[str]]
    digest: str
    accepted_description: str | None = None


class _Unusable(Exception):
    """Why a tool is left out."""


def full_name(server: str, tool: str) -> str:
    """Return the name of the tool for models: `<server>__<tool>`, at most 64 characters."""
    name = f"{server}__{tool}"
    if len(name) <= NAME_CHARACTERS:
        return name
    end = hashlib.sha256(name.encode()).hexdigest()[:_HASH_CHARACTERS]
    return name[: NAME_CHARACTERS - _HASH_CHARACTERS] + end


def usable(entries: Iterable[Any]) -> tuple[list[ListedTool], list[str]]:
    """Return the tools of a list that models can use, and a sentence for each reason why others are left out."""
    found: dict[str, ListedTool] = {}
    left_out: list[str] = []
    size_bytes = 0
    for number, entry in enumerate(entries, 1):
        if len(found) == MOST_TOOLS:
            left_out.append(f"Tools after the first {MOST_TOOLS} are not used.")
            break
        try:
            tool = _listed(entry, number)
            if tool.name in found:
                raise _Unusable(f"{tool.name} is listed twice")
            size_bytes += len(orjson.dumps(tool._asdict()))
            if size_bytes > _LIST_BYTES:
                raise _Unusable(f"{tool.name}: all tools together are too large")
            found[tool.name] = tool
        except _Unusable as reason:
            left_out.append(f"A tool is left out. {reason}.")
    return list(found.values()), left_out[:_MOST_REASONS]


def _listed(entry: Any, number: int) -> ListedTool:
    name = entry.get("name") if isinstance(entry, dict) else None
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise _Unusable(f"Tool {number} has no name of 1 to 64 letters, digits, - and _")
    description, annotations = entry.get("description"), entry.get("annotations")
    description = description if isinstance(description, str) else ""
    read_only = isinstance(annotations, dict) and annotations.get("readOnlyHint") is True
    sent = entry.get("inputSchema", {})
    try:
        as_sent = orjson.dumps(sent, option=orjson.OPT_SORT_KEYS)
    except (orjson.JSONEncodeError, RecursionError):  # orjson reads deeper nesting than it writes
        as_sent = b""
    if not 0 < len(as_sent) <= _SCHEMA_BYTES:
        raise _Unusable(f"The schema of {name} is too large or nested too deep")
    try:
        schema, headers = _root_schema(sent), dict(_header_paths(sent, ()))
    except _Unusable as reason:
        raise _Unusable(f"The schema of {name} is not usable: {reason}") from None
    digest = hashlib.sha256(orjson.dumps([name, description, read_only]) + as_sent).hexdigest()
    return ListedTool(name, description[:_DESCRIPTION_CHARACTERS], schema, read_only, headers, digest)


# --- schemas


def _root_schema(sent: Any) -> dict[str, Any]:
    if not isinstance(sent, dict) or sent.get("type", "object") != "object":
        raise _Unusable("it is not that of an object")
    root = {"type": "object", "properties": {}, **_schema({name: sent[name] for name in _ROOT if name in sent}, 0)}
    for name in root["properties"]:
        if not _PROPERTY_NAME.fullmatch(name):
            raise _Unusable("the name of an argument is not of 1 to 64 letters, digits, -, _ and .")
    for reference in _references(root):
        _check_reference(root, reference)
    return root


def _schema(sent: Any, depth: int) -> Any:
    """Return a schema with its known keywords. Raises _Unusable for a wrong one, which model servers refuse."""
    if isinstance(sent, bool):
        return {} if sent else {"not": {}}
    if not isinstance(sent, dict) or depth > _MOST_DEPTH:
        raise _Unusable("a part of it is no schema" if depth <= _MOST_DEPTH else "it is nested too deep")
    return {name: _KEYWORDS[name](value, depth + 1) for name, value in sent.items() if name in _KEYWORDS}


def _of(*kinds: type) -> Callable[[Any, int], Any]:
    def check(value: Any, depth: int) -> Any:
        if type(value) not in kinds:
            raise _Unusable("a keyword has a value of the wrong type")
        return value

    return check


def _count(value: Any, depth: int) -> int:
    if type(value) is not int or value < 0:
        raise _Unusable("a length is no number")
    return value


def _schemas(value: Any, depth: int) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise _Unusable("a list of schemas is empty or no list")
    return [_schema(one, depth) for one in value]


def _schemas_by_name(value: Any, depth: int) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _Unusable("the schemas of its parts are no object")
    return {name: _schema(one, depth) for name, one in value.items()}


def _type(value: Any, depth: int) -> Any:
    kinds = value if isinstance(value, list) and value else [value]
    if not all(isinstance(kind, str) and kind in _TYPES for kind in kinds):
        raise _Unusable("it names an unknown type")
    return value


def _names(value: Any, depth: int) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise _Unusable("the required names are no list of strings")
    return list(dict.fromkeys(value))


def _values(value: Any, depth: int) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise _Unusable("a list of values is empty or no list")
    return value


_KEYWORDS: Mapping[str, Callable[[Any, int], Any]] = {
    "type": _type,
    "enum": _values,
    "required": _names,
    "const": lambda value, depth: value,
    "default": lambda value, depth: value,
    **dict.fromkeys(("properties", "$defs", "definitions"), _schemas_by_name),
    **dict.fromkeys(("anyOf", "oneOf", "allOf", "prefixItems"), _schemas),
    **dict.fromkeys(("items", "not"), _schema),
    "additionalProperties": lambda value, depth: value if isinstance(value, bool) else _schema(value, depth),
    **dict.fromkeys(("description", "title", "format", "pattern", "$ref"), _of(str)),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _of(int, float)),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), _count),
    "uniqueItems": _of(bool),
}


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from _references(value)
    elif isinstance(node, list):
        for value in node:
            yield from _references(value)


def _check_reference(root: Any, reference: str) -> None:
    """Raise _Unusable unless `reference` is a place within the schema."""
    place, node = reference.removeprefix("#"), root
    if place == reference or (place and not place.startswith("/")):
        raise _Unusable("it refers to another document")
    for step in place.split("/")[1:]:
        node = node.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(node, dict) else None
    if not isinstance(node, dict):
        raise _Unusable("it refers to a part that is missing")


def _header_paths(node: Any, path: tuple[str, ...]) -> Iterator[tuple[str, list[str]]]:
    """Yield the headers that repeat arguments (`x-mcp-header`), each with the path of its argument."""
    properties = node.get("properties") if isinstance(node, dict) and len(path) < _MOST_DEPTH else None
    for name, one in properties.items() if isinstance(properties, dict) else ():
        header = one.get("x-mcp-header") if isinstance(one, dict) else None
        if header is not None:
            if not isinstance(header, str) or not _HEADER_NAME.fullmatch(header):
                raise _Unusable("the name of a header is not valid")
            yield header.lower(), [*path, name]
        yield from _header_paths(one, (*path, name))


# --- records


def as_text(tools: Iterable[ListedTool]) -> str:
    """Return tools as they are stored."""
    return orjson.dumps([tool._asdict() for tool in tools]).decode()


def from_text(text: str) -> list[ListedTool]:
    return [ListedTool(**entry) for entry in orjson.loads(text)]


def accepted_names(tools: Collection[ListedTool], digests: Mapping[str, str]) -> set[str]:
    """Return the names of the tools that are as their owner has accepted them."""
    return {tool.name for tool in tools if digests.get(tool.name) == tool.digest}
