"""Deletion in slices of some milliseconds, between which other writes run."""

import contextlib
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence

_SOME_SECONDS = 0.005
_OVERWRITTEN_BYTES = 1_000_000


@contextlib.contextmanager
def without_overwriting(tx: sqlite3.Connection) -> Iterator[None]:
    """Do not overwrite what the block deletes: with many megabytes that would delay all writes."""
    tx.execute("PRAGMA secure_delete = FAST")
    try:
        yield
    finally:
        tx.execute("PRAGMA secure_delete = ON")


def delete_found(tx: sqlite3.Connection, query: str, value: float | str, delete: Callable[..., object]) -> bool:
    """Call `delete(tx, *row)` with the first row of `query` for `value`, for 5 ms. Return whether there may be more."""
    ends = time.monotonic() + _SOME_SECONDS
    while row := tx.execute(query, (value,)).fetchone():
        delete(tx, *row)
        if time.monotonic() > ends:
            return True
    return False


def run_some(tx: sqlite3.Connection, statement: str, account_id: str, *more: str, at_once: int = 64) -> bool:
    """Repeat a statement that deletes up to ?2 rows of the account ?1 for 5 ms. Return whether rows are left.

    `at_once` is the maximum of ?2. Use 1 for rows that can have 100 KB.
    """
    ends, rows = time.monotonic() + _SOME_SECONDS, 1
    while tx.execute(statement, (account_id, rows, *more)).rowcount == rows:
        if time.monotonic() > ends:
            return True
        rows = min(rows * 2, at_once)
    return False


def delete_row(
    tx: sqlite3.Connection, statement: str, account_id: str, rowid: int, *, table: str, texts: Sequence[str]
) -> bool:
    """Delete a row of the account by `statement`, or overwrite the next MB of its `texts`. Return whether it is
    deleted.

    SQLite overwrites what it deletes, 8 ms for each MB in one transaction. So texts of more than a MB are overwritten
    before.
    """
    columns = ", ".join(f"ifnull(length(CAST({text} AS BLOB)), 0)" for text in texts)
    sizes = tx.execute(f"SELECT {columns} FROM {table} WHERE rowid = ?", (rowid,)).fetchone()  # noqa: S608 - our own names
    is_long = sum(sizes) > _OVERWRITTEN_BYTES
    for text, size in zip(texts, sizes, strict=True) if is_long else ():
        if size and _overwrite_some(tx, table, text, rowid):
            return False
    with without_overwriting(tx) if is_long else contextlib.nullcontext():
        tx.execute(statement, (account_id, rowid))
    return True


def _overwrite_some(tx: sqlite3.Connection, table: str, text: str, rowid: int) -> bool:
    # For long texts only: Python 3.11 keeps 88 bytes of each blob that was opened as long as the connection.
    with tx.blobopen(table, text, rowid) as blob:
        for start in range(0, len(blob), _OVERWRITTEN_BYTES):
            blob.seek(start)
            if blob.read(1_000).strip(b"\0"):
                blob.seek(start)
                blob.write(bytes(min(_OVERWRITTEN_BYTES, len(blob) - start)))
                return True
    return False
