"""The answer of a chat call in Anthropic's Messages format: one message in JSON, or its events."""

from collections.abc import Mapping, Sequence
from typing import Any

from orjson import Fragment

from svc.errors import ApiError, anthropic_error
from svc.ids import random_base62
from svc.inference import blocks
from svc.inference.chat_call import ChatCall
from svc.inference.formats.answer import Block, BlockWriter

_STOP_REASONS = {"length": "max_tokens", "content_filter": "refusal", "tool_calls": "tool_use"}
_DELTAS = {"reasoning": ("thinking_delta", "thinking"), "call": ("input_json_delta", "partial_json")}


class MessagesAnswer(BlockWriter):
    """Writes the answer of `call`, with thinking blocks if `reasoning`. The request has these `stop_sequences`."""

    ping = b'event: ping\ndata: {"type":"ping"}\n\n'

    def __init__(self, reasoning: bool, stop_sequences: list[str], call: ChatCall) -> None:
        super().__init__(call)
        self.reasoning = reasoning
        self._stop_sequences = stop_sequences
        self._around_delta = (b"", b"")  # the bytes before and after the text in a delta of the open block

    def whole(self) -> dict[str, Any]:
        content = [self._content(block) for block in self.blocks]
        return self._message(content, **self._ending(), usage=_usage(self.usage))

    def _message(self, content: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
        head = {"id": f"msg_{random_base62(24)}", "type": "message", "role": "assistant", "model": self.model}
        return {**head, "content": content, **fields}

    def _content(self, block: Block) -> dict[str, Any]:
        content = _started(block, block.text)
        if block.kind == "call" and block.arguments is not None:
            content["input"] = Fragment(block.text)
        elif block.kind == "call":
            self.call.log_fields["invalid_arguments"] = self.call.log_fields.get("invalid_arguments", 0) + 1
        return content

    def _ending(self) -> dict[str, Any]:
        """Return `stop_reason` and `stop_sequence`."""
        reason = _STOP_REASONS.get(self.finish_reason or "", "end_turn")
        if any(block.kind == "refusal" for block in self.blocks):
            reason = "refusal"
        if reason == "end_turn" and self.stop_reason in self._stop_sequences:
            return {"stop_reason": "stop_sequence", "stop_sequence": self.stop_reason}
        return {"stop_reason": reason, "stop_sequence": None}

    # --- events

    def begun(self) -> None:
        usage = _usage({"prompt_tokens": self.call.writer.estimated_input(), "completion_tokens": 0})
        message = self._message([], stop_reason=None, stop_sequence=None, usage=usage)
        self.parts.append(_event("message_start", message=message))

    def opened(self, block: Block) -> None:
        self.parts.append(_event("content_block_start", index=block.index, content_block=_started(block)))
        kind, name = _DELTAS.get(block.kind, ("text_delta", "text"))
        delta = {"type": kind, name: Fragment(b"\0")}
        before, _, after = _event("content_block_delta", index=block.index, delta=delta).partition(b"\0")
        self._around_delta = before, after

    def deltas(self, block: Block, tokens: Sequence[bytes], logprobs: list[Any] | None = None) -> None:
        before, after = self._around_delta
        self.parts.append(before + (after + before).join(tokens) + after)

    def closed(self, block: Block) -> None:
        self.parts.append(_event("content_block_stop", index=block.index))

    def end(self) -> bytes:
        usage = _usage(self.call.usage)
        return _event("message_delta", delta=self._ending(), usage=usage) + _event("message_stop")

    def fault(self, error: ApiError) -> bytes:
        return b"event: error\n" + blocks.event(anthropic_error(error, self.call.request_id))


def _started(block: Block, text: str = "") -> dict[str, Any]:
    if block.kind == "call":
        return {"type": "tool_use", "id": block.call_id, "name": block.name, "input": {}}
    if block.kind == "reasoning":
        return {"type": "thinking", "thinking": text, "signature": ""}
    return {"type": "text", "text": text}


def _usage(usage: Mapping[str, Any]) -> dict[str, int]:
    cached = min((usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0, usage["prompt_tokens"])
    return {
        "input_tokens": usage["prompt_tokens"] - cached,
        "output_tokens": usage["completion_tokens"],
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached,
    }


def _event(kind: str, **fields: Any) -> bytes:
    return b"event: %b\n" % kind.encode() + blocks.event({"type": kind, **fields})
