"""Ordinary answers: what is taken for one, and that it becomes what any answer becomes that is taken apart."""

from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from svc.errors import UpstreamFault
from svc.inference.answer.plain_answer import plain_text
from tests.support.cases import each
from tests.support.wire_grammar import writer

TEXT = {"role": "assistant", "content": "Hi"}
CHOICE = {"index": 0, "message": TEXT, "finish_reason": "stop"}
USAGE = {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6}


def raw(choice: Any = CHOICE, **fields: Any) -> dict[str, Any]:
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [choice],
        "usage": USAGE,
        **fields,
    }


def message(**fields: Any) -> dict[str, Any]:
    return {**CHOICE, "message": {**TEXT, **fields}}


@each(
    "answer",
    [
        raw(),
        raw(message(refusal=None, tool_calls=None, reasoning_content=None), system_fingerprint="fp", usage=None),
        raw({**CHOICE, "logprobs": None, "stop_reason": None}, usage={**USAGE, "prompt_tokens_details": None}),
    ],
)
def test_text_with_a_finish_reason_is_an_ordinary_answer(answer: dict[str, Any]) -> None:
    assert plain_text(answer) == ("Hi", 2, "stop")


def test_size_is_in_bytes_and_the_finish_reason_fits_a_text() -> None:
    assert plain_text(raw({**message(content="né🙂"), "finish_reason": "tool_calls"})) == ("né🙂", 7, "stop")
    assert plain_text(raw({**CHOICE, "finish_reason": "length"})) == ("Hi", 2, "length")


@each(
    "answer",
    [
        {},
        {"choices": None},
        {"choices": []},
        raw() | {"choices": [CHOICE, {**CHOICE, "index": 1}]},
        raw("text"),
        raw({"index": 0, "delta": TEXT, "finish_reason": "stop"}),
        raw({**CHOICE, "index": 1}),
        raw({**CHOICE, "logprobs": {"content": []}}),
        raw({**CHOICE, "usage": USAGE}),
        *(raw({**CHOICE, "finish_reason": reason}) for reason in (None, "", "eos", "error", 1)),
        *(raw(message(content=content)) for content in (None, "", [], "\ud83d", "x" * 65_537)),
        raw(message(role=None)),
        raw({**CHOICE, "message": {"content": "Hi", "name": "role"}}),
        raw(message(refusal="No.")),
        raw(message(tool_calls=[])),
    ],
)
def test_answer_with_more_or_less_than_a_text_takes_the_general_path(answer: dict[str, Any]) -> None:
    assert plain_text(answer) is None
    fresh = writer(whole=True)
    assert fresh.plain_answer(answer) is None
    assert (fresh.text_bytes, fresh.usage["completion_tokens"]) == (0, 0)


def test_ordinary_answer_with_an_invalid_character_is_a_fault() -> None:
    with pytest.raises(UpstreamFault):
        writer(whole=True).plain_answer(raw(service_tier="\ud83d"))


def test_ordinary_answer_beyond_its_limit_is_cut() -> None:
    granted = writer(whole=True)
    granted.choice_bytes = 1
    assert granted.plain_answer(raw()) is None
    granted.feed(raw())
    assert granted.answer()[0]["choices"][0] == {
        "index": 0,
        "message": {"role": "assistant", "content": "H", "refusal": None},
        "logprobs": None,
        "finish_reason": "length",
    }


COUNTS = st.none() | st.integers(-2, 9) | st.just("7")
FIELDS = st.none() | st.text(max_size=3) | st.just({"a": [1]})
ANSWERS = st.builds(
    raw,
    st.builds(
        lambda content, role, extra, choice: {
            **CHOICE,
            "message": {"role": role, "content": content, **extra},
            **choice,
        },
        st.text(min_size=1, max_size=9) | st.text("a\ud83d\ude42é", max_size=3),
        st.sampled_from(["assistant", "model", None]),
        st.dictionaries(
            st.sampled_from(["refusal", "tool_calls", "reasoning", "x"]), st.none() | st.just("y"), max_size=2
        ),
        st.fixed_dictionaries(
            {},
            optional={
                "index": st.sampled_from([0, 1, None, False, 0.0]),
                "logprobs": st.none(),
                "finish_reason": st.sampled_from(
                    ["stop", "length", "content_filter", "function_call", "eos", "STOP", None]
                ),
            },
        ),
    ),
    usage=st.none() | st.dictionaries(st.sampled_from([*USAGE, "input_tokens", "details"]), COUNTS, max_size=4),
    service_tier=FIELDS,
    timings=FIELDS,
)


@given(ANSWERS)
@example(raw(usage={"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}))
def test_both_paths_give_the_same_answer(answer: dict[str, Any]) -> None:
    quick, apart = writer(whole=True), writer(whole=True)
    plain = quick.plain_answer(answer)
    if plain is None:
        return
    apart.feed(answer)
    assert plain == apart.answer()
    assert orjson.loads(plain[1]) == plain[0]
    assert (quick.text_bytes, quick.usage, quick.finished) == (apart.text_bytes, apart.usage, apart.finished)
