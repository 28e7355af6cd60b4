"""Shapes: one declaration checks a value, gives it a type, and writes the error text and the JSON schema.

@record("CreateProjectRequest")
class NewProject(NamedTuple):
    name: Annotated[str, label(200)]

shape_of(NewProject).check({"name": "Thesis"}, "")     -> NewProject("Thesis")
shape_of(NewProject).check({"name": ""}, "")           -> ApiError: name must be a string of 1 to 200 characters, ...
"""

import enum
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, TypeVar, get_type_hints

from svc.errors import ApiError, invalid_value

T = TypeVar("T")
R = TypeVar("R", bound=tuple[Any, ...])
Schema = Mapping[str, Any]

# Unicode's categories Cc and Cs, which names, titles and subjects must not contain.
CONTROL_CHARACTERS = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
# Invisible characters: spaces, controls, formatting (zero width, direction, fillers, variation, tags), surrogates.
_INVISIBLE = re.compile(
    "[\\s\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff\ud800-\udfff]*"
)
# The rules of `label` as an ECMA-262 pattern, as far as possible.
_CONTROLS = "\\u0000-\\u001f\\u007f-\\u009f"
_LABEL_PATTERN = f"^[^{_CONTROLS}]*[^\\s{_CONTROLS}][^{_CONTROLS}]*$"


class Absent(enum.Enum):
    """The type of ABSENT, the default of a field that a partial update may omit."""

    ABSENT = "absent"


ABSENT = Absent.ABSENT


class Component(dict[str, Any]):
    """A part of the interface document that is written once, under `components`, and referenced elsewhere."""

    def __init__(self, kind: str, name: str, value: Schema) -> None:
        super().__init__(value)
        self.kind, self.name = kind, name

    @property
    def reference(self) -> str:
        return f"#/components/{self.kind}/{self.name}"


@dataclass(slots=True, eq=False)
class Shape(Generic[T]):
    """A rule for a value. `check(value, param)` returns the typed value. Raises ApiError.

    `param` is the path of the value (`messages[0].role`), and `expected` completes "param must be ...". `schema` is the
    JSON schema of the rule, `fields` are those of a record, and `example` is a valid value. A field of an answer that
    `is_optional` may be missing. Every value of the Python types `kinds` is valid, so that it needs no check.
    """

    check: Callable[[Any, str], T]
    expected: str
    schema: Schema
    fields: "tuple[Field, ...]" = ()
    example: Any = None
    is_optional: bool = False
    kinds: frozenset[type] = frozenset()

    def about(self, description: str = "", example: Any = None, **keywords: Any) -> "Shape[T]":
        """Return the same shape with a description, an example, and further keywords in its JSON schema."""
        schema = self.schema
        if description or keywords:
            base = {"$ref": schema} if isinstance(schema, Component) else schema
            schema = {**base, **({"description": description} if description else {}), **keywords}
        return replace(self, schema=schema, example=self.example if example is None else example)

    def named(self, name: str) -> "Shape[T]":
        """Return the same shape as a named component of the interface document."""
        return replace(self, schema=Component("schemas", name, self.schema))

    def optional(self) -> "Shape[T]":
        """Return the same shape as a field of an answer that may be missing."""
        return replace(self, is_optional=True)

    def with_others(self) -> "Shape[T]":
        """Return the same named object, which may have further fields."""
        assert isinstance(self.schema, Component)
        return replace(self, schema={**self.schema, "additionalProperties": True}).named(self.schema.name)


Fields = Mapping[str, Shape[Any]]
Object = Shape[dict[str, Any]]
_NONE: Fields = {}


class Field(NamedTuple):
    """A field of a record; the `default` of a required one is `...`."""

    name: str
    shape: Shape[Any]
    default: Any


def refusal(value: Any, param: str, expected: str) -> ApiError:
    """Return the error for a wrong `value`: `missing_field` for null, else `invalid_value`."""
    if value is None:
        return ApiError("missing_field", f"{param} is required: {expected}.", param=param)
    return invalid_value(f"{param} must be {expected}.", param)


