"""svc/inference/server_formats/answer.py: answers of Responses and Messages servers as chunks of chat."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.errors import UpstreamFault
from svc.inference.answer.chunk_writer import ChunkWriter
from svc.inference.answer.events import blocks
from svc.inference.server_formats.answer import reader_of
from tests.support.cases import each
from tests.support.format_events import Said, answer_of, events_of
from tests.support.format_server import cassette, cassettes

FORMATS = ("responses", "messages")
REQUEST = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}


def streamed(api: str, events: list[dict[str, Any]], stops: list[str] | None = None) -> dict[str, Any]:
    """Return the answer of a stream as the service stores it. The chunks that a caller gets have the same text."""
    reader, writer = reader_of(api, stops or []), ChunkWriter("id", 1, "m", REQUEST)
    writer.whole = True
    live, sent = ChunkWriter("id", 1, "m", REQUEST), b""
    for event in events:
        if not reader.ended:
            for chunk in reader.chunks(event):
                writer.feed(chunk)
                sent += b"".join(blocks(live.feed(chunk)))
    if not reader.ended:
        raise UpstreamFault("cut", "")
    answer = writer.answer()[0]
    sent += b"".join(blocks(live.finish()))
    deltas = [json.loads(block[6:])["choices"][0]["delta"] for block in sent.split(b"\n\n")[:-1]]
    assert "".join(delta.get("content") or "" for delta in deltas) == (answer["choices"][0]["message"]["content"] or "")
    return answer


def whole(api: str, document: dict[str, Any], stops: list[str] | None = None) -> dict[str, Any]:
    writer = ChunkWriter("id", 1, "m", REQUEST)
    writer.whole = True
    writer.feed(reader_of(api, stops or []).whole(document))
    return writer.answer()[0]


def essence(answer: dict[str, Any]) -> dict[str, Any]:
    """Return what an answer says in all formats: ids and seals are the server's."""
    (choice,), usage = answer["choices"], answer["usage"]
    message = choice["message"]
    functions = [call["function"] for call in message.get("tool_calls") or ()]
    calls = [(function["name"], json.loads(function["arguments"])) for function in functions]
    details = usage.get("prompt_tokens_details") or {}
    return {
        "text": message.get("content") or "",
        "reasoning": message.get("reasoning_content") or "",
        "calls": calls,
        "finish": choice["finish_reason"],
        "tokens": (usage["prompt_tokens"], usage["completion_tokens"], details.get("cached_tokens", 0)),
    }


PLAYED = [(name, api) for name in cassettes() for api in FORMATS if "answer" in cassette(name).get(api, {})]
SAME = ("cached", "length", "parallel_tools", "reasoning", "reasoning_tools", "structured", "text")


@each("name, api", [(name, api) for name, api in PLAYED if name in SAME])
def test_recorded_answers_say_the_same_in_all_formats(name: str, api: str) -> None:
    played, expected = cassette(name)[api], essence(cassette(name)["chat"]["answer"])
    assert essence(whole(api, played["answer"])) == expected
    assert essence(streamed(api, played["events"])) == expected


@each("api", FORMATS)
def test_sealed_reasoning_is_kept_whole(api: str) -> None:
    played = cassette("reasoning_tools")[api]
    for answer in (whole(api, played["answer"]), streamed(api, played["events"])):
        (seal,) = answer["choices"][0]["message"]["reasoning_details"]
        if api == "messages":
            block = played["answer"]["content"][0]
            assert (seal["format"], seal["text"], seal["data"]) == (
                "anthropic-claude-v1",
                block["thinking"],
                block["signature"],
            )
        else:
            item = played["answer"]["output"][0]
            assert (seal["format"], seal["id"], seal["data"], seal["summary"]) == (
                "openai-responses-v1",
                item["id"],
                item["encrypted_content"],
                item["summary"],
            )


