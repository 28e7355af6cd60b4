"""The paid call for pictures, from the built-in painter or a provider.

hold -> the painter, picture by picture | a provider's whole answer, decoded and checked -> a charge for the pictures that arrived
"""

import asyncio
import contextlib
import os
import sqlite3
import time
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from svc.content.contents import CONTENT_BYTES
from svc.errors import UpstreamFault
from svc.inference.catalog import Model, Provider
from svc.inference.field_support import refused_fields
from svc.inference.media_engines import ANSWER_SECONDS, MediaEngines, storage
from svc.inference.paid_call import Bill, PaidCall, Payer
from svc.inference.pictures import Picture, picture_type, pictures_in
from svc.inference.upstream_errors import CLIENT_FAULTS, fault_of
from svc.outbound.addresses import same_origin

LEAST_SIDE, MOST_SIDE = 64, 1024
# The painter also makes the larger sizes of OpenAI's models.
LARGE_SIZES = ((1536, 1024), (1024, 1536), (1792, 1024), (1024, 1792))
# For a picture's header, and what compression may add.
_HEAD_BYTES = 64 * 1024
_PROVIDERS_BYTES = 4 * 1024 * 1024
_ANSWER_BYTES = 48 * 1024 * 1024


@dataclass(frozen=True)
class ImageRequest:
    """`body` is the request as the caller sent it, for a provider."""

    prompt: str
    count: int
    width: int
    height: int
    body: Mapping[str, Any]


class ImageCall(PaidCall):
    """One request for pictures. `details` are the fields of the answer beside them."""

    def __init__(self, model: Model, request: ImageRequest, media: MediaEngines, payer: Payer) -> None:
        super().__init__(model, media.engines, payer)
        self._request = request
        self._media = media
        self._made = 0
        self.details: dict[str, Any] = {}

    @property
    def most_bytes(self) -> int:
        """The estimated size of all pictures, before they are made."""
        width, height = self._size()
        one = width * height * 3 + _HEAD_BYTES if self._model.provider is None else _PROVIDERS_BYTES
        return self._request.count * one

    def hold_in(self, tx: sqlite3.Connection) -> None:
        self.hold(tx, self._request.count * self._asked.prices["micros_per_image"])

    def bill(self) -> Bill:
        made = 0 if self._failed else self._made
        text = f"{self._model.id}: {made} image{'' if made == 1 else 's'}"
        return Bill(0, 0, made * self._model.prices.get("micros_per_image", 0), text)

    async def pictures(self) -> AsyncGenerator[Picture, None]:
        """Yield the pictures. Raises ApiError."""
        async with contextlib.aclosing(self.with_retries(self._engine)) as pictures:
            async for picture in pictures:
                self._made += 1
                self.log_fields["images"] = self._made
                yield picture

    def _engine(self, model: Model) -> AsyncGenerator[Picture, None]:
        return self._painted() if model.provider is None else self._provided(model.provider, model.name)

    async def _painted(self) -> AsyncGenerator[Picture, None]:
        width, height = self._size()
        self.details = {"output_format": "png", "size": f"{width}x{height}"}
        for number in range(self._request.count):
            order = {"prompt": self._request.prompt, "width": width, "height": height, "variation": number}
            description, _, png = (await self._media.painter.run(order, account_id=self._payer.account_id)).partition(b"\n")
            yield Picture(png, description.decode())

    def _size(self) -> tuple[int, int]:
        """Return the requested size, or the nearest one that the painter can make if it replaces a provider."""
        width, height = self._request.width, self._request.height
        if (width, height) in LARGE_SIZES:
            return width, height
        scale = min(MOST_SIDE / max(width, height), 1)
        return max(round(width * scale), LEAST_SIDE), max(round(height * scale), LEAST_SIDE)

    async def _provided(self, provider: Provider, model_name: str) -> AsyncGenerator[Picture, None]:
        body = {**self._request.body, "model": model_name, "n": self._request.count}
        with self._media.spool() as file, storage():
            await self._write_answer(provider, body, file)
            async with self._media.limits(self._model).parsing:
                stored, self.details = await asyncio.to_thread(_unpack, file, provider, self._request.count)
            for start, size, picture in stored:
                content = (
                    os.pread(file.fileno(), size, start) if picture.url is None else await self._fetch(picture.url, provider)
                )
                if len(content) > CONTENT_BYTES:  # no artifact can hold it, so it is not charged
                    raise UpstreamFault("invalid", f"The answer holds a picture of over {CONTENT_BYTES} bytes.")
                yield picture._replace(content=content)

    async def _write_answer(self, provider: Provider, body: dict[str, Any], file: BinaryIO) -> None:
        """Write the provider's answer to `file`. Pictures are requested as base64. Raises UpstreamFault, ApiError."""
        try:
            reply = await self._media.ask(provider, "/images/generations", {**body, "response_format": "b64_json"})
        except UpstreamFault as fault:
            if not refused_fields(fault, ("response_format",)):
                raise
            # OpenAI's newer models always send base64, and refuse the field.
            reply = await self._media.ask(provider, "/images/generations", body)
        reply.limit(_ANSWER_BYTES, ANSWER_SECONDS)
        try:
            async with contextlib.aclosing(reply):
                async for chunk in reply:
                    file.write(chunk)
        except CLIENT_FAULTS as error:
            raise fault_of(error) from None

    async def _fetch(self, url: str, provider: Provider) -> bytes:
        """Return the picture at `url`, requested without a key. Raises UpstreamFault."""
        # One error for every fault, so that it does not say which addresses answer.
        not_fetched = UpstreamFault("invalid", "The answer holds the address of a picture that cannot be fetched.")
        # Only the provider itself is asked through the provider's client. Any other address is checked first.
        client = self._engines.way_to(provider) if same_origin(url, provider.base_url) else self._engines.guarded
        headers, account_id = ((b"accept", b"image/*"), (b"user-agent", b"svc")), self._payer.account_id
        deadline = time.monotonic() + provider.timeout_seconds
        try:
            reply = await client.send("GET", url, headers, timeout_seconds=provider.timeout_seconds, account_id=account_id)
            async with contextlib.aclosing(reply):
                content = await reply.read(_ANSWER_BYTES, deadline - time.monotonic())
        except CLIENT_FAULTS:
            raise not_fetched from None
        if reply.status != 200 or picture_type(content) is None:  # a sign-in page has status 200 as well
            raise not_fetched
        return content


def _unpack(file: BinaryIO, provider: Provider, most: int) -> tuple[list[tuple[int, int, Picture]], dict[str, Any]]:
    """Replace the answer in the file by its pictures, so that one of them is in memory at a time.

    Returns the start and the size of each picture, and the picture without its content. Raises UpstreamFault.
    """
    file.seek(0)
    pictures, details = pictures_in(file.read(), provider, most)
    file.seek(0)
    file.truncate()
    return [(file.tell(), file.write(picture.content), picture._replace(content=b"")) for picture in pictures], details
