"""svc/inference/formats/responses_answer.py: one response and its events, for every kind of chat answer."""

from typing import Any

import orjson
from hypothesis import example, given
from hypothesis import strategies as st

from svc.errors import ApiError, UpstreamFault
from svc.inference.answer.events import Chunk, TextChunks
from svc.inference.formats.item_memory import ItemMemory
from svc.inference.formats.responses_answer import ResponseWriter
from svc.inference.formats.responses_request import translate
from svc.inference.formats.responses_shape import RESPONSE_REQUEST
from tests.inference.test_wire_any_input import raws as raw_chunk
from tests.support.cases import each
from tests.support.responses import checked_events, checked_response
from tests.support.wire_grammar import calls, delta, writer

TOOLS = [
    {"type": "function", "name": "look_up", "parameters": {"type": "object"}},
    {"type": "custom", "name": "patch", "format": {"type": "grammar", "syntax": "lark", "definition": "start: x"}},
    {
        "type": "namespace",
        "name": "files",
        "tools": [{"type": "function", "name": "read"}, {"type": "custom", "name": "patch"}],
    },
]


def new_writer(**fields: Any) -> ResponseWriter:
    body = RESPONSE_REQUEST.check({"input": "x", "tools": TOOLS, **fields}, "")
    made = translate(body, account_id="user_1", memory=ItemMemory(lambda: 0.0), clock=lambda: 1_790_000_005.0)
    response = made.writer(None)  # type: ignore[arg-type]  # it asks the call nothing
    assert isinstance(response, ResponseWriter)
    return response


def streamed(*raws: Any, fault: ApiError | None = None, **fields: Any) -> list[dict[str, Any]]:
    """The events for a model server's chunks; with `fault`, for a stream that breaks off after them."""
    response, chat = new_writer(**fields), writer(include_usage=True)
    content = b"".join(part for raw in raws for part in response.events(chat.feed(raw)))
    if fault is not None:
        return checked_events(content + response.fault(fault))
    content += b"".join(response.events(chat.finish()))
    return checked_events(content + response.end())


