"""Answers and events of Responses and Messages servers as raw chunks of chat."""

from typing import Any

from svc.errors import UpstreamFault
from svc.inference.answer.events import Chunk
from svc.inference.answer.upstream_errors import error_fault


class Reader:
    """Reads one answer. `ended` is set by the format's last event."""

    def __init__(self, api: str) -> None:
        self.ended = False

    def chunks(self, event: dict[str, Any]) -> list[Chunk]:
        """Return the raw chunks of one parsed event. Raises UpstreamFault for an error."""
        kind, delta, usage = event.get("type"), event.get("delta"), event.get("usage")
        if kind == "response.failed":
            raise error_fault(event.get("response"))
        if kind == "response.output_text.delta":
            return [_chunk({"content": delta})]
        if kind == "content_block_delta":
            return [_chunk({"content": (delta or {}).get("text")})]
        self.ended = kind in ("response.completed", "response.incomplete", "message_stop")
        if kind in ("response.completed", "response.incomplete"):
            return [{**_chunk({}, "stop"), "usage": (event.get("response") or {}).get("usage")}]
        if kind == "message_delta":
            return [{**_chunk({}, "stop"), "usage": usage}]
        return []

    def whole(self, document: dict[str, Any]) -> Chunk:
        """Return a JSON answer as one raw `chat.completion`. Raises UpstreamFault for what is none."""
        items = document.get("output") or document.get("content")
        if not isinstance(items, list):
            raise UpstreamFault("invalid", "The answer is neither a response nor a message.")
        text = "".join(part["text"] for item in items for part in item.get("content") or [item])
        message = {"role": "assistant", "content": text}
        return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": document.get("usage")}


def _chunk(delta: dict[str, Any], reason: str | None = None) -> Chunk:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


def reader_of(api: str) -> Reader:
    """Return a reader for the answer of a `responses` or `messages` server."""
    return Reader(api)
