"""Pictures and speech from an OpenAI-compatible model server over HTTP.

Answers are written to a file as they arrive: they may be long, and there may be many at the same time.
"""

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncGenerator
from typing import Any, BinaryIO

from svc.errors import UpstreamFault
from svc.inference import audio
from svc.inference.catalog import Provider
from svc.inference.chat_request import drop_routing_fields
from svc.inference.field_support import refused_fields
from svc.inference.pictures import picture_type
from svc.inference.raw_answer import parsed
from svc.inference.upstream import dump, send
from svc.inference.upstream_errors import CLIENT_FAULTS, fault_of
from svc.outbound.client import Outbound
from svc.outbound.connection import Reply

_IMAGES_BYTES = 48 * 1024 * 1024
_TEXT_BYTES = 64 * 1024
_TEXT_SECONDS = 10.0
_LEAST_BYTES = 12
# No audio file begins like this. Raw samples may, but hardly ever do.
_TEXT_START = re.compile(rb"\s*[{<\[][\t\n\r -~]*")
# Parsed in one turn of the event loop: a few KiB may hold a thousand frames.
_PART_BYTES = 16 * 1024
_ANSWER_SECONDS = 3600.0
# More than stereo samples of 16 bits at 48 kHz take.
_BYTES_PER_SECOND = 200_000


async def images(client: Outbound, provider: Provider, body: dict[str, Any], file: BinaryIO) -> None:
    """Write the provider's answer to an image request to `file`; `pictures_in` reads it. Pictures are requested as base64.

    Raises UpstreamFault, and ApiError `address_not_allowed`.
    """
    try:
        reply = await _post(client, provider, "/images/generations", {**body, "response_format": "b64_json"})
    except UpstreamFault as fault:
        if not refused_fields(fault, ("response_format",)):
            raise
        # OpenAI's newer models always send base64, and refuse the field.
        reply = await _post(client, provider, "/images/generations", body)
    reply.limit(_IMAGES_BYTES, _ANSWER_SECONDS)
    try:
        async with contextlib.aclosing(reply):
            async for chunk in reply:
                file.write(chunk)
    except CLIENT_FAULTS as error:
        raise fault_of(error) from None


async def _post(client: Outbound, provider: Provider, path: str, body: dict[str, Any]) -> Reply:
    # In a thread, because a body may hold many values.
    sent = body if provider.byok else await asyncio.to_thread(drop_routing_fields, body)
    return await send(client, provider, path, b"*/*", await dump(sent))


async def fetch(client: Outbound, url: str, timeout_seconds: float, account_id: str) -> bytes:
    """Return the picture at `url`, requested without a key for an account. Raises UpstreamFault."""
    # One error for every fault, so that it does not say which addresses answer.
    not_fetched = UpstreamFault("invalid", "The answer holds the address of a picture that cannot be fetched.")
    deadline = time.monotonic() + timeout_seconds
    try:
        headers = ((b"accept", b"image/*"), (b"user-agent", b"svc"))
        reply = await client.send("GET", url, headers, timeout_seconds=timeout_seconds, account_id=account_id)
        async with contextlib.aclosing(reply):
            content = await reply.read(_IMAGES_BYTES, deadline - time.monotonic())
    except CLIENT_FAULTS:
        raise not_fetched from None
    if reply.status != 200 or picture_type(content) is None:  # a sign-in page has status 200 as well
        raise not_fetched
    return content


async def speech(
    client: Outbound, provider: Provider, body: dict[str, Any], file: BinaryIO, *, most_seconds: float, guess_seconds: float
) -> AsyncGenerator[audio.Track, None]:
    """Write the provider's speech to the empty `file`, at most `most_seconds` of it. Yield the track after each chunk.

    `guess_seconds` is the length if the format does not say it. Closing the generator aborts the request.
    Raises UpstreamFault, and ApiError `address_not_allowed`.
    """
    reply = await _post(client, provider, "/audio/speech", body)
    reply.limit(int(most_seconds * _BYTES_PER_SECOND) + 1024 * 1024, _ANSWER_SECONDS)
    try:
        async with contextlib.aclosing(reply):
            chunk = b""
            while len(chunk) < audio.START_BYTES and (more := await reply.more()):
                chunk += more
            if len(chunk) < _LEAST_BYTES:
                raise UpstreamFault("invalid", "The answer holds no audio.")
            content_type = reply.header(b"content-type") or ""
            if _is_text(chunk, content_type):
                raise await _text_fault(chunk, reply, provider)
            track = audio.track(chunk, str(body.get("response_format")), content_type, most_seconds, guess_seconds)
            while chunk and not track.truncated:
                file.write(track.feed(chunk[:_PART_BYTES]))
                yield track
                await asyncio.sleep(0)
                chunk = chunk[_PART_BYTES:] or (b"" if track.truncated else await reply.more())
            track.finish(file)
            yield track
    except CLIENT_FAULTS as error:
        raise fault_of(error) from None
    except ValueError as error:
        raise UpstreamFault("invalid", str(error)) from None


def _is_text(start: bytes, content_type: str) -> bool:
    """Return whether the answer is JSON or HTML. Some servers label that as audio, too."""
    kind = content_type.partition(";")[0].strip().lower()
    return kind.startswith("text/") or kind.endswith("json") or _TEXT_START.fullmatch(start, 0, _LEAST_BYTES) is not None


async def _text_fault(text: bytes, reply: Reply, provider: Provider) -> UpstreamFault:
    """Return the fault for an answer that begins with `text` instead of audio."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_TEXT_SECONDS):
            async for chunk in reply:
                text += chunk
                if len(text) > _TEXT_BYTES:
                    break
    try:
        parsed(text, provider)
    except UpstreamFault as fault:
        if fault.kind == "status":
            return fault
    return UpstreamFault("invalid", "The answer is no audio.")
