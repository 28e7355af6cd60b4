"""The call for pictures, from the built-in painter or a provider.

hold -> the painter, picture by picture | a provider's answer, decoded and checked -> a charge for the pictures so far
"""

import asyncio
import base64
import contextlib
import os
import re
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, BinaryIO, NamedTuple

from svc.content.artifact_contents import CONTENT_BYTES
from svc.errors import UpstreamFault
from svc.inference.answer.raw_answer import parsed
from svc.inference.answer.upstream_errors import CLIENT_FAULTS
from svc.inference.catalog import Model, Provider
from svc.inference.field_support import refused_fields
from svc.inference.media_engines import MediaCall, MediaEngines, Parts, picture_type
from svc.inference.model_call import Bill, Payer
from svc.outbound.addresses import same_origin

LEAST_SIDE, MOST_SIDE = 64, 1024
# The painter also makes the larger sizes of OpenAI's models.
LARGE_SIZES = ((1536, 1024), (1024, 1536), (1792, 1024), (1024, 1792))
# For a picture's header, and what compression may add.
_HEAD_BYTES = 64 * 1024
_PROVIDERS_BYTES = 4 * 1024 * 1024
_ANSWER_BYTES = 48 * 1024 * 1024
# What a provider says beside its pictures.
_TEXTS = ("size", "quality", "background", "output_format")
_COUNTS = ("input_tokens", "output_tokens", "total_tokens")
_DETAILS = ("input_tokens_details", "output_tokens_details")
_TEXT_LENGTH = 100
_PROMPT_LENGTH = 32_000
_URL_LENGTH = 8_000
_MOST_COUNT = 2**53
_MOST_DETAILS = 20
_TYPE_BYTES = 12  # of the longest start of a picture
_HALF_CHARACTERS = re.compile("[\ud800-\udfff]")
# Decoded at a time: the decoder lets no other thread run, and a picture may have 36 MiB.
_SLICE_CHARACTERS = 256 * 1024
_DATA_URL = re.compile(r"data:[^,]{0,100};base64,", re.I)


@dataclass(frozen=True)
class ImageRequest:
    """`body` is the request as the caller sent it, for a provider."""

    prompt: str
    count: int
    width: int
    height: int
    body: Mapping[str, Any]


class Picture(NamedTuple):
    """A picture in a file, or the `url` at which the provider stores it, and the prompt as the provider revised it."""

    start: int = 0
    size: int = 0
    revised_prompt: str | None = None
    url: str | None = None

    def content(self, file: BinaryIO) -> bytes:
        return os.pread(file.fileno(), self.size, self.start)


def _add_picture(file: BinaryIO, content: bytes, revised_prompt: str | None) -> Picture:
    return Picture(file.tell(), file.write(content), revised_prompt)


