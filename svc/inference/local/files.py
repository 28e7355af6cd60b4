"""The folder of GGUF files: its settings, its listing, and what the head of a file says.

The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

import contextlib
import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

SUFFIX = ".gguf"
MAGIC = b"GGUF"
STATES = ("unloaded", "loading", "ready", "failed")  # of a model
_HEAD_BYTES = 64 * 1024  # the context length is before the long lists of tokens
_LENGTH_KEY = ".context_length"
_MOST_KEYS = 1_000
_STRING, _ARRAY = 8, 9
_FORMATS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}


class LocalSettings(NamedTuple):
    """`[local]` of the catalog. `models` are those of `[[local.models]]` by the lower-case names of their files.

    Without a `folder` it is `<data>/models`. Without `threads` they are all cores less one, and without `gpu_layers`
    what fits on the GPU. Without `memory_bytes` it is half of the machine's memory.
    """

    folder: Path | None = None
    context_length: int = 8192
    parallel: int = 2
    threads: int | None = None
    gpu_layers: int | None = None
    idle_seconds: float = 600.0
    memory_bytes: int | None = None
    models: Mapping[str, Any] = {}

    def folder_in(self, data_dir: Path) -> Path:
        return self.folder or data_dir / "models"

    @property
    def most_bytes(self) -> int:
        return self.memory_bytes or os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


class ModelFile(NamedTuple):
    """A GGUF file. `version` changes when the file does. `context_length` is that of the model, if its head says it."""

    path: Path
    size_bytes: int
    version: tuple[int, int, int]
    context_length: int | None = None

    @property
    def name(self) -> str:
        return self.path.name[: -len(SUFFIX)]


def scan(folder: Path, known: Mapping[str, ModelFile | None]) -> dict[str, ModelFile | None]:
    """Return the files of `folder` by name, sorted; None for one that is no GGUF file. Unchanged ones are not read."""
    found: dict[str, ModelFile | None] = {}
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda one: one.name):
            name = entry.name
            if not name.lower().endswith(SUFFIX) or name.startswith(".") or not name.isprintable():
                continue
            if name[: -len(SUFFIX)] in {one[: -len(SUFFIX)] for one in found}:  # a.GGUF and a.gguf
                continue
            with contextlib.suppress(OSError):  # it was removed meanwhile, or is a link to nothing
                if entry.is_file():
                    found[name] = _read(Path(entry.path), entry.stat(), known.get(name))
    return found


def _read(path: Path, its: os.stat_result, known: ModelFile | None) -> ModelFile | None:
    version = (its.st_mtime_ns, its.st_size, its.st_ino)
    if known is not None and known.version == version:
        return known
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if not head.startswith(MAGIC):
        return None
    return ModelFile(path, its.st_size, version, context_length_in(head))


def context_length_in(head: bytes) -> int | None:
    """Return the context length that the head of a GGUF file names, or None if it cannot be read."""
    with contextlib.suppress(struct.error, ValueError, KeyError):
        (count,) = struct.unpack_from("<Q", head, 16)
        at = 24
        for _ in range(min(count, _MOST_KEYS)):
            key, at = _string(head, at)
            (kind,) = struct.unpack_from("<I", head, at)
            if key.endswith(_LENGTH_KEY.encode()):
                (length,) = struct.unpack_from(_FORMATS[kind], head, at + 4)
                return length if type(length) is int and length > 0 else None
            at = _after(head, at + 4, kind)
    return None


def _string(head: bytes, at: int) -> tuple[bytes, int]:
    (size,) = struct.unpack_from("<Q", head, at)
    end = at + 8 + size
    if end > len(head):
        raise ValueError("cut off")
    return head[at + 8 : end], end


def _after(head: bytes, at: int, kind: int) -> int:
    """Return where the value ends that begins at `at`."""
    if kind == _STRING:
        return _string(head, at)[1]
    if kind != _ARRAY:
        return at + struct.calcsize(_FORMATS[kind])
    inner, count = struct.unpack_from("<IQ", head, at)
    if inner in _FORMATS:
        return at + 12 + int(count) * struct.calcsize(_FORMATS[inner])
    if inner != _STRING or count > len(head):
        raise ValueError("cut off, or nested")
    at += 12
    for _ in range(count):
        at = _string(head, at)[1]
    return at
