"""Checks of what callers send: each returns the value that it lets through, or raises the named error that says what to send.

A check is a function of a value and of the place where it stands, which the error names as `param` (`messages[0].role`).
Some are made (`text(200)`, `one_of("auto", "none")`), and they nest (`list_of(string)`). `required`, `optional` and `fields`
apply them to the fields of an object.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from svc.errors import ApiError

T = TypeVar("T")
D = TypeVar("D")
Check = Callable[[Any, str], T]

# Unicode's categories Cc and Cs: what may stand in no name, title or subject.
CONTROL_CHARACTERS = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
# What shows nothing: spaces, controls, what only formats (zero width, direction, fillers, variation, tags), surrogates.
_INVISIBLE = re.compile(
    "[\\s\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff\ud800-\udfff]*"
)


def refusal(value: Any, param: str, expected: str) -> ApiError:
    """The error for a `value` that is not as `expected`: `missing_field` for null, else `invalid_value`."""
    if value is None:
        return ApiError("missing_field", f"{param} is required: {expected}.", param=param)
    return ApiError("invalid_value", f"{param} must be {expected}.", param=param)


# --- the fields of an object


def required(holder: Mapping[str, Any], name: str, check: Check[T], within: str = "") -> T:
    """The field `name`, checked. `within` is the place of `holder` itself; null counts as missing."""
    return check(holder.get(name), f"{within}.{name}" if within else name)


def optional(holder: Mapping[str, Any], name: str, check: Check[T], default: D, within: str = "") -> T | D:
    """The field `name`, checked; `default` where it is missing or null."""
    value = holder.get(name)
    return default if value is None else check(value, f"{within}.{name}" if within else name)


def known(holder: Mapping[str, Any], checks: Mapping[str, Check[Any]], within: str = "") -> None:
    """Checks those of the fields of `holder` that `checks` has a check for and that are not null."""
    for name, value in holder.items():
        if value is not None and (check := checks.get(name)) is not None:
            check(value, f"{within}.{name}" if within else name)


def fields(holder: Mapping[str, Any], checks: Mapping[str, Check[Any]]) -> dict[str, Any]:
    """Those of the fields in `checks` that `holder` has, checked: what a partial update changes."""
    return {name: check(holder[name], name) for name, check in checks.items() if name in holder}


# --- texts


def string(value: Any, param: str) -> str:
    if not isinstance(value, str):
        raise refusal(value, param, "a string")
    return value


def is_blank(text: str) -> bool:
    """Whether nothing of it shows. Most texts begin with what does."""
    return not "!" <= text[:1] <= "~" and _INVISIBLE.fullmatch(text) is not None


def filled(value: Any, param: str) -> str:
    """A string that is not blank."""
    if not isinstance(value, str) or is_blank(value):
        raise refusal(value, param, "a string that is not blank")
    return value


def text(most: int, *, least: int = 0, blank: bool = True, controls: bool = True) -> Check[str]:
    """A string of `least` to `most` characters; without `blank` some of them must show, without `controls` none is U+0000 or
    its like. The length comes first: whatever follows works on bounded text."""
    length = f"of {least or 1} to {most} characters" if least or not blank else f"of at most {most} characters"
    expected = f"a string {length}{'' if blank else ', not blank'}{'' if controls else ', without control characters'}"

    def check(value: Any, param: str) -> str:
        if (
            not isinstance(value, str)
            or not least <= len(value) <= most
            or (not blank and is_blank(value))
            or not (controls or CONTROL_CHARACTERS.search(value) is None)
        ):
            raise refusal(value, param, expected)
        return value

    return check


def label(most: int) -> Check[str]:
    """A name, title or subject: up to `most` characters in one line, not blank."""
    return text(most, blank=False, controls=False)


def matching(pattern: re.Pattern[str], expected: str, most: int) -> Check[str]:
    """A string of at most `most` characters that fits `pattern` from end to end; `expected` tells it in words."""

    def check(value: Any, param: str) -> str:
        if not isinstance(value, str) or len(value) > most or pattern.fullmatch(value) is None:
            raise refusal(value, param, expected)
        return value

    return check


def one_of(*allowed: str) -> Check[str]:
    """One of a few words."""
    expected = f"one of {', '.join(allowed)}" if len(allowed) > 1 else allowed[0]

    def check(value: Any, param: str) -> str:
        if not isinstance(value, str) or value not in allowed:
            raise refusal(value, param, expected)
        return value

    return check


# --- numbers and truth


def integer(low: int, high: int) -> Check[int]:
    """A whole number from `low` to `high`. A whole float (`6.0`) is one too: some languages know no other; a bool is none."""
    expected = f"a whole number from {low} to {high}"

    def check(value: Any, param: str) -> int:
        if type(value) not in (int, float) or not low <= value <= high or value != int(value):
            raise refusal(value, param, expected)
        return int(value)

    return check


def number(low: float, high: float) -> Check[float]:
    """A number from `low` to `high`; a bool is none."""
    expected = f"a number from {low:g} to {high:g}"

    def check(value: Any, param: str) -> float:
        if type(value) not in (int, float) or not low <= value <= high:
            raise refusal(value, param, expected)
        return float(value)

    return check


def boolean(value: Any, param: str) -> bool:
    if not isinstance(value, bool):
        raise refusal(value, param, "true or false")
    return value


# --- what holds others


def mapping(value: Any, param: str) -> dict[str, Any]:
    """An object of any fields."""
    if not isinstance(value, dict):
        raise refusal(value, param, "an object")
    return value


def list_of(check: Check[T], *, least: int = 0, most: int | None = None) -> Check[list[T]]:
    """A list of `least` to `most` items, each of which passes `check`."""
    if most is None:
        expected = f"a list of at least {least}" if least else "a list"
    else:
        expected = f"a list of {least} to {most}" if least else f"a list of at most {most}"

    def check_list(value: Any, param: str) -> list[T]:
        if not isinstance(value, list) or len(value) < least or (most is not None and len(value) > most):
            raise refusal(value, param, expected)
        return [check(item, f"{param}[{position}]") for position, item in enumerate(value)]

    return check_list


def nullable(check: Check[T]) -> Check[T | None]:
    """Null, or what passes `check`."""
    return lambda value, param: None if value is None else check(value, param)
