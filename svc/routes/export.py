"""All that an account has as one zip archive, so that no one is locked in: JSON lines for each kind, and the artifacts as files.

rows of a kind -> JSON lines, a MiB at a time, each in a read of its own -> the archive, which is sent while it is made
"""

import re
import sqlite3
import zipfile
from collections.abc import AsyncGenerator, Callable
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from svc.agents import runs
from svc.auth.accounts import Account
from svc.billing.usage import day_of
from svc.content import artifacts, conversations, history, projects, support
from svc.content.artifacts import PIECE_BYTES
from svc.db import Database
from svc.ids import timestamp
from svc.inference import providers
from svc.server.gate import Caller
from svc.server.state import State

Shown = Callable[[sqlite3.Row], dict[str, Any]]
_LINES_BYTES = 1024 * 1024
_NAME_LENGTH = 100


def _columns(*names: str) -> Shown:
    """Shows the columns `names`; what ends in `_at` is a time."""

    def shown(row: sqlite3.Row) -> dict[str, Any]:
        values = {name: row[name] for name in names}
        return {name: timestamp(value) if name.endswith("_at") and value is not None else value for name, value in values.items()}

    return shown


def _message(row: sqlite3.Row) -> dict[str, Any]:
    return {**history.shown(row), "run_id": row["run_id"]}


def _support_message(row: sqlite3.Row) -> dict[str, Any]:
    return {"support_id": row["support_id"], **support.message_shown(row)}


def _artifact(row: sqlite3.Row) -> dict[str, Any]:
    return {**artifacts.shown(row), "file": _file(row)}


# file: (table, a column or expression that orders its rows, how a row is shown: never a secret or its hash)
KINDS: dict[str, tuple[str, str, Shown]] = {
    "identities": ("identities", "id", _columns("id", "issuer", "subject", "email", "created_at")),
    "api_keys": ("api_keys", "id", _columns("id", "key_prefix", "name", "created_at", "last_used_at")),
    "providers": ("providers", "id", providers.shown),
    "projects": ("projects", "id", projects.shown),
    "conversations": ("conversations", "id", conversations.shown),
    "messages": ("messages", "number", _message),
    "runs": ("runs", "id", runs.shown),
    "artifacts": ("artifacts", "id", _artifact),
    "ledger": (
        "ledger",
        "seq",
        _columns(
            *("id", "kind", "amount_micros", "balance_after_micros", "description", "reference", "model"),
            *("input_tokens", "output_tokens", "request_id", "key_id", "created_at"),
        ),
    ),
    "usage": (
        "usage_days",
        "day || ' ' || model",
        _columns("day", "model", "requests", "input_tokens", "output_tokens", "cost_micros"),
    ),
    "checkouts": ("checkouts", "id", _columns("id", "amount_micros", "state", "session_id", "created_at", "paid_at")),
    "support_conversations": ("support_conversations", "id", support.shown),
    "support_messages": ("support_messages", "number", _support_message),
}


async def create(request: Request[State], caller: Caller) -> Response:
    """The archive. Its memory is bounded by the largest row; what changes meanwhile may be in it or not."""
    state = request.state
    headers = {
        "content-type": "application/zip",
        "content-disposition": f'attachment; filename="export-{day_of(state.clock())}.zip"',
        "cache-control": "no-store",
    }
    if request.method == "HEAD":
        return Response(headers=headers)
    await state.engines.usage.flush()
    return StreamingResponse(_archive(state.db, caller), 200, headers)


class _Sink:
    """The file that zipfile writes to: what is written is taken away at once."""

    def __init__(self) -> None:
        self._written: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._written.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """For zipfile, which calls it."""

    def take(self) -> bytes:
        taken, self._written = b"".join(self._written), []
        return taken


async def _archive(db: Database, caller: Caller) -> AsyncGenerator[bytes, None]:
    sink = _Sink()
    archive = zipfile.ZipFile(sink, "w")  # type: ignore[call-overload]
    archive.writestr("account.json", orjson.dumps(_account(caller.account), option=orjson.OPT_INDENT_2) + b"\n")
    for kind in KINDS:
        # Zip64, because nobody knows before how long it becomes.
        with archive.open(f"{kind}.jsonl", "w", force_zip64=True) as file:
            after: Any = None
            while (lines := await db.read(_lines, caller.id, kind, after)) is not None:
                text, after = lines
                file.write(text)
                yield sink.take()
    after = ""
    while (row := await db.read(_next_artifact, caller.id, after)) is not None:
        pieces = _pieces(db, caller.id, row)
        try:
            # Before its entry begins: so only a content that is replaced in the middle cuts the answer.
            piece = await anext(pieces, b"")
        except artifacts.ContentReplaced:
            continue
        after = row["id"]
        with archive.open(_file(row), "w") as file:
            while piece:
                file.write(piece)
                yield sink.take()
                piece = await anext(pieces, b"")
    archive.close()
    yield sink.take()


def _account(account: Account) -> dict[str, Any]:
    plain = ("id", "email", "name", "tier", "default_model", "memory_enabled")
    return {**{field: getattr(account, field) for field in plain}, "created_at": timestamp(account.created_at)}


async def _pieces(db: Database, account_id: str, row: sqlite3.Row) -> AsyncGenerator[bytes, None]:
    for number in range(-(-row["size"] // PIECE_BYTES)):
        yield await db.read(artifacts.content_piece, account_id, row["id"], row["sha256"], number)


def _lines(conn: sqlite3.Connection, account_id: str, kind: str, after: Any) -> tuple[bytes, Any] | None:
    """The next rows of a kind as JSON lines, up to a MiB and one row, and the place of the last; None when there are no more."""
    table, place, shown = KINDS[kind]
    further = "" if after is None else f"AND {place} > :after"
    rows = conn.execute(
        f"SELECT *, {place} AS place FROM {table} WHERE account_id = :id {further} ORDER BY {place}",  # noqa: S608 - our own names
        {"id": account_id, "after": after},
    )
    lines, size = [], 0
    for row in rows:
        lines.append(orjson.dumps(shown(row), option=orjson.OPT_APPEND_NEWLINE))
        size += len(lines[-1])
        after = row["place"]
        if size > _LINES_BYTES:
            break
    return (b"".join(lines), after) if lines else None


def _next_artifact(conn: sqlite3.Connection, account_id: str, after: str) -> sqlite3.Row | None:
    row: sqlite3.Row | None = conn.execute(
        "SELECT * FROM artifacts WHERE account_id = ? AND id > ? ORDER BY id LIMIT 1", (account_id, after)
    ).fetchone()
    return row


def _file(artifact: sqlite3.Row) -> str:
    """An artifact's path in the archive: its name as far as every file system takes it, behind the id that makes it unique."""
    name = re.sub(r"[^A-Za-z0-9._()-]+|\.{2,}", "_", artifact["name"])[-_NAME_LENGTH:].rstrip(".")
    return f"artifacts/{artifact['id']}-{name}"
