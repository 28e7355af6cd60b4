"""svc/inference/server_formats/request_messages.py: a chat request as a Messages request."""

from typing import Any

from svc.inference.catalog import Model
from svc.inference.server_formats.request import request_for
from tests.support.cases import each
from tests.support.sdk_types import checked_request

MODEL = Model("lab/m", "m", None, "chat", {}, api="messages")
HELLO = [{"role": "user", "content": "Hi"}]
MARK = {"cache_control": {"type": "ephemeral"}}
TOOL = {"type": "function", "function": {"name": "f"}}


def request(messages: Any = HELLO, model: Model = MODEL, **fields: Any) -> dict[str, Any]:
    return checked_request("messages", request_for(model, {"model": "m", "messages": messages, **fields}))


def text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def call(call_id: str, arguments: str = "{}") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": "f", "arguments": arguments}}


def test_system_texts_are_apart_and_turns_alternate() -> None:
    found = request(
        [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hi"},
            {"role": "user", "content": "there"},
            {"role": "developer", "content": [text("Be kind.")]},
            {"role": "assistant", "content": "Hello"},
        ]
    )
    assert found["system"] == [text("Be brief."), text("Be kind.")]
    assert found["messages"] == [
        {"role": "user", "content": [text("Hi"), text("there")]},
        {"role": "assistant", "content": [text("Hello")]},
    ]


def test_results_of_a_turn_are_one_message_and_come_first() -> None:
    found = request(
        [
            *HELLO,
            {"role": "assistant", "content": None, "tool_calls": [call("a", '{"x":1}'), call("b.2", "oh")]},
            {"role": "tool", "tool_call_id": "a", "content": "1"},
            {"role": "user", "content": "wait"},
            {"role": "tool", "tool_call_id": "b.2", "content": ""},
        ]
    )["messages"]
    assert found[1]["content"] == [
        {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}},
        {"type": "tool_use", "id": "b_2", "name": "f", "input": {"arguments": "oh"}},
    ]
    assert found[2] == {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": [text("1")]},
            {"type": "tool_result", "tool_use_id": "b_2", "content": []},
            text("wait"),
        ],
    }


def test_images_and_documents_travel() -> None:
    parts = [
        {"type": "image_url", "image_url": {"url": "https://a.example/b.png"}},
        {"type": "image_url", "image_url": "data:image/jpg;base64,AAAA"},
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,BBBB", "filename": "a.pdf"}},
        {"type": "file", "file": {"file_url": "https://a.example/c.pdf"}},
    ]
    (turn,) = request([{"role": "user", "content": parts}])["messages"]
    assert turn["content"] == [
        {"type": "image", "source": {"type": "url", "url": "https://a.example/b.png"}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "AAAA"}},
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "BBBB"},
            "title": "a.pdf",
        },
        {"type": "document", "source": {"type": "url", "url": "https://a.example/c.pdf"}},
    ]


def test_sealed_thinking_comes_before_the_text() -> None:
    seals = [
        {"type": "reasoning.encrypted", "format": "anthropic-claude-v1", "data": "sig", "text": "Hm."},
        {"type": "reasoning.encrypted", "format": "anthropic-claude-v1", "data": "red"},
    ]
    turn = {"role": "assistant", "content": "So", "tool_calls": [call("a")], "reasoning_content": "Hm."}
    found = request([*HELLO, {**turn, "reasoning_details": seals}])["messages"][1]["content"]
    assert found[:3] == [
        {"type": "thinking", "thinking": "Hm.", "signature": "sig"},
        {"type": "redacted_thinking", "data": "red"},
        text("So"),
    ]
    unsealed = request([*HELLO, turn])["messages"][1]["content"]
    assert [block["type"] for block in unsealed] == ["text", "tool_use"]


def test_marks_of_the_cache_travel() -> None:
    found = request(
        [
            {"role": "system", "content": [{**text("Be brief."), **MARK}]},
            {"role": "user", "content": [{**text("Hi"), **MARK}]},
            {"role": "assistant", "content": None, "tool_calls": [{**call("a"), **MARK}]},
            {"role": "tool", "tool_call_id": "a", "content": "1", **MARK},
        ],
        tools=[{**TOOL, **MARK}],
        cache_control={"type": "ephemeral", "ttl": "1h"},
    )
    blocks = [*found["system"], *found["tools"], *(turn["content"][0] for turn in found["messages"])]
    assert [block["cache_control"] for block in blocks] == [{"type": "ephemeral"}] * 5
    assert found["cache_control"] == {"type": "ephemeral", "ttl": "1h"}


