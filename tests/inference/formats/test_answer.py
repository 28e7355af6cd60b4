"""svc/inference/formats/answer.py: blocks follow one another and never overlap."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import orjson

from svc.inference.answer.events import TextChunks
from svc.inference.answer.raw_answer import RawAnswer
from svc.inference.catalog import Provider
from svc.inference.formats.answer import AnswerWriter, Block, BlockWriter
from svc.inference.formats.responses_answer import ResponseWriter
from tests.support.cases import each
from tests.support.wire_grammar import delta, writer

HEAD = {"id": "chatcmpl-1", "created": 1, "model": "m"}


class Recorder(BlockWriter):
    """Writes what happens as text."""

    def begun(self) -> None:
        self.parts.append(b"begin;")

    def opened(self, block: Block) -> None:
        self.parts.append(f"open {block.kind} {block.index};".encode())

    def deltas(self, block: Block, tokens: Sequence[bytes], logprobs: list[Any] | None = None) -> None:
        self.parts += [b"%b;" % token for token in tokens]

    def closed(self, block: Block) -> None:
        self.parts.append(f"close {block.index} {block.text};".encode())

    def whole(self) -> dict[str, Any]:
        return {"usage": self.usage, "blocks": [[block.kind, block.text] for block in self.blocks]}


def chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    return {**HEAD, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}]}


def call(index: int, arguments: str = "", **fields: Any) -> dict[str, Any]:
    body = {"name": "f", "arguments": arguments} if fields else {"arguments": arguments}
    return {"tool_calls": [{"index": index, **fields, "function": body}]}


def written(*deltas: dict[str, Any]) -> str:
    writer = Recorder(None)  # type: ignore[arg-type]  # it asks the call nothing
    parts = [part for delta in deltas for part in writer.events([chunk(delta)])]
    return b"".join([*parts, *writer.events([chunk({}, "stop")])]).decode()


def test_each_kind_of_text_is_a_separate_block() -> None:
    text = written({"role": "assistant", "content": ""}, {"reasoning_content": "R"}, {"content": "A"}, {"content": "b"})
    assert text == 'begin;open reasoning 0;"R";close 0 R;open text 1;"A";"b";close 1 Ab;'
    assert written({"refusal": "No"}) == 'begin;open refusal 0;"No";close 0 No;'
    assert written({"reasoning": "R"}, {"reasoning_details": [{}]}) == 'begin;open reasoning 0;"R";close 0 R;'
    assert written({"role": "assistant", "content": ""}) == "begin;"


def test_texts_of_one_read_are_deltas_of_the_open_block() -> None:
    writer = Recorder(None)  # type: ignore[arg-type]  # it asks the call nothing
    together = TextChunks(["a", "é"], [b'"a"', '"é"'.encode()], "aé", {})
    assert b"".join(writer.events([chunk({"content": "x"}), together])) == b'begin;open text 0;"x";"a";"\\u00e9";'


def test_call_ends_when_its_arguments_are_complete() -> None:
    text = written(call(0, id="a"), call(0, '{"x"'), call(0, ":1}"), call(1, id="b"), call(1, "{}"))
    assert text == 'begin;open call 0;"{\\"x\\"";":1}";close 0 {"x":1};open call 1;"{}";close 1 {};'


def test_parts_of_other_calls_wait_while_a_call_is_open() -> None:
    text = written(call(0, '{"x"', id="a"), call(1, "{", id="b"), {"content": "T"}, call(0, ":1}"), call(1, "}"))
    assert text == (
        'begin;open call 0;"{\\"x\\"";":1}";close 0 {"x":1};open call 1;"{}";close 1 {};open text 2;"T";close 2 T;'
    )


@each("reasoning", [True, False])
def test_a_whole_answer_has_the_same_blocks(reasoning: bool) -> None:
    writer = Recorder(None)  # type: ignore[arg-type]  # it asks the call nothing
    writer.reasoning = reasoning
    message = {"role": "assistant", "reasoning_content": "R", "content": "é", "refusal": None}
    message["tool_calls"] = [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "tool_calls"}
    answer = writer.answer({**HEAD, "choices": [choice], "usage": {"total_tokens": 1}}, b"")
    expected = [["reasoning", "R"], ["text", "é"], ["call", "{}"]][not reasoning :]
    assert orjson.loads(answer) == {"usage": {"total_tokens": 1}, "blocks": expected}
    assert writer.parts == [] and writer.finish_reason == "tool_calls"


class Framed:
    framed = True


def cpu_seconds(make: Callable[[], AnswerWriter], reads: list[bytes]) -> float:
    """What reading, repairing and writing a stream takes."""
    raw, chat, answer = RawAnswer(Framed(), Provider("lab", "")), writer(True), make()  # type: ignore[arg-type]
    began = time.process_time()
    for data in reads:
        answer.events([chunk for one in raw._read(data) for chunk in chat.feed(one)])
    return time.process_time() - began


def test_an_event_costs_little_more_than_a_chunk_of_chat() -> None:
    """Measured at 1.5 times without, and at 1.1 times with the server and its TLS around it."""
    events = [b"data: %b\n\n" % orjson.dumps(delta(content=f" word{number}")) for number in range(8000)]
    reads = [b"".join(events[start : start + 8]) for start in range(0, len(events), 8)]

    def responses() -> ResponseWriter:
        return ResponseWriter(
            None,  # type: ignore[arg-type]  # it asks the call nothing
            echo={},
            tools={},
            summary=False,
            clock=lambda: 0.0,
            remember=lambda items: None,
        )

    ratios = [cpu_seconds(responses, reads) / cpu_seconds(AnswerWriter, reads) for _ in range(7)]
    assert min(ratios) < 2.0, ratios
