"""CSV for spreadsheets."""

from svc.spreadsheet import csv_text
from tests.support.cases import each


@each("begin", ["=", "+", "-", "@", "\t", "\r"])
def test_text_like_a_formula_gets_an_apostrophe(begin: str) -> None:
    assert csv_text([["a", "b"], [f"{begin}1", 1]]).replace('"', "") == f"a,b\n'{begin}1,1\n"


def test_numbers_and_other_texts_stay() -> None:
    assert csv_text([("x", "y"), ("a", -5), ("b,c", None)]) == 'x,y\na,-5\n"b,c",\n'