def test_redacted_thinking_is_a_seal_without_text() -> None:
    events = cassette("redacted")["messages"]["events"]
    details = streamed("messages", events)["choices"][0]["message"]["reasoning_details"]
    redacted = [block["data"] for block in cassette("redacted")["messages"]["answer"]["content"] if "data" in block]
    assert redacted and [seal["data"] for seal in details if "text" not in seal] == redacted


@each(
    "api, ending, reason",
    [
        ("messages", {"stop_reason": "end_turn"}, "stop"),
        ("messages", {"stop_reason": "pause_turn"}, "stop"),
        ("messages", {"stop_reason": "max_tokens"}, "length"),
        ("messages", {"stop_reason": "model_context_window_exceeded"}, "length"),
        ("messages", {"stop_reason": "refusal"}, "content_filter"),
        ("responses", {"status": "completed"}, "stop"),
        ("responses", {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "length"),
        ("responses", {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "content_filter"),
    ],
)
def test_each_ending_has_its_finish_reason(api: str, ending: dict[str, Any], reason: str) -> None:
    answer = {**answer_of(api, Said([{"text": "So"}]), "m"), **ending}
    assert essence(whole(api, answer))["finish"] == reason
    events = events_of(api, Said([{"text": "So"}]), "m")
    last = {"type": f"response.{ending.get('status')}", "response": answer}
    events = [*events[:-1], last] if api == "responses" else events
    events = [{**event, "delta": ending} if event["type"] == "message_delta" else event for event in events]
    assert essence(streamed(api, events))["finish"] == reason


def test_refusal_of_messages_has_its_explanation_as_the_refusal() -> None:
    ending = {"stop_reason": "refusal", "stop_details": {"type": "refusal", "explanation": "I must not."}}
    answer = {**answer_of("messages", Said([{"text": "So"}]), "m"), **ending}
    message = whole("messages", answer)["choices"][0]["message"]
    assert (message["content"], message["refusal"]) == ("So", "I must not.")
    events = events_of("messages", Said([{"text": "So"}]), "m")
    events = [{**event, "delta": ending} if event["type"] == "message_delta" else event for event in events]
    assert streamed("messages", events)["choices"][0]["message"]["refusal"] == "I must not."


def test_refusal_of_responses_is_a_refusal() -> None:
    said = Said([{"refusal": "I must not."}])
    for answer in (
        whole("responses", answer_of("responses", said, "m")),
        streamed("responses", events_of("responses", said, "m")),
    ):
        assert answer["choices"][0]["message"]["refusal"] == "I must not."


def test_stop_sequence_of_messages_is_named() -> None:
    played = cassette("stop_sequence")["messages"]
    for answer in (whole("messages", played["answer"]), streamed("messages", played["events"])):
        assert answer["choices"][0]["stop_reason"] == played["answer"]["stop_sequence"]


@given(
    st.text("abEND", max_size=30),
    st.lists(st.text("abEND", min_size=1, max_size=4), min_size=1, max_size=3),
    st.integers(1, 4),
)
def test_text_of_responses_ends_at_the_first_stop_sequence(text: str, stops: list[str], piece: int) -> None:
    said = Said([{"text": text or "x"}], piece=piece)
    text = text or "x"
    ends = [(place + len(stop), place) for stop in stops if (place := text.find(stop)) >= 0]
    expected = text[: min(ends)[1]] if ends else text
    for answer in (
        whole("responses", answer_of("responses", said, "m"), stops),
        streamed("responses", events_of("responses", said, "m"), stops),
    ):
        assert essence(answer)["text"] == expected
        assert (answer["choices"][0].get("stop_reason") is not None) == bool(ends)


def test_log_probabilities_of_responses_have_the_bytes_of_chat() -> None:
    entry = {"token": "Zü", "logprob": -0.5, "top_logprobs": [{"token": "Zü", "logprob": -0.5}]}
    event = {"type": "response.output_text.delta", "output_index": 0, "delta": "Zü", "logprobs": [entry]}
    (chunk,) = reader_of("responses").chunks(event)
    bytes_ = [*"Zü".encode()]
    top = [{"token": "Zü", "logprob": -0.5, "bytes": bytes_}]
    expected = {"token": "Zü", "logprob": -0.5, "bytes": bytes_, "top_logprobs": top}
    assert chunk["choices"][0]["logprobs"] == {"content": [expected]}


@each(
    "api, events, expected",
    [
        (
            "responses",
            [
                {
                    "type": "response.output_item.done",
                    "output_index": 0,
                    "item": {"type": "message", "content": [{"type": "output_text", "text": "Hi"}]},
                }
            ],
            "Hi",
        ),
        ("responses", [], "all"),
        (
            "messages",
            [{"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Hi"}}],
            "Hi",
        ),
    ],
)
def test_text_without_deltas_is_read_where_it_comes(api: str, events: list[dict[str, Any]], expected: str) -> None:
    all_items = [{"type": "message", "content": [{"type": "output_text", "text": expected}]}]
    ends = {
        "responses": [{"type": "response.completed", "response": {"status": "completed", "output": all_items}}],
        "messages": [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, {"type": "message_stop"}],
    }
    assert essence(streamed(api, events + ends[api]))["text"] == expected


def test_input_of_a_call_without_deltas_is_read() -> None:
    block = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"x": 1}}
    events = [
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_stop", "index": 0},
    ]
    ends = [{"type": "message_delta", "delta": {"stop_reason": "tool_use"}}, {"type": "message_stop"}]
    assert essence(streamed("messages", events + ends))["calls"] == [("f", {"x": 1})]


