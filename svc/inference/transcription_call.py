"""The call for a transcription, by the built-in model or a provider, of an audio file in an open file.

the file's length, measured -> hold (402) -> built_in() | provided(): deltas of the text -> `answer`
                            -> the cost of the `usage` that the provider reports, else of that length
"""

import asyncio
import contextlib
import math
import os
import secrets
import sqlite3
from collections.abc import AsyncGenerator, Mapping
from typing import Any, BinaryIO, NamedTuple

import orjson

from svc.builtin.hearing import Recognized
from svc.errors import UpstreamFault
from svc.inference.answer.raw_answer import parsed
from svc.inference.catalog import Model, Provider
from svc.inference.chat_request import drop_routing_fields
from svc.inference.media_engines import MediaCall, MediaEngines, Parts
from svc.inference.model_call import Bill, Payer
from svc.inference.subtitles import as_srt, as_vtt
from svc.outbound.connection import Reply
from svc.outbound.event_stream import EventReader, parse_event

_ANSWER_BYTES = 16 * 1024 * 1024
_EVENT_BYTES = 1024 * 1024
_STARTED = 1e-6  # a sum of frames may be so many seconds too long
_PRICED_TOKENS, _MINUTE = 1_000_000, 60
_MOST_COUNT = 2**53
# For prices of tokens: no usual model has more for a second, and a server without `usage` is charged so.
_INPUT_TOKENS_PER_SECOND, _OUTPUT_TOKENS_PER_SECOND = 50, 16
_BYTES_PER_TOKEN = 4


class TranscriptionRequest(NamedTuple):
    """`container` is that of the file, and `seconds` its length, which is measured if the model has a price.

    `fields` are the fields of the form. `options` are those for the built-in model.
    """

    container: str
    seconds: float
    format: str
    streams: bool
    granularities: list[str]
    fields: Mapping[str, list[str]]
    options: Mapping[str, Any]


class Used(NamedTuple):
    seconds: int
    input_tokens: int
    output_tokens: int


