"""Pictures and speech: the paid calls that make them, within bounds, into files that answers are sent from.

a turn of Slots (503) -> a Spool -> ImageCall.pictures() | SpeechCall.speak() -> the built-in workshop | a provider
`async with call`: what was produced is paid for however it ends; an error costs nothing
"""

import asyncio
import base64
import contextlib
import io
import os
import re
import sqlite3
import tempfile
import unicodedata
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Mapping
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import Any, BinaryIO

from svc.builtin.voice import CONTENT_TYPES, Voice
from svc.builtin.workshop import Workshop
from svc.content import artifacts
from svc.content.artifacts import Artifact
from svc.errors import ApiError
from svc.inference import upstream_media
from svc.inference.catalog import Model
from svc.inference.chat_request import drop_aiming_fields
from svc.inference.paid_call import Bill, Engines, PaidCall, Payer
from svc.inference.upstream_media import Picture, Pictures

DEFAULT_AUDIO_TOKENS = 4096
LEAST_AUDIO_TOKENS, MOST_AUDIO_TOKENS = 256, 32_768
# 4096 audio tokens are 180 seconds.
_SECONDS_PER_TOKEN = 180 / 4096
_PRICED_TOKENS = 1_000
# How fast people speak, for the formats that do not tell their length.
_CHARACTERS_PER_SECOND = 15
LEAST_SIDE, MOST_SIDE = 64, 1024
_RETRY_SECONDS = 5
_TYPES = {
    "iVBORw0KGgo": ("image/png", "png"),
    "/9j/": ("image/jpeg", "jpg"),
    "UklGR": ("image/webp", "webp"),
    "R0lGOD": ("image/gif", "gif"),
}


class Slots:
    """How many requests of a kind may be open at once, waiting, being made or being sent, and how many of them one account's."""

    def __init__(self, most: int = 64, most_of_one: int = 40) -> None:
        self._most = most
        self._most_of_one = most_of_one
        self._open: Counter[str] = Counter()

    @contextlib.contextmanager
    def taken(self, account_id: str) -> Iterator[None]:
        """Takes a slot for the block. Raises ApiError `overloaded`."""
        if self._open.total() >= self._most or self._open[account_id] >= self._most_of_one:
            message = "Too many pictures or speeches are under way. Try again in a few seconds."
            raise ApiError("overloaded", message, retry_after_seconds=_RETRY_SECONDS)
        self._open[account_id] += 1
        try:
            yield
        finally:
            self._open[account_id] -= 1
            if not self._open[account_id]:
                del self._open[account_id]


class _Spool(io.FileIO):
    """A file without a buffer, so that nothing is left to be written when it is closed."""

    def write(self, data: Any) -> int:
        """Writes all of `data`: a disk that takes a part of it only says so at the next try."""
        rest = memoryview(data)
        while rest:
            rest = rest[super().write(rest) or 0 :]
        return len(data)


@dataclass(frozen=True)
class Studio:
    """What calls of media need of the process. Large things go to nameless files in `folder`, which the system takes back."""

    engines: Engines
    painter: Workshop
    voice: Voice
    folder: Path
    images: Slots = field(default_factory=Slots)
    speeches: Slots = field(default_factory=Slots)
    # Providers' answers are parsed one at a time: they may have 48 MiB.
    parsing: asyncio.Lock = field(default_factory=asyncio.Lock)

    def spool(self) -> BinaryIO:
        """A new nameless file. Raises ApiError `storage_unavailable`."""
        with storage(), tempfile.TemporaryFile(dir=self.folder, buffering=0) as file:
            return _Spool(os.dup(file.fileno()), "r+b")


@contextlib.contextmanager
def storage() -> Iterator[None]:
    """A disk that does not take what is written in the block is ApiError `storage_unavailable`."""
    try:
        yield
    except OSError as error:
        raise ApiError("storage_unavailable") from error


# --- pictures


@dataclass(frozen=True)
class ImageRequest:
    """What is to be painted; `body` is the request as its caller sent it, for a provider."""

    prompt: str
    count: int
    width: int
    height: int
    body: Mapping[str, Any]


