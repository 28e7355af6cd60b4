"""Shapes: one declaration of what a caller may send checks a value, gives it a type, and writes refusal and JSON schema.

class CreateProject(NamedTuple):
    name: Annotated[str, label(200)]
    max_planner_steps: Annotated[int | None, integer(1, 20)] = None

BODY = record("CreateProjectRequest", CreateProject)
BODY.check({"name": "Thesis"}, "")     -> CreateProject("Thesis", None)
BODY.check({"name": ""}, "")           -> ApiError: name must be a string of 1 to 200 characters, not blank, ...
BODY.schema                            -> the component of the interface document
"""

import enum
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Annotated, Any, Generic, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from svc.errors import ApiError

T = TypeVar("T")
D = TypeVar("D")
R = TypeVar("R", bound=tuple[Any, ...])
Check = Callable[[Any, str], T]
Schema = Mapping[str, Any]

# Unicode's categories Cc and Cs: they may not stand in a name, a title or a subject.
CONTROL_CHARACTERS = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
# Characters that show nothing: spaces, controls, formatting (zero width, direction, fillers, variation, tags), surrogates.
_INVISIBLE = re.compile(
    "[\\s\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff\ud800-\udfff]*"
)
# The same rules as ECMA-262 patterns, as far as those can say it.
_LABEL_PATTERN = "^[^\\u0000-\\u001f\\u007f-\\u009f]*[^\\s\\u0000-\\u001f\\u007f-\\u009f][^\\u0000-\\u001f\\u007f-\\u009f]*$"


class Absent(enum.Enum):
    """The type of ABSENT, the default of a field that a partial update may leave out."""

    ABSENT = "absent"


ABSENT = Absent.ABSENT


class Component(dict[str, Any]):
    """A part of the interface document that has a name: written once under `components`, and referred to wherever it is used.

    `example` is a value of a schema; bodies and answers show it where they have none of their own.
    """

    def __init__(self, kind: str, name: str, value: Schema, example: Any = None) -> None:
        super().__init__(value)
        self.kind = kind
        self.name = name
        self.example = example

    @property
    def reference(self) -> str:
        return f"#/components/{self.kind}/{self.name}"


class Shape(Generic[T]):
    """What a value may be. `check(value, param)` returns the typed value or raises ApiError `missing_field` or `invalid_value`;
    `param` is the place of the value (`messages[0].role`). `expected` completes the sentence "param must be ..."."""

    __slots__ = ("check", "expected", "fields", "schema")

    def __init__(self, check: Check[T], expected: str, schema: Schema, fields: "tuple[Field, ...]" = ()) -> None:
        self.check = check
        self.expected = expected
        self.schema = schema
        self.fields = fields  # of a record

    def about(self, description: str = "", **keywords: Any) -> "Shape[T]":
        """Return the same shape with a description and further keywords in its JSON schema."""
        described = {"description": description} if description else {}
        return Shape(self.check, self.expected, {**self.schema, **described, **keywords}, self.fields)

    def named(self, name: str) -> "Shape[T]":
        """Return the same shape with a JSON schema that is written once, under this name, in the interface document."""
        return Shape(self.check, self.expected, Component("schemas", name, self.schema), self.fields)

    def example_refusals(self) -> Iterator[ApiError]:
        """Yield the errors for a record whose first field that may not be null is null, and whose first field is wrong."""
        never_null = ((field, None) for field in self.fields if field.default in (..., ABSENT))
        for found in (never_null, ((field, object()) for field in self.fields)):
            for field, value in found:
                try:
                    field.shape.check(value, field.name)
                except ApiError as error:
                    yield error
                    break


class Field(NamedTuple):
    """A field of a record; `default` is `...` for a required one."""

    name: str
    shape: Shape[Any]
    default: Any


