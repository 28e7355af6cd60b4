"""What media calls share: their course, limits of open requests, files for answers, artifacts of results.

Answers of model servers are written to a file as they arrive: they may be long, and there may be many at the same time.
"""

import asyncio
import contextlib
import io
import os
import re
import tempfile
import unicodedata
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from svc.builtin.hearing import Hearing
from svc.builtin.processes import ProcessPool
from svc.builtin.voice import CONTENT_TYPES, Voice
from svc.content import artifacts
from svc.content.artifacts import Artifact, Home
from svc.errors import ApiError, UpstreamFault
from svc.inference.answer.upstream_errors import CLIENT_FAULTS, fault_of
from svc.inference.catalog import Model, Provider
from svc.inference.chat_request import drop_routing_fields
from svc.inference.model_call import Engines, ModelCall, Payer
from svc.inference.upstream import dump, send
from svc.outbound.client import Headers
from svc.outbound.connection import Reply

_ENDINGS = {content_type: format for format, content_type in CONTENT_TYPES.items()}
_ENDINGS |= {"image/png": "png", "image/jpeg": "jpg", "image/webp": "webp", "image/gif": "gif", "image/avif": "avif"}
_PICTURE_STARTS = {
    "image/png": rb"\x89PNG\r\n\x1a\n",
    "image/jpeg": rb"\xff\xd8\xff",
    "image/webp": rb"RIFF....WEBP",
    "image/avif": rb"....ftypavi[fs]",
    "image/gif": rb"GIF8[79]a",
}
_ANSWER_SECONDS = 3600.0  # of a model server
_OVERLOADED = ("overloaded", "There are too many open requests for images or audio. Try again in a few seconds.", 5)


@dataclass
class Slots:
    """A limit of open requests: `most_of_one` for each account, and never more than are left for all other accounts.

    `error` is the code, message and seconds until a retry of the ApiError for one too many.
    """

    most_of_one: int = 40
    most: float = 128
    error: tuple[str, str, int] = _OVERLOADED
    _open: Counter[str] = field(default_factory=Counter)

    @contextlib.contextmanager
    def taken(self, account_id: str) -> Iterator[None]:
        """Occupy a slot during the block, from the start of the work to the last byte sent."""
        if self._open[account_id] >= min(self.most_of_one, self.most - self._open.total()):
            code, message, seconds = self.error
            raise ApiError(code, message, retry_after_seconds=seconds)
        self._open[account_id] += 1
        try:
            yield
        finally:
            self._open[account_id] -= 1
            if not self._open[account_id]:
                del self._open[account_id]


class _Unbuffered(io.FileIO):
    def write(self, data: Any) -> int:
        """Write all of `data`. A full disk may take a part of it, and reports the error at the next write."""
        rest = memoryview(data)
        while rest:
            rest = rest[super().write(rest) or 0 :]
        return len(data)


@dataclass(frozen=True)
class MediaEngines:
    """The engines for images, speech and transcriptions. Large answers are stored in unnamed files in `folder`.

    The limits of open requests are by the kind of the model. Users' own providers have separate ones, so that silent
    ones do not block paid calls. Answers are parsed one at a time: each may have 48 MiB.
    """

    engines: Engines
    painter: ProcessPool
    voice: Voice
    hearing: Hearing
    folder: Path
    uploads: Slots = field(default_factory=Slots)  # files that arrive, before their model is known
    _slots: defaultdict[tuple[str, bool], Slots] = field(default_factory=lambda: defaultdict(Slots))
    _parsing: defaultdict[bool, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))

    def slots(self, model: Model) -> Slots:
        return self._slots[model.kind, model.byok]

    def parsing(self, model: Model) -> asyncio.Lock:
        return self._parsing[model.byok]

    @contextlib.asynccontextmanager
    async def asked(self, provider: Provider, path: str, body: dict[str, Any], most_bytes: int) -> AsyncIterator[Reply]:
        """Yield a provider's answer of up to `most_bytes`. Raises UpstreamFault, ApiError `address_not_allowed`."""
        # In a thread, because a body may hold many values.
        body = body if provider.byok else await asyncio.to_thread(drop_routing_fields, body, (), (), {})
        async with self.sent(provider, path, await dump(body), most_bytes) as reply:
            yield reply

    @contextlib.asynccontextmanager
    async def sent(
        self,
        provider: Provider,
        path: str,
        body: bytes,
        most_bytes: int,
        headers: Headers = (),
        on_sent: Callable[[], None] = lambda: None,
    ) -> AsyncIterator[Reply]:
        """Yield a provider's answer to the bytes of a body. `on_sent` is called when the provider may have them."""
        reply = await send(self.engines.way_to(provider), provider, path, b"*/*", body, on_sent, headers)
        reply.limit(most_bytes, _ANSWER_SECONDS)
        try:
            async with contextlib.aclosing(reply):
                yield reply
        except CLIENT_FAULTS as error:
            raise fault_of(error) from None

    @contextlib.contextmanager
    def spool(self) -> Iterator[BinaryIO]:
        """Open an unnamed, unbuffered file for the block. Raises ApiError `storage_unavailable`."""
        with storage(), tempfile.TemporaryFile(dir=self.folder, buffering=0) as file:
            spool = _Unbuffered(os.dup(file.fileno()), "r+b")
        try:
            yield spool
        finally:  # in a thread: deleting takes 4 ms for each 100 MB, and many may be closed at once
            asyncio.get_running_loop().run_in_executor(None, spool.close)


