"""Reads the figures of things.txt, which describes their notation: their words, their homes, and their shapes."""

import cmath
import math
import re
from functools import cache
from itertools import product
from pathlib import Path
from typing import NamedTuple

_SHAPE = re.compile(r"(?:(lit|snow)\?)?(?:(\d+)\*)?([~&=]*)(area|line|glow|discs|panes) (!?)(\S+?)(?:@(\d+))? (.+)")
# When it is visible, its kind, whether it keeps its colours, the colours, the opacity, the outlines, and the number of
# holes.
Shape = tuple[str | None, str, bool, list[str], float, list[list[complex]], int]


class Figure(NamedTuple):
    words: str
    jitter: str
    colors: str
    where: str
    tall: str
    home: str
    shapes: str


@cache
def table(name: str) -> dict[str, list[str]]:
    """Return the entries of the text file `name`: the further columns by the first one.

    Columns are separated by `|`. An entry begins with a line that is not indented, and its other lines are indented.
    """
    text = re.sub("^#.*\n", "", Path(__file__).with_name(f"{name}.txt").read_text(), flags=re.M)
    entries = ([column.strip() for column in entry.split("|")] for entry in re.split(r"\n(?=\w)", text.strip()))
    return {first: columns for first, *columns in entries}


@cache
def figures() -> dict[str, Figure]:
    return {name: Figure(*columns) for name, columns in table("things").items()}


@cache
def shapes(text: str) -> list[Shape]:
    """Return the shapes of a text. Raises ValueError for any other text."""
    return [_shape(shape.strip()) for shape in re.split(r";|\n", text)]


def _shape(text: str) -> Shape:
    found = _SHAPE.fullmatch(text)
    if found is None:
        raise ValueError(f"Not a shape: {text}")
    when, copies, marks, kind, keep, paint, alpha, numbers = found.groups()
    rows = [[float(number) for number in row.split(",")] for row in numbers.split()]
    thickness = rows.pop(0) if kind == "line" else []
    center = complex(*rows.pop(0)) if copies else 0
    if kind == "panes":
        corners = product(range(int(rows[0][0]) + 3, int(rows[1][0]) - 3, 5), range(5, int(rows[0][1]) - 4, 6))
        outlines = [[complex(x, y), complex(x + 2, y), complex(x + 2, y + 3), complex(x, y + 3)] for x, y in corners]
    elif kind in ("glow", "discs"):
        outlines = [_oval(*row) for row in rows]
    else:
        points = [complex(*row) for row in rows]
        if "&" in marks:
            points += _mirrored(points)
        elif marks == "~" and kind == "area":
            points += points[:1]
        points = _curve(points) if "~" in marks else points
        outlines = [_stroke(points, thickness[0], thickness[-1]) if thickness else points]
    if "=" in marks:
        outlines += map(_mirrored, outlines.copy())
    for copy in range(1, int(copies or 0)):
        turn = cmath.rect(1, math.tau * copy / int(copies))
        outlines.append([center + (point - center) * turn for point in outlines[0]])
    holes = sum(len(row) > 4 for row in rows)
    return when, kind, bool(keep), paint.split(":"), int(alpha or 100) / 100, outlines, holes


def _mirrored(points: list[complex]) -> list[complex]:
    return [-point.conjugate() for point in reversed(points)]


def _oval(x: float, y: float, width: float, height: float = 0, hole: float = 0) -> list[complex]:
    height, corners = height or width, 40 if max(width, height) < 60 else 120
    angles = (math.tau * corner / corners for corner in range(corners))
    return [complex(x + width * math.cos(angle), y + height * math.sin(angle)) for angle in angles]


def _curve(points: list[complex]) -> list[complex]:
    """Return a smooth line through the points (Catmull-Rom)."""
    smooth, known = [], [points[0], *points, points[-1]]
    for a, b, c, d in zip(known, known[1:], known[2:], known[3:], strict=False):
        for t in (step / 6 for step in range(6)):
            u, v, w, z = t * (2 * t - t * t - 1), t * t * (3 * t - 5) + 2, t * ((4 - 3 * t) * t + 1), t * t * (t - 1)
            smooth.append((u * a + v * b + w * c + z * d) / 2)
    return [*smooth, points[-1]]


def _stroke(points: list[complex], thick: float, end: float) -> list[complex]:
    """Return the outline of a line through the points, `thick` at the first and `end` at the last."""
    left, right = [], []
    for index, point in enumerate(points):
        along = points[min(index + 1, len(points) - 1)] - points[max(index - 1, 0)]
        aside = along * 0.5j / (abs(along) or 1) * (thick + (end - thick) * index / (len(points) - 1))
        left.append(point + aside)
        right.append(point - aside)
    return left + right[::-1]
