"""Adding a GGUF file to the folder: a copy or a download, which continues where it was interrupted.

source -> <folder>/.partial/<name>.gguf, with <name>.json about its source -> magic, hash -> <folder>/<name>.gguf
"""

import asyncio
import contextlib
import fcntl
import hashlib
import os
import re
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import BinaryIO, NamedTuple
from urllib.parse import unquote, urljoin, urlsplit

import orjson

from svc.inference.local.files import MAGIC, SUFFIX
from svc.outbound.addresses import checked_url
from svc.outbound.client import Headers, Outbound
from svc.outbound.connection import Reply
from svc.outbound.errors import AddressNotAllowed, InvalidURL, OutboundError

NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
SHA256 = re.compile(r"[0-9a-fA-F]{64}")
PARTIAL = ".partial"
_TRIES, _PAUSE_SECONDS = 5, 1.0
_MOST_REDIRECTS = 5
_SILENT_SECONDS = 30.0
_WRITTEN_BYTES = 1024 * 1024
_KEPT_FREE_BYTES = 256 * 1024**2  # of the disk, for the database
_REDIRECTS = (301, 302, 303, 307, 308)
_LATER = (408, 425, 429, 500, 502, 503, 504)


class NotAdded(Exception):
    """The file cannot be added; the text says why."""


class NameTaken(NotAdded):
    """There is a model of this name."""


class _Unfinished(NotAdded):
    """What has arrived is kept, and the same command continues it."""


class _Interrupted(Exception):
    """The next try may succeed."""


class Wanted(NamedTuple):
    """A file to store as `path`. `source` is a path or an address, of which plain http is only for `any_address`."""

    source: str
    path: Path
    sha256: str | None = None
    replace: bool = False
    any_address: bool = True

    @property
    def is_url(self) -> bool:
        return "://" in self.source


class _Source(NamedTuple):
    """The rest of a source from `start` on. `version` changes with its content, None if that is unknown."""

    parts: AsyncIterator[bytes]
    start: int
    size_bytes: int | None
    version: str | None


def wanted(source: str, folder: Path, name: str | None, sha256: str | None, **options: bool) -> Wanted:
    """Return a checked order; the name is by default that of the file. Raises NotAdded."""
    if "://" in source:
        try:
            source = str(checked_url(source.partition("#")[0]))
        except InvalidURL:
            raise NotAdded("the address must be like https://example.com/model.gguf") from None
    last = Path(unquote(urlsplit(source).path) if "://" in source else source).name
    name = name or (last[: -len(SUFFIX)] if last.lower().endswith(SUFFIX) else last)
    if not NAME.fullmatch(name) or name.startswith("."):
        raise NotAdded(f"{name[:100]!r} is no name of a model: use 1 to 64 letters, digits, '.', '_' and '-'")
    if sha256 is not None and not SHA256.fullmatch(sha256):
        raise NotAdded("a SHA-256 hash has 64 hexadecimal digits")
    known = file_named(folder, name)
    order = Wanted(source, known or folder / f"{name}{SUFFIX}", sha256, **options)
    if known and not order.replace:
        raise NameTaken(f"there is a model {name!r} already: replace it, or choose another name")
    return order


def file_named(folder: Path, name: str) -> Path | None:
    """Return the file of this model, whose suffix may have any case."""
    found = (path for path in folder.glob("*") if path.name[: -len(SUFFIX)] == name)
    return next((path for path in found if path.suffix.lower() == SUFFIX), None)


async def add(order: Wanted, client: Outbound, on_progress: Callable[[int, int | None], None]) -> Path:
    """Copy or download a file, and show it in the folder when it is whole and checked. Return its path.

    `on_progress(bytes, size)` is called after each part; the size may be unknown. Raises NotAdded.
    """
    try:
        partial = order.path.parent / PARTIAL / order.path.name
        partial.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with partial.open("a+b") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise NotAdded("this model is being added already") from None
            try:
                await _fill(file, order, client, on_progress)
                await asyncio.to_thread(_check, file, order.sha256)
            except NotAdded as error:
                if not isinstance(error, _Unfinished):
                    _forget(partial)
                raise
            if not order.replace and order.path.exists():
                raise NotAdded(f"{order.path.name} was added meanwhile")
            partial.rename(order.path)
            _note(partial).unlink(missing_ok=True)
    except OSError as error:
        raise NotAdded(f"the file cannot be stored: {error.strerror}") from error
    return order.path


def _note(partial: Path) -> Path:
    return partial.with_suffix(".json")


def _forget(partial: Path) -> None:
    for path in (partial, _note(partial)):
        path.unlink(missing_ok=True)


async def _fill(
    file: BinaryIO, order: Wanted, client: Outbound, on_progress: Callable[[int, int | None], None]
) -> None:
    """Write the whole source into `file`, in up to five tries. Raises NotAdded."""
    reason = ""
    for number in range(_TRIES):
        if number:
            await asyncio.sleep(_PAUSE_SECONDS * number)
        try:
            source = await _open(order, client, _known(file, order))
            async with contextlib.aclosing(source.parts):  # type: ignore[type-var]
                return await _write(file, order, source, on_progress)
        except AddressNotAllowed:
            raise NotAdded("this address is not allowed: it must be a public one, with https") from None
        except (OutboundError, TimeoutError, _Interrupted) as error:
            reason = f"{error}" or "it did not answer in time"
    raise _Unfinished(f"it was interrupted {_TRIES} times: {reason}. Add it again to continue")


