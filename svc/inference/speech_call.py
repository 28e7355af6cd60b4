"""The call for speech, from the built-in voice or a provider, up to a limit of the output."""

import asyncio
import contextlib
import re
import sqlite3
from collections.abc import Mapping
from math import ceil
from typing import Any, BinaryIO, NamedTuple

from svc.builtin.voice import CONTENT_TYPES
from svc.errors import UpstreamFault
from svc.inference import audio
from svc.inference.answer.raw_answer import parsed
from svc.inference.audio import Track
from svc.inference.catalog import Model, Provider
from svc.inference.media_engines import MediaCall, MediaEngines, Parts
from svc.inference.model_call import Bill, Payer
from svc.outbound.connection import Reply

DEFAULT_AUDIO_TOKENS = 4096
LEAST_AUDIO_TOKENS, MOST_AUDIO_TOKENS = 256, 32_768
# 4096 audio tokens are 180 seconds.
_SECONDS_PER_TOKEN = 180 / 4096
_PRICED_TOKENS = 1_000
# The built-in voice's WAV: 22,050 samples of 16 bits.
_BYTES_PER_SECOND = 44_100
# More than stereo samples of 16 bits at 48 kHz take.
_PROVIDERS_BYTES_PER_SECOND = 200_000
# Of ordinary speech, for formats that do not say their length.
_CHARACTERS_PER_SECOND = 15
# Parsed in one turn of the event loop: a few KiB may hold a thousand frames.
_PART_BYTES = 16 * 1024
_LEAST_BYTES = 12
# No audio file begins like this. Raw samples may, but hardly ever do.
_TEXT_START = re.compile(rb"\s*[{<\[][\t\n\r -~]*")
_TEXT_BYTES = 64 * 1024
_TEXT_SECONDS = 10.0


class SpeechRequest(NamedTuple):
    """`voice` is a built-in voice. `body` has the other fields, for a provider."""

    text: str
    format: str
    voice: str
    speed: float
    most_tokens: int
    body: Mapping[str, Any]


class SpeechCall(MediaCall):
    """One paid request for speech. `track` measures the audio that has arrived."""

    def __init__(self, model: Model, request: SpeechRequest, media: MediaEngines, payer: Payer) -> None:
        super().__init__(model, media, payer)
        self._request = request
        self._most_seconds = request.most_tokens * _SECONDS_PER_TOKEN
        self.track = Track(CONTENT_TYPES["wav"], self._most_seconds)

    @property
    def most_bytes(self) -> int:
        return int(self._most_seconds * _BYTES_PER_SECOND)

    @property
    def tokens(self) -> int:
        return min(ceil(self.track.seconds / _SECONDS_PER_TOKEN - 1e-6), self._request.most_tokens)

    def hold_in(self, tx: sqlite3.Connection) -> None:
        self.hold(tx, self._cost_micros(self._first_model, self._request.most_tokens))

    def bill(self) -> Bill:
        seconds, tokens = (0.0, 0) if self._failed else (self.track.seconds, self.tokens)
        text = f"{self._model.id}: {tokens} audio tokens ({seconds:.1f} s)"
        return Bill(0, tokens, self._cost_micros(self._model, tokens), text)

    @staticmethod
    def _cost_micros(model: Model, tokens: int) -> int:
        return -(-tokens * model.prices.get("micros_per_thousand_audio_tokens", 0) // _PRICED_TOKENS)

    def _logged(self) -> dict[str, Any]:
        return {"audio_seconds": round(self.track.seconds, 3)}

    async def built_in(self, file: BinaryIO) -> Parts:
        request = self._request
        spoken = await self._media.voice.speak(
            request.text,
            file,
            voice=request.voice,
            speed=request.speed,
            format=request.format,
            most_seconds=self._most_seconds,
            account_id=self._payer.account_id,
        )
        self.track = Track(spoken.content_type, self._most_seconds, spoken.seconds)
        self.track.truncated = spoken.truncated
        yield self._logged()

    async def provided(self, provider: Provider, model_name: str, file: BinaryIO) -> Parts:
        request = self._request
        body = {**request.body, "model": model_name, "input": request.text, "response_format": request.format}
        guess_seconds = min(len(request.text) / _CHARACTERS_PER_SECOND / request.speed, self._most_seconds)
        most_bytes = int(self._most_seconds * _PROVIDERS_BYTES_PER_SECOND) + 1024 * 1024
        try:
            async with self._media.asked(provider, "/audio/speech", body, most_bytes) as reply:
                chunk = b""
                while len(chunk) < audio.START_BYTES and (more := await reply.more()):
                    chunk += more
                if len(chunk) < _LEAST_BYTES:
                    raise UpstreamFault("invalid", "The answer holds no audio.")
                content_type = reply.header(b"content-type")
                if _is_text(chunk, content_type):
                    raise await _text_fault(chunk, reply, provider)
                track = self.track = audio.track(chunk, request.format, content_type, self._most_seconds, guess_seconds)
                while chunk and not track.truncated:
                    file.write(track.feed(chunk[:_PART_BYTES]))
                    yield self._logged()
                    await asyncio.sleep(0)
                    chunk = chunk[_PART_BYTES:] or (b"" if track.truncated else await reply.more())
                track.finish(file)
                yield self._logged()
        except ValueError as error:
            raise UpstreamFault("invalid", str(error)) from None


def _is_text(start: bytes, content_type: str) -> bool:
    """Return whether the answer is JSON or HTML. Some servers label that as audio, too."""
    kind = content_type.partition(";")[0].strip().lower()
    labelled = kind.startswith("text/") or kind.endswith("json")
    return labelled or _TEXT_START.fullmatch(start, 0, _LEAST_BYTES) is not None


async def _text_fault(text: bytes, reply: Reply, provider: Provider) -> UpstreamFault:
    """Return the fault for an answer that begins with `text` instead of audio."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_TEXT_SECONDS):
            while len(text) <= _TEXT_BYTES and (chunk := await reply.more()):
                text += chunk
    try:
        parsed(text, provider)
    except UpstreamFault as fault:
        if fault.kind == "status":
            return fault
    return UpstreamFault("invalid", "The answer is no audio.")
