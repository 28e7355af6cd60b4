"""CSV that a spreadsheet opens without taking a text as a formula."""

import csv
import io
import itertools
from collections.abc import Iterable, Sequence
from typing import TextIO


def write_csv(file: TextIO, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write `rows` as CSV. A text like a formula gets an apostrophe: users choose addresses and names."""
    _write(file, itertools.chain([columns], rows))


def csv_text(lines: Iterable[Sequence[object]]) -> str:
    """Return `lines` as CSV, of which the first may be the header."""
    text = io.StringIO()
    _write(text, lines)
    return text.getvalue()


def _write(file: TextIO, lines: Iterable[Sequence[object]]) -> None:
    csv.writer(file, lineterminator="\n").writerows([_cell(value) for value in line] for line in lines)


def _cell(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value
