"""Deltas of one text that come in one read, read together: to read the chunks of each would take most of the time."""

from typing import Any

from svc.inference.answer.events import Chunk
from svc.inference.server_formats.answer import Reader

# The text in the delta of a block of Messages.
TEXT_OF = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}


def delta_of(document: dict[str, Any]) -> tuple[tuple[Any, ...] | None, str]:
    """Return which text a delta belongs to, and its part of it; None for other events."""
    delta = document.get("delta")
    if type(delta) is str:
        if document.get("logprobs"):
            return None, ""
        places = ("type", "output_index", "content_index", "summary_index")
        return tuple(map(document.get, places)), delta
    if type(delta) is dict and len(delta) == 2 and delta.get("type") in TEXT_OF:
        text = delta.get(TEXT_OF[delta["type"]])
        if type(text) is str:
            return (document.get("type"), document.get("index"), delta["type"]), text
    return None, ""


class JoinedDeltas:
    """The chunks of one read: `reader` gets events one by one, and deltas of the same text as one."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._chunks: list[Chunk] = []
        self._texts: list[str] = []  # of the deltas that are not read yet
        self._key: tuple[Any, ...] | None = None
        self._last: dict[str, Any] = {}

    def add(self, document: dict[str, Any]) -> None:
        """Read an event. Raises UpstreamFault for an error."""
        key, text = delta_of(document)
        if self._texts and key != self._key:
            self._chunks += self.read_texts()
        if key is None:
            self._chunks += [] if self._reader.ended else self._reader.chunks(document)
            return
        self._key, self._last = key, document
        self._texts.append(text)

    def taken(self) -> list[Chunk]:
        """Return the chunks of what was added since the last time."""
        chunks, self._chunks = self._chunks, []
        chunks += self.read_texts()
        return chunks

    def read_texts(self) -> list[Chunk]:
        """Return the chunks of the deltas that are not read yet."""
        texts, last, self._texts, self._key = self._texts, self._last, [], None
        if not texts or self._reader.ended:
            return []
        if len(texts) > 1:
            text, delta = "".join(texts), last["delta"]
            last = {**last, "delta": text if type(delta) is str else {**delta, TEXT_OF[delta["type"]]: text}}
        return self._reader.chunks(last)
