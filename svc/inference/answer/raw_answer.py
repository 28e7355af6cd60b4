"""The body of a model server's answer, parsed as it arrives, whatever its format, content type and quality.

bytes -> `{` or `[`: one JSON answer | `<`: a page, rejected | else server-sent events, each one a raw chunk
      -> events that repeat one before them together (svc/inference/answer/repeats.py), the others one by one;
         of Responses and Messages, each through its reader (svc/inference/server_formats/answer.py)
      -> any fault is an UpstreamFault, from which svc/inference/answer/upstream_errors.py makes the caller's error
"""

import asyncio
import contextlib
import json
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any

import orjson

from svc import json_text
from svc.errors import UpstreamFault
from svc.inference.answer.events import Chunk, TextChunks
from svc.inference.answer.normalize import json_bytes
from svc.inference.answer.passed import Passed, PassedEvents
from svc.inference.answer.repeats import Repeats
from svc.inference.answer.upstream_errors import CLIENT_FAULTS, error_fault, fault_of, is_error, json_or_text
from svc.inference.catalog import Provider
from svc.inference.server_formats.answer import Reader
from svc.inference.server_formats.deltas import JoinedDeltas
from svc.json_text import AT_ONCE_BYTES, MOST_JSON_VALUES, has_more_values
from svc.outbound.connection import Reply
from svc.outbound.errors import OutboundError
from svc.outbound.event_stream import EventReader, parse_event

_EVENT_BYTES = 4 * 1024 * 1024
# An event is parsed on the event loop.
_EVENT_VALUES = 20_000
# Events of Responses repeat the request's tools and instructions, or the whole answer.
_READER_EVENT_BYTES = 16 * 1024 * 1024
_READER_EVENT_VALUES = 100_000
_OPERATOR_VALUES = 200_000
# Python's own parser, which accepts almost anything, blocks the event loop.
_LOOSE_BYTES = 2 * 1024 * 1024
# For the rest of the body after `[DONE]`, so that the connection can be used again.
AFTER_DONE_SECONDS = 0.05
# A shorter key is a placeholder ("ollama"), which may occur in a model's text.
_SECRET_CHARACTERS = 12
_UNESCAPED = frozenset(b'"\\')  # a key has them only as escapes
_TOO_MANY_VALUES = "The answer holds too many values."
_CUT = "The connection ended before the answer did."
_NO_ANSWER = "The answer is neither JSON nor an event stream."
# Events of a read that are parsed before the comparison stops: the role, a text, and one more.
_MOST_TRIES = 3
_BLANKS = b"\xef\xbb\xbf \t\r\n"

RawChunk = Chunk | TextChunks | Passed


