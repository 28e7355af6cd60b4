"""What a model server reports as the tokens of an answer, in one form: OpenAI's `usage`, and InputTokens for the bill.

Servers name the input out of their cache, and the input written to it, in several ways: see `_of_cache`.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from svc.billing.prices import InputTokens

# No model reads more tokens, so a larger count is wrong.
_TOKENS_MAX = 10**9
_PARTS_MAX = 2**53  # a part of a count is at most the count, so that it needs no narrower limit
_COUNTS = frozenset({"prompt_tokens", "completion_tokens", "total_tokens"})
_NO_DETAILS: Mapping[str, int] = {}
# Input out of the cache: at DeepSeek; at Anthropic, and LiteLLM after it; at Moonshot.
_CACHED = ("prompt_cache_hit_tokens", "cache_read_input_tokens", "cached_tokens")
_OF_CACHE = frozenset({*_CACHED, "cache_creation_input_tokens", "cache_creation"})
_CREATED = ("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens")
# Tokenizers split texts into such pieces first, so that a piece is at least one token.
_PIECE = re.compile(r"[^\w\s]?\w+|[^\w\s]+")
_SAMPLED_CHARACTERS = 4096  # of a choice: to count all pieces of a long answer blocks the event loop
_LEAST_SHARE = 0.8  # some tokenizers join a few pieces


class UsageReports:
    """What a model server has reported about the tokens of one answer with `choices` requested choices."""

    __slots__ = ("_choices", "_of_choices", "_together")

    def __init__(self, choices: int) -> None:
        self._choices = choices
        self._together: dict[str, Any] = {}
        self._of_choices: list[dict[str, Any]] = []  # those of single choices

    def note(self, usage: Any, ended: int | None = None) -> None:
        """Note a `usage`. `ended` is the number of ended choices if the chunk had none, else None.

        llama.cpp sends one after the end of each choice, with the output of this choice. Others report the output of
        all choices, once or several times: beside the texts, or after all of them.
        """
        if type(usage) is not dict:
            return
        if None in usage.values():
            usage = {name: value for name, value in usage.items() if value is not None}
        self._together |= usage
        if self._choices > 1 and ended is not None:
            is_next = ended == len(self._of_choices) + 1 <= self._choices
            self._of_choices = [*self._of_choices, usage] if is_next else [{}] * self._choices

    @property
    def counts_input(self) -> bool:
        """Whether the model server has counted the prompt."""
        return bool(self._together) and normalized_usage(self._together, lambda: 0, 0)["prompt_tokens"] > 0

    def _outputs(self) -> list[int]:
        """Return the output of each choice, or nothing if the reports are of all choices."""
        found = [_count(usage.get("completion_tokens")) for usage in self._of_choices]
        outputs = [output for output in found if output is not None]
        return outputs if len(outputs) == self._choices > 1 else []

    @property
    def of_each(self) -> bool:
        """Whether there is a report for each choice."""
        return bool(self._outputs())

    def normalized(self, prompt_estimate: Callable[[], int], completion_estimate: int) -> dict[str, Any]:
        return normalized_usage(self._joined(), prompt_estimate, completion_estimate)

    def _joined(self) -> dict[str, Any]:
        """Return the reports as one: the outputs of all choices, and once the prompt, which they share."""
        outputs = self._outputs()
        if not outputs:
            return self._together
        # The choice that read the prompt found the least of it in the cache.
        prompt = min(self._of_choices, key=lambda usage: _of_cache(usage, _all_details(usage))[0])
        joined = {**self._together, **prompt, "completion_tokens": sum(outputs)}
        joined.pop("total_tokens", None)
        return joined


def normalized_usage(
    reported: dict[str, Any], prompt_estimate: Callable[[], int], completion_estimate: int
) -> dict[str, Any]:
    """Return `usage` with three integers that add up, from what a provider reported.

    An explicit 0 is 0. Missing and impossible counts are estimated. Unknown fields are kept. Cached and written input
    is in `prompt_tokens_details`, and what was written for an hour in Anthropic's `cache_creation`.
    """
    prompt = _count(reported.get("prompt_tokens"))
    completion = _count(reported.get("completion_tokens", reported.get("output_tokens")))
    total = _count(reported.get("total_tokens"))
    kept, details, of_cache = reported.copy(), {}, (0, 0, 0)
    if not _COUNTS.issuperset(reported):
        details = _all_details(reported)
        kept = {name: details.get(name, value) for name, value in reported.items() if details.get(name, True)}
        of_cache = _of_cache(reported, details)
        if prompt is None:
            prompt = _other_prompt(reported, details, of_cache)
    if completion is None and prompt is not None and total is not None:
        completion = max(0, total - prompt)
    elif completion is None:
        completion = completion_estimate
    elif prompt is not None and total != prompt + completion:
        # Gemini and xAI count hidden reasoning only in the total. It is output, too.
        reasoning = details.get("completion_tokens_details", {}).get("reasoning_tokens", 0)
        completion += reasoning if total == prompt + completion + reasoning else 0
    if prompt is None:
        prompt = prompt_estimate() if total is None else max(0, total - completion)
    kept["prompt_tokens"], kept["completion_tokens"], kept["total_tokens"] = prompt, completion, prompt + completion
    if any(of_cache):
        _, cached, written, written_1h = _split(prompt, *of_cache)
        known = details.get("prompt_tokens_details", {})
        kept["prompt_tokens_details"] = {**known, "cached_tokens": cached, "cache_write_tokens": written + written_1h}
        if written_1h:
            kept["cache_creation"] = dict(zip(_CREATED, (written, written_1h), strict=True))
    return kept


def chat_usage(reported: Mapping[str, Any]) -> dict[str, Any]:
    """Return a report of Responses or Messages with the names of chat, and without counts that are impossible."""
    details = _all_details(reported)
    of_cache = _of_cache(reported, details)
    usage: dict[str, Any] = {}
    for name, count in (
        ("prompt_tokens", _other_prompt(reported, details, of_cache)),
        ("completion_tokens", _count(reported.get("output_tokens"))),
    ):
        if count is not None:
            usage[name] = count
    if any(of_cache):
        cached, written, written_1h = of_cache
        usage["prompt_tokens_details"] = {"cached_tokens": cached, "cache_write_tokens": written}
        if written_1h:
            usage["cache_creation"] = dict(zip(_CREATED, (max(0, written - written_1h), written_1h), strict=True))
    of_output = details.get("output_tokens_details", {})
    reasoning = of_output.get("reasoning_tokens", of_output.get("thinking_tokens"))
    if reasoning is not None:
        usage["completion_tokens_details"] = {"reasoning_tokens": reasoning}
    return usage


def input_tokens(usage: Mapping[str, Any]) -> InputTokens:
    """Return the kinds of input of a normalized `usage`."""
    prompt: int = usage["prompt_tokens"]
    details = usage.get("prompt_tokens_details")
    if not details:
        return InputTokens(prompt)
    cached, written = details.get("cached_tokens", 0), details.get("cache_write_tokens", 0)
    if not cached and not written:
        return InputTokens(prompt)
    created = usage.get("cache_creation") if written else None
    return _split(prompt, cached, written, _details(created).get(_CREATED[1], 0))


def of_all_choices(usage: dict[str, Any], texts: Sequence[str]) -> dict[str, Any]:
    """Return `usage` for the `texts` of all choices if it is plainly that of the first one alone.

    llama.cpp's JSON answer is like that. Then the output is counted in proportion to the texts.
    """
    pieces = [_pieces(text) for text in texts]
    completion = usage["completion_tokens"]
    if not _LEAST_SHARE * pieces[0] <= completion < _LEAST_SHARE * sum(pieces) or not pieces[0]:
        return usage
    completion = math.ceil(completion * sum(pieces) / pieces[0])
    return {**usage, "completion_tokens": completion, "total_tokens": usage["prompt_tokens"] + completion}


def _pieces(text: str) -> float:
    sample = text[:_SAMPLED_CHARACTERS]
    return len(_PIECE.findall(sample)) * len(text) / max(len(sample), 1)


def _of_cache(reported: Mapping[str, Any], details: Mapping[str, Mapping[str, int]]) -> tuple[int, int, int]:
    """Return how many input tokens were cached, how many were written, and how many of these for an hour.

    Where a server uses several names, most are 0 or repeat the first.
    """
    prompt = details.get("prompt_tokens_details") or details.get("input_tokens_details") or _NO_DETAILS
    cached, written = prompt.get("cached_tokens", 0), prompt.get("cache_write_tokens", 0)
    if _OF_CACHE.isdisjoint(reported):
        return cached, written, 0
    cached = max([cached, *(_count(reported.get(name), _PARTS_MAX) or 0 for name in _CACHED)])
    raw = reported.get("prompt_tokens_details")
    created = _details(reported.get("cache_creation"))  # Anthropic
    created = created or _details(raw.get("cache_creation_token_details") if type(raw) is dict else None)  # LiteLLM
    parts = [created.get(name, 0) for name in _CREATED]
    written = max(written, _count(reported.get("cache_creation_input_tokens"), _PARTS_MAX) or 0, sum(parts))
    return cached, written, parts[1]


def _other_prompt(
    reported: Mapping[str, Any], details: Mapping[str, Any], of_cache: tuple[int, int, int]
) -> int | None:
    """Return all input of a report without a valid `prompt_tokens`, or None."""
    prompt = _count(reported.get("input_tokens"))
    if prompt is None:
        hit, miss = (_count(reported.get(f"prompt_cache_{part}_tokens")) for part in ("hit", "miss"))
        return None if hit is None or miss is None else hit + miss
    # In Anthropic's format cached and written tokens stand beside `input_tokens`, in OpenAI's they are a part of it.
    return prompt if "input_tokens_details" in details else _count(prompt + of_cache[0] + of_cache[1])


def _split(prompt: int, cached: int, written: int, written_1h: int) -> InputTokens:
    cached = min(cached, prompt)
    written = min(written, prompt - cached)
    written_1h = min(written_1h, written)
    return InputTokens(prompt - cached - written, cached, written - written_1h, written_1h)


def _count(value: Any, most: int = _TOKENS_MAX) -> int | None:
    if type(value) is not int:
        if type(value) is str and value.isascii() and value.isdigit() and len(value) <= len(str(most)):
            value = int(value)
        elif type(value) is float and math.isfinite(value):
            value = math.ceil(value)
        else:
            return None
    return value if 0 <= value <= most else None


def _all_details(reported: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    return {name: _details(value) for name, value in reported.items() if name.endswith("_details")}


def _details(value: Any) -> dict[str, int]:
    if type(value) is not dict:
        return {}
    return {name: count for name, part in value.items() if (count := _count(part, _PARTS_MAX)) is not None}
