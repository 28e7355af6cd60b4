"""svc/inference/formats/messages.py: a Messages request as a chat request."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.errors import ApiError
from svc.inference.catalog import Model
from svc.inference.chat_shape import CHAT_REQUEST
from svc.inference.formats.messages import counted_tokens, translate
from svc.inference.formats.messages_shape import COUNT_REQUEST, MESSAGES_REQUEST
from svc.inference.formats.request import Translated
from svc.inference.images import check_documents
from svc.inference.tokens import estimated_input_tokens, worst_input_tokens
from tests.support.cases import each

RECORDED = Path(__file__).parent.parent.parent / "clients" / "recorded"
HI = {"role": "user", "content": "hi"}
FUNCTION = {"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}
SEARCH = {"type": "web_search_20250305", "name": "web_search"}
CALL = {"type": "tool_use", "id": "a", "name": "look", "input": {"at": 2**70}}
RESULT = {"type": "tool_result", "tool_use_id": "a", "content": "sun"}
PIXEL = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
PIXEL_PART = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def translated(messages: list[dict[str, Any]] | None = None, **fields: Any) -> Translated:
    body = {"max_tokens": 10, "messages": messages or [HI], **fields}
    found = translate(MESSAGES_REQUEST.check(body, ""))
    assert CHAT_REQUEST.check(found.chat, "")
    return found


def chat(*messages: dict[str, Any], **fields: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = translated([*messages], **fields).chat["messages"]
    return found


def user(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": [*blocks]}


def assistant(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": [*blocks]}


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def thinking(value: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": value, "signature": ""}


def test_system_texts_from_everywhere_are_the_first_message() -> None:
    system = [text("x-anthropic-billing-header: cc_version=2"), text("Be brief."), text("")]
    later = {"role": "system", "content": [text("In English."), text("x-anthropic-billing-header: 2")]}
    assert chat(HI, later, {"role": "system", "content": "Now."}, system=system) == [
        {"role": "system", "content": "Be brief.\n\nIn English.\n\nNow."},
        HI,
    ]
    assert chat(HI, system="x-anthropic-billing-header: my own prompt")[0]["content"].startswith("x-anthropic")


def test_texts_are_one_string_and_images_are_parts() -> None:
    assert chat(user(text("a"), text(""), text("b"))) == [{"role": "user", "content": "a\nb"}]
    linked = {"type": "image", "source": {"type": "url", "url": "HTTPS://example.com/a.png"}}
    assert chat(user(text("a"), PIXEL, linked)) == [
        {
            "role": "user",
            "content": [
                text("a"),
                PIXEL_PART,
                {"type": "image_url", "image_url": {"url": "HTTPS://example.com/a.png"}},
            ],
        }
    ]
    assert chat(user()) == chat(user(text(""))) == [{"role": "user", "content": ""}]
    odd = {**text("a"), "content": [1, {"type": "tool_reference"}], "source": None}  # fields that other blocks have
    assert chat(user(odd)) == [{"role": "user", "content": "a"}]


def test_a_document_of_plain_text_is_text() -> None:
    plain = {
        "type": "document",
        "title": "T",
        "context": "C",
        "source": {"type": "text", "media_type": "text/plain", "data": "D"},
    }
    blocks = {"type": "document", "source": {"type": "content", "content": [text("E"), PIXEL]}}
    one = {"type": "document", "source": {"type": "content", "content": "F"}}
    assert chat(user(plain, one)) == [{"role": "user", "content": "T\nC\nD\nF"}]
    assert chat(user(blocks)) == [{"role": "user", "content": [text("E"), PIXEL_PART]}]


def test_a_turn_of_the_assistant_is_one_message() -> None:
    redacted = {"type": "redacted_thinking", "data": "x"}
    turn = assistant(thinking("Hm."), redacted, text("I look."), CALL, {**CALL, "id": "b", "input": {}})
    result = {**RESULT, "tool_use_id": "b", "is_error": True, "content": [text("no"), text("sight")]}
    assert chat(HI, turn, user(text("Hurry"), result, RESULT)) == [
        HI,
        {
            "role": "assistant",
            "content": "I look.",
            "reasoning_content": "Hm.",
            "tool_calls": [
                {
                    "id": "a",
                    "type": "function",
                    "function": {"name": "look", "arguments": '{"at":1180591620717411303424}'},
                },
                {"id": "b", "type": "function", "function": {"name": "look", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "b", "content": "The tool failed:\nno\nsight"},
        {"role": "tool", "tool_call_id": "a", "content": "sun"},
        {"role": "user", "content": "Hurry"},
    ]


def test_results_of_any_kind_are_text_and_their_images_follow() -> None:
    for content, expected in ((None, ""), ("", ""), ([], ""), ([text("x")], "x")):
        assert chat(HI, assistant(CALL), user({**RESULT, "content": content}))[-1]["content"] == expected
    *_, result, images = chat(HI, assistant(CALL), user({**RESULT, "content": [text("seen"), PIXEL]}))
    assert result["content"] == "seen" and images == {"role": "user", "content": [PIXEL_PART]}


def test_a_prefill_is_passed_on() -> None:
    assert chat(HI, {"role": "assistant", "content": "The answer is ("})[-1] == {
        "role": "assistant",
        "content": "The answer is (",
    }
    assert chat(HI, assistant(text("")), assistant()) == [HI]


def test_the_fields_become_those_of_chat() -> None:
    schema = {"type": "object"}
    found = translated(
        model="lab/m",
        temperature=0.5,
        top_p=0.9,
        top_k=5,
        stream=True,
        stop_sequences=["END"],
        thinking={"type": "adaptive"},
    )
    assert found.chat == {
        "model": "lab/m",
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 5,
        "stream": True,
        "stop": ["END"],
        "max_tokens": 10,
        "messages": [HI],
    }
    assert translated(output_config={"effort": "low"}).chat["reasoning_effort"] == "low"
    form = {"type": "json_schema", "schema": schema}
    for found in (translated(output_format=form), translated(output_config={"format": form})):
        wanted = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": True}}
        assert found.chat["response_format"] == wanted
    assert translated(stop_sequences=[], thinking=None, output_config={}).chat == {"max_tokens": 10, "messages": [HI]}


def test_tools_become_functions_and_hosted_tools_are_named() -> None:
    found = translated(tools=[SEARCH, {**FUNCTION, "type": "custom", "strict": True}, {"type": "bash_20250124"}])
    function = {"name": "look", "description": "Looks.", "parameters": {"type": "object"}, "strict": True}
    assert found.chat["tools"] == [{"type": "function", "function": function}] and "tool_choice" not in found.chat
    assert found.ignored_tools == ("web_search", "bash_20250124")
    assert "tools" not in translated(tools=[SEARCH], tool_choice={"type": "auto"}).chat


@each(
    ("choice", "expected"),
    [
        ({"type": "auto"}, "auto"),
        ({"type": "any"}, "required"),
        ({"type": "none"}, "none"),
        ({"type": "tool", "name": "look"}, {"type": "function", "function": {"name": "look"}}),
    ],
)
def test_every_tool_choice_has_its_form(choice: dict[str, Any], expected: Any) -> None:
    found = translated(tools=[FUNCTION], tool_choice=choice).chat
    assert found["tool_choice"] == expected and "parallel_tool_calls" not in found
    alone = {**choice, "disable_parallel_tool_use": True}
    assert translated(tools=[FUNCTION], tool_choice=alone).chat["parallel_tool_calls"] is False


@each("tools", [[SEARCH], [], None])
@each("choice", [{"type": "any"}, {"type": "tool", "name": "web_search"}])
def test_a_choice_that_demands_a_hosted_tool_is_400(tools: Any, choice: dict[str, Any]) -> None:
    with pytest.raises(ApiError) as refused:
        translated(tools=tools, tool_choice=choice)
    assert refused.value.status == 400 and refused.value.error["param"].startswith("tool_choice")


def test_two_tools_with_one_name_are_400() -> None:
    tool = {"name": "f", "input_schema": {}}
    with pytest.raises(ApiError) as error:
        translated(tools=[tool, {"type": "bash_20250124", "name": "f"}, tool])
    assert error.value.error["param"] == "tools[2].name"


def test_a_deferred_tool_is_offered_once_a_result_refers_to_it() -> None:
    tools = [
        FUNCTION,
        {**FUNCTION, "name": "fetch", "defer_loading": True},
        {**FUNCTION, "name": "none", "defer_loading": True},
    ]
    assert [tool["function"]["name"] for tool in translated(tools=tools).chat["tools"]] == ["look"]
    forced = translated(tools=tools, tool_choice={"type": "tool", "name": "none"}).chat["tools"]
    assert [tool["function"]["name"] for tool in forced] == ["look", "none"]
    reference = {"type": "tool_reference", "tool_name": "fetch"}
    found = translated([HI, assistant(CALL), user({**RESULT, "content": [reference]})], tools=tools).chat
    assert [tool["function"]["name"] for tool in found["tools"]] == ["look", "fetch"]
    assert found["messages"][-1]["content"] == "The tool fetch is available now."


@each(
    ("messages", "param"),
    [
        ([user(RESULT)], "messages[0].content[0].tool_use_id"),
        ([HI, assistant(CALL)], "messages[1].content[0]"),
        ([HI, assistant(CALL), HI], "messages[1].content[0]"),
        ([HI, assistant(CALL), user(RESULT, RESULT)], "messages[2].content[1].tool_use_id"),
        ([HI, assistant(CALL, CALL), user(RESULT)], "messages[1].content[1]"),
        ([{"role": "assistant", "content": ""}], "messages"),
        (
            [user({"type": "image", "source": {"type": "url", "url": "file:///etc/passwd"}})],
            "messages[0].content[0].source.url",
        ),
        ([user(*[text("x")] * 9_000), user(*[text("x")] * 1_001)], "messages"),
        ([HI, assistant(CALL), user({**RESULT, "content": [text("x")] * 10_000})], "messages"),
    ],
)
def test_unsupported_request_is_400(messages: list[dict[str, Any]], param: str) -> None:
    with pytest.raises(ApiError) as refused:
        translated(messages)
    assert refused.value.status == 400 and refused.value.error["param"] == param


def test_tokens_are_counted_by_bytes_frames_and_images() -> None:
    body = {"messages": [{"role": "user", "content": [text("x" * 400), PIXEL]}], "system": "y" * 40}
    assert counted_tokens(COUNT_REQUEST.check(body, "")) == 110 + 2 * 16 + 1024
    with_tool = counted_tokens(COUNT_REQUEST.check({**body, "tools": [FUNCTION]}, ""))
    assert 16 < with_tool - 1166 < 16 + 40


# --- what real clients send


@each("name", ["claude-code-first", "claude-code-system-messages-last"])
def test_claude_codes_requests_are_translated(name: str) -> None:
    body = json.loads((RECORDED / f"{name}.json").read_text())["body"]
    found = translate(MESSAGES_REQUEST.check(body, ""))
    messages = CHAT_REQUEST.check(found.chat, "")["messages"]
    assert [message["role"] for message in messages].count("system") == 1 and messages[0]["role"] == "system"
    assert "billing" not in messages[0]["content"] and not found.ignored_tools
    names = [tool["function"]["name"] for tool in found.chat["tools"]]
    assert "Read" in names and "DeferredToolPlaceholder" not in names


def test_claude_codes_images_errors_tools_and_pdf_are_translated() -> None:
    body = json.loads((RECORDED / "claude-code-results-last.json").read_text())["body"]
    check_documents(Model("lab/m", "m", None, "chat", {}), body["messages"], "messages")
    found = translate(MESSAGES_REQUEST.check(body, ""))
    assert {"WebFetch", "WebSearch"} <= {tool["function"]["name"] for tool in found.chat["tools"]}
    results = [message["content"] for message in found.chat["messages"] if message["role"] == "tool"]
    assert results[2].startswith("The tool failed:\nFile does not exist.")
    assert "(193 bytes)\n[A document, which this model cannot read.]\n<system-reminder>" in results[-1]


# --- any sequence of blocks

TEXTS = st.sampled_from(["", "x", "é🙂\u2028", "x-anthropic-billing-header: 1"])
IDS = st.sampled_from(["a", "b", "c", ""])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3), lambda inner: st.lists(inner, max_size=2)
)
SOURCES = st.sampled_from(
    [
        PIXEL["source"],
        {"type": "url", "url": "https://example.com/a.png"},
        {"type": "url", "url": "ftp://x"},
        {"type": "text", "media_type": "text/plain", "data": "D"},
        {"type": "content", "content": [text("E"), PIXEL]},
        {"type": "base64", "media_type": "application/pdf", "data": "x"},
        {"type": "file", "file_id": "f"},
        {},
    ]
)
PLAIN = st.one_of(
    st.builds(text, TEXTS),
    st.builds(lambda source: {"type": "image", "source": source}, SOURCES),
    st.builds(lambda source, title: {"type": "document", "source": source, "title": title}, SOURCES, st.none() | TEXTS),
)
BLOCKS = st.one_of(
    PLAIN,
    st.builds(thinking, TEXTS),
    st.just({"type": "redacted_thinking", "data": "x"}),
    st.builds(lambda call, value: {**CALL, "id": call, "input": {"at": value}}, IDS, JSON),
    st.builds(
        lambda call, content, failed: {**RESULT, "tool_use_id": call, "content": content, "is_error": failed},
        IDS,
        st.none() | TEXTS | st.lists(PLAIN, max_size=3),
        st.none() | st.booleans(),
    ),
    st.just({"type": "tool_reference", "tool_name": "look"}),
    st.just({"type": "search_result"}),
    JSON,
)
MESSAGES = st.builds(
    lambda role, content: {"role": role, "content": content},
    st.sampled_from(["user", "user", "assistant", "assistant", "system", "tool"]),
    TEXTS | st.lists(BLOCKS, max_size=4) | JSON,
)


@st.composite
def conversations(draw: st.DrawFn) -> list[Any]:
    """Any messages, or turns that are right but for what `BLOCKS` put between them."""
    if draw(st.booleans()):
        return draw(st.lists(MESSAGES, max_size=6))
    found: list[Any] = []
    for number in range(draw(st.integers(1, 4))):
        calls = [{**CALL, "id": f"{number}{place}"} for place in range(draw(st.integers(0, 3)))]
        results = draw(st.permutations([{**RESULT, "tool_use_id": call["id"]} for call in calls]))
        said = [text("x")] if draw(st.booleans()) else []
        found += [user(text("go"), *draw(st.lists(PLAIN, max_size=1))), assistant(*said, *calls), user(*results, *said)]
    return found


@given(conversations(), st.booleans())
def test_any_blocks_are_a_valid_chat_request_or_400(messages: list[Any], count: bool) -> None:
    body = {"max_tokens": 10, "messages": messages}
    try:
        found = translate(MESSAGES_REQUEST.check(body, ""))
    except ApiError as error:
        assert error.status == 400 and error.error["param"]
        return
    CHAT_REQUEST.check(found.chat, "")
    unanswered: set[str] = set()
    for message in found.chat["messages"]:
        if message["role"] == "tool":
            unanswered.remove(message["tool_call_id"])
        else:
            assert not unanswered, "results stand directly behind their calls"
        assert (
            message["role"] != "assistant"
            or message["content"]
            or message.get("tool_calls")
            or message["reasoning_content"]
        )
        unanswered |= {call["id"] for call in message.get("tool_calls", ())}
    assert not unanswered and counted_tokens(COUNT_REQUEST.check(body, "")) >= estimated_input_tokens(found.chat)
    assert worst_input_tokens(found.chat, 0) >= 16
