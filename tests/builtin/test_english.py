"""What the built-in assistant understands of English, in linear time."""

import time

from svc.builtin.calculate import asks_arithmetic, expressions
from svc.builtin.english import clauses, quotations, sentences, subject, trimmed, words
from tests.support.cases import each


def test_clauses_end_at_commas_full_stops_and_words_but_not_in_quotations() -> None:
    assert [clause for _, clause in clauses("Draw a cat, then say 'one, two and three'. Save it")] == [
        "Draw a cat",
        "say 'one, two and three'",
        "Save it",
    ]


@each(
    ("text", "found"),
    [
        ("what is 15% of 80?", ["15 / 100 * 80"]),
        ("3 times 4 plus 2, and 7 squared", ["3 * 4 + 2", "7 ** 2"]),
        ("subtract 2 from 5", ["5 - 2"]),
        ("1,000 * 3", ["1000 * 3"]),
        ("on 2025-12-25", []),
    ],
)
def test_written_and_spoken_arithmetic_is_found(text: str, found: list[str]) -> None:
    assert expressions(text) == found


def test_subject_of_a_request_is_found() -> None:
    assert subject("Please look for the blue whale!") == "blue whale"
    assert subject('say "hello there" to them') == "hello there"
    assert trimmed("  the sea, please. ") == "the sea"
    assert quotations("`one` and 'two' but it's") == ["one", "two"]
    assert sentences("One. Two!\n\nThree") == ["One.", "Two!", "Three"]
    assert words("The boats were sailing") == {"boat", "sail"}
    assert asks_arithmetic("work out 2 + 2") and not asks_arithmetic("call 555-1234")


@each("text", ["(" * 8_000, ", " * 4_000, "and then " * 900, "'" * 8_000, "what is " + " " * 8_000, "1 " * 4_000])
def test_any_8000_characters_are_parsed_quickly(text: str) -> None:
    began = time.thread_time()
    clauses(text), expressions(text), subject(text), sentences(text), words(text), asks_arithmetic(text)
    assert time.thread_time() - began < 0.5
