"""svc/inference/chat_request.py: what never travels to an operator's model server, and what a model with a price gets."""

import copy
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from svc.errors import ApiError
from svc.inference.catalog import Model, Provider
from svc.inference.chat_request import Ignored, for_fallback, for_operator, with_named_limit, without_place
from tests.support.cases import each


def model(*extra: str, price: int = 1) -> Model:
    prices = {"input_micros_per_million_tokens": price}
    return Model("lab/m", "m", Provider("lab", "http://lab"), "chat", prices, extra_fields=frozenset(extra))


FREE = model(price=0)


def left_out(body: dict[str, Any], to: Model) -> Ignored | None:
    return for_operator(body, to)[1]


def passed(body: dict[str, Any], to: Model = FREE) -> dict[str, Any]:
    return for_operator(body, to)[0]


def ignored(body: dict[str, Any], to: Model) -> tuple[str, ...]:
    return (left_out(body, to) or Ignored()).fields


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
    assert passed(body) == {
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
    assert passed(body) == {"model": "m", "extra_body": {}, "metadata": {"model": "x"}, "messages": []}


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
        "messages": [],
    }
    assert passed(body, model()) == {
        "max_tokens": 5,
        "stream_options": options,
        "extra_body": {},
        "messages": [],
    }
    assert ignored(body, model()) == (name, f"extra_body.{name}", "extra_body.stream_options")


@each("name", ["headers", "proxies", "organization", "fallbacks", "models", "provider"])
def test_common_words_are_dropped_only_at_the_top_level(name: str) -> None:
    body = {"model": "m", name: ["x"], "extra_body": {name: "x"}, "metadata": {name: "x"}}
    assert passed(body) == {"model": "m", "extra_body": {}, "metadata": {name: "x"}}


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
    assert passed(body) == body


