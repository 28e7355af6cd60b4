"""Which context lengths are remembered, for whom and for how long."""

from svc.inference.catalog import Model
from svc.inference.context_lengths import UNKNOWN_TOKENS, ContextLengths


def model_of(context_length: int | None, id: str = "lab/x") -> Model:
    return Model(id, "x", None, "chat", {}, context_length=context_length)


def lengths(now: list[float] | None = None) -> ContextLengths:
    return ContextLengths(lambda: now[0] if now else 0.0)


def test_learned_length_is_kept_for_an_hour_and_for_its_account() -> None:
    now = [1000.0]
    known, model, declared = lengths(now), model_of(None), model_of(4000, "lab/y")
    assert (known.tokens_of(model, "acct"), known.tokens_of(declared, "acct")) == (UNKNOWN_TOKENS, 4000)
    for one in (model, declared):
        known.learn(one, "acct", 16_000)
    assert (known.tokens_of(model, "acct"), known.tokens_of(declared, "acct")) == (16_000, 4000)
    assert known.tokens_of(model, "other") == UNKNOWN_TOKENS
    now[0] += 3600
    assert known.tokens_of(model, "acct") == UNKNOWN_TOKENS


def test_few_learned_lengths_are_kept() -> None:
    known = lengths()
    for number in range(1002):
        known.learn(model_of(None), f"acct{number}", 100)
    assert known.tokens_of(model_of(None), "acct1") == UNKNOWN_TOKENS
    assert known.tokens_of(model_of(None), "acct2") == 100
