"""Shapes: which values they accept, what they refuse and with which words, and the JSON schema of the same rule."""

import re
from typing import Annotated, Any, NamedTuple

import jsonschema
import pytest

from svc.errors import ApiError
from svc.server.openapi import example_refusals
from svc.shapes import (
    ABSENT,
    Absent,
    Shape,
    boolean,
    filled,
    given,
    integer,
    label,
    list_of,
    mapping,
    matching,
    nullable,
    number,
    one_of,
    record,
    required,
    shape_of,
    string,
    text,
)
from tests.support.cases import each

slug = matching(re.compile("[a-z]+"), "a slug", 5)


@each(
    ("shape", "value", "passed"),
    [
        (string, "", ""),
        (filled, " a ", " a "),
        (filled, "\u200ba", "\u200ba"),
        (filled, "\u0301", "\u0301"),
        (text(4, blank=False), "\U0001f642\ufe0f", "\U0001f642\ufe0f"),
        (text(3), "a\nb", "a\nb"),
        (label(3), "abc", "abc"),
        (slug, "abc", "abc"),
        (one_of("a", "b"), "b", "b"),
        (integer(1, 20), 6.0, 6),
        (integer(1, 20), 20, 20),
        (number(0, 2), 1, 1.0),
        (boolean, False, False),
        (mapping, {"a": 1}, {"a": 1}),
        (list_of(integer(0, 9), most=2), [1, 2.0], [1, 2]),
        (nullable(string), None, None),
    ],
)
def test_valid_value_is_returned_with_its_type(shape: Shape[Any], value: Any, passed: Any) -> None:
    found = shape.check(value, "x")
    assert found == passed and type(found) is type(passed)


@each(
    ("shape", "values", "expected"),
    [
        (string, [1, True, [], {}], "a string"),
        (
            filled,
            ["", " \n", 1, "\0", "\u200b\u2060", "\ufeff", "\u3164 \u2800", "\u034f\ufe0f\U000e0020"],
            "a string that is not blank",
        ),
        (text(3, least=2), ["a", "abcd", 12], "a string of 2 to 3 characters"),
        (label(3), ["", "  ", "abcd", "a\nb", "\x7f", "\x9f", "\ud800"], "not blank, without control characters"),
        (slug, ["", "A", "abcdef", "a\n", 1], "a slug"),
        (one_of("a", "b"), ["c", "", 1, ["a"]], "one of a, b"),
        (integer(1, 20), [0, 21, 1.5, True, "6", 1e300], "an integer from 1 to 20"),
        (number(0, 2), [-0.1, 2.1, True, "1"], "a number from 0 to 2"),
        (boolean, [0, 1, "true"], "true or false"),
        (mapping, [[], "{}"], "an object"),
        (list_of(string, least=1, most=2), [[], ["a"] * 3, "a", {}], "a list of 1 to 2"),
    ],
)
def test_error_names_the_path_and_the_expected_value(shape: Shape[Any], values: list[Any], expected: str) -> None:
    for value in values:
        with pytest.raises(ApiError) as refused:
            shape.check(value, "a.b")
        assert (refused.value.code, refused.value.error["param"]) == ("invalid_value", "a.b")
        assert "a.b must be" in str(refused.value) and expected in str(refused.value)


@each("shape", [string, filled, text(3), slug, one_of("a"), integer(0, 1), number(0, 1), boolean, mapping])
def test_null_counts_as_missing(shape: Shape[Any]) -> None:
    for body in ({}, {"x": None}):
        with pytest.raises(ApiError) as refused:
            required(body, "x", shape, "holder")
        assert (refused.value.code, refused.value.error["param"]) == ("missing_field", "holder.x")


def test_error_names_the_path_of_a_list_item() -> None:
    with pytest.raises(ApiError) as refused:
        list_of(list_of(string)).check([["a"], ["b", 1]], "x")
    assert refused.value.error["param"] == "x[1][1]"


# --- the JSON schema