class ImageCall(PaidCall):
    """One request for pictures. `facts_about` holds what the answer tells about them."""

    def __init__(self, model: Model, request: ImageRequest, studio: Studio, payer: Payer) -> None:
        super().__init__(model, studio.engines, payer)
        self._request = request
        self._studio = studio
        self._made = 0
        self.facts_about: dict[str, Any] = {}

    def reserve_in(self, tx: sqlite3.Connection) -> None:
        if self.paid:
            self.hold(tx, self._request.count * self._asked.prices["micros_per_image"])

    def bill(self) -> Bill:
        made = self._made
        text = f"{self._model.id}: {made} image{'' if made == 1 else 's'}"
        return Bill(0, 0, made * self._model.prices.get("micros_per_image", 0), text)

    def void(self) -> None:
        self._made = 0

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
            self.facts_about = {"output_format": "png", "size": f"{width}x{height}"}
            order = {"prompt": self._request.prompt, "width": width, "height": height}
            for number in range(self._request.count):
                yield Picture(base64.b64encode(await self._paint({**order, "variation": number})))
            return
        answer = await self._ask(model)
        self.facts_about = answer.facts
        for picture in answer.pictures:
            yield picture

    async def _paint(self, order: dict[str, Any]) -> bytes:
        return await self._studio.painter.run(order, account_id=self._payer.account_id)

    def _size(self) -> tuple[int, int]:
        """The size that was asked for, or where the painter stands in for a provider the nearest one that it can paint."""
        width, height = self._request.width, self._request.height
        scale = min(MOST_SIDE / max(width, height), 1)
        return max(round(width * scale), LEAST_SIDE), max(round(height * scale), LEAST_SIDE)

    async def _ask(self, model: Model) -> Pictures:
        assert model.provider is not None
        body = {**self._request.body, "model": model.name, "n": self._request.count}
        body = body if model.provider.byok else drop_aiming_fields(body)
        with self._studio.spool() as file, storage():
            await upstream_media.ask_for_images(self._engines.way_to(model.provider), model.provider, body, file)
            async with self._studio.parsing:
                file.seek(0)
                return await asyncio.to_thread(
                    lambda: upstream_media.pictures_in(file.read(), model.provider, self._request.count)  # type: ignore[arg-type]
                )


# --- speech


@dataclass(frozen=True)
class SpeechRequest:
    """What is to be said; `body` is what a provider gets besides. `voice` names one of the built-in voices."""

    text: str
    form: str
    voice: str
    speed: float
    most_tokens: int
    body: Mapping[str, Any]


