"""The checks of callers' fields: what passes, what is refused, and that the refusal names the place and what to send."""

import re
from typing import Any

import pytest

from svc.checks import (
    Check,
    boolean,
    fields,
    filled,
    integer,
    label,
    list_of,
    mapping,
    matching,
    nullable,
    number,
    one_of,
    optional,
    required,
    string,
    text,
)
from svc.errors import ApiError

slug = matching(re.compile("[a-z]+"), "a slug", 5)


@pytest.mark.parametrize(
    ("check", "value", "passed"),
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
def test_what_fits_is_returned_as_we_read_it(check: Check[Any], value: Any, passed: Any) -> None:
    found = check(value, "x")
    assert found == passed and type(found) is type(passed)


@pytest.mark.parametrize(
    ("check", "values", "expected"),
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
        (integer(1, 20), [0, 21, 1.5, True, "6", 1e300], "a whole number from 1 to 20"),
        (number(0, 2), [-0.1, 2.1, True, "1"], "a number from 0 to 2"),
        (boolean, [0, 1, "true"], "true or false"),
        (mapping, [[], "{}"], "an object"),
        (list_of(string, least=1, most=2), [[], ["a"] * 3, "a", {}], "a list of 1 to 2"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place_and_what_to_send(
    check: Check[Any], values: list[Any], expected: str
) -> None:
    for value in values:
        with pytest.raises(ApiError) as refused:
            check(value, "a.b")
        assert (refused.value.code, refused.value.error["param"]) == ("invalid_value", "a.b")
        assert "a.b must be" in str(refused.value) and expected in str(refused.value)


@pytest.mark.parametrize("check", [string, filled, text(3), slug, one_of("a"), integer(0, 1), number(0, 1), boolean, mapping])
def test_null_counts_as_missing(check: Check[Any]) -> None:
    for body in ({}, {"x": None}):
        with pytest.raises(ApiError) as refused:
            required(body, "x", check, "holder")
        assert (refused.value.code, refused.value.error["param"]) == ("missing_field", "holder.x")
        assert optional(body, "x", check, "default") == "default"


def test_a_wrong_item_of_a_list_is_named_by_its_place() -> None:
    with pytest.raises(ApiError) as refused:
        list_of(list_of(string))([["a"], ["b", 1]], "x")
    assert refused.value.error["param"] == "x[1][1]"


def test_only_the_fields_that_are_there_are_checked() -> None:
    checks = {"name": label(5), "note": nullable(string), "size": integer(0, 9)}
    assert fields({"name": "a", "note": None, "other": 1}, checks) == {"name": "a", "note": None}
    with pytest.raises(ApiError, match="name is required"):
        fields({"name": None}, checks)
