"""The export of an account as one zip archive: artifacts as files, everything else as JSON lines.

content -> complete in a temporary file -> its entry -> the archive, sent as fast as the client reads
rows of a kind -> JSON lines, a MiB for each read -> the archive
"""

import io
import re
import sqlite3
import unicodedata
from collections.abc import AsyncGenerator, Callable
from functools import partial
from operator import methodcaller
from typing import Any, BinaryIO

import orjson

from svc.agents import run_records
from svc.auth import sign_ins
from svc.auth.accounts import Account
from svc.billing import wallet
from svc.content import (
    answers,
    artifact_contents,
    branches,
    conversations,
    imports,
    projects,
    prompts,
    shares,
    support,
)
from svc.content.artifacts import Artifact
from svc.content.history import Message
from svc.db import Database
from svc.ids import day_of, fields_as_json
from svc.inference import providers
from svc.inference.media_engines import storage
from svc.inference.tool_servers import records as tool_servers
from svc.routes.artifacts import content_chunks
from svc.server.guards import Caller
from svc.server.interface import Answer, Content, Operation, header
from svc.server.state import State
from svc.server.streamed import streamed
from svc.server.web import Request, Response
from svc.shapes import string
from svc.tables import json_of

describes = partial(Operation, "Data")
_ARCHIVE = Content(string.about("The archive.", format="binary"))
_LINES_BYTES = 1024 * 1024
_NAME_BYTES = 150
# Unsafe in file names: controls, direction marks, path separators, characters that Windows refuses.
_UNSAFE = re.compile(r'[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff/\\:*?"<>|]+|\.{2,}')


def _message(row: sqlite3.Row) -> dict[str, Any]:
    return {**Message(**row).as_json(), "run_id": row["run_id"], "branch": row["branch"]}


_ACCOUNT = (
    "id email name tier default_model memory_enabled instructions generate_titles language admin group status "
    "created_at last_seen_at"
)
_USAGE = "day model requests input_tokens output_tokens cost_micros cached_input_tokens"
# file: (table, the columns that order an account's rows, what is written of a row: no secrets and no hashes of them)
KINDS: dict[str, tuple[str, str, Callable[[sqlite3.Row], Any]]] = {
    "identities": ("identities", "id", json_of("id issuer subject email created_at")),
    "api_keys": (
        "api_keys",
        "id",
        json_of("id key_prefix name created_at last_used_at spent_micros monthly_limit_micros"),
    ),
    "sign_ins": ("sign_ins", "seq", sign_ins.own_json),
    "providers": ("providers", "id", providers.as_json),
    "tool_servers": ("tool_servers", "id", tool_servers.as_json),
    "projects": ("projects", "id", projects.TABLE.make),
    "prompts": ("prompts", "id", prompts.TABLE.make),
    "project_files": (
        "project_files",
        "number",
        json_of("project_id artifact_id status error_code error_message text_bytes created_at"),
    ),
    "conversations": ("conversations", "id", conversations.TABLE.make),
    "branches": ("branches", "conversation_id, branch", branches.as_json),
    "messages": ("messages", "number", _message),
    "answers": ("answers", "message_id", lambda row: {"message_id": row["message_id"], **answers.as_json(row)}),
    "shares": (
        "shares",
        "number",
        lambda row: {**shares.TABLE.make(row), "messages": orjson.Fragment(row["messages"])},
    ),
    "share_pictures": ("share_pictures", "share_id, artifact_id", json_of("share_id artifact_id content_type size")),
    "forgotten": ("forgotten", "message_id", json_of("message_id forgotten_at")),
    "imports": ("imports", "id", imports.TABLE.make),
    "import_entries": ("import_entries", "number", json_of("import_id title status reason")),
    "runs": ("runs", "id", lambda row: orjson.Fragment(run_records.with_events(row))),
    "ledger": ("ledger", "seq", wallet.LEDGER.make),
    "usage": (
        "usage_days",
        "day, model",
        json_of(_USAGE),
    ),
    "checkouts": ("checkouts", "id", json_of("id amount_micros state session_id created_at paid_at")),
    "support_conversations": ("support_conversations", "id", support.TABLE.make),
    "support_messages": ("support_messages", "number", json_of("support_id id role content created_at")),
}


