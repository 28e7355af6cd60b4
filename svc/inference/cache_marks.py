"""Anthropic's marks of what a model server should cache: `cache_control` of messages, parts, tools and tool calls.

To write to the cache may cost more than other input. So a model with a price gets them only if the catalog says so
(`cache_control = true`), and for an hour only if it has a price for that.
"""

from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from svc.inference.catalog import Model

NAME = "cache_control"
_HOUR_PRICE = "cache_write_1h_micros_per_million_tokens"

Mark = Callable[[Any], Any]  # the mark that the model server gets, or None


def has_marks(body: dict[str, Any]) -> bool:
    if NAME in body:
        return True
    for message in body["messages"]:
        if NAME in message:
            return True
        content = message.get("content")
        if type(content) is list and any(NAME in part for part in content):
            return True
        if "tool_calls" in message and _in_any(message["tool_calls"]):
            return True
    return _in_any(body.get("tools"))


def for_model(body: dict[str, Any], model: Model, *, asked: bool) -> dict[str, Any]:
    """Return `body` with the marks that `model` gets. It is the model that was `asked` for, or its fallback.

    Models without a price and users' own ones get them as they came.
    """
    if (not model.paid and (asked or model.cache_control)) or not has_marks(body):
        return body
    if not model.cache_control:
        return _with(body, lambda mark: None)
    times = ("5m", "1h") if _HOUR_PRICE in model.prices else ("5m",)
    return _with(body, partial(_for_known_time, times))


def _for_known_time(times: Collection[str], mark: Any) -> Any:
    """Return a mark without a time that has no price: then it is for 5 minutes."""
    if isinstance(mark, dict) and "ttl" in mark and mark["ttl"] not in times:
        return {name: value for name, value in mark.items() if name != "ttl"}
    return mark


def _with(body: dict[str, Any], mark: Mark) -> dict[str, Any]:
    changed = _marked(body, mark)
    changed["messages"] = [_message(message, mark) for message in body["messages"]]
    if body.get("tools"):
        changed["tools"] = [_call(tool, mark) for tool in body["tools"]]
    return changed


def _message(message: dict[str, Any], mark: Mark) -> dict[str, Any]:
    changed = _marked(message, mark)
    if type(content := message.get("content")) is list:
        changed["content"] = [_marked(part, mark) for part in content]
    if calls := message.get("tool_calls"):
        changed["tool_calls"] = [_call(call, mark) for call in calls]
    return changed


def _call(call: dict[str, Any], mark: Mark) -> dict[str, Any]:
    """Return a tool, or a tool call, which may have the mark in its function."""
    changed = _marked(call, mark)
    if type(function := call.get("function")) is dict:
        changed["function"] = _marked(function, mark)
    return changed


def _marked(holder: dict[str, Any], mark: Mark) -> dict[str, Any]:
    if NAME not in holder:
        return holder.copy()
    new = mark(holder[NAME])
    return {name: new if name == NAME else value for name, value in holder.items() if name != NAME or new is not None}


def _in_any(calls: Any) -> bool:
    return any(NAME in call or _has_in_function(call) for call in calls or ())


def _has_in_function(call: dict[str, Any]) -> bool:
    return type(function := call.get("function")) is dict and NAME in function
