"""Fields that this service adds to a request: which of them a model server refuses, and the request without them.

What servers demand of reasoning (effort_needs.py) is remembered like a field.
Model servers quote the caller's values in their errors. So a refusal counts only if the error's `param` or a known
sentence names the field. It is remembered for a limited time, once the request without the field has succeeded.
"""

import re
from collections.abc import Callable, Collection
from typing import Any

from svc.errors import UpstreamFault
from svc.inference import effort_needs
from svc.inference.catalog import Model
from svc.inference.effort_needs import ADVICE, NEEDS, NO_EFFORT

REMEMBERED_SECONDS = 3600.0
# Fields beyond OpenAI's that some model servers need back in an assistant's message or its tool calls: DeepSeek,
# OpenRouter (https://openrouter.ai/docs/use-cases/reasoning-tokens), Gemini
# (https://ai.google.dev/gemini-api/docs/thought-signatures).
RETURNED = ("reasoning_content", "reasoning_details", "extra_content")
_MOST_MODELS = 1_000

_UNSUPPORTED = re.compile(
    r"(?i)unsupported|not support|not permitted|not allowed|\bextra|unknown|unrecogni[sz]ed|unexpected"
    r"|invalid (?:parameter|argument|field|property)"
)
# A field that is refused only in some requests is not refused in others: a caller could cause such a request.
_CONDITION = re.compile(r"(?i)\b(?:when|if|unless|while|only|together|combin|with (?!this model))")
_TOO_LARGE = re.compile(
    r"(?i)too large|context (?:length|size|window)|maximum (?:value|context|tokens|allowed)|at most|exceed"
)
_PATH = r"(?P<path>[\w.\[\]]+)"
_HOLDER = r"'(?P<holder>messages[\w.\[\]]*)'"
_GROQ = rf"property '{_PATH}' is unsupported(?:, did you mean '\w+'\?)?"
# Each must match a whole message, or one of its problems. A value of the caller may only follow the name of the field.
_REFUSALS = (
    # OpenAI, Azure, new-api
    rf"Unsupported parameter: '?{_PATH}'?(?: is not supported with this model\.(?: Use '\w+' instead\.)?)?",
    rf"Unknown parameter: '?{_PATH}'?\.?",
    rf"Unrecognized request arguments? supplied: {_PATH}",
    # pydantic (Mistral), NVIDIA NIM, Fireworks
    rf"{_PATH}: Extra inputs are not permitted",
    rf"(?:body -> )?{_PATH}\n  Extra inputs are not permitted(?: \(type=extra_forbidden\))?",
    rf"Extra inputs are not permitted, field: '{_PATH}'(?:, value: .*)?",
    # jsonschema, Transformers
    rf"Additional properties are not allowed \('{_PATH}' was unexpected\)(?: - {_HOLDER})?",
    rf"Unexpected keys in the request: \{{'{_PATH}'\}}",
    # Groq
    _GROQ,
    rf"{_HOLDER} : for 'role: ?assistant' the following must be satisfied ?\[\('[\w.]+' : {_GROQ}\)\]",
    rf"{_PATH}: \w+ is not supported with this model",
    # Gemini, Go, serde
    rf"""(?:Invalid JSON payload received\. )?Unknown name "{_PATH}"(?: at {_HOLDER})?: Cannot find field\.""",
    rf"""json: unknown field "{_PATH}"(?:, expected .*)?""",
    rf"(?:[\w ]+: )?(?:(?P<holder>messages\[\d+\]): )?unknown field `{_PATH}`(?:, expected .*)?",
)
# OpenAI's Responses, about reasoning that is not its own.
_NO_ITEM = r"Item with id 'rs_\d+' not found"
# Fields of Responses, with the names that they have in a chat request.
_OF_RESPONSES = {
    "include": "reasoning.encrypted_content",
    "reasoning": "reasoning.summary",
    "reasoning.summary": "reasoning.summary",
    "reasoning.effort": "reasoning_effort",
    "text.verbosity": "verbosity",
}
# No caller can set these fields, and so none can cause that only some requests are refused.
_ALWAYS_OURS = frozenset({"reasoning.encrypted_content", "reasoning.summary"})
_BETWEEN_PROBLEMS = re.compile(r"; |\n(?! )")


