"""`/v1/audio/transcriptions`: audio files in OpenAI's format. Nothing is kept after the answer.

slot (503) -> the form, its file on the disk (413, 415, 400) -> model (404) -> the length, if it has a price (400)
           -> hold (402) -> the text in one answer, or in events as it is recognized -> settlement
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator
from functools import partial
from typing import Any, BinaryIO

from svc.builtin import hearing
from svc.errors import ApiError, invalid_value
from svc.inference import audio
from svc.inference.answer.events import event
from svc.inference.catalog import Model
from svc.inference.media_engines import storage
from svc.inference.transcription_call import TranscriptionCall, TranscriptionRequest
from svc.routes.completion import cost_of, error_of, payer_of, stream_of
from svc.routes.media import keep, made
from svc.routes.schemas import transcriptions as schemas
from svc.routes.schemas.common import MODEL_CALL
from svc.server.forms import OTHER_BYTES, Form, read_form
from svc.server.guards import Caller
from svc.server.interface import Operation, Refusal
from svc.server.limits import MIB
from svc.server.sse import Interrupt, LastBlock
from svc.server.web import Request, Response, add_log_fields

describes = partial(Operation, "Media")
MOST_BYTES = 25 * MIB
_OWN_FIELDS = ("file", "model", "response_format", "stream")  # for a model server they are added again
_FORMATS = "wav, mp3, m4a, webm, ogg or flac"
_TYPES = {"json": "application/json", "verbose_json": "application/json"}
_PLAIN = "text/plain; charset=utf-8"
_SWITCH = {"true": True, "True": True, "1": True, "false": False, "False": False, "0": False}
_START_BYTES = 16


@describes(
    "Transcribe an audio file",
    body=schemas.TRANSCRIPTION,
    media_type="multipart/form-data",
    most_bytes=MOST_BYTES + OTHER_BYTES,
    answer=schemas.TRANSCRIPTION_ANSWER,
    errors=(
        Refusal("missing_field", "file is required: a file.", "file"),
        Refusal("invalid_request", "The body is not a valid form. Its last boundary is missing."),
        Refusal("unsupported_value", "language must be one of this model's: en.", "language"),
        Refusal(
            "PAYLOAD_TOO_LARGE",
            "The audio is longer than 30 minutes. Send a shorter part of it.",
            "file",
            "The file is over 25 MiB, or too long for the built-in model (30 minutes).",
        ),
        Refusal(
            "rate_limit_exceeded",
            "All places were taken for 30 seconds. Try again in a few seconds.",
            when="The built-in model recognizes two files at once, one of each account.",
        ),
        Refusal("overloaded", "There are too many open requests for images or audio. Try again in a few seconds."),
        *MODEL_CALL,
    ),
)
async def create_transcription(request: Request, caller: Caller) -> Response:
    media, models = request.state.media, request.state.models
    with contextlib.ExitStack() as held:
        held.enter_context(media.uploads.taken(caller.id))
        file = held.enter_context(media.spool())
        with storage():
            form = await read_form(request, "file", file, MOST_BYTES)
        fields = _checked(form)
        model = await models.chosen(caller.id, caller.default_model, fields.get("model"), "transcription", caller.group)
        held.enter_context(media.slots(model).taken(caller.id))
        if model.provider is not None:  # its body is in memory while it is asked
            request.state.bodies.count(request.context, os.fstat(file.fileno()).st_size)
        with Interrupt().over(request.context, request.state.drain):
            wanted = await _wanted(request, caller, model, form, fields, file)
        call = TranscriptionCall(model, wanted, media, payer_of(request, caller))
        if not wanted.streams:
            async with made(request, call):
                await call.make(file)
                headers = {"content-type": _TYPES.get(wanted.format, _PLAIN)}
                await keep(request, _once(call.answer), lambda: {**headers, **cost_of(call)})
            return Response(call.answer, headers={**headers, **cost_of(call)})
        if request.context.claim is None:
            interrupt = Interrupt()
            stream = stream_of(request, _live(request, call, file, interrupt), interrupt, {})
        else:  # the whole answer is kept, so it is sent at the end
            async with made(request, call):
                await call.make(file)
                await keep(request, _events(call), lambda: {"content-type": "text/event-stream", **cost_of(call)})
            stream = stream_of(request, _events(call), Interrupt(), cost_of(call))
            stream.is_made = True
        stream.held = held.pop_all()
        return stream


def _checked(form: Form) -> dict[str, Any]:
    """Return the typed fields; an empty one is missing. Raises ApiError."""
    fields: dict[str, Any] = {name: values[-1] for name, values in form.items() if values[-1]}
    with contextlib.suppress(ValueError, KeyError):
        fields["temperature"] = float(fields["temperature"])
    fields["stream"] = _SWITCH.get(fields.get("stream", "0"), fields.get("stream"))
    listed = form.get("timestamp_granularities[]", []) + form.get("timestamp_granularities", [])
    fields["timestamp_granularities"] = listed or ["segment"]
    fields.setdefault("response_format", "json")
    schemas.TRANSCRIPTION.check({**fields, "file": ""}, "")
    if fields["stream"] and fields["response_format"] not in ("json", "text"):
        message = "Only json and text are streamed. Leave stream out, or choose one of them."
        raise ApiError("unsupported_value", message, param="response_format")
    return fields


async def _wanted(
    request: Request, caller: Caller, model: Model, form: Form, fields: dict[str, Any], file: BinaryIO
) -> TranscriptionRequest:
    """Return what the call needs, with the length of the file if the model has a price. Raises ApiError."""
    container = audio.container_of(os.pread(file.fileno(), _START_BYTES, 0))
    if container is None:
        raise invalid_value(f"file must be {_FORMATS}. Its first bytes are of none of them.", "file")
    granularities, language = fields["timestamp_granularities"], fields.get("language")
    return TranscriptionRequest(
        container,
        await _seconds(request, caller, container, file) if model.paid else 0.0,
        fields["response_format"],
        fields["stream"],
        granularities,
        {name: values for name, values in form.items() if name not in _OWN_FIELDS},
        {
            "language": language and language.lower().partition("-")[0],
            "prompt": fields.get("prompt"),
            "temperature": fields.get("temperature", 0.0),
            "words": "word" in granularities and fields["response_format"] == "verbose_json",
        },
    )


async def _seconds(request: Request, caller: Caller, container: str, file: BinaryIO) -> float:
    if hearing.is_installed():
        return await request.state.media.hearing.seconds(file, container, caller.id)
    try:
        seconds = await asyncio.to_thread(audio.measured, file, hearing.MOST_MEASURED_SECONDS)
    except ValueError as error:
        raise invalid_value(f"file is damaged. {error}", "file") from None
    if seconds is None:
        raise invalid_value("This server cannot measure this file. Send wav, mp3, ogg or flac.", "file")
    return seconds


async def _once(answer: bytes) -> AsyncGenerator[bytes, None]:
    yield answer


async def _live(
    request: Request, call: TranscriptionCall, file: BinaryIO, interrupt: Interrupt
) -> AsyncGenerator[bytes, None]:
    """Yield the deltas as they come, and the end after the settlement."""
    whole = False
    try:
        async with call, error_of(interrupt), contextlib.aclosing(call.parts(file)) as parts:
            async for _ in parts:
                for delta in call.taken_deltas():
                    yield _delta(delta)
            whole = True
    except asyncio.CancelledError:
        # The settlement is last and completes in any case, so a shutdown during it finds the transcript whole.
        if not whole or interrupt.reason is None:
            raise
    finally:
        add_log_fields(request, **call.log_fields)
    yield _done(call)


async def _events(call: TranscriptionCall) -> AsyncGenerator[bytes, None]:
    """Yield the events of an answer that is complete."""
    yield _delta(call.text)
    yield _done(call)


def _delta(text: str) -> bytes:
    return event({"type": "transcript.text.delta", "delta": text})


def _done(call: TranscriptionCall) -> LastBlock:
    usage = {} if call.usage is None else {"usage": call.usage}
    return LastBlock(event({"type": "transcript.text.done", "text": call.text, **usage}))
