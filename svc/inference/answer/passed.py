"""An answer in the format of its caller, who gets the model server's JSON as it came, but for the model's name.

event -> PassedEvents.add() -> its chunks of chat, for the settlement and the limits, with its bytes: Passed
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from svc.inference.answer.events import Chunk
from svc.inference.passed_fields import hosted_family
from svc.inference.server_formats.answer import Reader
from svc.inference.server_formats.deltas import TEXT_OF, delta_of
from svc.json_splice import spliced, with_only

_HOLDERS = ("response", "message")  # of what the beginning and the end of a stream say about the answer


@dataclass(slots=True)
class Passed:
    """A JSON answer, or events of one read: the caller's bytes, what they say as chunks, and the last document."""

    block: bytes
    chunks: list[Chunk]
    document: dict[str, Any]


class PassedEvents:
    """Reads the events, or the JSON answer, that a caller gets who knows the model as `shown_as`.

    Deltas of the same text in one read are one Passed: to read the chunks of each would take most of the time.
    """

    def __init__(self, reader: Reader, shown_as: str, stream: bool) -> None:
        self.stream = stream
        self._reader = reader
        self._shown_as = shown_as
        self._passed: list[Passed] = []
        self._texts: list[str] = []  # of the deltas that are not read yet
        self._blocks: list[bytes] = []
        self._key: tuple[Any, ...] | None = None
        self._last: dict[str, Any] = {}

    def whole(self, data: bytes, document: dict[str, Any]) -> Passed:
        """Return a JSON answer. Raises UpstreamFault if it is none."""
        return Passed(self._named(data, document), [self._reader.whole(document)], document)

    def add(self, name: bytes, data: bytes, document: dict[str, Any]) -> None:
        """Read an event. Raises UpstreamFault for an error."""
        key, text = delta_of(document)
        if key is None or key != self._key:
            self._read_texts()
        if key is None:
            data = self._named(data, document)
            self._passed.append(Passed(_event(name, data), self._reader.chunks(document), document))
            return
        self._key, self._last = key, document
        self._texts.append(text)
        self._blocks.append(_event(name, data))

    def taken(self) -> list[Passed]:
        """Return what was added since the last time."""
        self._read_texts()
        passed, self._passed = self._passed, []
        return passed

    def _read_texts(self) -> None:
        if not self._texts:
            return
        text, delta = "".join(self._texts), self._last["delta"]
        joined = text if type(delta) is str else {**delta, TEXT_OF[delta["type"]]: text}
        chunks = self._reader.chunks({**self._last, "delta": joined})
        self._passed.append(Passed(b"".join(self._blocks), chunks, self._last))
        self._texts, self._blocks, self._key = [], [], None

    def _named(self, data: bytes, document: dict[str, Any]) -> bytes:
        """Return the JSON of a document with the caller's name of the model."""
        holder = next((name for name in _HOLDERS if isinstance(document.get(name), dict)), None)
        answer = document[holder] if holder else document
        if not isinstance(answer.get("model"), str):
            return data
        if (named := with_only(data, "model", self._shown_as)) is not None:
            return named
        renamed = {**answer, "model": self._shown_as}
        return spliced(data, document, {**document, holder: renamed} if holder else renamed)


def _event(name: bytes, data: bytes) -> bytes:
    if data.find(b"\n") >= 0:
        data = data.replace(b"\n", b"\ndata: ")
    return b"event: %b\ndata: %b\n\n" % (name, data) if name else b"data: %b\n\n" % data


class PassedAnswer:
    """What a call keeps of the answer that it passes: `held` are the last events, which wait for the settlement.

    `begun` is whether the caller gets this answer: a fallback's in another format is translated. `hosted_calls` are the
    calls of tools that the vendor runs, by family.
    """

    def __init__(self) -> None:
        self.begun = False
        self.held: list[Passed] = []
        self._seen: Counter[str] = Counter()
        self._reported: Counter[str] = Counter()

    def note(self, passed: Passed) -> None:
        self.begun = True
        document = passed.document
        for answer in (document, document.get("response"), document.get("message")):
            if isinstance(answer, dict):
                self._note_usage(answer.get("usage"))
        if document.get("type") in ("content_block_start", "response.output_item.added"):
            self._note_item(document.get("content_block") or document.get("item"))
        for items in (document.get("output"), document.get("content")):  # of a JSON answer
            for item in items if isinstance(items, list) else ():
                self._note_item(item)

    @property
    def hosted_calls(self) -> Mapping[str, int]:
        return self._seen | self._reported

    def _note_usage(self, usage: Any) -> None:
        counts = usage.get("server_tool_use") if isinstance(usage, dict) else None
        for name, count in counts.items() if isinstance(counts, dict) else ():
            if type(count) is int and count > 0 and (family := hosted_family(name)):
                self._reported[family] = max(self._reported[family], count)

    def _note_item(self, item: Any) -> None:
        kind = item.get("type") if isinstance(item, dict) else None
        name = item.get("name") if kind == "server_tool_use" else kind if str(kind).endswith("_call") else None
        if isinstance(name, str) and (family := hosted_family(name)):
            self._seen[family] += 1
