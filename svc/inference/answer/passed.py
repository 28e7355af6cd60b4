"""An answer in the format of its caller, who gets the model server's JSON as it came, but for the model's name.

event -> PassedEvents.add() -> its chunks of chat, for the settlement and the limits, with its bytes: Passed
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from svc.inference.answer.events import Chunk
from svc.inference.passed_fields import hosted_family
from svc.inference.server_formats.answer import Reader
from svc.inference.server_formats.deltas import TEXT_OF, delta_of
from svc.json_splice import spliced, with_only

_HOLDERS = ("response", "message")  # of what the beginning and the end of a stream say about the answer


@dataclass(slots=True)
class Passed:
    """A JSON answer, or events of one read: the caller's bytes, what they say as chunks, and the last document.

    `text` continues the text of the last chunk.
    """

    block: bytes
    chunks: list[Chunk]
    document: dict[str, Any]
    text: str = ""


class PassedEvents:
    """Reads the events, or the JSON answer, that a caller gets who knows the model as `shown_as`.

    Deltas of the same text in one read are one Passed: to read the chunks of each would take most of the time.
    """

    def __init__(self, reader: Reader, shown_as: str, stream: bool) -> None:
        self.stream = stream
        self._reader = reader
        self._shown_as = shown_as
        self._pieces: list[Passed] = []
        self._texts: list[str] = []  # of the deltas that are not read yet
        self._blocks: list[bytes] = []
        self._key: tuple[Any, ...] | None = None
        self._continued: tuple[Any, ...] | None = None  # the text of the last chunk
        self._last: dict[str, Any] = {}
        self._form: _DeltaForm | None = None  # of the last deltas
        self._tries = 0  # to find it

    def whole(self, data: bytes, document: dict[str, Any]) -> Passed:
        """Return a JSON answer. Raises UpstreamFault if it is none."""
        return Passed(self._named(data, document), [self._reader.whole(document)], document)

    def add(self, name: bytes, data: bytes, document: dict[str, Any]) -> None:
        """Read an event, unless the answer has ended. Raises UpstreamFault for an error."""
        if self._reader.ended:
            return
        key, text = delta_of(document)
        if key is None or key != self._key:
            self._read_texts()
        if key is None:
            data, chunks = self._named(data, document), self._reader.chunks(document)
            self._pieces.append(Passed(_event(name, data), chunks, document))
            self._continued = self._continued if not chunks else None
            return
        if key != self._key:
            self._form, self._tries = None, _MOST_TRIES
        if self._form is None and self._tries:
            self._form, self._tries = _form_of(_event(name, data)), self._tries - 1
        self._key, self._last = key, document
        self._texts.append(text)
        self._blocks.append(_event(name, data))

    def skip_deltas(self, events: bytes, place: int) -> int:
        """Read the events from `place` on that differ from the last delta only in their text and their number. Return
        the place after them.
        """
        if self._form is None or not events.startswith(self._form.before, place):
            return place
        tokens, number, end = self._form.read(events, place)
        try:
            texts = orjson.loads(b'["%b"]' % b'","'.join(tokens)) if tokens else []
        except orjson.JSONDecodeError:
            texts = []
        if len(texts) != len(tokens) or not all(type(text) is str for text in texts):
            self._form = None
            return place
        self._texts += texts
        self._blocks.append(events[place:end])
        if number:
            self._last = {**self._last, "sequence_number": int(number)}
        return end

    def taken(self) -> list[Passed]:
        """Return what was added since the last time."""
        self._read_texts()
        pieces, self._pieces = self._pieces, []
        return pieces

    def _read_texts(self) -> None:
        if not self._texts:
            return
        text, block, delta = "".join(self._texts), b"".join(self._blocks), self._last["delta"]
        if self._continued == self._key:
            self._pieces.append(Passed(block, [], self._last, text))
        else:
            joined = text if type(delta) is str else {**delta, TEXT_OF[delta["type"]]: text}
            chunks = self._reader.chunks({**self._last, "delta": joined})
            self._pieces.append(Passed(block, chunks, self._last))
            self._continued = self._key if chunks else None
        self._texts, self._blocks = [], []

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


_VARYING = re.compile(
    rb'"(sequence_number|obfuscation|delta|text|thinking|partial_json)" ?: ?(?:"([^"\\]*+)"|([0-9]++))'
)
_MOST_DELTA_BYTES = 4096
_BACKSLASH = b"\\"[0]
_NO_TEXTS = frozenset({b"sequence_number", b"obfuscation"})
_MOST_TRIES = 4


class _DeltaForm(NamedTuple):
    """What deltas of one text have in common: the bytes `before` what varies, and after each of these."""

    before: bytes
    varying: list[tuple[bytes, bytes, bytes]]  # the name, the byte that ends it, and all bytes to the next one

    def read(self, events: bytes, place: int) -> tuple[list[bytes], bytes, int]:
        """Return the texts of the deltas that begin at `place`, as JSON without quotes, the number of the last one, and
        the place after it.
        """
        before, varying = self.before, self.varying
        tokens: list[bytes] = []
        number, size = b"", len(before)
        while events.startswith(before, place):
            end = place + size
            token = last = b""
            for name, mark, after in varying:
                start, end = end, events.find(mark, end)
                if name == b"sequence_number":
                    last = events[start:end]
                    if not last.isdigit():
                        return tokens, number, place
                elif name != b"obfuscation":
                    if events[end - 1] == _BACKSLASH:  # an escaped quote, or an escape before the last one
                        end = events.find(after, start, start + _MOST_DELTA_BYTES)
                    token = events[start:end]
                elif not events[start:end].isalnum():
                    return tokens, number, place
                if end < 0 or not events.startswith(after, end):
                    return tokens, number, place
                end += len(after)
            tokens.append(token)
            number, place = last, end
        return tokens, number, place


def _form_of(block: bytes) -> _DeltaForm | None:
    """Return the form of a delta, or None if it is not certain."""
    found = [*_VARYING.finditer(block)]
    names = [one[1] for one in found]
    if len(set(names)) != len(names) or len({*names} - _NO_TEXTS) != 1:
        return None
    spans = [one.span(2 if one[3] is None else 3) for one in found]
    starts = [*(start for start, _ in spans[1:]), len(block)]
    after = [block[end:start] for (_, end), start in zip(spans, starts, strict=True)]
    varying = [(name, rest[:1], rest) for name, rest in zip(names, after, strict=True)]
    return _DeltaForm(block[: spans[0][0]], varying)


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

    def note(self, piece: Passed) -> None:
        self.begun = True
        document = piece.document
        if "delta" in document and "usage" not in document:  # like most
            return
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