class FieldSupport:
    """Remembers the fields that models refuse, for a user's own provider separately by account."""

    def __init__(self, log: Callable[..., None] | None = None) -> None:
        self._log = log
        # By model, the Unix seconds at which each field was refused.
        self._refused: dict[tuple[str, str, str], dict[str, float]] = {}

    def unsupported(self, model: Model, account_id: str, now_seconds: float) -> frozenset[str]:
        """Return the fields that `model` has refused within the last `REMEMBERED_SECONDS`."""
        if not self._refused:
            return frozenset()
        known = self._refused.get(_key(model, account_id), {})
        return frozenset(field for field, at in known.items() if _is_recent(at, now_seconds))

    def remember(self, model: Model, account_id: str, fields: Collection[str], now_seconds: float) -> None:
        """Note that `model` has refused `fields`, and has accepted the same request without them."""
        if fields:
            known = self._refused.setdefault(_key(model, account_id), {})
            if NO_EFFORT in fields and NO_EFFORT not in known and self._log:
                self._log("tools_without_reasoning", level="warning", model=model.id, message=ADVICE)
            known.update(dict.fromkeys(fields, now_seconds))
        if len(self._refused) > _MOST_MODELS:
            del self._refused[next(iter(self._refused))]

    def without_effort(self, now_seconds: float) -> list[str]:
        """Return the ids of the operator's models that take tools only with `reasoning_effort: "none"`."""
        found = [(account_id, id, known.get(NO_EFFORT)) for (account_id, id, _), known in self._refused.items()]
        return [id for own, id, at in found if not own and at is not None and _is_recent(at, now_seconds)]

    def forget(self) -> None:
        """Forget all models: the catalog has changed."""
        self._refused.clear()


def _is_recent(at_seconds: float, now_seconds: float) -> bool:
    return 0 <= now_seconds - at_seconds < REMEMBERED_SECONDS


def _key(model: Model, account_id: str) -> tuple[str, str, str]:
    provider = model.provider
    assert provider is not None
    return (account_id if provider.byok else "", model.id, provider.base_url)


def refused_fields(fault: UpstreamFault, added: Collection[str]) -> frozenset[str]:
    """Return those of the fields `added` by this service that `fault` says are not supported."""
    if fault.status not in (400, 404, 422) or fault.error is None:
        return frozenset()
    param, message = str(fault.error.get("param")), str(fault.error.get("message"))
    if re.match(_NO_ITEM, message):
        return frozenset({"reasoning_content"}.intersection(added))
    if (named := _added_at(param, added)) and _UNSUPPORTED.search(f"{fault.error.get('code')} {message}"):
        if named in _ALWAYS_OURS:
            return frozenset({named})
        of_the_value = _CONDITION.search(message) or (named == "max_tokens" and limit_too_large(fault))
        return frozenset() if of_the_value else frozenset({named})
    for problems in ([message], _BETWEEN_PROBLEMS.split(message)):
        found = [_refused_in(problem, added) for problem in problems]
        if all(found):
            return frozenset(filter(None, found))
    return frozenset()


def is_learnable(field: str, body: dict[str, Any], text: bytes) -> bool:
    """Return whether a refusal of `field` is certainly the model server's own. `text` is the JSON of the caller's
    `body` without `field`, in lower case.

    The words of an error may be the caller's if the request has them, or an address that the model server reads.
    """
    if b'_url"' in text:
        return False
    return effort_needs.is_certain(field, body, text) if field in NEEDS else field.encode() not in text


def _refused_in(problem: str, added: Collection[str]) -> str | None:
    # Compiled at the first refusal, and cached by `re`: compiling them would delay a start by milliseconds.
    matches = (re.fullmatch(sentence, problem.strip(), re.DOTALL) for sentence in _REFUSALS)
    if (match := next(filter(None, matches), None)) is None:
        return None
    holder = match.groupdict().get("holder")
    return _added_at(f"{holder}.{match['path']}" if holder else match["path"], added)


def _added_at(path: str, added: Collection[str]) -> str | None:
    """Return the added field at `path` (`stream_options`, `body.messages.2.reasoning_content`), or None."""
    if (known := _OF_RESPONSES.get(path)) in added:
        return known
    holder, _, field = path.removeprefix("body.").rpartition(".")
    ours = field in added and (not holder or (field in RETURNED and holder.startswith("messages")))
    return field if ours else None


def limit_too_large(fault: UpstreamFault) -> bool:
    """Return whether the fault says that the output limit, alone or with the input, exceeds the model's."""
    if fault.status not in (400, 422) or fault.error is None:
        return False
    sizes = fault.error.get("too_long")
    if sizes and sizes.prompt_is_too_long:
        return False
    return _TOO_LARGE.search(f"{fault.error.get('code')} {fault.error.get('message')}") is not None


def without(body: dict[str, Any], fields: Collection[str]) -> dict[str, Any]:
    """Return the request `body` without `fields`; the output limit stays, under its other name."""
    reduced = _rest(body, fields)
    if "max_tokens" in fields and body.get("max_tokens") is not None:
        reduced["max_completion_tokens"] = body["max_tokens"]
    if not NEEDS.keys().isdisjoint(fields):
        reduced = effort_needs.fulfilled(reduced, fields)
    if not set(fields).isdisjoint(RETURNED):
        reduced["messages"] = messages = [_rest(message, fields) for message in body["messages"]]
        for message in messages:
            if calls := message.get("tool_calls"):
                message["tool_calls"] = [_rest(call, fields) for call in calls]
    return reduced


def _rest(holder: dict[str, Any], fields: Collection[str]) -> dict[str, Any]:
    return {name: value for name, value in holder.items() if name not in fields}
