"""A finding is one line, whatever stands in its texts."""

from svc.commands.finding import fine, wrong


def test_a_finding_is_one_line_with_its_grade_first() -> None:
    assert fine("disk", "there is room").line() == "ok    disk: there is room"
    assert wrong("port", "it is taken", "Take another").line() == "wrong port: it is taken. Take another"


def test_no_text_of_others_moves_a_terminals_cursor_or_begins_a_line() -> None:
    assert wrong("provider", "odd\n\x1b[2Jok    all is well").line() == "wrong provider: odd��[2Jok    all is well"
