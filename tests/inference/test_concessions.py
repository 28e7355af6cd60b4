"""Which refusals are about a field that we add, what a model gets in its place, and that it is remembered."""

from typing import Any

import pytest

from svc.errors import UpstreamFault
from svc.inference.catalog import Model, Provider
from svc.inference.concessions import Concessions, limit_too_large

ADDED = ("max_tokens", "stream_options", "reasoning_content")


def model(base_url: str = "http://a.example/v1", name: str = "m") -> Model:
    return Model(f"a/{name}", name, Provider("a", base_url), "chat", {})


def refusal(message: str, status: int = 400, **fields: Any) -> UpstreamFault:
    return UpstreamFault("status", status=status, error={"message": message, "param": None, "code": None, **fields})


@pytest.mark.parametrize(
    ("message", "field"),
    [
        (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            "max_tokens",
        ),
        ("body.stream_options: Extra inputs are not permitted", "stream_options"),
        ("Unrecognized request argument supplied: stream_options", "stream_options"),
        ("Additional properties are not allowed ('stream_options' was unexpected)", "stream_options"),
        ("property 'messages.1.reasoning_content' is unsupported", "reasoning_content"),
    ],
)
def test_the_refusal_of_an_added_field_is_learnt_once(message: str, field: str) -> None:
    concessions = Concessions()
    assert concessions.learn(model(), refusal(message, 422), ADDED)
    assert not concessions.learn(model(), refusal(message, 422), ADDED), "once is enough: the second refusal is the caller's"
    body = {"max_tokens": 9, "stream_options": {}, "messages": [{"role": "assistant", "reasoning_content": "x"}]}
    changed = concessions.apply(model(), body, ADDED)
    assert changed != body and field not in changed and field not in changed["messages"][0]
    assert (changed.get("max_completion_tokens") == 9) == (field == "max_tokens")
    assert concessions.apply(model(), body, ()) == body, "what the caller sent itself stays"
    assert concessions.apply(model("http://b.example/v1"), body, ADDED) == body


@pytest.mark.parametrize(
    "fault",
    [
        refusal("max_tokens is too large: 5000. This model supports at most 4096 completion tokens."),
        refusal("Invalid 'max_tokens': integer above maximum value. Expected a value <= 4096, but got 5000 instead."),
        refusal("'temperature' is not supported with this model"),
        refusal("max_tokens is not supported", 500),
        UpstreamFault("status", status=400),
        UpstreamFault("timeout"),
    ],
)
def test_any_other_fault_teaches_nothing(fault: UpstreamFault) -> None:
    assert not Concessions().learn(model(), fault, ADDED)


def test_a_field_that_was_not_added_is_not_ours_to_take_back() -> None:
    assert not Concessions().learn(model(), refusal("max_tokens is not supported"), ("stream_options",))


@pytest.mark.parametrize(
    ("message", "too_large"),
    [
        ("max_tokens is too large: 5000. This model supports at most 4096 completion tokens.", True),
        ("This model's maximum context length is 4096 tokens. However, you requested 4200 tokens.", True),
        ("the request exceeds the available context size", True),
        ("temperature must be a number", False),
    ],
)
def test_a_limit_beyond_the_models_own_is_told_by_its_words(message: str, too_large: bool) -> None:
    assert limit_too_large(refusal(message)) is too_large


def test_a_thousand_models_are_remembered() -> None:
    concessions = Concessions()
    for number in range(1_100):
        assert concessions.learn(model(name=str(number)), refusal("max_tokens is not supported"), ADDED)
    assert len(concessions._refused) == 1_000