def kinds(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"].removeprefix("response.") for event in events]


def call_of(name: str, arguments: str, index: int = 0) -> dict[str, Any]:
    return {
        "index": index,
        "id": f"call_{index}",
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


def test_text_is_a_message_with_one_part() -> None:
    events = streamed(delta(content="Hel"), delta(content="lo\u2028🙂"), delta(finish_reason="stop"))
    assert kinds(events) == [
        *(
            "created",
            "in_progress",
            "output_item.added",
            "content_part.added",
            "output_text.delta",
            "output_text.delta",
        ),
        *("output_text.done", "content_part.done", "output_item.done", "completed"),
    ]
    assert events[-1]["response"]["output"][0]["content"] == [
        {"type": "output_text", "text": "Hello\u2028🙂", "annotations": [], "logprobs": []}
    ]


@each("summary", [None, "auto"])
def test_reasoning_comes_first_and_may_be_its_own_summary(summary: str | None) -> None:
    raws = [delta(reasoning_content="Think"), delta(content="Hi"), delta(finish_reason="stop")]
    events = streamed(*raws, reasoning={"effort": "low", "summary": summary})
    reasoning, message = events[-1]["response"]["output"]
    assert reasoning["content"] == [{"type": "reasoning_text", "text": "Think"}] and message["type"] == "message"
    assert reasoning["summary"] == ([{"type": "summary_text", "text": "Think"}] if summary else [])
    assert (
        kinds(events).count("reasoning_summary_text.delta")
        == kinds(events).count("reasoning_summary_part.done")
        == bool(summary)
    )
    assert events[-1]["response"]["reasoning"] == {"effort": "low", "summary": summary}


def test_calls_return_under_their_original_names() -> None:
    made = [
        call_of("look_up", '{"a": 1}'),
        call_of("patch", '{"input": "é\\n"}', 1),
        call_of("files__patch", "no JSON", 2),
    ]
    events = streamed(*(calls(one) for one in [*made, call_of("read", "{}", 3)]), delta(finish_reason="tool_calls"))
    found = [
        {name: value for name, value in item.items() if name not in ("id", "status", "call_id")}
        for item in events[-1]["response"]["output"]
    ]
    assert found == [
        {"type": "function_call", "name": "look_up", "arguments": '{"a": 1}'},
        {"type": "custom_tool_call", "name": "patch", "input": "é\n"},
        {"type": "custom_tool_call", "name": "patch", "namespace": "files", "input": "no JSON"},
        {"type": "function_call", "name": "read", "namespace": "files", "arguments": "{}"},
    ]
    assert [item["id"].split("_")[0] for item in events[-1]["response"]["output"]] == ["fc", "ctc", "ctc", "fc"]


def test_alternating_parts_of_calls_do_not_overlap() -> None:
    events = streamed(
        calls(call_of("look_up", '{"a"'), call_of("read", "{", 1)),
        calls({"index": 0, "function": {"arguments": ": 1}"}}, {"index": 1, "function": {"arguments": "}"}}),
        delta(content="Done."),
        delta(finish_reason="tool_calls"),
    )
    assert [item.get("arguments") for item in events[-1]["response"]["output"]] == ['{"a": 1}', "{}", None]


@each(("reason", "told"), [("length", "max_output_tokens"), ("content_filter", "content_filter")])
def test_truncated_answer_is_incomplete(reason: str, told: str) -> None:
    raws = [delta(reasoning_content="Hm."), delta(content="Hel"), delta(finish_reason=reason)]
    whole = writer()
    whole.whole = True
    for raw in raws:
        whole.feed(raw)
    for response in (streamed(*raws)[-1]["response"], orjson.loads(new_writer().answer(*whole.answer()))):
        assert response["status"] == "incomplete" and response["incomplete_details"] == {"reason": told}
        assert [item["status"] for item in response["output"]] == ["completed", "incomplete"]


def test_whole_numbers_are_echoed_as_integers() -> None:
    counts = {"max_output_tokens": 6.0, "max_tool_calls": 6.0, "top_logprobs": 6.0}
    response = streamed(delta(content="x", finish_reason="stop"), **counts)[-1]["response"]
    assert orjson.dumps([response[name] for name in counts]) == b"[6,6,6]"


def test_an_empty_answer_has_no_items() -> None:
    assert kinds(streamed(delta(content=""), delta(finish_reason="stop"))) == ["created", "in_progress", "completed"]


def test_a_refusal_is_a_part_of_a_message() -> None:
    response = streamed(delta(refusal="No."), delta(finish_reason="stop"))[-1]["response"]
    assert response["output"][0]["content"] == [{"type": "refusal", "refusal": "No."}]


@each(("code", "told"), [("upstream_error", "server_error"), ("rate_limit_exceeded", "rate_limit_exceeded")])
def test_error_leaves_the_open_item_unfinished(code: str, told: str) -> None:
    events = streamed(calls(call_of("look_up", '{"a": 1')), fault=ApiError(code))
    assert "output_item.done" not in kinds(events) and events[-1]["response"]["error"]["code"] == told
    (item,) = events[-1]["response"]["output"]
    assert item["status"] == "incomplete" and item["arguments"] == '{"a": 1'


def test_logprobs_are_those_of_openai() -> None:
    top = {"token": "H", "logprob": -0.5, "bytes": [72]}
    logprobs = {
        "content": [{"token": "é", "logprob": -1, "bytes": None, "top_logprobs": [top]}, {"token": 1}, None, "x"]
    }
    logprobs["content"] += [{"token": "a", "logprob": 10**18}, {"token": "a", "logprob": None}]
    raw = {"choices": [{"index": 0, "delta": {"content": "é"}, "logprobs": logprobs, "finish_reason": None}]}
    events = streamed(raw, delta(finish_reason="stop"), top_logprobs=1)
    expected = [{"token": "é", "logprob": -1, "bytes": [195, 169], "top_logprobs": [top]}]
    assert [event["logprobs"] for event in events if event["type"] == "response.output_text.delta"] == [expected]
    assert events[-1]["response"]["output"][0]["content"][0]["logprobs"] == expected


def test_usage_has_the_details_of_the_model_server() -> None:
    usage = {
        "prompt_tokens": 9,
        "completion_tokens": 4,
        "total_tokens": 13,
        "prompt_tokens_details": {"cached_tokens": 8},
    }
    usage["completion_tokens_details"] = {"reasoning_tokens": 3}
    assert streamed(delta(content="x", finish_reason="stop") | {"usage": usage})[-1]["response"]["usage"] == {
        "input_tokens": 9,
        "input_tokens_details": {"cached_tokens": 8, "cache_write_tokens": 0},
        "output_tokens": 4,
        "output_tokens_details": {"reasoning_tokens": 3},
        "total_tokens": 13,
    }


def said(response: dict[str, Any]) -> dict[str, str]:
    """Return all text of each kind of item and part, and all calls.

    Refusals are apart: a chat message does not keep the order of its content and its refusal.
    """
    found: dict[str, str] = {}
    for item in response["output"]:
        parts = item.get("content", [item])
        for part in parts:
            field = next(name for name in ("text", "refusal", "input", "arguments") if name in part)
            kind = f"{item['type']} {field} {item.get('name')}"
            found[kind] = found.get(kind, "") + part[field]
    return found


@given(raws=st.lists(raw_chunk, max_size=6), cut=st.booleans())
@example(raws=[{"choices": [{"logprobs": {"content": True}, "delta": {"content": "0"}}]}], cut=False)
def test_any_chat_stream_gives_a_stream_of_the_grammar(raws: list[Any], cut: bool) -> None:
    response, chat = new_writer(reasoning={"summary": "auto"}), writer(include_usage=True)
    content, fault = b"", ApiError("upstream_error") if cut else None
    chunks: list[Chunk | TextChunks] = []
    try:
        for raw in raws:
            chunks += (fed := chat.feed(raw))
            content += b"".join(response.events(fed))
        if not cut:
            content += b"".join(response.events(chat.finish()))
    except UpstreamFault:
        fault = ApiError("upstream_error")
    if content:
        checked_events(content + (response.fault(fault) if fault else response.end()))


def reasoning_values(raw: dict[str, Any]) -> list[Any]:
    choices = raw.get("choices") if isinstance(raw.get("choices"), list) else []
    said = [one.get(name) for one in choices if isinstance(one, dict) for name in ("delta", "message")]
    values = [one.get(name) for one in said if isinstance(one, dict) for name in ("reasoning_content", "reasoning")]
    return [value for value in values if value is not None]


@given(raws=st.lists(raw_chunk, max_size=6))
@example(raws=[{"choices": [{"delta": {"refusal": "1"}}]}, {"choices": [{"delta": {"content": "0"}}]}])
def test_a_whole_answer_is_the_stream_s_response(raws: list[Any]) -> None:
    try:
        whole = writer()
        whole.whole = True
        for raw in raws:
            whole.feed(raw)
        completion, written = whole.answer()
        last = streamed(*raws)[-1]["response"]
    except UpstreamFault:
        return
    # A field of two types is joined only in the message; streams pass on each of its values.
    mixed = any(not isinstance(value, str) for raw in raws for value in reasoning_values(raw))
    if len(completion["choices"]) > 1 or mixed:
        return
    response = checked_response(orjson.loads(new_writer().answer(completion, written)))
    assert response["status"] == last["status"] and response["usage"] == last["usage"]
    assert said(response) == said(last)
