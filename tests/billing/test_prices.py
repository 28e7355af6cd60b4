"""What the tokens of a call cost, and what a hold must cover."""

from fractions import Fraction
from math import ceil

from hypothesis import example, given
from hypothesis import strategies as st

from svc.billing import prices, wallet
from svc.billing.prices import InputTokens
from tests.support.cases import each

INPUT = (
    "input_micros_per_million_tokens",
    "cached_input_micros_per_million_tokens",
    "cache_write_micros_per_million_tokens",
    "cache_write_1h_micros_per_million_tokens",
)
OUTPUT = "output_micros_per_million_tokens"
PRICED = {INPUT[0]: 3_000_000, OUTPUT: 15_000_000}
MICROS, COUNTS = st.integers(0, 10**12), st.integers(0, 10**9)
PRICE_LISTS = st.fixed_dictionaries({INPUT[0]: MICROS, OUTPUT: MICROS}, optional=dict.fromkeys(INPUT[1:], MICROS))
TOKENS = st.builds(InputTokens, COUNTS, COUNTS, COUNTS, COUNTS)


def price_of(kind: int, given_prices: dict[str, int]) -> int:
    """Return the price of a kind of input: its own, for one hour that of 5 minutes, else that of all input."""
    names = [INPUT[kind], *([INPUT[2]] if kind == 3 else []), INPUT[0]]
    return next(given_prices[name] for name in names if name in given_prices)


@given(PRICE_LISTS, TOKENS, COUNTS)
def test_cost_is_the_sum_of_its_parts_rounded_up_once(
    given_prices: dict[str, int], tokens: InputTokens, output_tokens: int
) -> None:
    parts = [Fraction(count * price_of(kind, given_prices), 10**6) for kind, count in enumerate(tokens)]
    exact = sum(parts) + Fraction(output_tokens * given_prices[OUTPUT], 10**6)
    assert prices.cost_micros(given_prices, tokens, output_tokens) == ceil(exact)


@given(PRICE_LISTS, TOKENS, COUNTS)
def test_hold_covers_any_split_of_its_input(
    given_prices: dict[str, int], tokens: InputTokens, output_tokens: int
) -> None:
    cost_micros = prices.cost_micros(given_prices, tokens, output_tokens)
    most_micros = prices.most_micros(given_prices, sum(tokens), output_tokens)
    assert cost_micros <= most_micros
    dearest = max(range(4), key=lambda kind: price_of(kind, given_prices))
    alone = InputTokens(*[sum(tokens) * (kind == dearest) for kind in range(4)])
    assert prices.cost_micros(given_prices, alone, output_tokens) == most_micros, "it holds no more than that"


@given(PRICE_LISTS, st.integers(0, 10**6), st.integers(0, wallet.MOST_MICROS))
@example({INPUT[0]: 1, INPUT[3]: 10**12, OUTPUT: 1}, 1, 10**6)
def test_the_affordable_output_is_the_most_that_the_wallet_pays(
    given_prices: dict[str, int], tokens: int, micros: int
) -> None:
    most = prices.affordable_output_tokens(given_prices, tokens, micros)
    assert 0 <= most <= prices.UNBOUNDED_TOKENS
    if most:
        assert prices.most_micros(given_prices, tokens, most) <= micros
    if most < prices.UNBOUNDED_TOKENS:
        assert prices.most_micros(given_prices, tokens, most + 1) > micros


def test_free_models_need_no_money() -> None:
    assert prices.affordable_output_tokens({}, 10**9, 0) == prices.UNBOUNDED_TOKENS
    assert prices.affordable_output_tokens(PRICED, 1, 0) == 0
    assert prices.cost_micros(PRICED, InputTokens(0), 0) == 0 and prices.cost_micros(PRICED, InputTokens(1), 0) == 3


def test_saving_is_what_the_input_would_have_cost_without_a_cache() -> None:
    anthropic = {**PRICED, INPUT[1]: 300_000, INPUT[2]: 3_750_000}
    assert prices.saved_micros(anthropic, InputTokens(50, 1200), 9) == 3 * 1200 - 360
    assert prices.saved_micros(anthropic, InputTokens(0, 0, 1000), 0) == 0, "writing costs more than it saves"
    assert prices.saved_micros(PRICED, InputTokens(0, 1000), 0) == 0, "without a price of its own"


@each(
    ("mine", "theirs", "expected"),
    [
        ({}, {}, False),
        ({INPUT[1]: 300_000}, {}, False),
        ({}, {INPUT[1]: 300_000}, True),  # cached input has the price of all input
        ({INPUT[2]: 3_750_000}, {}, True),
        ({INPUT[2]: 3_750_000}, {INPUT[2]: 3_750_000}, False),
        ({INPUT[3]: 6_000_000}, {INPUT[2]: 6_000_000}, False),  # it has the price of 5 minutes
        ({INPUT[3]: 6_000_001}, {INPUT[2]: 6_000_000}, True),
        ({OUTPUT: 15_000_001}, {}, True),
        ({"micros_per_image": 1}, {}, True),
        ({}, {"micros_per_image": 1}, False),
    ],
)
def test_a_model_is_dearer_if_any_kind_of_token_costs_more(
    mine: dict[str, int], theirs: dict[str, int], expected: bool
) -> None:
    assert prices.dearer({**PRICED, **mine}, {**PRICED, **theirs}) is expected
