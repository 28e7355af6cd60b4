"""Images and speech, in OpenAI's wire format and as `/v1/audio/generate`.

body -> checks (400, 404, 413) -> storage for artifacts (413) -> hold (402) -> slot (503) -> a file of the answer ->
settlement
     -> the answer from the file
The answer is complete before it is sent: its length, cost and truncation are headers, and a failure is an HTTP error.
"""

import asyncio
import base64
import contextlib
import os
from collections.abc import AsyncGenerator, AsyncIterator
from functools import partial
from typing import Any, BinaryIO

import orjson

from svc import quota
from svc.content import artifacts
from svc.errors import ApiError, CallerStopped, ClientGone, invalid_value
from svc.ids import new_id
from svc.inference.answer.events import event
from svc.inference.catalog import Model
from svc.inference.claim import Headers
from svc.inference.image_call import LARGE_SIZES, LEAST_SIDE, MOST_SIDE, ImageCall, ImageRequest
from svc.inference.media_engines import MediaEngines, storage, store
from svc.inference.model_call import ModelCall
from svc.inference.speech_call import (
    DEFAULT_AUDIO_TOKENS,
    LEAST_AUDIO_TOKENS,
    MOST_AUDIO_TOKENS,
    SpeechCall,
    SpeechRequest,
)
from svc.routes.completion import cost_of, payer_of, stream_of
from svc.routes.kept import JSON, keep_refusal
from svc.routes.schemas import media as schemas
from svc.routes.schemas.common import MODEL_CALL
from svc.server.guards import Caller
from svc.server.interface import Operation, Refusal
from svc.server.sse import Interrupt, LastBlock
from svc.server.state import State
from svc.server.streamed import Download
from svc.server.web import Request, Response, add_log_fields
from svc.shapes import nullable, one_of

describes = partial(Operation, "Media")
_REFUSALS = (
    Refusal("invalid_value", "size must be of the form WIDTHxHEIGHT, such as 512x512, or auto.", "size"),
    Refusal(
        "PAYLOAD_TOO_LARGE",
        "input has 4097 characters; at most 4096 are allowed.",
        "input",
        "The text is too long, or the account has too many artifacts to store an image.",
    ),
    Refusal("overloaded", "There are too many open requests for images or audio. Try again in a few seconds."),
    *MODEL_CALL,
)

_CHUNK_BYTES = 64 * 1024
_ENCODED_BYTES = 3 * 128 * 1024


# --- images


@describes(
    "Generate images",
    "OpenAI's image generation. It does not count as a chat request. A model with a price is paid for each generated "
    "image.",
    body=schemas.IMAGE,
    answer=schemas.IMAGES_ANSWER,
    errors=_REFUSALS,
)
async def create_image(request: Request, caller: Caller, body: dict[str, Any]) -> Response:
    state = request.state
    wanted = _image_request(body)
    as_url = body.get("response_format") == "url"
    model = await state.models.chosen(caller.id, caller.default_model, body.get("model"), "image", caller.group)
    if model.provider is None:
        _check_for_painter(body, wanted)
    call = ImageCall(model, wanted, state.media, payer_of(request, caller))
    room = quota.room(state.db, caller.id, call.most_bytes, wanted.count) if as_url else contextlib.nullcontext()
    with contextlib.ExitStack() as held:
        async with room, _kept(state, caller) as kept, made(request, call):
            held.enter_context(state.media.slots(model).taken(caller.id))
            file = held.enter_context(state.media.spool())
            await _write_images(state, caller, call, wanted.prompt, file, kept if as_url else None)
            await keep(request, _chunks(file), lambda: {**JSON, **cost_of(call)})
        return from_file(request, file, {**JSON, **cost_of(call)}, held.pop_all())


def _image_request(body: dict[str, Any]) -> ImageRequest:
    if body.get("stream"):
        raise invalid_value("Images are not streamed here. Leave stream out.", "stream")
    size = body.get("size") or "auto"
    width, height = map(int, ("1024x1024" if size == "auto" else size).split("x"))
    passed_on = {
        name: value for name, value in body.items() if name not in ("stream", "partial_images", "response_format")
    }
    return ImageRequest(body["prompt"], int(body.get("n") or 1), width, height, passed_on)