def or_null(schema: Schema) -> Schema:
    if isinstance(schema, Component) or not ("anyOf" in schema or isinstance(schema.get("type"), str)):
        return {"anyOf": [schema, {"type": "null"}]}
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    value = {**schema, "type": [schema["type"], "null"]}
    return {**value, "enum": [*schema["enum"], None]} if "enum" in schema else value


def _shape(
    kind: type | tuple[type, ...],
    expected: str,
    schema: Schema,
    example: Any = None,
    *,
    accepts: Callable[[Any], bool] | None = None,
    convert: type | None = None,
) -> Shape[Any]:
    """A value of the Python type `kind` that `accepts` accepts, as `convert` returns it. A bool is no number."""
    kinds = frozenset(kind if isinstance(kind, tuple) else (kind,))

    def check(value: Any, param: str) -> Any:
        if type(value) in kinds and (accepts is None or accepts(value)):
            return value if convert is None else convert(value)
        raise refusal(value, param, expected)

    any_value = accepts is None and convert is None
    return Shape(check, expected, schema, example=example, kinds=kinds if any_value else frozenset())


# --- text


def is_visible(value: str) -> bool:
    return "!" <= value[:1] <= "~" or _INVISIBLE.fullmatch(value) is None


def text(most: int, *, least: int = 0, blank: bool = True, controls: bool = True) -> Shape[str]:
    """A string of `least` to `most` characters. The length is checked first: it bounds the cost of the other checks."""
    least = least if blank else max(least, 1)
    length = f"of {least} to {most} characters" if least else f"of at most {most} characters"
    expected = f"a string {length}{'' if blank else ', not blank'}{'' if controls else ', without control characters'}"
    schema = {"type": "string", "maxLength": most, **({"minLength": least} if least else {})}
    schema |= {} if controls else {"pattern": _LABEL_PATTERN}

    def accepts(value: str) -> bool:
        fits = least <= len(value) <= most and (blank or is_visible(value))
        return fits and (controls or CONTROL_CHARACTERS.search(value) is None)

    return _shape(str, expected, schema, accepts=accepts)


def label(most: int) -> Shape[str]:
    """A name, title or subject: up to `most` characters in one line, not blank."""
    return text(most, blank=False, controls=False)


def matching(pattern: re.Pattern[str], expected: str, most: int) -> Shape[str]:
    """A string of at most `most` characters that matches the whole `pattern`, which must also be valid in ECMA-262."""
    schema = {"type": "string", "maxLength": most, "pattern": f"^(?:{pattern.pattern})$"}
    return _shape(str, expected, schema, accepts=lambda value: len(value) <= most and bool(pattern.fullmatch(value)))


def one_of(*allowed: str) -> Shape[str]:
    expected = f"one of {', '.join(allowed)}" if len(allowed) > 1 else allowed[0]
    schema = {"type": "string", **({"enum": list(allowed)} if len(allowed) > 1 else {"const": allowed[0]})}
    return _shape(str, expected, schema, allowed[0], accepts=frozenset(allowed).__contains__)


string: Shape[str] = _shape(str, "a string", {"type": "string"})
filled: Shape[str] = _shape(str, "a string that is not blank", {**string.schema, "pattern": "\\S"}, accepts=is_visible)


# --- numbers, booleans and any JSON

_NUMBER = (int, float)


def integer(low: int, high: int) -> Shape[int]:
    """An integer from `low` to `high`. `6.0` is accepted: some languages have no other number."""

    def accepts(value: float) -> bool:
        return low <= value <= high and value == int(value)

    schema = {"type": "integer", "minimum": low, "maximum": high}
    return _shape(_NUMBER, f"an integer from {low} to {high}", schema, low, accepts=accepts, convert=int)


def number(low: float, high: float) -> Shape[float]:
    schema = {"type": "number", "minimum": low, "maximum": high}
    expected = f"a number from {low:g} to {high:g}"
    return _shape(_NUMBER, expected, schema, accepts=lambda value: low <= value <= high, convert=float)


whole: Shape[int | float] = _shape(  # of any size
    _NUMBER, "an integer", {"type": "integer"}, 0, accepts=lambda value: type(value) is int or value.is_integer()
)
boolean: Shape[bool] = _shape(bool, "true or false", {"type": "boolean"}, True)
anything: Shape[Any] = Shape(lambda value, param: value, "any JSON", {})
mapping: Object = _shape(dict, "an object", {"type": "object"}, {})


