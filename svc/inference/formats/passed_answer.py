"""Answers that pass: the caller has the format of the model server, and gets its JSON and events as they come.

Only the end of a stream that the model server did not end is written here. What does not pass, such as the answer of a
fallback in another format, is translated as for every other model server.
"""

from collections.abc import Callable, Sequence
from typing import Any

import orjson

from svc.errors import ApiError, anthropic_error
from svc.inference.answer import events
from svc.inference.answer.passed import Passed, PassedAnswer
from svc.inference.chat_call import ChatCall
from svc.inference.formats.answer import AnswerWriter, typed_event
from svc.inference.formats.messages import MessagesAnswer, usage_of_message
from svc.inference.formats.responses_answer import error_of_response, late_error, usage_of_response


class PassedWriter(AnswerWriter):
    """Writes the answer of `call`. `other` makes the writer of an answer that does not pass."""

    long_bytes: float = 1024 * 1024

    def __init__(self, call: ChatCall, other: Callable[[], AnswerWriter]) -> None:
        assert call.server_answer is not None
        self.call = call
        self.server_answer: PassedAnswer = call.server_answer
        self._other = other
        self._made: AnswerWriter | None = None

    @property
    def other(self) -> AnswerWriter:
        self._made = self._made or self._other()
        return self._made

    def note(self, document: dict[str, Any]) -> None:
        """Note what the end of the stream needs of an event, or the last of several, or of a JSON answer."""
        raise NotImplementedError

    def answer(self, completion: dict[str, Any], written: bytes) -> bytes:
        if not self.server_answer.held:
            return self.other.answer(completion, written)
        self.note(completion)
        return written

    def events(self, chunks: Sequence[Any]) -> list[bytes]:
        if chunks and type(chunks[0]) is not Passed:
            return self.other.events(chunks)
        for piece in chunks:
            self.note(piece.document)
        return events.joined([piece.block for piece in chunks])

    def end(self) -> bytes:
        if not self.server_answer.begun:
            return self.other.end()
        return self.cut_end() if self.call.chunk_writer.cut else self.passed_end()

    def passed_end(self) -> bytes:
        """Return what follows the model server's last event."""
        return b""

    def cut_end(self) -> bytes:
        """Return the last events of an answer that exceeds its limit."""
        raise NotImplementedError


class PassedMessage(PassedWriter):
    """Passes a message."""

    ping = MessagesAnswer.ping
    _open: Any = None  # the index of the open block

    def note(self, document: dict[str, Any]) -> None:
        kind = document.get("type")
        if kind == "content_block_start":
            self._open = document.get("index")
        elif kind == "content_block_stop":
            self._open = None

    def cut_end(self) -> bytes:
        stop = b"" if self._open is None else typed_event("content_block_stop", index=self._open)
        delta = {"stop_reason": "max_tokens", "stop_sequence": None}
        usage = usage_of_message(self.call.usage)
        return stop + typed_event("message_delta", delta=delta, usage=usage) + typed_event("message_stop")

    def fault(self, error: ApiError) -> bytes:
        return b"event: error\n" + events.event(anthropic_error(error, self.call.request_id))


class PassedResponse(PassedWriter):
    """Passes a response. `remember` gets the items of a complete one, as JSON by their ids."""

    def __init__(
        self, call: ChatCall, other: Callable[[], AnswerWriter], remember: Callable[[dict[str, bytes]], None]
    ) -> None:
        super().__init__(call, other)
        self._remember = remember
        self._sequence = -1
        self._response: dict[str, Any] = {}
        self._items: list[dict[str, Any]] = []  # the complete ones

    def note(self, document: dict[str, Any]) -> None:
        number, item, response = (document.get(name) for name in ("sequence_number", "item", "response"))
        if type(number) is int:
            self._sequence = number
        if isinstance(response, dict):
            self._response = response
        elif isinstance(item, dict) and document.get("type") == "response.output_item.done":
            self._items.append(item)

    def answer(self, completion: dict[str, Any], written: bytes) -> bytes:
        passes = bool(self.server_answer.held)
        written = super().answer(completion, written)
        if passes:
            self._keep(completion.get("output"))
        return written

    def passed_end(self) -> bytes:
        self._keep(self._response.get("output"))
        return events.DONE

    def cut_end(self) -> bytes:
        self._keep(self._items)
        ending = {"incomplete_details": {"reason": "max_output_tokens"}, "usage": usage_of_response(self.call.usage)}
        return self._ended("incomplete", **ending)

    def fault(self, error: ApiError) -> bytes:
        if self._response:
            # As plain text: the items are not all ASCII, and only whole events are written so.
            return self._ended("failed", error={**error_of_response(error), "message": str(error)})
        try:
            return self.other.fault(error)
        except ApiError:  # the request has no translation
            return late_error(error, 0)

    def late_fault(self, error: ApiError, events: int) -> bytes:
        return late_error(error, events)

    def _ended(self, status: str, **ending: Any) -> bytes:
        response = {**self._response, "status": status, "completed_at": None, "output": self._items, **ending}
        kind = f"response.{status}"
        return typed_event(kind, sequence_number=self._sequence + 1, response=response) + events.DONE

    def _keep(self, items: Any) -> None:
        """Remember the items: this service resolves the references to them, because the vendor stores nothing."""
        found = [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
        self._remember({item["id"]: orjson.dumps(item) for item in found if isinstance(item.get("id"), str)})
