"""What this service adds to a request for its own sake, and the models that would not take it: they get the form that they want.

A server that refuses a field of ours is asked again at once without it, and remembered; the caller sees nothing of it.
"""

import re
from collections.abc import Callable, Collection
from typing import Any

from svc.errors import UpstreamFault
from svc.inference.catalog import Model

_MOST_MODELS = 1_000
# Said of a field itself. A value that is too large is another matter, in whatever words.
_REFUSED = re.compile(
    r"(?i)unsupported|not support|not permitted|not allowed|\bextra|unknown|unrecogni[sz]ed|unexpected"
    r"|invalid (?:parameter|argument|field|property)"
)
_TOO_LARGE = re.compile(r"(?i)too large|context (?:length|size|window)|maximum (?:value|context|tokens)|at most|exceed")


def _rename_limit(body: dict[str, Any]) -> dict[str, Any]:
    # Models that reason count their thoughts under the newer name, and refuse the older.
    return {"max_completion_tokens" if name == "max_tokens" else name: value for name, value in body.items()}


def _drop_stream_options(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name != "stream_options"}


def _drop_reasoning(body: dict[str, Any]) -> dict[str, Any]:
    messages = [{name: value for name, value in m.items() if name != "reasoning_content"} for m in body["messages"]]
    return {**body, "messages": messages}


_WITHOUT: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "max_tokens": _rename_limit,
    "stream_options": _drop_stream_options,
    "reasoning_content": _drop_reasoning,
}


class Concessions:
    """Which of the fields that we add a model has refused; the last thousand models are remembered."""

    def __init__(self) -> None:
        self._refused: dict[tuple[str, str], frozenset[str]] = {}

    def apply(self, model: Model, body: dict[str, Any], added: Collection[str]) -> dict[str, Any]:
        """`body` with the fields that we `added` in the form that `model` takes."""
        for field in self._refused.get(_key(model), ()):
            if field in added:
                body = _WITHOUT[field](body)
        return body

    def learn(self, model: Model, fault: UpstreamFault, added: Collection[str]) -> bool:
        """Whether the fault is the refusal of a field that we `added` and that is remembered from now on."""
        told = _told(fault)
        known = self._refused.get(_key(model), frozenset())
        named = next((field for field in _WITHOUT if field in added and re.search(rf"\b{field}\b", told)), None)
        if named is None or named in known or not _REFUSED.search(told):
            return False
        self._refused[_key(model)] = known | {named}
        if len(self._refused) > _MOST_MODELS:
            del self._refused[next(iter(self._refused))]
        return True


def limit_too_large(fault: UpstreamFault) -> bool:
    """Whether the fault says that the output limit, with or without the input, is more than the model has."""
    return _TOO_LARGE.search(_told(fault)) is not None


def _told(fault: UpstreamFault) -> str:
    if fault.status not in (400, 422) or fault.error is None:
        return ""
    return f"{fault.error.get('param')} {fault.error.get('code')} {fault.error.get('message')}"


def _key(model: Model) -> tuple[str, str]:
    # Two accounts may have providers of one name.
    return (model.provider.base_url if model.provider else "", model.name)
