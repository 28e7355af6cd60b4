"""svc/inference/chat_request.py: what never travels to an operator's provider, and what a priced
request may not hold.
"""

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from svc.inference.chat_request import drop_output_limits, drop_routing_fields
from tests.support.cases import each

# fmt: off
AIMING = [
    "api_base", "base_url", "api_key", "user_config", "extra_headers", "apiKey", "baseURL", "API_BASE", "api-key",
    "api_version", "litellm_params", "litellm_credential_name", "aws_access_key_id", "aws_bedrock_runtime_endpoint",
    "vertex_credentials", "azure_ad_token", "custom_llm_provider", "mock_response", "model_list", "langfuse_host",
]
# fmt: on


@each("name", AIMING)
def test_routing_fields_are_dropped_at_any_depth(name: str) -> None:
    body = {
        "model": "m",
        name: "x",
        "extra_body": {name: "x", "deep": [{"deeper": {name: {"a": 1}}}]},
        "metadata": {name: "x", "kept": "y"},
        "messages": [{"role": "user", name: "x", "content": [{"type": "text", "text": name, name: "x"}]}],
        "tools": [{"type": "function", name: "x", "function": {"name": "f", name: "x"}}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", name: "x"}},
    }
    before = copy.deepcopy(body)
    assert drop_routing_fields(body) == {
        "model": "m",
        "extra_body": {"deep": [{"deeper": {}}]},
        "metadata": {"kept": "y"},
        "messages": [{"role": "user", "content": [{"type": "text", "text": name}]}],
        "tools": [{"type": "function", "function": {"name": "f"}}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "n"}},
    }
    assert body == before


def test_a_model_in_another_spelling_or_in_extra_body_is_dropped() -> None:
    body = {
        "model": "m",
        "Model": "x",
        "MODEL": "x",
        "extra_body": {"model": "x"},
        "metadata": {"model": "x"},
        "messages": [],
    }
    assert drop_routing_fields(body) == {"model": "m", "extra_body": {}, "metadata": {"model": "x"}, "messages": []}


# A server in Go takes U+212A for k and U+017F for s, and capitals for small letters.
@each("name", ["Max_Tokens", "maxTokens", "max_to\u212aens", "max_token\u017f", "STREAM_OPTIONS", "\u017ftreamOptions"])
def test_other_names_of_limits_are_dropped_for_a_model_with_a_price(name: str) -> None:
    options = {"include_usage": True, "include_obfuscation": False}
    spelled = {"Include_Usage": False, "include_u\u017fage": False, "includeUsage": False}
    body = {
        "max_tokens": 5,
        name: 9,
        "stream_options": {**options, **spelled},
        "extra_body": {name: 9, "stream_options": {}},
    }
    assert drop_output_limits(body) == {"max_tokens": 5, "stream_options": options, "extra_body": {}}


@each("name", ["headers", "proxies", "organization", "fallbacks", "models", "provider"])
def test_common_words_are_dropped_only_at_the_top_level(name: str) -> None:
    body = {"model": "m", name: ["x"], "extra_body": {name: "x"}, "metadata": {name: "x"}}
    assert drop_routing_fields(body) == {"model": "m", "extra_body": {}, "metadata": {name: "x"}}


def test_schemas_and_arguments_keep_common_words() -> None:
    schema = {"type": "object", "properties": {"api_key": {"type": "string"}, "base_url": {}}, "required": ["api_key"]}
    body = {
        "messages": [
            {"role": "user", "content": "Set api_key and base_url."},
            {
                "role": "assistant",
                "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": '{"api_key": "x"}'}}],
            },
        ],
        "tools": [{"type": "function", "function": {"name": "api_base", "parameters": schema}}],
        "functions": [{"name": "f", "parameters": schema}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}},
        "guided_json": schema,
        "temperature": 0.5,
        "top_k": 5,
        "chat_template_kwargs": {"enable_thinking": False},
    }
    assert drop_routing_fields(body) == body


@given(
    st.dictionaries(
        st.sampled_from(["tools", "metadata", "stop", "options", "num_predict", "api_key"]),
        st.sampled_from([None, "x", ["x"], {"type": "x"}, [{"api_base": "x"}], {"api_base": "x"}, {"num_predict": 1}]),
        max_size=2,
    ),
    st.lists(
        st.sampled_from(
            [
                {"role": "user", "content": "x"},
                {"role": "user", "content": "x", "api_base": "x"},
                {"role": "user", "content": [{"type": "text", "text": "x", "api_base": "x"}]},
            ]
        ),
        max_size=2,
    ),
)
def test_dropped_fields_do_not_depend_on_other_fields(fields: dict[str, Any], messages: list[dict[str, Any]]) -> None:
    # Most bodies have only documented fields and plain messages, which are not checked in detail.
    body = {**fields, "messages": messages}
    for drop in (drop_routing_fields, drop_output_limits):
        assert drop({**body, "x_unknown": [{}]}) == {**drop(body), "x_unknown": [{}]}
