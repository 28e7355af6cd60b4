"""svc/inference/server_formats/request.py: what of a chat request travels to servers of other formats, and what is 400."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.errors import ApiError
from svc.inference.catalog import Model
from svc.inference.chat_shape import CHAT_REQUEST
from svc.inference.server_formats.request import request_for
from tests.support.cases import each
from tests.support.sdk_types import checked_request

MODELS = {
    (api, efforts): Model("lab/m", "m", None, "chat", {}, api=api, efforts=efforts)
    for api in ("responses", "messages")
    for efforts in (None, ("low", "high"))
}
HELLO = [{"role": "user", "content": "Hi"}]
TOOL = {"type": "function", "function": {"name": "f"}}


def model(api: str) -> Model:
    return MODELS[api, None]


@each("api", ["responses", "messages"])
@each(
    "param, fields",
    [
        ("n", {"n": 2}),
        ("logit_bias", {"logit_bias": {"1": 2}}),
        ("audio", {"audio": {"voice": "alloy"}}),
        ("modalities", {"modalities": ["text", "audio"]}),
        ("functions", {"functions": [{"name": "f"}]}),
        ("web_search_options", {"web_search_options": {"search_context_size": "low"}}),
        ("tool_choice", {"tool_choice": {"type": "web_search"}, "tools": [TOOL]}),
        ("tool_choice", {"tool_choice": "required", "tools": [{"type": "web_search"}]}),
        ("tool_choice", {"tool_choice": {"type": "function", "function": {"name": "g"}}, "tools": [TOOL]}),
        ("messages[0].content[0]", {"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}),
        ("messages[0].role", {"messages": [{"role": "function", "name": "f", "content": ""}]}),
        ("messages[0].function_call", {"messages": [{"role": "assistant", "function_call": {"name": "f"}}]}),
        ("response_format", {"response_format": {"type": "grammar"}}),
    ],
)
def test_what_would_change_the_answer_is_refused_by_name(api: str, param: str, fields: dict[str, Any]) -> None:
    with pytest.raises(ApiError) as caught:
        request_for(model(api), {"model": "m", "messages": HELLO, **fields})
    assert (caught.value.status, caught.value.error["param"], caught.value.code) == (400, param, "unsupported_value")
    assert str(caught.value).startswith(param)


@each(
    "api, param, fields",
    [
        ("messages", "top_logprobs", {"logprobs": None, "top_logprobs": 2}),
        ("messages", "logprobs", {"logprobs": True}),
        ("messages", "stop", {"stop": [" "]}),
        ("messages", "response_format", {"response_format": {"type": "json_object"}}),
        ("messages", "tools[0]", {"tools": [{"type": "custom", "custom": {"name": "f"}}]}),
        ("responses", "stop", {"stop": ["x" * 600, "y" * 600]}),
        ("responses", "stop", {"stop": ["x"] * 17}),
    ],
)
def test_what_one_format_lacks_is_refused_by_name(api: str, param: str, fields: dict[str, Any]) -> None:
    with pytest.raises(ApiError) as caught:
        request_for(model(api), {"model": "m", "messages": HELLO, **fields})
    assert caught.value.error["param"] == param


def test_refusal_has_the_callers_name_of_the_field() -> None:
    names = {"stop": "stop_sequences", "messages": "input"}
    for fields, param in (({"stop": ["x" * 2000]}, "stop_sequences"), ({"messages": [{"role": "function"}]}, "input")):
        with pytest.raises(ApiError) as caught:
            request_for(model("responses"), {"model": "m", "messages": HELLO, **fields}, names)
        assert caught.value.error["param"] == param and str(caught.value).startswith(param)


@each("api", ["responses", "messages"])
def test_fields_without_a_place_are_left_out(api: str) -> None:
    left = {"seed": 1, "presence_penalty": 1, "frequency_penalty": 1, "prediction": {"type": "content"}, "n": 1}
    left |= {"logit_bias": {}, "stream_options": {"include_usage": True}, "modalities": ["text"], "store": True}
    left |= {"tools": [{"type": "web_search"}], "tool_choice": "auto", "parallel_tool_calls": True}
    plain = {"model": "m", "messages": HELLO}
    assert request_for(model(api), {**plain, **left}) == request_for(model(api), plain)


# --- any chat request

_TEXT = st.text(max_size=6)
_URLS = st.sampled_from(
    [
        "https://a.example/x.png",
        "data:image/png;base64,AAAA",
        "data:image/x;base64,AA",
        "data:,x",
        "data:application/pdf;base64,AA",
        "",
    ]
)
_MARK = st.sampled_from(
    [
        {},
        {},
        {"cache_control": {"type": "ephemeral"}},
        {"cache_control": {"type": "ephemeral", "ttl": "1h"}},
        {"cache_control": 1},
    ]
)
_PART = st.builds(
    lambda part, mark: {**part, **mark},
    st.one_of(
        st.builds(lambda text: {"type": "text", "text": text}, _TEXT),
        st.builds(lambda url: {"type": "image_url", "image_url": {"url": url, "detail": "low"}}, _URLS),
        st.builds(lambda url: {"type": "image_url", "image_url": url}, _URLS),
        st.builds(lambda url: {"type": "file", "file": {"file_data": url, "filename": "a.pdf"}}, _URLS),
        st.sampled_from([{"type": "input_audio"}, {"type": "file"}, {"type": "file", "file": {"file_id": "f"}}]),
    ),
    _MARK,
)
_CONTENT = st.none() | _TEXT | st.lists(_PART, max_size=3)
_SAID = st.none() | _TEXT | st.lists(st.builds(lambda text: {"type": "text", "text": text}, _TEXT), max_size=2)
_ID = st.sampled_from(["call_1", "call_2", "fc.3"])
_FUNCTION = st.fixed_dictionaries(
    {"name": st.sampled_from("fg")}, optional={"arguments": st.sampled_from(["", "{}", '{"x":1}', "[1", "null"])}
)
_CALL = st.fixed_dictionaries(
    {},
    optional={
        "id": _ID,
        "type": st.just("function"),
        "function": _FUNCTION,
        "custom": st.just({"name": "h", "input": "x"}),
    },
)
_SEAL = st.fixed_dictionaries(
    {
        "type": st.just("reasoning.encrypted"),
        "format": st.sampled_from(["anthropic-claude-v1", "openai-responses-v1", "x"]),
    },
    optional={
        "data": _TEXT,
        "text": _TEXT,
        "id": _TEXT,
        "summary": st.just([{"type": "summary_text", "text": "So"}]) | _TEXT,
    },
)
_MESSAGE = st.one_of(
    st.fixed_dictionaries({"role": st.sampled_from(["system", "developer"]), "content": _CONTENT}),
    st.fixed_dictionaries({"role": st.just("user"), "content": _CONTENT}, optional={"name": _TEXT}),
    st.fixed_dictionaries(
        {"role": st.just("assistant")},
        optional={
            "content": _SAID,
            "refusal": _TEXT,
            "tool_calls": st.lists(_CALL, max_size=2),
            "reasoning_content": _TEXT,
            "reasoning_details": st.lists(_SEAL, max_size=2) | _TEXT,
        },
    ),
    st.fixed_dictionaries({"role": st.just("tool"), "tool_call_id": _ID, "content": _CONTENT}),
)
_TOOL = st.one_of(
    st.builds(
        lambda function, mark: {"type": "function", "function": function, **mark},
        st.fixed_dictionaries(
            {"name": st.sampled_from("fg")},
            optional={
                "description": _TEXT,
                "parameters": st.sampled_from([{}, {"type": "object", "properties": {"x": {}}}]),
                "strict": st.booleans(),
            },
        ),
        _MARK,
    ),
    st.sampled_from([{"type": "custom", "custom": {"name": "h", "format": {"type": "text"}}}, {"type": "web_search"}]),
)
_CHOICE = st.sampled_from(
    [
        "none",
        "auto",
        "required",
        {"type": "function", "function": {"name": "f"}},
        {"type": "custom", "custom": {"name": "h"}},
        {
            "type": "allowed_tools",
            "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "f"}}]},
        },
        {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "g"}]},
        {"type": "allowed_tools"},
        {"type": 1},
    ]
)
_FORMAT = st.sampled_from(
    [
        {"type": "text"},
        {"type": "json_object"},
        {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}, "strict": True}},
        {"type": "json_schema", "json_schema": {"name": "a"}},
        {"type": "json_schema"},
    ]
)
CHAT = st.fixed_dictionaries(
    {"model": st.just("m"), "messages": st.lists(_MESSAGE, min_size=1, max_size=5)},
    optional={
        "stream": st.booleans(),
        "max_tokens": st.integers(-1, 40_000),
        "max_completion_tokens": st.none() | st.integers(-1, 40_000),
        "temperature": st.floats(0, 2),
        "top_p": st.floats(0, 1),
        "top_k": st.integers(0, 9),
        "stop": _TEXT | st.lists(_TEXT, max_size=3),
        "n": st.integers(1, 2),
        "tools": st.lists(_TOOL, max_size=3),
        "tool_choice": _CHOICE,
        "parallel_tool_calls": st.booleans(),
        "response_format": _FORMAT,
        "reasoning_effort": st.sampled_from(["none", "minimal", "low", "medium", "high", "xhigh", "max"]),
        "verbosity": st.sampled_from(["low", "medium", "high"]),
        "logprobs": st.booleans(),
        "top_logprobs": st.integers(0, 3),
        "user": _TEXT,
        "metadata": st.dictionaries(_TEXT, _TEXT | st.integers(), max_size=2),
        "prompt_cache_key": _TEXT,
        "safety_identifier": _TEXT,
        "cache_control": st.just({"type": "ephemeral"}),
    },
)


@given(CHAT, st.sampled_from(list(MODELS)), st.booleans())
def test_any_chat_request_is_refused_or_fits_the_vendors_types(chat: dict[str, Any], which: Any, sealed: bool) -> None:
    try:
        CHAT_REQUEST.check(chat, "")
        added = {"reasoning.encrypted_content": True, "reasoning.summary": "auto"} if sealed else {}
        body = request_for(MODELS[which], {**chat, **added})
    except ApiError as error:
        assert error.status == 400 and error.error["param"]
        return
    checked_request(which[0], body)
    assert body["model"] == "m" and bool(body.get("stream")) == bool(chat.get("stream"))