# --- values that hold others


def nullable(shape: Shape[T]) -> Shape[T | None]:
    return Shape(
        lambda value, param: None if value is None else shape.check(value, param),
        f"{shape.expected}, or null",
        or_null(shape.schema),
    )


def list_of(shape: Shape[T], *, least: int = 0, most: int | None = None) -> Shape[list[T]]:
    upper = f" of at least {least}" if least else ""
    expected = "a list" + (upper if most is None else f" of {least} to {most}" if least else f" of at most {most}")
    check_item = shape.check

    def check(value: Any, param: str) -> list[T]:
        if not isinstance(value, list) or len(value) < least or (most is not None and len(value) > most):
            raise refusal(value, param, expected)
        return [check_item(item, f"{param}[{position}]") for position, item in enumerate(value)]

    bounds = {**({"minItems": least} if least else {}), **({} if most is None else {"maxItems": most})}
    schema = {"type": "array", "items": shape.schema, **bounds}
    return Shape(check, expected, schema, example=[] if shape.example is None else [shape.example])


def by_type(expected: str, shapes: Mapping[type, Shape[Any]]) -> Shape[Any]:
    """A value whose JSON type chooses its shape: `{str: string, list: list_of(part)}`."""
    checks = {kind: shape.check for kind, shape in shapes.items()}

    def check(value: Any, param: str) -> Any:
        kind = type(value)
        if kind not in checks:
            raise refusal(value, param, expected)
        return checks[kind](value, param)

    plain = frozenset(kind for kind, shape in shapes.items() if kind in shape.kinds)
    return Shape(check, expected, {"anyOf": [shape.schema for shape in shapes.values()]}, kinds=plain)


def tagged(tag: str, shapes: Fields, other: Shape[Any] | None = None, missing: Shape[Any] | None = None) -> Shape[Any]:
    """An object whose field `tag` chooses its shape: `other` for every other string, `missing` without the field."""
    tag_shape = one_of(*shapes) if other is None else string
    checks = {value: shape.check for value, shape in shapes.items()}

    def check(value: Any, param: str) -> Any:
        found = value.get(tag) if type(value) is dict else None
        if type(found) is str and found in checks:
            return checks[found](value, param)
        if missing is not None and found is None and type(value) is dict:
            return missing.check(value, param)
        required(mapping.check(value, param), tag, tag_shape, param)
        return (other or string).check(value, param)

    schemas = [shape.schema for shape in dict.fromkeys([*shapes.values(), *([other] if other else [])])]
    references = {value: getattr(shape.schema, "reference", None) for value, shape in shapes.items()}
    if other is not None or missing is not None or None in references.values():
        return Shape(check, "an object", {"anyOf": schemas})
    discriminator = {"propertyName": tag, "mapping": references}
    return Shape(check, "an object", {"oneOf": schemas, "discriminator": discriminator})


# --- objects


def record(name: str, description: str = "", *, example: Any = None, **keywords: Any) -> Callable[[type[R]], type[R]]:
    """Declare a NamedTuple, whose fields are annotated with shapes, as an object of a request: see `shape_of`.

    Other fields are ignored. A field without a default is required. With the default ABSENT it may be missing, and null
    is a value; with every other default null counts as missing. `keywords` are added to the JSON schema.
    """

    def declare(kind: type[R]) -> type[R]:
        found = tuple(_fields(kind))

        def check(value: Any, param: str) -> R:
            sent, within = mapping.check(value, param), f"{param}." if param else ""
            return kind(*[_field(sent, field, within) for field in found])

        properties = {field.name: _with_default(field) for field in found}
        schema = _object([field.name for field in found if field.default is ...], properties, description, keywords)
        kind.shape = Shape(check, "an object", schema, found, example).named(name)  # type: ignore[attr-defined]
        return kind

    return declare


def shape_of(kind: type[R]) -> Shape[R]:
    shape: Shape[R] = kind.shape  # type: ignore[attr-defined]
    return shape


def _object(required: Collection[str], properties: Schema, description: str, keywords: Schema) -> Schema:
    schema = {"type": "object", "description": description, "required": [*required], **keywords}
    return {**{keyword: value for keyword, value in schema.items() if value}, "properties": properties}


