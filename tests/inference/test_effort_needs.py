"""svc/inference/effort_needs.py: refusals of reasoning, and requests that are sent again because of them."""

from typing import Any

from svc.errors import UpstreamFault
from svc.inference.catalog import Model, Provider
from svc.inference.effort_needs import BY_EFFORT, NEEDS, NO_EFFORT, demanded, fulfilled, is_certain, needs_of
from tests.support.cases import each
from tests.support.format_server import NEEDS_NONE, NO_BUDGETS


def refusal(message: str, param: str | None = None, status: int = 400) -> UpstreamFault:
    return UpstreamFault("status", status=status, error={"message": message, "param": param, "code": None})


@each(
    ("message", "param", "need"),
    [
        (NEEDS_NONE, "reasoning_effort", NO_EFFORT),
        ("Tools are not supported for m here. Please use /v1/responses instead.", None, NO_EFFORT),
        ("litellm.BadRequestError: Function tools with reasoning_effort are not ...", None, NO_EFFORT),
        ("Tool calling needs another setting.", "reasoning_effort", NO_EFFORT),
        ("This model is only supported in /v1/responses.", None, None),
        ("Unsupported value: 'reasoning_effort' does not support 'minimal' with this model.", "reasoning_effort", None),
        ("Invalid schema for function 'look_up'.", "tools[0].function.parameters", None),
        (NO_BUDGETS, None, BY_EFFORT),
        ("thinking.enabled.budget_tokens: unsupported", None, BY_EFFORT),
        ("max_tokens must be greater than thinking.budget_tokens", None, None),
    ],
)
def test_refusal_names_what_the_server_demands(message: str, param: str | None, need: str | None) -> None:
    found = demanded(refusal(message, param), NEEDS)
    assert found == ({need} if need else set())
    assert demanded(refusal(message, param, 500), NEEDS) == demanded(refusal(message, param), ()) == set()


@each(
    ("api", "efforts", "body", "needs"),
    [
        ("chat", None, {"tools": [{}]}, {NO_EFFORT}),
        ("chat", None, {"functions": [{}], "reasoning_effort": "high"}, {NO_EFFORT}),
        ("chat", None, {"tools": [], "reasoning_effort": "high"}, set()),
        ("responses", None, {"tools": [{}], "reasoning_effort": "high"}, set()),
        ("messages", None, {"tools": [{}], "reasoning_effort": "high"}, {BY_EFFORT}),
        ("messages", None, {"tools": [{}]}, set()),
        ("messages", ("low",), {"reasoning_effort": "high"}, set()),
    ],
)
def test_server_of_each_format_has_its_own_demands(
    api: str, efforts: tuple[str, ...] | None, body: dict[str, Any], needs: set[str]
) -> None:
    model = Model("a/m", "m", Provider("a", "http://a"), "chat", {}, api=api, efforts=efforts)
    assert needs_of(model, body) == needs


def test_request_is_changed_only_where_it_must_be() -> None:
    for tools in ({"tools": [{"type": "function"}]}, {"functions": [{"name": "f"}]}):
        assert fulfilled({**tools, "reasoning_effort": "high"}, {NO_EFFORT}) == {**tools, "reasoning_effort": "none"}
    plain = {"reasoning_effort": "high", "tools": []}
    assert fulfilled(plain, {NO_EFFORT, "max_tokens"}) == plain
    assert fulfilled(plain, {BY_EFFORT}) == {**plain, BY_EFFORT: True}


@each("need", NEEDS)
def test_words_of_the_caller_make_a_refusal_uncertain(need: str) -> None:
    assert is_certain(need, {}, b"{}") and is_certain(need, {"reasoning_effort": "max"}, b"{}")
    assert not is_certain(need, {"reasoning_effort": "tools"}, b"{}")
    for word in NEEDS[need].words:
        assert not is_certain(need, {}, b'{"messages":"%b"}' % word.encode())
