"""CSV that a spreadsheet opens without taking a text as a formula."""

import csv
import io
import itertools
from collections.abc import Iterable, Sequence
from typing import TextIO


def write_csv(file: TextIO, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write `rows` as CSV. A text like a formula gets an apostrophe: users choose addresses and names."""
    lines = ([_cell(value) for value in row] for row in itertools.chain([columns], rows))
    csv.writer(file, lineterminator="\n").writerows(lines)


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    write_csv(text, columns, rows)
    return text.getvalue()


def _cell(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value
