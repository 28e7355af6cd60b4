"""What calls of media need of the process: bounds on how many are open, and files that large answers are made in."""

import asyncio
import contextlib
import io
import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from svc.builtin.voice import Voice
from svc.builtin.workshop import Workshop
from svc.errors import ApiError
from svc.inference.catalog import Model
from svc.inference.paid_call import Engines

_RETRY_SECONDS = 5


class Slots:
    """How many requests of a kind may be open at once, waiting, being made or being sent.

    One account has at most `most_of_one` of them, and never more than are left for all others together.
    """

    def __init__(self, most: int = 128, most_of_one: int = 40) -> None:
        self._most = most
        self._most_of_one = most_of_one
        self._open: Counter[str] = Counter()

    @contextlib.contextmanager
    def taken(self, account_id: str) -> Iterator[None]:
        """Takes a slot for the block. Raises ApiError `overloaded`."""
        if self._open[account_id] >= min(self._most_of_one, self._most - self._open.total()):
            message = "Too many pictures or speeches are under way. Try again in a few seconds."
            raise ApiError("overloaded", message, retry_after_seconds=_RETRY_SECONDS)
        self._open[account_id] += 1
        try:
            yield
        finally:
            self._open[account_id] -= 1
            if not self._open[account_id]:
                del self._open[account_id]


@dataclass(frozen=True)
class MediaLimits:
    """What calls of one sort share. Providers' answers are parsed one at a time: they may have 48 MiB."""

    images: Slots = field(default_factory=Slots)
    speeches: Slots = field(default_factory=Slots)
    parsing: asyncio.Lock = field(default_factory=asyncio.Lock)


class _Spool(io.FileIO):
    """A file without a buffer, so that nothing is left to be written when it is closed.

    It is closed in a thread: the system takes 4 ms for each 100 MB of a file that ends so, and many readers may be cut at once.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "r+b", closefd=False)

    def write(self, data: Any) -> int:
        """Writes all of `data`: a disk that takes a part of it only says so at the next try."""
        rest = memoryview(data)
        while rest:
            rest = rest[super().write(rest) or 0 :]
        return len(data)

    def close(self) -> None:
        if self.closed:
            return
        descriptor = self.fileno()
        super().close()
        try:
            asyncio.get_running_loop().run_in_executor(None, os.close, descriptor)
        except RuntimeError:  # the loop has ended
            os.close(descriptor)


@dataclass(frozen=True)
class MediaEngines:
    """Large things go to nameless files in `folder`, which the system takes back.

    Users' own providers have a lane of their own: silent ones take nothing from calls that are paid for.
    """

    engines: Engines
    painter: Workshop
    voice: Voice
    folder: Path
    shared: MediaLimits = field(default_factory=MediaLimits)
    byok: MediaLimits = field(default_factory=MediaLimits)

    def limits(self, model: Model) -> MediaLimits:
        return self.byok if model.provider is not None and model.provider.byok else self.shared

    def spool(self) -> BinaryIO:
        """A new nameless file. Raises ApiError `storage_unavailable`."""
        with storage(), tempfile.TemporaryFile(dir=self.folder, buffering=0) as file:
            return _Spool(os.dup(file.fileno()))


@contextlib.contextmanager
def storage() -> Iterator[None]:
    """A disk that does not take what is written in the block is ApiError `storage_unavailable`."""
    try:
        yield
    except OSError as error:
        raise ApiError("storage_unavailable") from error
