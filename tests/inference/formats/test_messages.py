"""svc/inference/formats/messages.py: chat chunks of any kind as one message, or as events that obey Anthropic's
grammar.
"""

from types import SimpleNamespace
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from svc.errors import ApiError, UpstreamFault
from svc.inference.answer.chunk_writer import ChunkWriter
from svc.inference.answer.events import TextChunks
from svc.inference.formats.messages import MessagesAnswer
from tests.support.cases import each
from tests.support.messages import checked_message, checked_stream

USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
REQUEST = {"messages": [{"role": "user", "content": "hi"}]}
FAULT = ApiError("upstream_error")


def a_writer(reasoning: bool = True, stop_sequences: list[str] | None = None, usage: Any = None) -> MessagesAnswer:
    call = SimpleNamespace(
        chunk_writer=SimpleNamespace(estimated_input=lambda: 1), usage=usage or USAGE, request_id="req_1", log_fields={}
    )
    return MessagesAnswer(reasoning, stop_sequences or [], call)  # type: ignore[arg-type]


def raw(delta: dict[str, Any] | None = None, reason: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta or {}, "finish_reason": reason, **fields}]}


BROKEN = raw(error={"message": "broken"})


def streamed(
    raws: list[dict[str, Any]], writer: MessagesAnswer | None = None
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """What the stream of a model server's raw chunks comes to; a fault in them ends it."""
    writer = writer or a_writer()
    chunks = ChunkWriter("chatcmpl-1", 1, "lab/m", REQUEST)
    sent: list[bytes] = []
    try:
        for one in raws:
            sent += writer.events(chunks.feed(one))
        sent += [*writer.events(chunks.finish()), writer.end()]
    except UpstreamFault:
        sent.append(writer.fault(FAULT))
    return checked_stream(b"".join(sent))


def answered(raws: list[dict[str, Any]], writer: MessagesAnswer | None = None) -> dict[str, Any]:
    chunks = ChunkWriter("chatcmpl-1", 1, "lab/m", REQUEST)
    chunks.whole = True
    for one in raws:
        chunks.feed(one)
    return checked_message(orjson.loads((writer or a_writer()).answer(*chunks.answer())))


def call(index: int, arguments: str = "", name: str | None = None) -> dict[str, Any]:
    opening = {"id": f"call_{index}", "type": "function"} if name else {}
    function = {"arguments": arguments, **({"name": name} if name else {})}
    return {"tool_calls": [{"index": index, **opening, "function": function}]}


CASES: dict[str, tuple[list[dict[str, Any]], str, list[tuple[str, str]]]] = {
    "text": ([raw({"content": "Hel"}), raw({"content": "lo"}, "stop")], "end_turn", [("text", "Hello")]),
    "thinking": (
        [raw({"reasoning_content": "Hm"}), raw({"reasoning_content": "."}), raw({"content": "Yes"}, "stop")],
        "end_turn",
        [("thinking", "Hm."), ("text", "Yes")],
    ),
    "refusal": ([raw({"refusal": "No."}, "stop")], "refusal", [("text", "No.")]),
    "content filter": ([raw({"content": "Ah"}, "content_filter")], "refusal", [("text", "Ah")]),
    "length": ([raw({"content": "Ah"}, "length")], "max_tokens", [("text", "Ah")]),
    "empty": ([raw({"content": ""}, "stop")], "end_turn", []),
    "thinking alone": ([raw({"reasoning_content": "Hm"}, "length")], "max_tokens", [("thinking", "Hm")]),
    "one call": (
        [raw(call(0, "", "f")), raw(call(0, '{"a"')), raw(call(0, ":1}"), "tool_calls")],
        "tool_use",
        [("f", '{"a":1}')],
    ),
    "a call without arguments": ([raw(call(0, "", "f"), "tool_calls")], "tool_use", [("f", "{}")]),
    "calls in pieces, in turns": (
        [
            raw({"content": "T"}),
            raw(call(0, '{"a"', "f")),
            raw(call(1, "{", "g")),
            raw(call(0, ":1}")),
            raw(call(1, "}"), "stop"),
        ],
        "tool_use",
        [("text", "T"), ("f", '{"a":1}'), ("g", "{}")],
    ),
    "text after a call": (
        [raw(call(0, "{}", "f")), raw({"content": "T"}), raw({}, "tool_calls")],
        "tool_use",
        [("f", "{}"), ("text", "T")],
    ),
    "another choice beside": (
        [raw({"content": "Hello"}), {"choices": [{"index": 1, "delta": {"content": "x"}}]}, raw({}, "stop")],
        "end_turn",
        [("text", "Hello")],
    ),
}


def blocks_of(message: dict[str, Any]) -> list[tuple[str, str]]:
    found = []
    for block in message["content"]:
        if block["type"] == "tool_use":
            arguments = block.get("arguments", orjson.dumps(block["input"]).decode())
            found.append((block["name"], arguments))
        else:
            found.append((block["type"], block[block["type"]]))
    return found


@each("case", CASES)
def test_stream_and_json_have_the_same_content(case: str) -> None:
    raws, reason, blocks = CASES[case]
    for message in (streamed(raws)[0], answered(raws)):
        assert (message["model"], message["role"], message["type"]) == ("lab/m", "assistant", "message")
        assert message["stop_reason"] == reason and message["stop_sequence"] is None
        kinds = (
            sorted(blocks_of(message)) if case == "text after a call" else blocks_of(message)
        )  # JSON has the text first
        assert kinds == (sorted(blocks) if case == "text after a call" else blocks)


def test_thinking_is_left_out_unless_requested() -> None:
    raws = CASES["thinking"][0]
    for message in (streamed(raws, a_writer(False))[0], answered(raws, a_writer(False))):
        assert blocks_of(message) == [("text", "Yes")]


def test_usage_is_settled_without_cached_tokens() -> None:
    usage = {**USAGE, "prompt_tokens_details": {"cached_tokens": 4}}
    message, _ = streamed([raw({"content": "x"}, "stop")], a_writer(usage=usage))
    assert message["usage"] == {
        "input_tokens": 6,
        "output_tokens": 5,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 4,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
    }
    odd = {**USAGE, "prompt_tokens_details": {"cached_tokens": 400}}
    counted = answered([{**raw({"content": "x"}, "stop"), "usage": odd}])["usage"]
    assert counted["input_tokens"] == 0 and counted["cache_read_input_tokens"] == 10


@each(("given", "known"), [("END", True), ("OTHER", False), (128001, False), (["END"], False), (None, False)])
def test_stop_sequence_is_named_if_the_model_server_names_it(given: Any, known: bool) -> None:
    raws = [raw({"content": "x"}), raw({"content": "y"}, "stop", stop_reason=given)]
    for message in (
        streamed(raws, a_writer(stop_sequences=["END"]))[0],
        answered(raws, a_writer(stop_sequences=["END"])),
    ):
        expected = ("stop_sequence", "END") if known else ("end_turn", None)
        assert (message["stop_reason"], message["stop_sequence"]) == expected


@each("arguments", ["", "x", "[]", '"x"', '{"a":', '{"a":"\\ud800"}', "NaN"])
def test_invalid_arguments_are_empty_in_json_and_unchanged_in_a_stream(arguments: str) -> None:
    raws = [raw(call(0, arguments, "f"), "tool_calls")]
    writer = a_writer()
    assert blocks_of(answered(raws, writer)) == [("f", "{}")]
    assert writer.call.log_fields.get("invalid_arguments") == (1 if arguments else None)
    assert blocks_of(streamed(raws)[0]) == [("f", arguments or "{}")]


def test_arguments_of_any_size_and_depth_are_accepted() -> None:
    deep = '{"a":' * 500 + "{}" + "}" * 500
    chunks = ChunkWriter("chatcmpl-1", 1, "lab/m", REQUEST)
    chunks.whole = True
    chunks.feed(raw(call(0, deep, "f"), "stop"))
    chunks.feed(raw(call(1, '{"a":123456789012345678901234567890}', "g")))
    assert deep.encode() in a_writer().answer(*chunks.answer())


def test_error_ends_the_stream_with_one_error_event() -> None:
    message, error = streamed([raw({"content": "Hel"}), BROKEN])
    assert blocks_of(message) == [("text", "Hel")] and error == {"type": "api_error", "message": str(FAULT)}
    assert streamed([BROKEN])[1] is not None


def test_texts_of_another_choice_are_left_out() -> None:
    writer = a_writer()
    head = {"id": "1", "created": 1, "model": "m", "object": "chat.completion.chunk"}
    sent = writer.events(
        [
            {**head, "choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": None}]},
            TextChunks(["b", "\u2028"], [b'"b"', '"\u2028"'.encode()], "b\u2028", {}),
            {**head, "choices": [{"index": 1, "delta": {"content": "x"}, "finish_reason": None}]},
            TextChunks(["y"], [b'"y"'], "y", {}),
            {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        ]
    )
    assert blocks_of(checked_stream(b"".join([*sent, writer.end()]))[0]) == [("text", "ab\u2028")]


