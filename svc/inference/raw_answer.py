"""What a model server answered, read as raw chunks while it comes: whatever its content type says, whatever its quality.

bytes -> `{` or `[`: one JSON answer | `<`: a page, refused | else server-sent events, each one a raw chunk
      -> events that repeat one before them together (svc/inference/repeats.py), the others parsed one by one
      -> any fault becomes an UpstreamFault, which svc/inference/upstream_errors.py turns into what the caller sees
"""

import asyncio
import contextlib
import json
import math
import time
from collections.abc import Awaitable
from typing import Any, Protocol

import orjson

from svc import json_text
from svc.errors import UpstreamFault
from svc.inference.repeats import Repeat, Repeats
from svc.inference.upstream_errors import CLIENT_FAULTS, error_object, error_status, fault_of, is_error
from svc.json_text import MOST_JSON_VALUES, has_more_values
from svc.outbound.connection import Reply
from svc.outbound.errors import OutboundError
from svc.outbound.event_stream import EventReader, ServerSentEvent

_EVENT_BYTES = 4 * 1024 * 1024
_ANSWER_SECONDS = 3600.0
_BIG_JSON_BYTES = 64 * 1024
# An event is read on the event loop; no real one holds so many values.
_EVENT_VALUES = 20_000
_OPERATOR_VALUES = 200_000
# The parser that takes almost anything lets nobody else have a turn until it is done.
_LOOSE_BYTES = 2 * 1024 * 1024
# How long the rest of the body may take after `[DONE]`, so that the connection can be used again.
_AFTERWARDS_SECONDS = 0.05
# A shorter key is no secret but a placeholder ("ollama"), which may well stand in a model's text.
_SECRET_CHARACTERS = 12
_TOO_MANY_VALUES = "The answer holds too many values."
_NO_ANSWER = "The answer is neither JSON nor an event stream."
# How many events of a read of the network are read one by one before the others: the role, a text, and perhaps one more.
_TRIES = 3
_BLANKS = b"\xef\xbb\xbf \t\r\n"

RawChunk = dict[str, Any] | Repeat


class Endpoint(Protocol):
    """A model server as its owner configured it; `timeout_seconds` is to the first byte and between bytes. `byok`: its owner is
    a user, `account_id`."""

    @property
    def name(self) -> str: ...
    @property
    def base_url(self) -> str: ...
    @property
    def api_key(self) -> str | None: ...
    @property
    def timeout_seconds(self) -> float: ...
    @property
    def byok(self) -> bool: ...
    @property
    def account_id(self) -> str: ...


class RawAnswer:
    """The body of one answer as raw chunks, which come as they are read from the network. To be closed however it ends.

    `completion` is the one JSON answer that came in the place of a stream, once it has been had.
    """

    __slots__ = (
        *("_deadline", "_done", "_ended", "_endpoint", "_events", "_fault", "_json", "_left_bytes", "_repeats", "_reply"),
        *("_unfinished", "completion"),
    )
    _repeats: Repeats

    def __init__(self, reply: Reply, endpoint: Endpoint, limit_bytes: int) -> None:
        self._reply = reply
        self._endpoint = endpoint
        self._left_bytes = limit_bytes
        self._deadline = time.monotonic() + _ANSWER_SECONDS
        self.completion: dict[str, Any] | None = None
        self._json: list[bytes] = []
        self._events: EventReader | None = None
        self._done = self._ended = False  # `[DONE]` has come; nothing more is to be read, for that, a fault or the end
        self._fault: UpstreamFault | None = None  # what came behind the chunks that were returned
        # Without framing a cut connection looks like the end of the body: then the answer itself must have said that it ends.
        self._unfinished: set[Any] | None = None if reply.framed else {None}

    async def more(self) -> list[RawChunk] | None:
        """The next raw chunks, as many as a read of the network brought; None after the last. Raises UpstreamFault."""
        try:
            while not self._ended:
                data = await self._reply.more()
                raws = self._feed(data) if data else []
                if not self._ended and (not data or (self._events is None and self._reply.ended)):
                    self._ended = True
                    data = b"".join(self._json)
                    if len(data) > _BIG_JSON_BYTES:
                        self.completion = await asyncio.to_thread(_chunk, data, self._endpoint, True)
                    elif data:
                        self.completion = _chunk(data, self._endpoint)
                    raws += self._rest() if self.completion is None else [self.completion]
                if raws:
                    return raws
        except CLIENT_FAULTS as error:
            raise fault_of(error) from None
        if self._fault is not None:
            raise self._fault
        if self._done and not self._reply.ended:
            await _read_out(self._reply)
        return None

    def aclose(self) -> Awaitable[None]:
        """Ends the request at once where the answer has not come to its end."""
        return self._reply.aclose()

    def _feed(self, data: bytes) -> list[RawChunk]:
        """The raw chunks that are whole with `data`. Raises UpstreamFault."""
        self._left_bytes -= len(data)
        if self._left_bytes < 0:
            raise UpstreamFault("invalid", "The answer is too long.")
        if time.monotonic() > self._deadline:
            raise UpstreamFault("timeout", "The answer takes too long.")
        if self._events is None and not self._json:
            data = data.lstrip(_BLANKS)
            if data.startswith(b"<"):
                raise UpstreamFault("invalid", _NO_ANSWER)
            if data and not data.startswith((b"{", b"[")):
                self._events = EventReader(_EVENT_BYTES)
                self._repeats = Repeats(self._endpoint.api_key if _secret(self._endpoint) else None)
        if self._events is not None:
            return self._read_events(self._events, data)
        if data:
            self._json.append(data)
        return []

    def _read_events(self, reader: EventReader, data: bytes) -> list[RawChunk]:
        """The chunks of the events that `data` completes: those that repeat one before them together, the others one by one."""
        raws: list[RawChunk] = []
        tries = 0
        while tries < _TRIES and (begun := reader.take_back()) is not None:
            tries += 1
            data = begun + data if begun else data
            if (found := self._repeats.find(data)) is not None:
                repeat, data = found
                raws.append(repeat)
                break
            first, end, data = data.partition(b"\n\n")  # which the next may repeat
            raws += self._chunks(reader.feed(first + end))
            if not data or self._ended:
                return raws
        return raws + self._chunks(reader.feed(data)) if data else raws

    def _rest(self) -> list[RawChunk]:
        """What the end of a body makes whole that is no JSON. Raises UpstreamFault."""
        if self._events is None:
            raise UpstreamFault("invalid", _NO_ANSWER)
        raws = self._chunks(self._events.end())
        if self._fault is None and self._unfinished and not self._done:
            self._fault = UpstreamFault("cut", "The connection ended before the answer did.")
        return raws

    def _chunks(self, events: list[ServerSentEvent]) -> list[RawChunk]:
        raws: list[RawChunk] = []
        last: tuple[bytes, dict[str, Any]] | None = None
        try:
            for name, data in events:
                data = data.strip()
                if data == b"[DONE]":
                    self._done = self._ended = True
                    break
                if len(data) > _EVENT_VALUES and has_more_values(data, _EVENT_VALUES):
                    raise UpstreamFault("invalid", _TOO_MANY_VALUES)
                if data and name == b"error":
                    raise _told_fault(data, self._endpoint)
                if data:
                    raw = _chunk(data, self._endpoint)
                    last = data, raw
                    raws.append(raw)
                    if self._unfinished is not None:
                        _note_finish(raw, self._unfinished)
        except UpstreamFault as fault:
            self._fault, self._ended = fault, True
        if last is not None:
            self._repeats.learn(*last)
        return raws


