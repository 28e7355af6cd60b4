"""Answers and events that pass: the caller's bytes are the model server's, and their chunks say the same."""

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from svc.errors import UpstreamFault
from svc.inference.answer.chunk_writer import ChunkWriter
from svc.inference.answer.passed import Passed, PassedAnswer, PassedEvents
from svc.inference.server_formats.answer import reader_of
from tests.support.cases import each
from tests.support.format_events import Said, answer_of, events_of

APIS = ("responses", "messages")
SAID = Said(
    [
        {"thought": "Hm, that is hard.", "seal": "c2VhbA=="},
        {"text": "It is seven, I think."},
        {"call": "call_1", "name": "look_up", "arguments": '{"model": "a", "b": [1, 2]}'},
    ],
    finish="tool_calls",
)


FIELDS = ('"new_field" : 1.0', '"new_field":{"model":["a\\u0062"]}', '"x":"\\/"')


def written(value: Any, rnd: random.Random) -> str:
    """The JSON of an event, written in any way, with fields that no reader knows."""
    gap = rnd.choice(["", "", " ", "\n  ", "\t"])
    if isinstance(value, dict):
        members = [f"{gap}{json.dumps(name)}{gap}:{written(item, rnd)}" for name, item in value.items()]
        if rnd.random() < 0.1:
            members.append(rnd.choice(FIELDS))
        return "{" + ",".join(members) + gap + "}"
    if isinstance(value, list):
        return "[" + ",".join(written(item, rnd) for item in value) + "]"
    if isinstance(value, str) and rnd.random() < 0.5:
        return json.dumps(value, ensure_ascii=False).replace("/", "\\/").replace("a", "\\u0061")
    return json.dumps(value, ensure_ascii=rnd.random() < 0.5)


@st.composite
def streams(draw: st.DrawFn, api: str) -> list[str]:
    rnd, events = random.Random(draw(st.integers(0, 2**32))), events_of(api, SAID, "vendors")
    for _ in range(rnd.randrange(3)):
        new = {"type": rnd.choice(["ping", "response.new"]), "delta": draw(st.text('xb"\\/é😀{}', max_size=5))}
        events.insert(rnd.randrange(1, len(events) - 1), new)
    return [written(event, rnd) for event in events]


def without_model(text: str) -> Any:
    document = json.loads(text)
    for holder in (document, document.get("response"), document.get("message")):
        if isinstance(holder, dict):
            holder.pop("model", None)
    return document


def check_events(api: str, texts: list[str], reads: list[int]) -> None:
    events, passed, alone = PassedEvents(reader_of(api), "own", True), list[Passed](), reader_of(api)
    expected: list[Any] = []
    for place, text in enumerate(texts):
        document = json.loads(text)
        events.add(document["type"].encode(), text.encode(), document)
        expected += alone.chunks(document)
        if place in reads:
            passed += events.taken()
    passed += events.taken()
    blocks = b"".join(one.block for one in passed).decode().split("\n\n")[:-1]
    assert len(blocks) == len(texts)
    for block, text in zip(blocks, texts, strict=True):
        name, _, data = block.partition("\n")
        data = "\n".join(line.removeprefix("data: ") for line in data.split("\n"))
        assert name == f"event: {json.loads(text)['type']}" and without_model(data) == without_model(text)
        if "model" not in text:
            assert data == text
    writers = [ChunkWriter("id", 1, "m", {"messages": []}) for _ in range(2)]
    for writer in writers:
        writer.whole = True
    for one in passed:
        for chunk in one.chunks:
            writers[0].feed(chunk)
        if one.text:
            writers[0].grow(one.text)
    for chunk in expected:
        writers[1].feed(chunk)
    said, wanted = [writer.answer()[0] for writer in writers]
    for answer in (said, wanted):  # the text of sealed reasoning is not read twice
        answer["choices"][0]["message"].pop("reasoning_details", None)
    assert said == wanted and writers[0].text_bytes == writers[1].text_bytes


@pytest.mark.soak
@each("api", APIS)
def test_a_thousand_streams_keep_the_bytes_of_their_events(api: str) -> None:
    play(api, 1_000)


@each("api", APIS)
def test_events_keep_their_bytes(api: str) -> None:
    play(api, settings.default.max_examples)


def play(api: str, count: int) -> None:
    reads = st.lists(st.integers(0, 40), max_size=10)
    given(streams(api), reads)(settings(max_examples=count)(lambda texts, reads: check_events(api, texts, reads)))()


def test_deltas_of_a_read_are_one_passed() -> None:
    events = PassedEvents(reader_of("responses"), "own", True)
    for number, text in enumerate(["a", "b", "c"]):
        place = {"output_index": number // 2, "content_index": 0}
        document = {"type": "response.output_text.delta", "sequence_number": number, **place, "delta": text}
        events.add(b"", json.dumps(document).encode(), document)
    first, second = events.taken()
    assert first.chunks[0]["choices"][0]["delta"] == {"content": "ab"} and first.block.count(b"data: ") == 2
    assert first.document["sequence_number"] == 1 and second.chunks[0]["choices"][0]["delta"] == {"content": "c"}


@each("api", APIS)
def test_json_answer_has_the_callers_name_of_the_model(api: str) -> None:
    document = answer_of(api, SAID, "vendors")
    document["tools"] = [{"name": "model", "model": "vendors"}]
    text = json.dumps(document)
    passed = PassedEvents(reader_of(api), "own", False).whole(text.encode(), document)
    assert passed.block.decode() == text.replace('"model": "vendors"', '"model": "own"', 1)


def test_error_in_a_stream_is_a_fault() -> None:
    events = PassedEvents(reader_of("responses"), "own", True)
    document = {"type": "response.failed", "response": {"status": "failed", "error": {"message": "no"}}}
    with pytest.raises(UpstreamFault):
        events.add(b"", json.dumps(document).encode(), document)


def noted(*documents: dict[str, Any]) -> dict[str, int]:
    answer = PassedAnswer()
    for document in documents:
        answer.note(Passed(b"", [], document))
    return dict(answer.hosted_calls)


def test_hosted_calls_are_counted_from_usage_else_from_items() -> None:
    block = {"type": "content_block_start", "content_block": {"type": "server_tool_use", "name": "web_search"}}
    usage = {"type": "message_delta", "usage": {"server_tool_use": {"web_search_requests": 3, "web_fetch_requests": 0}}}
    assert noted(block) == {"web_search": 1}
    assert noted(block, usage, usage) == {"web_search": 3}
    item = {"type": "response.output_item.added", "item": {"type": "web_search_call"}}
    done = {"type": "response.output_item.done", "item": {"type": "web_search_call"}}
    whole = {"type": "response.completed", "response": {"output": [{"type": "web_search_call"}], "usage": {}}}
    assert noted(item, done, item, done, whole) == {"web_search": 2}
    calls = [{"type": "code_interpreter_call"}, {"type": "function_call"}, {"type": "image_generation_call"}]
    assert noted({"object": "response", "output": calls}) == {"code_execution": 1, "image_generation": 1}
    odd = {"server_tool_use": {"web_search_requests": "3", "odd": 4, "code_execution_requests": -1}}
    assert noted({"content": [None, 3], "usage": odd}) == {}
