"""Imports of exports of other chat applications and of this service."""

import asyncio
import contextlib
import re
from functools import partial
from typing import Any

from starlette.requests import ClientDisconnect

from svc.content import import_undo, imports
from svc.errors import ApiError
from svc.inference.media_engines import storage
from svc.routes.schemas.common import COUNT, NO_ROOM, TIMESTAMP, id_of
from svc.routes.user import finish_undo, import_settings
from svc.server.guards import Caller
from svc.server.importing import Importing
from svc.server.interface import Answer, Operation, Refusal, paged
from svc.server.web import Request, read_page
from svc.shapes import json_object, list_of, nullable, one_of, string

describes = partial(Operation, "Data")
MOST_BYTES = 200_000_000
_TYPES = re.compile(r"application/(zip|x-zip-compressed|json)\s*(;.*)?", re.IGNORECASE)
_STATUSES = ("reading", "done", "failed", "undone")
_IMPORT = json_object(
    "Import",
    id=id_of("imp"),
    status=one_of(*_STATUSES).about("`failed` with a `reason`. What was imported before that stays.", "done"),
    source=nullable(one_of("chatgpt", "claude", "open_webui", "librechat", "svc")).about(
        "The application of the export; `svc` is this service. Null until it is known.", "chatgpt"
    ),
    reason=nullable(string).about("Why the import, or the rest of the file, has failed."),
    counts=json_object(
        "ImportCounts", "Conversations until now.", imported=COUNT.about(example=12), skipped=COUNT, failed=COUNT
    ),
    created_at=TIMESTAMP,
)
_ENTRY = json_object(
    "ImportedConversation",
    title=nullable(string).about(example="Trains"),
    status=one_of("imported", "skipped", "failed").about("`skipped`: it is there already, or archived."),
    reason=nullable(string),
)
_REPORT = json_object(
    "ImportReport",
    "",
    _IMPORT,
    conversations=list_of(_ENTRY).about(f"The first {imports.MOST_LISTED:,}, in the order of the file."),
)
_FILE = string.about("The ZIP file as it was downloaded, or its JSON file.", format="binary")
_WRONG_TYPE = Refusal(
    "unsupported_media_type", "Send the file with 'Content-Type: application/zip' or 'application/json'."
)
_BUSY = Refusal("already_active", str(imports.already_importing()), when="Another import is in progress.")


@describes(
    "Import conversations",
    body=_FILE,
    most_bytes=MOST_BYTES,
    media_type="application/zip, application/json",
    examples={"zip": ("The bytes of a file", "PK…")},
    answer=Answer("The import has begun.", _REPORT, 202),
    errors=[_WRONG_TYPE, _BUSY, NO_ROOM, Refusal("overloaded", when="Too many imports are in progress.")],
)
async def create_import(request: Request, caller: Caller) -> object:
    state = request.state
    if not _TYPES.fullmatch(request.headers.get("content-type", "")):
        raise _WRONG_TYPE.error()
    if state.db.look_up(imports.is_importing, caller.id):
        raise _BUSY.error()
    with contextlib.ExitStack() as held:
        held.enter_context(state.import_slots.taken(caller.id))
        file = held.enter_context(state.media.spool())
        await _receive(request, file)
        row = await state.db.write(imports.add_import, caller.id, state.clock())
        settings = partial(import_settings, state, caller, row.id)
        keep_days, pool = state.config.keep_conversations_days, state.process_pools["imports"]
        parts = (state.db, state.clock, pool, state.open_imports, keep_days)
        Importing(*parts, row, file, settings, state.file_reading.wake).start(state.drain, state.log, held.pop_all())
    return {**row.as_json(), "conversations": []}


async def _receive(request: Request, file: Any) -> None:
    """Write the body to `file`. Raises ApiError `PAYLOAD_TOO_LARGE`, `unsupported_media_type`."""
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise ApiError("unsupported_media_type", "Send the body as it is, without a Content-Encoding.")
    too_large = ApiError("PAYLOAD_TOO_LARGE", f"The file is over {MOST_BYTES} bytes. Import it in parts.")
    length, size_bytes, more = request.headers.get("content-length", "0"), 0, True
    if not length.isdigit() or int(length[:20]) > MOST_BYTES:
        raise too_large
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        size_bytes += len(message["body"])
        if size_bytes > MOST_BYTES:
            raise too_large
        with storage():
            await asyncio.to_thread(file.write, message["body"])  # a write to a busy disk takes up to 400 ms
        more = message["more_body"]


@describes(
    "List the imports",
    "Those of the last 30 days, without their conversations.",
    answer=paged("A page of imports.", "ImportList", _IMPORT),
)
async def list_imports(request: Request, caller: Caller) -> object:
    return await read_page(request, imports.TABLE.page, caller.id)


@describes("Show an import", answer=Answer("The import, and each of its conversations until now.", _REPORT))
async def get_import(request: Request, caller: Caller, import_id: str) -> object:
    db = request.state.db
    row = await db.read(imports.TABLE.by_id, caller.id, import_id)
    return {**row.as_json(), "conversations": await db.heavy_read(imports.entries, caller.id, import_id)}


@describes(
    "Undo an import",
    answer=Answer("What it has imported is deleted."),
    errors=[Refusal("already_ended", when="The import is older than 24 hours.")],
)
async def undo_import(request: Request, caller: Caller, import_id: str) -> None:
    state = request.state
    await state.db.read(import_undo.check_undo, caller.id, import_id, state.clock())
    if importing := state.open_imports.get(import_id):
        await importing.stop()
    more = True
    while more:
        more, changed = await state.db.write_as("alone", import_undo.undo_some, caller.id, import_id)
        for answer in filter(None, map(state.open_answers.get, changed)):
            answer.stop("conversation_deleted")
    await state.db.write(finish_undo, caller.id, import_id, state.clock())
