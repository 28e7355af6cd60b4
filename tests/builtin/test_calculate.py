"""svc/builtin/calculate.py: exact, bounded, and never evaluated by Python."""

import operator
import time
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.builtin.calculate import MAX_DEPTH, MAX_DIGITS, MAX_LENGTH, calculate
from tests.support.cases import each


@each(
    ("expression", "value"),
    [
        ("12 * (3 + 4)", "84"),
        ("2 + 3 * 4", "14"),
        ("10 - 4 - 3", "3"),
        ("100 / 10 / 5", "2"),
        ("-2 ** 2", "-4"),
        ("(-2) ** 2", "4"),
        ("2 ** 3 ** 2", "512"),
        ("2 ^ 10", "1024"),
        ("2 ** -3 ** 2", "0.001953125"),
        ("2 * -3", "-6"),
        ("2 - -3", "5"),
        ("+5", "5"),
        ("7 // 2", "3"),
        ("-7 // 2", "-4"),
        ("-7 % 3", "2"),
        ("7.5 % 2", "1.5"),
        ("0 ** 0", "1"),
        ("0.1 + 0.2", "0.3"),
        (".5 + 5.", "5.5"),
        ("1e3 + 2.5E-1", "1000.25"),
        ("1 / 8", "0.125"),
        ("-1 / 8", "-0.125"),
        ("1 / 3 * 3", "1"),
        ("2 / 3", "0.6666666666666666666666666667"),
        ("3 \u00d7 4 \u00f7 2 \u2212 1", "5"),
        ("  1\t+\n1  ", "2"),
        ("(-1) ** (10 ** 900)", "1"),
    ],
)
def test_value_is_exact_or_rounded_to_28_digits(expression: str, value: str) -> None:
    assert calculate(expression) == value


@each(
    ("expression", "complaint"),
    [
        ("", "empty"),
        ("  ", "empty"),
        ("1 +", "ends too early"),
        ("(1 + 2", r"'\)' is missing"),
        ("1 + 2)", r"Unexpected '\)'"),
        ("* 2", r"Unexpected '\*'"),
        ("2 3", "Unexpected '3'"),
        ("1,000", "Unexpected ',' at position 2"),
        ("1_000", "Unexpected '_'"),
        ("__import__('os')", "Unexpected '_' at position 1"),
        ("abs(1)", "Unexpected 'a'"),
        ("\u0661 + 1", "Unexpected"),
        ("1 / 0", "Division by zero"),
        ("1 // (2 - 2)", "Division by zero"),
        ("1 % 0", "Division by zero"),
        ("0 ** -1", "Division by zero"),
        ("2 ** 0.5", "whole number"),
    ],
)
def test_invalid_expression_raises_a_clear_error(expression: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        calculate(expression)


@each(
    "bomb",
    [
        "9**9**9",
        "9**9**9**9**9",
        "2**-999999999",
        "(1/3)**99999999999999999999",
        "1e999999999",
        "1e-999999999",
        f"10**{MAX_DIGITS}",
        "*".join(["9**900"] * 2),
        "0.1**1001",
        "(" * (MAX_DEPTH + 1) + "1" + ")" * (MAX_DEPTH + 1),
        "-" * (MAX_DEPTH + 1) + "1",
        "**".join(["1"] * (MAX_DEPTH + 2)),
        "1" * (MAX_LENGTH + 1),
        "(" * MAX_LENGTH,
        "1/7" + "/7**99" * 20,
    ],
)
def test_expensive_expressions_are_refused_before_they_are_computed(bomb: str) -> None:
    started = time.thread_time()
    with pytest.raises(ValueError, match=r"more than|deep"):
        calculate(bomb)
    assert time.thread_time() - started < 0.1


@each("expression", ["9" * 1000, f"10**{MAX_DIGITS - 1}", "1/10**999", "(" * 50 + "1" + ")" * 50, "-" * 50 + "1"])
def test_expressions_within_the_bounds_are_computed(expression: str) -> None:
    assert len(calculate(expression)) <= MAX_DIGITS + 2


@each("expression", ["1/" + "/".join(["7"] * 499), "+".join(f"1/{n}" for n in range(2, 150))])
def test_most_expensive_allowed_expressions_are_fast(expression: str) -> None:
    started = time.thread_time()
    calculate(expression)
    assert time.thread_time() - started < 0.1


@given(st.text(max_size=60) | st.text(alphabet="0123456789.+-*/%^() eE", max_size=60))
def test_any_text_gives_a_number_or_a_value_error(text: str) -> None:
    try:
        result = calculate(text)
    except ValueError as error:
        assert str(error)
    else:
        Fraction(result)


Term = tuple[str, Fraction | None]


def _joined(left: Term, sign: str, right: Term) -> Term:
    text = f"({left[0]} {sign} {right[0]})"
    if left[1] is None or right[1] is None or (right[1] == 0 and sign in ("/", "//", "%")):
        return text, None
    return text, Fraction(_PYTHON[sign](left[1], right[1]))


_PYTHON = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
}
_NUMBERS = (st.integers(0, 99) | st.decimals(0, 99, places=2)).map(lambda number: (str(number), Fraction(number)))
_TERMS = st.recursive(
    _NUMBERS, lambda inner: st.builds(_joined, inner, st.sampled_from(sorted(_PYTHON)), inner), max_leaves=8
)


@given(_TERMS)
def test_agrees_with_fractions(term: Term) -> None:
    expression, value = term
    if value is None:
        with pytest.raises(ValueError, match="Division by zero"):
            calculate(expression)
    else:
        assert abs(Fraction(calculate(expression)) - value) <= abs(value) / 10**27
