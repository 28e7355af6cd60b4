"""Pictures and speech that an agent makes: each is a paid call of its own, kept as an artifact of the run."""

import asyncio
import contextlib
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TypeVar

from svc import quota
from svc.content.artifacts import Artifact
from svc.errors import ApiError
from svc.inference import media_files
from svc.inference.catalog import Model
from svc.inference.image_call import MOST_SIDE, ImageCall, ImageRequest
from svc.inference.media_engines import MediaEngines
from svc.inference.paid_call import PaidCall, Payer
from svc.inference.speech_call import DEFAULT_AUDIO_TOKENS, SpeechCall, SpeechRequest

T = TypeVar("T")
_VOICE = "alloy"


@dataclass
class Maker:
    """Draws and speaks for one run, with a model for each. `also` is written with each settlement; `calls` is added to."""

    media: MediaEngines
    payer: Payer
    home: media_files.Home
    image_model: Model | None
    speech_model: Model | None
    also: Callable[[sqlite3.Connection], None]
    calls: list[PaidCall]

    async def draw(self, prompt: str) -> tuple[Artifact, str | None]:
        """Draw a picture, and return its artifact and what the model says of it. Raises ApiError."""
        model = _there(self.image_model)
        call = ImageCall(model, ImageRequest(prompt, 1, MOST_SIDE, MOST_SIDE, {"prompt": prompt}), self.media, self.payer)

        async def make() -> tuple[Artifact, str | None]:
            async with contextlib.aclosing(call.pictures()) as pictures:
                picture = await anext(pictures)
            artifact = await media_files.store_picture(self.media, self.home, prompt, picture.content)
            return artifact, picture.revised_prompt

        return await self._made(call, self.media.limits(model).images.taken(self.payer.account_id), call.most_bytes, make)

    async def speak(self, text: str) -> Artifact:
        """Speaks up to 3 minutes; the artifact. Raises ApiError."""
        model = _there(self.speech_model)
        request = SpeechRequest(text, "wav", _VOICE, 1.0, DEFAULT_AUDIO_TOKENS, {"voice": _VOICE})
        call = SpeechCall(model, request, self.media, self.payer)

        async def make() -> Artifact:
            with self.media.spool() as file:
                await call.speak(file)
                file.seek(0)
                content = await asyncio.to_thread(file.read)
            return await media_files.store_speech(self.media, self.home, text, call.content_type, content)

        return await self._made(call, self.media.limits(model).speeches.taken(self.payer.account_id), call.most_bytes, make)

    async def _made(
        self, call: PaidCall, slot: AbstractContextManager[None], most_bytes: int, make: Callable[[], Awaitable[T]]
    ) -> T:
        call.also = self.also
        self.calls.append(call)
        async with quota.room(self.media.engines.db, self.payer.account_id, most_bytes, artifacts=1), call:
            with slot:
                return await make()


def _there(model: Model | None) -> Model:
    if model is None:
        raise ApiError("model_not_found")
    return model
