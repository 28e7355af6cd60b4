"""The built-in models: which there are, at what price, and that nothing in a request makes them fall over."""

import asyncio
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.builtin.provider import MODELS, chat
from svc.builtin.request import is_big
from svc.errors import ApiError, UpstreamFault
from svc.inference.chat_shape import CHAT_REQUEST
from tests.support.builtin import (
    AGENT_TOOLS,
    NOW_SECONDS,
    STRING,
    Body,
    assembled,
    longest_stall_seconds,
    said,
    tool,
)
from tests.support.cases import each


def test_the_table_has_the_models_of_the_contract_and_their_prices() -> None:
    found = {name: (model.kind, *model.prices.values()) for name, model in MODELS.items()}
    chat = {"echo": (0, 0), "assistant": (0, 0), "assistant-paid": (500_000, 1_500_000), "script": (0, 0)}
    assert found == {name: ("chat", *prices) for name, prices in chat.items()} | {
        "paint": ("image", 20_000),
        "voice": ("speech", 10_000),
        "whisper-tiny": ("transcription", 0),
    }


BIG_TEXT = "my name is (((1+((2 and draw a 'cat'. read list.md, " * 60_000


DEMANDING = tool("x", **{f"k{number}": {"type": "array", "minItems": 4_000} for number in range(2_000)}, k=STRING)


RESULT = {"role": "tool", "tool_call_id": "c", "content": "[1]"}
BOMBS: dict[str, tuple[str, Any, Body]] = {
    "repeated says": ("script", "repeat 1000000000 say x", {}),
    "repeated empty says": ("script", "repeat 1000000000 say", {"n": 128}),
    "nested repeats": ("script", "repeat 1000000000 " * 20 + "say x", {"n": 3}),
    "repeats of much text": ("script", "repeat 1000000000 say " + "x" * 100_000, {"n": 2}),
    "repeated calls": ("script", "repeat 1000000000 tool f {}", {"n": 2}),
    "repeated nothing": ("script", "\n".join(["repeat 999999999 wait 0"] * 9_000), {}),
    "much text": ("echo", "word " * 800_000, {"n": 32}),
    "one long word": ("echo", "x" * 4_000_000, {"stop": ["xy" * 128] * 16}),
    "a long goal": ("assistant", BIG_TEXT, {"tools": AGENT_TOOLS}),
    "long memories": ("assistant", [*said(f"user: {BIG_TEXT}"), *said("user: What is my name?" * 300)], {}),
    "brackets": ("assistant", "what is " + "(" * 4_000 + "1+1" + ")" * 4_000, {}),
    "blanks": ("assistant", "draw " + " " * 500_000 + "x" + "\n" * 500_000, {"tools": AGENT_TOOLS}),
    "many tools": (
        "assistant",
        "alpha, beta. " * 500,
        {"tools": [tool(f"t{n}_beta", "beta " * 500, x=STRING) for n in range(128)]},
    ),
    "a demanding tool": ("assistant", "call x", {"tools": [DEMANDING], "tool_choice": "required"}),
    "many results": ("assistant", [*said("user: x"), *[RESULT] * 9_000], {"tools": AGENT_TOOLS}),
}


@each("stream", [False, True])
@each("bomb", BOMBS)
async def test_expensive_requests_are_bounded_and_do_not_block_the_loop(bomb: str, stream: bool) -> None:
    model, messages, fields = BOMBS[bomb]
    body = {
        "messages": [{"role": "user", "content": messages}] if isinstance(messages, str) else messages,
        **fields,
        "stream": stream,
    }
    output_bytes = 0

    async def drain() -> None:
        nonlocal output_bytes
        async for answer in chat(model, body, lambda: NOW_SECONDS):
            output_bytes += 0 if stream else len(json.dumps(answer))

    started = time.thread_time()
    assert await longest_stall_seconds(drain()) < 0.4  # 25 ms on a quiet machine; here other tests run beside it
    assert time.thread_time() - started < 10
    assert output_bytes < 3 << 20


def test_long_text_is_planned_in_a_thread_also_as_a_part() -> None:
    for content in (BIG_TEXT, [{"type": "text", "text": BIG_TEXT}], [{"type": "text", "text": ""}] * 100_000):
        assert is_big({"messages": [{"role": "user", "content": content}]})
    assert not is_big({"messages": [{"role": "user", "content": [{"type": "text", "text": "hello"}]}]})


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


