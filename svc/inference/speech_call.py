"""The paid call for speech, from the built-in voice or a provider, up to a limit of the output."""

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncGenerator, Mapping
from math import ceil
from typing import Any, BinaryIO, NamedTuple

from svc.builtin.voice import CONTENT_TYPES
from svc.inference import upstream_media
from svc.inference.catalog import Model
from svc.inference.chat_request import drop_routing_fields
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
    """One request for speech; its attributes are valid after `speak`."""

    def __init__(self, model: Model, request: SpeechRequest, media: MediaEngines, payer: Payer) -> None:
        super().__init__(model, media.engines, payer)
        self._request = request
        self._media = media
        self._most_seconds = request.most_tokens * _SECONDS_PER_TOKEN
        self.seconds = 0.0
        self.truncated = False
        self.content_type = CONTENT_TYPES["wav"]

    @property
    def most_bytes(self) -> int:
        """The estimated size of the speech, before it is made."""
        return int(self._most_seconds * _BYTES_PER_SECOND)

    @property
    def tokens(self) -> int:
        """The audio tokens of the speech."""
        return min(ceil(self.seconds / _SECONDS_PER_TOKEN - 1e-6), self._request.most_tokens)

    def hold_in(self, tx: sqlite3.Connection) -> None:
        self.hold(tx, self._cost_micros(self._asked, self._request.most_tokens))

    def bill(self) -> Bill:
        seconds, tokens = (0.0, 0) if self._failed else (self.seconds, self.tokens)
        text = f"{self._model.id}: {tokens} audio tokens ({seconds:.1f} s)"
        return Bill(0, tokens, self._cost_micros(self._model, tokens), text)

    @staticmethod
    def _cost_micros(model: Model, tokens: int) -> int:
        return -(-tokens * model.prices.get("micros_per_thousand_audio_tokens", 0) // _PRICED_TOKENS)

    async def speak(self, file: BinaryIO) -> None:
        """Write the speech to the empty `file`. Raises ApiError."""
        with storage():
            async with contextlib.aclosing(self.with_retries(lambda model: self._engine(model, file))) as steps:
                async for self.seconds, self.truncated, self.content_type in steps:
                    self.log_fields["audio_seconds"] = round(self.seconds, 3)

    async def _engine(self, model: Model, file: BinaryIO) -> AsyncGenerator[tuple[float, bool, str], None]:
        request = self._request
        if model.provider is None:
            voice, format = await self._media.voice.nearest(request.voice, request.format)
            spoken = await self._media.voice.speak(
                request.text,
                file,
                voice=voice,
                speed=request.speed,
                format=format,
                most_seconds=self._most_seconds,
                account_id=self._payer.account_id,
            )
            yield spoken.seconds, spoken.truncated, CONTENT_TYPES[format]
            return
        body = {**request.body, "model": model.name, "input": request.text, "response_format": request.format}
        # In a thread, because a body may hold many values.
        body = body if model.provider.byok else await asyncio.to_thread(drop_routing_fields, body)
        tracks = upstream_media.speech(
            self._engines.way_to(model.provider),
            model.provider,
            body,
            file,
            most_seconds=self._most_seconds,
            guess_seconds=min(len(request.text) / _CHARACTERS_PER_SECOND / request.speed, self._most_seconds),
        )
        async with contextlib.aclosing(tracks):
            async for track in tracks:
                yield track.seconds, track.truncated, track.content_type
