"""Which messages fit into a context, for any chat, and what changes after a refusal."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.content.model_view import View
from svc.errors import UpstreamFault
from svc.inference.answer.too_long import TooLong
from svc.inference.catalog import Model
from svc.inference.context_fit import ContextFit
from svc.inference.context_lengths import ContextLengths
from tests.support.cases import each


def model_of(context_length: int | None, id: str = "lab/x") -> Model:
    return Model(id, "x", None, "chat", {}, context_length=context_length)


def lengths() -> ContextLengths:
    return ContextLengths(lambda: 0.0)


TEXT = st.integers(1, 400).map(lambda size: "x" * size)


@st.composite
def exchange(draw: st.DrawFn) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": draw(TEXT)}]
    for number in range(draw(st.integers(0, 2))):
        calls = [{"id": f"c{number}", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
        messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": draw(TEXT)})
    if draw(st.booleans()):
        messages.append({"role": "system", "content": draw(TEXT)})
    return [*messages, {"role": "assistant", "content": draw(TEXT)}]


def tokens_of(messages: list[dict[str, Any]]) -> int:
    """Return a lower estimate, without calls."""
    return sum(-(-len(message["content"] or "") // 3) for message in messages)


@given(
    exchanges=st.lists(exchange(), max_size=12),
    question=TEXT,
    context=st.integers(40, 2000),
    output=st.integers(0, 2500),
)
def test_any_chat_fits_or_is_the_last_exchange_alone(
    exchanges: list[list[dict[str, Any]]], question: str, context: int, output: int
) -> None:
    messages = [message for one in exchanges for message in one] + [{"role": "user", "content": question}]
    body = {"messages": [{"role": "system", "content": "s"}, *messages], "max_tokens": output}
    fit = ContextFit(lengths(), "acct")
    sent = fit.fitted(model_of(context), body)["messages"]
    systems = [message for message in body["messages"] if message["role"] == "system"]
    assert [message for message in sent if message["role"] == "system"] == systems
    assert sent[-1]["content"] == question
    rest = [message for message in sent if message["role"] != "system"]
    everything = [message for message in messages if message["role"] != "system"]
    assert rest == everything[len(everything) - len(rest) :], "not the newest ones"
    assert rest[0]["role"] == "user"
    alone = rest == [messages[-1]]
    limit = output if output < context else context // 4
    assert alone or tokens_of(sent) <= context - limit
    assert fit.sent_messages == (0 if len(sent) == len(body["messages"]) else sum(map(_is_spoken, rest)))


def _is_spoken(message: dict[str, Any]) -> bool:
    return message["role"] in ("user", "assistant") and not message.get("tool_calls")


@given(sizes=st.lists(st.integers(1, 600), min_size=1, max_size=60))
def test_beginning_of_a_growing_chat_stays_until_the_next_step(sizes: list[int]) -> None:
    model, messages, sent_messages, began_at = model_of(1000), list[dict[str, Any]](), 0, 0
    for number, size in enumerate(sizes):
        messages.append({"role": "user", "content": f"{number} ".ljust(size, "x")})
        fit = ContextFit(lengths(), "acct", View(0, sent_messages))
        sent = fit.fitted(model, {"messages": list(messages), "max_tokens": 100})["messages"]
        first = int(sent[0]["content"].split()[0])
        if first != began_at and sent != messages[-1:]:
            left = sum(-(-len(message["content"]) // 3) for message in messages[2 * began_at : 2 * first])
            assert left >= 250, "less than a step"
        assert first >= began_at
        began_at = first
        messages.append({"role": "assistant", "content": "y"})
        sent_messages = fit.sent_messages and fit.sent_messages + 1


def test_another_model_gets_more_messages_only_with_two_free_steps() -> None:
    """A model server may have cached the prompt from the same beginning."""
    messages = [
        {"role": role, "content": size * "x"} for _ in range(4) for role, size in (("user", 600), ("assistant", 3))
    ]
    messages.append({"role": "user", "content": "x" * 600})
    first = ContextFit(lengths(), "acct")
    first.fitted(model_of(1000), {"messages": messages, "max_tokens": 100})
    assert first.sent_messages == 5
    messages += [{"role": "assistant", "content": "xxx"}, {"role": "user", "content": "xxx"}]
    for context, sent in ((1400, 7), (1500, 0)):  # with 604 tokens, two steps of 350 and of 375 are free or not
        fit = ContextFit(lengths(), "acct", View(0, first.sent_messages + 1))
        fit.fitted(model_of(context), {"messages": messages, "max_tokens": 100})
        assert fit.sent_messages == sent, context


def test_known_tokens_are_shared_among_the_messages_that_they_count() -> None:
    messages = [{"role": role, "content": "x" * 30} for _ in range(5) for role in ("user", "assistant")]
    body = {"messages": [*messages, {"role": "user", "content": "x" * 30}], "max_tokens": 100}
    for tokens, left in ((890, 0), (891, 2), (1141, 3)):  # each exchange is a fifth of the tokens
        fit = ContextFit(lengths(), "acct", View(tokens))
        sent = fit.fitted(model_of(1000), body)["messages"]
        assert (11 - len(sent)) // 2 == left, tokens


def test_pictures_and_files_are_not_counted_by_their_bytes() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 1_000_000}}
    content = [{"type": "text", "text": "Look."}, picture]
    messages = [{"role": "user", "content": content}, {"role": "assistant", "content": "A cat."}]
    body = {"messages": [*messages, {"role": "user", "content": "Why?"}]}
    assert ContextFit(lengths(), "acct").fitted(model_of(8000), body) is body
    assert len(ContextFit(lengths(), "acct").fitted(model_of(900), body)["messages"]) == 1


def test_short_chat_is_sent_as_it_is() -> None:
    body = {"messages": [{"role": "user", "content": "Hi"}]}
    assert ContextFit(lengths(), "acct").fitted(model_of(None), body) is body


def fault(sizes: TooLong | None, status: int = 400) -> UpstreamFault:
    error = {"message": "", "too_long": sizes} if sizes is not None else {"message": ""}
    return UpstreamFault("status", "", status=status, error=error)


def long_body(exchanges: int = 20, **fields: Any) -> dict[str, Any]:
    messages = [{"role": role, "content": "x" * 300} for _ in range(exchanges) for role in ("user", "assistant")]
    return {"messages": [*messages, {"role": "user", "content": "x" * 300}], "max_tokens": 100, **fields}


@each(
    "sizes, most",
    [
        (TooLong(4100, None, 2000), 2000),
        (TooLong(None, None, 2000), 2000),
        (TooLong(), 2050),  # half of the 4,100 tokens that were sent
        (TooLong(None, None, 40_000), 40_000),  # the estimate was too low
    ],
)
async def test_refusal_leaves_out_at_least_a_step_and_is_learned(sizes: TooLong, most: int) -> None:
    known, model, body = lengths(), model_of(None), long_body()
    fit = ContextFit(known, "acct")
    assert fit.fitted(model, body) is body
    shortened = await fit.shortened(model, fault(sizes), body)
    assert shortened is not None and known.tokens_of(model, "acct") == most
    left = len(body["messages"]) - len(shortened["messages"])
    assert left * 100 >= min(most // 4, 4000) and left % 2 == 0
    assert await fit.shortened(model, fault(sizes), shortened) is None, "tried a third time"


@each(
    "sizes, status",
    [(None, 400), (TooLong(4100, None, 2000), 503), (TooLong(1000, 1900, 2000), 400)],
)
async def test_refusal_that_fewer_messages_do_not_help_changes_nothing(sizes: TooLong | None, status: int) -> None:
    model, body = model_of(None), long_body(max_tokens=2000)
    fit = ContextFit(lengths(), "acct")
    assert fit.fitted(model, body) is body
    assert await fit.shortened(model, fault(sizes, status), body) is None


async def test_exchange_alone_cannot_be_shortened() -> None:
    model, body = model_of(500), long_body()
    fit = ContextFit(lengths(), "acct")
    sent = fit.fitted(model, long_body(0))
    assert await fit.shortened(model, fault(TooLong(600, None, 500)), sent) is None
    assert len(fit.fitted(model, body)["messages"]) < 12


@pytest.mark.parametrize("reasoning", [0, 50])
def test_tokens_of_a_call_are_those_of_its_prompt_and_its_text(reasoning: int) -> None:
    fit = ContextFit(lengths(), "acct")
    fit.fitted(model_of(None), long_body(1))
    details = {"completion_tokens_details": {"reasoning_tokens": reasoning}}
    fit.note({"prompt_tokens": 70, "completion_tokens": 60, **details})
    assert fit.tokens == 130 - reasoning
    fit.note(None)
    assert fit.tokens == 0


async def test_summary_moves_to_the_first_message_that_is_sent_after_a_refusal() -> None:
    fit = ContextFit(lengths(), "acct", View(summary="They looked for a train."))
    model = model_of(2500)
    sent = fit.fitted(model, long_body(max_tokens=100))
    shortened = await fit.shortened(model, fault(TooLong(2400, None, 1500)), sent)
    assert shortened is not None and len(shortened["messages"]) < len(sent["messages"])
    for body in (sent, shortened):
        texts = [message["content"] for message in body["messages"] if message["role"] != "system"]
        assert [number for number, text in enumerate(texts) if "They looked for a train." in text] == [0]
    assert sum(map(len, map(str, shortened["messages"]))) < sum(map(len, map(str, sent["messages"])))
