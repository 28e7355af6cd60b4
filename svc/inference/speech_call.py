"""The paid call for speech, from the built-in voice or a provider, up to a limit of the output."""

import contextlib
import sqlite3
from collections.abc import AsyncGenerator, Mapping
from math import ceil
from typing import Any, BinaryIO, NamedTuple

from svc.builtin.voice import CONTENT_TYPES
from svc.inference import upstream_media
from svc.inference.audio import Track
from svc.inference.catalog import Model
from svc.inference.media_engines import MediaEngines, storage
from svc.inference.paid_call import Bill, PaidCall, Payer

DEFAULT_AUDIO_TOKENS = 4096
LEAST_AUDIO_TOKENS, MOST_AUDIO_TOKENS = 256, 32_768
# 4096 audio tokens are 180 seconds.
_SECONDS_PER_TOKEN = 180 / 4096
_PRICED_TOKENS = 1_000
# The built-in voice's WAV: 22,050 samples of 16 bits.
_BYTES_PER_SECOND = 44_100
# Of ordinary speech, for formats that do not say their length.
_CHARACTERS_PER_SECOND = 15


class SpeechRequest(NamedTuple):
    """`voice` is a built-in voice. `body` has the other fields, for a provider."""

    text: str
    format: str
    voice: str
    speed: float
    most_tokens: int
    body: Mapping[str, Any]


class SpeechCall(PaidCall):
    """One request for speech. `track` is the speech so far."""

    def __init__(self, model: Model, request: SpeechRequest, media: MediaEngines, payer: Payer) -> None:
        super().__init__(model, media.engines, payer)
        self._request = request
        self._media = media
        self._most_seconds = request.most_tokens * _SECONDS_PER_TOKEN
        self.track = Track(CONTENT_TYPES["wav"], self._most_seconds)

    @property
    def most_bytes(self) -> int:
        """The estimated size of the speech, before it is made."""
        return int(self._most_seconds * _BYTES_PER_SECOND)

    @property
    def tokens(self) -> int:
        """The audio tokens of the speech."""
        return min(ceil(self.track.seconds / _SECONDS_PER_TOKEN - 1e-6), self._request.most_tokens)

    def hold_in(self, tx: sqlite3.Connection) -> None:
        self.hold(tx, self._cost_micros(self._asked, self._request.most_tokens))

    def bill(self) -> Bill:
        seconds, tokens = (0.0, 0) if self._failed else (self.track.seconds, self.tokens)
        text = f"{self._model.id}: {tokens} audio tokens ({seconds:.1f} s)"
        return Bill(0, tokens, self._cost_micros(self._model, tokens), text)

    @staticmethod
    def _cost_micros(model: Model, tokens: int) -> int:
        return -(-tokens * model.prices.get("micros_per_thousand_audio_tokens", 0) // _PRICED_TOKENS)

    async def speak(self, file: BinaryIO) -> None:
        """Write the speech to the empty `file`. Raises ApiError."""
        with storage():
            async with contextlib.aclosing(self.with_retries(lambda model: self._engine(model, file))) as tracks:
                async for self.track in tracks:
                    self.log_fields["audio_seconds"] = round(self.track.seconds, 3)

    def _engine(self, model: Model, file: BinaryIO) -> AsyncGenerator[Track, None]:
        request = self._request
        if model.provider is None:
            return self._spoken_here(file)
        return upstream_media.speech(
            self._engines.way_to(model.provider),
            model.provider,
            {**request.body, "model": model.name, "input": request.text, "response_format": request.format},
            file,
            most_seconds=self._most_seconds,
            guess_seconds=min(len(request.text) / _CHARACTERS_PER_SECOND / request.speed, self._most_seconds),
        )

    async def _spoken_here(self, file: BinaryIO) -> AsyncGenerator[Track, None]:
        request = self._request
        voice, format = await self._media.voice.nearest(request.voice, request.format)
        track = Track(CONTENT_TYPES[format], self._most_seconds)
        track.seconds, track.truncated = await self._media.voice.speak(
            request.text,
            file,
            voice=voice,
            speed=request.speed,
            format=format,
            most_seconds=self._most_seconds,
            account_id=self._payer.account_id,
        )
        yield track