@each(
    "api, event, status",
    [
        ("messages", {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, 503),
        ("messages", {"type": "error", "error": {"type": "rate_limit_error", "message": "Slow"}}, 429),
        ("messages", {"type": "error", "error": {"type": "api_error", "message": "Oh"}}, 502),
        ("messages", {"type": "error", "error": {"type": "invalid_request_error", "message": "No"}}, 400),
        ("responses", {"type": "error", "code": "rate_limit_exceeded", "message": "Slow", "param": None}, 429),
        (
            "responses",
            {
                "type": "response.failed",
                "response": {"status": "failed", "error": {"code": "server_error", "message": "Oh"}},
            },
            502,
        ),
        (
            "responses",
            {
                "type": "response.failed",
                "response": {
                    "status": "failed",
                    "error": {
                        "code": "context_length_exceeded",
                        "message": "Your input exceeds the context window of this model.",
                    },
                },
            },
            400,
        ),
        ("responses", {"type": "response.failed", "response": {"status": "failed"}}, 502),
        ("responses", {"type": "response.failed"}, 502),
    ],
)
def test_error_in_an_event_is_a_fault_with_its_status(api: str, event: dict[str, Any], status: int) -> None:
    with pytest.raises(UpstreamFault) as caught:
        reader_of(api).chunks(event)
    assert caught.value.status == status


@each("api", FORMATS)
def test_usage_comes_with_the_first_text(api: str) -> None:
    """An error before it can be retried: no chunk was read."""
    events = events_of(api, Said([{"text": "So"}], input_tokens=9), "m")
    reader = reader_of(api)
    first = next(chunks for event in events if (chunks := reader.chunks(event)))
    assert first[0]["choices"][0]["delta"] == {"content": "So"}
    assert ("usage" in first[0]) == (api == "messages")


# --- whatever a server sends

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_WORDS = st.sampled_from(
    [
        "text",
        "thinking",
        "redacted_thinking",
        "tool_use",
        "message",
        "reasoning",
        "function_call",
        "custom_tool_call",
        "summary_text",
        "f",
        "end_turn",
        "completed",
        "incomplete",
        "failed",
        "Hi",
        '{"x":1}',
    ]
)
_VALUE = _JSON | _WORDS | st.integers(0, 2)
_NAMES = [
    "type",
    "text",
    "thinking",
    "signature",
    "data",
    "id",
    "name",
    "input",
    "content",
    "summary",
    "encrypted_content",
    "call_id",
    "arguments",
    "delta",
    "index",
    "output_index",
    "item",
    "response",
    "content_block",
    "usage",
    "input_tokens",
    "output_tokens",
    "stop_reason",
    "status",
    "output",
    "error",
    "message",
    "code",
    "partial_json",
    "input_tokens_details",
    "output_tokens_details",
    "cached_tokens",
    "cache_read_input_tokens",
    "logprobs",
    "token",
    "summary_index",
    "stop_details",
    "explanation",
]
_OBJECT = st.recursive(
    st.dictionaries(st.sampled_from(_NAMES), _VALUE, max_size=6),
    lambda inner: st.dictionaries(st.sampled_from(_NAMES), inner | _VALUE | st.lists(inner, max_size=2), max_size=6),
    max_leaves=12,
)
_KINDS = {
    api: sorted({event["type"] for name in cassettes() for event in cassette(name).get(api, {}).get("events", ())})
    for api in FORMATS
}


def changed(event: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return an event with some values changed, also inner ones."""
    kept = {name: changes.get(name, value) for name, value in event.items()}
    return {name: changed(value, changes) if isinstance(value, dict) else value for name, value in kept.items()}


@given(st.data(), st.sampled_from(PLAYED))
def test_any_events_give_an_answer_or_a_fault(data: st.DataObject, played: tuple[str, str]) -> None:
    name, api = played
    events = list(cassette(name)[api].get("events", ()))
    for _ in range(data.draw(st.integers(0, 3))):
        place = data.draw(st.integers(0, len(events)))
        kind = data.draw(st.sampled_from(_KINDS[api]))
        new = data.draw(_OBJECT)
        events.insert(place, {**new, "type": kind})
        if place + 1 < len(events):
            events[place + 1] = changed(
                events[place + 1], data.draw(st.dictionaries(st.sampled_from(_NAMES[1:]), _VALUE, max_size=2))
            )
    events = events[: data.draw(st.integers(0, len(events)))]
    try:
        answer = streamed(api, events)
    except UpstreamFault:
        return
    assert answer["choices"] and answer["usage"]["total_tokens"] >= 0


@given(_OBJECT, st.sampled_from(FORMATS))
def test_any_document_gives_an_answer_or_a_fault(document: dict[str, Any], api: str) -> None:
    for content in ({}, {"output": [document]}, {"content": [document]}):
        try:
            answer = whole(api, {**document, **content})
        except UpstreamFault:
            continue
        assert answer["choices"] and answer["usage"]["total_tokens"] >= 0


def test_items_without_a_place_stay_apart() -> None:
    """llama.cpp sends no `output_index`, and names a call by its `call_id` alone. Here arguments come whole."""
    said = Said(
        [
            {"thought": "Hm.", "seal": ""},
            {"text": "Both."},
            {"call": "fc_a", "name": "look", "arguments": '{"a": 1}'},
            {"call": "fc_b", "name": "look", "arguments": '{"b": 2}'},
        ],
        finish="tool_calls",
    )
    expected = essence(streamed("responses", events_of("responses", said, "m")))
    calls = {f"fc_1_{number}": part["call"] for number, part in enumerate(said.parts) if "call" in part}
    events = []
    for event in events_of("responses", said, "m"):
        if event["type"].startswith("response.function_call_arguments"):
            continue
        event = {name: value for name, value in event.items() if name not in ("output_index", "sequence_number")}
        if event.get("item", {}).get("id") in calls:
            event["item"] = {name: value for name, value in event["item"].items() if name != "id"}
        events.append(event)
    assert essence(streamed("responses", events)) == expected
    assert [name for name, _ in expected["calls"]] == ["look", "look"]


def test_stop_sequence_is_found_in_an_item_without_deltas() -> None:
    item = {"type": "message", "content": [{"type": "output_text", "text": "one STOP two"}]}
    reader = reader_of("responses", ["STOP"])
    text, end = reader.chunks({"type": "response.output_item.done", "output_index": 0, "item": item})
    assert text["choices"][0]["delta"] == {"content": "one "} and reader.ended
    assert (end["choices"][0]["finish_reason"], end["choices"][0]["stop_reason"]) == ("stop", "STOP")
