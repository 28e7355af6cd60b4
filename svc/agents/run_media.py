"""Pictures and speech that an agent makes: each is a separate paid call and is kept as an artifact of the run."""

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from svc import quota
from svc.content.artifacts import Artifact
from svc.errors import ApiError
from svc.inference import media_files
from svc.inference.catalog import Model
from svc.inference.image_call import MOST_SIDE, ImageCall, ImageRequest
from svc.inference.media_engines import MediaEngines
from svc.inference.paid_call import PaidCall, Payer
from svc.inference.speech_call import DEFAULT_AUDIO_TOKENS, SpeechCall, SpeechRequest

_VOICE = "alloy"


@dataclass
class RunMedia:
    """Makes the media of one run, with a model for each kind. `also` is written with each settlement; `calls` grows."""

    engines: MediaEngines
    payer: Payer
    home: media_files.Home
    image_model: Model | None
    speech_model: Model | None
    also: Callable[[sqlite3.Connection], None]
    calls: list[PaidCall]

    async def draw(self, prompt: str) -> tuple[Artifact, str | None]:
        """Return the artifact of a new picture and the model's description of it. Raises ApiError."""
        model = _required(self.image_model)
        call = ImageCall(model, ImageRequest(prompt, 1, MOST_SIDE, MOST_SIDE, {"prompt": prompt}), self.engines, self.payer)
        async with self._paid(call, self.engines.limits(model).images.taken(self.payer.account_id), call.most_bytes):
            async with contextlib.aclosing(call.pictures()) as pictures:
                picture = await anext(pictures)
            artifact = await media_files.store_picture(self.engines, self.home, prompt, picture.content)
            return artifact, picture.revised_prompt

    async def speak(self, text: str) -> Artifact:
        """Return the artifact of up to 3 minutes of speech. Raises ApiError."""
        model = _required(self.speech_model)
        request = SpeechRequest(text, "wav", _VOICE, 1.0, DEFAULT_AUDIO_TOKENS, {"voice": _VOICE})
        call = SpeechCall(model, request, self.engines, self.payer)
        async with self._paid(call, self.engines.limits(model).speeches.taken(self.payer.account_id), call.most_bytes):
            with self.engines.spool() as file:
                await call.speak(file)
                file.seek(0)
                content = await asyncio.to_thread(file.read)
            return await media_files.store_speech(self.engines, self.home, text, call.content_type, content)

    @contextlib.asynccontextmanager
    async def _paid(self, call: PaidCall, slot: AbstractContextManager[None], most_bytes: int) -> AsyncIterator[None]:
        call.also = self.also
        self.calls.append(call)
        async with quota.room(self.engines.engines.db, self.payer.account_id, most_bytes, artifacts=1), call:
            with slot:
                yield


def _required(model: Model | None) -> Model:
    if model is None:
        raise ApiError("model_not_found")
    return model
