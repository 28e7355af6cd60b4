"""Values for JSON schemas: answers for `response_format`, and arguments for the tools of clients.

A value is a small instance of its schema, with the text of the answer where the schema has a place for one. Keywords
that are not in `_KEYWORDS`, such as `pattern` and `not`, are ignored. A `$ref` must point into the schema.
"""

import json
import math
import operator
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import orjson

from svc.builtin.request import refusal

MAX_COST = 5_000
MAX_DEPTH = 40
MAX_STRING_CHARACTERS = 10_000
MAX_POINTER_CHARACTERS = 1_000
CHARACTERS_PER_COST = 100
MAX_ARGUMENT_COST = 200
MAX_CHOICES = 1_000

ANSWER_NAMES = {"answer", "content", "message", "output", "reply", "response", "result", "summary", "text", "value"}
_FORMATS = {
    "date-time": "1970-01-01T00:00:00Z",
    "date": "1970-01-01",
    "time": "00:00:00Z",
    "duration": "PT0S",
    "email": "nobody@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}
_BOUNDS = {
    "minimum": operator.ge,
    "exclusiveMinimum": operator.gt,
    "maximum": operator.le,
    "exclusiveMaximum": operator.lt,
}
# The keywords that imply a type, in this order.
_IMPLYING = {
    "object": "properties required additionalProperties",
    "array": "items prefixItems minItems",
    "number": "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf",
}
_IMPLIED = {keyword: kind for kind, keywords in _IMPLYING.items() for keyword in keywords.split()}
_KEYWORDS = _IMPLIED.keys() | {"type", "enum", "const", "minLength", "maxLength", "format", "anyOf", "oneOf"}


def in_format(text: str, schema: dict[str, Any] | None) -> str:
    """Return `text` without a schema, else JSON that satisfies it. Raises UpstreamFault (400) if none is found."""
    any_object = schema == {"type": "object"}
    if schema is None or (any_object and json_object(text) is not None):
        return text
    try:
        value = {"answer": text} if any_object else _Builder(schema, text, MAX_COST).build(schema, 0, "")
    except ValueError as error:
        message = f"The built-in models cannot make an instance of this JSON schema: {error}"
        raise refusal(message, "response_format") from None
    return json.dumps(value, ensure_ascii=False)


def takes_text(schema: Any) -> bool:
    """Return whether a string of any text may satisfy `schema`."""
    kind = schema.get("type", "string") if isinstance(schema, dict) and not schema.keys() & {"enum", "const"} else None
    return kind == "string" or (isinstance(kind, list) and "string" in kind)


def argument(root: dict[str, Any], schema: Any, name: str, clause: str, numbers: Iterator[str]) -> Any:
    """Return a tool's argument: the choice that `clause` mentions, one of its `numbers`, or a small instance.

    Raises ValueError if there is no small instance.
    """
    schema = schema if isinstance(schema, dict) else {}
    if isinstance(schema.get("enum"), list):
        choices, clause = schema["enum"][:MAX_CHOICES], _spaced(clause)
        mentioned = (one for one in choices if isinstance(one, str) and _spaced(one) in clause)
        return next(mentioned, choices[0] if choices else None)
    if schema.get("type") in ("integer", "number"):
        number = next((one for one in numbers if schema["type"] == "number" or "." not in one), "")
        if 0 < len(number) <= 18:
            return float(number) if "." in number else int(number)
    return _Builder(root, clause, MAX_ARGUMENT_COST).build(schema, 0, name)


def _spaced(text: str) -> str:
    return " " + " ".join(re.findall(r"[^\W_]+", text[:MAX_STRING_CHARACTERS].lower())) + " "


def json_object(text: str) -> dict[str, Any] | None:
    try:
        value = orjson.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


@dataclass
class _Builder:
    """Builds small instances of schemas, depth first. Their $refs point into `root`.

    The first string named like an answer is `text`. Everything whose size the schema decides is charged against
    `cost_left`, about one for each value.
    """

    root: dict[str, Any]
    text: str
    cost_left: int

    def _charge(self, cost: int) -> None:
        self.cost_left -= cost
        if self.cost_left < 0:
            raise ValueError("it is too large.")

    def build(self, schema: Any, depth: int, name: str) -> Any:
        """Return an instance for the property `name`. Raises ValueError if there is none within the bounds."""
        self._charge(1 + len(name) // CHARACTERS_PER_COST)
        if depth > MAX_DEPTH:
            raise ValueError("it is nested too deep.")
        schema = self._merged(schema)
        if "const" in schema or "enum" in schema:
            return self._constant(schema)
        alternatives = schema.get("anyOf") or schema.get("oneOf")
        if isinstance(alternatives, list):
            return self._first_possible(alternatives, schema, depth, name)
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = next((one for one in kind if one != "null"), "null")
        if not isinstance(kind, str):
            implied = (kind for keyword, kind in _IMPLIED.items() if keyword in schema)
            kind = next(implied, "string" if depth else "object")
        match kind:
            case "object":
                properties, required = schema.get("properties", {}), schema.get("required", [])
                self._charge(len(required))
                others = schema.get("additionalProperties", True)
                names = dict.fromkeys(one for one in required if isinstance(one, str))
                return {one: self.build(properties.get(one, others), depth + 1, one) for one in names}
            case "array":
                return self._array(schema, depth, name)
            case "string":
                return self._string(schema, name)
            case "integer" | "number":
                answer = re.search(r"= (-?[0-9]{1,18}(?:\.[0-9]{1,18})?)$", self.text[-50:])
                wanted = answer[1] if answer and name.lower() in ANSWER_NAMES else 0
                return _number(schema, kind == "integer", Fraction(wanted))
            case "boolean" | "null":
                return False if kind == "boolean" else None
        raise ValueError(f"'{kind[:40]}' is not a type.")

    def _merged(self, schema: Any) -> dict[str, Any]:
        """Return `schema` with its $ref and allOf resolved; the outer one of two equal keywords applies."""
        merged: dict[str, Any] = {}
        pending = [schema]
        while pending:
            self._charge(1)
            part = pending.pop()
            if part is True:
                continue
            if not isinstance(part, dict):
                raise ValueError("a part of it allows nothing.")
            if isinstance(part.get("$ref"), str):
                pending.append(self._target(part["$ref"]))
            if isinstance(part.get("allOf"), list):
                self._charge(len(part["allOf"]))
                pending.extend(reversed(part["allOf"]))
            for keyword in _KEYWORDS & part.keys():
                value, collection = part[keyword], {"properties": dict, "required": list}.get(keyword)
                if collection is None:
                    merged.setdefault(keyword, value)
                elif isinstance(value, collection):
                    self._charge(len(value))
                    earlier = merged.get(keyword, collection())
                    merged[keyword] = {**value, **earlier} if collection is dict else earlier + value
        return merged

    def _target(self, pointer: str) -> Any:
        if not pointer.startswith("#") or len(pointer) > MAX_POINTER_CHARACTERS:
            raise ValueError("only a $ref within it can be followed.")
        target: Any = self.root
        for key in pointer[1:].split("/")[1:]:
            key = key.replace("~1", "/").replace("~0", "~")
            try:
                target = target[int(key) if isinstance(target, list) and key.isdecimal() else key]
            except (LookupError, TypeError, ValueError):
                return None
        return target

    def _constant(self, schema: dict[str, Any]) -> Any:
        values = [schema["const"]] if "const" in schema else schema["enum"]
        if not (isinstance(values, list) and values):
            raise ValueError("an enum is empty.")
        self._charge(len(orjson.dumps(values[0])) // CHARACTERS_PER_COST)
        return values[0]

    def _first_possible(self, alternatives: list[Any], schema: dict[str, Any], depth: int, name: str) -> Any:
        self._charge(len(alternatives))
        rest = {keyword: schema[keyword] for keyword in schema.keys() - {"anyOf", "oneOf"}}
        # Simple values first, so that a list of nullable nodes ends.
        possible = [one if isinstance(one, dict) else {"allOf": [one]} for one in alternatives]
        for alternative in sorted(possible, key=lambda one: "$ref" in one or one.get("type") in ("object", "array")):
            try:
                return self.build({**rest, "allOf": [alternative]}, depth + 1, name)
            except ValueError:
                if self.cost_left < 0:  # for any other alternative, too
                    raise
        raise ValueError("no alternative of an anyOf is possible.")

    def _array(self, schema: dict[str, Any], depth: int, name: str) -> list[Any]:
        items, first = schema.get("items", True), schema.get("prefixItems", [])
        if isinstance(items, list):
            items, first = True, items
        first = first if isinstance(first, list) else []
        count = _size(schema, "minItems") or 0
        return [self.build(first[index] if index < len(first) else items, depth + 1, name) for index in range(count)]

    def _string(self, schema: dict[str, Any], name: str) -> str:
        form = schema.get("format")
        if isinstance(form, str) and form in _FORMATS:
            return _FORMATS[form]
        text = ""
        if name.lower() in ANSWER_NAMES:
            text, self.text = self.text, ""
        shortest, longest = _size(schema, "minLength") or 0, _size(schema, "maxLength")
        if shortest > MAX_STRING_CHARACTERS or (longest is not None and longest < shortest):
            raise ValueError("a string in it cannot be that long.")
        self._charge(shortest // CHARACTERS_PER_COST)
        return text.ljust(shortest, "x")[:longest]


def _size(schema: dict[str, Any], keyword: str) -> int | None:
    value = schema.get(keyword)
    return value if type(value) is int and value >= 0 else None


def _number(schema: dict[str, Any], whole: bool, wanted: Fraction) -> int | float:
    """Return `wanted` or 0 if the bounds allow it, else a number close to one of the bounds."""
    numbers = {
        keyword: Fraction(str(schema[keyword]))
        for keyword in ("multipleOf", *_BOUNDS)
        if type(schema.get(keyword)) in (int, float) and math.isfinite(schema[keyword])
    }
    multiple = abs(numbers.pop("multipleOf", Fraction(0)))
    step = Fraction((multiple or 1).numerator) if whole else multiple or Fraction(1)
    ends = numbers.values()
    steps = [(end // step + offset) * step for end in ends for offset in (0, 1, 2, -1)]
    for value in (wanted, Fraction(0), *steps, *ends, sum(ends, Fraction(0)) / max(len(ends), 1)):
        in_steps = value % step == 0 or not (whole or multiple)
        if in_steps and all(_BOUNDS[keyword](value, end) for keyword, end in numbers.items()):
            return int(value) if value.denominator == 1 else float(value)
    raise ValueError("the bounds of a number in it leave none.")