@each(
    "fields, expected",
    [
        ({}, {"max_tokens": 8192}),
        ({"max_tokens": 9}, {"max_tokens": 9}),
        ({"stop": "END"}, {"stop_sequences": ["END"]}),
        ({"temperature": 1.5}, {"temperature": 1}),
        ({"temperature": 0.5, "top_p": 0.5, "top_k": 3}, {"temperature": 0.5, "top_p": 0.5, "top_k": 3}),
        ({"user": "u", "verbosity": "low", "metadata": {"a": "b"}}, {}),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}}},
            {"output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}},
        ),
        ({"reasoning_effort": "none", "temperature": 0.5}, {"temperature": 0.5}),
        (
            {"reasoning_effort": "low", "temperature": 0.5},
            {"thinking": {"type": "enabled", "budget_tokens": 2048}},
        ),
        (
            {"reasoning_effort": "max", "max_tokens": 4096},
            {"max_tokens": 4096, "thinking": {"type": "enabled", "budget_tokens": 4095}},
        ),
        ({"reasoning_effort": "high", "max_tokens": 1024}, {"max_tokens": 1024}),
    ],
)
def test_fields_have_their_place(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    assert request(**fields) == {**request(), **expected}


def test_model_of_known_efforts_gets_the_word() -> None:
    model = Model("lab/m", "m", None, "chat", {}, api="messages", efforts=("low", "high"), max_output_tokens=500)
    found = request(model=model, reasoning_effort="xhigh", temperature=0.5)
    assert (found["thinking"], found["output_config"], found["max_tokens"]) == (
        {"type": "adaptive"},
        {"effort": "high"},
        500,
    )
    shown = request(model=model, reasoning_effort="xhigh", **{"reasoning.summary": "auto"})
    assert shown["thinking"] == {"type": "adaptive", "display": "summarized"} and "temperature" not in found
    assert "thinking" not in request(model=model, reasoning_effort="none")


def test_model_does_not_think_where_the_vendor_would_refuse_it() -> None:
    loop = [
        *HELLO,
        {"role": "assistant", "tool_calls": [call("a")]},
        {"role": "tool", "tool_call_id": "a", "content": "1"},
    ]
    assert "thinking" not in request(loop, tools=[TOOL], reasoning_effort="low")
    assert "thinking" not in request(tools=[TOOL], tool_choice="required", reasoning_effort="low")
    assert "thinking" in request(tools=[TOOL], tool_choice="auto", reasoning_effort="low")


@each(
    "choice, parallel, expected",
    [
        (None, True, None),
        ("auto", True, None),
        ("auto", False, {"type": "auto", "disable_parallel_tool_use": True}),
        ("required", False, {"type": "any", "disable_parallel_tool_use": True}),
        ("none", False, {"type": "none"}),
        ({"type": "function", "function": {"name": "g"}}, True, {"type": "tool", "name": "g"}),
        (
            {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "g"}]},
            True,
            {"type": "any"},
        ),
    ],
)
def test_tools_and_their_choice_travel(choice: Any, parallel: bool, expected: Any) -> None:
    strict = {"name": "g", "description": "G", "parameters": {"properties": {}}, "strict": True}
    tools = [TOOL, {"type": "function", "function": strict}]
    found = request(tools=tools, tool_choice=choice, parallel_tool_calls=parallel)
    schema = {"type": "object", "properties": {}}
    offered = [
        {"name": "f", "input_schema": schema},
        {"name": "g", "description": "G", "input_schema": schema, "strict": True},
    ]
    is_allowed = isinstance(choice, dict) and choice["type"] == "allowed_tools"
    assert found["tools"] == (offered[1:] if is_allowed else offered)
    assert found.get("tool_choice") == expected


def test_conversation_of_instructions_alone_is_a_question() -> None:
    found = request([{"role": "system", "content": "Say hi."}])
    assert found["messages"] == [{"role": "user", "content": [text("Say hi.")]}] and "system" not in found