def _check_for_painter(body: dict[str, Any], wanted: ImageRequest) -> None:
    """Raise ApiError `invalid_value` for what the built-in painter does not support."""
    size = (wanted.width, wanted.height)
    if size not in LARGE_SIZES and not all(LEAST_SIDE <= side <= MOST_SIDE for side in size):
        sides = f"between {LEAST_SIDE} and {MOST_SIDE} a side"
        raise invalid_value(f"size must be {sides}, such as 512x512, or one of {schemas.LARGE}.", "size")
    nullable(one_of("png")).check(body.get("output_format"), "output_format")


@contextlib.asynccontextmanager
async def _kept(state: State, caller: Caller) -> AsyncIterator[list[str]]:
    """Yield a list for the ids of stored artifacts. If the block fails, they are deleted: errors cost nothing."""
    kept: list[str] = []
    try:
        yield kept
    except (ClientGone, CallerStopped):  # the caller pays for these images
        raise
    except Exception:
        for artifact_id in kept:
            with contextlib.suppress(ApiError):
                await state.db.write_as("alone", artifacts.TABLE.delete, caller.id, artifact_id)
        raise


async def _write_images(
    state: State, caller: Caller, call: ImageCall, prompt: str, file: BinaryIO, kept: list[str] | None
) -> None:
    """Write the answer with one image in memory at a time: as URLs if the images are `kept`, else in base64."""
    with storage(), state.media.spool() as drawn:
        file.write(b'{"created":%d,"data":[' % int(state.clock()))
        await call.make(drawn)
        for number, picture in enumerate(call.pictures, 1):
            content = picture.content(drawn)
            url = None if kept is None else await _url(state, caller, prompt, content, number, kept)
            await asyncio.to_thread(_write_image, file, content, picture.revised_prompt, url, number)
        file.write(b"]")
        for name, value in call.details.items():
            file.write(b",%b:%b" % (orjson.dumps(name), orjson.dumps(value)))
        file.write(b"}")


async def _url(state: State, caller: Caller, prompt: str, content: bytes, number: int, kept: list[str]) -> str:
    """Store the picture as an artifact and return the URL of its content."""
    artifact_id = new_id("art", state.clock())
    kept.append(artifact_id)  # before it is written, because a shutdown does not stop the write
    await store(state.media, artifacts.Home(caller.id), prompt, content, number=number, artifact_id=artifact_id)
    return artifacts.content_url(
        state.derived_keys["content"], state.config.base_url, caller.id, artifact_id, state.clock()
    )


def _write_image(file: BinaryIO, content: bytes, revised_prompt: str | None, url: str | None, number: int) -> None:
    file.write(b"{" if number == 1 else b",{")
    if url is None:
        file.write(b'"b64_json":"')
        for start in range(0, len(content), _ENCODED_BYTES):  # in chunks, because base64 holds the GIL
            file.write(base64.b64encode(content[start : start + _ENCODED_BYTES]))
        file.write(b'"')
    else:
        file.write(b'"url":' + orjson.dumps(url))
    if revised_prompt is not None:
        file.write(b',"revised_prompt":' + orjson.dumps(revised_prompt))
    file.write(b"}")


# --- speech


@describes("Generate speech", body=schemas.AUDIO, answer=schemas.AUDIO_ANSWER, errors=_REFUSALS)
async def generate_audio(request: Request, caller: Caller, body: dict[str, Any]) -> Response:
    return await _speech(request, caller, body, "format")


@describes(
    "Generate speech in OpenAI's format",
    "The same as `/v1/audio/generate`, for clients of OpenAI's format.",
    body=schemas.SPEECH,
    answer=schemas.SPEECH_ANSWER,
    errors=_REFUSALS,
)
async def create_speech(request: Request, caller: Caller, body: dict[str, Any]) -> Response:
    return await _speech(request, caller, body, "response_format")


