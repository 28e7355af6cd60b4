"""svc/inference/chat_shape.py: what is refused before the 200, and what is left to the model servers."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.errors import ApiError
from svc.inference.chat_shape import CHAT_REQUEST, check_for_builtin
from tests.support.cases import each

MESSAGE = {"role": "user", "content": "Hi"}
FUNCTION = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


def chat(body: dict[str, Any]) -> dict[str, Any]:
    return CHAT_REQUEST.check(body, "")


def refused(**fields: Any) -> tuple[str, str | None]:
    with pytest.raises(ApiError) as caught:
        check_for_builtin(chat({"messages": [MESSAGE], **fields}))
    assert caught.value.status == 400
    return caught.value.code, caught.value.error["param"]


@each(
    "fields",
    [
        {"temperature": 0, "top_p": 1.0, "presence_penalty": -2, "frequency_penalty": 2, "seed": -(2**63)},
        {"n": 128, "max_tokens": 1, "max_completion_tokens": 2**31 - 1, "top_logprobs": 20, "logprobs": True},
        {"n_probs": 20},
        {"stop": "x"},
        {"stop": ["a", "b", "c", "d"]},
        {"stream": True, "stream_options": {"include_usage": True, "include_obfuscation": None}},
        {"stream_options": {"include_usage": False}},
        {"tools": [], "tool_choice": "auto", "parallel_tool_calls": False},
        {"tools": [FUNCTION, {"type": "custom", "custom": {"name": "sql"}}, {"type": "custom"}]},
        {"tool_choice": {"type": "function", "function": {"name": "f"}}},
        {"tool_choice": {"type": "allowed_tools", "allowed_tools": {}}},
        {"functions": [{"name": "f"}], "function_call": {"name": "f"}},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {}, "strict": True}}},
        {"response_format": {"type": "json_object"}},
        {"reasoning_effort": "a word of tomorrow", "service_tier": "x", "metadata": {"a": "b"}, "logit_bias": {"1": 2}},
        {"top_k": 5, "unknown": {"any": ["thing"]}},
    ],
)
def test_requests_of_openai_are_accepted(fields: dict[str, Any]) -> None:
    chat({"messages": [MESSAGE], **fields})


@each(
    "message",
    [
        {"role": "developer", "content": "x"},
        {"role": "system", "content": "x", "name": "y"},
        {"role": "user", "content": None},
        {"role": "user", "content": []},
        {
            "role": "user",
            "content": [{"type": "text", "text": "x"}, {"type": "image_url", "image_url": {"url": "data:"}}],
        },
        {
            "role": "user",
            "content": [{"type": "input_audio", "input_audio": {}}, {"type": "file", "file": {}}, {"type": "new"}],
        },
        {"role": "assistant"},
        {"role": "assistant", "content": None, "annotations": [], "provider_specific_fields": {"refusal": None}},
        {"role": "assistant", "tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{"}}]},
        {"role": "assistant", "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "f", "input": "x"}}]},
        {"role": "tool", "tool_call_id": "c", "content": "x", "name": "f"},
        {"role": "function", "name": "f", "content": None},
    ],
)
def test_every_message_that_clients_send_is_accepted(message: dict[str, Any]) -> None:
    chat({"messages": [message]})


@each(
    "fields",
    [
        {"max_tokens": -1},
        {"max_completion_tokens": 0},
        {"max_tokens": 2**70},
        {"seed": 10**500},
        {"stop": []},
        {"stop": ["a"] * 5},
        {"tool_choice": "any"},
        {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}}},
        {"response_format": {"type": "grammar", "grammar": "x"}},
        {"response_format": {"type": "json_object", "schema": {}}},
    ],
)
def test_values_that_only_built_in_models_refuse_are_passed_on(fields: dict[str, Any]) -> None:
    chat({"messages": [MESSAGE], **fields})


# fmt: off
KNOWN = [
    "model", "stream", "stream_options", "temperature", "top_p", "max_tokens", "max_completion_tokens", "stop", "n", "seed",
    "presence_penalty", "frequency_penalty", "tools", "tool_choice", "parallel_tool_calls", "response_format", "user",
    "reasoning_effort", "logprobs", "top_logprobs", "logit_bias", "metadata", "store", "service_tier", "verbosity",
    "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "prompt_cache_options", "prediction", "modalities",
    "audio", "web_search_options", "moderation", "functions", "function_call",
    "n_probs",
]
# fmt: on


@each("name", KNOWN)
def test_any_known_field_may_be_null(name: str) -> None:
    chat({"messages": [MESSAGE], name: None})


@each(
    ("name", "values"),
    [
        ("model", ["", "  ", 5]),
        ("temperature", [-0.1, 2.1, "1", True, float("nan")]),
        ("top_p", [-1, 1.01, False]),
        ("n", [0, 129, 1.5, True, "1"]),
        ("max_tokens", [0, -1, 1.5, 2**31, 2**63, True]),
        ("max_completion_tokens", [0, "5"]),
        ("seed", [1.5, 2**63, 2**64]),
        ("presence_penalty", [-2.1, 3]),
        ("frequency_penalty", [-2.1, "x"]),
        ("stop", [[], ["a"] * 5, 5, {}]),
        ("stream", [1, "true", {}]),
        ("stream_options", [True, []]),
        ("tools", [{}, "x"]),
        ("tool_choice", ["always", 1, []]),
        ("parallel_tool_calls", [1]),
        ("response_format", ["json", []]),
        ("logprobs", [1]),
        ("top_logprobs", [-1, 21]),
        ("n_probs", [-1, 21, 1.5, "5"]),
        ("logit_bias", [[]]),
        ("metadata", ["{}", []]),
        ("user", [1]),
        ("reasoning_effort", [1]),
        ("modalities", ["text", {}]),
        ("functions", [{}]),
        ("function_call", ["f"]),
    ],
)
def test_wrong_values_are_refused_with_the_field_named(name: str, values: list[Any]) -> None:
    for value in values:
        assert refused(**{name: value}) == ("invalid_value", name)


@each(
    ("fields", "code", "param"),
    [
        ({"messages": None}, "missing_field", "messages"),
        ({"messages": []}, "invalid_value", "messages"),
        ({"messages": {}}, "invalid_value", "messages"),
        ({"messages": ["Hi"]}, "invalid_value", "messages[0]"),
        ({"messages": [MESSAGE, {"content": "x"}]}, "missing_field", "messages[1].role"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "invalid_value", "messages[0].role"),
        ({"messages": [{"role": ["user"], "content": "x"}]}, "invalid_value", "messages[0].role"),
        ({"messages": [{"role": "user"}]}, "missing_field", "messages[0].content"),
        ({"messages": [{"role": "user", "content": 5}]}, "invalid_value", "messages[0].content"),
        ({"messages": [{"role": "user", "content": ["x"]}]}, "invalid_value", "messages[0].content[0]"),
        ({"messages": [{"role": "user", "content": [{"text": "x"}]}]}, "missing_field", "messages[0].content[0].type"),
        (
            {"messages": [{"role": "user", "content": [{"type": "text"}]}]},
            "missing_field",
            "messages[0].content[0].text",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
            "missing_field",
            "messages[0].content[0].image_url.url",
        ),
        ({"messages": [{"role": "tool", "content": "x"}]}, "missing_field", "messages[0].tool_call_id"),
        ({"messages": [{"role": "assistant", "tool_calls": {}}]}, "invalid_value", "messages[0].tool_calls"),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{"function": {}}]}]},
            "missing_field",
            "messages[0].tool_calls[0].function.name",
        ),
        ({"tools": ["f"]}, "invalid_value", "tools[0]"),
        ({"stop": [1]}, "invalid_value", "stop[0]"),
        ({"modalities": [1]}, "invalid_value", "modalities[0]"),
        ({"tools": [{"function": {"name": "f"}}]}, "missing_field", "tools[0].type"),
        ({"tools": [{"type": "function"}]}, "missing_field", "tools[0].function"),
        ({"tools": [{"type": "function", "function": {}}]}, "missing_field", "tools[0].function.name"),
        (
            {"tools": [{"type": "function", "function": {"name": "f", "parameters": []}}]},
            "invalid_value",
            "tools[0].function.parameters",
        ),
        ({"tool_choice": {"type": "function"}}, "missing_field", "tool_choice.function"),
        ({"response_format": {}}, "missing_field", "response_format.type"),
        ({"response_format": {"type": "xml"}}, "invalid_value", "response_format.type"),
        ({"response_format": {"type": "json_schema"}}, "missing_field", "response_format.json_schema"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {}}},
            "missing_field",
            "response_format.json_schema.name",
        ),
        ({"stream_options": {"include_usage": 1}}, "invalid_value", "stream_options.include_usage"),
    ],
)
def test_error_names_the_path_of_the_value(fields: dict[str, Any], code: str, param: str) -> None:
    assert refused(**fields) == (code, param)


@each(
    ("fields", "expected"),
    [
        ({"stop": 3}, "stop must be a string or a list of strings."),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": 3}]}]},
            "messages[0].content[0].image_url must be a string or an object with a url.",
        ),
        (
            {"messages": [{"role": "user", "content": 3}]},
            "messages[0].content must be a string, a list of parts or null.",
        ),
        ({"tool_choice": 3}, "tool_choice must be a string or an object."),
    ],
)
def test_error_names_every_accepted_form(fields: dict[str, Any], expected: str) -> None:
    with pytest.raises(ApiError) as caught:
        chat({"messages": [MESSAGE], **fields})
    assert str(caught.value) == expected


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["role", "type", "function", "x"]), inner)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["messages", *KNOWN]), json_values))
def test_any_body_is_accepted_or_refused(body: dict[str, Any]) -> None:
    before = copy.deepcopy(body)
    try:
        chat(body)
    except ApiError as error:
        assert error.status == 400
        assert error.error["param"].partition(".")[0].partition("[")[0] in ("messages", *KNOWN)
    assert repr(body) == repr(before)
