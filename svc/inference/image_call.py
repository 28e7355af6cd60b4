"""Pictures: the paid call that has them made, by the built-in painter or by a provider.

hold -> the painter, picture by picture | a provider's whole answer, decoded and checked -> what has come is paid for
"""

import asyncio
import contextlib
import os
import sqlite3
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple

from svc.content.contents import CONTENT_BYTES
from svc.errors import UpstreamFault
from svc.inference import upstream_media
from svc.inference.catalog import Model, Provider
from svc.inference.chat_request import drop_aiming_fields
from svc.inference.media_engines import MediaEngines, storage
from svc.inference.paid_call import Bill, PaidCall, Payer
from svc.inference.pictures import Address, Picture, pictures_in

LEAST_SIDE, MOST_SIDE = 64, 1024
# What the painter takes beside squares and other sizes of up to 1024 a side: the larger sizes of OpenAI's models.
LARGE_SIZES = ((1536, 1024), (1024, 1536), (1792, 1024), (1024, 1792))
# The bytes of a picture's head and of what compression may add.
_HEAD_BYTES = 64 * 1024
_PROVIDERS_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True)
class ImageRequest:
    """What is to be painted; `body` is the request as its caller sent it, for a provider."""

    prompt: str
    count: int
    width: int
    height: int
    body: Mapping[str, Any]


class ImageCall(PaidCall):
    """One request for pictures. `details` holds what the answer tells about them."""

    def __init__(self, model: Model, request: ImageRequest, media: MediaEngines, payer: Payer) -> None:
        super().__init__(model, media.engines, payer)
        self._request = request
        self._media = media
        self._made = 0
        self.details: dict[str, Any] = {}

    @property
    def most_bytes(self) -> int:
        """What the pictures take together, as far as that is known before they are made."""
        width, height = self._size()
        one = width * height * 3 + _HEAD_BYTES if self._model.provider is None else _PROVIDERS_BYTES
        return self._request.count * one

    def reserve_in(self, tx: sqlite3.Connection) -> None:
        if self.paid:
            self.hold(tx, self._request.count * self._asked.prices["micros_per_image"])

    def bill(self) -> Bill:
        made = 0 if self._failed else self._made
        text = f"{self._model.id}: {made} image{'' if made == 1 else 's'}"
        return Bill(0, 0, made * self._model.prices.get("micros_per_image", 0), text)

    async def pictures(self) -> AsyncGenerator[Picture, None]:
        """The pictures, one by one. Raises ApiError."""
        async with contextlib.aclosing(self.with_retries(self._engine)) as pictures:
            async for picture in pictures:
                self._made += 1
                self.log_fields["images"] = self._made
                yield picture

    async def _engine(self, model: Model) -> AsyncGenerator[Picture, None]:
        if model.provider is None:
            width, height = self._size()
            self.details = {"output_format": "png", "size": f"{width}x{height}"}
            order = {"prompt": self._request.prompt, "width": width, "height": height}
            for number in range(self._request.count):
                told, _, png = (await self._paint({**order, "variation": number})).partition(b"\n")
                yield Picture(png, told.decode())
            return
        async with contextlib.aclosing(self._ask(model.provider, model.name)) as pictures:
            async for picture in pictures:
                if len(picture.content) > CONTENT_BYTES:  # no artifact holds it, and nobody shall pay for what cannot be kept
                    raise UpstreamFault("invalid", f"The answer holds a picture of over {CONTENT_BYTES} bytes.")
                yield picture

    async def _paint(self, order: dict[str, Any]) -> bytes:
        return await self._media.painter.run(order, account_id=self._payer.account_id)

    def _size(self) -> tuple[int, int]:
        """The size that was asked for, or where the painter stands in for a provider the nearest one that it can paint."""
        width, height = self._request.width, self._request.height
        if (width, height) in LARGE_SIZES:
            return width, height
        scale = min(MOST_SIDE / max(width, height), 1)
        return max(round(width * scale), LEAST_SIDE), max(round(height * scale), LEAST_SIDE)

    async def _ask(self, provider: Provider, model_name: str) -> AsyncGenerator[Picture, None]:
        body = {**self._request.body, "model": model_name, "n": self._request.count}
        # A body may hold so many values that looking at each takes long.
        body = body if provider.byok else await asyncio.to_thread(drop_aiming_fields, body)
        with self._media.spool() as file, storage():
            await upstream_media.ask_for_images(self._engines.way_to(provider), provider, body, file)
            async with self._media.limits(self._model).parsing:
                kept, self.details = await asyncio.to_thread(_unpacked, file, provider, self._request.count)
            for picture in kept:
                if isinstance(picture, Address):
                    yield await self._fetched(provider, picture)
                else:
                    yield Picture(os.pread(file.fileno(), picture.size, picture.start), picture.revised_prompt)

    async def _fetched(self, provider: Provider, address: Address) -> Picture:
        """A picture from where the provider has put it: from itself as it is asked, from elsewhere as a user's own provider."""
        own = upstream_media.same_origin(address.url, provider.base_url)
        client = self._engines.way_to(provider) if own else self._engines.guarded
        content = await upstream_media.fetch(client, address.url, provider.timeout_seconds, self._payer.account_id)
        return Picture(content, address.revised_prompt)


class _KeptPicture(NamedTuple):
    """Where a picture is in the file, so that one of them is in memory at a time."""

    start: int
    size: int
    revised_prompt: str | None


def _unpacked(file: BinaryIO, provider: Provider, most: int) -> tuple[list[_KeptPicture | Address], dict[str, Any]]:
    """Reads an answer out of the file and leaves its pictures there in its place. Raises UpstreamFault."""
    file.seek(0)
    answer = pictures_in(file.read(), provider, most)
    file.seek(0)
    file.truncate()
    kept: list[_KeptPicture | Address] = []
    for picture in answer.pictures:
        if isinstance(picture, Picture):
            start = file.tell()
            file.write(picture.content)
            kept.append(_KeptPicture(start, len(picture.content), picture.revised_prompt))
        else:
            kept.append(picture)
    return kept, answer.details
