"""An import in progress: a helper process reads the export, and its lines are stored a few at a time.

begin -> a task -> svc/builtin/imports in a helper process -> lines behind the export in its file
      -> chat by chat: room, the conversation, its files, its messages for 5 ms a transaction -> a line of the report
"""

import asyncio
import contextlib
import io
import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import orjson

from svc import quota
from svc.builtin.processes import ProcessPool
from svc.content import artifacts, conversations, imported_files, imported_prompts, imports
from svc.content.artifacts import Home
from svc.content.imports import Import, Plan
from svc.db import Database
from svc.errors import ApiError, UpstreamFault, describe
from svc.ids import new_id
from svc.log import Log
from svc.server.http.head import Context
from svc.server.sse import Drain, Interrupt

ApplySettings = Callable[[dict[str, Any]], Awaitable[None]]
_BATCH_BYTES = 500_000
_BATCH = 200
_DAY_SECONDS = 24 * 3600
_DIED = "Reading this file took too much time or memory. Import it in parts."
_BUG = "An internal error occurred. It was logged under the id of the import."
_TOO_OLD = "Older than this server keeps conversations."
# These end the import, and not only a chat.
_FATAL = ("storage_unavailable", "shutting_down", "invalid_api_key", "overloaded")


@dataclass
class _Batch:
    """Consecutive messages of a chat, or one other line with the content behind it."""

    kind: str
    record: Any
    content: bytes = b""


