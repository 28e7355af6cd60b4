"""How much each account stores, which the triggers of schema.sql count, and how much it may."""

import sqlite3
from typing import NamedTuple

from svc.errors import ApiError

ROW_BYTES = 256  # which each row counts beside its texts, as schema.sql has it


class Stored(NamedTuple):
    """What an account stores and may store, in bytes: its texts, names and files, and 256 for each row."""

    stored_bytes: int
    limit_bytes: int


def set_limit(tx: sqlite3.Connection, limit_bytes: int) -> None:
    """Sets how much every account may store; what is over it already stays."""
    tx.execute("UPDATE storage_limit SET bytes = ?", (limit_bytes,))


def stored(conn: sqlite3.Connection, account_id: str) -> Stored:
    row = conn.execute(
        "SELECT ifnull((SELECT bytes FROM stored WHERE account_id = ?), 0), bytes FROM storage_limit", (account_id,)
    ).fetchone()
    return Stored(*row)


def check_room(conn: sqlite3.Connection, account_id: str, more_bytes: int) -> None:
    """Whether the account may store `more_bytes`. Raises ApiError `quota_exceeded`.

    Only what a caller sends is held to it: an answer that is paid for, and how a run ended, is kept all the same.
    """
    now = stored(conn, account_id)
    if more_bytes > 0 and now.stored_bytes + more_bytes > now.limit_bytes:
        told = f"This account stores {now.stored_bytes} of the {now.limit_bytes} bytes that it may. Delete something first."
        raise ApiError("quota_exceeded", told)
