"""Anthropic's marks of what a model server should cache: `cache_control` of messages, parts, tools and tool calls.

To write to the cache may cost more than other input. So a model with a price gets them only if the catalog says so
(`cache_control = true`). It gets them for an hour only if it has a price for that. Other spellings of these names are
left out: a proxy in Go ignores case.
"""

from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from svc.inference.catalog import Model
from svc.inference.passed_fields import bare, words

NAME = "cache_control"
_BARE, _BARE_TIME = "cachecontrol", "ttl"
# Most messages, parts, tools and calls have only these names.
_OTHERS = words(
    "role content type text name tool_calls tool_call_id function id arguments description parameters strict image_url"
)
_HOUR_PRICE = "cache_write_1h_micros_per_million_tokens"

Mark = Callable[[Any], Any]  # the mark that the model server gets, or None


def has_marks(body: dict[str, Any]) -> bool:
    if NAME in body:  # other spellings do not pass there
        return True
    for message in body["messages"]:
        if _is_marked(message):
            return True
        content = message.get("content")
        if type(content) is list and any(map(_is_marked, content)):
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


def for_messages(body: dict[str, Any], model: Model) -> dict[str, Any]:
    """Return a request of Messages without marks for a time that has no price: then they are for 5 minutes."""
    return body if _HOUR_PRICE in model.prices else _for_5_minutes(body, body)


def _for_5_minutes(value: Any, body: Any = None) -> Any:
    """Return a part of the request, or all of its `body`, without such times."""
    if type(value) is list:
        return [_for_5_minutes(item) for item in value]
    if type(value) is not dict:
        return value
    changed = _marked(value, partial(_for_known_time, ("5m",))) if _is_marked(value) else value
    names = ("system", "messages", "tools") if value is body else ("content", "source")
    found = {name: _for_5_minutes(changed[name]) for name in names if type(changed.get(name)) in (list, dict)}
    return {**changed, **found} if found else changed


def _for_known_time(times: Collection[str], mark: Any) -> Any:
    """Return a mark without a time that has no price: then it is for 5 minutes."""
    if not isinstance(mark, dict):
        return mark
    return {
        name: value
        for name, value in mark.items()
        if bare(name) != _BARE_TIME or (name == _BARE_TIME and value in times)
    }


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


def _is_marked(holder: dict[str, Any]) -> bool:
    return not _OTHERS.issuperset(holder) and any(bare(name) == _BARE for name in holder)


def _marked(holder: dict[str, Any], mark: Mark) -> dict[str, Any]:
    if not _is_marked(holder):
        return holder.copy()
    kept = {name: value for name, value in holder.items() if name == NAME or bare(name) != _BARE}
    if NAME in kept and (new := mark(kept.pop(NAME))) is not None:
        kept[NAME] = new
    return kept


def _in_any(calls: Any) -> bool:
    return any(_is_marked(call) or _has_in_function(call) for call in calls or ())


def _has_in_function(call: dict[str, Any]) -> bool:
    return type(function := call.get("function")) is dict and _is_marked(function)
