"""Pictures and speech from an OpenAI-compatible model server over HTTP: the engine beside svc/inference/upstream.py's chat.

Answers go to a file as they come, whoever is slow: they may be long, and many may be under way at once.
"""

import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any, BinaryIO

import orjson

from svc.errors import UpstreamFault
from svc.inference import audio
from svc.inference.upstream import Endpoint, faults, parsed, send
from svc.outbound.client import Outbound
from svc.outbound.connection import Reply

_IMAGES_BYTES = 48 * 1024 * 1024
_TEXT_BYTES = 64 * 1024
_START_BYTES = 12
_ANSWER_SECONDS = 3600.0
# Stereo samples of 16 bits at 48 kHz: what takes more is no speech.
_BYTES_PER_SECOND = 200_000
_KEPT = ("usage", "size", "quality", "background", "output_format")


@dataclass(frozen=True)
class Picture:
    """A picture in base64, and the prompt that its maker made of the caller's."""

    encoded: bytes
    revised_prompt: str | None = None


@dataclass(frozen=True)
class Pictures:
    """A provider's answer: its pictures, and what it tells about them."""

    pictures: list[Picture]
    facts: dict[str, Any]


async def ask_for_images(client: Outbound, provider: Endpoint, body: dict[str, Any], file: BinaryIO) -> None:
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


async def _ask_for_images(client: Outbound, provider: Endpoint, body: dict[str, Any], file: BinaryIO) -> None:
    accept = b"application/json"
    reply = await send(client, provider, "POST", "/images/generations", accept, orjson.dumps(body), provider.timeout_seconds)
    deadline, size_bytes = time.monotonic() + _ANSWER_SECONDS, 0
    try:
        with faults():
            async for chunk in reply:
                size_bytes += len(chunk)
                _check_bounds(size_bytes, _IMAGES_BYTES, deadline)
                file.write(chunk)
    finally:
        await reply.aclose()


def pictures_in(data: bytes, provider: Endpoint, most: int) -> Pictures:
    """What a provider's answer holds, at most `most` pictures. Raises UpstreamFault."""
    document = parsed(data, provider)
    entries = document.get("data") if isinstance(document, dict) else None
    if not isinstance(entries, list) or not entries:
        raise UpstreamFault("invalid", "The answer holds no pictures.")
    facts = {name: document[name] for name in _KEPT if isinstance(document.get(name), str | dict)}
    return Pictures([_picture(entry) for entry in entries[:most]], facts)


def _picture(entry: Any) -> Picture:
    entry = entry if isinstance(entry, dict) else {}
    encoded, url, revised = entry.get("b64_json"), entry.get("url"), entry.get("revised_prompt")
    if not isinstance(encoded, str) and isinstance(url, str) and url.startswith("data:image/"):
        encoded = url.partition(";base64,")[2]
    if not isinstance(encoded, str) or not encoded or not encoded.isascii():
        raise UpstreamFault("invalid", "The answer holds no picture as base64, which was asked for.")
    return Picture(encoded.encode(), revised if isinstance(revised, str) else None)


async def speech(
    client: Outbound, provider: Endpoint, body: dict[str, Any], file: BinaryIO, *, most_seconds: float, guess_seconds: float
) -> AsyncGenerator[audio.Track, None]:
    """Writes the provider's speech into the empty `file`, no longer than `most_seconds`; tells how far it is after each chunk.

    `guess_seconds` is its length where the format does not tell. Raises UpstreamFault, and ApiError `address_not_allowed`.
    Closing the generator ends the request at once.
    """
    reply = await send(client, provider, "POST", "/audio/speech", b"*/*", orjson.dumps(body), provider.timeout_seconds)
    deadline, size_bytes = time.monotonic() + _ANSWER_SECONDS, 0
    start, track = b"", None
    try:
        with faults():
            async for chunk in reply:
                size_bytes += len(chunk)
                _check_bounds(size_bytes, int(most_seconds * _BYTES_PER_SECOND) + 1024 * 1024, deadline)
                if track is None:
                    start += chunk
                    if len(start) < _START_BYTES:
                        continue
                    content_type = reply.headers.get("content-type", "")
                    if _is_text(start, content_type):
                        raise await _no_speech(start, reply, provider)
                    track = audio.track(start, str(body.get("response_format")), content_type, most_seconds, guess_seconds)
                    chunk = start
                file.write(track.feed(chunk))
                yield track
                if track.full:
                    break
            if track is None:
                raise UpstreamFault("invalid", "The answer holds no audio.")
            track.finish(file)
            yield track
    except ValueError as error:
        raise UpstreamFault("invalid", str(error)) from None
    finally:
        await reply.aclose()


def _is_text(start: bytes, content_type: str) -> bool:
    kind = content_type.partition(";")[0].strip().lower()
    return kind.startswith("text/") or kind.endswith("json") or (not kind and start.lstrip()[:1] in (b"{", b"<"))


async def _no_speech(start: bytes, reply: Reply, provider: Endpoint) -> UpstreamFault:
    """The fault that a text in the place of audio tells of."""
    text = start
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


def _check_bounds(size_bytes: int, most_bytes: int, deadline: float) -> None:
    if size_bytes > most_bytes:
        raise UpstreamFault("invalid", "The answer is too long.")
    if time.monotonic() > deadline:
        raise UpstreamFault("timeout", "The answer takes too long.")