class TranscriptionCall(MediaCall):
    """One paid transcription. `deltas` are the parts of the text that have not been taken yet.

    At the end `answer` is the body of the answer, and `usage` what a provider reports.
    """

    def __init__(self, model: Model, request: TranscriptionRequest, media: MediaEngines, payer: Payer) -> None:
        super().__init__(model, media, payer)
        self._request = request
        self._seconds = math.ceil(request.seconds - _STARTED)
        self._form_bytes = sum(len(value.encode()) for values in request.fields.values() for value in values)
        self.deltas: list[str] = []
        self.text = ""
        self.answer = b""
        self.usage: dict[str, Any] | None = None
        self._sent = self._ended = False

    # --- money

    def hold_in(self, tx: sqlite3.Connection) -> None:
        self.hold(tx, self._cost_micros(self._first_model, self._estimate()))

    def _estimate(self, output_tokens: int | None = None) -> Used:
        most_output = self._seconds * _OUTPUT_TOKENS_PER_SECOND + _OUTPUT_TOKENS_PER_SECOND
        input_tokens = self._seconds * _INPUT_TOKENS_PER_SECOND + self._form_bytes
        return Used(self._seconds, input_tokens, most_output if output_tokens is None else output_tokens)

    def bill(self) -> Bill:
        used = self._estimate(-(-len(self.text.encode()) // _BYTES_PER_TOKEN))
        if self._ended:
            used = reported_use(self.usage, used)
        if self._failed:  # the input is free, and an answer that was not sent
            used = Used(0, 0, used.output_tokens if self._request.streams else 0)
        elif not self._sent:
            used = Used(0, 0, 0)
        cost_micros = self._cost_micros(self._model, used)
        return Bill(used.input_tokens, used.output_tokens, cost_micros, f"{self._model.id}: {used.seconds} s of audio")

    @staticmethod
    def _cost_micros(model: Model, used: Used) -> int:
        price = model.prices.get
        minutes = used.seconds * price("micros_per_audio_minute", 0) * _PRICED_TOKENS
        tokens = used.input_tokens * price("input_micros_per_million_tokens", 0)
        tokens += used.output_tokens * price("output_micros_per_million_tokens", 0)
        return -(-(minutes + tokens * _MINUTE) // (_PRICED_TOKENS * _MINUTE))

    # --- the engines

    def _add(self, delta: str) -> None:
        if delta:
            self.deltas.append(delta)
            self.text += delta

    def taken_deltas(self) -> list[str]:
        taken, self.deltas = self.deltas, []
        return taken

    async def built_in(self, file: BinaryIO) -> Parts:
        self._sent = True
        request, end = self._request, Recognized(0.0, "")
        segments: list[dict[str, Any]] = []
        folder = self._engines.catalog.hearing_folder
        found = self._media.hearing.recognize(file, request.container, request.options, folder, self._payer.account_id)
        async with contextlib.aclosing(found):
            async for one in found:
                if isinstance(one, Recognized):
                    end = one
                    continue
                segments.append({**one, "id": len(segments)})
                self._add(one["text"] if self.text else one["text"].lstrip())
                yield {}
        self.answer = _written(request, self.text.strip(), segments, end)
        self._ended = True
        yield {"audio_seconds": round(end.seconds, 3)}

    async def provided(self, provider: Provider, model_name: str, file: BinaryIO) -> Parts:
        request, boundary = self._request, secrets.token_hex(24).encode()
        fields = dict(request.fields) if provider.byok else drop_routing_fields({**request.fields}, (), (), {})
        fields |= {"model": [model_name], "response_format": [self._asked_format], "stream": ["true"]}
        if not request.streams:
            del fields["stream"]
        body = await asyncio.to_thread(form_body, fields, request.container, file, boundary)
        headers = ((b"content-type", b"multipart/form-data; boundary=" + boundary),)
        path = "/audio/transcriptions"
        async with self._media.sent(provider, path, body, _ANSWER_BYTES, headers, self._note_sent) as reply:
            del body
            yield {"audio_seconds": round(request.seconds, 3)} if request.seconds else {}
            if reply.header(b"content-type").startswith("text/event-stream"):
                async with contextlib.aclosing(self._events(reply, provider)) as deltas:
                    async for _ in deltas:
                        yield {}
            else:
                await self._read(reply, provider)
                yield {}
        self._ended = True

    def _note_sent(self) -> None:
        self._sent = True

    @property
    def _asked_format(self) -> str:
        """The format that a provider is asked for: text comes as JSON, which has the usage."""
        return "json" if self._request.format == "text" else self._request.format

    async def _read(self, reply: Reply, provider: Provider) -> None:
        content = await reply.read(_ANSWER_BYTES)
        if self._asked_format in ("srt", "vtt"):
            if content[:1] == b"{":  # a fault in the place of the subtitles
                parsed(content, provider)
            try:
                self.text = content.decode()
            except UnicodeDecodeError:
                raise UpstreamFault("invalid", "The answer is not in UTF-8.") from None
            if not self.text.strip() or content[:1] in (b"{", b"<"):
                raise UpstreamFault("invalid", "The answer has no subtitles.")
            self.answer = content
            return
        found = await asyncio.to_thread(parsed, content, provider)  # it may have many segments
        if not isinstance(found, dict) or not isinstance(found.get("text"), str):
            raise UpstreamFault("invalid", "The answer has no text.")
        self._add(found["text"])
        self.usage = found.get("usage")
        self.answer = found["text"].encode() + b"\n" if self._request.format == "text" else orjson.dumps(found)

    async def _events(self, reply: Reply, provider: Provider) -> AsyncGenerator[None, None]:
        reader, done = EventReader(_EVENT_BYTES), None
        while done is None and (chunk := await reply.more()):
            reader.feed(chunk)
            while done is None and (lines := reader.next_event()) is not None:
                event = parse_event(lines)
                found = event and event[1] != b"[DONE]" and parsed(event[1], provider)
                if not isinstance(found, dict):
                    continue
                if found.get("type") == "transcript.text.done":
                    done = found
                elif found.get("type") == "transcript.text.delta" and isinstance(found.get("delta"), str):
                    self._add(found["delta"])
                    yield
        if done is None:
            raise UpstreamFault("cut", "The stream ended before the transcript did.")
        text, self.usage = done.get("text"), done.get("usage")
        if isinstance(text, str):
            self._add(text.removeprefix(self.text) if text.startswith(self.text) else "")
            yield
        self.answer = orjson.dumps({"text": self.text})


def reported_use(usage: Any, used: Used) -> Used:
    """Return `used` with the counts that a provider reports. Odd ones are ignored."""
    if not isinstance(usage, dict):
        return used
    counts = {
        name: math.ceil(value - _STARTED)
        for name, value in usage.items()
        if name in ("seconds", *Used._fields) and type(value) in (int, float) and 0 <= value <= _MOST_COUNT
    }
    return used._replace(**counts)


def form_body(fields: Mapping[str, list[str]], container: str, file: BinaryIO, boundary: bytes) -> bytes:
    """Return the multipart body for a server: all fields, and then the whole file of this container format."""
    head = b'--%b\r\ncontent-disposition: form-data; name="%b"'
    parts = [
        head % (boundary, _quoted(name)) + b"\r\n\r\n" + value.encode() + b"\r\n"
        for name, values in fields.items()
        for value in values
    ]
    name = {"matroska": "webm", "mov": "m4a"}.get(container, container).encode()
    parts += [head % (boundary, b"file"), b'; filename="audio.%b"\r\n' % name]
    parts += [b"content-type: application/octet-stream\r\n\r\n", os.pread(file.fileno(), _size(file), 0)]
    return b"".join([*parts, b"\r\n--%b--\r\n" % boundary])


def _size(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_size


def _quoted(name: str) -> bytes:
    """Return a name of a field as browsers write it (WHATWG HTML 4.10.21.8)."""
    return name.replace("\r", "%0D").replace("\n", "%0A").replace('"', "%22").encode()


def _written(request: TranscriptionRequest, text: str, segments: list[dict[str, Any]], end: Recognized) -> bytes:
    """Return the answer of the built-in model in the requested format."""
    if request.format == "text":
        return text.encode() + b"\n"
    if request.format == "srt":
        return as_srt(segments).encode()
    if request.format == "vtt":
        return as_vtt(segments).encode()
    usage = {"type": "duration", "seconds": math.ceil(end.seconds - _STARTED)}
    if request.format == "json":
        return orjson.dumps({"text": text, "usage": usage})
    words = [word for segment in segments for word in segment.pop("words")]
    answer: dict[str, Any] = {"task": "transcribe", "language": end.language, "duration": end.seconds, "text": text}
    if "word" in request.granularities:
        answer["words"] = words
    if "segment" in request.granularities:
        answer["segments"] = segments
    return orjson.dumps({**answer, "usage": usage})