def refusal(value: Any, param: str, expected: str) -> ApiError:
    """Return the error for a `value` that is not as `expected`: `missing_field` for null, else `invalid_value`."""
    if value is None:
        return ApiError("missing_field", f"{param} is required: {expected}.", param=param)
    return ApiError("invalid_value", f"{param} must be {expected}.", param=param)


def or_null(schema: Schema) -> Schema:
    """Return the JSON schema of null or what `schema` allows."""
    if not isinstance(schema, Component) and "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    if isinstance(schema, Component) or not isinstance(schema.get("type"), str):
        return {"anyOf": [schema, {"type": "null"}]}
    value = {**schema, "type": [schema["type"], "null"]}
    return {**value, "enum": [*schema["enum"], None]} if "enum" in schema else value


def _shape(accepts: Callable[[Any], bool], expected: str, schema: Schema) -> Shape[Any]:
    def check(value: Any, param: str) -> Any:
        if not accepts(value):
            raise refusal(value, param, expected)
        return value

    return Shape(check, expected, schema)


# --- text


def is_blank(value: str) -> bool:
    """Return whether no character of the text is visible."""
    return not "!" <= value[:1] <= "~" and _INVISIBLE.fullmatch(value) is not None


def text(most: int, *, least: int = 0, blank: bool = True, controls: bool = True) -> Shape[str]:
    """A string of `least` to `most` characters; without `blank` one of them must be visible, without `controls` none may be a
    control character. The length is checked first, so that the other checks work on bounded text."""
    length = f"of {least or 1} to {most} characters" if least or not blank else f"of at most {most} characters"
    expected = f"a string {length}{'' if blank else ', not blank'}{'' if controls else ', without control characters'}"
    schema: dict[str, Any] = {"type": "string", "maxLength": most}
    if least or not blank:
        schema["minLength"] = least or 1
    if not controls:
        schema["pattern"] = _LABEL_PATTERN

    def accepts(value: Any) -> bool:
        return (
            isinstance(value, str)
            and least <= len(value) <= most
            and (blank or not is_blank(value))
            and (controls or CONTROL_CHARACTERS.search(value) is None)
        )

    return _shape(accepts, expected, schema)


def label(most: int) -> Shape[str]:
    """A name, title or subject: up to `most` characters in one line, not blank."""
    return text(most, blank=False, controls=False)


def matching(pattern: re.Pattern[str], expected: str, most: int, schema: Schema | None = None) -> Shape[str]:
    """A string of at most `most` characters that matches `pattern` as a whole; `expected` says it in words, and `schema` in
    ECMA-262 where the pattern itself is not valid there."""

    def accepts(value: Any) -> bool:
        return isinstance(value, str) and len(value) <= most and pattern.fullmatch(value) is not None

    return _shape(accepts, expected, schema or {"type": "string", "maxLength": most, "pattern": f"^(?:{pattern.pattern})$"})


def one_of(*allowed: str) -> Shape[str]:
    """One of a few words."""
    expected = f"one of {', '.join(allowed)}" if len(allowed) > 1 else allowed[0]
    schema = {"enum": list(allowed)} if len(allowed) > 1 else {"const": allowed[0]}
    return _shape(lambda value: isinstance(value, str) and value in allowed, expected, {"type": "string", **schema})


string: Shape[str] = _shape(lambda value: isinstance(value, str), "a string", {"type": "string"})
filled: Shape[str] = _shape(
    lambda value: isinstance(value, str) and not is_blank(value),
    "a string that is not blank",
    {"type": "string", "pattern": "\\S"},
)


# --- numbers and booleans


def integer(low: int, high: int) -> Shape[int]:
    """An integer from `low` to `high`. A whole float (`6.0`) is accepted, since some languages have no other number; a boolean
    is not."""
    expected = f"a whole number from {low} to {high}"

    def check(value: Any, param: str) -> int:
        if type(value) not in (int, float) or not low <= value <= high or value != int(value):
            raise refusal(value, param, expected)
        return int(value)

    return Shape(check, expected, {"type": "integer", "minimum": low, "maximum": high})


