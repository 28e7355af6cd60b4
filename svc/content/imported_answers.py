"""The details of imported answers, in the form that `answers` stores. An export may have any value anywhere."""

import sqlite3
from collections.abc import Mapping
from typing import Any

import orjson

from svc.content import answers
from svc.content.answers import AnswerDetails

_MOST_COUNT = 2**53
_COUNTS = ("input_tokens", "output_tokens", "cost_micros", "duration_ms", "cached_input_tokens", "saved_micros")
_PASSAGE = ("message_id", "role", "text", "source", "created_at")


def add_details(
    tx: sqlite3.Connection, account_id: str, message_id: str, message: Mapping[str, Any], ids: Mapping[str, str]
) -> None:
    """Store the details of an imported answer, if it has any. `ids` has the stored messages by those in the export."""
    details = message["details"]
    counts = {name: count for name in _COUNTS if (count := within(details.get(name), 1, _MOST_COUNT, whole=True))}
    tools = {"steps": _steps(message["steps"]), "sources": _sources(details.get("sources"))}
    found: dict[str, Any] = {name: orjson.dumps(value).decode() for name, value in tools.items() if value}
    if not (counts or found or message["reasoning"] or details.get("answer")):
        return
    finish_reason, reasoning = details.get("finish_reason"), message["reasoning"] or None
    counts["cached_input_tokens"] = min(counts.get("cached_input_tokens", 0), counts.get("input_tokens", 0))
    answers.add(tx, account_id, message_id, _memory(details.get("memory"), ids))
    finish_reason = finish_reason and str(finish_reason)[:100]
    known = AnswerDetails(**counts, finish_reason=finish_reason, reasoning=reasoning)
    first_sent = ids.get(str(details.get("first_sent_message_id")))
    answers.update(tx, account_id, message_id, known._replace(**found, first_sent_message_id=first_sent))


def within(value: Any, least: float, most: float, *, whole: bool = False) -> Any:
    """Return a number of an export, or None if it is none between `least` and `most`."""
    fits = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
    return value if fits and least <= value <= most else None


def _steps(steps: Any) -> list[dict[str, Any]]:
    """Return the steps of tools in the form that `answers` stores."""
    found = []
    for kind, part in (item for step in steps or () if isinstance(step, dict) for item in step.items()):
        if isinstance(part, dict) and all(isinstance(part.get(name), str) for name in ("id", "name")):
            kept = {name: part[name] for name in ("id", "name", "within") if isinstance(part.get(name), str)}
            if kind == "tool_call":
                found.append({kind: {**kept, "arguments": str(part.get("arguments", "{}"))}})
            elif kind == "tool_result":
                found.append({kind: {**kept, "ok": part.get("ok") is True, "result": part.get("result", "")}})
    return found


def _sources(sources: Any) -> list[dict[str, Any]]:
    """Return the sources that have a number, a kind, and only simple values."""
    listed = (one for one in sources or () if isinstance(one, dict) and isinstance(one.get("kind"), str))
    simple = (one for one in listed if all(isinstance(value, str | int | None) for value in one.values()))
    return [one for one in simple if isinstance(one.get("number"), int)]


def _memory(passages: Any, ids: Mapping[str, str]) -> list[dict[str, Any]]:
    found = (one for one in passages or () if isinstance(one, dict))
    whole = (one for one in found if all(isinstance(one.get(name), str) for name in _PASSAGE))
    return [{**one, "message_id": ids.get(one["message_id"], one["message_id"])} for one in whole]
