"""svc/inference/server_formats/request_responses.py: a chat request as a Responses request."""

from typing import Any

from svc.inference.catalog import Model
from svc.inference.server_formats.request import request_for
from tests.support.cases import each
from tests.support.sdk_types import checked_request

MODEL = Model("lab/m", "m", None, "chat", {}, api="responses")
HELLO = [{"role": "user", "content": "Hi"}]
CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}}


def request(messages: Any = HELLO, **fields: Any) -> dict[str, Any]:
    return checked_request("responses", request_for(MODEL, {"model": "m", "messages": messages, **fields}))


def test_messages_are_items_in_their_order() -> None:
    pdf = "data:application/pdf;base64,AAAA"
    parts = [
        {"type": "text", "text": "Look"},
        {"type": "image_url", "image_url": {"url": "https://a.example/b.png", "detail": "low"}},
        {"type": "file", "file": {"file_data": pdf, "filename": "a.pdf"}},
    ]
    other = {"id": "call_2", "type": "custom", "custom": {"name": "patch", "input": "x"}}
    found = request(
        [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": parts},
            {"role": "assistant", "content": "Soon", "tool_calls": [CALL, other], "reasoning_content": "Hm."},
            {"role": "tool", "tool_call_id": "call_1", "content": "1"},
            {"role": "tool", "tool_call_id": "call_2", "content": [{"type": "text", "text": "done"}]},
        ]
    )["input"]
    assert found == [
        {"type": "message", "role": "system", "content": "Be brief."},
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "Look"},
                {"type": "input_image", "image_url": "https://a.example/b.png", "detail": "low"},
                {"type": "input_file", "file_data": pdf, "filename": "a.pdf"},
            ],
        },
        {"type": "reasoning", "id": "rs_2", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]},
        {"type": "message", "role": "assistant", "content": "Soon"},
        {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": '{"x":1}'},
        {"type": "custom_tool_call", "call_id": "call_2", "name": "patch", "input": "x"},
        {"type": "function_call_output", "call_id": "call_1", "output": "1"},
        {"type": "custom_tool_call_output", "call_id": "call_2", "output": [{"type": "input_text", "text": "done"}]},
    ]


def test_sealed_reasoning_replaces_its_text() -> None:
    seal = {"type": "reasoning.encrypted", "format": "openai-responses-v1", "data": "g==", "id": "rs_9", "summary": []}
    turn = {"role": "assistant", "content": "So", "reasoning_content": "Hm.", "reasoning_details": [seal]}
    found = request([*HELLO, turn, *HELLO])["input"]
    assert found[1] == {"type": "reasoning", "id": "rs_9", "summary": [], "encrypted_content": "g=="}
    assert [item.get("type") for item in found] == ["message", "reasoning", "message", "message"]


def test_reasoning_alone_is_left_out() -> None:
    assert len(request([*HELLO, {"role": "assistant", "reasoning_content": "Hm."}])["input"]) == 1


def test_refusal_travels() -> None:
    found = request([*HELLO, {"role": "assistant", "content": "", "refusal": "No."}])["input"]
    assert found[1]["content"] == [{"type": "refusal", "refusal": "No."}]


@each(
    "fields, expected",
    [
        ({"max_tokens": 9}, {"max_output_tokens": 9}),
        ({"stop": ["x"]}, {}),
        ({"reasoning_effort": "high"}, {"reasoning": {"effort": "high"}}),
        ({"reasoning.summary": "auto"}, {"reasoning": {"summary": "auto"}}),
        ({"reasoning.summary": None}, {}),
        ({"reasoning.encrypted_content": True}, {"include": ["reasoning.encrypted_content"]}),
        ({"logprobs": True}, {"include": ["message.output_text.logprobs"]}),
        ({"top_logprobs": 2}, {"include": ["message.output_text.logprobs"], "top_logprobs": 2}),
        ({"verbosity": "low"}, {"text": {"verbosity": "low"}}),
        ({"response_format": {"type": "json_object"}}, {"text": {"format": {"type": "json_object"}}}),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {}, "strict": True}}},
            {"text": {"format": {"type": "json_schema", "name": "a", "schema": {}, "strict": True}}},
        ),
        ({"user": "u", "metadata": {"a": "b"}}, {"user": "u", "metadata": {"a": "b"}}),
        ({"temperature": 1.5, "top_p": 0.5}, {"temperature": 1.5, "top_p": 0.5}),
    ],
)
def test_fields_have_their_place(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    assert request(**fields) == {**request(), **expected}


def test_tools_and_their_choice_travel() -> None:
    grammar = {"type": "grammar", "grammar": {"syntax": "lark", "definition": "x"}}
    tools = [
        {
            "type": "function",
            "function": {"name": "f", "description": "F", "parameters": {"type": "object"}, "strict": True},
        },
        {"type": "function", "function": {"name": "g"}},
        {"type": "custom", "custom": {"name": "patch", "format": grammar}},
    ]
    found = request(tools=tools, tool_choice="required", parallel_tool_calls=False)
    nothing = {"type": "object", "properties": {}}
    assert found["tools"] == [
        {"type": "function", "name": "f", "description": "F", "parameters": {"type": "object"}, "strict": True},
        {"type": "function", "name": "g", "parameters": nothing, "strict": False},
        {"type": "custom", "name": "patch", "format": {"type": "grammar", "syntax": "lark", "definition": "x"}},
    ]
    assert (found["tool_choice"], found["parallel_tool_calls"]) == ("required", False)
    named = {"type": "function", "function": {"name": "g"}}
    assert request(tools=tools, tool_choice=named)["tool_choice"] == {"type": "function", "name": "g"}
    custom = {"type": "custom", "custom": {"name": "patch"}}
    assert request(tools=tools, tool_choice=custom)["tool_choice"] == {"type": "custom", "name": "patch"}
    allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [named]}}
    expected = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "g"}]}
    assert request(tools=tools, tool_choice=allowed)["tool_choice"] == expected
