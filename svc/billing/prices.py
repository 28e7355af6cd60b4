"""The prices of each kind of model, named as in the catalog, and the cost of a chat call's tokens in whole micros."""

from collections.abc import Mapping
from operator import mul
from typing import NamedTuple

PRICES = {
    "chat": (
        "input_micros_per_million_tokens",
        "output_micros_per_million_tokens",
        "cached_input_micros_per_million_tokens",
        "cache_write_micros_per_million_tokens",
        "cache_write_1h_micros_per_million_tokens",
    ),
    "image": ("micros_per_image",),
    "speech": ("micros_per_thousand_audio_tokens",),
    "transcription": (
        "micros_per_audio_minute",
        "input_micros_per_million_tokens",
        "output_micros_per_million_tokens",
    ),
}
# 0 by default
REQUIRED_PRICES = {**PRICES, "chat": PRICES["chat"][:2], "transcription": PRICES["transcription"][:1]}
UNBOUNDED_TOKENS = 2**31 - 1
_PRICED_TOKENS = 1_000_000


class InputTokens(NamedTuple):
    """All input tokens of a call, each counted once.

    `cached` ones were read from the model server's cache. `written` ones stay in it for 5 minutes, `written_1h` for an
    hour.
    """

    fresh: int
    cached: int = 0
    written: int = 0
    written_1h: int = 0


def cost_micros(prices: Mapping[str, int], tokens: InputTokens, output_tokens: int) -> int:
    """Return the cost of a call, rounded up once."""
    input_price: int = sum(map(mul, tokens, _of_input(prices)))
    return -(-(input_price + output_tokens * _of_output(prices)) // _PRICED_TOKENS)


def most_micros(prices: Mapping[str, int], input_tokens: int, output_tokens: int) -> int:
    """Return the cost of a call if all of its input has the dearest of the input prices."""
    return -(-(input_tokens * max(_of_input(prices)) + output_tokens * _of_output(prices)) // _PRICED_TOKENS)


def affordable_output_tokens(prices: Mapping[str, int], input_tokens: int, available_micros: int) -> int:
    """Return how many output tokens `available_micros` pays, if all of the input has its dearest price.

    The result is at most UNBOUNDED_TOKENS.
    """
    left = available_micros * _PRICED_TOKENS - input_tokens * max(_of_input(prices))
    if left < 0:
        return 0
    per_output = _of_output(prices)
    return min(left // per_output, UNBOUNDED_TOKENS) if per_output else UNBOUNDED_TOKENS


def saved_micros(prices: Mapping[str, int], tokens: InputTokens, output_tokens: int) -> int:
    """Return how much less a call costs than without a cache. Writing to the cache may use the saving up."""
    uncached = cost_micros(prices, InputTokens(sum(tokens)), output_tokens)
    return max(0, uncached - cost_micros(prices, tokens, output_tokens))


def dearer(prices: Mapping[str, int], others: Mapping[str, int]) -> bool:
    """Return whether any kind of token, or another unit, costs more under `prices` than under `others`."""
    if any(a > b for a, b in zip(_of_input(prices), _of_input(others), strict=True)):
        return True
    return any(prices.get(unit, 0) > others.get(unit, 0) for unit in prices if unit not in _INPUT)


_FRESH = "input_micros_per_million_tokens"
_CACHED = "cached_input_micros_per_million_tokens"
_WRITTEN = "cache_write_micros_per_million_tokens"
_WRITTEN_1H = "cache_write_1h_micros_per_million_tokens"
_INPUT = (_FRESH, _CACHED, _WRITTEN, _WRITTEN_1H)


def _of_input(prices: Mapping[str, int]) -> tuple[int, int, int, int]:
    """Return the prices of a million tokens, in the order of InputTokens.

    Without its own price, an hour in the cache costs as much as 5 minutes, and the others as much as fresh input.
    """
    fresh = prices.get(_FRESH, 0)
    written = prices.get(_WRITTEN, fresh)
    return fresh, prices.get(_CACHED, fresh), written, prices.get(_WRITTEN_1H, written)


def _of_output(prices: Mapping[str, int]) -> int:
    return prices.get("output_micros_per_million_tokens", 0)