class ImageCall(MediaCall):
    """One request for pictures. `pictures` are those so far, `details` the fields of the answer beside them."""

    def __init__(self, model: Model, request: ImageRequest, media: MediaEngines, payer: Payer) -> None:
        super().__init__(model, media, payer)
        self._request = request
        self.pictures: list[Picture] = []
        self.details: dict[str, Any] = {}

    @property
    def most_bytes(self) -> int:
        """The estimated size of all pictures, before they are made."""
        width, height = self._size()
        one = width * height * 3 + _HEAD_BYTES if self._model.provider is None else _PROVIDERS_BYTES
        return self._request.count * one

    def hold_in(self, tx: sqlite3.Connection) -> None:
        self.hold(tx, self._request.count * self._first_model.prices["micros_per_image"])

    def bill(self) -> Bill:
        made = 0 if self._failed else len(self.pictures)
        text = f"{self._model.id}: {made} image{'' if made == 1 else 's'}"
        return Bill(0, 0, made * self._model.prices.get("micros_per_image", 0), text)

    async def built_in(self, file: BinaryIO) -> Parts:
        width, height = self._size()
        self.details = {"output_format": "png", "size": f"{width}x{height}"}
        for number in range(self._request.count):
            order = {"prompt": self._request.prompt, "width": width, "height": height, "variation": number}
            painted = await self._media.painter.run(order, account_id=self._payer.account_id, patient=number > 0)
            description, _, png = painted.partition(b"\n")
            self.pictures.append(await asyncio.to_thread(_add_picture, file, png, description.decode()))
            yield {"images": len(self.pictures)}

    def _size(self) -> tuple[int, int]:
        """Return the requested size, or the nearest one that the painter can make if it replaces a provider."""
        width, height = self._request.width, self._request.height
        if (width, height) in LARGE_SIZES:
            return width, height
        scale = min(MOST_SIDE / max(width, height), 1)
        return max(round(width * scale), LEAST_SIDE), max(round(height * scale), LEAST_SIDE)

    async def provided(self, provider: Provider, model_name: str, file: BinaryIO) -> Parts:
        body = {**self._request.body, "model": model_name, "n": self._request.count}
        with self._media.spool() as answer:
            try:
                await self._write_answer(provider, {**body, "response_format": "b64_json"}, answer)
            except UpstreamFault as fault:
                if not refused_fields(fault, ("response_format",)):
                    raise
                # OpenAI's newer models always send base64, and refuse the field.
                await self._write_answer(provider, body, answer)
            async with self._media.parsing(self._model):
                count = self._request.count
                pictures, self.details = await asyncio.to_thread(pictures_in, answer, provider, count, file)
        for picture in pictures:
            if picture.url is not None:
                content = await self._fetch(picture.url, provider)
                picture = await asyncio.to_thread(_add_picture, file, content, picture.revised_prompt)
            if picture.size > CONTENT_BYTES:  # no artifact can hold it, so it is not charged
                raise UpstreamFault("invalid", f"The answer holds a picture of over {CONTENT_BYTES} bytes.")
            self.pictures.append(picture)
            yield {"images": len(self.pictures)}

    async def _write_answer(self, provider: Provider, body: dict[str, Any], file: BinaryIO) -> None:
        async with self._media.asked(provider, "/images/generations", body, _ANSWER_BYTES) as reply:
            while chunk := await reply.more():
                file.write(chunk)

    async def _fetch(self, url: str, provider: Provider) -> bytes:
        """Return the picture at `url`, requested without a key. Raises UpstreamFault."""
        # One error for every fault, so that it does not say which addresses answer.
        not_fetched = UpstreamFault("invalid", "The answer holds the address of a picture that cannot be fetched.")
        # Only the provider itself is asked through the provider's client. Any other address is checked first.
        client = self._engines.way_to(provider) if same_origin(url, provider.base_url) else self._engines.guarded
        headers, account_id = ((b"accept", b"image/*"),), self._payer.account_id
        seconds = provider.timeout_seconds
        try:
            async with asyncio.timeout(seconds):
                reply = await client.send("GET", url, headers, timeout_seconds=seconds, account_id=account_id)
                async with contextlib.aclosing(reply):
                    content = await reply.read(_ANSWER_BYTES)
        except CLIENT_FAULTS:
            raise not_fetched from None
        if reply.status != 200 or picture_type(content) is None:  # a sign-in page has status 200 as well
            raise not_fetched
        return content


# --- a provider's answer: JSON of any depth, pictures as base64 in any usual form, as data URLs or as URLs to fetch


