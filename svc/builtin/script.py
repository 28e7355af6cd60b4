"""The model `script`: plays the directives in the last user message, so that client authors can rehearse.

    say TEXT              writes TEXT and nothing after it; TEXT may be a JSON string: say "two\\nlines"
    tool NAME JSON        calls the tool NAME; the rest of the line is passed on as it is, broken JSON too; `{}` if absent
    wait MS               sleeps, at most 60 s at once and 10 minutes in an answer
    fail STATUS MESSAGE   fails with that HTTP status, 400 to 599
    drop                  cuts the connection
    length                ends with the finish reason `length`
    repeat N LINE         plays LINE N times; LINE may itself be a `repeat`
    ---                   ends a section: each model call of an agent run plays the next one

It plays to the letter, whatever `tools`, `tool_choice` and `response_format` say. The section is the number of assistant
messages after the last user message; past the last section the answer is empty. Empty lines are passed over.
"""

import asyncio
import json
import math
import re
from collections.abc import AsyncGenerator, Callable
from typing import NamedTuple

from svc.builtin.answer import STEPS_BETWEEN_RESTS, FinishPiece, Piece, TextPiece, ToolCallPiece
from svc.builtin.request import Request, refusal
from svc.errors import UpstreamFault

# An answer's bounds, shared evenly by its choices; past them it ends with `length`.
MAX_DIRECTIVES = 20_000
MAX_WAIT_TOTAL_SECONDS = 600.0
MAX_WAIT_SECONDS = 60.0
MAX_LINES = 10_000
MAX_NESTED_REPEATS = 20
MAX_REPEATS = 20_000

DIRECTIVES = "say TEXT, tool NAME JSON, wait MS, fail STATUS MESSAGE, drop, length, repeat N LINE, and --- between sections"
_REPEATS = re.compile(rf"(?:repeat\s+[0-9]{{1,18}}\s+(?=\S)){{0,{MAX_NESTED_REPEATS}}}")
_COUNT = re.compile("[0-9]+")


class Wait(NamedTuple):
    seconds: float


class Fail(NamedTuple):
    status: int
    message: str


class Drop(NamedTuple):
    """Cuts the connection."""


Action = Piece | Wait | Fail | Drop
Section = list[tuple[int, Action]]


def section(request: Request) -> Section:
    """What this call has to play: how often, and what. Raises UpstreamFault (400) naming the first line that is no directive."""
    lines = request.goal.split("\n", MAX_LINES)
    if len(lines) > MAX_LINES or request.goal.count("repeat") > MAX_REPEATS:
        raise refusal(f"A script may have at most {MAX_LINES:,} lines and {MAX_REPEATS:,} repeats.", "messages")
    sections: list[Section] = [[]]
    # All of it is read on every call: a mistake shows before anything has been played.
    for number, line in enumerate(lines, 1):
        line = line.rstrip("\r").lstrip()
        if line.rstrip() == "---":
            sections.append([])
        elif line:
            sections[-1].append(_repeated(line, number))
    played = sum(message.role == "assistant" for message in request.since)
    return sections[played] if played < len(sections) else []


async def play(actions: Section, choices: int) -> AsyncGenerator[Piece, None]:
    """Plays one choice out of `choices`. Raises UpstreamFault where the script says `fail` or `drop`."""
    directives_left = MAX_DIRECTIVES // choices
    seconds_left = MAX_WAIT_TOTAL_SECONDS / choices
    for count, action in actions:
        for _ in range(count):
            directives_left -= 1
            seconds_left -= action.seconds if isinstance(action, Wait) else 0
            if directives_left < 0 or seconds_left < 0:
                yield FinishPiece("length")
                return
            if directives_left % STEPS_BETWEEN_RESTS == 0:
                await asyncio.sleep(0)
            if isinstance(action, Wait):
                await asyncio.sleep(action.seconds)
            elif isinstance(action, Fail):
                raise _failure(action)
            elif isinstance(action, Drop):
                raise UpstreamFault("cut", "The script dropped the connection.")
            else:
                yield action


def _failure(fail: Fail) -> UpstreamFault:
    kind = "rate_limit_error" if fail.status == 429 else "invalid_request_error" if fail.status < 500 else "api_error"
    error = {"message": fail.message, "type": kind, "param": None, "code": None}
    return UpstreamFault("status", fail.message, status=fail.status, error=error)


def _repeated(line: str, number: int) -> tuple[int, Action]:
    """A line as its count and action: a repeat of a repeat is the product of the two."""
    repeats = _REPEATS.match(line)
    assert repeats is not None  # it matches nothing too
    count = math.prod(map(int, _COUNT.findall(repeats[0])))
    return min(count, MAX_DIRECTIVES + 1), _action(line[repeats.end() :], number)


def _action(line: str, number: int) -> Action:
    word, _, rest = line.partition(" ")
    parser = _PARSERS.get(word.rstrip())
    action = parser(rest) if parser else None
    if action is None:
        message = f"Line {number} of the script, '{line[:60].rstrip()}', is no directive. The directives are: {DIRECTIVES}."
        raise refusal(message, "messages")
    return action


def _say(rest: str) -> Action:
    if rest.lstrip().startswith('"'):
        try:
            text = json.loads(rest)
        except ValueError:
            return TextPiece(rest)
        return TextPiece(text)
    return TextPiece(rest)


def _tool(rest: str) -> Action | None:
    name, _, arguments = rest.strip().partition(" ")
    return ToolCallPiece(name, arguments.lstrip() or "{}") if name else None


def _wait(rest: str) -> Action | None:
    milliseconds = rest.strip()
    if not re.fullmatch(r"[0-9]{1,6}", milliseconds) or int(milliseconds) > MAX_WAIT_SECONDS * 1000:
        return None
    return Wait(int(milliseconds) / 1000)


def _fail(rest: str) -> Action | None:
    status, _, message = rest.strip().partition(" ")
    if not re.fullmatch(r"[45][0-9][0-9]", status):
        return None
    return Fail(int(status), message.strip() or "The script failed.")


def _alone(action: Action) -> Callable[[str], Action | None]:
    return lambda rest: None if rest.strip() else action


_PARSERS: dict[str, Callable[[str], Action | None]] = {
    "say": _say,
    "tool": _tool,
    "wait": _wait,
    "fail": _fail,
    "drop": _alone(Drop()),
    "length": _alone(FinishPiece("length")),
}
