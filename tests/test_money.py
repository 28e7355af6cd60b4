"""Dollars to and from whole micros: exact both ways, and nothing but plain amounts is one."""

from hypothesis import given
from hypothesis import strategies as st

from svc.money import dollars, micros_of
from tests.support.cases import each


@each(
    ("micros", "shown"),
    [
        (0, "$0.00"),
        (1, "$0.000001"),
        (11, "$0.000011"),
        (1_500_000, "$1.50"),
        (1_234_567_890_000, "$1,234,567.89"),
        (-250_000, "-$0.25"),
    ],
)
def test_micros_are_formatted_with_two_to_six_decimals(micros: int, shown: str) -> None:
    assert dollars(micros) == shown


@given(st.integers(0, 10**15 - 1))
def test_formatted_dollars_parse_to_the_same_micros(micros: int) -> None:
    assert micros_of(dollars(micros).removeprefix("$").replace(",", "")) == micros


@each("text", ["", "1,5", "-1", "+1", "1e3", "1.", ".5", "0x10", " 1", "1\n", "٣", "1" * 10, "0.0000001", "nan"])
def test_other_text_is_not_an_amount(text: str) -> None:
    assert micros_of(text) is None
