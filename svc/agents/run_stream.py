"""The events of an agent run as numbered blocks of its stream, and the part of them that its record keeps."""

import orjson

from svc.agents.loop import Deltas, Event, Events, Progress
from svc.agents.run_records import EVENTS_BYTES
from svc.inference.answer.events import event

_KEPT = ("started", "step", "tool_call", "tool_result")
_KEPT_RESULT_CHARACTERS = 4_000
_TRUNCATED = b'{"type":"truncated"}'


class EventWriter:
    """Writes a run's events as numbered blocks, and keeps them in `progress` without texts, up to EVENTS_BYTES."""

    def __init__(self, run_id: str, progress: Progress) -> None:
        self._run_id = run_id
        self._progress = progress
        self._kept_bytes = 0
        self._delta = b'data: {"type":"delta","run_id":%b,"seq":%%d,"text":%%b}\n\n' % orjson.dumps(run_id)

    def __call__(self, together: Events) -> bytes:
        """Return a block for each event. An exception leaves no gap in the numbers."""
        written = self._deltas(together.texts) if isinstance(together, Deltas) else self._events(together)
        self._progress.seq += written.count(b"\n\n")
        return written

    def _events(self, together: list[Event]) -> bytes:
        numbered = enumerate(together, self._progress.seq + 1)
        events = [{"type": fields["type"], "run_id": self._run_id, "seq": n, **fields} for n, fields in numbered]
        blocks = [event(fields) for fields in events]
        for fields, block in zip(events, blocks, strict=True):
            if fields["type"] in _KEPT and self._kept_bytes <= EVENTS_BYTES:
                self._keep(fields, block)
        return b"".join(blocks)

    def _keep(self, fields: Event, block: bytes) -> None:
        result = fields.get("result", "")
        text = result if isinstance(result, str) else orjson.dumps(result).decode()
        if len(text) > _KEPT_RESULT_CHARACTERS:
            block = event({**fields, "result": text[:_KEPT_RESULT_CHARACTERS]})
        self._kept_bytes += len(block)
        kept = block[len(b"data: ") :].rstrip(b"\n")
        self._progress.events.append(kept if self._kept_bytes <= EVENTS_BYTES else _TRUNCATED)

    def _deltas(self, texts: list[str]) -> bytes:
        first = self._progress.seq + 1
        try:
            written = b"".join(map(self._delta.__mod__, enumerate(map(orjson.dumps, texts), first)))
            if written.isascii():
                return written
        except TypeError:  # one UTF-16 half of an emoji
            pass
        return self._events([{"type": "delta", "text": text} for text in texts])
