"""Pictures and speech from an OpenAI-compatible model server over HTTP: the engine beside svc/inference/upstream.py's chat.

Answers go to a file as they come, whoever is slow: they may be long, and many may be under way at once.
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
from svc.inference.pictures import picture_type
from svc.inference.raw_answer import parsed
from svc.inference.upstream import dump, send
from svc.inference.upstream_errors import CLIENT_FAULTS, fault_of
from svc.outbound.addresses import checked_url
from svc.outbound.client import Outbound
from svc.outbound.connection import Reply
from svc.outbound.errors import InvalidURL

_IMAGES_BYTES = 48 * 1024 * 1024
_TEXT_BYTES = 64 * 1024
_TEXT_SECONDS = 10.0
_START_BYTES = 12
# No file of audio begins so, and hardly ever bare samples, which may begin with any byte.
_TEXT_START = re.compile(rb"\s*[{<\[][\t\n\r -~]*")
# How much audio is looked at in one turn of the event loop: a few KiB may hold a thousand frames.
_PIECE_BYTES = 16 * 1024
_ANSWER_SECONDS = 3600.0
# Stereo samples of 16 bits at 48 kHz: what takes more is no speech.
_BYTES_PER_SECOND = 200_000
_NOT_FETCHED = "The answer holds the address of a picture that cannot be fetched."


async def ask_for_images(client: Outbound, provider: Provider, body: dict[str, Any], file: BinaryIO) -> None:
    """Writes the provider's answer to an image request into `file`; `pictures_in` reads it.

    Pictures are asked for as base64, never as addresses. Raises UpstreamFault, and ApiError `address_not_allowed`.
    """
    try:
        await _ask_for_images(client, provider, {**body, "response_format": "b64_json"}, file)
    except UpstreamFault as fault:
        # OpenAI's newer models send nothing but base64, and refuse to be asked for it.
        if fault.status not in (400, 422) or "response_format" not in str(fault.error):
            raise
        await _ask_for_images(client, provider, body, file)


async def _ask_for_images(client: Outbound, provider: Provider, body: dict[str, Any], file: BinaryIO) -> None:
    accept = b"application/json"
    reply = await send(client, provider, "POST", "/images/generations", accept, await dump(body), provider.timeout_seconds)
    try:
        async for chunk in _bounded(reply, _IMAGES_BYTES, _ANSWER_SECONDS):
            file.write(chunk)
    except CLIENT_FAULTS as error:
        raise fault_of(error) from None
    finally:
        await reply.aclose()


def same_origin(url: str, base_url: str) -> bool:
    """Whether both name the same scheme, host and port."""
    try:
        return checked_url(url).origin == checked_url(base_url).origin
    except InvalidURL:
        return False


async def fetch(client: Outbound, url: str, timeout_seconds: float, account_id: str) -> bytes:
    """The picture at `url`, asked for without a key, for an account. Raises UpstreamFault."""
    deadline = time.monotonic() + timeout_seconds
    try:
        headers = [(b"accept", b"image/*"), (b"user-agent", b"svc")]
        reply = await client.send("GET", url, headers, timeout_seconds=timeout_seconds, account_id=account_id)
        async with contextlib.aclosing(reply):
            left_seconds = deadline - time.monotonic()
            content = b"".join([piece async for piece in _bounded(reply, _IMAGES_BYTES, left_seconds)])
    except (*CLIENT_FAULTS, UpstreamFault):
        # One text for every fault: it must not tell which addresses answer.
        raise UpstreamFault("invalid", _NOT_FETCHED) from None
    # A page that asks to sign in comes with 200, too.
    if reply.status != 200 or picture_type(content) is None:
        raise UpstreamFault("invalid", _NOT_FETCHED)
    return content


async def speech(
    client: Outbound, provider: Provider, body: dict[str, Any], file: BinaryIO, *, most_seconds: float, guess_seconds: float
) -> AsyncGenerator[audio.Track, None]:
    """Writes the provider's speech into the empty `file`, no longer than `most_seconds`; tells how far it is after each chunk.

    `guess_seconds` is its length where the format does not tell. Raises UpstreamFault, and ApiError `address_not_allowed`.
    Closing the generator ends the request at once.
    """
    reply = await send(client, provider, "POST", "/audio/speech", b"*/*", await dump(body), provider.timeout_seconds)
    chunks = _bounded(reply, int(most_seconds * _BYTES_PER_SECOND) + 1024 * 1024, _ANSWER_SECONDS)
    start, track = b"", None
    try:
        async for chunk in chunks:
            if track is None:
                start += chunk
                if len(start) < _START_BYTES:
                    continue
                content_type = reply.header(b"content-type") or ""
                if _is_text(start, content_type):
                    raise await _no_speech(start, reply, provider)
                track = audio.track(start, str(body.get("response_format")), content_type, most_seconds, guess_seconds)
                chunk = start
            for begin in range(0, len(chunk), _PIECE_BYTES):
                file.write(track.feed(chunk[begin : begin + _PIECE_BYTES]))
                yield track
                if track.full:
                    break
                await asyncio.sleep(0)
            if track.full:
                break
        if track is None:
            raise UpstreamFault("invalid", "The answer holds no audio.")
        track.finish(file)
        yield track
    except CLIENT_FAULTS as error:
        raise fault_of(error) from None
    except ValueError as error:
        raise UpstreamFault("invalid", str(error)) from None
    finally:
        await chunks.aclose()
        await reply.aclose()


def _is_text(start: bytes, content_type: str) -> bool:
    """Whether it is no audio, but JSON or a page, also where its server calls all that it sends audio."""
    kind = content_type.partition(";")[0].strip().lower()
    return kind.startswith("text/") or kind.endswith("json") or _TEXT_START.fullmatch(start, 0, _START_BYTES) is not None


async def _no_speech(start: bytes, reply: Reply, provider: Provider) -> UpstreamFault:
    """The fault that a text in the place of audio tells of."""
    text = start
    with contextlib.suppress(TimeoutError):  # what has come by then may do
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


async def _bounded(reply: Reply, most_bytes: int, most_seconds: float) -> AsyncGenerator[bytes, None]:
    """Yield the body as it comes. Raises UpstreamFault for one that is too long or takes too long."""
    deadline = time.monotonic() + most_seconds
    async for chunk in reply:
        most_bytes -= len(chunk)
        if most_bytes < 0:
            raise UpstreamFault("invalid", "The answer is too long.")
        if time.monotonic() > deadline:
            raise UpstreamFault("timeout", "The answer takes too long.")
        yield chunk