Parts = AsyncGenerator[dict[str, Any], None]  # the fields for the log, after each part of an answer


class MediaCall(ModelCall):
    """One request for images or speech. Each kind of call adds `built_in` and `provided`, which write the answer."""

    def __init__(self, model: Model, media: MediaEngines, payer: Payer) -> None:
        super().__init__(model, media.engines, payer)
        self._media = media

    def built_in(self, file: BinaryIO) -> Parts:
        raise NotImplementedError

    def provided(self, provider: Provider, model_name: str, file: BinaryIO) -> Parts:
        raise NotImplementedError

    async def make(self, file: BinaryIO) -> None:
        """Write the answer to the empty `file`. Raises ApiError."""
        async with contextlib.aclosing(self.parts(file)) as parts:
            async for _ in parts:
                pass

    async def parts(self, file: BinaryIO) -> Parts:
        """Do the same step by step."""

        async def begun(model: Model) -> Parts:
            provider = model.provider and self.server_of(model.provider)
            parts = self.provided(provider, model.name, file) if provider else self.built_in(file)
            self.log_fields.update(await anext(parts))  # a generator that raises is closed
            return parts

        try:
            with storage():
                async with contextlib.aclosing(await self.tried(begun)) as parts:
                    yield self.log_fields
                    async for fields in parts:
                        self.log_fields.update(fields)
                        yield fields
        except UpstreamFault as fault:
            raise self.caller_error(fault) from fault
        finally:
            self.ended()


@contextlib.contextmanager
def storage() -> Iterator[None]:
    """Turn an OSError of the block, such as a full disk, into ApiError `storage_unavailable`."""
    try:
        yield
    except OSError as error:
        raise ApiError("storage_unavailable") from error


def picture_type(content: bytes) -> str | None:
    """Return the media type of a picture that browsers show, by its first bytes, or None."""
    return next((name for name, start in _PICTURE_STARTS.items() if re.match(start, content, re.DOTALL)), None)


async def store(
    media: MediaEngines,
    home: Home,
    text: str,
    content: bytes,
    *,
    spoken_as: str = "",
    number: int = 1,
    artifact_id: str | None = None,
) -> Artifact:
    """Store the `number`th picture of the prompt `text`, or speech of a type, as an artifact. Raises ApiError."""
    content_type = spoken_as or picture_type(content) or "application/octet-stream"
    ending = f"{'' if number == 1 else f'-{number}'}.{_ENDINGS.get(content_type, 'bin')}"
    return await artifacts.add_artifact(
        media.engines.db,
        home,
        content,
        name=file_stem(text) + ending,
        content_type=content_type,
        now_seconds=media.engines.clock(),
        room_reserved=True,
        artifact_id=artifact_id,
        prompt=None if spoken_as else text,
    )


def file_stem(text: str) -> str:
    """Return the name of a file for a text, without its ending: at most 60 characters."""
    return re.sub(r"\W+", "-", unicodedata.normalize("NFC", text[:200]))[:60].strip("-") or "untitled"