class RawAnswer:
    """The body of one answer as raw chunks of chat. Must be closed.

    `reader` turns the events and the JSON answer of another format into chunks, and knows its end. Those of
    `passed_events` pass to the caller, unless a stream comes instead of JSON, or JSON instead of a stream.
    `completion` is the JSON answer of a chat server, once `more` has returned it.
    """

    _repeats: Repeats
    on_close: Callable[[], None] | None = None

    def __init__(
        self, reply: Reply, provider: Provider, reader: Reader | None = None, passed_events: PassedEvents | None = None
    ) -> None:
        self._reply = reply
        self._provider = provider
        self._reader = reader
        self._passed_events = passed_events
        self._joined: JoinedDeltas | None = None
        self.completion: Chunk | None = None
        self._json: list[bytes] = []
        self._events: EventReader | None = None
        self._done = False  # whether `[DONE]` was read
        self._ended = False  # whether nothing more is read
        self._fault: UpstreamFault | None = None  # raised once the chunks that were read before it are returned
        # Without framing, a cut connection looks like the end of the body. So every choice must have a finish reason.
        self._unfinished: set[Any] | None = None if reply.framed else {None}

    async def more(self) -> list[RawChunk] | None:
        """Return the raw chunks of the next read that has any, or None after the last. Raises UpstreamFault."""
        try:
            while not self._ended:
                data = await self._reply.more()
                if raws := self._read(data) if data else await self._read_end():
                    return raws
        except CLIENT_FAULTS as error:
            raise fault_of(error) from None
        if self._fault is not None:
            raise self._fault
        if self._done and not self._reply.ended:
            # A body that was read to its end leaves a connection that can be used again.
            with contextlib.suppress(TimeoutError, OutboundError):
                async with asyncio.timeout(AFTER_DONE_SECONDS):
                    while await self._reply.more():
                        pass
        return None

    def aclose(self) -> Awaitable[None]:
        """Abort the request unless the answer has ended."""
        if self.on_close is not None:
            self.on_close()
            self.on_close = None
        return self._reply.aclose()

    def _read(self, data: bytes) -> list[RawChunk]:
        if self._events is None:
            if not self._json:
                data = data.lstrip(_BLANKS)
                if data.startswith(b"<"):
                    raise UpstreamFault("invalid", _NO_ANSWER)
            if self._json or data.startswith((b"{", b"[")):
                self._json.append(data)
            if self._json or not data:
                return []
            self._events = EventReader(_READER_EVENT_BYTES if self._reader else _EVENT_BYTES)
            self._repeats = Repeats(self._provider.api_key if _secret(self._provider) else None)
        self._events.feed(data)
        return self._chunks(self._events)

    async def _read_end(self) -> list[RawChunk]:
        self._ended = True
        if self._events is None:
            data = b"".join(self._json)
            if not data:
                raise UpstreamFault("invalid", _NO_ANSWER)
            long = len(data) > AT_ONCE_BYTES
            answer = await asyncio.to_thread(self._whole, data, True) if long else self._whole(data)
            if type(answer) is dict and self._reader is None:
                self.completion = answer
            return [answer]
        self._events.end()
        raws = self._chunks(self._events)
        cut = self._unfinished and not self._done if self._reader is None else not self._reader.ended
        if self._fault is None and cut:
            self._fault = UpstreamFault("cut", _CUT)
        return raws

    def _whole(self, data: bytes, apart: bool = False) -> RawChunk:
        """Return a JSON answer as a `chat.completion`. `apart` is for threads."""
        if self._reader is None:
            return _chunk(data, self._provider, apart)
        if self._passed_events is None or self._passed_events.stream:
            return self._reader.whole(_object(data, self._provider, apart))
        document, data = shown(data, self._provider, apart)
        return self._passed_events.whole(data, document)

    def _chunks(self, events: EventReader) -> list[RawChunk]:
        """Return the chunks up to `[DONE]` or a fault, which is kept."""
        if self._reader is not None:
            return self._chunks_of_format(self._reader, events)
        raws: list[RawChunk] = []
        tries = 0
        try:
            while events.place < len(events.text):
                if tries < _MOST_TRIES and (found := self._repeats.find(events.text, events.place)) is not None:
                    repeat, events.place = found
                    raws.append(repeat)
                elif (event := events.next_event()) is not None:
                    tries += 1
                    if (raw := self._event_chunk(event)) is not None:
                        raws.append(raw)
                        if tries < _MOST_TRIES:
                            self._repeats.learn(event, raw)
                    elif self._done:
                        break
        except UpstreamFault as fault:
            self._fault, self._ended = fault, True
        return raws

    def _chunks_of_format(self, reader: Reader, events: EventReader) -> list[RawChunk]:
        """Return the same of another format, or the events that are passed."""
        passed_events = self._passed_events if self._passed_events and self._passed_events.stream else None
        joined = self._joined = self._joined or JoinedDeltas(reader)
        skips = passed_events is not None and _has_no_key(events.text, self._provider)
        try:
            while events.place < len(events.text) and not self._done:
                if passed_events is not None and skips:
                    events.place = passed_events.skip_deltas(events.text, events.place)
                if (event := events.next_event()) is not None:
                    self._read_event(reader, event, passed_events, joined)
        except UpstreamFault as fault:
            self._fault, self._ended = fault, True
        raws: Sequence[RawChunk] = passed_events.taken() if passed_events else joined.taken()
        if reader.ended:
            self._done = self._ended = True
        return list(raws)

    def _event_chunk(self, lines: bytes) -> Chunk | None:
        _, data = self._data(lines, _EVENT_VALUES)
        if not data:
            return None
        raw = _chunk(data, self._provider)
        if self._unfinished is not None:
            _note_finish(raw, self._unfinished)
        return raw

    def _read_event(
        self, reader: Reader, lines: bytes, passed_events: PassedEvents | None, joined: JoinedDeltas
    ) -> None:
        """Read an event of another format, or pass it. After the format's own last event nothing is read."""
        name, data = self._data(lines, _READER_EVENT_VALUES)
        if self._done:  # `[DONE]` is no end of these formats
            raise UpstreamFault("cut", _CUT)
        if not data:
            return
        if passed_events is not None:
            document, data = shown(data, self._provider)
            passed_events.add(name, data, document)
        else:
            joined.add(_object(data, self._provider))
        self._done = reader.ended

    def _data(self, lines: bytes, most_values: int) -> tuple[bytes, bytes]:
        """Return the name of an event and its JSON, or nothing for an event without any. Raises UpstreamFault for an
        error.
        """
        name, data = parse_event(lines) or (b"", b"")
        data = data.strip()
        if data == b"[DONE]":
            self._done = self._ended = True
            return name, b""
        if len(data) > most_values and has_more_values(data, most_values):
            raise UpstreamFault("invalid", _TOO_MANY_VALUES)
        if name == b"error" and data:
            document = json_or_text(data)
            if isinstance(document, dict) and not document.get("error"):
                document = {"error": document}  # llama.cpp sends the error object itself
            raise error_fault(document, self._provider.api_key)
        return name, data


