"""Cookies are read as RFC 6265 writes them, in linear time whatever the header holds."""

import time

from svc.cookies import cookie
from tests.support.cases import each


@each(
    ("headers", "value"),
    [
        (["c=1"], "1"),
        (["a=0; c=1; d=2"], "1"),
        (["a=0;c=1"], "1"),
        (["a=0", "c=1"], "1"),
        (["c=a=b"], "a=b"),
        (['c="1"'], '"1"'),
        (["c="], ""),
        ([], None),
        ([""], None),
        (["c"], None),
        (["C=1"], None),
        (["xc=1; cx=2"], None),
        (["c=1; c=2"], None),
        (["c=1", "c=1"], None),
        (['a="; c=1; "'], "1"),  # quotes join nothing
        ([r'c="\143"'], r'"\143"'),  # and nothing is unquoted
    ],
)
def test_cookie_value_ends_at_the_next_semicolon(headers: list[str], value: str | None) -> None:
    assert cookie(headers, "c") == value


@each("worst", ['c="' + "\\" * 62_000 + '"', "c=" + ";" * 62_000, "c=1;" * 15_000, 'c="' + '\\"' * 31_000])
def test_worst_cookie_header_is_parsed_fast(worst: str) -> None:
    began = time.thread_time()
    cookie([worst], "c")
    assert time.thread_time() - began < 0.05