def _fields(kind: type[R]) -> Iterator[Field]:
    defaults: Mapping[str, Any] = getattr(kind, "_field_defaults", {})
    for name, hint in get_type_hints(kind, include_extras=True).items():
        shapes = [part for part in getattr(hint, "__metadata__", ()) if isinstance(part, Shape)]
        if len(shapes) != 1:
            raise TypeError(f"{kind.__name__}.{name} must be annotated with one shape")
        yield Field(name, shapes[0], defaults.get(name, ...))


def _with_default(field: Field) -> Schema:
    schema = field.shape.schema
    if field.default is ... or field.default is ABSENT:
        return schema
    default = {} if field.default is None or isinstance(schema, Component) else {"default": field.default}
    return {**or_null(schema), **default}


def _field(holder: Mapping[str, Any], field: Field, within: str) -> Any:
    missing = ABSENT if field.default is ABSENT else None
    value = holder.get(field.name, missing)
    if value is missing and field.default is not ...:
        return field.default
    return field.shape.check(value, within + field.name)


def passed_on(
    fields: Fields, description: str = "", *, required: Collection[str] = (), tag: str = "", **keywords: Any
) -> Object:
    """An object of a request that is passed on as it was sent: the listed fields are checked, and others are accepted.

    A field that is not `required` may be missing or null. The field `tag` has been checked by `tagged`.
    """
    rules = {name: (shape.kinds, shape.check) for name, shape in fields.items() if name != tag}
    needed = frozenset(required)

    def check(value: Any, param: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise refusal(value, param, "an object")
        if missing := needed.difference(value):
            field = min(missing, key=[*required].index)
            raise refusal(None, f"{param}.{field}" if param else field, fields[field].expected)
        for field, sent in value.items():
            if field in rules:
                kinds, check_field = rules[field]
                if type(sent) not in kinds and (sent is not None or field in needed):
                    check_field(sent, f"{param}.{field}" if param else field)
        return value

    properties = {name: shape.schema if name in needed else or_null(shape.schema) for name, shape in fields.items()}
    found = tuple(Field(name, shape, ... if name in needed else None) for name, shape in fields.items())
    schema = _object(required, properties, description, {**keywords, "additionalProperties": True})
    return Shape(check, "an object", schema, found)


def sent(name: str, description: str = "", optional: Fields = _NONE, /, **fields: Shape[Any]) -> Object:
    """A named object of a request, with required `fields`, that is passed on as it was sent."""
    return passed_on({**fields, **optional}, description, required=fields).named(name)


def typed(name: str, kind: str, description: str = "", optional: Fields = _NONE, /, **fields: Shape[Any]) -> Object:
    """The same with the type `kind`."""
    return sent(name, description, optional, type=one_of(kind), **fields)


def json_object(
    name: str, description: str = "", base: Object | None = None, /, **fields: Shape[Any] | str | int
) -> Object:
    """An object of an answer, with the fields of `base` first. An example stands for a string, or for a count."""
    first: Schema = base.schema if base else {"required": [], "properties": {}}
    kinds: dict[type, Shape[Any]] = {str: string, int: whole.about(minimum=0)}
    own = {name: one if isinstance(one, Shape) else kinds[type(one)].about(example=one) for name, one in fields.items()}
    always = {name: shape.example for name, shape in own.items() if not shape.is_optional}
    properties = {**first["properties"], **{name: shape.schema for name, shape in own.items()}}
    schema = _object([*first["required"], *always], properties, description, {})
    return Shape(mapping.check, "an object", schema, example={**(base.example if base else {}), **always}).named(name)


def given(values: tuple[Any, ...]) -> dict[str, Any]:
    """Return the fields of a partial update that were sent, by name."""
    names = getattr(values, "_fields", ())
    return {name: value for name, value in zip(names, values, strict=True) if value is not ABSENT}


def required(holder: Mapping[str, Any], name: str, shape: Shape[T], within: str = "") -> T:
    """Return the checked field `name`; null counts as missing. `within` is the path of `holder`."""
    return shape.check(holder.get(name), f"{within}.{name}" if within else name)
