"""What came of the tool calls so far, in words: the calls since the last user message, their results and failures."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import orjson

from svc.builtin.request import EarlierCall, PromptMessage
from svc.builtin.skills import skill_of

MAX_RESULT_CHARACTERS = 2_000
MAX_PARSED_CHARACTERS = 100_000
MAX_REPORTED_CALLS = 20

_VALUE_KEYS = ("result", "value", "output", "answer", "content", "text", "time", "now", "iso", "data", "results")
_PRODUCTS = {"write": "Saved", "image": "Drew", "audio": "Said aloud:"}


class ToolOutcome(NamedTuple):
    """`informative` outcomes hold a value that a later step may want; the others tell that something was made."""

    text: str
    informative: bool


def calls_made(since: Sequence[PromptMessage]) -> list[EarlierCall]:
    """The calls in the turns after the last user message, each with its result where a tool message gave one."""
    made: list[EarlierCall] = []
    waiting: dict[str, list[EarlierCall]] = {}
    for message in since:
        for call in message.calls:
            made.append(call)
            waiting.setdefault(call.id, []).append(call)
        if message.role == "tool" and waiting.get(message.call_id):
            waiting[message.call_id].pop(0).result = message.text
    return made


def outcomes(calls: Sequence[EarlierCall]) -> list[ToolOutcome]:
    """The latest calls, each as a sentence."""
    return [_outcome(call) for call in calls[-MAX_REPORTED_CALLS:]]


def _outcome(call: EarlierCall) -> ToolOutcome:
    given = _object(call.arguments)
    skill = skill_of(call.name)
    if call.result is None:
        return ToolOutcome(f"{call.name}: no result came.", informative=False)
    value, failed = _value(call.result)
    if failed:
        return ToolOutcome(f"{call.name} failed: {value}", informative=True)
    first = next((text for text in given.values() if isinstance(text, str)), "")[:200]
    if skill in _PRODUCTS:
        named = _object(call.result).get("revised_prompt") if skill == "image" else given.get("name")
        return ToolOutcome(f"{_PRODUCTS[skill]} {(named if isinstance(named, str) else first).rstrip('.')}.", informative=False)
    if skill == "calculate":
        return ToolOutcome(value if "=" in value else f"{first} = {value}", informative=True)
    label = "The current time" if skill == "time" else f"{call.name}({first})" if first else call.name
    return ToolOutcome(f"{label}: {value}", informative=True)


def artifact_id(name: str, calls: Sequence[EarlierCall]) -> str | None:
    """The id next to `name` in the results so far, else the first id in them."""
    for call in calls[-MAX_REPORTED_CALLS:]:
        text = (call.result or "")[:MAX_PARSED_CHARACTERS]
        ids = list(re.finditer(r"\bart_\w{1,40}", text))
        if ids:
            place = max(text.find(name), 0)
            return min(ids, key=lambda match: abs(match.start() - place))[0]
    return None


def _object(text: str) -> dict[str, Any]:
    try:
        value = orjson.loads(text[:MAX_PARSED_CHARACTERS]) if text.lstrip().startswith("{") else {}
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _value(result: str) -> tuple[str, bool]:
    """What a tool's message says, and whether it tells of a failure: `{"ok": false}`, an `error`, or a text that begins so."""
    value: Any = _object(result) or result
    for inner in _inward(value):
        value = inner
        if isinstance(inner, dict) and (inner.get("ok") is False or inner.get("error")):
            error = inner.get("error") or inner.get("result") or inner
            message = error.get("message", error) if isinstance(error, dict) else error
            return _short(message), True
    text = _short(value)
    return text, text.lower().startswith("error")


def _inward(value: Any) -> Iterator[Any]:
    """`value`, then the value inside its envelope, and so on for a few layers."""
    for _ in range(4):
        yield value
        key = next((key for key in _VALUE_KEYS if isinstance(value, dict) and key in value), None)
        if key is None:
            return
        value = value[key]
    yield value


def _short(value: Any) -> str:
    try:
        text = value if isinstance(value, str) else orjson.dumps(value).decode()
    except TypeError:
        # orjson reads deeper nesting than it writes.
        text = "(nested too deep to show)"
    return text if len(text) <= MAX_RESULT_CHARACTERS else text[:MAX_RESULT_CHARACTERS] + "\u2026"