def _known(file: BinaryIO, order: Wanted) -> tuple[int, str | None]:
    """Return how much of this source was stored before, and of which version; 0 if that is another one."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        note = orjson.loads(_note(Path(file.name)).read_bytes())
        if note["source"] == order.source and note["version"]:
            return os.fstat(file.fileno()).st_size, note["version"]
    return 0, None


async def _write(
    file: BinaryIO, order: Wanted, source: _Source, on_progress: Callable[[int, int | None], None]
) -> None:
    """Append the parts of a source. Raises NotAdded, _Interrupted, OutboundError."""
    done, size = source.start, source.size_bytes
    file.truncate(done)
    _note(Path(file.name)).write_bytes(orjson.dumps({"source": order.source, "version": source.version}))
    _check_room(file, (size or 0) - done)
    waiting = bytearray()
    async for part in source.parts:
        waiting += part
        if done == 0 and len(waiting) >= len(MAGIC) and not waiting.startswith(MAGIC):
            raise NotAdded("this is no GGUF file")
        if len(waiting) >= _WRITTEN_BYTES:
            await asyncio.to_thread(file.write, bytes(waiting))
            done += len(waiting)
            waiting.clear()
            on_progress(done, size)
            _check_room(file, 0)
    file.write(waiting)
    file.flush()
    done += len(waiting)
    on_progress(done, size)
    if size is not None and done != size:
        raise _Interrupted(f"{done:,} of {size:,} bytes have arrived")


def _check_room(file: BinaryIO, bytes_to_come: int) -> None:
    free = shutil.disk_usage(Path(file.name).parent).free
    if free - bytes_to_come < _KEPT_FREE_BYTES:
        raise NotAdded(
            f"the disk has {free >> 20:,} MiB free, and {max(bytes_to_come, 0) >> 20:,} MiB are needed beside "
            f"{_KEPT_FREE_BYTES >> 20} MiB for the database"
        )


def _check(file: BinaryIO, sha256: str | None) -> None:
    """Check the magic and the hash of the whole file, and write it to the disk. Raises NotAdded."""
    file.seek(0)
    if file.read(len(MAGIC)) != MAGIC:
        raise NotAdded("this is no GGUF file")
    if sha256 is not None:
        file.seek(0)
        found = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
        if found != sha256.lower():
            raise NotAdded(f"its SHA-256 hash is {found}, not {sha256.lower()}")
    os.fsync(file.fileno())


# --- sources


async def _open(order: Wanted, client: Outbound, known: tuple[int, str | None]) -> _Source:
    if not order.is_url:
        return _of_file(Path(order.source), *known)
    return await _of_address(order, client, *known)


def _of_file(path: Path, start: int, known_version: str | None) -> _Source:
    try:
        its = path.stat()
    except OSError as error:
        raise NotAdded(f"{path} cannot be read: {error.strerror}") from None
    version = f"{its.st_mtime_ns}-{its.st_size}"
    start = start if version == known_version else 0

    async def parts() -> AsyncIterator[bytes]:
        with path.open("rb") as file:
            file.seek(start)
            while part := await asyncio.to_thread(file.read, _WRITTEN_BYTES):
                yield part

    return _Source(parts(), start, its.st_size, version)


async def _of_address(order: Wanted, client: Outbound, start: int, known_version: str | None) -> _Source:
    headers: Headers = ((b"accept", b"*/*"),)
    if start and known_version:
        headers += ((b"range", b"bytes=%d-" % start), (b"if-range", known_version.encode()))
    reply = await _followed(order, client, headers)
    try:
        version = reply.header(b"etag")
        version = "" if version.startswith("W/") else version or reply.header(b"last-modified")
        sizes = re.fullmatch(r"bytes (?:(\d+)-\d+|\*)/(\d+)", reply.header(b"content-range"))
        if reply.status == 206 and sizes and sizes[1] and int(sizes[1]) == start:
            return _Source(_parts(reply), start, int(sizes[2]), known_version)
        if reply.status == 416 and sizes and int(sizes[2]) == start:  # all was there
            return _Source(_parts(reply, skipped=True), start, start, known_version)
        if reply.status == 416:
            await reply.aclose()
            return await _of_address(order, client, 0, None)
        if reply.status != 200:
            fault = f"the server answered with status {reply.status}"
            raise (_Interrupted if reply.status in _LATER else NotAdded)(fault)
        length = reply.header(b"content-length")
        return _Source(_parts(reply), 0, int(length) if length.isdigit() else None, version or None)
    except BaseException:
        await reply.aclose()
        raise


async def _followed(order: Wanted, client: Outbound, headers: Headers) -> Reply:
    """Return the answer after the redirects, each of which is checked as the first address."""
    url = order.source
    for _ in range(_MOST_REDIRECTS + 1):
        if not (order.any_address or url.lower().startswith("https://")):
            raise AddressNotAllowed("plain http")
        reply = await client.send("GET", url, headers, timeout_seconds=_SILENT_SECONDS)
        if reply.status not in _REDIRECTS:
            return reply
        await reply.aclose()
        try:
            url = str(checked_url(urljoin(url, reply.header(b"location")).partition("#")[0]))
        except (InvalidURL, ValueError):
            raise NotAdded("the server redirects to an address that cannot be used") from None
    raise NotAdded(f"the server redirects more than {_MOST_REDIRECTS} times")


async def _parts(reply: Reply, *, skipped: bool = False) -> AsyncIterator[bytes]:
    async with contextlib.aclosing(reply):
        while not skipped and (part := await reply.more()):
            yield part
