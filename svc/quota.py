"""How much each account stores, how much it may store, and the room that is reserved for calls under way.

The triggers of schema.sql count what is stored. A call reserves room before the model is asked; what it stores
afterwards is never refused. Reservations are rows, so every check of room sees them in its own transaction.
"""

import contextlib
import sqlite3
from collections.abc import AsyncIterator
from functools import partial
from typing import NamedTuple

from svc.db import Database
from svc.errors import ApiError
from svc.ids import new_id
from svc.retry import retry_write
from svc.tables import refusals

ROW_BYTES = 256  # counted for each row beside its texts, as in schema.sql
MOST_ARTIFACTS = 10_000  # as in schema.sql


class Stored(NamedTuple):
    """What an account stores and may store, in bytes, with 256 for each row."""

    stored_bytes: int
    limit_bytes: int


def set_limit(tx: sqlite3.Connection, limit_bytes: int) -> None:
    """Set how much every account may store. What is over the limit already stays."""
    tx.execute("UPDATE storage_limit SET bytes = ?", (limit_bytes,))


def stored(conn: sqlite3.Connection, account_id: str) -> Stored:
    row = conn.execute(
        "SELECT ifnull((SELECT bytes FROM stored WHERE account_id = ?), 0), bytes FROM storage_limit", (account_id,)
    ).fetchone()
    return Stored(*row)


def check_room(conn: sqlite3.Connection, account_id: str, more_bytes: int, artifacts: int = 0) -> None:
    """Raise ApiError `quota_exceeded`, or `PAYLOAD_TOO_LARGE` for artifacts, if the account lacks room."""
    now = stored(conn, account_id)
    reserved = "SELECT ifnull(sum(bytes), 0), ifnull(sum(artifacts), 0) FROM reserved_room WHERE account_id = ?"
    reserved_bytes, reserved_artifacts = conn.execute(reserved, (account_id,)).fetchone()
    if more_bytes > 0 and now.stored_bytes + reserved_bytes + more_bytes > now.limit_bytes:
        under_way = f", and {reserved_bytes} more are reserved for requests under way" if reserved_bytes else ""
        message = (
            f"This needs {more_bytes} bytes of storage. The account stores {now.stored_bytes} of the "
            f"{now.limit_bytes} bytes that it may{under_way}. Delete something first."
        )
        raise ApiError("quota_exceeded", message)
    if artifacts:
        there = conn.execute("SELECT count(*) FROM artifacts WHERE account_id = ?", (account_id,)).fetchone()[0]
        if there + reserved_artifacts + artifacts > MOST_ARTIFACTS:
            raise too_many_artifacts()


def check_row(conn: sqlite3.Connection, account_id: str, *texts: str | None) -> None:
    """Raise ApiError `quota_exceeded` if the account lacks room for a row with these texts."""
    check_room(conn, account_id, ROW_BYTES + sum(len((text or "").encode("utf-8", "replace")) for text in texts))


def too_many_artifacts() -> ApiError:
    message = "This account holds 10,000 artifacts, the most there can be. Delete some first."
    return ApiError("PAYLOAD_TOO_LARGE", message)


# --- reservations


def reserve(tx: sqlite3.Connection, account_id: str, reservation_id: str, size_bytes: int, artifacts: int = 0) -> None:
    """Reserve room for a call. Raises what `check_room` does, and `invalid_api_key` without an account."""
    check_room(tx, account_id, size_bytes, artifacts)
    with refusals():
        tx.execute("INSERT INTO reserved_room VALUES (?, ?, ?, ?)", (account_id, reservation_id, size_bytes, artifacts))


def release(tx: sqlite3.Connection, account_id: str, reservation_id: str) -> None:
    """End a reservation; a second time changes nothing."""
    tx.execute("DELETE FROM reserved_room WHERE account_id = ? AND id = ?", (account_id, reservation_id))


def release_all(tx: sqlite3.Connection) -> None:
    tx.execute("DELETE FROM reserved_room")


@contextlib.asynccontextmanager
async def room(db: Database, account_id: str, size_bytes: int, artifacts: int = 0) -> AsyncIterator[None]:
    """Reserve room for the block. Raises what `reserve` does, and ApiError `storage_unavailable`."""
    reservation_id = new_id("room")
    # Unsynced, like a hold in the wallet: a reservation means nothing after a power failure.
    releasing = partial(db.write_as, "unsynced", release, account_id, reservation_id)
    try:
        await db.write_as("unsynced", reserve, account_id, reservation_id, size_bytes, artifacts)
        yield
    finally:  # also if this task was cancelled while the reservation was written
        with contextlib.suppress(ApiError):  # the disk is full: the release is tried again in the background
            await retry_write(releasing)
