"""The chunks of several model calls as one answer, and the steps that are stored."""

from types import SimpleNamespace
from typing import Any

import orjson

from svc.agents.tool_chunks import BETWEEN, STEPS_BYTES, ToolChunks, stored_steps
from svc.inference.answer.chunk_writer import ChunkWriter

HEAD = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}


def is_ours(call: dict[str, Any]) -> bool:
    return bool(call["function"]["name"] == "ours")


def made(*, apart: bool = True) -> tuple[ToolChunks, Any]:
    chunks = ToolChunks(HEAD, is_ours, apart=apart)

    def call() -> Any:
        one = SimpleNamespace(chunk_writer=ChunkWriter("x", 2, "n", {}))
        chunks.begin(one)  # type: ignore[arg-type]
        return one

    return chunks, call


def raw(reason: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


def deltas(chunks: ToolChunks, call: Any, *raws: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for one in raws:
        shown = chunks.shown(call.chunk_writer.feed(one))
        found += [chunk["choices"][0]["delta"] for chunk in shown.chunks] if shown else []  # type: ignore[index]
    call.chunk_writer.finish()
    shown = chunks.shown(call.chunk_writer.closing)
    return found + ([chunk["choices"][0]["delta"] for chunk in shown.chunks] if shown else [])  # type: ignore[index]


def function(index: int, name: str) -> dict[str, Any]:
    return {"index": index, "id": f"c{index}", "type": "function", "function": {"name": name, "arguments": "{}"}}


def test_calls_of_the_services_tools_are_hidden_and_those_of_the_caller_are_sent() -> None:
    chunks, call = made()
    found = deltas(
        chunks,
        call(),
        raw(role="assistant", tool_calls=[function(0, "ours"), function(1, "theirs")]),
        raw("tool_calls"),
    )
    sent = [entry for delta in found for entry in delta.get("tool_calls", ())]
    assert {entry["index"] for entry in sent} == {1} and sent[0]["function"]["name"] == "theirs"
    assert [delta.get("role") for delta in found].count("assistant") == 1


def test_texts_of_two_calls_stay_apart_for_the_caller_and_for_readers() -> None:
    for apart, between in ((True, BETWEEN), (False, "")):
        chunks, call = made(apart=apart)
        found = deltas(chunks, call(), raw(role="assistant", content="one"), raw("stop"))
        chunks.step("tool_call", {"id": "1"})
        found += deltas(chunks, call(), raw(role="assistant", content="two"), raw("stop"))
        assert "".join(delta.get("content", "") for delta in found) == f"one{between}two"
        assert [delta.get("role") for delta in found].count("assistant") == 1
        parts = chunks.parts_after({})
        assert "".join(part["delta"].get("content", "") for part in parts) == f"one{between}two"
        assert [part["service"] for part in parts if "service" in part] == [{"tool_call": {"id": "1"}}]


def test_reader_gets_each_part_once() -> None:
    chunks, call = made()
    sent: dict[str, Any] = {}
    deltas(chunks, call(), raw(role="assistant", content="one"), raw("stop"))
    assert [part["delta"] for part in chunks.parts_after(sent)] == [{"content": "one"}]
    assert chunks.parts_after(sent) == []
    chunks.step("tool_call", {"id": "1"})
    assert [part["service"] for part in chunks.parts_after(sent)] == [{"tool_call": {"id": "1"}}]
    assert chunks.parts_after(sent) == []


def test_answer_that_goes_on_sends_only_what_is_new_to_its_caller() -> None:
    chunks, call = made()
    chunks.go_on("before", [{"tool_call": {"id": "1"}}])
    own: dict[str, Any] = {**chunks.known}
    chunks.step("tool_result", {"id": "1"})
    found = deltas(chunks, call(), raw(role="assistant", content="after"), raw("stop"))
    assert "".join(delta.get("content", "") for delta in found) == f"{BETWEEN}after"
    mine, all_of_it = chunks.parts_after(own), chunks.parts_after({})
    assert "".join(part["delta"].get("content", "") for part in mine) == f"{BETWEEN}after"
    assert "".join(part["delta"].get("content", "") for part in all_of_it) == f"before{BETWEEN}after"
    assert len([part for part in all_of_it if "service" in part]) == 2


def test_stored_steps_are_bounded_and_their_results_short() -> None:
    pair = [{"tool_call": {"id": "1"}}, {"tool_result": {"id": "1", "result": "x" * 5_000}}]
    assert stored_steps([]) is None
    kept = orjson.loads(stored_steps(pair) or "")
    assert len(kept[1]["tool_result"]["result"]) == 4_000 and kept[0] == pair[0]
    whole = {"tool_result": {"id": "1", "result": ["x" * 3_996]}}  # 4,000 characters of JSON, with its four marks
    assert orjson.loads(stored_steps([whole]) or "") == [whole]
    many = stored_steps([{**step} for _ in range(100) for step in pair]) or ""
    assert len(many) <= STEPS_BYTES and orjson.loads(many)[0] == pair[0]