# --- any answer

PIECES = st.sampled_from(["", "a", "é🙂", "\u2028\n\n", "data: x", "{", "}", '{"a":1}', '"'])
DELTAS = st.one_of(
    st.builds(lambda piece: {"content": piece}, PIECES),
    st.builds(lambda piece: {"reasoning_content": piece}, PIECES),
    st.builds(lambda piece: {"refusal": piece}, PIECES),
    st.builds(call, st.integers(0, 2), PIECES, st.sampled_from([None, None, "f", "g"])),
    st.builds(
        lambda piece, first: {"content": piece, **first},
        PIECES,
        st.builds(call, st.integers(0, 1), PIECES, st.just("f")),
    ),
)
REASONS = st.sampled_from(["stop", "length", "tool_calls", "content_filter", None])


@given(st.lists(DELTAS, max_size=12), REASONS, st.booleans(), st.booleans())
def test_any_answer_follows_the_grammar(
    deltas: list[dict[str, Any]], reason: str | None, broken: bool, reasoning: bool
) -> None:
    raws = [raw(delta) for delta in deltas] + [raw({}, reason)]
    message, error = streamed(raws + [BROKEN] * broken, a_writer(reasoning))
    assert (error is not None) == broken
    if broken:
        return
    whole = answered(raws, a_writer(reasoning))
    assert whole["stop_reason"] == message["stop_reason"]
    for kind in ("text", "thinking"):  # a stream may have several blocks of one kind
        assert text_of(whole, kind) == text_of(message, kind)


def text_of(message: dict[str, Any], kind: str) -> str:
    texts = [block[kind] for block in message["content"] if block["type"] == kind]
    return "".join(sorted("".join(texts)))  # refusals and texts may alternate