def pictures_in(
    answer: BinaryIO, provider: Provider, most: int, file: BinaryIO
) -> tuple[list[Picture], dict[str, Any]]:
    """Write at most `most` pictures of a provider's answer to `file`. Return them and OpenAI's details beside them.

    Raises UpstreamFault.
    """
    answer.seek(0)
    try:
        document = parsed(answer.read(), provider, apart=True)
    except RecursionError:
        raise UpstreamFault("invalid", "The answer is nested too deep.") from None
    entries = document.get("data") if isinstance(document, dict) else None
    if not isinstance(entries, list) or not entries:
        raise UpstreamFault("invalid", "The answer holds no pictures.")
    texts = {name: _text(document.get(name), _TEXT_LENGTH) for name in _TEXTS}
    details = {**texts, "usage": _usage(document.get("usage"))}
    pictures = [_picture(entry, file) for entry in entries[:most]]
    return pictures, {name: value for name, value in details.items() if value}


def _picture(entry: Any, file: BinaryIO) -> Picture:
    entry = entry if isinstance(entry, dict) else {}
    encoded, url = (value if isinstance(value := entry.get(name), str) else "" for name in ("b64_json", "url"))
    revised_prompt = _text(entry.get("revised_prompt"), _PROMPT_LENGTH)
    if data := encoded or (url if _DATA_URL.match(url) else ""):
        return _add_decoded(file, data, revised_prompt)
    if url.startswith(("http://", "https://")) and len(url) <= _URL_LENGTH:
        return Picture(revised_prompt=revised_prompt, url=url)
    raise UpstreamFault("invalid", "The answer holds no picture.")


def _add_decoded(file: BinaryIO, encoded: str, revised_prompt: str | None) -> Picture:
    """Write a picture to the end of a file in parts: to join 36 MiB would block other threads for 40 ms."""
    start, size, first = file.tell(), 0, b""
    try:
        for part in _decoded(encoded):
            size += file.write(part)
            first += part[: _TYPE_BYTES - len(first)]
    except ValueError:
        size = 0
    if not size:
        raise UpstreamFault("invalid", "The answer holds a picture that is no base64.")
    if picture_type(first) is None:
        raise UpstreamFault("invalid", "The answer holds a file other than PNG, JPEG, WebP, GIF or AVIF.")
    return Picture(start, size, revised_prompt)


def _decoded(encoded: str) -> Iterator[bytes]:
    """Yield the bytes of base64 of either alphabet, with or without line breaks, padding and the head of a data URL.

    Raises ValueError.
    """
    head = _DATA_URL.match(encoded)
    rest, padded = "", False
    for start in range(head.end() if head else 0, len(encoded), _SLICE_CHARACTERS):
        plain = "".join(encoded[start : start + _SLICE_CHARACTERS].split()).replace("-", "+").replace("_", "/")
        bare = plain.rstrip("=")
        if "=" in bare or (bare and padded):
            raise ValueError("there is padding before the end")
        padded = padded or bare != plain
        rest += bare
        whole = len(rest) // 4 * 4
        yield base64.b64decode(rest[:whole], validate=True)
        rest = rest[whole:]
    yield base64.b64decode(rest + "=" * (-len(rest) % 4), validate=True)


def _text(value: Any, most: int) -> str | None:
    return _HALF_CHARACTERS.sub("\ufffd", value[:most]) if isinstance(value, str) else None


def _usage(value: Any) -> dict[str, Any] | None:
    """Return the usage in OpenAI's form, or None if `value` has no count."""
    given = _numbers(value)
    if given.keys().isdisjoint(_COUNTS):
        return None
    usage: dict[str, Any] = {name: given.get(name, 0) for name in _COUNTS}
    usage["total_tokens"] = given.get("total_tokens", usage["input_tokens"] + usage["output_tokens"])
    details = {name: numbers for name in _DETAILS if (numbers := _numbers(value.get(name)))}
    return {**usage, "input_tokens_details": {}, **details}


def _numbers(value: Any) -> dict[str, int]:
    found = islice(value.items(), _MOST_DETAILS) if isinstance(value, dict) else ()
    counts = {name: number for name, number in found if type(number) is int and 0 <= number <= _MOST_COUNT}
    return {_text(name, _TEXT_LENGTH) or "": number for name, number in counts.items()}