async def _read_out(reply: Reply) -> None:
    """What comes after `[DONE]`, a second one too, means nothing; a body read to its end leaves a connection that can be kept."""
    with contextlib.suppress(TimeoutError, OutboundError):
        async with asyncio.timeout(_AFTERWARDS_SECONDS):
            while await reply.more():
                pass


def _note_finish(raw: dict[str, Any], unfinished: set[Any]) -> None:
    choices = raw.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict):
            unfinished.discard(None)
            index = repr(choice.get("index"))
            (unfinished.discard if choice.get("finish_reason") else unfinished.add)(index)


def _chunk(data: bytes, endpoint: Endpoint, apart: bool = False) -> dict[str, Any]:
    """`data` as a chunk or an answer. Raises UpstreamFault, also for an object that tells of an error in its place."""
    value = parsed(data, endpoint, apart)
    if not isinstance(value, dict):
        raise UpstreamFault("invalid", "The answer is no JSON object.")
    if "choices" not in value and is_error(value):
        raise _error_fault(value, endpoint)
    return value


def parsed(data: bytes, endpoint: Endpoint, apart: bool = False) -> Any:
    """`data` as JSON, our key taken out; `apart` from the event loop, it takes care that this gets its turns.

    Raises UpstreamFault `invalid`, or `status` for an error object.
    """
    # A parser lets nobody else have a turn. The operator's own servers are asked for long lists of probabilities, too.
    if has_more_values(data, MOST_JSON_VALUES if endpoint.byok else _OPERATOR_VALUES):
        raise UpstreamFault("invalid", _TOO_MANY_VALUES)
    secret = _secret(endpoint) if endpoint.api_key else None
    if secret:
        data = data.replace(secret, b"***")
    try:
        value = json_text.loads(data) if apart else orjson.loads(data)
    except orjson.JSONDecodeError:
        value = _parsed_loosely(data)
    if secret and data.find(b"\\") >= 0:  # JSON can spell the key in other ways
        value = _without(secret.decode(), value)
    first = value[0] if type(value) is list and value else value  # Gemini wraps errors in a list
    if type(first) is dict and (first.get("error") or first.get("object") == "error"):
        raise _error_fault(first, endpoint)
    return value


def _secret(endpoint: Endpoint) -> bytes | None:
    return endpoint.api_key.encode() if endpoint.api_key and len(endpoint.api_key) >= _SECRET_CHARACTERS else None


def _error_fault(document: Any, endpoint: Endpoint) -> UpstreamFault:
    error = error_object(document, endpoint.api_key)
    return UpstreamFault("status", "The answer is an error.", status=error_status(document), error=error)


def _told_fault(data: bytes, endpoint: Endpoint) -> UpstreamFault:
    """The fault that an event named `error` tells of, in JSON or in plain words."""
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError:
        document = data.decode("utf-8", "replace")
    if isinstance(document, dict) and not document.get("error"):
        document = {"error": document}  # llama.cpp: the line `error:` holds what stands under that name elsewhere
    return _error_fault(document, endpoint)


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
    # Invalid UTF-8, emoji in two halves, NaN and 1e999 are common enough that an answer should not fail for them.
    if len(data) <= _LOOSE_BYTES:
        with contextlib.suppress(ValueError, RecursionError):
            return json.loads(data.decode("utf-8", "replace"), parse_constant=lambda _: None, parse_float=_finite)
    raise UpstreamFault("invalid", "The answer is not valid JSON.")


def _finite(digits: str) -> float | None:
    number = float(digits)
    return number if math.isfinite(number) else None