async def _speech(request: Request, caller: Caller, body: dict[str, Any], format_field: str) -> Response:
    media, models = request.state.media, request.state.models
    model = await models.chosen(caller.id, caller.default_model, body.get("model"), "speech", caller.group)
    if model.byok:
        schemas.check_length(body["input"], "input", schemas.SPEECH_LENGTH)
    wanted = await _speech_request(media, model, body, format_field)
    call = SpeechCall(model, wanted, media, payer_of(request, caller))
    as_events = format_field == "response_format" and body.get("stream_format") == "sse"
    with contextlib.ExitStack() as held:
        async with made(request, call):
            held.enter_context(media.slots(model).taken(caller.id))
            file = held.enter_context(media.spool())
            await call.make(file)
            content_type = "text/event-stream" if as_events else call.track.content_type
            chunks = _as_events(call, file) if as_events else _chunks(file)
            await keep(request, chunks, lambda: {"content-type": content_type, **_audio_headers(call)})
        headers = _audio_headers(call)
        if as_events:
            stream = stream_of(request, _as_events(call, file), Interrupt(), headers)
            stream.held, stream.is_made = held.pop_all(), True
            return stream
        return from_file(request, file, {"content-type": content_type, **headers}, held.pop_all())


def _audio_headers(call: SpeechCall) -> dict[str, str]:
    track = call.track
    truncated = str(track.truncated).lower()
    return {"x-audio-seconds": f"{track.seconds:.3f}", "x-audio-truncated": truncated, **cost_of(call)}


async def _speech_request(media: MediaEngines, model: Model, body: dict[str, Any], format_field: str) -> SpeechRequest:
    named = body.get("voice") or "alloy"
    voice = named["id"] if isinstance(named, dict) else named
    known = media.voice.encoders
    # OpenAI's default is mp3. Without an encoder the answer is WAV.
    as_mp3 = format_field == "response_format" and (model.provider is not None or "mp3" in known)
    format = body.get(format_field) or ("mp3" if as_mp3 else "wav")
    if model.provider is None:
        if format not in known:
            message = f"{model.id} cannot make {format} on this machine, only {', '.join(known)}."
            raise invalid_value(message, format_field)
        voice = await media.voice.named(voice)
    ours = (format_field, "tts_max_tokens", "stream_format")
    passed_on = {name: value for name, value in body.items() if name not in ours}
    passed_on["voice"] = voice if body.get("voice") is None else body["voice"]
    wanted = body.get("tts_max_tokens")
    tokens = DEFAULT_AUDIO_TOKENS if wanted is None else min(max(wanted, LEAST_AUDIO_TOKENS), MOST_AUDIO_TOKENS)
    return SpeechRequest(body["input"], format, voice, float(body.get("speed") or 1), int(tokens), passed_on)


async def _as_events(call: SpeechCall, file: BinaryIO) -> AsyncGenerator[bytes, None]:
    async for chunk in _chunks(file):
        yield event({"type": "speech.audio.delta", "audio": base64.b64encode(chunk).decode()})
    usage = {"input_tokens": 0, "output_tokens": call.tokens, "total_tokens": call.tokens}
    yield LastBlock(event({"type": "speech.audio.done", "usage": usage}))


# --- both


@contextlib.asynccontextmanager
async def made(request: Request, call: ModelCall) -> AsyncIterator[None]:
    """Hold and settle the cost of the block, which ends if the client disconnects or the server stops."""
    try:
        async with call:
            try:
                with Interrupt().over(request.context, request.state.drain):
                    yield
            except ApiError as error:
                await keep_refusal(request, error)
                raise
    finally:
        add_log_fields(request, **call.log_fields)


async def keep(request: Request, chunks: AsyncGenerator[bytes, None], headers: Headers) -> None:
    """Keep the answer of a request with an Idempotency-Key, before it is settled."""
    claim = request.context.claim
    async with contextlib.aclosing(chunks):
        if claim is not None:
            async for chunk in chunks:
                claim.add(chunk)
            await claim.keep(200, headers)


def from_file(request: Request, file: BinaryIO, headers: dict[str, str], held: contextlib.ExitStack) -> Response:
    size = os.fstat(file.fileno()).st_size
    headers = {**headers, "content-length": str(size), "cache-control": "no-store"}
    return Download(request.state.drain, _chunks(file), headers, held=held)


async def _chunks(file: BinaryIO) -> AsyncGenerator[bytes, None]:
    # Not in a thread: the file was just written, so it is in the system's cache.
    place = 0
    while chunk := os.pread(file.fileno(), _CHUNK_BYTES, place):
        place += len(chunk)
        yield chunk
        await asyncio.sleep(0)