SHAPES = [
    string,
    text(3, least=2),
    label(3),
    slug,
    one_of("a", "b"),
    one_of("a"),
    integer(1, 20),
    number(0, 2),
    boolean,
    mapping,
]
SHAPES += [list_of(string, least=1, most=2), nullable(integer(1, 20)), nullable(one_of("a", "b"))]
VALUES = [
    "",
    "a",
    "b",
    "ab",
    "abc",
    "abcd",
    "  ",
    "a\nb",
    "A",
    0,
    1,
    20,
    21,
    1.5,
    2,
    True,
    False,
    {},
    {"a": 1},
    [],
    ["a"],
    ["a"] * 3,
]


@each("shape", SHAPES)
def test_json_schema_and_check_accept_the_same_values(shape: Shape[Any]) -> None:
    for value in [*VALUES, None]:
        try:
            shape.check(value, "x")
        except ApiError:
            accepted = False
        else:
            accepted = True
        assert jsonschema.Draft202012Validator(shape.schema).is_valid(value) == accepted, value


# --- records


@record("Thing", "A thing.", example={"name": "a"})
class Thing(NamedTuple):
    name: Annotated[str, label(5)]
    size: Annotated[int, integer(0, 9)] = 6
    color: Annotated[str | None, one_of("red", "blue").about("Its color.")] = None


@record("ThingChanges")
class ThingChanges(NamedTuple):
    name: Annotated[str | Absent, label(5)] = ABSENT
    color: Annotated[str | Absent | None, nullable(one_of("red", "blue"))] = ABSENT


THING, CHANGES = shape_of(Thing), shape_of(ThingChanges)


def refused(shape: Shape[Any], value: Any, param: str = "") -> tuple[str, Any]:
    with pytest.raises(ApiError) as error:
        shape.check(value, param)
    return error.value.code, error.value.error["param"]


def test_record_is_typed_and_ignores_other_fields() -> None:
    assert THING.check({"name": "a", "id": 7}, "") == Thing("a", 6, None)
    assert THING.check({"name": "a", "size": None, "color": "red"}, "") == Thing("a", 6, "red")


def test_error_names_the_path_of_a_field() -> None:
    assert refused(THING, {}) == ("missing_field", "name")
    assert refused(THING, {"name": "a", "size": 10}) == ("invalid_value", "size")
    assert refused(list_of(THING), [{"name": "a"}, {"name": ""}], "things") == ("invalid_value", "things[1].name")
    assert refused(list_of(THING), ["a"], "things") == ("invalid_value", "things[0]")


def test_partial_update_distinguishes_null_from_missing() -> None:
    assert given(CHANGES.check({}, "")) == {}
    assert given(CHANGES.check({"color": None}, "")) == {"color": None}
    assert given(CHANGES.check({"name": "a", "other": 1}, "")) == {"name": "a"}
    assert refused(CHANGES, {"name": None}) == ("missing_field", "name")


def test_record_schema_has_required_fields_and_defaults() -> None:
    assert (THING.schema.name, THING.example) == ("Thing", {"name": "a"})
    assert dict(THING.schema) == {
        "type": "object",
        "description": "A thing.",
        "required": ["name"],
        "properties": {
            "name": label(5).schema,
            "size": {"type": ["integer", "null"], "minimum": 0, "maximum": 9, "default": 6},
            "color": {"type": ["string", "null"], "enum": ["red", "blue", None], "description": "Its color."},
        },
    }
    assert "required" not in CHANGES.schema


def test_record_yields_an_example_of_each_refusal() -> None:
    def shown(shape: Shape[Any]) -> list[str | None]:
        return [refusal.message for refusal in example_refusals(shape)]

    assert shown(THING) == [
        "name is required: a string of 1 to 5 characters, not blank, without control characters.",
        "name must be a string of 1 to 5 characters, not blank, without control characters.",
    ]
    assert [refusal.code for refusal in example_refusals(CHANGES)] == ["missing_field", "invalid_value"]


def test_field_without_a_shape_is_an_error() -> None:
    with pytest.raises(TypeError, match=r"Wrong\.name must be annotated with one shape"):

        @record("Wrong")
        class Wrong(NamedTuple):
            name: str