class SpeechCall(PaidCall):
    """One request for speech; after `speak` it tells what has become of it."""

    def __init__(self, model: Model, request: SpeechRequest, studio: Studio, payer: Payer) -> None:
        super().__init__(model, studio.engines, payer)
        self._request = request
        self._studio = studio
        self._most_seconds = request.most_tokens * _SECONDS_PER_TOKEN
        self.seconds = 0.0
        self.truncated = False
        self.content_type = CONTENT_TYPES["wav"]

    @property
    def tokens(self) -> int:
        """What has been said, in audio tokens."""
        return min(ceil(self.seconds / _SECONDS_PER_TOKEN - 1e-6), self._request.most_tokens)

    def reserve_in(self, tx: sqlite3.Connection) -> None:
        if self.paid:
            self.hold(tx, self._cost_micros(self._asked, self._request.most_tokens))

    def bill(self) -> Bill:
        text = f"{self._model.id}: {self.tokens} audio tokens ({self.seconds:.1f} s)"
        return Bill(0, self.tokens, self._cost_micros(self._model, self.tokens), text)

    def void(self) -> None:
        self.seconds = 0.0

    @staticmethod
    def _cost_micros(model: Model, tokens: int) -> int:
        return -(-tokens * model.prices.get("micros_per_thousand_audio_tokens", 0) // _PRICED_TOKENS)

    async def speak(self, file: BinaryIO) -> None:
        """Speaks into the empty `file`. Raises ApiError."""
        with storage():
            async with contextlib.aclosing(self.with_retries(lambda model: self._engine(model, file))) as steps:
                async for self.seconds, self.truncated, self.content_type in steps:
                    self.log_fields["audio_seconds"] = round(self.seconds, 3)

    async def _engine(self, model: Model, file: BinaryIO) -> AsyncGenerator[tuple[float, bool, str], None]:
        request = self._request
        if model.provider is None:
            voice, format = await self._studio.voice.nearest(request.voice, request.form)
            spoken = await self._studio.voice.speak(
                request.text,
                file,
                voice=voice,
                speed=request.speed,
                format=format,
                most_seconds=self._most_seconds,
                account_id=self._payer.account_id,
            )
            yield spoken.seconds, spoken.truncated, CONTENT_TYPES[format]
            return
        body = {**request.body, "model": model.name, "input": request.text, "response_format": request.form}
        tracks = upstream_media.speech(
            self._engines.way_to(model.provider),
            model.provider,
            body if model.provider.byok else drop_aiming_fields(body),
            file,
            most_seconds=self._most_seconds,
            guess_seconds=min(len(request.text) / _CHARACTERS_PER_SECOND / request.speed, self._most_seconds),
        )
        async with contextlib.aclosing(tracks):
            async for track in tracks:
                yield track.seconds, track.truncated, track.content_type


# --- calls as a whole


@dataclass
class Maker:
    """Makes pictures and speech for an agent run, as artifacts of the run. Each is a paid call of its own."""

    studio: Studio
    payer: Payer
    run_id: str
    project_id: str | None
    calls: list[PaidCall] = field(default_factory=list)

    @property
    def cost_micros(self) -> int:
        """What all of it has cost so far, also what was cut short."""
        return sum(call.cost_micros for call in self.calls)

    async def draw(self, model: Model, prompt: str) -> Artifact:
        """Draws a picture; the artifact's row. Raises ApiError."""
        call = ImageCall(model, ImageRequest(prompt, 1, MOST_SIDE, MOST_SIDE, {"prompt": prompt}), self.studio, self.payer)
        self.calls.append(call)
        async with call:
            with self.studio.images.taken(self.payer.account_id):
                async with contextlib.aclosing(call.pictures()) as pictures:
                    picture = await anext(pictures)
                return await stored(self.studio, self.payer, prompt, picture, run_id=self.run_id, project_id=self.project_id)

    async def speak(self, model: Model, text: str) -> Artifact:
        """Speaks up to 3 minutes; the artifact's row. Raises ApiError."""
        request = SpeechRequest(text, "wav", "alloy", 1.0, DEFAULT_AUDIO_TOKENS, {"voice": "alloy"})
        call = SpeechCall(model, request, self.studio, self.payer)
        self.calls.append(call)
        async with call:
            with self.studio.speeches.taken(self.payer.account_id), self.studio.spool() as file:
                await call.speak(file)
                file.seek(0)
                ending = next((form for form, kind in CONTENT_TYPES.items() if kind == call.content_type), "bin")
                content = await asyncio.to_thread(file.read)
                name = f"{_stem(text)}.{ending}"
                return await _artifact(self.studio, self.payer, name, call.content_type, content, self.project_id, self.run_id)


async def stored(
    studio: Studio,
    payer: Payer,
    prompt: str,
    picture: Picture,
    number: int = 1,
    *,
    project_id: str | None = None,
    run_id: str | None = None,
) -> Artifact:
    """Keeps the `number`th picture of a prompt as an artifact that is named for it. Raises ApiError."""
    content = await asyncio.to_thread(_decoded, picture)
    content_type, ending = _picture_type(picture)
    name = f"{_stem(prompt)}{'' if number == 1 else f'-{number}'}.{ending}"
    return await _artifact(studio, payer, name, content_type, content, project_id, run_id)


async def _artifact(
    studio: Studio,
    payer: Payer,
    name: str,
    content_type: str,
    content: bytes,
    project_id: str | None,
    run_id: str | None,
) -> Artifact:
    sha256 = await asyncio.to_thread(artifacts.sha256_of, content)
    return await studio.engines.db.write(
        artifacts.add_artifact,
        payer.account_id,
        name=name,
        content_type=content_type,
        content=content,
        sha256=sha256,
        project_id=project_id,
        run_id=run_id,
        now_seconds=studio.engines.clock(),
    )


def _stem(text: str) -> str:
    """The beginning of a text as a file's name."""
    return re.sub(r"\W+", "-", unicodedata.normalize("NFC", text[:200]))[:60].strip("-") or "untitled"


def _picture_type(picture: Picture) -> tuple[str, str]:
    """The content type of a picture and the ending of its file's name."""
    start = picture.encoded[:16].decode("ascii", "replace")
    return next((kind for magic, kind in _TYPES.items() if start.startswith(magic)), ("application/octet-stream", "bin"))


def _decoded(picture: Picture) -> bytes:
    """The picture's bytes. Raises ApiError `upstream_invalid_response` for base64 that is none."""
    try:
        return base64.b64decode(picture.encoded, validate=True)
    except ValueError:
        raise ApiError("upstream_invalid_response", "The model server sent a picture that cannot be read.") from None