def number(low: float, high: float) -> Shape[float]:
    """A number from `low` to `high`; a boolean is none."""
    expected = f"a number from {low:g} to {high:g}"

    def check(value: Any, param: str) -> float:
        if type(value) not in (int, float) or not low <= value <= high:
            raise refusal(value, param, expected)
        return float(value)

    return Shape(check, expected, {"type": "number", "minimum": low, "maximum": high})


def _check_whole(value: Any, param: str) -> int | float:
    if type(value) is int or (type(value) is float and value.is_integer()):
        return value
    raise refusal(value, param, "a whole number")


whole = Shape(_check_whole, "a whole number", {"type": "integer"})  # of any size
boolean: Shape[bool] = _shape(lambda value: isinstance(value, bool), "true or false", {"type": "boolean"})


# --- values that hold others

mapping: Shape[dict[str, Any]] = _shape(lambda value: isinstance(value, dict), "an object", {"type": "object"})


def nullable(shape: Shape[T]) -> Shape[T | None]:
    """Null, or a value of `shape`."""
    return Shape(
        lambda value, param: None if value is None else shape.check(value, param),
        f"{shape.expected}, or null",
        or_null(shape.schema),
    )


def list_of(shape: Shape[T], *, least: int = 0, most: int | None = None) -> Shape[list[T]]:
    """A list of `least` to `most` values of `shape`."""
    if most is None:
        expected = f"a list of at least {least}" if least else "a list"
    else:
        expected = f"a list of {least} to {most}" if least else f"a list of at most {most}"
    check_item = shape.check

    def check(value: Any, param: str) -> list[T]:
        if not isinstance(value, list) or len(value) < least or (most is not None and len(value) > most):
            raise refusal(value, param, expected)
        return [check_item(item, f"{param}[{position}]") for position, item in enumerate(value)]

    bounds = {"minItems": least or None, "maxItems": most}
    schema = {"type": "array", "items": shape.schema, **{name: bound for name, bound in bounds.items() if bound is not None}}
    return Shape(check, expected, schema)


# --- values of several kinds


def by_type(expected: str, shapes: Mapping[type, Shape[Any]]) -> Shape[Any]:
    """A value whose JSON type chooses its shape: `{str: string, list: list_of(part)}`."""

    def check(value: Any, param: str) -> Any:
        shape = shapes.get(type(value))
        if shape is None:
            raise refusal(value, param, expected)
        return shape.check(value, param)

    return Shape(check, expected, {"anyOf": [shape.schema for shape in shapes.values()]})


def tagged(tag: str, shapes: Mapping[str, Shape[Any]], other: Shape[Any] | None = None) -> Shape[Any]:
    """An object whose field `tag` chooses its shape; `other` is the shape for all other strings, which are else refused."""
    tag_shape = one_of(*shapes) if other is None else string

    def check(value: Any, param: str) -> Any:
        if not isinstance(value, dict):
            raise refusal(value, param, "an object")
        return shapes.get(required(value, tag, tag_shape, param), other or string).check(value, param)

    variants = [*dict.fromkeys(shapes.values()), *([other] if other else [])]
    if other is not None or any(not isinstance(shape.schema, Component) for shape in variants):
        return Shape(check, "an object", {"anyOf": [shape.schema for shape in variants]})
    mapping = {value: shape.schema.reference for value, shape in shapes.items() if isinstance(shape.schema, Component)}
    discriminator = {"propertyName": tag, "mapping": mapping}
    return Shape(check, "an object", {"oneOf": [shape.schema for shape in variants], "discriminator": discriminator})


# --- records


