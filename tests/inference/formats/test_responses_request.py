"""svc/inference/formats/responses_request.py: a Responses request is a valid chat request or is refused."""

import base64
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.errors import ApiError
from svc.inference.chat_shape import CHAT_REQUEST, check_for_builtin
from svc.inference.formats.item_memory import ItemMemory
from svc.inference.formats.request import Translated
from svc.inference.formats.responses_request import translate
from svc.inference.formats.responses_shape import RESPONSE_REQUEST
from tests.inference.test_wire_any_input import anything, mostly, some
from tests.support.cases import each

RECORDED = sorted(Path("tests/clients/recorded").glob("codex*.json"))
IMAGE = "data:image/png;base64,AAAA"
FUNCTION = {
    "type": "function",
    "name": "look_up",
    "description": "Looks",
    "parameters": {"type": "object"},
    "strict": True,
}
CUSTOM = {
    "type": "custom",
    "name": "patch",
    "description": "Patches",
    "format": {"type": "grammar", "definition": "start: x"},
}
MEMORY = ItemMemory(lambda: 0.0)
MEMORY.add(
    "user_1", {"msg_1": b'{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Kept."}]}'}
)


def translated(**body: Any) -> Translated:
    checked = RESPONSE_REQUEST.check({"input": "Hello", **body}, "")
    asked = translate(checked, account_id="user_1", memory=MEMORY, clock=lambda: 0.0)
    CHAT_REQUEST.check(asked.chat, "")
    check_for_builtin(asked.chat)
    return asked


def chat(**body: Any) -> dict[str, Any]:
    return translated(**body).chat


def refused(**body: Any) -> ApiError:
    with pytest.raises(ApiError) as found:
        translated(**body)
    return found.value


def message(role: str, *parts: dict[str, Any] | str) -> dict[str, Any]:
    texts = {"user": "input_text", "assistant": "output_text"}
    found = [{"type": texts.get(role, "input_text"), "text": part} if isinstance(part, str) else part for part in parts]
    return {"type": "message", "role": role, "content": found}


def test_the_items_of_a_turn_become_one_message() -> None:
    items = [
        {"role": "user", "content": "Fix it"},
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [],
            "content": [{"type": "reasoning_text", "text": "First look."}],
        },
        message("assistant", "I look."),
        {"type": "function_call", "call_id": "a", "name": "look_up", "arguments": "{}", "status": "completed"},
        {"type": "custom_tool_call", "call_id": "b", "name": "patch", "input": "*** é"},
        message("developer", "Be quick."),
        {"type": "function_call_output", "call_id": "a", "output": [{"type": "input_text", "text": "seen"}]},
        {"type": "custom_tool_call_output", "call_id": "b", "output": "done"},
        message("assistant", {"type": "refusal", "refusal": "No more."}),
        {"type": "item_reference", "id": "msg_1"},
    ]
    assert chat(input=items, instructions="Be good.")["messages"] == [
        {"role": "system", "content": "Be good.\n\nBe quick."},
        {"role": "user", "content": "Fix it"},
        {
            "role": "assistant",
            "content": "I look.",
            "reasoning_content": "First look.",
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "look_up", "arguments": "{}"}},
                {"id": "b", "type": "function", "function": {"name": "patch", "arguments": '{"input":"*** \\u00e9"}'}},
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "seen"},
        {"role": "tool", "tool_call_id": "b", "content": "done"},
        {"role": "assistant", "content": "Kept.", "refusal": "No more."},
    ]


def test_images_and_plain_text_files_are_sent() -> None:
    file = {
        "type": "input_file",
        "filename": "a.txt",
        "file_data": "data:text/plain;base64," + base64.b64encode(b"words").decode(),
    }
    image = {"type": "input_image", "image_url": IMAGE, "detail": "low"}
    assert chat(input=[message("user", "See", image, file)])["messages"][0]["content"] == [
        {"type": "text", "text": "See"},
        {"type": "image_url", "image_url": {"url": IMAGE, "detail": "low"}},
        {"type": "text", "text": "words"},
    ]