@describes(
    "Export all data",
    "Without keys, passwords and their hashes.",
    answer=Answer(
        "A zip archive: `account.json`, JSON lines for each kind of object, and the artifacts as files.",
        contents={"application/zip": _ARCHIVE, "*/*": _ARCHIVE},
        headers={"content-disposition": header("A download.", string, 'attachment; filename="export-2026-09-21.zip"')},
    ),
)
async def export_account(request: Request, caller: Caller) -> Response:
    """Send the archive. Memory is limited to the largest row. Each object is complete, even if it changes during the
    export.
    """
    state = request.state
    account = caller.account(state.db)
    await state.engines.usage.flush()
    return await streamed(request, _archive(state, account), "application/zip", f"export-{day_of(state.clock())}.zip")


class _Sink(io.RawIOBase):
    """The output of zipfile, which `take` empties."""

    def __init__(self) -> None:
        self._written: list[bytes] = []

    def write(self, data: Any) -> int:
        self._written.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        taken, self._written = b"".join(self._written), []
        return taken


async def _archive(state: State, account: Account) -> AsyncGenerator[bytes, None]:
    import zipfile  # late, because it slows the start

    db, sink = state.db, _Sink()
    with zipfile.ZipFile(sink, "w") as archive:  # closed at a disconnect too, because __del__ would fail
        found = fields_as_json({**account._asdict(), "status": account.status}, _ACCOUNT)
        found |= await db.read(wallet.limit_of_account, account.id, state.clock())
        archive.writestr("account.json", orjson.dumps(found, option=orjson.OPT_INDENT_2) + b"\n")
        for kind in KINDS:
            # Zip64, because the size is unknown.
            with archive.open(f"{kind}.jsonl", "w", force_zip64=True) as file:
                after: Any = None
                while (lines := await db.heavy_read(_lines, account.id, kind, after)) is not None:
                    text, after = lines
                    file.write(text)
                    yield sink.take()
        lines_of_artifacts: list[bytes] = []  # at most 10,000
        last_id = ""
        # A content is read completely before its entry begins, so that it can be read again if it is replaced.
        with state.media.spool() as spool:
            while (artifact := await db.read(_next_artifact, account.id, last_id)) is not None:
                try:
                    await _spool_content(db, artifact, spool)
                except artifact_contents.ContentReplaced:
                    continue
                last_id = artifact.id
                line = {**artifact.as_json(), "file": _file(artifact)}
                lines_of_artifacts.append(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
                with archive.open(_file(artifact), "w") as file:
                    while chunk := spool.read(artifact_contents.CHUNK_BYTES):
                        file.write(chunk)
                        yield sink.take()
        archive.writestr("artifacts.jsonl", b"".join(lines_of_artifacts))
    yield sink.take()


async def _spool_content(db: Database, artifact: Artifact, spool: BinaryIO) -> None:
    """Replace the content of `spool` with the artifact's. Raises ContentReplaced."""
    with storage():
        spool.seek(0)
        spool.truncate()
        async for chunk in content_chunks(db, artifact, 0, artifact.size):
            spool.write(chunk)
        spool.seek(0)


def _lines(conn: sqlite3.Connection, account_id: str, kind: str, after: Any) -> tuple[bytes, Any] | None:
    """Return the next MiB of rows as JSON lines, and the key of the last one. Return None after the last row."""
    table, order, make = KINDS[kind]
    columns = order.split(", ")
    further = "" if after is None else f"AND ({order}) > ({', '.join('?' * len(columns))})"
    rows = conn.execute(
        f"SELECT * FROM {table} WHERE account_id = ? {further} ORDER BY {order}",  # noqa: S608 - our own names
        (account_id, *(after or ())),
    )
    lines, size = [], 0
    for row in rows:
        lines.append(orjson.dumps(make(row), methodcaller("as_json"), orjson.OPT_APPEND_NEWLINE))
        size += len(lines[-1])
        after = tuple(row[column] for column in columns)
        if size > _LINES_BYTES:
            break
    return (b"".join(lines), after) if lines else None


def _next_artifact(conn: sqlite3.Connection, account_id: str, after: str) -> Artifact | None:
    row = conn.execute(
        "SELECT * FROM artifacts WHERE account_id = ? AND id > ? ORDER BY id LIMIT 1", (account_id, after)
    ).fetchone()
    return None if row is None else Artifact(**row)


def _file(artifact: Artifact) -> str:
    """Return an artifact's path in the archive: its unique id, and its name without unsafe characters."""
    name = _UNSAFE.sub("_", unicodedata.normalize("NFC", artifact.name))
    # File systems limit the bytes of a name, and its end has the extension.
    tail = name.encode("utf-8", "replace")[-_NAME_BYTES:].decode("utf-8", "ignore")
    return f"artifacts/{artifact.id}-{tail.rstrip('. ')}"