@given(
    st.dictionaries(
        st.sampled_from(["metadata", "stop", "options", "num_predict", "api_key"]),
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
    assert passed({**body, "x_unknown": [{}]}) == {**passed(body), "x_unknown": [{}]}
    paid = model("x_unknown")
    assert passed({**body, "x_unknown": [{}]}, paid) == {**passed(body, paid), "x_unknown": [{}]}


# --- models with a price


def test_fields_that_shape_the_answer_pass_and_others_are_named() -> None:
    kept = {
        "messages": [],
        "temperature": 0.5,
        "seed": 1,
        "stop": ["x"],
        "top_k": 5,
        "min_p": 0.1,
        "n": 2,
        "repetition_penalty": 1.1,
        "guided_json": {"x": 1},
        "grammar": "root",
        "reasoning": {"effort": "low"},
        "chat_template_kwargs": {"enable_thinking": False},
        "prompt_cache_key": "k",
        "user": "u",
        "metadata": {"a": "b"},
        "prediction": {"type": "content", "content": "x"},
        "logit_bias": {"1": 1},
        "modalities": ["text"],
        "options": {"num_ctx": 8192, "top_k": 5},
    }
    others = {
        "service_tier": "priority",
        "enable_search": True,
        "chat_template": "{{ x }}",
        "best_of": 9,
        "x": 1,
        "TOP_K": 1,
    }
    nothing = {"audio": None, "web_search_options": None, "plugins": None, "unknown": None}
    found, left = for_operator({**kept, **others, **nothing}, model())
    assert found == kept and left == Ignored(tuple(others))
    assert for_operator({**kept, **others, **nothing}, FREE) == ({**kept, **others, **nothing}, None)


def test_store_is_false_and_not_named() -> None:
    assert for_operator({"messages": [], "store": True}, model()) == ({"messages": [], "store": False}, None)
    assert passed({"messages": [], "store": True}, model("store"))["store"] is True
    assert passed({"messages": [], "store": True})["store"] is True


def test_holders_that_a_proxy_spreads_are_filtered_like_the_top() -> None:
    inner = {"top_k": 5, "service_tier": "priority", "tools": [{"type": "web_search"}], "messages": [], "store": True}
    inner |= {"top_logprobs": 9_999, "n_probs": 9_999}
    body = {"messages": [], "extra_body": {**inner, "options": {"num_ctx": 1, "num_predict": 9}, "extra_body": inner}}
    found, left = for_operator(body, model())
    nested = {"top_k": 5, "options": {"num_ctx": 1}, "extra_body": {"top_k": 5}}
    assert found == {"messages": [], "extra_body": nested}
    names = [f"{at}.{name}" for at in ("extra_body", "extra_body.extra_body") for name in [*inner][1:]]
    assert (left or Ignored()).fields == (*names[:6], "extra_body.options.num_predict", *names[6:])
    for odd in ("x", ["x"], 5, True):
        assert for_operator({"messages": [], "extra_body": odd}, model()) == (
            {"messages": []},
            Ignored(("extra_body",)),
        )


def test_template_of_the_prompt_passes_nowhere() -> None:
    kwargs = {"enable_thinking": True, "chat_template": "x", "tokenize": False}
    found, left = for_operator({"messages": [], "chat_template_kwargs": kwargs, "chat_template": "x"}, model())
    assert found == {"messages": [], "chat_template_kwargs": {"enable_thinking": True}}
    names = ("chat_template_kwargs.chat_template", "chat_template_kwargs.tokenize", "chat_template")
    assert (left or Ignored()).fields == names


@each(
    ("field", "value"),
    [
        ("web_search_options", {}),
        ("plugins", [{"id": "web"}]),
        ("search_parameters", {"mode": "on"}),
        ("modalities", ["text", "audio"]),
        ("modalities", ["image"]),
        ("extra_body", {"plugins": []}),
        ("extra_body", {"modalities": 5}),
    ],
)
def test_what_demands_another_price_is_refused(field: str, value: Any) -> None:
    param = field if field != "extra_body" else f"extra_body.{next(iter(value))}"
    with pytest.raises(ApiError) as caught:
        for_operator({"messages": [], field: value}, model())
    assert (caught.value.status, caught.value.code, caught.value.error["param"]) == (400, "unsupported_value", param)
    assert passed({"messages": [], field: value}) == {"messages": [], field: value}
    name = param.removeprefix("extra_body.")
    assert passed({"messages": [], field: value}, model(name)) == {"messages": [], field: value}


FUNCTION = {"type": "function", "function": {"name": "f"}}
CUSTOM = {"type": "custom", "custom": {"name": "c"}}
SEARCH = {"type": "web_search", "search_context_size": "high"}


def allowed(mode: str, *tools: dict[str, Any]) -> dict[str, Any]:
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": list(tools)}}


@each(
    ("tools", "choice", "kept"),
    [
        ([FUNCTION, SEARCH, CUSTOM], None, {"tools": [FUNCTION, CUSTOM]}),
        ([FUNCTION, SEARCH], "auto", {"tools": [FUNCTION], "tool_choice": "auto"}),
        ([FUNCTION, SEARCH], "none", {"tools": [FUNCTION], "tool_choice": "none"}),
        ([FUNCTION, SEARCH], "required", {"tools": [FUNCTION], "tool_choice": "required"}),
        ([FUNCTION, SEARCH], FUNCTION, {"tools": [FUNCTION], "tool_choice": FUNCTION}),
        ([SEARCH, SEARCH], "auto", {}),
        ([SEARCH], None, {}),
        ([SEARCH], "none", {}),
        ([SEARCH], "required", None),
        ([SEARCH], "any", None),
        ([FUNCTION, SEARCH], {"type": "web_search"}, None),
        ([FUNCTION], {"type": "web_search"}, None),
        ([FUNCTION, SEARCH], "unknown", {"tools": [FUNCTION], "tool_choice": "unknown"}),
        (
            [FUNCTION, SEARCH],
            allowed("required", FUNCTION, SEARCH),
            {"tools": [FUNCTION], "tool_choice": allowed("required", FUNCTION)},
        ),
        ([FUNCTION, SEARCH], allowed("auto", SEARCH), {}),
        (
            [FUNCTION, SEARCH],
            {"type": "allowed_tools", "mode": "auto", "tools": [SEARCH, FUNCTION]},
            {"tools": [FUNCTION], "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [FUNCTION]}},
        ),
        ([FUNCTION, SEARCH], allowed("required", SEARCH), None),
    ],
)
def test_hosted_tools_are_left_out_and_named_or_refused_if_they_are_forced(
    tools: list[Any], choice: Any, kept: dict[str, Any] | None
) -> None:
    chosen = {} if choice is None else {"tool_choice": choice}
    body = {"messages": [], "tools": tools, **chosen, "parallel_tool_calls": False}
    assert passed(body) == passed(body, model("tools")) == body
    if kept is None:
        with pytest.raises(ApiError) as caught:
            for_operator(body, model())
        assert (caught.value.code, caught.value.error["param"]) == ("unsupported_value", "tool_choice")
        return
    found, left = for_operator(body, model())
    assert found == {"messages": [], **kept, **({"parallel_tool_calls": False} if kept else {})}
    assert left == Ignored((), ("web_search",))


def test_fields_beside_a_function_in_a_tool_are_left_out() -> None:
    tool = {**FUNCTION, "google_search": {}, "strict": True}
    found, left = for_operator({"messages": [], "tools": [tool]}, model())
    assert found["tools"] == [{**FUNCTION, "strict": True}] and left == Ignored(("tools.google_search",))


def test_extra_fields_pass_and_win_over_the_operators_routes() -> None:
    routes = {
        "provider": {"order": ["x"], "api_key": "x"},
        "route": "fallback",
        "models": ["m"],
        "service_tier": "flex",
    }
    body = {"messages": [], **routes, "api_base": "x", "extra_body": {**routes, "api_base": "x", "num_predict": 1}}
    kept = {**routes, "provider": {"order": ["x"]}}
    for to in (model(*routes), model(*routes, price=0)):
        found, left = for_operator(body, to)
        inner = {**kept, **({} if to.paid else {"num_predict": 1})}
        assert found == {"messages": [], **kept, "extra_body": inner}
        assert {"api_base", "extra_body.api_base", "provider.api_key"} <= {*(left or Ignored()).fields}
    assert passed(body, model()) == {"messages": [], "extra_body": {}}
    assert {*routes, "api_base", "extra_body.provider"} <= {*ignored(body, model())}
    limits = {"x": {"max_tokens": 9, "y": {"num_predict": 9, "z": 1}}}
    assert passed({"messages": [], **limits}, model("x")) == {"messages": [], "x": {"y": {"z": 1}}}


def test_fallback_gets_only_what_it_passes_itself() -> None:
    extra = ("service_tier", "tools", "seed")
    body = {"messages": [], "seed": 1, "service_tier": "x", "extra_body": {"service_tier": "x", "top_k": 1}}
    assert for_fallback(body, frozenset(extra)) == {"messages": [], "seed": 1, "extra_body": {"top_k": 1}}
    assert for_fallback(body, frozenset()) == body
    called = {"messages": [], "tools": [FUNCTION, SEARCH], "tool_choice": {"type": "web_search"}}
    assert for_fallback(called, frozenset(extra)) == {"messages": [], "tools": [FUNCTION], "tool_choice": "auto"}
    assert for_fallback({**called, "tool_choice": "auto"}, frozenset(extra))["tools"] == [FUNCTION]


@each(
    ("fields", "limited"),
    [
        ({"n_predict": 9}, {"max_tokens": 9}),
        ({"num_predict": 9, "max_new_tokens": 7, "max_output_tokens": 8}, {"max_tokens": 7}),
        ({"n_predict": 9, "max_tokens": None}, {"max_tokens": 9}),
        ({"n_predict": 9, "max_tokens": 5}, None),
        ({"n_predict": 9, "max_completion_tokens": 5}, None),
        *[({"n_predict": odd}, None) for odd in (-1, 0, None, "9", 9.5, True, [9])],
        ({}, None),
    ],
)
def test_another_name_of_the_limit_is_honoured_if_it_is_alone(
    fields: dict[str, Any], limited: dict[str, Any] | None
) -> None:
    body = {"messages": [], **fields}
    assert with_named_limit(body) == (body if limited is None else {"messages": [], **limited})


def test_fields_of_other_formats_without_a_place_are_named_passed_or_refused() -> None:
    fields = {"service_tier": "flex", "metadata": {"a": "b"}, "top_k": 5, "x": None}
    assert without_place(fields, model()) == ({}, ("service_tier", "metadata", "top_k"))
    assert without_place(fields, model("service_tier")) == ({"service_tier": "flex"}, ("metadata", "top_k"))
    with pytest.raises(ApiError, match="plugins"):
        without_place({"plugins": []}, model())


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["type", "service_tier", "top_k", "options", "tools", "mode"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)
NAMES = st.sampled_from(
    ["options", "extra_body", "chat_template_kwargs", "modalities", "store", "service_tier", "x", "top_k"]
)


CHOICES = st.builds(
    lambda kind, fields: {**fields, "type": kind},
    st.sampled_from(["allowed_tools", "function", "x"]) | JSONS,
    st.dictionaries(st.sampled_from(["allowed_tools", "mode", "tools", "function"]), JSONS, max_size=3),
)


@given(st.dictionaries(NAMES, JSONS, max_size=4), CHOICES | st.sampled_from(["auto", "required", "x"]))
@example({}, {"type": "allowed_tools", "tools": [{"type": []}]})
def test_any_json_is_filtered_or_refused_and_nothing_else_passes(fields: dict[str, Any], choice: Any) -> None:
    body = {"messages": [], "tools": [FUNCTION, SEARCH], "tool_choice": choice, **fields}
    before = copy.deepcopy(body)
    try:
        found, left = for_operator(body, model())
    except ApiError as error:
        assert error.code == "unsupported_value"
        return
    assert body == before and "service_tier" not in found and "x" not in found
    for name in ("options", "extra_body"):
        assert "service_tier" not in found.get(name, {}) and "tools" not in found.get(name, {})
    assert {name for name in ("x", "service_tier") if fields.get(name) is not None} <= {*(left or Ignored()).fields}
    assert for_operator(found, model())[0] == found