_PHRASES = (
    "draw|a cat|what is|1/0|2 ** 3|my name|is|Ada|?|and|save|it|note.txt|in 3 days|'x'|art_1|list|say|tool f "
    "{}|repeat 3|\n|---"
    "|read|files|http://a.b/c|weather in|Paris|date|(|)|.|,"
)


_WORDS = st.sampled_from(_PHRASES.split("|"))


_TEXT = st.lists(_WORDS, max_size=10).map(" ".join) | st.text(st.characters(), max_size=20)


_CALLED = st.fixed_dictionaries({"name": st.just("t")}, optional={"arguments": _TEXT})
_CALL = st.fixed_dictionaries({"id": st.just("c1") | st.none()}, optional={"function": _CALLED})


_PART = st.sampled_from(
    [{"type": "image_url", "image_url": "x"}, {"type": "file", "file": 5}, {"type": "refusal", "refusal": 5}]
)


_CONTENT = (
    _TEXT | st.none() | st.lists(_PART | st.fixed_dictionaries({"type": st.just("text"), "text": _TEXT}), max_size=3)
)


_ROLE = st.sampled_from(["user", "assistant", "system", "tool", "developer"])
_MESSAGE = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["user", "assistant", "system", "tool", "developer"]),
        "content": _CONTENT,
        "tool_call_id": st.just("c1"),
    },
    optional={"tool_calls": st.lists(_CALL, max_size=2)},
)


_KEYWORDS = "type properties required items minItems anyOf $ref enum const minimum multipleOf allOf location"


_SCHEMA_VALUES = st.sampled_from(
    ["object", "array", "string", "integer", "number", "null", "#", "#/properties", 0, 1, 2.5, True, None]
)


_SCHEMA = st.recursive(
    _SCHEMA_VALUES | st.just({}),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYWORDS.split()), inner, max_size=4),
    max_leaves=14,
)


_FUNCTION = st.fixed_dictionaries(
    {"name": st.just("t")},
    optional={"description": _TEXT, "parameters": st.dictionaries(st.sampled_from(_KEYWORDS.split()), _SCHEMA)},
)


_TOOL = st.fixed_dictionaries({"type": st.just("function"), "function": _FUNCTION}) | st.sampled_from(AGENT_TOOLS)


_FORMAT = st.fixed_dictionaries(
    {"type": st.just("json_schema"), "json_schema": st.fixed_dictionaries({"schema": _SCHEMA})}
)


_BODY = st.fixed_dictionaries(
    {"messages": st.lists(_MESSAGE, min_size=1, max_size=5)},
    optional={
        "tools": st.lists(_TOOL, max_size=4),
        "tool_choice": st.sampled_from(["none", "auto", "required", "any"])
        | st.dictionaries(st.text(max_size=8), _JSON),
        "parallel_tool_calls": st.booleans(),
        "response_format": _FORMAT | st.just({"type": "json_object"}) | st.dictionaries(st.text(max_size=8), _JSON),
        "stream": st.booleans(),
        "stop": st.text(max_size=2) | st.lists(st.text(max_size=2)),
        "n": st.integers(1, 3) | st.just(2.0),
        "max_tokens": st.integers(-1, 20) | st.just(3.0),
        "max_completion_tokens": st.integers(1, 20),
    },
)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["echo", "assistant", "script"])
@given(body=_BODY)
def test_any_checked_body_is_answered_or_refused(model: str, body: Body) -> None:
    async def run() -> list[Body]:
        return [answer async for answer in chat(model, body, lambda: NOW_SECONDS)]

    try:
        CHAT_REQUEST.check(body, "")
    except ApiError:  # the route refuses it
        return
    try:
        raw = asyncio.run(run())
    except UpstreamFault as fault:
        assert fault.kind in ("status", "cut")
        return
    json.dumps(raw).encode()
    choices = assembled(raw)
    for one in choices:
        assert one["finish_reason"] in ("stop", "length", "tool_calls")
        assert isinstance(one["message"]["content"], str) or one["message"]["tool_calls"]
    limits = [body[name] for name in ("max_tokens", "max_completion_tokens") if body.get(name, 0) > 0]
    assert raw[-1]["usage"]["completion_tokens"] <= len(choices) * min(limits, default=1 << 20)