def _note_finish(raw: dict[str, Any], unfinished: set[Any]) -> None:
    choices = raw.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict):
            unfinished.discard(None)
            index = repr(choice.get("index"))
            (unfinished.discard if choice.get("finish_reason") else unfinished.add)(index)


def _object(data: bytes, provider: Provider, apart: bool = False) -> dict[str, Any]:
    return _checked(parsed(data, provider, apart))


def _checked(value: Any) -> dict[str, Any]:
    if type(value) is not dict:
        raise UpstreamFault("invalid", "The answer is no JSON object.")
    return value


def _chunk(data: bytes, provider: Provider, apart: bool = False) -> Chunk:
    value = parsed(data, provider, apart)
    if type(value) is dict and "choices" in value:
        return value
    if is_error(_checked(value)):
        raise error_fault(value, provider.api_key)
    return value  # type: ignore[no-any-return]


def shown(data: bytes, provider: Provider, apart: bool = False) -> tuple[dict[str, Any], bytes]:
    """Return a document, and its JSON for a caller: as it came, but without the provider's key, and always valid."""
    value, exact = _parse(data, provider, apart)
    return _checked(value), json_bytes(value, apart) if exact is None else exact


def parsed(data: bytes, provider: Provider, apart: bool = False) -> Any:
    """Parse `data`, and redact the provider's key; `apart` is for threads, and does not block the event loop.

    Raises UpstreamFault `invalid`, or `status` for an error object.
    """
    return _parse(data, provider, apart)[0]


def _parse(data: bytes, provider: Provider, apart: bool) -> tuple[Any, bytes | None]:
    """Do the same, and also return the valid JSON of the value, if it is known."""
    # Some requests to the operator's servers ask for long lists of probabilities.
    if len(data) > MOST_JSON_VALUES and has_more_values(data, MOST_JSON_VALUES if provider.byok else _OPERATOR_VALUES):
        raise UpstreamFault("invalid", _TOO_MANY_VALUES)
    secret = _secret(provider)
    if secret:
        data = data.replace(secret, b"***")
    exact: bytes | None = data
    try:
        value = json_text.loads(data) if apart else orjson.loads(data)
    except orjson.JSONDecodeError:
        value, exact = _parsed_loosely(data), None
    if secret and data.find(b"\\") >= 0:  # JSON can escape the key's characters
        cleaned = _without(secret.decode(), value)
        value, exact = cleaned, exact if cleaned == value else None
    first = value[0] if type(value) is list and value else value  # Gemini wraps errors in a list
    if type(first) is dict and (first.get("error") or first.get("object") == "error"):
        raise error_fault(first, provider.api_key)
    return value, exact


def _secret(provider: Provider) -> bytes | None:
    key = provider.api_key
    return key.encode() if key and len(key) >= _SECRET_CHARACTERS else None


def _has_no_key(data: bytes, provider: Provider) -> bool:
    """Return whether JSON certainly does not have the provider's key, which may be escaped."""
    secret = _secret(provider)
    if secret is None:
        return True
    escaped = any(data.find(mark) >= 0 for mark in (b"\\u00", b"\\/")) or not _UNESCAPED.isdisjoint(secret)
    return not escaped and data.find(secret) < 0


def _without(key: str, value: Any) -> Any:
    if isinstance(value, str):
        return value.replace(key, "***")
    try:
        if isinstance(value, list):
            return [_without(key, item) for item in value]
        if isinstance(value, dict):
            return {name.replace(key, "***"): _without(key, item) for name, item in value.items()}
    except RecursionError:
        raise UpstreamFault("invalid", "The answer is nested too deep.") from None
    return value


def _parsed_loosely(data: bytes) -> Any:
    # Invalid UTF-8, split emoji, NaN and 1e999 are common.
    if len(data) <= _LOOSE_BYTES:
        with contextlib.suppress(ValueError, RecursionError):
            return json.loads(data.decode("utf-8", "replace"), parse_constant=lambda _: None, parse_float=_finite)
    raise UpstreamFault("invalid", "The answer is not valid JSON.")


def _finite(digits: str) -> float | None:
    number = float(digits)
    return number if math.isfinite(number) else None


class BuiltinAnswer:
    """The raw chunks of a built-in model, one at a time."""

    completion = None

    def __init__(self, raws: AsyncGenerator[dict[str, Any], None]) -> None:
        self._raws = raws

    async def more(self) -> list[RawChunk] | None:
        raw = await anext(self._raws, None)
        return None if raw is None else [raw]

    async def aclose(self) -> None:
        await self._raws.aclose()