def record(name: str, kind: type[R], description: str = "", *, example: Any = None, **keywords: Any) -> Shape[R]:
    """An object whose fields are those of the NamedTuple `kind`, each annotated with its shape. Other fields are ignored.

    A field without a default is required. One with the default ABSENT may be left out, as in a partial update, and null counts as
    a value; for every other default null counts as left out. `keywords` are added to the JSON schema, which is named `name`.
    """
    found = tuple(_fields(kind))

    def check(value: Any, param: str) -> R:
        if not isinstance(value, dict):
            raise refusal(value, param, "an object")
        within = f"{param}." if param else ""
        return kind(*(_field(value, field, within) for field in found))

    schema: dict[str, Any] = {"type": "object", "description": description, "required": [], "properties": {}, **keywords}
    for field in found:
        if field.default is ... or field.default is ABSENT:
            schema["properties"][field.name] = field.shape.schema
        else:
            default = {} if field.default is None or isinstance(field.shape.schema, Component) else {"default": field.default}
            schema["properties"][field.name] = {**or_null(field.shape.schema), **default}
        if field.default is ...:
            schema["required"].append(field.name)
    kept = {keyword: value for keyword, value in schema.items() if value or keyword == "properties"}
    return Shape(check, "an object", Component("schemas", name, kept, example), found)


def _fields(kind: type[R]) -> Iterator[Field]:
    defaults: Mapping[str, Any] = getattr(kind, "_field_defaults", {})
    for name, hint in get_type_hints(kind, include_extras=True).items():
        shapes = [part for part in get_args(hint)[1:] if isinstance(part, Shape)] if get_origin(hint) is Annotated else []
        if len(shapes) != 1:
            raise TypeError(f"{kind.__name__}.{name} must be annotated with one shape")
        yield Field(name, shapes[0], defaults.get(name, ...))


def _field(holder: Mapping[str, Any], field: Field, within: str) -> Any:
    value = holder.get(field.name, ABSENT)
    if field.default is ... or (value is not ABSENT and field.default is ABSENT):
        return field.shape.check(None if value is ABSENT else value, within + field.name)
    return field.default if value is ABSENT or value is None else field.shape.check(value, within + field.name)


def passed_on(
    fields: Mapping[str, Shape[Any]], description: str = "", *, required: Collection[str] = (), **keywords: Any
) -> Shape[dict[str, Any]]:
    """An object that is returned as it was sent: the fields that are listed are checked, and others are accepted.

    A field that is `required` must be there; every other one may be null.
    """
    checks = {field: shape.check for field, shape in fields.items()}

    def check(value: Any, param: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise refusal(value, param, "an object")
        within = f"{param}." if param else ""
        for field in required:
            if field not in value:
                raise refusal(None, within + field, fields[field].expected)
        for field, sent in value.items():
            if (check_field := checks.get(field)) is not None and (sent is not None or field in required):
                check_field(sent, within + field)
        return value

    shown = {field: shape.schema if field in required else or_null(shape.schema) for field, shape in fields.items()}
    schema = {"type": "object", "description": description, "required": [*required], "properties": shown, **keywords}
    schema = {keyword: part for keyword, part in schema.items() if part or keyword == "properties"}
    found = tuple(Field(field, shape, ... if field in required else None) for field, shape in fields.items())
    return Shape(check, "an object", {**schema, "additionalProperties": True}, found)


def given(values: tuple[Any, ...]) -> dict[str, Any]:
    """Return the fields of a partial update that were sent, by name."""
    fields: tuple[str, ...] = getattr(values, "_fields", ())
    return {name: value for name, value in zip(fields, values, strict=True) if value is not ABSENT}


def required(holder: Mapping[str, Any], name: str, shape: Shape[T], within: str = "") -> T:
    """Return the field `name`, checked; null counts as missing. `within` is the place of `holder` itself."""
    return shape.check(holder.get(name), f"{within}.{name}" if within else name)


def optional(holder: Mapping[str, Any], name: str, shape: Shape[T], default: D, within: str = "") -> T | D:
    """Return the field `name`, checked, or `default` where it is missing or null."""
    value = holder.get(name)
    return default if value is None else shape.check(value, f"{within}.{name}" if within else name)
