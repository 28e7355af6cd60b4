"""An independent reading of OpenAI's format, against which tests hold what our writer writes, and short names for its
inputs.
"""

from collections.abc import Iterable
from typing import Any

import orjson

from svc.inference.answer import chunk_writer, events

REQUEST = {"messages": [{"role": "user", "content": "Say hello, please."}]}  # 18 bytes: 5 tokens
HEAD = {"id": "chatcmpl-x", "created": 1_790_000_000, "model": "ollama/llama3.2"}
REASONS = {"stop", "length", "tool_calls", "content_filter", "function_call"}


def writer(include_usage: bool = False, *, whole: bool = False) -> chunk_writer.ChunkWriter:
    made = chunk_writer.ChunkWriter(**HEAD, request={**REQUEST, "stream_options": {"include_usage": include_usage}})
    made.whole = whole
    return made


def streamed(*raws: dict[str, Any], include_usage: bool = False) -> list[dict[str, Any]]:
    """All chunks of a stream, validated against the grammar."""
    stream = writer(include_usage)
    chunks = [chunk for raw in raws for chunk in stream.feed(raw)] + stream.finish()
    check_grammar(chunks, include_usage, complete=True)
    return chunks


def as_sent(chunks: Iterable[events.Chunk | events.TextChunks]) -> list[dict[str, Any]]:
    """The chunks that a caller reads."""
    written = b"".join(events.blocks([*chunks])).split(b"\n\n")
    return [orjson.loads(block.removeprefix(b"data: ")) for block in written if block]


