"""The paid call for pictures, from the built-in painter or a provider.

hold -> the painter, picture by picture | a provider's whole answer, decoded and checked -> a charge for the pictures that arrived
"""

import asyncio
import contextlib
import os
import sqlite3
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from svc.content.contents import CONTENT_BYTES
from svc.errors import UpstreamFault
from svc.inference import upstream_media
from svc.inference.catalog import Model, Provider
from svc.inference.media_engines import MediaEngines, storage
from svc.inference.paid_call import Bill, PaidCall, Payer
from svc.inference.pictures import Picture, pictures_in
from svc.outbound.addresses import same_origin

LEAST_SIDE, MOST_SIDE = 64, 1024
# The painter also makes the larger sizes of OpenAI's models.
LARGE_SIZES = ((1536, 1024), (1024, 1536), (1792, 1024), (1024, 1792))
# For a picture's header, and what compression may add.
_HEAD_BYTES = 64 * 1024
_PROVIDERS_BYTES = 4 * 1024 * 1024


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
        return self._painted() if model.provider is None else self._asked_for(model.provider, model.name)

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

    async def _asked_for(self, provider: Provider, model_name: str) -> AsyncGenerator[Picture, None]:
        body = {**self._request.body, "model": model_name, "n": self._request.count}
        client = self._engines.way_to(provider)
        with self._media.spool() as file, storage():
            await upstream_media.images(client, provider, body, file)
            async with self._media.limits(self._model).parsing:
                stored, self.details = await asyncio.to_thread(_unpack, file, provider, self._request.count)
            for start, size, picture in stored:
                if picture.url is None:
                    content = os.pread(file.fileno(), size, start)
                else:
                    # Only the provider itself is asked through the provider's client. Any other address is checked first.
                    way = client if same_origin(picture.url, provider.base_url) else self._engines.guarded
                    content = await upstream_media.fetch(way, picture.url, provider.timeout_seconds, self._payer.account_id)
                if len(content) > CONTENT_BYTES:  # no artifact can hold it, so it is not charged
                    raise UpstreamFault("invalid", f"The answer holds a picture of over {CONTENT_BYTES} bytes.")
                yield picture._replace(content=content)


def _unpack(file: BinaryIO, provider: Provider, most: int) -> tuple[list[tuple[int, int, Picture]], dict[str, Any]]:
    """Replace the answer in the file by its pictures, so that one of them is in memory at a time.

    Returns the start and the size of each picture, and the picture without its content. Raises UpstreamFault.
    """
    file.seek(0)
    pictures, details = pictures_in(file.read(), provider, most)
    file.seek(0)
    file.truncate()
    return [(file.tell(), file.write(picture.content), picture._replace(content=b"")) for picture in pictures], details
