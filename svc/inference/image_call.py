"""The paid call for pictures, from the built-in painter or a provider.

hold -> the painter, picture by picture | a provider's answer, decoded and checked -> a charge for the pictures so far
"""

import asyncio
import contextlib
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
from svc.inference.pictures import Picture, add_picture, picture_type, pictures_in
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
    """One request for pictures. `pictures` are those so far, `details` the fields of the answer beside them."""

    def __init__(self, model: Model, request: ImageRequest, media: MediaEngines, payer: Payer) -> None:
        super().__init__(model, media.engines, payer)
        self._request = request
        self._media = media
        self.pictures: list[Picture] = []
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
        made = 0 if self._failed else len(self.pictures)
        text = f"{self._model.id}: {made} image{'' if made == 1 else 's'}"
        return Bill(0, 0, made * self._model.prices.get("micros_per_image", 0), text)

    async def draw(self, file: BinaryIO) -> None:
        """Write the pictures to the empty `file`. Raises ApiError."""
        with storage():
            async with contextlib.aclosing(self.with_retries(lambda model: self._engine(model, file))) as pictures:
                async for picture in pictures:
                    self.pictures.append(picture)
                    self.log_fields["images"] = len(self.pictures)

    def _engine(self, model: Model, file: BinaryIO) -> AsyncGenerator[Picture, None]:
        return self._painted(file) if model.provider is None else self._provided(model.provider, model.name, file)

    async def _painted(self, file: BinaryIO) -> AsyncGenerator[Picture, None]:
        width, height = self._size()
        self.details = {"output_format": "png", "size": f"{width}x{height}"}
        for number in range(self._request.count):
            order = {"prompt": self._request.prompt, "width": width, "height": height, "variation": number}
            painted = await self._media.painter.run(order, account_id=self._payer.account_id)
            description, _, png = painted.partition(b"\n")
            yield await asyncio.to_thread(add_picture, file, png, description.decode())

    def _size(self) -> tuple[int, int]:
        """Return the requested size, or the nearest one that the painter can make if it replaces a provider."""
        width, height = self._request.width, self._request.height
        if (width, height) in LARGE_SIZES:
            return width, height
        scale = min(MOST_SIDE / max(width, height), 1)
        return max(round(width * scale), LEAST_SIDE), max(round(height * scale), LEAST_SIDE)

    async def _provided(self, provider: Provider, model_name: str, file: BinaryIO) -> AsyncGenerator[Picture, None]:
        body = {**self._request.body, "model": model_name, "n": self._request.count}
        with self._media.spool() as answer:
            await self._write_answer(provider, body, answer)
            async with self._media.parsing(self._model):
                found = await asyncio.to_thread(pictures_in, answer, provider, self._request.count, file)
                pictures, self.details = found
        for picture in pictures:
            if picture.url is not None:
                content = await self._fetch(picture.url, provider)
                picture = await asyncio.to_thread(add_picture, file, content, picture.revised_prompt)
            if picture.size > CONTENT_BYTES:  # no artifact can hold it, so it is not charged
                raise UpstreamFault("invalid", f"The answer holds a picture of over {CONTENT_BYTES} bytes.")
            yield picture

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
        seconds = provider.timeout_seconds
        deadline = time.monotonic() + seconds
        try:
            reply = await client.send("GET", url, headers, timeout_seconds=seconds, account_id=account_id)
            async with contextlib.aclosing(reply):
                content = await reply.read(_ANSWER_BYTES, deadline - time.monotonic())
        except CLIENT_FAULTS:
            raise not_fetched from None
        if reply.status != 200 or picture_type(content) is None:  # a sign-in page has status 200 as well
            raise not_fetched
        return content
