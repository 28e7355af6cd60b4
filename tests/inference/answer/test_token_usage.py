"""The tokens that a model server reports, in all its forms, as one."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from svc.billing import prices
from svc.billing.prices import InputTokens
from svc.inference.answer.chunk_writer import ChunkWriter
from svc.inference.answer.token_usage import UsageReports, chat_usage, input_tokens, normalized_usage, of_all_choices
from tests.support.cases import each

OUTPUT = {"completion_tokens": 5}
PROMPT = {"prompt_tokens": 100, **OUTPUT, "total_tokens": 105}
MESSAGES = {"input_tokens": 10, "output_tokens": 5}


def kinds(usage: dict[str, Any]) -> InputTokens:
    return input_tokens(normalized_usage(usage, lambda: 7, 3))


FORMS: list[tuple[dict[str, Any], InputTokens]] = [
    (PROMPT, InputTokens(100)),
    ({**PROMPT, "prompt_tokens_details": {"cached_tokens": 80}}, InputTokens(20, 80)),
    ({"input_tokens": 100, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 80}}, InputTokens(20, 80)),
    ({**PROMPT, "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30}}, InputTokens(10, 60, 30)),
    # DeepSeek
    ({**PROMPT, "prompt_cache_hit_tokens": 80, "prompt_cache_miss_tokens": 20}, InputTokens(20, 80)),
    ({**OUTPUT, "prompt_cache_hit_tokens": 80, "prompt_cache_miss_tokens": 20}, InputTokens(20, 80)),
    # Anthropic: beside `input_tokens`
    ({**MESSAGES, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 30}, InputTokens(10, 60, 30)),
    (
        {
            **MESSAGES,
            "cache_read_input_tokens": 60,
            "cache_creation_input_tokens": 30,
            "cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20},
        },
        InputTokens(10, 60, 10, 20),
    ),
    # LiteLLM: a part of `prompt_tokens`
    ({**PROMPT, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 30}, InputTokens(10, 60, 30)),
    (
        {
            **PROMPT,
            "cache_creation_input_tokens": 30,
            "prompt_tokens_details": {
                "cached_tokens": 60,
                "cache_creation_tokens": 30,
                "cache_creation_token_details": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20},
            },
        },
        InputTokens(10, 60, 10, 20),
    ),
    ({**PROMPT, "cached_tokens": 80}, InputTokens(20, 80)),  # Moonshot
    # two names, one of them always 0
    ({**PROMPT, "prompt_tokens_details": {"cached_tokens": 0}, "prompt_cache_hit_tokens": 80}, InputTokens(20, 80)),
    # more than there is input
    ({**PROMPT, "prompt_tokens_details": {"cached_tokens": 101}}, InputTokens(0, 100)),
    ({**PROMPT, "prompt_tokens_details": {"cached_tokens": 2**53}}, InputTokens(0, 100)),
    ({**PROMPT, "prompt_tokens_details": {"cached_tokens": 80, "cache_write_tokens": 30}}, InputTokens(0, 80, 20)),
    (
        {**PROMPT, "cache_creation_input_tokens": 30, "cache_creation": {"ephemeral_1h_input_tokens": 900}},
        InputTokens(0, 0, 0, 100),
    ),
    ({"prompt_tokens": 0, **OUTPUT, "prompt_tokens_details": {"cached_tokens": 5}}, InputTokens(0)),
    # odd values count as absent
    *(
        ({**PROMPT, "prompt_tokens_details": {"cached_tokens": odd}, "cache_creation_input_tokens": odd},
         InputTokens(100))
        for odd in (-1, "many", "-3", None, True, [80], {"n": 80}, float("nan"), float("inf"), 2**53 + 1, 10**400)
    ),
    *(({**PROMPT, "prompt_tokens_details": odd, "cache_creation": odd}, InputTokens(100)) for odd in ([], "x", 7, {})),
    # without a valid count of all input, the estimate is shared out
    ({**OUTPUT, "prompt_tokens_details": {"cached_tokens": 4}}, InputTokens(3, 4)),
]  # fmt: skip


@each(("usage", "expected"), FORMS)
def test_cached_and_written_input_of_any_form_is_counted_once(usage: dict[str, Any], expected: InputTokens) -> None:
    assert kinds(usage) == expected
    normalized = normalized_usage(usage, lambda: 7, 3)
    assert normalized["prompt_tokens"] == sum(expected)
    details = normalized.get("prompt_tokens_details", {})
    assert details.get("cached_tokens", 0) == expected.cached, "what the client is told is what is charged"
    assert details.get("cache_write_tokens", 0) == expected.written + expected.written_1h


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.integers(0, 1000) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=5,
)
NAMES = [
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "prompt_cache_hit_tokens",
    "prompt_cache_miss_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
]
PARTS = [
    "cached_tokens",
    "cache_write_tokens",
    "cache_creation_tokens",
    "ephemeral_5m_input_tokens",
    "ephemeral_1h_input_tokens",
]
DETAILS = JSON | st.dictionaries(
    st.sampled_from([*PARTS, "cache_creation_token_details"]),
    JSON | st.dictionaries(st.sampled_from(PARTS), JSON, max_size=3),
    max_size=4,
)
HOLDERS = dict.fromkeys(("prompt_tokens_details", "input_tokens_details", "cache_creation"), DETAILS)
USAGES = st.fixed_dictionaries({}, optional={**dict.fromkeys(NAMES, JSON), **HOLDERS}) | JSON
MICROS = st.integers(0, 10**12)
PRICES = st.fixed_dictionaries(
    {},
    optional={
        f"{kind}_micros_per_million_tokens": MICROS
        for kind in ("input", "output", "cached_input", "cache_write", "cache_write_1h")
    },
)


@given(st.lists(USAGES, max_size=3), st.integers(1, 3), PRICES)
@example([{"prompt_tokens": 10**400}], 1, {})
@example([{"input_tokens": 10**9, "cache_read_input_tokens": 2**53}], 1, {})
def test_no_usage_is_negative_or_costs_more_than_its_tokens_at_the_dearest_price(
    usages: list[Any], choices: int, given_prices: dict[str, int]
) -> None:
    reports = UsageReports(choices)
    for ended, usage in enumerate(usages, 1):
        reports.note(usage, ended)
    normalized = reports.normalized(lambda: 7, 3)
    tokens = input_tokens(normalized)
    assert min(tokens) >= 0 and all(type(count) is int for count in tokens)
    assert sum(tokens) == normalized["prompt_tokens"] <= 10**9
    assert normalized["prompt_tokens"] + normalized["completion_tokens"] == normalized["total_tokens"]
    assert input_tokens(normalized_usage(normalized, lambda: 7, 3)) == tokens, "the form is stable"
    most_micros = prices.most_micros(given_prices, sum(tokens), normalized["completion_tokens"])
    assert 0 <= prices.cost_micros(given_prices, tokens, normalized["completion_tokens"]) <= most_micros


# --- several choices


def stream(*chunks: Any, n: int = 2) -> dict[str, Any]:
    """Return the usage of a stream. A chunk is the text of a choice, the index of an ended one, or a usage."""
    writer = ChunkWriter("x", 0, "m", {"messages": [], "n": n})
    for chunk in chunks:
        if isinstance(chunk, tuple):
            index, text = chunk
            writer.feed({"choices": [{"index": index, "delta": {"content": text}}]})
        elif isinstance(chunk, int):
            writer.feed({"choices": [{"index": chunk, "delta": {}, "finish_reason": "stop"}]})
        else:
            writer.feed(chunk)
    writer.finish()
    return writer.usage


def counted(output: int, prompt: int = 10, **fields: Any) -> dict[str, Any]:
    usage = {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output, **fields}
    return {"choices": [], "usage": usage}


def beside(index: int, output: int) -> dict[str, Any]:
    return {**counted(output), "choices": [{"index": index, "delta": {"content": "a "}}]}


TEXTS = ((0, "a b c d e f"), (1, "g h i j k l"))
STREAMS: dict[str, tuple[list[Any], int]] = {
    "llama.cpp: one for each choice, at its end": ([*TEXTS, 0, counted(6), 1, counted(6)], 12),
    "the second choice ends first": ([*TEXTS, 1, counted(2), 0, counted(6)], 8),
    "one for all": ([*TEXTS, 0, 1, counted(12)], 12),
    "the same one repeated": ([*TEXTS, 0, 1, counted(12), counted(12)], 12),
    "one for each choice, and one for all": ([*TEXTS, 0, counted(6), 1, counted(6), counted(12)], 12),
    "vLLM: at each chunk for its choice, at the end for all": (
        [beside(0, 1), beside(1, 1), beside(0, 2), beside(1, 2), 0, 1, counted(4)], 4,
    ),
    "so far, without choices": ([TEXTS[0], counted(6), TEXTS[1], counted(12), 0, 1, counted(12)], 12),
    "so far, repeated between the ends": ([*TEXTS, counted(11), 0, counted(12), 1, counted(12)], 12),
    "an explicit 0": ([*TEXTS, 0, counted(0), 1, counted(0)], 0),
}  # fmt: skip


@pytest.mark.parametrize("name", STREAMS)
def test_usage_of_several_choices_is_added_up_only_if_it_is_of_one_each(name: str) -> None:
    chunks, output = STREAMS[name]
    usage = stream(*chunks)
    assert usage["completion_tokens"] == output
    assert usage["prompt_tokens"] == 10 and usage["total_tokens"] == 10 + output, "the choices share the prompt"


def test_prompt_of_several_choices_is_that_of_the_choice_that_read_it() -> None:
    cached = [{"prompt_tokens_details": {"cached_tokens": count}} for count in (9, 4)]
    usage = stream(*TEXTS, 0, counted(6, **cached[0]), 1, counted(6, **cached[1]))
    assert input_tokens(usage) == InputTokens(6, 4)


def test_one_choice_has_one_usage() -> None:
    assert stream((0, "a b c"), 0, counted(3), counted(3), n=1)["completion_tokens"] == 3


ENGLISH = "The train to the coast leaves at seven, and the second one is always full, so be early."
CODE = "def total(rows):\n    return sum(row['cost_micros'] for row in rows if row is not None)\n"


@each(
    ("texts", "reported", "expected"),
    [
        (["a b c d e f"] * 2, 6, 12),
        (["a b c d e f", "a b c"], 6, 9),
        (["a b c d e f"] * 3, 7, 21),
        ([ENGLISH] * 2, 21, 42),
        ([CODE] * 2, 22, 44),
        # of all choices
        (["a b c d e f"] * 2, 12, 12),
        ([ENGLISH] * 2, 42, 42),
        ([CODE] * 2, 44, 44),
        ([ENGLISH] * 2, 500, 500),  # with hidden reasoning
        # of no use for either
        (["a b c d e f"] * 2, 0, 0),
        ([ENGLISH] * 2, 3, 3),
        (["", "a b c d e f"], 4, 4),
        (["\u65e5\u672c\u8a9e" * 20] * 2, 40, 40),  # unspaced text shows nothing
    ],
)
def test_usage_that_is_plainly_of_the_first_choice_is_corrected(texts: list[str], reported: int, expected: int) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": reported, "total_tokens": 10 + reported, "x": 1}
    found = of_all_choices(usage, texts)
    assert found == {**usage, "completion_tokens": expected, "total_tokens": 10 + expected}


def test_long_texts_are_sampled() -> None:
    usage = {"prompt_tokens": 0, "completion_tokens": 100_000, "total_tokens": 100_000}
    assert of_all_choices(usage, ["a " * 100_000] * 2)["completion_tokens"] == 200_000


def test_whole_answer_of_several_choices_is_corrected() -> None:
    """llama.cpp puts the usage of the first choice into the answer of all."""
    choices = [{"index": index, "message": {"content": text}, "finish_reason": "stop"} for index, text in TEXTS]
    writer = ChunkWriter("x", 0, "m", {"messages": [], "n": 2})
    writer.whole = True
    writer.feed({**counted(6), "choices": choices})
    assert json.loads(writer.answer()[1])["usage"] == {
        "prompt_tokens": 10,
        "completion_tokens": 12,
        "total_tokens": 22,
    }


@each("usage, expected", [(usage, expected) for usage, expected in FORMS if "input_tokens" in usage])
def test_report_of_another_format_is_the_same_with_the_names_of_chat(usage: Any, expected: InputTokens) -> None:
    """A call costs the same in each format of its server."""
    renamed = chat_usage(usage)
    assert kinds(renamed) == expected and renamed["completion_tokens"] == 5
    known = {"prompt_tokens", "completion_tokens", "prompt_tokens_details", "cache_creation"}
    assert renamed.keys() <= known | {"completion_tokens_details"}


def test_reasoning_of_another_format_is_a_detail_of_the_output() -> None:
    for details in ({"reasoning_tokens": 3}, {"thinking_tokens": 3}):
        usage = chat_usage({**MESSAGES, "output_tokens_details": details})
        assert usage["completion_tokens_details"] == {"reasoning_tokens": 3}


def test_impossible_counts_of_another_format_are_absent() -> None:
    assert chat_usage({"input_tokens": -1, "output_tokens": "many", "cache_read_input_tokens": 2**60}) == {}
