"""Answers in a JSON schema: a smallest instance of it, with the answer's text where the schema has a place for one.

Heeded: type, enum, const, properties, required, additionalProperties, items, prefixItems, minItems, the bounds of strings and
numbers, multipleOf, common formats, allOf, anyOf, oneOf, and $ref within the schema. `pattern`, `not` and the rest are not.
"""

import json
import math
import re
from collections.abc import Iterator
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

ANSWER_NAMES = frozenset({"answer", "content", "message", "output", "reply", "response", "result", "summary", "text", "value"})
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
_HEEDED = """
    type enum const properties required additionalProperties items prefixItems minItems minLength maxLength minimum maximum
    exclusiveMinimum exclusiveMaximum multipleOf format anyOf oneOf
"""
_KEYWORDS = frozenset(_HEEDED.split())
_KEYWORDS_OF_KIND = {
    "object": ("properties", "required", "additionalProperties"),
    "array": ("items", "prefixItems", "minItems"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}


class _TooLargeError(ValueError):
    """The schema asks for more than it may cost: no other branch of it is tried."""


def in_format(text: str, schema: dict[str, Any] | None) -> str:
    """`text` itself without a schema, else JSON that satisfies it. Raises UpstreamFault (400) if no instance can be found."""
    if schema is None or (schema == {"type": "object"} and _is_object(text)):
        return text
    try:
        value = {"answer": text} if schema == {"type": "object"} else instance(schema, schema, text=text)
    except ValueError as error:
        raise refusal(f"The built-in models cannot make an instance of this JSON schema: {error}", "response_format") from None
    return json.dumps(value, ensure_ascii=False)


def instance(root: dict[str, Any], schema: Any, *, name: str = "", text: str = "", max_cost: int = MAX_COST) -> Any:
    """A small instance of `schema`, whose $refs point into `root`; the first string property named like an answer gets `text`.

    `name` is the property that the instance is for; `max_cost` bounds its size and the work, about one for each value.
    Raises ValueError if there is none within the bounds.
    """
    return _Builder(root, text, max_cost).build(schema, 0, name)


def _is_object(text: str) -> bool:
    try:
        return text.lstrip().startswith("{") and isinstance(orjson.loads(text), dict)
    except ValueError:
        return False


def takes_text(schema: Any) -> bool:
    """Return whether a string of any text may satisfy `schema`."""
    kind = schema.get("type", "string") if isinstance(schema, dict) and not schema.keys() & {"enum", "const"} else None
    return kind == "string" or (isinstance(kind, list) and "string" in kind)


def argument(root: dict[str, Any], schema: Any, name: str, clause: str, numbers: Iterator[str]) -> Any:
    """Return a value for a tool's parameter: the choice that `clause` mentions, one of its `numbers`, or a small instance.

    Raises ValueError like `instance`.
    """
    schema = schema if isinstance(schema, dict) else {}
    if isinstance(schema.get("enum"), list):
        choices, said = schema["enum"][:MAX_CHOICES], _spaced(clause)
        mentioned = (one for one in choices if isinstance(one, str) and _spaced(one) in said)
        return next(mentioned, choices[0] if choices else None)
    if schema.get("type") in ("integer", "number"):
        number = next((one for one in numbers if schema["type"] == "number" or "." not in one), "")
        if 0 < len(number) <= 18:
            return float(number) if "." in number else int(number)
    return instance(root, schema, name=name, text=clause, max_cost=MAX_ARGUMENT_COST)


def _spaced(text: str) -> str:
    return " " + " ".join(re.findall(r"[^\W_]+", text[:MAX_STRING_CHARACTERS].lower())) + " "


class _Builder:
    """Builds depth first; everything whose size the schema decides is charged, so that none costs more than it may."""

    def __init__(self, root: dict[str, Any], text: str, max_cost: int) -> None:
        self._root = root
        self._text = text
        self._cost_left = max_cost

    def _charge(self, cost: int) -> None:
        self._cost_left -= cost
        if self._cost_left < 0:
            raise _TooLargeError("it is too large.")

    def build(self, schema: Any, depth: int, name: str) -> Any:
        self._charge(1 + len(name) // CHARACTERS_PER_COST)
        if depth > MAX_DEPTH:
            raise ValueError("it is nested too deep.")
        merged = self._merged(schema)
        if "const" in merged or "enum" in merged:
            return self._given(merged)
        alternatives = merged.get("anyOf") or merged.get("oneOf")
        if isinstance(alternatives, list):
            return self._first_possible(alternatives, merged, depth, name)
        kind = _kind(merged, depth)
        if kind == "object":
            return self._object(merged, depth)
        if kind == "array":
            return self._array(merged, depth, name)
        if kind == "string":
            return self._string(merged, name)
        if kind in ("integer", "number"):
            return _number(merged, kind == "integer", self._answer_number(name))
        if kind in ("boolean", "null"):
            return False if kind == "boolean" else None
        raise ValueError(f"'{kind[:40]}' is no type.")

    def _merged(self, schema: Any) -> dict[str, Any]:
        """`schema` with what it refers to and what its allOf says; where two say the same keyword, the outer one holds."""
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
                self._merge(merged, keyword, part[keyword])
        return merged

    def _merge(self, merged: dict[str, Any], keyword: str, value: Any) -> None:
        if keyword == "properties" and isinstance(value, dict):
            if keyword in merged:
                self._charge(len(value))
                value = {**value, **merged[keyword]}
            merged[keyword] = value
        elif keyword == "required" and isinstance(value, list):
            self._charge(len(value))
            merged[keyword] = merged.get(keyword, []) + value
        elif keyword not in ("properties", "required"):
            merged.setdefault(keyword, value)

    def _target(self, pointer: str) -> Any:
        if not pointer.startswith("#") or len(pointer) > MAX_POINTER_CHARACTERS:
            raise ValueError("only a $ref within it can be followed.")
        target: Any = self._root
        for key in pointer[1:].split("/")[1:]:
            key = key.replace("~1", "/").replace("~0", "~")
            if isinstance(target, dict) and key in target:
                target = target[key]
            elif isinstance(target, list) and re.fullmatch("[0-9]{1,6}", key) and int(key) < len(target):
                target = target[int(key)]
            else:
                raise ValueError("a $ref points nowhere.")
        return target

    def _given(self, schema: dict[str, Any]) -> Any:
        if "const" not in schema and not (isinstance(schema["enum"], list) and schema["enum"]):
            raise ValueError("an enum is empty.")
        value = schema["const"] if "const" in schema else schema["enum"][0]
        self._charge(len(orjson.dumps(value)) // CHARACTERS_PER_COST)
        return value

    def _first_possible(self, alternatives: list[Any], schema: dict[str, Any], depth: int, name: str) -> Any:
        self._charge(len(alternatives))
        rest = {keyword: schema[keyword] for keyword in schema.keys() - {"anyOf", "oneOf"}}
        # What holds nothing else first, so that a list of nodes that may be null ends.
        for alternative in sorted(alternatives, key=_holds_others):
            try:
                return self.build({**rest, "allOf": [alternative]}, depth + 1, name)
            except _TooLargeError:
                raise
            except ValueError:
                continue
        raise ValueError("no alternative of an anyOf is possible.")

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        properties, required = schema.get("properties", {}), schema.get("required", [])
        self._charge(len(required))
        others = schema.get("additionalProperties", True)
        names = dict.fromkeys(name for name in required if isinstance(name, str))
        return {name: self.build(properties.get(name, others), depth + 1, name) for name in names}

    def _array(self, schema: dict[str, Any], depth: int, name: str) -> list[Any]:
        items, first = schema.get("items", True), schema.get("prefixItems", [])
        if isinstance(items, list):
            items, first = True, items
        if not isinstance(first, list):
            first = []
        count = _size(schema, "minItems") or 0
        self._charge(count)
        return [self.build(first[index] if index < len(first) else items, depth + 1, name) for index in range(count)]

    def _string(self, schema: dict[str, Any], name: str) -> str:
        form = schema.get("format")
        if isinstance(form, str) and form in _FORMATS:
            return _FORMATS[form]
        text = ""
        if name.lower() in ANSWER_NAMES:
            text, self._text = self._text, ""
        shortest, longest = _size(schema, "minLength") or 0, _size(schema, "maxLength")
        if shortest > MAX_STRING_CHARACTERS or (longest is not None and longest < shortest):
            raise ValueError("a string in it cannot be that long.")
        self._charge(shortest // CHARACTERS_PER_COST)
        return text.ljust(shortest, "x")[:longest]

    def _answer_number(self, name: str) -> Fraction:
        result = re.search(r"= (-?[0-9]{1,18}(?:\.[0-9]{1,18})?)$", self._text[-50:]) if name.lower() in ANSWER_NAMES else None
        return Fraction(result[1] if result else 0)


def _holds_others(schema: Any) -> bool:
    return isinstance(schema, dict) and ("$ref" in schema or schema.get("type") in ("object", "array"))


def _kind(schema: dict[str, Any], depth: int) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((one for one in kind[:10] if one != "null"), "null")
    if isinstance(kind, str):
        return kind
    implied = (kind for kind, keywords in _KEYWORDS_OF_KIND.items() if any(keyword in schema for keyword in keywords))
    return next(implied, "string" if depth else "object")


def _size(schema: dict[str, Any], keyword: str) -> int | None:
    value = schema.get(keyword)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _bound(schema: dict[str, Any], keyword: str) -> Fraction | None:
    value = schema.get(keyword)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return Fraction(str(value))


def _number(schema: dict[str, Any], whole: bool, wanted: Fraction) -> int | float:
    """`wanted` or 0 if the bounds allow it, else the number closest to the lower (or else the upper) bound that is allowed."""
    low, high = _bound(schema, "minimum"), _bound(schema, "maximum")
    above, below = _bound(schema, "exclusiveMinimum"), _bound(schema, "exclusiveMaximum")
    multiple = _bound(schema, "multipleOf")
    step = abs(multiple) if multiple else Fraction(1)
    if whole:
        step = Fraction(step.numerator)
    floor = max((bound for bound in (low, above) if bound is not None), default=None)
    ceiling = min((bound for bound in (high, below) if bound is not None), default=None)
    candidates = [wanted, Fraction(0)]
    if floor is not None:
        lowest = -(-floor // step) * step
        candidates += [lowest, lowest + step]
    if ceiling is not None:
        highest = ceiling // step * step
        candidates += [highest, highest - step]
    if floor is not None and ceiling is not None:
        candidates.append((floor + ceiling) / 2)
    for value in candidates:
        in_steps = value % step == 0 or not (whole or multiple)
        in_bounds = (low is None or value >= low) and (high is None or value <= high)
        if in_steps and in_bounds and (above is None or value > above) and (below is None or value < below):
            return int(value) if value.denominator == 1 else float(value)
    raise ValueError("the bounds of a number in it leave none.")