def test_settings_become_the_fields_of_chat() -> None:
    schema = {"type": "json_schema", "name": "answer", "schema": {"type": "object"}, "strict": True}
    asked = translated(
        stream=True,
        max_output_tokens=50,
        temperature=0.5,
        top_p=0.9,
        user="u",
        top_logprobs=2,
        text={"format": schema, "verbosity": "low"},
        reasoning={"effort": "high"},
        tools=[FUNCTION],
        tool_choice="required",
        parallel_tool_calls=False,
        service_tier="flex",
        client_metadata={"turn_id": "1"},
        store=True,
    )
    assert asked.chat == {
        "messages": [{"role": "user", "content": "Hello"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 50,
        "temperature": 0.5,
        "top_p": 0.9,
        "user": "u",
        "logprobs": True,
        "top_logprobs": 2,
        "response_format": {
            "type": "json_schema",
            "json_schema": {name: schema[name] for name in ("name", "schema", "strict")},
        },
        "verbosity": "low",
        "reasoning_effort": "high",
        "tools": [{"type": "function", "function": {name: FUNCTION[name] for name in FUNCTION if name != "type"}}],
        "tool_choice": "required",
        "parallel_tool_calls": False,
    }
    assert asked.ignored_tools == ()


def test_tools_of_every_kind_are_functions() -> None:
    namespace = {
        "type": "namespace",
        "name": "files",
        "tools": [{"type": "function", "name": "read"}, {**CUSTOM, "format": None}],
    }
    asked = translated(
        tools=[namespace, FUNCTION, CUSTOM, {"type": "web_search"}, {"type": "web_search"}, {"type": "x\r\ny: z"}],
        input=[
            {"type": "additional_tools", "role": "developer", "tools": [{"type": "custom", "name": "exec"}]},
            {"type": "custom_tool_call", "call_id": "a", "name": "patch", "namespace": "files", "input": "i"},
            {"type": "custom_tool_call_output", "call_id": "a", "output": ""},
        ],
        tool_choice={"type": "custom", "name": "patch"},
    )
    functions = [tool["function"] for tool in asked.chat["tools"]]
    assert [function["name"] for function in functions] == ["read", "files__patch", "look_up", "patch", "exec"]
    assert functions[3]["description"] == "Patches\n\nstart: x" and functions[3]["parameters"]["required"] == ["input"]
    assert asked.chat["messages"][0]["tool_calls"][0]["function"]["name"] == "files__patch"
    assert asked.chat["tool_choice"] == {"type": "function", "function": {"name": "patch"}}
    assert asked.ignored_tools == ("web_search", "x\r\ny: z")


def test_allowed_tools_limit_the_offered_tools() -> None:
    allowed = {
        "type": "allowed_tools",
        "mode": "required",
        "tools": [{"type": "function", "name": "look_up"}, {"type": "mcp"}],
    }
    asked = chat(tools=[FUNCTION, CUSTOM], tool_choice=allowed)
    assert [tool["function"]["name"] for tool in asked["tools"]] == ["look_up"] and asked["tool_choice"] == "required"
    assert "tools" not in chat(tools=[{"type": "web_search"}], tool_choice="auto", parallel_tool_calls=True)


@each(
    ("body", "param", "code"),
    [
        ({"input": []}, "input", "invalid_value"),
        ({"input": None}, "input", "missing_field"),
        ({"input": [{"type": "compaction"}]}, "input[0].type", "invalid_value"),
        ({"input": [{"type": "item_reference", "id": "msg_2"}]}, "input[0].id", "not_found"),
        ({"input": [{"id": "msg_2"}]}, "input[0].id", "not_found"),
        ({"input": [{"type": "item_reference", "id": "msg_1"}, {"id": "msg_1"}]}, "input[1].id", "invalid_value"),
        ({"input": [{"role": "tool", "content": ""}]}, "input[0].role", "invalid_value"),
        ({"input": [message("user", {"type": "input_audio"})]}, "input[0].content[0].type", "invalid_value"),
        ({"input": [message("user", {"type": "input_file"})]}, "input[0].content[0]", "invalid_value"),
        (
            {"input": [message("system", {"type": "input_file", "file_data": "data:application/pdf;base64,AA=="})]},
            "input[0].content[0]",
            "invalid_value",
        ),
        (
            {"input": [message("user", {"type": "input_file", "file_id": "file-1"})]},
            "input[0].content[0].file_id",
            "invalid_value",
        ),
        (
            {"input": [message("system", {"type": "input_image", "image_url": IMAGE})]},
            "input[0].content[0]",
            "invalid_value",
        ),
        *(
            ({"input": [message(role, {"type": "refusal", "refusal": "No."})]}, "input[0].content[0]", "invalid_value")
            for role in ("user", "system", "developer")
        ),
        *(
            (
                {"input": [message("user", {"type": "input_image", "image_url": url})]},
                "input[0].content[0].image_url",
                "invalid_value",
            )
            for url in ("http://a/b.png", "file:///etc/passwd", "")
        ),
        ({"input": [{"type": "function_call_output", "call_id": "a", "output": ""}]}, "input[0]", "invalid_value"),
        (
            {"input": [{"type": "function_call", "call_id": "a", "name": "f", "arguments": ""}]},
            "input[0]",
            "invalid_value",
        ),
        (
            {"tools": [{"type": "web_search"}], "tool_choice": {"type": "web_search"}},
            "tool_choice",
            "unsupported_value",
        ),
        ({"tools": [{"type": "web_search"}], "tool_choice": "required"}, "tool_choice", "unsupported_value"),
        (
            {"tools": [FUNCTION], "tool_choice": {"type": "function", "name": "other"}},
            "tool_choice",
            "unsupported_value",
        ),
        ({"tools": [FUNCTION, FUNCTION]}, "tools[1].name", "invalid_value"),
        ({"previous_response_id": "resp_1"}, "previous_response_id", "previous_response_not_found"),
        ({"conversation": "conv_1"}, "conversation", "unsupported_value"),
        ({"background": True}, "background", "unsupported_value"),
        ({"prompt": {"id": "p"}}, "prompt", "unsupported_value"),
        ({"metadata": {str(number): "" for number in range(17)}}, "metadata", "invalid_value"),
        ({"metadata": {"a": 1}}, "metadata.a", "invalid_value"),
        ({"max_output_tokens": 0}, "max_output_tokens", "invalid_value"),
    ],
)
def test_unsupported_field_is_refused_by_name(body: dict[str, Any], param: str, code: str) -> None:
    error = refused(**body)
    assert (error.error["param"], error.code) == (param, code) and error.status in (400, 404)


@each("path", RECORDED)
def test_requests_of_codex_become_chat_requests(path: Path) -> None:
    body = orjson.loads(path.read_bytes())["body"]
    assert {message["role"] for message in chat(**body)["messages"][1:]} <= {"user", "assistant", "tool"}


def test_ten_thousand_texts_of_one_turn_take_linear_time() -> None:
    asked = chat(input=[message("assistant", "x" * 1600) for _ in range(10_000)])
    assert len(asked["messages"]) == 1 and len(asked["messages"][0]["content"]) == 10_000 * 1601 - 1


texts = st.sampled_from(["", "a", "é\u2028"])
ids = st.sampled_from(["a", "b"])
names = st.sampled_from(["look_up", "patch"])
parts = st.lists(
    st.one_of(
        some(type=st.sampled_from(["input_text", "output_text"]), text=texts),
        some(type=st.just("refusal"), refusal=texts),
        some(type=st.just("input_image"), image_url=st.just(IMAGE), detail=st.just("auto")),
        some(type=st.just("input_file"), file_data=st.sampled_from(["data:text/plain;base64,YQ==", "x"])),
    ),
    max_size=3,
)
content = st.one_of(texts, parts)
items = st.lists(
    mostly(
        st.one_of(
            some(
                type=st.just("message"),
                role=st.sampled_from(["user", "assistant", "system", "developer"]),
                content=content,
            ),
            st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": texts}),
            st.fixed_dictionaries(
                {"type": st.just("function_call"), "call_id": ids, "name": names, "arguments": st.just("{}")}
            ),
            st.fixed_dictionaries({"type": st.just("custom_tool_call"), "call_id": ids, "name": names, "input": texts}),
            st.fixed_dictionaries(
                {
                    "type": st.sampled_from(["function_call_output", "custom_tool_call_output"]),
                    "call_id": ids,
                    "output": content,
                }
            ),
            some(type=st.just("reasoning"), summary=st.just([]), content=parts),
            st.fixed_dictionaries({"type": st.just("item_reference"), "id": st.sampled_from(["msg_1", "msg_2"])}),
        )
    ),
    max_size=6,
)
tools = st.lists(mostly(st.sampled_from([FUNCTION, CUSTOM, {"type": "web_search"}])), max_size=3)
choices = st.sampled_from(["none", "auto", "required", {"type": "function", "name": "look_up"}, {"type": "web_search"}])


@given(items=mostly(items), tools=mostly(tools), choice=mostly(choices), extra=some(text=anything, metadata=anything))
def test_any_items_are_a_chat_request_or_a_refusal(items: Any, tools: Any, choice: Any, extra: dict[str, Any]) -> None:
    try:
        translated(**{**extra, "input": items, "tools": tools, "tool_choice": choice})
    except ApiError as error:
        assert error.status in (400, 404)
