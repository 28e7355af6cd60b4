"""The answer side that all formats share: the chunks of a chat call as blocks, one after another.

chat chunks -> BlockWriter.events() -> opened(), deltas(), closed() of the format -> bytes
            -> end() after the settlement, or fault()
one chat completion -> answer()
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from svc.errors import ApiError
from svc.inference.answer import events, said
from svc.inference.answer.events import Chunk, TextChunks
from svc.inference.chat_call import ChatCall
from svc.inference.formats.hosted_search import HostedSearch, entries
from svc.inference.server_formats.seals import FIELD, Seal, known
from svc.json_text import AT_ONCE_BYTES


def typed_event(kind: str, **fields: Any) -> bytes:
    """Return an event whose name is also the `type` of its data."""
    return b"event: %b\n" % kind.encode() + events.event({"type": kind, **fields})


class AnswerWriter:
    """Writes the answer of one chat call: here as chat completions.

    `ping` breaks a silence in a stream. An answer with more than `long_bytes` of text is written off the event loop.
    """

    ping = b": ping\n\n"
    long_bytes = math.inf
    search: HostedSearch | None = None  # the hosted one, if the service runs it
    call: Any

    def answer(self, completion: dict[str, Any], written: bytes) -> bytes:
        """Return the JSON answer for a `chat.completion`, which is `written` in the format of chat."""
        return written

    def events(self, chunks: Sequence[Chunk | TextChunks]) -> list[bytes]:
        """Return the events for the chunks of one read, joined up to a size that lets the event loop run in between."""
        return events.blocks(chunks)

    def end(self) -> bytes:
        """Return the last events of a complete answer, after its settlement."""
        return events.DONE

    def fault(self, error: ApiError) -> bytes:
        """Return the last events of a stream that ends early."""
        return events.event(error.body()) + events.DONE

    def late_fault(self, error: ApiError, events: int) -> bytes:
        """Return the last events for a repeat of the stream that ends early, while this one may continue."""
        return self.fault(error)


@dataclass(slots=True)
class Block:
    """One part of an answer: `kind` is `reasoning`, `text`, `refusal`, `call` or `search`.

    A call has `call_id` and `name`. A search is a hosted one, and has the `result` of its step, too.
    `tokens` are the parts of its text, or of the call's arguments, as JSON strings in ASCII. Reasoning may have a
    `seal`, and then no text. `item` is for the format.
    """

    kind: str
    index: int
    tokens: list[bytes] = field(default_factory=list)
    logprobs: list[Any] = field(default_factory=list)
    call_id: str = ""
    name: str = ""
    item: dict[str, Any] = field(default_factory=dict)
    seal: Seal | None = None
    result: dict[str, Any] = field(default_factory=dict)
    annotations: list[dict[str, Any]] = field(default_factory=list)
    found: dict[int, dict[str, Any]] = field(default_factory=dict)  # by searches before it: what it can cite

    @property
    def is_sealed(self) -> bool:
        """Whether it has a seal alone."""
        return self.seal is not None and not self.tokens

    @property
    def json(self) -> bytes:
        return b'"%b"' % b"".join([token[1:-1] for token in self.tokens])

    @property
    def text(self) -> str:
        return str(orjson.loads(self.json))

    @property
    def arguments(self) -> dict[str, Any] | None:
        """The arguments of a call, or None if they are no JSON object."""
        try:
            found = orjson.loads(self.text)
        except orjson.JSONDecodeError:
            return None
        return found if isinstance(found, dict) else None


class BlockWriter(AnswerWriter):
    """Turns the answer of a chat call into blocks. While one is open, parts of others wait.

    A format overrides `begun`, `opened`, `deltas` and `closed`, which add events to `parts`, and `whole`, `end` and
    `fault`. `stop_reason` is vLLM's: the stop sequence that ended the text.
    """

    long_bytes: float = 1024 * 1024
    reasoning = True  # whether reasoning becomes a block

    def __init__(self, call: ChatCall) -> None:
        self.call = call
        self.blocks: list[Block] = []
        self.parts: list[bytes] = []
        self.model = ""
        self.created = 0
        self.finish_reason: str | None = None
        self.stop_reason: Any = None
        self.usage: dict[str, Any] = {}  # at the end of the answer
        self.found: dict[int, dict[str, Any]] = {}  # its results, by their numbers
        self._open = 0  # the index of the open block, or of the next one
        self._calls: dict[int, Block] = {}  # by their index in the chat stream
        self._index: int | None = None  # of the choice that is written
        self._skips = False  # whether the last chunk, and the texts like it, belong to another choice
        self._has_events = True  # a JSON answer has none

    # --- what a format writes

    def begun(self) -> None:
        """Write the events that begin the stream."""

    def opened(self, block: Block) -> None:
        raise NotImplementedError

    def deltas(self, block: Block, tokens: Sequence[bytes], logprobs: list[Any] | None = None) -> None:
        """Write an event for each of `tokens`, which are parts of the block's text as JSON strings in ASCII."""
        raise NotImplementedError

    def closed(self, block: Block) -> None:
        raise NotImplementedError

    def whole(self) -> dict[str, Any]:
        """Return the JSON answer, after all blocks."""
        raise NotImplementedError

    def searched(self, block: Block) -> None:
        """Write the result of a search."""
        self._close_to(block.index + 1)

    # --- what it writes them for

    def events(self, chunks: Sequence[Chunk | TextChunks]) -> list[bytes]:
        for chunk in chunks:
            if type(chunk) is dict:
                self._read(chunk)
            elif type(chunk) is TextChunks and not self._skips:
                self._add("text", chunk.ascii_tokens)
        parts, self.parts = self.parts, []
        return events.joined(parts)

    def answer(self, completion: dict[str, Any], written: bytes) -> bytes:
        self._has_events = False
        choice = completion["choices"][0]
        message: dict[str, Any] = choice["message"]
        calls = [{**call, "index": index} for index, call in enumerate(message.get("tool_calls") or ())]
        if self.search is not None:
            for part in self._parts(calls):
                said_so_far = {**choice, "delta": part["delta"], "finish_reason": None}
                self._read({**completion, "choices": [said_so_far], "service": part.get("service")})
            message, calls, completion = {}, [], {**completion, "service": None}
        self._read({**completion, "choices": [{**choice, "delta": {**message, "tool_calls": calls}}]})
        return orjson.dumps(self.whole())

    def _parts(self, calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the texts and the searches of the answer, with `calls` of the caller's functions.

        A stream has these before the searches of the same step, so this does too.
        """
        parts: list[dict[str, Any]] = self.call.parts_after({})
        of_searches = [place for place, part in enumerate(parts) if part.get("service")]
        place = next(iter(of_searches[self.call.earlier_steps :]), len(parts))
        return [*parts[:place], {"delta": {"tool_calls": calls}}, *parts[place:]]

    def _read(self, chunk: Chunk) -> None:
        if not self.model:
            self.model, self.created = chunk["model"], chunk["created"]
            if self._has_events:
                self.begun()
        self.usage = chunk.get("usage") or self.usage
        if self.search is not None and (step := chunk.get("service")):
            self._read_step(step)
        for choice in chunk["choices"]:
            if self._index is None:
                self._index = choice["index"]
            self._skips = choice["index"] != self._index
            if self._skips:  # only one was requested
                continue
            self.stop_reason = choice.get("stop_reason") or self.stop_reason
            logprobs = (choice.get("logprobs") or {}).get("content")
            self._read_choice(choice["delta"], logprobs if isinstance(logprobs, list) else None)
            if reason := choice["finish_reason"]:
                self.finish_reason = reason
                self._close_to(len(self.blocks))

    def _read_choice(self, delta: dict[str, Any], logprobs: list[Any] | None) -> None:
        details = delta.get(FIELD) if self.reasoning else None
        for kind, text in said.parts(delta):
            if details and kind != "reasoning":
                self._add_seals(known(details))
                details = None
            if self.reasoning or kind != "reasoning":
                self._add(kind, events.ascii_strings([text]), logprobs if kind == "text" else None)
        if details:
            self._add_seals(known(details))
        for call in delta.get("tool_calls") or ():
            self._read_call(call)

    def _read_step(self, step: dict[str, Any]) -> None:
        """Read a search of the service, or its result."""
        if call := step.get("tool_call"):
            block = self._append(Block("search", len(self.blocks), call_id=call["id"], name=call["name"]))
            self._extend(block, events.ascii_strings([call["arguments"]]))
            return
        result = step["tool_result"]
        block = next(block for block in self.blocks if block.call_id == result["id"])
        block.result = result
        self.found = {**self.found, **{entry["number"]: entry for entry in entries(result)}}
        self.searched(block)

    def _read_call(self, raw: dict[str, Any]) -> None:
        body, index = raw.get("function") or raw.get("custom") or {}, raw["index"]
        if index not in self._calls:
            self._calls[index] = self._append(Block("call", len(self.blocks), call_id=raw["id"], name=body["name"]))
        if piece := body.get("arguments") or body.get("input"):
            self._extend(self._calls[index], events.ascii_strings([piece]))

    def _add_seals(self, found: list[Seal]) -> None:
        """Add each seal to the reasoning before it, or as a separate block."""
        for seal in found:
            last = self.blocks[-1] if self.blocks else None
            if last is not None and last.kind == "reasoning" and last.seal is None and last.index >= self._open:
                last.seal = seal
            else:
                self._append(Block("reasoning", len(self.blocks), seal=seal))

    def _add(self, kind: str, tokens: Sequence[bytes], logprobs: list[Any] | None = None) -> None:
        last = self.blocks[-1] if self.blocks else None
        if last is None or last.kind != kind or last.index < self._open or last.seal is not None:
            last = self._append(Block(kind, len(self.blocks)))
        self._extend(last, tokens, logprobs)

    def _append(self, block: Block) -> Block:
        block.found = self.found
        self.blocks.append(block)
        if self._has_events and block.index == self._open:
            self.opened(block)
        else:
            self._close_to(block.index)
        return block

    def _extend(self, block: Block, tokens: Sequence[bytes], logprobs: list[Any] | None = None) -> None:
        if block.index < self._open:  # its arguments were complete
            return
        block.tokens += tokens
        block.logprobs += logprobs or ()
        if self._has_events and block.index == self._open:
            self.deltas(block, tokens, logprobs)

    def _close_to(self, end: int) -> None:
        """Close the open block, and open the next one, while it is before the block `end` and complete."""
        ended = self.finish_reason is not None
        while self._has_events and self._open < end and (ended or _is_complete(self.blocks[self._open])):
            self.closed(self.blocks[self._open])
            self._open += 1
            if self._open < len(self.blocks):
                block = self.blocks[self._open]
                self.opened(block)
                if block.tokens:
                    self.deltas(block, [block.json], block.logprobs)


def _is_complete(block: Block) -> bool:
    if block.kind == "search":
        return bool(block.result)
    # Each check parses all arguments of a call, so the end of long ones is only found at the end of the answer.
    return block.kind != "call" or (sum(map(len, block.tokens)) <= AT_ONCE_BYTES and block.arguments is not None)
