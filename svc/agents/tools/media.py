"""Tools that draw and speak, with models that may have a price."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Annotated, Any, BinaryIO

from svc import quota
from svc.agents.tools.account import file_fields
from svc.agents.tools.registry import ToolContext, tool
from svc.inference.catalog import Model
from svc.inference.image_call import MOST_SIDE, ImageCall, ImageRequest
from svc.inference.media_engines import store
from svc.inference.speech_call import DEFAULT_AUDIO_TOKENS, SpeechCall, SpeechRequest
from svc.shapes import text

_VOICE = "alloy"


@tool("Draws a picture, kept as a file of the user.", "image")
async def generate_image(
    context: ToolContext, prompt: Annotated[str, text(4_000, least=1).about("what the picture shows")]
) -> dict[str, Any]:
    model = context.media_models["image"]
    call = ImageCall(
        model, ImageRequest(prompt, 1, MOST_SIDE, MOST_SIDE, {"prompt": prompt}), context.media, context.payer
    )
    async with _paid(context, call, model) as file:
        (picture,) = call.pictures
        artifact = await store(context.media, context.home, prompt, picture.content(file))
    revised = {} if picture.revised_prompt is None else {"revised_prompt": picture.revised_prompt}
    return file_fields(artifact) | revised


@tool("Speaks a text, kept as a file of the user.", "speech")
async def generate_audio(
    context: ToolContext, input: Annotated[str, text(10_000, least=1).about("the text to speak")]
) -> dict[str, Any]:
    model = context.media_models["speech"]
    request = SpeechRequest(input, "wav", _VOICE, 1.0, DEFAULT_AUDIO_TOKENS, {"voice": _VOICE})
    call = SpeechCall(model, request, context.media, context.payer)
    async with _paid(context, call, model) as file:
        file.seek(0)
        content = await asyncio.to_thread(file.read)
        return file_fields(await store(context.media, context.home, input, content, spoken_as=call.track.content_type))


@contextlib.asynccontextmanager
async def _paid(context: ToolContext, call: ImageCall | SpeechCall, model: Model) -> AsyncIterator[BinaryIO]:
    """Reserve room for the artifact of `call`, hold its cost and yield a file with its answer; then settle it."""
    room = quota.room(context.engines.db, context.home.account_id, call.most_bytes, artifacts=1)
    async with room, context.paying(call):
        with context.media.slots(model).taken(context.home.account_id), context.media.spool() as file:
            await call.make(file)
            yield file