@dataclass
class Importing:
    """One import. `file` has the export, `apply_settings` replaces the settings of an unused account, and `read_files`
    has the files of projects read.

    `keep_days` is how long the operator keeps conversations. `open_imports` has those in progress, by their ids.
    """

    db: Database
    clock: Callable[[], float]
    pool: ProcessPool
    open_imports: "dict[str, Importing]"
    keep_days: float | None
    row: Import
    file: BinaryIO
    apply_settings: ApplySettings
    read_files: Callable[[], None]
    _interrupt: Interrupt = field(default_factory=Interrupt)
    _source: str = ""

    def start(self, drain: Drain, log: Log, held: contextlib.ExitStack) -> None:
        """Import in a task. It closes `held` at its end."""
        self.open_imports[self.row.id] = self
        self._task = asyncio.create_task(self._run(drain, log, held))

    async def stop(self) -> None:
        """End the import, and wait for that."""
        self._interrupt("requested")
        await asyncio.wait([self._task])

    async def _run(self, drain: Drain, log: Log, held: contextlib.ExitStack) -> None:
        owner, reason, bug = self.row.account_id, None, None
        try:
            with held, self._interrupt.over(Context({}, account_id=owner), drain, 0):
                reason = await self._import()
        except (ApiError, UpstreamFault) as error:
            stopped = error.code == "shutting_down" if isinstance(error, ApiError) else False
            reason = imports.INTERRUPTED if stopped else _DIED if isinstance(error, UpstreamFault) else str(error)
        except asyncio.CancelledError:
            reason = imports.INTERRUPTED
        except Exception as error:
            reason, bug = _BUG, describe(error)
        ended = {"status": "failed" if reason else "done", "reason": reason}
        with contextlib.suppress(ApiError):  # the account is deleted, or the next start ends it
            await self.db.write(imports.change, owner, self.row.id, ended)
        del self.open_imports[self.row.id]
        fields = {"import_id": self.row.id, "source": self._source, "reason": reason, "error": bug}
        log("import", level="error" if bug else "info", account=owner, **fields)

    async def _import(self) -> str | None:
        """Import everything, and return the reason for the rest that could not be read, or None."""
        owner = self.row.account_id
        found = orjson.loads(await self.pool.run({}, self.file, account_id=owner, patient=True))
        if found["source"] is None:
            return str(found["reason"])
        self._source = found["source"]
        await self.db.write(imports.change, owner, self.row.id, {"source": self._source})
        async with contextlib.aclosing(self._batches(found["start"])) as batches:
            ahead: _Batch | None = await anext(batches, None)
            while ahead is not None:
                if ahead.kind == "chat":
                    ahead = await self._chat(ahead.record, batches)
                else:
                    await self._other(ahead)
                    ahead = await anext(batches, None)
        reason: str | None = found.get("reason")
        return reason

    async def _batches(self, start: int) -> AsyncGenerator[_Batch, None]:
        self.file.seek(start)
        reader = io.BufferedReader(io.FileIO(os.dup(self.file.fileno())), 2**20)
        with contextlib.closing(reader):
            read = _read(reader)
            while (batch := await asyncio.to_thread(next, read, None)) is not None:
                yield batch

    async def _other(self, batch: _Batch) -> None:
        db, owner, record = self.db, self.row.account_id, batch.record
        try:
            if batch.kind == "settings":
                await self.apply_settings(record)
            elif batch.kind in ("prompt", "project"):
                add = imported_prompts.add_prompt if batch.kind == "prompt" else imports.add_project
                await db.write(add, owner, self.row.id, self._source, record, self.clock())
            elif batch.kind == "artifact":
                await self._artifact(record, batch.content)
            elif batch.kind == "project_file":
                await db.write(imported_files.add_file, owner, self.row.id, self._source, record, self.clock())
                self.read_files()
            elif batch.kind in ("failed", "skipped"):
                await self._report(record.get("title"), batch.kind, record["reason"])
        except ApiError as error:
            if error.code in _FATAL:
                raise
            await self._report(record.get("name") or record.get("title"), "failed", str(error))

    async def _report(self, title: Any, status: str, reason: str | None) -> None:
        await self.db.write(imports.add_entry, self.row.account_id, self.row.id, title, status, reason)

    async def _chat(self, head: dict[str, Any], batches: AsyncIterator[_Batch]) -> _Batch | None:
        """Import a chat, and return what follows it."""
        status, reason, ahead = "imported", None, None
        plan: Plan | None = None
        try:
            days = self.keep_days
            if days is not None and (head.get("updated") or 0) < self.clock() - days * _DAY_SECONDS:
                status, reason = "skipped", _TOO_OLD
            else:
                db, owner = self.db, self.row.account_id
                async with quota.room(db, owner, head["bytes"], head["artifacts"]):
                    arguments = (owner, self.row.id, self._source, head, self.clock())
                    plan = await db.write(imports.begin_chat, *arguments)
                    if plan is not None:
                        return await self._fill(plan, head, batches)
                    status, reason = "skipped", "It was imported before."
        except ApiError as error:
            if error.code in _FATAL:
                raise
            status, reason = "failed", str(error)
            if plan is not None and plan.is_new:
                while await self.db.write_as(
                    "alone", conversations.delete_conversation, self.row.account_id, plan.conversation_id
                ):
                    pass
        await self._report(head.get("title"), status, reason)
        async for ahead in batches:
            if ahead.kind not in ("artifact", "message"):
                return ahead
        return None

    async def _fill(self, plan: Plan, head: dict[str, Any], batches: AsyncIterator[_Batch]) -> _Batch | None:
        db, owner, before = self.db, self.row.account_id, len(plan.ids)
        files: dict[str, str] = {}
        ahead = None
        async for ahead in batches:
            if ahead.kind == "artifact":
                files[ahead.record["key"]] = await self._artifact(ahead.record, ahead.content, room_reserved=True)
            elif ahead.kind == "message":
                messages = [await self._linked(message, files) for message in ahead.record]
                while messages:
                    arguments = (owner, self.row.id, self._source, plan, messages, self.clock())
                    done, ids = await db.write_as("alone", imports.add_messages, *arguments)
                    plan, messages = plan._replace(ids=ids), messages[done:]
            else:
                break
            ahead = None
        more = len(plan.ids) - before
        reason = None if plan.is_new else f"{more} new {'message was' if more == 1 else 'messages were'} added."
        await db.write(imports.end_chat, owner, self.row.id, plan, head, reason)
        return ahead

    async def _linked(self, message: dict[str, Any], files: dict[str, str]) -> dict[str, Any]:
        """Return the message with links to the stored files."""
        parts = str(message["content"]).split("](/artifacts/")
        for number, part in enumerate(parts[1:], 1):
            key, slash, rest = part.partition("/")
            stored = files.get(key)
            if stored is None and self._source == "svc" and len(key) < 100:
                stored = self.db.look_up(imports.imported_id, self.row.account_id, self._source, "artifact", key)
            parts[number] = f"{stored or key}{slash}{rest}"
        return {**message, "content": "](/artifacts/".join(parts)}

    async def _artifact(self, record: dict[str, Any], content: bytes, *, room_reserved: bool = False) -> str:
        """Store a file, unless it is there, and return its id. Raises ApiError."""
        db, owner, now_seconds = self.db, self.row.account_id, self.clock()
        known = db.look_up(imports.imported_id, owner, self._source, "artifact", record["key"])
        if known is not None and db.look_up(artifacts.exists, owner, known):
            return known
        artifact_id, project = new_id("art", now_seconds), record.get("project")
        # Before the file: undo deletes it even if the server ends now.
        await db.write(imports.add_item, owner, self.row.id, self._source, "artifact", record["key"], artifact_id)
        project_id = project and db.look_up(imports.imported_id, owner, self._source, "project", str(project))
        created, prompt = record.get("created"), record.get("prompt")
        await artifacts.add_artifact(
            db,
            Home(owner, project_id),
            content,
            name=imports.label_of(record["name"]) or "file",
            content_type=artifacts.valid_type(record["type"]) or "application/octet-stream",
            now_seconds=now_seconds,
            created_at=min(created, now_seconds) if created else None,
            artifact_id=artifact_id,
            room_reserved=room_reserved,
            prompt=prompt if isinstance(prompt, str) else None,
        )
        return artifact_id


def _read(reader: BinaryIO) -> Iterator[_Batch]:
    """Yield the lines of the helper process, with messages in batches."""
    messages: list[dict[str, Any]] = []
    size = 0
    for line in iter(reader.readline, b""):
        ((kind, record),) = orjson.loads(line).items()
        if kind == "message":
            messages.append(record)
            size += len(line)
        if messages and (kind != "message" or size > _BATCH_BYTES or len(messages) == _BATCH):
            yield _Batch("message", messages)
            messages, size = [], 0
        if kind != "message":
            yield _Batch(kind, record, reader.read(record["size"]) if kind == "artifact" else b"")
    if messages:
        yield _Batch("message", messages)