def delta(index: int = 0, finish_reason: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": index, "delta": fields, "finish_reason": finish_reason}]}


def calls(*entries: dict[str, Any]) -> dict[str, Any]:
    return delta(tool_calls=list(entries))


def answer(*raws: dict[str, Any], by: chunk_writer.ChunkWriter | None = None) -> dict[str, Any]:
    """All of it as one answer, an ordinary one as it is asked for first (svc/inference/chat_call.py)."""
    whole = by or writer()
    whole.whole = True
    if len(raws) == 1 and (plain := whole.plain_answer(raws[0])) is not None:
        return plain[0]
    for raw in raws:
        whole.feed(raw)
    return whole.answer()[0]


def message_answer(message: Any, by: chunk_writer.ChunkWriter | None = None, **choice: Any) -> dict[str, Any]:
    return answer({"choices": [{"index": 0, "message": message, "finish_reason": "stop", **choice}]}, by=by)


def check_grammar(chunks: list[dict[str, Any]], include_usage: bool, *, complete: bool) -> None:
    by_choice: dict[int, list[dict[str, Any]]] = {}
    for number, chunk in enumerate(chunks):
        assert {name: chunk[name] for name in HEAD} == HEAD
        assert chunk["object"] == "chat.completion.chunk"
        assert "error" not in chunk
        block = events.event(chunk)
        assert block.startswith(b"data: {")
        assert block.endswith(b"}\n\n")
        assert block.count(b"\n") == 2
        assert block.isascii()
        assert b"\r" not in block
        assert orjson.loads(block[6:]) == orjson.loads(orjson.dumps(chunk))
        if not chunk["choices"]:
            assert include_usage
            assert complete
            assert number == len(chunks) - 1
            check_usage(chunk["usage"])
        else:
            assert ("usage" in chunk) is include_usage
            assert chunk.get("usage") is None
        for choice in chunk["choices"]:
            assert {"index", "delta", "finish_reason", "logprobs"} <= choice.keys()
            assert {"message", "text", "usage"}.isdisjoint(choice)
            by_choice.setdefault(choice["index"], []).append(choice)
    if complete:
        assert by_choice
        assert (not chunks[-1]["choices"]) is include_usage
    for choices in by_choice.values():
        check_choice(choices, complete)


def check_choice(choices: list[dict[str, Any]], complete: bool) -> None:
    assert choices[0]["delta"] in ({"role": "assistant", "content": ""}, {"role": "assistant", "content": None})
    assert not any("role" in choice["delta"] for choice in choices[1:])
    open_ones = choices[:-1] if complete else choices
    assert all(choice["finish_reason"] is None for choice in open_ones)
    assert all(choice["delta"] for choice in open_ones)
    if complete:
        assert choices[-1]["delta"] == {}
        assert choices[-1]["finish_reason"] in REASONS
    ids: list[str] = []
    for choice in choices[1:]:
        for name in ("content", "refusal"):
            assert isinstance(choice["delta"].get(name, "x"), str)
            assert choice["delta"].get(name, "x") != ""
        for call in choice["delta"].get("tool_calls", []):
            if "id" in call:
                assert call["index"] == len(ids)
                assert call["type"] in ("function", "custom")
                body = call[call["type"]]
                assert isinstance(body["name"], str)
                assert body["name"]
                assert "" in (body.get("arguments"), body.get("input"))
                assert isinstance(call["id"], str)
                assert call["id"]
                ids.append(call["id"])
            else:
                assert 0 <= call["index"] < len(ids)
                assert "type" not in call
                body = call.get("function") or call.get("custom") or {"arguments": "only a field that nobody knows"}
                assert len(body) == 1
                assert all(isinstance(piece, str) and piece for piece in body.values())
    assert len(set(ids)) == len(ids)
    if complete and ids:
        assert choices[-1]["finish_reason"] in ("tool_calls", "length", "content_filter")
    elif complete:
        assert choices[-1]["finish_reason"] != "tool_calls"


def check_usage(usage: dict[str, Any]) -> None:
    counts = [usage[name] for name in ("prompt_tokens", "completion_tokens", "total_tokens")]
    assert all(type(count) is int and count >= 0 for count in counts)
    assert counts[0] + counts[1] == counts[2]
    assert all(value is not None for value in usage.values())
    for name in ("prompt_tokens_details", "completion_tokens_details"):
        assert all(type(count) is int for count in usage.get(name, {}).values())


def assembled(chunks: list[dict[str, Any]], index: int = 0) -> dict[str, Any]:
    """The message as a client puts it together."""
    content: str | None = None
    found: list[dict[str, Any]] = []
    for choice in (choice for chunk in chunks for choice in chunk["choices"] if choice["index"] == index):
        if choice["delta"].get("content") is not None:
            content = (content or "") + choice["delta"]["content"]
        for call in choice["delta"].get("tool_calls", []):
            if "id" in call:
                found.append({"id": call["id"], "name": call["function"]["name"], "arguments": ""})
            else:
                found[call["index"]]["arguments"] += call["function"]["arguments"]
    return {"content": content, "calls": found}


def text_of(chunks: list[dict[str, Any]], name: str = "content") -> str:
    return "".join(choice["delta"].get(name) or "" for chunk in chunks for choice in chunk["choices"])


def reasons(chunks: list[dict[str, Any]]) -> list[str]:
    return [choice["finish_reason"] for chunk in chunks for choice in chunk["choices"] if choice["finish_reason"]]


def check_completion(whole: dict[str, Any]) -> None:
    assert {name: whole[name] for name in HEAD} == HEAD
    assert whole["object"] == "chat.completion"
    assert "error" not in whole
    check_usage(whole["usage"])
    assert whole["choices"]
    for choice in whole["choices"]:
        assert {"index", "message", "finish_reason", "logprobs"} <= choice.keys()
        assert "delta" not in choice
        assert choice["finish_reason"] in REASONS
        message = choice["message"]
        assert message["role"] == "assistant"
        assert message["refusal"] is None or isinstance(message["refusal"], str)
        has_calls = "tool_calls" in message or "function_call" in message
        assert isinstance(message["content"], str) or (message["content"] is None and has_calls)
        assert message.get("tool_calls", [0])
        for call in message.get("tool_calls", []):
            assert isinstance(call["id"], str)
            assert "index" not in call
            assert all(isinstance(value, str) for value in call[call["type"]].values())
