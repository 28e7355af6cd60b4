"""Reads the files of projects in the background: their texts become passages (svc/content/project_files.py).

a file with status `reading` -> its content in a temporary file -> a helper process (builtin/passages.py) replaces it by
passages -> they are stored and indexed some at a time -> `ready`, or `failed` with the reason

After a crash, the next start reads the file again. Each account has one file in work, and there are two at once.
"""

import asyncio
import contextlib
import io
import itertools
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, BinaryIO

import orjson

from svc.builtin.processes import ProcessPool
from svc.content import artifact_contents, project_files
from svc.content.project_files import FilePassage, ProjectFile
from svc.db import AFTER_START_SECONDS, Database, acting_for
from svc.errors import ApiError, UpstreamFault, describe
from svc.log import Log

_AT_ONCE = 2
_BATCH = 8  # passages of a transaction, about 8 ms
_AGAIN_SECONDS = 5.0
_LIMITS = "This file cannot be read within the limits of time and memory."
_LATER = frozenset(("overloaded", "shutting_down", "storage_unavailable"))


class FileReading:
    """Reads the files that wait. `wake` after a file is added or replaced."""

    def __init__(self, db: Database, pool: ProcessPool, spool: Callable[[], Any], log: Log) -> None:
        self._db, self._pool, self._spool, self._log = db, pool, spool, log
        self._woken = asyncio.Event()
        self._busy: dict[str, asyncio.Task[None]] = {}

    def wake(self) -> None:
        self._woken.set()

    async def run(self) -> None:
        """Read files until cancelled."""
        seconds: float | None = AFTER_START_SECONDS
        try:
            while True:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        await self._woken.wait()
                self._woken.clear()
                seconds = None
                try:
                    while len(self._busy) < _AT_ONCE:
                        file = await self._db.read(project_files.next_reading, tuple(self._busy))
                        if file is None:
                            break
                        self._start(file)
                except ApiError:  # the storage does not answer
                    seconds = _AGAIN_SECONDS
        finally:
            for task in self._busy.values():
                task.cancel()

    def _start(self, file: ProjectFile) -> None:
        task = asyncio.create_task(self._read(file))
        self._busy[file.account_id] = task

        def ended(_: object) -> None:
            del self._busy[file.account_id]
            self.wake()

        task.add_done_callback(ended)

    async def _read(self, file: ProjectFile) -> None:
        acting_for.set(file.account_id)
        text_id: str | None = None
        try:
            with self._spool() as spool:
                await self._fetch(file, spool)
                found = await self._passages(file, spool)
                if "error" in found:
                    raise ApiError("no_text", found["error"][1], details={"reason": found["error"][0]})
                text_id = await self._db.write(project_files.begin_text, file.account_id)
                await self._store(file, text_id, spool)
            await self._db.write(project_files.finish, file, text_id, found["text_bytes"])
        except artifact_contents.ContentReplaced:
            await self._leave(file, text_id)
        except ApiError as error:
            if error.code in _LATER:
                await asyncio.sleep(_AGAIN_SECONDS)
                await self._leave(file, text_id)
                return
            code = error.error.get("reason") or error.code
            await self._write(partial(project_files.fail, file=file, text_id=text_id, code=code, message=str(error)))
        except Exception as error:
            self._log("reading", level="error", error=describe(error))
            message = "This file cannot be read because of an internal error."
            fail = partial(project_files.fail, file=file, text_id=text_id, code="internal_error", message=message)
            await self._write(fail)

    async def _fetch(self, file: ProjectFile, spool: BinaryIO) -> None:
        """Write the content of a file to `spool`. Raises ContentReplaced."""
        for number in itertools.count():
            if number * artifact_contents.CHUNK_BYTES >= file.size:
                break
            arguments = (file.account_id, file.artifact_id, file.sha256, number)
            spool.write(await self._db.read(artifact_contents.content_chunk, *arguments))
        spool.flush()

    async def _passages(self, file: ProjectFile, spool: BinaryIO) -> dict[str, Any]:
        order = {"path": sys.path, "name": file.name, "content_type": file.content_type}
        try:
            output = await self._pool.run(order, spool, account_id=file.account_id, patient=True)
        except UpstreamFault:
            return {"error": ["no_text", _LIMITS]}
        found: dict[str, Any] = orjson.loads(output)
        return found

    async def _store(self, file: ProjectFile, text_id: str, spool: BinaryIO) -> None:
        spool.seek(0)
        with io.BufferedReader(io.FileIO(os.dup(spool.fileno()))) as reader:
            while lines := await asyncio.to_thread(lambda: list(itertools.islice(reader, _BATCH))):
                passages = [FilePassage(*orjson.loads(line)) for line in lines]
                await self._db.write(project_files.add_passages, file.account_id, file.project_id, text_id, passages)

    async def _leave(self, file: ProjectFile, text_id: str | None) -> None:
        if text_id is not None:
            await self._write(partial(project_files.leave, account_id=file.account_id, text_id=text_id))

    async def _write(self, change: Callable[..., object]) -> None:
        with contextlib.suppress(ApiError):  # the storage is full, or the server stops: the next start reads again
            await self._db.write(change)
