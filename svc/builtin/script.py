"""The model `script`: plays the directives in the last user message, so that client authors can rehearse.

    say TEXT              writes TEXT and nothing after it; TEXT may be a JSON string: say "two\\nlines"
    tool NAME JSON        calls the tool NAME; the rest of the line is sent unchanged, even broken JSON; `{}` if absent
    wait MS               sleeps, at most 60 s at once and 10 minutes in an answer
    fail STATUS MESSAGE   fails with that HTTP status, 400 to 599
    drop                  cuts the connection
    length                ends with the finish reason `length`
    repeat N LINE         plays LINE N times; LINE may itself be a `repeat`
    ---                   ends a section: each model call of an agent run plays the next one

`tools`, `tool_choice` and `response_format` change nothing. The section is the number of assistant messages after the
last user message. After the last section the answer is empty, so a tool loop ends. Empty lines are skipped.
"""

import contextlib
import json
import math
import re
from collections.abc import Iterator

from svc.builtin.answer import FinishPart, Part, ToolCallPart
from svc.builtin.request import BuiltinRequest, refusal
from svc.errors import UpstreamFault

# The bounds of an answer, shared evenly by its choices. An answer beyond them ends with `length`.
MAX_PARTS = 20_000
MAX_WAIT_TOTAL_SECONDS = 600.0
MAX_WAIT_MILLISECONDS = 60_000
MAX_LINES = 10_000
MAX_NESTED_REPEATS = 20
MAX_REPEATS = 20_000

DIRECTIVES = (
    "say TEXT, tool NAME JSON, wait MS, fail STATUS MESSAGE, drop, length, repeat N LINE, and --- between sections"
)
_REPEATS = re.compile(rf"(?:repeat\s+[0-9]{{1,18}}\s+(?=\S)){{0,{MAX_NESTED_REPEATS}}}")


def parts(request: BuiltinRequest) -> list[Part]:
    """Return the parts of this call for one choice. Raises UpstreamFault (400) for a wrong line."""
    lines = request.goal.split("\n", MAX_LINES)
    if len(lines) > MAX_LINES or request.goal.count("repeat") > MAX_REPEATS:
        raise refusal(f"A script may have at most {MAX_LINES:,} lines and {MAX_REPEATS:,} repeats.", "messages")
    sections: list[list[tuple[int, Part]]] = [[]]
    # Every call reads the whole script, so that a mistake in it is reported first.
    for number, line in enumerate(lines, 1):
        line = line.rstrip("\r").lstrip()
        if line.rstrip() == "---":
            sections.append([])
        elif line:
            sections[-1].append(_repeated(line, number))
    section = sections[request.turns] if request.turns < len(sections) else []
    return list(_within_bounds(section, request.choices))


def _within_bounds(section: list[tuple[int, Part]], choices: int) -> Iterator[Part]:
    parts_left, seconds_left = MAX_PARTS // choices, MAX_WAIT_TOTAL_SECONDS / choices
    for repeats, part in section:
        for _ in range(repeats):
            parts_left -= 1
            seconds_left -= part if isinstance(part, float) else 0
            if parts_left < 0 or seconds_left < 0:
                yield FinishPart("length")
                return
            yield part


def _repeated(line: str, number: int) -> tuple[int, Part]:
    """Return the number of repeats of a line, the product of nested ones, and its part."""
    repeats = _REPEATS.match(line)
    assert repeats is not None  # a line without repeats matches with an empty string
    part = _part(line[repeats.end() :])
    if part is None:
        found = f"Line {number} of the script, '{line[:60].rstrip()}',"
        raise refusal(f"{found} is not a directive. The directives are: {DIRECTIVES}.", "messages")
    return min(math.prod(map(int, re.findall("[0-9]+", repeats[0]))), MAX_PARTS + 1), part


def _part(line: str) -> Part | None:
    directive, _, rest = line.partition(" ")
    first, _, others = rest.strip().partition(" ")
    match directive.rstrip():
        case "say":
            return _said(rest)
        case "tool" if first:
            return ToolCallPart(first, others.lstrip() or "{}")
        case "wait" if re.fullmatch("[0-9]{1,5}", rest.strip()) and int(first) <= MAX_WAIT_MILLISECONDS:
            return int(first) / 1000
        case "fail" if re.fullmatch("[45][0-9][0-9]", first):
            status, message = int(first), others.strip() or "The script failed."
            kind = "rate_limit_error" if status == 429 else "invalid_request_error" if status < 500 else "api_error"
            error = {"message": message, "type": kind, "param": None, "code": None}
            return UpstreamFault("status", message, status=status, error=error)
        case "drop" if not first:
            return UpstreamFault("cut", "The script dropped the connection.")
        case "length" if not first:
            return FinishPart("length")
    return None


def _said(text: str) -> str:
    with contextlib.suppress(ValueError):  # a text that begins with a quotation mark
        return str(json.loads(text)) if text.lstrip().startswith('"') else text
    return text
